"""The price of a line of coupled bits, where there are too many patterns to list them all.

One unit may change all bits of a line, to anything. With bits x before and y after, and c the bits
outside, the exponent b'Πb changes by

    D(x, y, c) = e(x) - e(y) + 2·sum_iq Π_iq·(x_i - y_i)·c_q,

where e is the exponent within the line, and the price is the largest D. Two ways to it:

*Place by place.* Given x and y, the best c has a one where sum_i Π_iq·(x_i - y_i) is above zero.
So D is a sum of terms, each in the bits x_i and y_i of a few places of the line: its own entries,
and for each bit outside the places that it is coupled with. One place after the other is maximised
over, together with all terms that touch it, which leaves a term in the places that it shared them
with. This is exact, and quick as long as no term comes to have more than nine places: for lines of
nine bits always, for longer ones where couplings reach few others, as on a grid. Where all places
of a line are alike, D follows from the numbers of ones in x and in y, and these are listed instead.

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

WIDEST = 9
"""Terms of up to so many places are listed in full: four states of each."""

_MOST_WORK = 2**28
"""At most so many numbers are listed for one price."""

_LARGEST_FLOW = 2**30
"""Capacities add up to less, so that they fit in 32 bits."""

_BEFORE, _AFTER = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
"""The bits x and y in each of the four states of a place."""

Term = tuple[tuple[int, ...], Wholes]
"""Places, in order, and a number for each of their states: an axis of four for each place."""


def exact_price(fields: Wholes, inner: Wholes, outer: Wholes) -> int | None:
    """Return the largest change of exponent within a line, or None where it takes too long.

    ``fields`` are the diagonal entries of the line, ``inner`` its entries off the diagonal (both
    halves), ``outer`` those with the bits outside, a row for each bit of the line.

    Example:
        >>> exact_price(np.array([-3]), np.array([[0]]), np.array([[2, 2]]))
        5
    """
    if _alike(fields, inner, outer):
        return _price_by_numbers(fields, inner, outer)
    left = _terms(fields, inner, outer)
    places = set(range(len(fields)))
    while left is not None and places:
        shared = {
            place: set().union(*(where for where, _ in left if place in where)) for place in places
        }
        place = min(places, key=lambda place: (len(shared[place]), place))
        if len(shared[place]) > WIDEST:
            return None
        where = tuple(sorted(shared[place]))
        total = np.zeros((4,) * len(where), dtype=np.int64)
        for term, table in left:
            if place in term:
                total += table.reshape([4 if one in term else 1 for one in where])
        rest = tuple(one for one in where if one != place)
        left = [term for term in left if place not in term[0]]
        left.append((rest, total.max(axis=where.index(place))))
        places.remove(place)
    return None if left is None else sum(int(table) for _, table in left)


def _alike(fields: Wholes, inner: Wholes, outer: Wholes) -> bool:
    """Tell whether all places of a line have the same entries."""
    apart = inner[~np.eye(len(fields), dtype=np.bool_)]
    flat = (fields == fields[0]).all() and (apart == apart[:1]).all()
    return bool(flat and (outer == outer[:1]).all())


def _price_by_numbers(fields: Wholes, inner: Wholes, outer: Wholes) -> int:
    """Return the price of a line whose places are all alike, from all numbers of ones."""
    ones = np.arange(len(fields) + 1)
    within = ones * fields[0] + ones * (ones - 1) * int(inner.max() or inner.min())
    more = np.subtract.outer(ones, ones)
    gained = np.where(more > 0, outer[0].clip(min=0).sum(), outer[0].clip(max=0).sum()) * more
    return int((np.subtract.outer(within, within) + 2 * gained).max())


def _terms(fields: Wholes, inner: Wholes, outer: Wholes) -> list[Term] | None:
    """Return all terms of D, or None where there is too much to list."""
    both = np.multiply.outer(_BEFORE, _BEFORE) - np.multiply.outer(_AFTER, _AFTER)
    found: list[Term] = [
        ((place,), field * (_BEFORE - _AFTER)) for place, field in enumerate(fields.tolist())
    ]
    for i, j in np.argwhere(np.triu(inner, 1)).tolist():
        found.append(((i, j), 2 * inner[i, j] * both))
    # Entries that are alike make columns alike.
    columns, counts = np.unique(outer.T, axis=0, return_counts=True)
    widths = np.count_nonzero(columns, axis=1)
    if widths.max(initial=0) > WIDEST or (4 ** widths.astype(np.int64)).sum() > _MOST_WORK:
        return None
    for column, count in zip(columns, counts.tolist(), strict=True):
        places = np.flatnonzero(column)
        total = np.zeros((4,) * len(places), dtype=np.int64)
        for axis, place in enumerate(places.tolist()):
            shape = [4 if one == axis else 1 for one in range(len(places))]
            total = total + (column[place] * (_BEFORE - _AFTER)).reshape(shape)
        found.append((tuple(places.tolist()), 2 * count * np.maximum(total, 0)))
    return found


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
