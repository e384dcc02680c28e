"""Exact counts on a graph. Custodian side: every number here is private.

Each function works on the graph's CSR arrays with compiled code. Results are exact; where a count
can pass 2^63 it is summed in Python integers from a histogram.
"""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.compiled import compiled, in_chunks
from tulle.graphs.data import Graph
from tulle.graphs.kernels.ordering import degree_rank, orient, renumber, spans_before

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
    order, rank = degree_rank(indptr)
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
    order, rank = degree_rank(indptr)
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
    order, rank = degree_rank(indptr)
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
    offsets, neighbours, split = renumber(indptr, indices, *degree_rank(indptr))
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
