"""Communities by Louvain's method: nodes move where modularity gains most, level by level."""

from __future__ import annotations

from typing import Any

import numpy as np

from tulle.core.arrays import Array, Wholes
from tulle.core.compiled import compiled
from tulle.graphs.data import Graph
from tulle.noise import SeededSource, post_processing
from tulle.noise.post_processing import Random


def louvain(graph: Graph, *, seed: int = 1) -> Wholes:
    """Return the community of each node, numbered from 0 in order of first appearance.

    Nodes are visited in a random order, the same one for the same seed. All gains are compared
    in whole numbers, so no move is made for a rounding error.

    Example:
        >>> two = Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)])
        >>> louvain(two).tolist()
        [0, 0, 0, 1, 1, 1]

    Reference:
        Blondel, Guillaume, Lambiotte & Lefebvre, Fast unfolding of communities, 2008.
    """
    indptr, neighbours = graph.csr()
    indices = neighbours.astype(np.int64)
    weights = np.ones(len(indices), dtype=np.int64)
    strength = np.diff(indptr)
    labels = np.arange(graph.node_count, dtype=np.int64)
    random = post_processing(SeededSource(seed))
    while True:
        found = _one_level(indptr, indices, weights, strength, random)
        groups = int(found.max(initial=-1)) + 1
        labels = found[labels]
        if groups == len(found):
            return _in_order(labels)
        indptr, indices, weights = _gather(indptr, indices, weights, found, groups)
        strength = np.bincount(found, weights=strength, minlength=groups).astype(np.int64)


def modularity(graph: Graph, labels: Wholes) -> float:
    """Return the modularity of a partition; 0 for a graph without edges.

    Example:
        >>> two = Graph.from_edges([(0, 1), (2, 3)], nodes=4)
        >>> modularity(two, np.array([0, 0, 1, 1]))
        0.5
    """
    first, second = graph.edges().T
    if not len(first):
        return 0.0
    degrees = np.diff(graph.csr()[0])
    inside = float(np.count_nonzero(labels[first] == labels[second])) / len(first)
    volumes = np.bincount(labels, weights=degrees) / (2 * len(first))
    return inside - float(volumes @ volumes)


def _one_level(
    indptr: Array, indices: Array, weights: Array, strength: Array, random: Random
) -> Wholes:
    order = random.permutation(len(indptr) - 1)
    return _in_order(_move(indptr, indices, weights, strength, order))


def _in_order(labels: Array) -> Wholes:
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse.reshape(-1)]


def _gather(
    indptr: Array, indices: Array, weights: Array, labels: Wholes, groups: int
) -> tuple[Array, Array, Array]:
    """Return the graph of communities; arcs inside one become a loop."""
    rows = np.repeat(labels, np.diff(indptr))
    keys, inverse = np.unique(rows * groups + labels[indices], return_inverse=True)
    totals = np.bincount(inverse.reshape(-1), weights=weights, minlength=len(keys))
    first, second = np.divmod(keys, max(groups, 1))
    offsets = np.searchsorted(first, np.arange(groups + 1))
    return offsets.astype(np.int64), second, totals.astype(np.int64)


@compiled
def _move(indptr: Any, indices: Any, weights: Any, strength: Any, order: Any) -> Any:
    """Move nodes, one after the other, to the neighbouring community with the largest gain.

    The gain of community c is weight·total - volume·strength, all whole numbers. Nodes wait in a
    queue; a move wakes the neighbours that are elsewhere.
    """
    nodes = len(order)
    label = np.arange(nodes)
    volume = strength.copy()
    total = strength.sum()
    towards = np.zeros(nodes, dtype=np.int64)
    touched = np.empty(nodes, dtype=np.int64)
    queue = order.copy()
    waiting = np.ones(nodes, dtype=np.bool_)
    head, size = 0, nodes
    while size:
        node = queue[head]
        head = (head + 1) % nodes
        size -= 1
        waiting[node] = False
        home = label[node]
        seen = 0
        for arc in range(indptr[node], indptr[node + 1]):
            other = indices[arc]
            if other == node:
                continue
            place = label[other]
            if towards[place] == 0:
                touched[seen] = place
                seen += 1
            towards[place] += weights[arc]
        volume[home] -= strength[node]
        best = home
        gain = towards[home] * total - volume[home] * strength[node]
        for which in range(seen):
            place = touched[which]
            offered = towards[place] * total - volume[place] * strength[node]
            if offered > gain:
                best, gain = place, offered
        volume[best] += strength[node]
        for which in range(seen):
            towards[touched[which]] = 0
        if best != home:
            label[node] = best
            for arc in range(indptr[node], indptr[node + 1]):
                other = indices[arc]
                if label[other] != best and not waiting[other]:
                    waiting[other] = True
                    queue[(head + size) % nodes] = other
                    size += 1
    return label
