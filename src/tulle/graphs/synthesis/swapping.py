"""A graph whose edges can be swapped, for compiled code; what a swap moves is counted first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tulle.graphs.compiled import compiled
from tulle.graphs.synthesis.edge_set import add, add_all, empty_set, holds, key_of, remove

Wholes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_FEW = 3
"""An edge in so few triangles holds no circle together."""

_LOOKUP = 4
"""What looking for an edge costs, in neighbours."""


class Body(NamedTuple):
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


def embody(edges: Wholes, blocks: Wholes) -> Body:
    """Return a graph of these edges to swap.

    Example:
        >>> body = embody(np.array([(0, 1), (2, 3)]), np.zeros(4, dtype=np.int64))
        >>> swap_edges(body, 0, 2)
        >>> body.edges.tolist()
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
    table = empty_set(count)
    add_all(table, edges[:, 0].copy(), edges[:, 1].copy(), nodes)
    body = Body(
        offsets=np.concatenate([[0], np.cumsum(degrees)]),
        neighbours=other[order],
        mates=mates,
        degrees=degrees,
        weights=2.0 / np.maximum(degrees * (degrees - 1), 2),
        blocks=np.ascontiguousarray(blocks),
        table=table,
        able=np.flatnonzero(degrees > 1),
        shared=np.zeros(2 * count, dtype=np.int64),
        weighed=np.zeros(2 * count),
        marks=np.zeros(nodes, dtype=np.int64),
        spots=np.zeros(nodes, dtype=np.int64),
        stamp=np.zeros(1, dtype=np.int64),
    )
    _find_shared(body)
    return body


@compiled
def _mark(body: Any, node: Any) -> Any:
    """Mark the neighbours of a node, and note their places; return the mark."""
    body.stamp[0] += 1
    stamp = body.stamp[0]
    for place in range(body.offsets[node], body.offsets[node + 1]):
        body.marks[body.neighbours[place]] = stamp
        body.spots[body.neighbours[place]] = place
    return stamp


@compiled
def _find_shared(body: Any) -> None:
    for u in range(len(body.degrees)):
        stamp = _mark(body, u)
        for place in range(body.offsets[u], body.offsets[u + 1]):
            v = body.neighbours[place]
            if v < u:
                continue
            mate = body.mates[place]
            for step in range(body.offsets[v], body.offsets[v + 1]):
                other = body.neighbours[step]
                if body.marks[other] == stamp:
                    body.shared[place] += 1
                    body.weighed[place] += body.weights[other]
            body.shared[mate], body.weighed[mate] = body.shared[place], body.weighed[place]


@compiled
def may_swap(body: Any, a: Any, x: Any, c: Any, y: Any) -> Any:
    """Say whether the graph stays simple, with as many edges between blocks."""
    if a in (c, y) or x in (c, y):
        return False
    if body.blocks[x] != body.blocks[c] and body.blocks[a] != body.blocks[y]:
        return False
    nodes = len(body.degrees)
    return not (holds(body.table, key_of(a, c, nodes)) or holds(body.table, key_of(x, y, nodes)))


@compiled
def _shared(body: Any, u: Any, v: Any, one: Any, two: Any) -> Any:
    """Return how many neighbours u and v share, beside two nodes, what they weigh, and the work."""
    if body.degrees[u] > body.degrees[v]:
        u, v = v, u
    nodes = len(body.degrees)
    found, weight = 0, 0.0
    if _LOOKUP * body.degrees[u] < body.degrees[v]:
        for place in range(body.offsets[u], body.offsets[u + 1]):
            other = body.neighbours[place]
            if other in (one, two, v) or not holds(body.table, key_of(other, v, nodes)):
                continue
            found += 1
            weight += body.weights[other]
        return found, weight, _LOOKUP * body.degrees[u]
    stamp = _mark(body, v)
    body.marks[one] = body.marks[two] = 0
    for place in range(body.offsets[u], body.offsets[u + 1]):
        other = body.neighbours[place]
        if body.marks[other] == stamp:
            found += 1
            weight += body.weights[other]
    return found, weight, body.degrees[u] + body.degrees[v]


@compiled
def is_loose(body: Any, place: Any, loose: Any) -> Any:
    """Say whether the ends of an edge share at most this part of their neighbours, or few."""
    fewer = min(
        body.degrees[body.neighbours[place]], body.degrees[body.neighbours[body.mates[place]]]
    )
    return body.shared[place] <= max(loose * fewer, _FEW)


@compiled
def weigh_triangles(body: Any, ax: Any, cy: Any, moved: Any) -> Any:
    """Note what (a, x), (c, y), by their places, becoming (a, c), (x, y) moves; return the work.

    ``moved`` receives the change in triangles and in the sum of clustering coefficients. No
    triangle holds two of these four edges: of the old ones because all four nodes differ, of an
    old and a new one because the old one goes. So a and c do not count x or y as shared.
    """
    x, y = body.neighbours[ax], body.neighbours[cy]
    a, c = body.neighbours[body.mates[ax]], body.neighbours[body.mates[cy]]
    weights = body.weights
    one, heavy, work = _shared(body, a, c, x, y)
    two, heavier, more = _shared(body, x, y, a, c)
    moved[0] = one + two - body.shared[ax] - body.shared[cy]
    moved[1] = (
        heavy
        + heavier
        - body.weighed[ax]
        - body.weighed[cy]
        + one * (weights[a] + weights[c])
        + two * (weights[x] + weights[y])
        - body.shared[ax] * (weights[a] + weights[x])
        - body.shared[cy] * (weights[c] + weights[y])
    )
    return work + more


@compiled
def _count_in(body: Any, place: Any, sign: Any) -> None:
    """Let the triangles of an edge count (1), or no longer (-1), with their other two edges."""
    u, v = body.neighbours[body.mates[place]], body.neighbours[place]
    stamp = _mark(body, u)
    found, weight = 0, 0.0
    for step in range(body.offsets[v], body.offsets[v + 1]):
        other = body.neighbours[step]
        if body.marks[other] != stamp:
            continue
        found += 1
        weight += body.weights[other]
        for near, across in ((body.spots[other], v), (step, u)):
            for side in (near, body.mates[near]):
                body.shared[side] += sign
                body.weighed[side] += sign * body.weights[across]
    for side in (place, body.mates[place]):
        body.shared[side], body.weighed[side] = found, weight


@compiled
def swap_edges(body: Any, ax: Any, cy: Any) -> None:
    """Let the edges (a, x), (c, y), by their places at a and c, become (a, c), (x, y)."""
    nodes = len(body.degrees)
    neighbours, mates = body.neighbours, body.mates
    xa, yc = mates[ax], mates[cy]
    a, x, c, y = neighbours[xa], neighbours[ax], neighbours[yc], neighbours[cy]
    _count_in(body, ax, -1)
    _count_in(body, cy, -1)
    remove(body.table, key_of(a, x, nodes))
    remove(body.table, key_of(c, y, nodes))
    add(body.table, key_of(a, c, nodes))
    add(body.table, key_of(x, y, nodes))
    neighbours[ax], neighbours[cy] = c, a
    neighbours[xa], neighbours[yc] = y, x
    mates[ax], mates[cy] = cy, ax
    mates[xa], mates[yc] = yc, xa
    _count_in(body, ax, 1)
    _count_in(body, xa, 1)
