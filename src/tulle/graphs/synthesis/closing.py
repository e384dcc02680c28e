"""Turn a graph's number of triangles by swaps that keep every degree."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.graphs.compiled import compiled
from tulle.graphs.data import Graph
from tulle.graphs.kernels import count_triangles
from tulle.graphs.synthesis.edge_set import add, add_all, empty_set, holds, key_of, remove
from tulle.graphs.synthesis.steering import Mixing, State, keep_swap, weigh_swap
from tulle.noise.afterwards import Random

Wholes = npt.NDArray[np.int64]


_MIXED = 3
"""This part of the work is done with an eye on the mixing of degrees as well."""

_LOOSE = 0.3
"""An edge whose ends share more than this part of their neighbours stays."""

_WORTH = 1e4
"""What one in a thousand of all triangles costs, beside a cell that is off: a thousandth of it."""


def close_triangles(
    edges: Wholes,
    blocks: Wholes,
    wanted: int,
    work: int,
    random: Random,
    mixing: Mixing | None = None,
) -> Wholes:
    """Return the edges after swaps that bring about ``wanted`` more triangles (or fewer).

    A swap joins two nodes with a common neighbour and, in turn, two of their other neighbours;
    it keeps all degrees and the number of edges between blocks. With ``mixing`` a part of the
    work goes into swaps that mend it, or at least gain more triangles than they spoil of it. It
    stops when the triangles are there or after so much work, in looked-at neighbours.

    Example:
        >>> from tulle.noise import SeededSource
        >>> from tulle.noise.afterwards import afterwards
        >>> ring = np.array([(i, (i + 1) % 6) for i in range(6)])
        >>> made = close_triangles(
        ...     ring, np.zeros(6, dtype=np.int64), 2, 10_000, afterwards(SeededSource(1))
        ... )
        >>> np.bincount(made.ravel()).tolist()
        [2, 2, 2, 2, 2, 2]
    """
    if len(edges) < 4:
        return edges
    nodes = len(blocks)
    first = np.concatenate([edges[:, 0], edges[:, 1]])
    second = np.concatenate([edges[:, 1], edges[:, 0]])
    order = np.argsort(first, kind="stable")
    offsets = np.searchsorted(first[order], np.arange(nodes + 1))
    neighbours = second[order].copy()
    table = empty_set(len(edges))
    add_all(table, edges[:, 0].copy(), edges[:, 1].copy(), nodes)
    if mixing is not None and len(mixing.wanted) > 1:
        state = State.of(mixing, edges, np.diff(offsets))
        made = count_triangles(Graph.from_edges(edges, nodes=nodes)) + wanted
        worth = _WORTH / max(made, 1)
        wanted = _swap_to_both(
            offsets,
            neighbours,
            blocks,
            table,
            wanted,
            work // _MIXED,
            state,
            state.cost(),
            worth,
            random,
        )
    _swap_to_close(offsets, neighbours, blocks, table, wanted, work, random)
    source = np.repeat(np.arange(nodes), np.diff(offsets))
    upper = source < neighbours
    return np.column_stack([source[upper], neighbours[upper]])


@compiled
def _common(offsets: Any, neighbours: Any, marks: Any, stamp: Any, u: Any, v: Any) -> Any:
    """Return how many neighbours u and v share; a free place holds -1."""
    for place in range(offsets[u], offsets[u + 1]):
        if neighbours[place] >= 0:
            marks[neighbours[place]] = stamp
    found = 0
    for place in range(offsets[v], offsets[v + 1]):
        if neighbours[place] >= 0 and marks[neighbours[place]] == stamp:
            found += 1
    return found


@compiled
def _embedded(offsets: Any, neighbours: Any, marks: Any, stamp: Any, u: Any, v: Any) -> Any:
    """Return the share of the neighbours of u or v, of whom has fewer, that both share."""
    fewer = min(offsets[u + 1] - offsets[u], offsets[v + 1] - offsets[v])
    return _common(offsets, neighbours, marks, stamp, u, v) / fewer


@compiled
def _place_of(offsets: Any, neighbours: Any, u: Any, v: Any) -> Any:
    for place in range(offsets[u], offsets[u + 1]):
        if neighbours[place] == v:
            return place
    return -1


@compiled
def _swapped(
    offsets: Any,
    neighbours: Any,
    marks: Any,
    stamp: Any,
    a: Any,
    c: Any,
    x: Any,
    y: Any,
    ax: Any,
    xa: Any,
    cy: Any,
    yc: Any,
) -> Any:
    """Return how many triangles (a, x), (c, y) becoming (a, c), (x, y) brings.

    The places of a and c hold the new ends after it, those of x and y are free.
    """
    change = -_common(offsets, neighbours, marks, stamp, a, x)
    neighbours[ax], neighbours[xa] = -1, -1
    change -= _common(offsets, neighbours, marks, stamp + 1, c, y)
    neighbours[cy], neighbours[yc] = -1, -1
    change += _common(offsets, neighbours, marks, stamp + 2, a, c)
    neighbours[ax], neighbours[cy] = c, a
    change += _common(offsets, neighbours, marks, stamp + 3, x, y)
    return change


@compiled
def _swap_to_both(
    offsets: Any,
    neighbours: Any,
    blocks: Any,
    table: Any,
    wanted: Any,
    work: Any,
    state: Any,
    cost: Any,
    worth: Any,
    random: Any,
) -> Any:
    """Swap while triangles or mixing gain more than the other loses; return what is missing."""
    nodes = len(offsets) - 1
    marks = np.full(nodes, -1, np.int64)
    stamp = 0
    missing = wanted
    done = 0
    enough = 0.02 * len(state.apart) * (len(state.apart) + 1)
    while done < work and (missing != 0 or cost > enough):
        done += 60
        a = neighbours[random.integers(0, len(neighbours))]
        if missing > 0 and random.random() < 0.5:
            b = neighbours[random.integers(offsets[a], offsets[a + 1])]
            c = neighbours[random.integers(offsets[b], offsets[b + 1])]
        else:
            c = neighbours[random.integers(0, len(neighbours))]
        if c == a or holds(table, key_of(a, c, nodes)):
            continue
        ax = random.integers(offsets[a], offsets[a + 1])
        cy = random.integers(offsets[c], offsets[c + 1])
        x, y = neighbours[ax], neighbours[cy]
        if x in (c, y) or y == a or (blocks[x] != blocks[c] and blocks[a] != blocks[y]):
            continue
        if holds(table, key_of(x, y, nodes)):
            continue
        strain, number = weigh_swap(state, a, y, c, x)
        # At best the new edges close a triangle with every neighbour.
        most = min(offsets[a + 1] - offsets[a], offsets[c + 1] - offsets[c]) + min(
            offsets[x + 1] - offsets[x], offsets[y + 1] - offsets[y]
        )
        if strain >= worth * min(most, abs(missing)):
            continue
        for node in (a, c, x, y):
            done += 2 * (offsets[node + 1] - offsets[node])
        # Edges that hold a circle together stay.
        stamp += 2
        if _embedded(offsets, neighbours, marks, stamp, a, x) > _LOOSE:
            continue
        if _embedded(offsets, neighbours, marks, stamp + 1, c, y) > _LOOSE:
            continue
        stamp += 2
        xa = _place_of(offsets, neighbours, x, a)
        yc = _place_of(offsets, neighbours, y, c)
        change = _swapped(offsets, neighbours, marks, stamp, a, c, x, y, ax, xa, cy, yc)
        stamp += 4
        if strain + worth * (abs(missing - change) - abs(missing)) < 0:
            neighbours[xa], neighbours[yc] = y, x
            remove(table, key_of(a, x, nodes))
            remove(table, key_of(c, y, nodes))
            add(table, key_of(a, c, nodes))
            add(table, key_of(x, y, nodes))
            missing -= change
            keep_swap(state, number)
            cost += strain
        else:
            neighbours[ax], neighbours[xa] = x, a
            neighbours[cy], neighbours[yc] = y, c
    return missing


@compiled
def _swap_to_close(
    offsets: Any, neighbours: Any, blocks: Any, table: Any, wanted: Any, work: Any, random: Any
) -> None:
    nodes = len(offsets) - 1
    marks = np.full(nodes, -1, np.int64)
    stamp = 0
    missing = wanted
    done = 0
    while done < work and missing != 0:
        done += 8
        # A random end of a random edge: busy nodes come up more often.
        a = neighbours[random.integers(0, len(neighbours))]
        b = neighbours[random.integers(offsets[a], offsets[a + 1])]
        c = neighbours[random.integers(offsets[b], offsets[b + 1])]
        if c == a or holds(table, key_of(a, c, nodes)):
            continue
        ax = random.integers(offsets[a], offsets[a + 1])
        cy = random.integers(offsets[c], offsets[c + 1])
        x, y = neighbours[ax], neighbours[cy]
        if x in (b, c, y) or y in (a, b) or (blocks[x] != blocks[c] and blocks[a] != blocks[y]):
            continue
        if holds(table, key_of(x, y, nodes)):
            continue
        xa = _place_of(offsets, neighbours, x, a)
        yc = _place_of(offsets, neighbours, y, c)
        change = _swapped(offsets, neighbours, marks, stamp, a, c, x, y, ax, xa, cy, yc)
        stamp += 4
        for node in (a, c, x, y):
            done += 2 * (offsets[node + 1] - offsets[node])
        if abs(missing - change) < abs(missing):
            neighbours[xa], neighbours[yc] = y, x
            remove(table, key_of(a, x, nodes))
            remove(table, key_of(c, y, nodes))
            add(table, key_of(a, c, nodes))
            add(table, key_of(x, y, nodes))
            missing -= change
        else:
            neighbours[ax], neighbours[xa] = x, a
            neighbours[cy], neighbours[yc] = y, c
