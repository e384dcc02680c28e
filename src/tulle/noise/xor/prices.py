"""The price of a line of coupled bits, where there are too many patterns to list them all.

One unit may change all bits of a line, to anything. With bits x before and y after, and c the bits
outside, the exponent b'Πb changes by

    D(x, y, c) = e(x) - e(y) + 2·sum_iq Π_iq·(x_i - y_i)·c_q,

where e is the exponent within the line, and the price is the largest D. Two ways to it:

*Listed.* Given x and y, the best c has a one where sum_i Π_iq·(x_i - y_i) is above zero. So the
price of a short line is found exactly by listing x and y alone, however many bits are outside.

*By a cut.* D is a sum of terms in single bits and in pairs of bits. Each bit z is given a second
one that stands for 1 - z, and each term is written half in the one and half in the other so that
no pair has a negative coefficient; where the second bits are what they stand for, nothing changes.
The largest value over all pairs, whether they are or not, is therefore no less than the price, and
since no coefficient is negative it is found by a minimum cut: this is the roof dual (Hammer,
Hansen & Simeone 1984; Boros & Hammer 2002), the same as the linear relaxation of D. The cut is
bounded from below by a flow, whose capacities are rounded down and which is checked in whole
numbers: an error of the solver could only make the price larger.
"""

from __future__ import annotations

import numpy as np

from tulle.core.arrays import Wholes

LISTED = 9
"""Lines of up to so many bits: all pairs of patterns are listed."""

_MOST_WORK = 2**28
"""At most so many sums are listed for one price."""

_LARGEST_FLOW = 2**30
"""Capacities add up to less, so that they fit in 32 bits."""


def listed_price(fields: Wholes, inner: Wholes, outer: Wholes) -> int | None:
    """Return the largest change of exponent within a line, or None where listing takes too long.

    ``fields`` are the diagonal entries of the line, ``inner`` its entries off the diagonal (both
    halves), ``outer`` those with the bits outside, a row for each bit of the line.

    Example:
        >>> listed_price(np.array([-3]), np.array([[0]]), np.array([[2, 2]]))
        5
    """
    length = len(fields)
    if length > LISTED or 4**length * max(outer.shape[1], 1) > _MOST_WORK:
        return None
    patterns = (np.arange(1 << length)[:, None] >> np.arange(length) & 1).astype(np.int64)
    within = patterns @ fields + ((patterns @ inner) * patterns).sum(axis=1)
    # Entries that are alike make columns alike.
    columns, counts = np.unique(outer, axis=1, return_counts=True)
    sums = patterns @ columns
    best = 0
    for place in range(len(patterns)):
        gained = np.maximum(sums - sums[place], 0) @ counts
        best = max(best, int((within - within[place] + 2 * gained).max()))
    return best


def cut_price(fields: Wholes, inner: Wholes, outer: Wholes) -> int:
    """Return a bound on the same, by a minimum cut.

    Example:
        >>> cut_price(np.array([-3]), np.array([[0]]), np.array([[2, 2]]))
        5
    """
    length, outside = outer.shape
    count = 2 * length + outside
    linear = np.concatenate([fields, -fields, np.zeros(outside, dtype=np.int64)])
    first, second = np.nonzero(np.triu(inner, 1))
    weight = 2 * inner[first, second]
    line, other = np.nonzero(outer)
    across = 2 * outer[line, other]
    left = np.concatenate([first, first + length, line, line + length])
    right = np.concatenate([second, second + length, other + 2 * length, other + 2 * length])
    return _roof(count, linear, left, right, np.concatenate([weight, -weight, across, -across]))


def reached_price(fields: Wholes, inner: Wholes, outer: Wholes) -> int:
    """Return a change of exponent that some patterns have: where a bound equals it, it is exact.

    All ones against all zeros and the other way round, then single bits changed while that gains.

    Example:
        >>> reached_price(np.array([-3]), np.array([[0]]), np.array([[2, 2]]))
        5
    """

    def change(bits: Wholes) -> int:
        before, after = bits
        gained = np.maximum((before - after) @ outer, 0).sum()
        within = [int(x @ fields + x @ inner @ x) for x in (before, after)]
        return within[0] - within[1] + 2 * int(gained)

    length = len(fields)
    best = 0
    for start in (0, 1):
        bits = np.zeros((2, length), dtype=np.int64)
        bits[start] = 1
        value, gains = change(bits), True
        while gains:
            gains = False
            for place in range(2 * length):
                bits.flat[place] ^= 1
                found = change(bits)
                if found > value:
                    value, gains = found, True
                else:
                    bits.flat[place] ^= 1
        best = max(best, value)
    return best


def _roof(count: int, linear: Wholes, left: Wholes, right: Wholes, weight: Wholes) -> int:
    """Return a bound on the largest sum of linear·z and weight·z_left·z_right over bits z.

    Bit z has the place z, the one that stands for 1 - z has the place z + count. Twice the sum is,
    where the second bits are what they stand for,

    * a·z + a·(1 - z'), for each linear coefficient a;
    * w·u·v + w·(1 - u')·(1 - v') for w > 0, and w·u·(1 - v') + w·(1 - u')·v for w < 0.

    Written out, no product of two bits has a negative coefficient.
    """
    constant = int(linear.sum())
    single = np.concatenate([linear, -linear])
    up, down = weight > 0, weight < 0
    constant += int(weight[up].sum())
    np.subtract.at(single, left[up] + count, weight[up])
    np.subtract.at(single, right[up] + count, weight[up])
    np.add.at(single, left[down], weight[down])
    np.add.at(single, right[down], weight[down])
    tails = np.concatenate([left[up], left[up] + count, left[down], right[down]])
    heads = np.concatenate([right[up], right[up] + count, right[down] + count, left[down] + count])
    value = np.concatenate([weight[up], weight[up], -weight[down], -weight[down]])
    # k·u·v = k·u - k·u·(1 - v): what is left is a cut, of u among the ones and v not.
    np.add.at(single, tails, value)
    source, sink = 2 * count, 2 * count + 1
    places = np.arange(2 * count)
    gains, losses = single > 0, single < 0
    constant += int(single[gains].sum())
    tails = np.concatenate([tails, np.full(gains.sum(), source), places[losses]])
    heads = np.concatenate([heads, places[gains], np.full(losses.sum(), sink)])
    value = np.concatenate([value, single[gains], -single[losses]])
    return (constant - _least_cut(2 * count + 2, tails, heads, value, source, sink)) // 2


def _least_cut(
    nodes: int, tails: Wholes, heads: Wholes, capacity: Wholes, source: int, sink: int
) -> int:
    """Return a bound from below on every cut between source and sink: a flow that is checked."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    if not len(capacity):
        return 0
    step = 1 + int(capacity.sum()) // _LARGEST_FLOW
    shape = (nodes, nodes)
    allowed = csr_array((capacity // step, (tails, heads)), shape=shape)
    allowed.sum_duplicates()
    flow = maximum_flow(allowed.astype(np.int32), source, sink).flow.astype(np.int64)
    # Flow one way counts against flow the other way, so a row adds up to what leaves the node.
    leaving = np.asarray(flow.sum(axis=1)).ravel()
    kept = np.delete(leaving, [source, sink])
    excess = (flow - allowed).tocoo()
    if kept.any() or (excess.size and excess.data.max() > 0) or leaving[source] + leaving[sink]:
        return 0
    # A flow that were not antisymmetric would be no flow.
    if (flow + flow.T).tocoo().data.any():
        return 0
    return step * max(int(leaving[source]), 0)
