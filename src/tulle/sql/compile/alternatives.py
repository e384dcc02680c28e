"""Tuples of several alternatives, on arrays: normal forms, and equal tuples merged.

An alternative is a set of participants, written as a sorted row that is filled up with NOBODY. The
tuple numbered t has ``alternatives[starts[t]:starts[t + 1]]``: numbers of rows, increasing.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tulle.core.arrays import Floats, Truths, Wholes

NOBODY = np.iinfo(np.int64).max
"""Fills the places of a row that names fewer participants than there are columns."""


def least_alternatives(starts: Wholes, alternatives: Wholes, rows: Wholes, count: int) -> Truths:
    """Say which alternatives of each tuple do not need everyone whom another one needs.

    What is left is the normal form: alternatives of which none contains another.

    Example:
        >>> rows = np.array([[0, NOBODY], [0, 1], [2, 3]])
        >>> least_alternatives(np.array([0, 3]), np.array([0, 1, 2]), rows, 4).tolist()
        [True, False, True]
    """
    kept = np.ones(len(alternatives), dtype=np.bool_)
    sizes = (rows != NOBODY).sum(axis=1)
    if len(alternatives) and rows.shape[1] > 1:
        _strike(starts, alternatives, np.ascontiguousarray(rows), sizes, count, kept)
    return kept


@njit(cache=True)  # type: ignore[untyped-decorator]
def _strike(
    starts: Wholes, alternatives: Wholes, rows: Wholes, sizes: Wholes, count: int, kept: Truths
) -> None:
    single = np.full(count, -1, dtype=np.int64)
    for t in range(len(starts) - 1):
        low, high = starts[t], starts[t + 1]
        least = most = sizes[alternatives[low]]
        for place in range(low, high):
            size = sizes[alternatives[place]]
            least, most = min(least, size), max(most, size)
            if size == 1:
                single[rows[alternatives[place], 0]] = t
        if least == most:
            continue  # of equally large sets none contains another
        for place in range(low, high):
            row, size = rows[alternatives[place]], sizes[alternatives[place]]
            if size > 1:
                for member in row[:size]:
                    if single[member] == t:
                        kept[place] = False
                        break
            if not kept[place]:
                continue
            for other in range(low, high):
                smaller = sizes[alternatives[other]]
                if (
                    smaller < size
                    and smaller != 1
                    and _contains(row, rows[alternatives[other]], smaller)
                ):
                    kept[place] = False
                    break


@njit(cache=True)  # type: ignore[untyped-decorator]
def _contains(row: Wholes, part: Wholes, size: int) -> bool:
    place = 0
    for member in row:
        if place < size and part[place] == member:
            place += 1
    return place == size


def merge_equal(
    starts: Wholes, alternatives: Wholes, weights: Floats
) -> tuple[Wholes, Wholes, Floats]:
    """Add up tuples with the same alternatives and weights of the same sign.

    Equal tuples are found by a fingerprint and then compared way by way; two different ones with
    one fingerprint are kept apart, which costs a row and nothing else.

    Example:
        >>> starts, alternatives = np.array([0, 2, 4]), np.array([0, 1, 0, 1])
        >>> merge_equal(starts, alternatives, np.array([1.0, 2.0]))[2].tolist()
        [3.0]
    """
    prints = _fingerprints(starts, alternatives)
    # The weight is the last key to sort by: the order of addition is then the same every time.
    order = np.lexsort((weights, weights > 0, np.diff(starts), prints))
    fresh = _first_of_its_kind(starts, alternatives, weights, order, prints)
    heads = np.flatnonzero(fresh)
    if not len(heads):
        return starts, alternatives, weights
    sums = np.add.reduceat(weights[order], heads)
    chosen = order[heads]
    sizes = np.diff(starts)[chosen]
    ends = np.cumsum(sizes)
    within = np.arange(int(ends[-1])) - np.repeat(ends - sizes, sizes)
    taken = alternatives[np.repeat(starts[:-1][chosen], sizes) + within]
    return np.concatenate([[0], ends]).astype(np.int64), taken, sums


@njit(cache=True)  # type: ignore[untyped-decorator]
def _fingerprints(starts: Wholes, alternatives: Wholes) -> Wholes:
    found = np.zeros(len(starts) - 1, dtype=np.int64)
    for t in range(len(starts) - 1):
        mixed = np.uint64(0)
        for place in range(starts[t], starts[t + 1]):
            mixed = (mixed ^ np.uint64(alternatives[place] + 1)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
        found[t] = np.int64(mixed >> np.uint64(1))
    return found


@njit(cache=True)  # type: ignore[untyped-decorator]
def _first_of_its_kind(
    starts: Wholes, alternatives: Wholes, weights: Floats, order: Wholes, prints: Wholes
) -> Truths:
    fresh = np.ones(len(order), dtype=np.bool_)
    for place in range(1, len(order)):
        one, other = order[place - 1], order[place]
        size = starts[one + 1] - starts[one]
        if prints[one] != prints[other] or starts[other + 1] - starts[other] != size:
            continue
        if (weights[one] > 0) != (weights[other] > 0):
            continue
        same = True
        for step in range(size):
            same &= alternatives[starts[one] + step] == alternatives[starts[other] + step]
        fresh[place] = not same
    return fresh
