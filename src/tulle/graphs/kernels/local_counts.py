"""Numbers around one node or one pair that bound what an edge does to a statistic.

Custodian side: every number here is private.
"""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt

from tulle.core import validate
from tulle.core.arrays import Array, Wholes
from tulle.core.compiled import compiled, in_chunks
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import arc_supports, pair_front, renumber, wedge_work

# Numbers up to this fit one machine integer; larger ones are cut into limbs of so many bits.
_ONE_LIMB = 2**62
_LIMB_WIDTH = 32

FINE = 2**32
"""Clustering coefficients are summed in whole multiples of one over this."""


def common_with(graph: Graph, node: int) -> Wholes:
    """Return how many neighbours each node shares with one node.

    Example:
        >>> common_with(Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)]), 0).tolist()
        [2, 1, 1, 1]
    """
    indptr, indices = graph.csr()
    near = indices[indptr[node] : indptr[node + 1]]
    reached = [indices[indptr[other] : indptr[other + 1]] for other in near]
    if not reached:
        return np.zeros(graph.node_count, dtype=np.int64)
    return np.bincount(np.concatenate(reached), minlength=graph.node_count).astype(np.int64)


def closing_weight(graph: Graph) -> int:
    """Return the most that joining or parting a pair moves all clustering coefficients together.

    In multiples of 1/FINE, rounded up. For a pair i, j with u and v other neighbours it is the sum
    over common neighbours w of 2 / (d_w·(d_w - 1)), plus 2/(u + 1) and 2/(v + 1); see
    ``statistics_profiles`` for why. At least 5/3, which pairs without common neighbours need.

    Example:
        >>> closing_weight(Graph.from_edges([(0, 1), (1, 2)])) / FINE
        3.0
    """
    indptr, indices = graph.csr()
    offsets, neighbours, split = renumber(indptr, indices, *graph.by_degree())
    degree = np.arange(int(np.diff(offsets).max(initial=0)) + 1, dtype=np.int64)
    own = -(-2 * FINE // np.maximum(degree * (degree - 1), 1))
    side = -(-2 * FINE // (np.maximum(degree, 1) + 1))
    parts = in_chunks(
        int(np.dot(np.diff(offsets), np.diff(offsets))),
        lambda chunk, chunks: _closing(offsets, neighbours, split, own, side, chunk, chunks),
    )
    return max(int(max(parts)), -(-5 * FINE // 3))


def k_triangle_local_sensitivity(graph: Graph, k: int) -> int:
    """Return the most that joining or parting one pair changes the number of k-triangles.

    Toggling the pair ij changes the count by (a choose k) for the edge itself, where a is the
    number of common neighbours of i and j, and by (a_iw choose k - 1) + (a_jw choose k - 1) for
    each common neighbour w, where a_iw counts common neighbours without the edge ij. All pairs
    are visited. The result is exact: numbers past 2^62 are carried in several 32-bit limbs.

    Example:
        >>> k_triangle_local_sensitivity(Graph.from_edges([(0, 1), (1, 2)], nodes=3), 1)
        3
    """
    k = validate.whole(at_least=1, k=k)
    indptr, indices = graph.csr()
    offsets, neighbours, split = renumber(indptr, indices, *graph.by_degree())
    supports = arc_supports(offsets, neighbours, split)
    largest_support = int(supports.max(initial=0))
    largest_common = len(pair_front(graph)) - 1
    bound = comb(largest_common, k) + 2 * largest_common * comb(largest_support, k - 1)
    # One limb of 62 bits, or as many of 32 bits as the bound needs: sums of limbs then fit int64.
    limbs = 1 if bound < _ONE_LIMB else bound.bit_length() // _LIMB_WIDTH + 1
    own = _limb_table([comb(a, k) for a in range(largest_common + 1)], limbs)
    apart = [comb(a, k - 1) for a in range(largest_support + 1)]
    # The edge ij itself makes j a common neighbour of i and w: take it out.
    joined = [comb(max(a - 1, 0), k - 1) for a in range(largest_support + 1)]
    side = np.stack([_limb_table(apart, limbs), _limb_table(joined, limbs)])
    parts = in_chunks(
        wedge_work(offsets),
        lambda chunk, chunks: _largest_change(
            offsets, neighbours, split, supports, own, side, _LIMB_WIDTH, chunk, chunks
        ),
    )
    return max(
        sum(int(limb) << (_LIMB_WIDTH * place) for place, limb in enumerate(part)) for part in parts
    )


def _limb_table(values: list[int], limbs: int) -> npt.NDArray[np.int64]:
    if limbs == 1:
        return np.array(values, dtype=np.int64).reshape(-1, 1)
    mask = (1 << _LIMB_WIDTH) - 1
    return np.array(
        [[value >> (_LIMB_WIDTH * place) & mask for place in range(limbs)] for value in values],
        dtype=np.int64,
    )


@compiled
def _closing(
    offsets: Array,
    neighbours: Array,
    split: Array,
    own: Array,
    side: Array,
    chunk: int,
    chunks: int,
) -> int:
    # As count_common, with each common neighbour's weight instead of one.
    count = len(offsets) - 1
    weight = np.zeros(count, np.int64)
    touched = np.empty(count, np.uint32)
    joined = np.zeros(count, np.uint8)
    best = 0
    for node in range(chunk, count, chunks):
        degree = offsets[node + 1] - offsets[node]
        for place in range(split[node], offsets[node + 1]):
            joined[neighbours[place]] = 1
        found = 0
        for place in range(offsets[node], offsets[node + 1]):
            middle = neighbours[place]
            value = own[offsets[middle + 1] - offsets[middle]]
            for step in range(offsets[middle + 1] - 1, offsets[middle] - 1, -1):
                other = neighbours[step]
                if other <= node:
                    break
                if weight[other] == 0:
                    touched[found] = other
                    found += 1
                weight[other] += value
        for place in range(found):
            other = touched[place]
            apart = np.int64(joined[other])
            ends = side[degree - apart] + side[offsets[other + 1] - offsets[other] - apart]
            best = max(best, weight[other] + ends)
            weight[other] = 0
        for place in range(split[node], offsets[node + 1]):
            joined[neighbours[place]] = 0
    return best


def chain_weight(graph: Graph) -> int:
    """Return the largest d_i·d_j + A_i + A_j over pairs, A_i the sum of d_x - 1 over neighbours.

    It bounds what joining or parting i and j does to the number of chains. Nodes of one degree
    matter only through the two of them with the largest A.

    Example:
        >>> chain_weight(Graph.from_edges([(0, 1), (1, 2)]))
        3
    """
    indptr, indices = graph.csr()
    degrees = np.diff(indptr).astype(np.int64)
    if graph.node_count < 2:
        return 0
    sums = np.concatenate([[0], np.cumsum(degrees[indices] - 1)])
    around = sums[indptr[1:]] - sums[indptr[:-1]]
    order = np.lexsort((-around, degrees))
    kept_degrees, kept_around = degrees[order], around[order]
    first = np.concatenate([[True], kept_degrees[1:] != kept_degrees[:-1]])
    second = np.concatenate([[False], first[:-1]]) & ~first
    kept = first | second
    d, a = kept_degrees[kept], kept_around[kept]
    best = 0
    for place in range(len(d) - 1):
        others = d[place] * d[place + 1 :] + a[place + 1 :]
        best = max(best, int(others.max()) + int(a[place]))
    return best


def count_chains(graph: Graph) -> int:
    """Return the sum over edges ij of (d_i - 1)·(d_j - 1): walks of three edges, never back."""
    first, second = graph.edges().T
    others = (np.diff(graph.csr()[0]) - 1).astype(np.int64)
    return int((others[first] * others[second]).sum())


@compiled
def _largest_change(
    offsets: Array,
    neighbours: Array,
    split: Array,
    supports: Array,
    own: Array,
    side: Array,
    width: int,
    chunk: int,
    chunks: int,
) -> Array:
    count = len(offsets) - 1
    limbs = own.shape[1]
    best = np.zeros(limbs, np.int64)
    value = np.zeros(limbs, np.int64)
    sums = np.zeros((count, limbs), np.int64)
    common = np.zeros(count, np.int32)
    touched = np.empty(count, np.uint32)
    joined = np.zeros(count, np.uint8)
    for node in range(chunk, count, chunks):
        for place in range(split[node], offsets[node + 1]):
            joined[neighbours[place]] = 1
        found = 0
        for place in range(offsets[node], offsets[node + 1]):
            middle = neighbours[place]
            near = supports[place]
            for step in range(offsets[middle + 1] - 1, offsets[middle] - 1, -1):
                other = neighbours[step]
                if other <= node:
                    break
                if common[other] == 0:
                    touched[found] = other
                    found += 1
                common[other] += 1
                far = supports[step]
                table = joined[other]
                for limb in range(limbs):
                    sums[other, limb] += side[table, near, limb] + side[table, far, limb]
        for place in range(found):
            other = touched[place]
            shared = common[other]
            carry = 0
            for limb in range(limbs):
                value[limb] = sums[other, limb] + own[shared, limb] + carry
                sums[other, limb] = 0
                if limbs > 1:
                    carry = value[limb] >> width
                    value[limb] -= carry << width
            common[other] = 0
            for limb in range(limbs - 1, -1, -1):
                if value[limb] != best[limb]:
                    if value[limb] > best[limb]:
                        best[:] = value
                    break
        for place in range(split[node], offsets[node + 1]):
            joined[neighbours[place]] = 0
    return best
