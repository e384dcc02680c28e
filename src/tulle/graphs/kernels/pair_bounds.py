"""Exact numbers on pairs of nodes that bound how much one edge can change a count.

Custodian side: every number here is private and enters a release only through a smooth bound.
"""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.compiled import compiled, in_chunks, inner
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import arc_supports
from tulle.graphs.kernels.ordering import degree_rank, renumber

# Numbers up to this fit one machine integer; larger ones are cut into limbs of so many bits.
_ONE_LIMB = 2**62
_LIMB_WIDTH = 32


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
    offsets, neighbours, split = renumber(indptr, indices, *degree_rank(indptr))
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
    offsets, neighbours, split = renumber(indptr, indices, *degree_rank(indptr))
    best = _star_front(offsets, neighbours, split)
    rows = []
    below = -1
    for upper in range(len(best) - 1, -1, -1):
        if best[upper] > below:
            below = int(best[upper])
            rows.append((upper, below))
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


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
    offsets, neighbours, split = renumber(indptr, indices, *degree_rank(indptr))
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


def wedge_work(offsets: Array) -> int:
    """Return the number of steps of a walk over all paths of two edges."""
    degree = np.diff(offsets)
    return int(np.dot(degree, degree))


def _limb_table(values: list[int], limbs: int) -> npt.NDArray[np.int64]:
    if limbs == 1:
        return np.array(values, dtype=np.int64).reshape(-1, 1)
    mask = (1 << _LIMB_WIDTH) - 1
    return np.array(
        [[value >> (_LIMB_WIDTH * place) & mask for place in range(limbs)] for value in values],
        dtype=np.int64,
    )


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
