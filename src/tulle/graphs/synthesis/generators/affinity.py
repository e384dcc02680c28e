"""A random graph with given degrees and blocks, whose triangles sit in small dense groups.

Inside a block, nodes of like degree d form groups of about d + 1, where each two are joined with
a chance that sets how many triangles close (after the BTER model of Seshadhri, Kolda & Pinar).
The ends that are left are matched, block by block, so that degrees stay exact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.core.compiled import compiled
from tulle.graphs.synthesis.generators.edge_set import (
    add,
    draw_below,
    empty_set,
    key_of,
    remove,
    stays_simple,
)
from tulle.graphs.synthesis.generators.mixing import MixingCounts
from tulle.graphs.synthesis.generators.swapping import steer
from tulle.noise.post_processing import Random

_BALANCING = 100
_REPAIRS = 40
_ATTEMPTS = 30
_NEAR_REACH = 3.0
"""Over how many neighbouring groups an end that stays near may reach."""


class FixedParts(NamedTuple):
    """What stays the same while the knobs are turned."""

    degrees: Wholes
    """The degree of each node."""
    blocks: Wholes
    """The block of each node."""
    counts: Floats
    """The wanted number of edges between each two blocks, symmetric."""


class Knobs(NamedTuple):
    """What sets triangles, clustering and assortativity."""

    closing: float = 0.5
    """The density of groups; above 1, what is left forms groups again, and again."""
    slope: float = 0.0
    """How much denser groups of small degree are: density ~ degree^-slope."""
    unlike: float = 0.15
    """How far, as a logarithm, degrees in one group are apart."""
    near: float = 0.0
    """The share of remaining ends, inside blocks, that stay in groups nearby on a circle."""


def draw_affinity(
    frame: FixedParts,
    knobs: Knobs,
    random: Random,
    mixing: MixingCounts | None = None,
    attempts: int = 20,
) -> Wholes:
    """Return the edges of a simple graph with these degrees, as nearly as can be.

    With ``mixing``, edges outside of groups are swapped until it is met or so many swaps were
    tried for each edge.

    Example:
        >>> from tulle.noise import SeededSource
        >>> from tulle.noise.post_processing import post_processing
        >>> frame = FixedParts(np.full(6, 2), np.zeros(6, dtype=np.int64), np.array([[6.0]]))
        >>> edges = draw_affinity(frame, Knobs(closing=1.0), post_processing(SeededSource(1)))
        >>> np.bincount(edges.ravel()).tolist()
        [2, 2, 2, 2, 2, 2]
    """
    return draw_parts(frame, knobs, random, mixing, attempts)[0]


def draw_parts(
    frame: FixedParts, knobs: Knobs, random: Random, mixing: MixingCounts | None, attempts: int
) -> tuple[Wholes, int]:
    """Return the edges, first those in groups or near, and how many these are."""
    degrees, blocks, counts = frame
    kinds = len(counts)
    ends = np.bincount(blocks, weights=degrees, minlength=kinds)
    share = np.minimum(2 * np.diag(counts) / np.maximum(ends, 1.0), 1.0)
    inner = np.floor(degrees * share[blocks] + random.random(len(degrees))).astype(np.int64)
    inner = np.minimum(inner, degrees)
    group = np.full(len(degrees), -1, dtype=np.int64)
    grouped = _grouped(inner, blocks, group, knobs, max(float(degrees.mean()), 1.0), random)
    left = degrees - np.bincount(grouped.ravel(), minlength=len(degrees))
    wanted = counts.copy()
    wanted[np.diag_indices(kinds)] -= np.bincount(blocks[grouped[:, 0]], minlength=kinds)
    if knobs.near > 0:
        close = _near_by(left, frame, np.diag(wanted), group, knobs.near, random)
        left = left - np.bincount(close.ravel(), minlength=len(degrees))
        wanted[np.diag_indices(kinds)] -= np.bincount(blocks[close[:, 0]], minlength=kinds)
        grouped = np.concatenate([grouped, close])
    matched = _matched(left, frame, np.maximum(wanted, 0.0), random)
    edges, free = make_simple(np.concatenate([grouped, matched]), blocks, random, len(grouped))
    if mixing is not None:
        edges = steer(edges, free, degrees, blocks, mixing, attempts * len(edges), random)
    return edges, free


def _grouped(
    left: Wholes, blocks: Wholes, group: Wholes, knobs: Knobs, typical: float, random: Random
) -> Wholes:
    """Return the edges inside groups; ``left`` loses the ends that they use.

    ``group`` receives the group of each node in the first round.
    """
    parts = [np.empty((0, 2), dtype=np.int64)]
    for turn in range(int(np.ceil(max(knobs.closing, 0.0)))):
        density = min(knobs.closing - turn, 1.0)
        about = left * np.exp(knobs.unlike * random.standard_normal(len(left)))
        order = np.lexsort((about, blocks))
        noted = group if turn == 0 else group.copy()
        edges = np.empty((int(left.sum()) // 2, 2), dtype=np.int64)
        made = _join_groups(
            order, left, blocks, noted, density, knobs.slope, typical, edges, random
        )
        if not made:
            break
        parts.append(edges[:made])
    return np.concatenate(parts)


@compiled
def _join_groups(
    order: Any,
    left: Any,
    blocks: Any,
    group: Any,
    density: Any,
    slope: Any,
    typical: Any,
    edges: Any,
    random: Any,
) -> Any:
    """Cut each block, by rising degree, into groups one larger than their least degree.

    Return how many edges they have.
    """
    count = len(order)
    made = 0
    first = 0
    while first < count:
        node = order[first]
        degree = left[node]
        if degree < 2:
            first += 1
            continue
        last = first
        while last < count and last - first <= degree and blocks[order[last]] == blocks[node]:
            last += 1
        for place in range(first, last):
            group[order[place]] = first
        chance = min(density * (degree / typical) ** (-slope), 1.0)
        for one in range(first, last):
            for two in range(one + 1, last):
                u, v = order[one], order[two]
                if random.random() < chance and left[u] > 0 and left[v] > 0:
                    left[u] -= 1
                    left[v] -= 1
                    edges[made, 0], edges[made, 1] = u, v
                    made += 1
        first = last
    return made


def _near_by(
    left: Wholes, frame: FixedParts, inside: Floats, group: Wholes, near: float, random: Random
) -> Wholes:
    """Return edges between ends of groups that lie next to each other, in a random order.

    A real network's other edges do not lead just anywhere either: without this, all distances
    would be as short as chance makes them.
    """
    ends = np.repeat(np.arange(len(left)), left)
    # No more ends than the blocks have inner edges for.
    free = np.bincount(frame.blocks[ends], minlength=len(inside))
    share = near * np.clip(2 * inside / np.maximum(free, 1), 0.0, 1.0)
    ends = ends[random.random(len(ends)) < share[frame.blocks[ends]]]
    alone = group < 0
    place = np.where(alone, -1 - np.arange(len(group)), group)
    _, place = np.unique(place, return_inverse=True)
    circle = random.permutation(int(place.max()) + 1)[place]
    # Groups of one block are numbered among themselves, in their random order.
    order = np.lexsort((circle, frame.blocks))
    steps = np.append(0, np.diff(circle[order]) != 0)
    rank = np.empty(len(group))
    rank[order] = np.cumsum(steps)
    key = rank[ends] + _NEAR_REACH * random.random(len(ends))
    ends = ends[np.lexsort((key, frame.blocks[ends]))]
    pairs: Wholes = ends[: len(ends) // 2 * 2].reshape(-1, 2)
    inner: Wholes = pairs[frame.blocks[pairs[:, 0]] == frame.blocks[pairs[:, 1]]]
    return inner


def balance(counts: Floats, ends: Floats) -> Floats:
    """Return the table scaled so that its rows have these numbers of edge ends.

    Entries on the diagonal count ends, that is, edges twice.
    """
    table = counts + np.diag(np.diag(counts)) + 1e-9 * np.outer(ends, ends) / max(ends.sum(), 1)
    for _ in range(_BALANCING):
        factor = np.sqrt(ends / np.maximum(table.sum(axis=1), 1e-12))
        table = table * factor[:, None] * factor[None, :]
    return np.asarray(table)


def _matched(left: Wholes, frame: FixedParts, wanted: Floats, random: Random) -> Wholes:
    """Return edges that use up the ends that are left, about as many between blocks as wanted."""
    kinds = len(wanted)
    ends = np.repeat(np.arange(len(left)), left)
    home = frame.blocks[ends]
    table = balance(wanted, np.bincount(home, minlength=kinds).astype(np.float64))
    pairs = np.triu(np.floor(table + random.random(table.shape)), 1).astype(np.int64)
    order = np.lexsort((random.random(len(ends)), home))
    ends = ends[order]
    starts = np.searchsorted(home[order], np.arange(kinds + 1))
    place, stop = starts[:-1].copy(), starts[1:]
    parts = [np.empty((0, 2), dtype=np.int64)]
    for one in range(kinds):
        for two in np.flatnonzero(pairs[one]):
            number = int(min(pairs[one, two], stop[one] - place[one], stop[two] - place[two]))
            a, b = place[one], place[two]
            parts.append(np.column_stack([ends[a : a + number], ends[b : b + number]]))
            place[one] += number
            place[two] += number
    odd = []
    for one in range(kinds):
        rest = ends[place[one] : stop[one]]
        half = len(rest) // 2
        parts.append(np.column_stack([rest[:half], rest[half : 2 * half]]))
        odd.append(rest[2 * half :])
    rest = random.permutation(np.concatenate(odd))
    half = len(rest) // 2
    parts.append(np.column_stack([rest[:half], rest[half : 2 * half]]))
    return np.concatenate(parts)


def make_simple(
    edges: Wholes, blocks: Wholes, random: Random, first: int = 0
) -> tuple[Wholes, int]:
    """Return the edges with loops and repeats swapped away; the few that cannot be are dropped.

    And how many of the ``first`` ones are left.
    """
    if not len(edges):
        return edges, 0
    edges = np.ascontiguousarray(edges)
    bad = np.zeros(len(edges), dtype=np.bool_)
    waiting = np.empty(len(edges), dtype=np.int64)
    _repair(edges, bad, waiting, blocks, empty_set(len(edges)), random)
    return edges[~bad], int((~bad[:first]).sum())


@compiled
def _repair(edges: Any, bad: Any, waiting: Any, blocks: Any, table: Any, random: Any) -> None:
    count, nodes = len(edges), len(blocks)
    number = 0
    for place in range(count):
        u, v = edges[place, 0], edges[place, 1]
        if u == v or not add(table, key_of(u, v, nodes)):
            bad[place] = True
            waiting[number] = place
            number += 1
    for turn in range(_REPAIRS):
        left = 0
        for rank in range(number):
            place = waiting[rank]
            u, v = edges[place, 0], edges[place, 1]
            for _ in range(_ATTEMPTS):
                other = draw_below(count, random)
                if bad[other]:
                    continue
                x, y = edges[other, 0], edges[other, 1]
                if random.random() < 0.5:
                    x, y = y, x
                # At first only swaps that keep the number of edges between blocks.
                if turn < _REPAIRS // 2 and blocks[x] != blocks[u] and blocks[y] != blocks[v]:
                    continue
                one, two = key_of(u, y, nodes), key_of(x, v, nodes)
                if one == two or not stays_simple(table, nodes, u, v, y, x):
                    continue
                # The edge to be mended is not in the set: only the other one goes.
                remove(table, key_of(x, y, nodes))
                add(table, one)
                add(table, two)
                edges[place, 1] = y
                edges[other, 0], edges[other, 1] = x, v
                bad[place] = False
                break
            if bad[place]:
                waiting[left] = place
                left += 1
        number = left
        if number == 0:
            break
