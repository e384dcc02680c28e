"""Node orders that make kernels fast, and graphs renumbered by them.

All orders put nodes of high degree first. Then the neighbours that come before a node are few
(at most the square root of twice the number of edges), and they sit close together in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.graphs.compiled import compiled

Array = npt.NDArray[Any]


@compiled
def degree_rank(indptr: Array) -> tuple[Array, Array]:
    """Return (order, rank): nodes by descending degree, and the place of each node therein."""
    count = len(indptr) - 1
    largest = 0
    for node in range(count):
        largest = max(largest, indptr[node + 1] - indptr[node])
    start = np.zeros(largest + 2, np.int64)
    for node in range(count):
        start[largest - (indptr[node + 1] - indptr[node]) + 1] += 1
    for value in range(largest + 1):
        start[value + 1] += start[value]
    order = np.empty(count, np.uint32)
    rank = np.empty(count, np.uint32)
    for node in range(count):
        value = largest - (indptr[node + 1] - indptr[node])
        place = start[value]
        start[value] += 1
        order[place] = node
        rank[node] = place
    return order, rank


@compiled
def orient(indptr: Array, indices: Array, order: Array, rank: Array) -> tuple[Array, Array]:
    """Return each edge once, under its later node: (offsets, sorted earlier neighbours).

    Nodes are numbered by ``rank``.
    """
    count = len(indptr) - 1
    offsets = np.zeros(count + 1, np.int64)
    for node in range(count):
        mine = rank[node]
        earlier = 0
        for place in range(indptr[node], indptr[node + 1]):
            earlier += rank[indices[place]] < mine
        offsets[mine + 1] = earlier
    for node in range(count):
        offsets[node + 1] += offsets[node]
    earlier_nodes = np.empty(offsets[count], np.uint32)
    for mine in range(count):
        fill = offsets[mine]
        node = order[mine]
        for place in range(indptr[node], indptr[node + 1]):
            other = rank[indices[place]]
            if other < mine:
                earlier_nodes[fill] = other
                fill += 1
    return offsets, earlier_nodes


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
