"""What the model auto counts in a graph, each with a small bound on what one edge can move.

All of this sees records: custodian side. Noise is added in :mod:`auto`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tulle.core.arrays import Truths, Wholes
from tulle.core.compiled import compiled
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees

CLOSURE_LIMIT = 2
"""How often one pair of nodes may count as the pick of others; see :func:`closed_picks`."""


def order_counts(graph: Graph, ranges: int) -> Wholes:
    """Return how many edges join each two ranges of the public order of nodes, upper half.

    The nodes 0 ... n - 1 are cut into ``ranges`` runs of nearly equal length. An edge lies in one
    cell: one edge moves the vector by 1 in L1.

    Example:
        >>> order_counts(Graph.from_edges([(0, 1), (1, 2)], nodes=4), 2).tolist()
        [1, 1, 0]
    """
    return pair_counts(graph, range_of(graph.node_count, ranges), ranges)


def range_of(nodes: int, ranges: int) -> Wholes:
    """Return the range of each node."""
    return np.arange(nodes, dtype=np.int64) * ranges // max(nodes, 1)


def pair_counts(graph: Graph, labels: Wholes, kinds: int) -> Wholes:
    """Return how many edges join each two kinds of node, cells (r, s) with r <= s in a row.

    One edge moves the vector by 1 in L1, when the labels are public.

    Example:
        >>> pair_counts(Graph.from_edges([(0, 1), (1, 2)]), np.array([0, 1, 0]), 2).tolist()
        [0, 2, 0]
    """
    first, second = labels[graph.edges()].reshape(-1, 2).T
    low, high = np.minimum(first, second), np.maximum(first, second)
    square = np.bincount(low * kinds + high, minlength=kinds * kinds)
    return square.reshape(kinds, kinds)[np.triu_indices(kinds)].astype(np.int64)


def member_counts(graph: Graph, labels: Wholes, kinds: int) -> Wholes:
    """Return, for each node, how many of its neighbours are of each kind, row after row.

    An edge is seen from both its ends: one edge moves the table by 2 in L1.

    Example:
        >>> member_counts(Graph.from_edges([(0, 1), (1, 2)]), np.array([0, 1, 0]), 2).tolist()
        [0, 1, 2, 0, 0, 1]
    """
    offsets, neighbours = graph.csr()
    node = np.repeat(np.arange(graph.node_count), np.diff(offsets))
    cells = node * kinds + labels[neighbours]
    return np.bincount(cells, minlength=graph.node_count * kinds).astype(np.int64)


def side_counts(graph: Graph, labels: Wholes, kinds: int, rows: Truths, columns: Truths) -> Wholes:
    """Return, for each node of ``rows``, its neighbours of each kind among ``columns``.

    An edge is seen from its ends in ``rows`` whose other end is in ``columns``: one edge moves the
    table by 1 in L1 when no node is in both, and by 2 when both are the same.

    Example:
        >>> path, sides = Graph.from_edges([(0, 1), (1, 2)]), np.array([True, False, True])
        >>> side_counts(path, np.array([0, 0, 1]), 2, ~sides, sides).tolist()
        [[1, 1]]
    """
    offsets, neighbours = graph.csr()
    node = np.repeat(np.arange(graph.node_count), np.diff(offsets))
    counted = rows[node] & columns[neighbours]
    place = np.cumsum(rows) - 1
    cells = place[node[counted]] * kinds + labels[neighbours[counted]]
    height = int(rows.sum())
    table: Wholes = np.bincount(cells, minlength=height * kinds).astype(np.int64)
    return table.reshape(height, kinds)


def large_degrees(graph: Graph, least: int) -> int:
    """Return how many nodes have at least so many neighbours.

    An edge moves the degrees of two nodes: one edge moves the number by at most 2.

    Example:
        >>> large_degrees(Graph.from_edges([(0, 1), (1, 2)]), 2)
        1
    """
    return int((degrees(graph) >= least).sum())


def closed_picks(graph: Graph, limit: int = CLOSURE_LIMIT) -> int:
    """Return how many nodes have two picked neighbours that are joined: near the sum of C_i.

    Each node with two neighbours or more picks two of them, by a public order of its own (a fixed
    mixing of its number and theirs), so its pick is closed as often as its clustering
    coefficient says. One pair counts as the pick of at most ``limit`` nodes.

    An edge between u and v changes the picks of u and of v, each of which moves the count by at
    most one, and closes or opens the picks that are that very pair, ``limit`` at most: one edge
    moves the count by at most limit + 2. The sum of clustering coefficients itself moves by as
    much as n - 2.

    Example:
        >>> closed_picks(Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)]))
        2
    """
    offsets, neighbours = graph.csr()
    keys = _closed_pairs(offsets, neighbours)
    _, often = np.unique(keys, return_counts=True)
    return int(np.minimum(often, limit).sum())


@compiled
def _mix(node: Any, other: Any) -> Any:
    """Return a public number for an ordered pair, as good as random (splitmix64)."""
    word = np.uint64(node) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(other)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@compiled
def _closed_pairs(offsets: Any, neighbours: Any) -> Any:
    """Return the number u·n + v of each node's pick u < v, for the picks that are joined."""
    count = len(offsets) - 1
    keys = np.empty(count, np.int64)
    made = 0
    for node in range(count):
        if offsets[node + 1] - offsets[node] < 2:
            continue
        one = two = np.int64(-1)
        best = second = np.uint64(0xFFFFFFFFFFFFFFFF)
        for place in range(offsets[node], offsets[node + 1]):
            other = np.int64(neighbours[place])
            word = _mix(node, other)
            if one < 0 or word < best:
                two, second = one, best
                one, best = other, word
            elif two < 0 or word < second:
                two, second = other, word
        low, high = min(one, two), max(one, two)
        start, end = offsets[low], offsets[low + 1]
        while start < end:
            middle = (start + end) // 2
            if neighbours[middle] < high:
                start = middle + 1
            else:
                end = middle
        if start < offsets[low + 1] and neighbours[start] == high:
            keys[made] = low * np.int64(count) + high
            made += 1
    return keys[:made]
