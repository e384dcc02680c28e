"""Swaps of edges, which keep every degree: at random, towards a mixing, or one that was chosen.

A swap of the edges (a, x) and (c, y) gives (a, c) and (x, y). For swaps that were chosen for what
they do to triangles, :class:`SwapGraph` counts first what one would move.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.core.compiled import compiled, inner
from tulle.graphs.synthesis.generators.edge_set import (
    draw_below,
    holds,
    key_of,
    set_of,
    stays_simple,
    swap_keys,
)
from tulle.graphs.synthesis.generators.mixing import MixingCounts, State, keep_swap, weigh_swap
from tulle.noise.post_processing import Random

_FEW = 3
"""An edge in so few triangles holds no circle together."""

_LOOKUP = 4
"""What looking for an edge costs, in neighbours."""


ENOUGH = 0.02
"""A mixing is met when its cells are off by this part of their variance."""


def shuffle_edges(edges: Wholes, nodes: int, tries: int, random: Random) -> int:
    """Swap random pairs of edges in place, so often tried; return how many were swapped."""
    if len(edges) < 2:
        return 0
    nothing, alike = State.none(1), np.zeros(1, dtype=np.int64)
    table = set_of(edges, nodes)
    return int(_swap_at_random(edges, 0, nodes, table, alike, nothing, np.inf, tries, random))


def steer(
    edges: Wholes,
    free: int,
    degrees: Wholes,
    blocks: Wholes,
    mixing: MixingCounts,
    attempts: int,
    random: Random,
) -> Wholes:
    """Return the edges after swaps among those from place ``free`` on that mend the mixing.

    A swap is kept where that keeps the number of edges between blocks, and the graph simple. It
    ends when each cell is off by about its noise.

    Example:
        >>> from fractions import Fraction
        >>> from tulle.graphs.synthesis.joint_degrees.classes import soft_classes
        >>> from tulle.noise import SeededSource
        >>> from tulle.noise.post_processing import post_processing
        >>> hubs = np.array([(0, 1), (2, 3), (0, 4), (0, 5), (1, 6), (1, 7)])
        >>> degrees = np.bincount(hubs.ravel())
        >>> grid = soft_classes(8, Fraction(3))
        >>> apart = MixingCounts(grid, np.array([[0.0, 6.0], [6.0, 0.0]]), 0.1)
        >>> blocks = np.zeros(8, dtype=np.int64)
        >>> made = steer(hubs, 0, degrees, blocks, apart, 10_000, post_processing(SeededSource(1)))
        >>> sorted(map(tuple, np.sort(degrees[made], axis=1).tolist()))
        [(1, 3), (1, 3), (1, 3), (1, 3), (1, 3), (1, 3)]
    """
    edges, nodes = np.ascontiguousarray(edges), len(degrees)
    if len(edges) - free < 2 or len(mixing.wanted) < 2:
        return edges
    state = State.of(mixing, edges, degrees)
    table = set_of(edges, nodes)
    _swap_at_random(edges, free, nodes, table, blocks, state, state.cost(), attempts, random)
    return edges


@compiled
def _swap_at_random(
    edges: Any,
    free: Any,
    nodes: Any,
    table: Any,
    blocks: Any,
    state: Any,
    cost: Any,
    attempts: Any,
    random: Any,
) -> Any:
    """Try swaps of two random edges; where the mixing has a cost, keep those that lower it."""
    count, width, done, number = len(edges), len(state.apart), 0, 0
    enough, steered = ENOUGH * width * (width + 1), cost < np.inf
    for _ in range(attempts):
        if cost <= enough:
            break
        first = free + draw_below(count - free, random)
        second = free + draw_below(count - free, random)
        a, x = edges[first, 0], edges[first, 1]
        c, y = edges[second, 0], edges[second, 1]
        if random.random() < 0.5:
            c, y = y, c
        if a in (c, y) or x in (c, y):
            continue
        change = 0.0
        if steered:
            if blocks[a] != blocks[y] and blocks[x] != blocks[c]:
                continue
            change, number = weigh_swap(state, a, y, c, x)
            if change >= 0:
                continue
        if not stays_simple(table, nodes, a, x, c, y):
            continue
        swap_keys(table, nodes, a, x, c, y)
        edges[first, 0], edges[first, 1] = a, c
        edges[second, 0], edges[second, 1] = x, y
        if steered:
            keep_swap(state, number)
            cost += change
        done += 1
    return done


class SwapGraph(NamedTuple):
    """A graph whose edges can be swapped, for compiled code."""

    offsets: Wholes
    neighbours: Wholes
    mates: Wholes
    """For each place of a neighbour, the place of the same edge at its other end."""
    degrees: Wholes
    weights: Floats
    """What a triangle adds to the clustering coefficient of each of its nodes."""
    blocks: Wholes
    table: Wholes
    able: Wholes
    """The nodes with two neighbours or more."""
    shared: Wholes
    """For each place, how many neighbours both ends of the edge share."""
    weighed: Floats
    """And the sum of their weights."""
    marks: Wholes
    spots: Wholes
    stamp: Wholes

    @property
    def triangles(self) -> int:
        """The number of triangles."""
        return int(self.shared.sum()) // 6

    @property
    def clustering(self) -> float:
        """The sum of clustering coefficients."""
        return float(self.shared @ np.repeat(self.weights, self.degrees)) / 2

    @property
    def edges(self) -> Wholes:
        """The edges, as they are now."""
        source = np.repeat(np.arange(len(self.degrees)), self.degrees)
        upper = source < self.neighbours
        return np.column_stack([source[upper], self.neighbours[upper]])


def build_swap_graph(edges: Wholes, blocks: Wholes) -> SwapGraph:
    """Return a graph of these edges to swap.

    Example:
        >>> network = build_swap_graph(np.array([(0, 1), (2, 3)]), np.zeros(4, dtype=np.int64))
        >>> swap_edges(network, 0, 2)
        >>> network.edges.tolist()
        [[0, 2], [1, 3]]
    """
    nodes, count = len(blocks), len(edges)
    ends = np.concatenate([edges[:, 0], edges[:, 1]])
    other = np.concatenate([edges[:, 1], edges[:, 0]])
    order = np.argsort(ends, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(2 * count)
    mates = np.empty_like(order)
    mates[place[:count]], mates[place[count:]] = place[count:], place[:count]
    degrees = np.bincount(ends, minlength=nodes)
    network = SwapGraph(
        offsets=np.concatenate([[0], np.cumsum(degrees)]),
        neighbours=other[order],
        mates=mates,
        degrees=degrees,
        weights=2.0 / np.maximum(degrees * (degrees - 1), 2),
        blocks=np.ascontiguousarray(blocks),
        table=set_of(edges, nodes),
        able=np.flatnonzero(degrees > 1),
        shared=np.zeros(2 * count, dtype=np.int64),
        weighed=np.zeros(2 * count),
        marks=np.zeros(nodes, dtype=np.int64),
        spots=np.zeros(nodes, dtype=np.int64),
        stamp=np.zeros(1, dtype=np.int64),
    )
    _find_shared(network)
    return network


@inner
def _mark(network: Any, node: Any) -> Any:
    """Mark the neighbours of a node, and note their places; return the mark."""
    network.stamp[0] += 1
    stamp = network.stamp[0]
    for place in range(network.offsets[node], network.offsets[node + 1]):
        network.marks[network.neighbours[place]] = stamp
        network.spots[network.neighbours[place]] = place
    return stamp


@compiled
def _find_shared(network: Any) -> None:
    for u in range(len(network.degrees)):
        stamp = _mark(network, u)
        for place in range(network.offsets[u], network.offsets[u + 1]):
            v = network.neighbours[place]
            if v < u:
                continue
            mate = network.mates[place]
            for step in range(network.offsets[v], network.offsets[v + 1]):
                other = network.neighbours[step]
                if network.marks[other] == stamp:
                    network.shared[place] += 1
                    network.weighed[place] += network.weights[other]
            network.shared[mate], network.weighed[mate] = (
                network.shared[place],
                network.weighed[place],
            )


@inner
def may_swap(network: Any, a: Any, x: Any, c: Any, y: Any) -> Any:
    """Say whether the graph stays simple, with as many edges between blocks."""
    if a in (c, y) or x in (c, y):
        return False
    if network.blocks[x] != network.blocks[c] and network.blocks[a] != network.blocks[y]:
        return False
    return stays_simple(network.table, len(network.degrees), a, x, c, y)


@inner
def _shared(network: Any, u: Any, v: Any, one: Any, two: Any) -> Any:
    """Return how many neighbours u and v share, beside two nodes, what they weigh, and the work."""
    if network.degrees[u] > network.degrees[v]:
        u, v = v, u
    nodes = len(network.degrees)
    found, weight = 0, 0.0
    if _LOOKUP * network.degrees[u] < network.degrees[v]:
        for place in range(network.offsets[u], network.offsets[u + 1]):
            other = network.neighbours[place]
            if other in (one, two, v) or not holds(network.table, key_of(other, v, nodes)):
                continue
            found += 1
            weight += network.weights[other]
        return found, weight, _LOOKUP * network.degrees[u]
    stamp = _mark(network, v)
    network.marks[one] = network.marks[two] = 0
    for place in range(network.offsets[u], network.offsets[u + 1]):
        other = network.neighbours[place]
        if network.marks[other] == stamp:
            found += 1
            weight += network.weights[other]
    return found, weight, network.degrees[u] + network.degrees[v]


@inner
def is_loose(network: Any, place: Any, loose: Any) -> Any:
    """Say whether the ends of an edge share at most this part of their neighbours, or few."""
    fewer = min(
        network.degrees[network.neighbours[place]],
        network.degrees[network.neighbours[network.mates[place]]],
    )
    return network.shared[place] <= max(loose * fewer, _FEW)


@inner
def weigh_triangles(network: Any, ax: Any, cy: Any, moved: Any) -> Any:
    """Note what (a, x), (c, y), by their places, becoming (a, c), (x, y) moves; return the work.

    ``moved`` receives the change in triangles and in the sum of clustering coefficients. No
    triangle holds two of these four edges: of the old ones because all four nodes differ, of an
    old and a new one because the old one goes. So a and c do not count x or y as shared.
    """
    x, y = network.neighbours[ax], network.neighbours[cy]
    a, c = network.neighbours[network.mates[ax]], network.neighbours[network.mates[cy]]
    weights = network.weights
    one, heavy, work = _shared(network, a, c, x, y)
    two, heavier, more = _shared(network, x, y, a, c)
    moved[0] = one + two - network.shared[ax] - network.shared[cy]
    moved[1] = (
        heavy
        + heavier
        - network.weighed[ax]
        - network.weighed[cy]
        + one * (weights[a] + weights[c])
        + two * (weights[x] + weights[y])
        - network.shared[ax] * (weights[a] + weights[x])
        - network.shared[cy] * (weights[c] + weights[y])
    )
    return work + more


@inner
def _count_in(network: Any, place: Any, sign: Any) -> None:
    """Let the triangles of an edge count (1), or no longer (-1), with their other two edges."""
    u, v = network.neighbours[network.mates[place]], network.neighbours[place]
    stamp = _mark(network, u)
    found, weight = 0, 0.0
    for step in range(network.offsets[v], network.offsets[v + 1]):
        other = network.neighbours[step]
        if network.marks[other] != stamp:
            continue
        found += 1
        weight += network.weights[other]
        side, across = network.spots[other], v
        for _ in range(2):
            for _ in range(2):
                network.shared[side] += sign
                network.weighed[side] += sign * network.weights[across]
                side = network.mates[side]
            side, across = step, u
    for _ in range(2):
        network.shared[place], network.weighed[place] = found, weight
        place = network.mates[place]


@compiled
def swap_edges(network: Any, ax: Any, cy: Any) -> None:
    """Let the edges (a, x), (c, y), by their places at a and c, become (a, c), (x, y)."""
    neighbours, mates = network.neighbours, network.mates
    xa, yc = mates[ax], mates[cy]
    a, x, c, y = neighbours[xa], neighbours[ax], neighbours[yc], neighbours[cy]
    second = cy
    # A sign that is no constant: a function is compiled anew for each constant.
    for sign in range(-1, 2, 2):
        if sign > 0:
            swap_keys(network.table, len(network.degrees), a, x, c, y)
            neighbours[ax], neighbours[cy] = c, a
            neighbours[xa], neighbours[yc] = y, x
            mates[ax], mates[cy] = cy, ax
            mates[xa], mates[yc] = yc, xa
            second = xa
        _count_in(network, ax, sign)
        _count_in(network, second, sign)
