"""Node orders that make kernels fast, and graphs renumbered by them.

All orders put nodes of high degree first. Then the neighbours that come before a node are few
(at most the square root of twice the number of edges), and they sit close together in memory.
"""

from __future__ import annotations

import numpy as np

from tulle.core.arrays import Array
from tulle.core.compiled import compiled


def degree_rank(indptr: Array) -> tuple[Array, Array]:
    """Return (order, rank): nodes by descending degree, and the place of each node therein."""
    # No kernel: to compile one takes longer than to sort the degrees of a million nodes.
    order = np.argsort(-np.diff(indptr), kind="stable").astype(np.uint32)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order), dtype=np.uint32)
    return order, rank


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
