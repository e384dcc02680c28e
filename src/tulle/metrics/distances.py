"""Shortest paths: how far apart nodes are, by breadth-first search from many nodes at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tulle.core import validate
from tulle.core.arrays import Wholes
from tulle.core.compiled import compiled, in_chunks
from tulle.graphs.data import Graph
from tulle.noise import SeededSource, post_processing

LARGEST_WORK = 3_000_000_000
"""Up to this many steps all nodes are sources; beyond, a sample of them."""

SAMPLED_SOURCES = 2_048

MOST_SEARCHES = 16_384
"""From at most so many nodes of a component is the diameter searched."""

_WORD = 64


@dataclass(frozen=True)
class Distances:
    """How many ordered pairs are 1, 2, ... steps apart, and the largest distance of all.

    Pairs without a path are not counted. With fewer ``sources`` than nodes the counts are a
    sample. The diameter is the longest distance in any component; where ``diameter_known`` is
    false it is a lower bound.
    """

    counts: Wholes
    diameter: int
    sources: int
    diameter_known: bool = True

    @property
    def mean(self) -> float:
        """The mean distance of the pairs that have a path; 0 when none has."""
        total = int(self.counts.sum())
        steps = np.arange(1, len(self.counts) + 1)
        return float(self.counts @ steps / total) if total else 0.0


def measure_distances(graph: Graph, *, sources: int | None = None, seed: int = 1) -> Distances:
    """Return the distances of a graph; ``sources`` limits the work and makes it a sample.

    Left out, all nodes are sources as long as that takes some seconds at most, otherwise 2,048
    of them.

    Example:
        >>> path = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
        >>> found = measure_distances(path)
        >>> found.counts.tolist(), found.diameter
        ([4, 2], 2)
    """
    start = pick_sources(graph, sources, LARGEST_WORK * _WORD // 12, seed)
    counts = _count_by_distance(graph, start)
    found = len(counts)
    if len(start) == graph.node_count:
        return Distances(counts, found, len(start), True)
    diameter, exact = _diameter(graph, found)
    return Distances(counts, diameter, len(start), exact)


def _count_by_distance(graph: Graph, sources: Wholes) -> Wholes:
    """Return how many nodes are 1, 2, ... steps from a source, all sources together."""
    indptr, indices = graph.csr()
    parts = in_chunks(
        -(-len(sources) // _WORD) * max(len(indices), 1),
        lambda chunk, chunks: _many_searches(indptr, indices, sources, chunk, chunks),
    )
    counts = np.zeros(max(len(part) for part in parts), dtype=np.int64)
    for part in parts:
        counts[: len(part)] += part
    return counts[: int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 0]


def _diameter(graph: Graph, known: int) -> tuple[int, bool]:
    """Return the largest distance and whether that is certain; ``known`` is one that occurs.

    In each component, the nodes furthest from one with many neighbours are searched first: two
    nodes within i steps of it are at most 2i apart, so once a distance of 2i is known the rest
    need not be searched (Crescenzi et al., TCS 2013). A component where too many nodes are left
    gives a lower bound.
    """
    from scipy.sparse.csgraph import connected_components

    indptr, indices = graph.csr()
    _, component = connected_components(graph.to_scipy(), directed=False)
    best, exact = known, True
    sizes = np.bincount(component)
    depth = np.full(graph.node_count, -1, dtype=np.int64)
    queue = np.empty(graph.node_count, dtype=np.int64)
    degrees = np.diff(indptr)
    by_degree = np.argsort(-degrees, kind="stable")
    _, first = np.unique(component[by_degree], return_index=True)
    for which in np.argsort(-sizes, kind="stable"):
        # A component of s nodes has no path longer than s - 1.
        if sizes[which] - 1 <= best:
            break
        reached = int(search_from(indptr, indices, by_degree[first[which]], depth, queue))
        members = queue[:reached].copy()
        level = depth[members]
        budget = MOST_SEARCHES
        for steps in range(int(level.max()), 0, -1):
            if best >= 2 * steps:
                break
            outer = members[level == steps]
            if len(outer) > budget:
                exact = False
                outer = outer[:budget]
            budget -= len(outer)
            if len(outer):
                best = max(best, len(_count_by_distance(graph, outer)))
    return best, exact


def pick_sources(graph: Graph, wanted: int | None, most_work: int, seed: int) -> Wholes:
    """Return all nodes if that is little enough work, else a sample of them, sorted."""
    nodes = graph.node_count
    if wanted is None:
        fits = nodes * max(len(graph.csr()[1]), 1) <= most_work
        wanted = nodes if fits else SAMPLED_SOURCES
    wanted = validate.whole(sources=wanted, at_least=1 if nodes else 0)
    if wanted >= nodes:
        return np.arange(nodes, dtype=np.int64)
    random = post_processing(SeededSource(seed))
    return np.sort(random.choice(nodes, size=wanted, replace=False)).astype(np.int64)


@compiled
def _many_searches(indptr: Any, indices: Any, sources: Any, chunk: Any, chunks: Any) -> Any:
    """Search from 64 sources at a time, one bit each; count pairs by distance."""
    nodes = len(indptr) - 1
    counts = np.zeros(16, dtype=np.int64)
    seen = np.zeros(nodes, dtype=np.uint64)
    front = np.zeros(nodes, dtype=np.uint64)
    after = np.zeros(nodes, dtype=np.uint64)
    active = np.empty(nodes, dtype=np.int64)
    reached = np.empty(nodes, dtype=np.int64)
    batches = (len(sources) + 63) // 64
    for batch in range(chunk, batches, chunks):
        seen[:] = 0
        front[:] = 0
        busy = 0
        for place in range(64 * batch, min(64 * batch + 64, len(sources))):
            node = sources[place]
            bit = np.uint64(1) << np.uint64(place - 64 * batch)
            seen[node] |= bit
            front[node] |= bit
            active[busy] = node
            busy += 1
        step = 0
        while busy:
            found = 0
            for place in range(busy):
                node = active[place]
                bits = front[node]
                for arc in range(indptr[node], indptr[node + 1]):
                    other = indices[arc]
                    if after[other] == 0 and (bits & ~seen[other]) != 0:
                        reached[found] = other
                        found += 1
                        after[other] = bits & ~seen[other]
                    else:
                        after[other] |= bits & ~seen[other]
                front[node] = 0
            if step >= len(counts):
                longer = np.zeros(2 * len(counts), dtype=np.int64)
                longer[: len(counts)] = counts
                counts = longer
            for place in range(found):
                node = reached[place]
                bits = after[node]
                after[node] = 0
                seen[node] |= bits
                front[node] = bits
                active[place] = node
                bits = bits - ((bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
                bits = (bits & np.uint64(0x3333333333333333)) + (
                    (bits >> np.uint64(2)) & np.uint64(0x3333333333333333)
                )
                bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
                counts[step] += np.int64((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))
            busy = found
            step += 1
    return counts


@compiled
def search_from(indptr: Any, indices: Any, source: Any, depth: Any, queue: Any) -> Any:
    """Fill ``depth`` (-1 where unreached) and ``queue`` in order; return how many are reached.

    ``depth`` must hold -1 on the source's component before.
    """
    depth[source] = 0
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
    return tail
