"""How many shortest paths pass through each node."""

from __future__ import annotations

from typing import Any

import numpy as np

from tulle.core.arrays import Floats
from tulle.core.compiled import compiled, in_chunks
from tulle.graphs.data import Graph
from tulle.metrics.distances import pick_sources

LARGEST_WORK = 500_000_000
"""Up to this many steps all nodes are sources; beyond, a sample of them."""

SAMPLED_SOURCES = 128


def betweenness(graph: Graph, *, sources: int | None = None, seed: int = 1) -> Floats:
    """Return each node's share of shortest paths between others, from 0 to 1.

    Left out, all nodes are sources as long as that takes some seconds, otherwise 128 of them,
    and the result is an estimate.

    Example:
        >>> betweenness(Graph.from_edges([(0, 1), (1, 2)], nodes=3)).tolist()
        [0.0, 1.0, 0.0]

    Reference:
        Brandes, A faster algorithm for betweenness centrality, 2001.
    """
    nodes = graph.node_count
    if nodes < 3:
        return np.zeros(nodes)
    indptr, indices = graph.csr()
    if sources is None and nodes * max(len(indices), 1) > LARGEST_WORK:
        sources = SAMPLED_SOURCES
    start = pick_sources(graph, sources, LARGEST_WORK, seed)
    parts = in_chunks(
        len(start) * max(len(indices), 1),
        lambda chunk, chunks: _brandes(indptr, indices, start, chunk, chunks),
    )
    scale = nodes / len(start) / ((nodes - 1) * (nodes - 2))
    total: Floats = np.sum(parts, axis=0) * scale
    return total


@compiled
def _brandes(indptr: Any, indices: Any, sources: Any, chunk: Any, chunks: Any) -> Any:
    nodes = len(indptr) - 1
    total = np.zeros(nodes)
    depth = np.full(nodes, -1, dtype=np.int64)
    paths = np.zeros(nodes)
    share = np.zeros(nodes)
    queue = np.empty(nodes, dtype=np.int64)
    for which in range(chunk, len(sources), chunks):
        source = sources[which]
        depth[source] = 0
        paths[source] = 1.0
        queue[0] = source
        head, tail = 0, 1
        while head < tail:
            node = queue[head]
            head += 1
            for arc in range(indptr[node], indptr[node + 1]):
                other = indices[arc]
                if depth[other] < 0:
                    depth[other] = depth[node] + 1
                    queue[tail] = other
                    tail += 1
                if depth[other] == depth[node] + 1:
                    paths[other] += paths[node]
        for place in range(tail - 1, -1, -1):
            node = queue[place]
            for arc in range(indptr[node], indptr[node + 1]):
                other = indices[arc]
                if depth[other] == depth[node] + 1:
                    share[node] += paths[node] / paths[other] * (1.0 + share[other])
            if node != source:
                total[node] += share[node]
        for place in range(tail):
            node = queue[place]
            depth[node] = -1
            paths[node] = 0.0
            share[node] = 0.0
    return total
