"""Exact counts on a graph, and on pairs of its nodes. Custodian side: every number is private.

Each function works on the graph's CSR arrays with compiled code. Results are exact; where a count
can pass 2^63 it is summed in Python integers from a histogram.

Kernels number nodes by descending degree. Then the neighbours that come before a node are few (at
most the square root of twice the number of edges), and they sit close together in memory.
"""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.compiled import compiled, in_chunks, inner
from tulle.graphs.data import Graph

_BLOCK = 16


def degrees(graph: Graph) -> npt.NDArray[np.int64]:
    """Return the degree of each node.

    Example:
        >>> degrees(Graph.from_edges([(0, 1), (1, 2)])).tolist()
        [1, 2, 1]
    """
    return np.diff(graph.csr()[0])


def count_stars(graph: Graph, leaves: int) -> int:
    """Return the number of stars: sum over nodes of (degree choose ``leaves``).

    One leaf makes every edge count twice, once per end.

    Example:
        >>> count_stars(Graph.from_edges([(0, 1), (0, 2), (0, 3)]), 2)
        3
    """
    leaves = validate.whole(at_least=1, leaves=leaves)
    return choose_sum(degrees(graph), leaves)


def count_triangles(graph: Graph) -> int:
    """Return the number of triangles.

    Nodes are put in order of descending degree. For every node its earlier neighbours are marked;
    for each later neighbour u, the neighbours of u that come before the node are looked up. That
    looks at each pair of earlier neighbours once, at most m^1.5 pairs.

    Example:
        >>> count_triangles(Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)]))
        1
    """
    indptr, indices = graph.csr()
    order, rank = graph.by_degree()
    later_offsets, later = orient(indptr, indices, order, rank, False)
    spans = np.empty((len(later), 2), dtype=np.uint32 if len(later) < 2**32 else np.int64)
    offsets, earlier = spans_before(indptr, order, later_offsets, later, spans)
    parts = in_chunks(
        len(indices),
        lambda chunk, chunks: _count_triangles(
            offsets, earlier, later_offsets, spans, chunk, chunks
        ),
    )
    return int(sum(parts))


def triangles_per_node(graph: Graph) -> npt.NDArray[np.int64]:
    """Return the number of triangles through each node.

    Example:
        >>> triangles_per_node(Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)])).tolist()
        [1, 1, 1, 0]
    """
    indptr, indices = graph.csr()
    order, rank = graph.by_degree()
    offsets, neighbours, split = renumber(indptr, indices, order, rank)
    supports = arc_supports(offsets, neighbours, split)
    return triangles_from_supports(offsets, supports)[rank]


def edge_triangles(graph: Graph) -> npt.NDArray[np.int64]:
    """Return the number of triangles on each edge, in the order of :meth:`Graph.edges`.

    Example:
        >>> edge_triangles(Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)])).tolist()
        [1, 1, 1, 0]
    """
    indptr, indices = graph.csr()
    order, rank = graph.by_degree()
    offsets, neighbours, split = renumber(indptr, indices, order, rank)
    supports = arc_supports(offsets, neighbours, split)
    first = order[np.repeat(np.arange(graph.node_count), np.diff(offsets))].astype(np.int64)
    second = order[neighbours].astype(np.int64)
    upper = first < second
    keys = first[upper] * graph.node_count + second[upper]
    return supports[upper][np.argsort(keys)].astype(np.int64)


def count_k_triangles(graph: Graph, k: int) -> int:
    """Return the number of k-triangles: k triangles that share one edge.

    That is the sum over edges of (common neighbours choose k); k = 1 counts each triangle three
    times.

    Example:
        >>> count_k_triangles(Graph.from_edges([(0, 1), (0, 2), (1, 2), (0, 3), (1, 3)]), 2)
        1
    """
    k = validate.whole(at_least=1, k=k)
    indptr, indices = graph.csr()
    offsets, neighbours, split = renumber(indptr, indices, *graph.by_degree())
    supports = arc_supports(offsets, neighbours, split)
    # Every edge has two arcs.
    return choose_sum(supports, k) // 2


def choose_sum(values: Array, k: int) -> int:
    """Return the exact sum of (value choose k) over an array of whole numbers."""
    return sum(
        comb(value, k) * int(times)
        for value, times in enumerate(np.bincount(values).tolist())
        if times and value >= k
    )


def arc_supports(offsets: Array, neighbours: Array, split: Array) -> Array:
    """Return the number of common neighbours of both ends, for each arc of a renumbered graph."""
    supports = np.zeros(len(neighbours), dtype=np.int32)
    in_chunks(
        len(neighbours),
        lambda chunk, chunks: _later_supports(offsets, neighbours, split, supports, chunk, chunks),
    )
    _mirror(offsets, neighbours, split, supports)
    return supports


def triangles_from_supports(offsets: Array, supports: Array) -> npt.NDArray[np.int64]:
    """Return the number of triangles through each node of a renumbered graph."""
    sums = np.zeros(len(supports) + 1, dtype=np.int64)
    np.cumsum(supports, out=sums[1:])
    return (sums[offsets[1:]] - sums[offsets[:-1]]) // 2


@compiled
def _count_triangles(
    offsets: Array, earlier: Array, later_offsets: Array, spans: Array, chunk: int, chunks: int
) -> int:
    count = len(offsets) - 1
    marked = np.zeros(count, np.uint8)
    total = 0
    # Blocks of nodes, so that threads do not fight over cache lines.
    for block in range(chunk * _BLOCK, count, chunks * _BLOCK):
        for node in range(block, min(block + _BLOCK, count)):
            start, end = offsets[node], offsets[node + 1]
            if start == end or later_offsets[node] == later_offsets[node + 1]:
                continue
            for place in range(start, end):
                marked[earlier[place]] = 1
            for place in range(later_offsets[node], later_offsets[node + 1]):
                for step in range(np.int64(spans[place, 0]), np.int64(spans[place, 1])):
                    total += marked[earlier[step]]
            for place in range(start, end):
                marked[earlier[place]] = 0
    return total


@compiled
def _later_supports(
    offsets: Array, neighbours: Array, split: Array, supports: Array, chunk: int, chunks: int
) -> None:
    # Mark the neighbours of the end of higher degree, then walk those of the other end.
    count = len(offsets) - 1
    marked = np.zeros(count, np.uint8)
    for node in range(chunk, count, chunks):
        if split[node] == offsets[node + 1]:
            continue
        for place in range(offsets[node], offsets[node + 1]):
            marked[neighbours[place]] = 1
        for place in range(split[node], offsets[node + 1]):
            other = neighbours[place]
            common = 0
            for step in range(offsets[other], offsets[other + 1]):
                common += marked[neighbours[step]]
            supports[place] = common
        for place in range(offsets[node], offsets[node + 1]):
            marked[neighbours[place]] = 0


@compiled
def _mirror(offsets: Array, neighbours: Array, split: Array, supports: Array) -> None:
    # Later nodes come in ascending order in every list, so a cursor per node finds the twin arc.
    count = len(offsets) - 1
    cursor = split.copy()
    for node in range(count):
        for place in range(offsets[node], split[node]):
            other = neighbours[place]
            supports[place] = supports[cursor[other]]
            cursor[other] += 1


# --- pairs of nodes -----------------------------------------------------------------------------


def pair_front(graph: Graph) -> npt.NDArray[np.int64]:
    """Return, for each number of common neighbours, the most one-sided neighbours of any pair.

    Entry ``a`` is the largest x over all pairs i, j (adjacent or not) with exactly ``a`` common
    neighbours, where x counts the nodes other than i and j that are adjacent to exactly one of
    them; it is -1 when no pair has ``a`` common neighbours. The array ends at the largest number
    of common neighbours, so that number is ``len(front) - 1``. A graph with fewer than two nodes
    gives ``[-1]``.

    Takes on the order of the sum of squared degrees, and memory linear in the graph.

    Example:
        >>> pair_front(Graph.from_edges([(0, 1), (0, 2), (0, 3)])).tolist()
        [2, 0]
    """
    indptr, indices = graph.csr()
    offsets, neighbours, split = renumber(indptr, indices, *graph.by_degree())
    parts = in_chunks(
        wedge_work(offsets),
        lambda chunk, chunks: _pair_front(offsets, neighbours, split, chunk, chunks),
    )
    front: npt.NDArray[np.int64] = np.maximum.reduce(parts)
    filled = np.flatnonzero(front >= 0)
    return front[: filled[-1] + 1] if len(filled) else front[:1]


def star_front(graph: Graph) -> npt.NDArray[np.int64]:
    """Return the pairs of degrees that no other pair of nodes exceeds.

    A pair i, j has u_i = degree of i without the edge ij, if there is one, and u_j likewise,
    ordered so that u_i >= u_j. The rows are all (u_i, u_j) that are not below another in both,
    by descending u_i. A graph with fewer than two nodes gives no rows.

    Example:
        >>> star_front(Graph.from_edges([(0, 1), (0, 2), (3, 4)])).tolist()
        [[2, 1]]
    """
    indptr, indices = graph.csr()
    offsets, neighbours, split = renumber(indptr, indices, *graph.by_degree())
    best = _star_front(offsets, neighbours, split)
    rows = []
    below = -1
    for upper in range(len(best) - 1, -1, -1):
        if best[upper] > below:
            below = int(best[upper])
            rows.append((upper, below))
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def wedge_work(offsets: Array) -> int:
    """Return the number of steps of a walk over all paths of two edges."""
    degree = np.diff(offsets)
    return int(np.dot(degree, degree))


@inner
def count_common(
    offsets: Array, neighbours: Array, node: int, common: Array, touched: Array
) -> int:
    """Count common neighbours of ``node`` with every later node; return how many have any.

    ``common`` must be all zero; ``touched`` receives the nodes whose entry is not zero any more.
    """
    found = 0
    for place in range(offsets[node], offsets[node + 1]):
        middle = neighbours[place]
        for step in range(offsets[middle + 1] - 1, offsets[middle] - 1, -1):
            other = neighbours[step]
            if other <= node:
                break
            if common[other] == 0:
                touched[found] = other
                found += 1
            common[other] += 1
    return found


@compiled
def _pair_front(offsets: Array, neighbours: Array, split: Array, chunk: int, chunks: int) -> Array:
    count = len(offsets) - 1
    # Nodes come by descending degree, so the first one has the largest.
    largest = offsets[1] - offsets[0] if count else 0
    front = np.full(largest + 1, -1, np.int64)
    common = np.zeros(count, np.int32)
    touched = np.empty(count, np.uint32)
    joined = np.zeros(count, np.uint8)
    for node in range(chunk, count, chunks):
        degree = offsets[node + 1] - offsets[node]
        found = count_common(offsets, neighbours, node, common, touched)
        for place in range(split[node], offsets[node + 1]):
            joined[neighbours[place]] = 1
        for place in range(found):
            other = touched[place]
            shared = common[other]
            apart = degree + offsets[other + 1] - offsets[other] - 2 * (shared + joined[other])
            front[shared] = max(front[shared], apart)
        # Pairs without common neighbours: the first such node has the largest degree of them,
        # once among the neighbours and once among the rest.
        for place in range(split[node], offsets[node + 1]):
            other = neighbours[place]
            if common[other] == 0:
                apart = degree + offsets[other + 1] - offsets[other] - 2
                front[0] = max(front[0], apart)
                break
        for other in range(node + 1, count):
            apart = degree + offsets[other + 1] - offsets[other]
            if apart <= front[0]:
                break
            if common[other] == 0 and joined[other] == 0:
                front[0] = apart
                break
        for place in range(found):
            common[touched[place]] = 0
        for place in range(split[node], offsets[node + 1]):
            joined[neighbours[place]] = 0
    return front


@compiled
def _star_front(offsets: Array, neighbours: Array, split: Array) -> Array:
    count = len(offsets) - 1
    largest = offsets[1] - offsets[0] if count else 0
    best = np.full(largest + 1, -1, np.int64)
    for node in range(count):
        degree = offsets[node + 1] - offsets[node]
        # The later neighbours come by descending degree, so the first is the best of them.
        if split[node] < offsets[node + 1]:
            other = neighbours[split[node]]
            smaller = offsets[other + 1] - offsets[other] - 1
            best[degree - 1] = max(best[degree - 1], smaller)
        # The first later node that is not a neighbour: skip those that are.
        other_node = node + 1
        place = split[node]
        while place < offsets[node + 1] and neighbours[place] == other_node:
            place += 1
            other_node += 1
        if other_node < count:
            smaller = offsets[other_node + 1] - offsets[other_node]
            best[degree] = max(best[degree], smaller)
    return best


# --- node orders, and graphs renumbered by them ---------------------------------------------------


@compiled
def orient(
    indptr: Array, indices: Array, order: Array, rank: Array, earlier: bool
) -> tuple[Array, Array]:
    """Return each edge once, numbered by ``rank``: (offsets, neighbours).

    The edge stays with its later end, which then lists its earlier neighbours, or the other way
    round. Lists are not sorted.
    """
    count = len(indptr) - 1
    offsets = np.zeros(count + 1, np.int64)
    kept = np.empty(len(indices) // 2 + 1, np.uint32)
    fill = 0
    for mine in range(count):
        node = order[mine]
        for place in range(indptr[node], indptr[node + 1]):
            other = rank[indices[place]]
            # Writing always and stepping on only if it is kept avoids a branch nobody can predict.
            kept[fill] = other
            fill += (other < mine) == earlier
        offsets[mine + 1] = fill
    return offsets, kept[:fill]


@compiled
def spans_before(
    indptr: Array, order: Array, later_offsets: Array, later: Array, spans: Array
) -> tuple[Array, Array]:
    """Return (offsets, sorted earlier neighbours) and fill ``spans`` to go with ``later``.

    When ``later[place]`` is u in the list of v, then the earlier neighbours of u that come before
    v are ``earlier[spans[place, 0]:spans[place, 1]]``.
    """
    count = len(later_offsets) - 1
    offsets = np.zeros(count + 1, np.int64)
    for mine in range(count):
        degree = indptr[order[mine] + 1] - indptr[order[mine]]
        offsets[mine + 1] = offsets[mine] + degree - (later_offsets[mine + 1] - later_offsets[mine])
    earlier = np.empty(len(later), np.uint32)
    fill = offsets.copy()
    # Handing out node numbers in ascending order leaves every list sorted.
    for mine in range(count):
        for place in range(later_offsets[mine], later_offsets[mine + 1]):
            other = later[place]
            spans[place, 0] = offsets[other]
            spans[place, 1] = fill[other]
            earlier[fill[other]] = mine
            fill[other] += 1
    return offsets, earlier


@compiled
def renumber(
    indptr: Array, indices: Array, order: Array, rank: Array
) -> tuple[Array, Array, Array]:
    """Return the whole graph numbered by ``rank``: (offsets, sorted neighbours, split).

    The neighbours of ``u`` before it are ``neighbours[offsets[u]:split[u]]``, those after it
    ``neighbours[split[u]:offsets[u + 1]]``.
    """
    count = len(indptr) - 1
    offsets = np.zeros(count + 1, np.int64)
    for mine in range(count):
        node = order[mine]
        offsets[mine + 1] = offsets[mine] + indptr[node + 1] - indptr[node]
    neighbours = np.empty(offsets[count], np.uint32)
    fill = offsets[:count].copy()
    split = np.empty(count, np.int64)
    # Handing out node numbers in ascending order leaves every list sorted.
    for mine in range(count):
        node = order[mine]
        split[mine] = fill[mine]
        for place in range(indptr[node], indptr[node + 1]):
            other = rank[indices[place]]
            neighbours[fill[other]] = mine
            fill[other] += 1
    return offsets, neighbours, split
