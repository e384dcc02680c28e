"""Counting cliques, and how much one edge can change the count. Custodian side.

Cliques are listed down to the last two nodes, on rows of bits: the time grows with the number of
(k - 2)-cliques, and the largest count that can be reached in practice stays far below 2^63.
"""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.compiled import compiled, in_chunks, lowest_bit, population_count
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import (
    arc_supports,
    count_common,
    count_triangles,
    orient,
    pair_front,
    renumber,
    triangles_from_supports,
    wedge_work,
)

_SATURATED = 2**62
_PAIRS_AT_ONCE = 4_000_000


def count_cliques(graph: Graph, k: int) -> int:
    """Return the number of sets of ``k`` nodes that are all joined to each other.

    One node is a clique, two are an edge, three a triangle. For more, each clique is found once,
    at its last node in a degeneracy order, among that node's earlier neighbours.

    Example:
        >>> count_cliques(Graph.from_edges([(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]), 4)
        1
    """
    k = validate.whole(at_least=1, k=k)
    if k == 1:
        return graph.node_count
    if k == 2:
        return graph.edge_count
    if k == 3:
        return count_triangles(graph)
    indptr, indices = graph.csr()
    offsets, earlier = orient(indptr, indices, *degeneracy_rank(indptr, indices), True)
    if int(np.diff(offsets).max(initial=0)) < k - 1:
        return 0
    parts = in_chunks(
        len(indices) * 4, lambda chunk, chunks: _count_all(offsets, earlier, k, chunk, chunks)
    )
    return int(sum(parts))


def clique_local_sensitivity(graph: Graph, k: int) -> int:
    """Return the most that joining or parting one pair changes the number of k-cliques.

    Toggling the pair ij changes the count by the number of (k - 2)-cliques among the common
    neighbours of i and j; this is the largest of those over all pairs, adjacent or not. Pairs are
    visited by descending upper bound, (b choose k - 2) with b the number of common neighbours or
    less where the triangles at i or j do not allow as much (Kruskal and Katona), until the bound
    is no more than the best pair found. The result is exact.

    Example:
        >>> clique_local_sensitivity(Graph.from_edges([(0, 1), (0, 2), (1, 2), (0, 3), (1, 3)]), 4)
        1
    """
    k = validate.whole(at_least=1, k=k)
    if k == 1:
        return 0
    if k == 2:
        return int(graph.node_count >= 2)
    if k == 3:
        return len(pair_front(graph)) - 1
    indptr, indices = graph.csr()
    offsets, neighbours, split = renumber(indptr, indices, *graph.by_degree())
    supports = arc_supports(offsets, neighbours, split)
    limits = _clique_limits(triangles_from_supports(offsets, supports))
    return _largest_pair(offsets, neighbours, split, limits, k - 2)


def _largest_pair(offsets: Array, neighbours: Array, split: Array, limits: Array, size: int) -> int:
    """Return the largest number of cliques of ``size`` in any common neighbourhood."""
    if len(limits) == 0:
        return 0
    work = wedge_work(offsets)
    histograms = in_chunks(
        work, lambda chunk, chunks: _bound_histogram(offsets, neighbours, limits, chunk, chunks)
    )
    totals = np.sum(histograms, axis=0)
    bounds = np.array(
        [min(comb(bound, size), _SATURATED) for bound in range(len(totals))], dtype=np.int64
    )
    best = 0
    upper = len(totals)
    # Bands of pairs by descending bound, each small enough to be held.
    while upper > size and bounds[upper - 1] > best:
        lower = upper - 1
        held = int(totals[lower])
        while lower > size and held + totals[lower - 1] <= _PAIRS_AT_ONCE:
            lower -= 1
            held += int(totals[lower])
        if held:
            band = (lower, upper)
            pairs = np.concatenate(
                in_chunks(
                    work,
                    lambda chunk, chunks, band=band: _collect_pairs(  # type: ignore[misc]
                        offsets,
                        neighbours,
                        limits,
                        band[0],
                        band[1],
                        int(histograms[chunk][band[0] : band[1]].sum()),
                        chunk,
                        chunks,
                    ),
                    chunks=len(histograms),
                )
            )
            pairs = pairs[np.argsort(-pairs[:, 2], kind="stable")]
            start = best
            parts = in_chunks(
                work,
                lambda chunk, chunks, pairs=pairs, start=start: _best_pair(  # type: ignore[misc]
                    offsets, neighbours, split, pairs, bounds, size, start, chunk, chunks
                ),
            )
            best = max(int(part) for part in parts)
        upper = lower
    return best


def _clique_limits(triangles: Array) -> npt.NDArray[np.int64]:
    """Return per node the smallest b with (b choose 2) at least its number of triangles.

    Among the neighbours of a node with t triangles there are t edges, and t edges hold at most as
    many cliques of any size from two up as a clique on b nodes does.
    """
    root = np.sqrt(np.maximum(8.0 * triangles - 7.0, 0.0))
    limits = ((1.0 + root) / 2.0).astype(np.int64) + 1
    # A square root that was rounded down would make the bound too small: check it in integers.
    limits += limits * (limits - 1) // 2 < triangles
    return np.where(triangles > 0, limits, 0)


@compiled
def _count_within(
    start: Array, end: Array, earlier: Array, node: int, allowed: Array, local: Array,
    members: Array, rows: Array, stack: Array, size: int,
) -> int:  # fmt: skip
    """Count cliques of ``size`` whose last node is ``node`` and whose others are allowed.

    ``local`` must be all zero; ``members``, ``rows`` and ``stack`` are working space.
    """
    if size == 1:
        return 1
    found = 0
    for place in range(start[node], end[node]):
        other = earlier[place]
        if allowed[other]:
            members[found] = other
            found += 1
            local[other] = found
    if size == 2 or found < size - 1:
        for index in range(found):
            local[members[index]] = 0
        return found if size == 2 else 0
    words = (found + 63) // 64
    edges = 0
    for index in range(found):
        for word in range(words):
            rows[index, word] = 0
        other = members[index]
        for place in range(start[other], end[other]):
            twin = local[earlier[place]]
            if twin > 0:
                bit = np.uint64(twin - 1)
                rows[index, (twin - 1) // 64] |= np.uint64(1) << (bit & np.uint64(63))
                edges += 1
    for index in range(found):
        local[members[index]] = 0
    if size == 3:
        return edges
    return _count_on_rows(rows, found, words, stack, size - 1)


@compiled
def _count_on_rows(rows: Array, found: int, words: int, stack: Array, size: int) -> int:
    """Count cliques of ``size`` >= 3 on rows of bits that hold each edge once, without cycles."""
    total = 0
    # stack[depth, 0] holds the candidates at that depth, stack[depth, 1] those still to visit.
    for word in range(words):
        stack[0, 0, word] = np.uint64(0xFFFFFFFFFFFFFFFF)
    if found % 64:
        stack[0, 0, words - 1] = (np.uint64(1) << np.uint64(found % 64)) - np.uint64(1)
    for word in range(words):
        stack[0, 1, word] = stack[0, 0, word]
    depth = 0
    while depth >= 0:
        index = -1
        for word in range(words):
            bits = stack[depth, 1, word]
            if bits != np.uint64(0):
                index = word * 64 + int(lowest_bit(bits))
                stack[depth, 1, word] = bits & (bits - np.uint64(1))
                break
        if index < 0:
            depth -= 1
            continue
        if size - depth == 2:
            for word in range(words):
                total += int(population_count(stack[depth, 0, word] & rows[index, word]))
            continue
        depth += 1
        left = 0
        for word in range(words):
            bits = stack[depth - 1, 0, word] & rows[index, word]
            stack[depth, 0, word] = bits
            stack[depth, 1, word] = bits
            left += int(population_count(bits))
        if left < size - depth:
            depth -= 1
    return total


@compiled
def _most_earlier(start: Array, end: Array) -> int:
    most = 1
    for node in range(len(start)):
        most = max(most, end[node] - start[node])
    return most


@compiled
def _count_all(offsets: Array, earlier: Array, size: int, chunk: int, chunks: int) -> int:
    count = len(offsets) - 1
    most = _most_earlier(offsets[:-1], offsets[1:])
    words = (most + 63) // 64
    allowed = np.ones(count, np.uint8)
    local = np.zeros(count, np.int32)
    members = np.empty(most, np.uint32)
    rows = np.empty((most, words), np.uint64)
    stack = np.empty((size, 2, words), np.uint64)
    total = 0
    for node in range(chunk, count, chunks):
        total += _count_within(
            offsets[:-1], offsets[1:], earlier, node, allowed, local, members, rows, stack, size
        )
    return total


@compiled
def _bound_histogram(
    offsets: Array, neighbours: Array, limits: Array, chunk: int, chunks: int
) -> Array:
    count = len(offsets) - 1
    histogram = np.zeros(offsets[1] - offsets[0] + 1, np.int64)
    common = np.zeros(count, np.int32)
    touched = np.empty(count, np.uint32)
    for node in range(chunk, count, chunks):
        found = count_common(offsets, neighbours, node, common, touched)
        for place in range(found):
            other = touched[place]
            histogram[min(common[other], limits[node], limits[other])] += 1
            common[other] = 0
    return histogram


@compiled
def _collect_pairs(
    offsets: Array,
    neighbours: Array,
    limits: Array,
    lower: int,
    upper: int,
    held: int,
    chunk: int,
    chunks: int,
) -> Array:
    count = len(offsets) - 1
    pairs = np.empty((held, 3), np.int32)
    common = np.zeros(count, np.int32)
    touched = np.empty(count, np.uint32)
    filled = 0
    for node in range(chunk, count, chunks):
        if limits[node] < lower:
            continue
        found = count_common(offsets, neighbours, node, common, touched)
        for place in range(found):
            other = touched[place]
            bound = min(common[other], limits[node], limits[other])
            common[other] = 0
            if lower <= bound < upper:
                pairs[filled, 0], pairs[filled, 1], pairs[filled, 2] = node, other, bound
                filled += 1
    return pairs


@compiled
def _best_pair(
    offsets: Array,
    neighbours: Array,
    split: Array,
    pairs: Array,
    bounds: Array,
    size: int,
    best: int,
    chunk: int,
    chunks: int,
) -> int:
    count = len(offsets) - 1
    most = _most_earlier(offsets[:-1], split)
    words = (most + 63) // 64
    allowed = np.zeros(count, np.uint8)
    local = np.zeros(count, np.int32)
    members = np.empty(most, np.uint32)
    rows = np.empty((most, words), np.uint64)
    stack = np.empty((size + 1, 2, words), np.uint64)
    shared = np.empty(offsets[1] - offsets[0] + 1, np.uint32)
    for pair in range(chunk, len(pairs), chunks):
        if bounds[pairs[pair, 2]] <= best:
            break
        first, second = pairs[pair, 0], pairs[pair, 1]
        limit = np.int64(pairs[pair, 2])
        here, there = offsets[first], offsets[second]
        found = 0
        while here < offsets[first + 1] and there < offsets[second + 1]:
            if neighbours[here] < neighbours[there]:
                here += 1
            elif neighbours[here] > neighbours[there]:
                there += 1
            else:
                shared[found] = neighbours[here]
                allowed[neighbours[here]] = 1
                found += 1
                here += 1
                there += 1
        total = 0
        # Edges are cheap to count, and they bound what larger cliques there can be.
        for step in (2, size):
            total = 0
            for place in range(found):
                total += _count_within(
                    offsets[:-1], split, neighbours, shared[place], allowed, local, members, rows,
                    stack, step,
                )  # fmt: skip
            if step < size:
                while limit > 0 and (limit - 1) * (limit - 2) // 2 >= total:
                    limit -= 1
                if bounds[limit] <= best:
                    total = 0
                    break
            else:
                break
        best = max(best, total)
        for place in range(found):
            allowed[shared[place]] = 0
    return best


@compiled
def degeneracy_rank(indptr: Array, indices: Array) -> tuple[Array, Array]:
    """Return (order, rank) such that each node has at most ``degeneracy`` earlier neighbours.

    Nodes are peeled off by smallest remaining degree; the order is the reverse of the peeling
    (Batagelj and Zaversnik, 2003).
    """
    count = len(indptr) - 1
    degree = np.empty(count, np.int64)
    largest = 0
    for node in range(count):
        degree[node] = indptr[node + 1] - indptr[node]
        largest = max(largest, degree[node])
    start = np.zeros(largest + 2, np.int64)
    for node in range(count):
        start[degree[node] + 1] += 1
    for value in range(largest + 1):
        start[value + 1] += start[value]
    peeled = np.empty(count, np.int64)
    place_of = np.empty(count, np.int64)
    fill = start.copy()
    for node in range(count):
        place_of[node] = fill[degree[node]]
        peeled[place_of[node]] = node
        fill[degree[node]] += 1
    for place in range(count):
        node = peeled[place]
        for position in range(indptr[node], indptr[node + 1]):
            other = indices[position]
            if degree[other] > degree[node]:
                # Swap the neighbour to the front of its bucket, then move the bucket's border.
                front = start[degree[other]]
                swapped = peeled[front]
                peeled[front], peeled[place_of[other]] = other, swapped
                place_of[swapped], place_of[other] = place_of[other], front
                start[degree[other]] += 1
                degree[other] -= 1
    order = np.empty(count, np.uint32)
    rank = np.empty(count, np.uint32)
    for place in range(count):
        node = peeled[count - 1 - place]
        order[place] = node
        rank[node] = place
    return order, rank
