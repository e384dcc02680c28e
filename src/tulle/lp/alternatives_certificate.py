"""Bounds on both numbers of tuples with alternatives that hold in spite of rounding.

*From deletions* (X from above, D from above). Deletions are multiples of 2^-40 in [0, 1] and
deficits are cut at 1, so every sum over members, and what a way leaves of 1, is an exact float.
Raising g_p raises the deficit of every way with p by as much at least, so all that p bears falls at
that rate.

*From flows* (X from below). Levels of the alternatives of tuples are cut to their weight; what
flows into a group is spread over its alternatives as the vectors say, rounded upwards. Then every
alternative of a tuple shrinks, with all that flows on from it, by the worst overload of whom it
reaches. What is left is feasible in exact arithmetic.

*From multipliers* (D from below). The dual has a multiplier mu_p >= 0 for each load and c >= 0 for
each alternative of each burden. If the c of each burden (t, p) sum to at most q(t) mu_p, and each
is spread over some way that its alternative is on such that everyone gets at most 1 in all, then
the least deletion is at least sum c - tau sum mu. Spreading works as for flows: an alternative
passes what it gets to all its members, but to a group only what does not come up from that group.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from tulle.core.arrays import Array
from tulle.core.compiled import compiled
from tulle.lp.alternatives import AlternativesProblem
from tulle.lp.certificate import GRID, ROUNDOFF, TINY, Line, exact_total, on_grid, sum_with_error

_Tree = tuple[Array, Array, Array, Array, Array, int, int]


def binding(problem: AlternativesProblem, tau: float) -> Array:
    """Return who may bear more than ``tau`` when nobody is deleted; surely everyone who does."""
    margin = 8.0 * ROUNDOFF * (np.diff(problem.burdens) + 8.0)
    return np.flatnonzero(problem.loads * (1.0 + margin) > tau)


@compiled
def _deficits(
    starts: Array, offsets: Array, members: Array, count: int, tuples: int, deletions: Array
) -> tuple[Array, Array]:
    """Return the sum of members of each alternative, and the deficits of tuples and groups."""
    sums = np.zeros(len(offsets) - 1)
    deficits = np.ones(len(starts) - 1)
    for group in range(len(starts) - 2, -1, -1):
        for place in range(starts[group], starts[group + 1]):
            for index in range(offsets[place], offsets[place + 1]):
                member = members[index]
                if member < count:
                    sums[place] += deletions[member]
                else:
                    sums[place] += deficits[tuples + member - count]
            deficits[group] = min(deficits[group], sums[place])
    return sums, deficits


def upper_value(problem: AlternativesProblem, tau: float, deletions: Array) -> float:
    """Return a float that is certainly at least X(tau)."""
    rounded = on_grid(deletions, 1.0)
    tree = (problem.starts, problem.offsets, problem.members, problem.count, problem.tuples)
    left = 1.0 - _deficits(*tree, rounded)[1][: problem.tuples]
    priced, price_error = sum_with_error(rounded)
    kept, kept_error = sum_with_error(problem.cut(tau) * left)
    bound = (tau * (priced + price_error) + (kept + kept_error)) * (1.0 + 16.0 * ROUNDOFF)
    return float(np.nextafter(bound, np.inf)) if bound > 0.0 else 0.0


def lower_value(problem: AlternativesProblem, tau: float, levels: Array) -> float:
    """Return a float that is certainly at most X(tau), from any levels of alternatives."""
    clean = np.where(np.isfinite(levels) & (levels > TINY), levels, 0.0)
    inside = problem.starts[problem.tuples]
    top = _fit(problem.starts[: problem.tuples + 1], problem.cut(tau), clean[:inside])
    tops = np.zeros(len(clean))
    tops[:inside] = top
    safe = _spread(*_tree(problem), tops, np.zeros(problem.groups), clean, tau, _margin(problem))
    total, error = sum_with_error(safe[:inside])
    return max(0.0, float(np.nextafter((total - error) * (1.0 - 4.0 * ROUNDOFF), -np.inf)))


def _margin(problem: AlternativesProblem) -> float:
    """Return a relative bound, with room to spare, on the rounding of sums below an alternative."""
    return 32.0 * ROUNDOFF * (problem.widest + 16.0)


def _tree(problem: AlternativesProblem) -> _Tree:
    return (
        problem.starts,
        problem.offsets,
        problem.members,
        problem.owner,
        problem.parent,
        problem.count,
        problem.tuples,
    )


@compiled
def _fit(starts: Array, limits: Array, levels: Array) -> Array:
    """Shrink the levels of each tuple to its limit in sum."""
    fitted = np.zeros(len(levels))
    for item in range(len(limits)):
        asked = 0.0
        for place in range(starts[item], starts[item + 1]):
            asked += levels[place]
        asked *= 1.0 + 4.0 * ROUNDOFF * (starts[item + 1] - starts[item] + 4)
        part = 1.0
        if asked > limits[item]:
            part = limits[item] / asked * (1.0 - 8.0 * ROUNDOFF)
        for place in range(starts[item], starts[item + 1]):
            level = levels[place] * part
            fitted[place] = level if level > TINY else 0.0
    return fitted


@compiled
def _spread(
    starts: Array,
    offsets: Array,
    members: Array,
    owner: Array,
    parent: Array,
    count: int,
    tuples: int,
    own: Array,
    rising: Array,
    splits: Array,
    capacity: float,
    margin: float,
) -> Array:
    """Let what alternatives have of their ``own`` flow down; return it shrunk until it fits.

    ``own`` of an alternative includes what rises from its groups, ``rising``, which does not flow
    back there. An alternative of a tuple shrinks with all that is below it, and only its entry of
    the result counts.
    """
    flows = own.copy()
    loads = np.zeros(count)
    terms = np.zeros(count)
    for group in range(len(starts) - 1):
        if group >= tuples:
            above = flows[parent[group - tuples]]
            back = rising[group - tuples]
            # Rounded upwards: more than there is may flow, never less.
            inflow = max(above - back, 0.0) + margin * above
            if inflow > TINY:
                total = 0.0
                for place in range(starts[group], starts[group + 1]):
                    total += splits[place]
                size = starts[group + 1] - starts[group]
                # Where the vectors say nothing, whoever has least so far takes it.
                chosen = -1
                if not (total > TINY and total < 1.0 / TINY):
                    least = np.inf
                    for place in range(starts[group], starts[group + 1]):
                        most = 0.0
                        for index in range(offsets[place], offsets[place + 1]):
                            if members[index] < count:
                                most = max(most, loads[members[index]])
                        if most < least:
                            least = most
                            chosen = place
                up = 1.0 + 8.0 * ROUNDOFF * (size + 8)
                for place in range(starts[group], starts[group + 1]):
                    if chosen >= 0:
                        flows[place] += inflow if place == chosen else 0.0
                    else:
                        flows[place] += inflow * (splits[place] / total) * up
        for place in range(starts[group], starts[group + 1]):
            if flows[place] > 0.0:
                for index in range(offsets[place], offsets[place + 1]):
                    if members[index] < count:
                        loads[members[index]] += flows[place]
                        terms[members[index]] += 1.0
    shrink = np.ones(count)
    for participant in range(count):
        rounding = 4.0 * ROUNDOFF * (terms[participant] + 16.0)
        most = loads[participant] * (1.0 + (rounding + margin))
        if most > capacity:
            shrink[participant] = capacity / most * (1.0 - 8.0 * ROUNDOFF)
    parts = np.ones(len(owner))
    for place in range(len(owner) - 1, -1, -1):
        if flows[place] > 0.0:
            for index in range(offsets[place], offsets[place + 1]):
                if members[index] < count:
                    parts[place] = min(parts[place], shrink[members[index]])
            group = owner[place]
            if group >= tuples:
                above = parent[group - tuples]
                parts[above] = min(parts[above], parts[place])
    result = np.zeros(len(owner))
    for place in range(starts[tuples]):
        level = own[place] * parts[place] * (1.0 - 2.0 * ROUNDOFF)
        result[place] = level if level > TINY else 0.0
    return result


def enough(problem: AlternativesProblem, tau: float, deletions: Array) -> Fraction:
    """Make the deletions enough at ``tau`` and return their exact sum."""
    rounded = on_grid(deletions, 1.0)
    # A computed load of n terms is off by less than a relative 4 (n + 8) u.
    margin = 4.0 * ROUNDOFF * (np.diff(problem.burdens) + 8.0)
    capacities = tau * (1.0 - margin) * (1.0 - 4.0 * ROUNDOFF)
    _raise(
        *_tree(problem),
        problem.burdens,
        problem.spans,
        problem.places,
        problem.heights,
        capacities,
        binding(problem, tau),
        rounded,
    )
    return exact_total(rounded)


@compiled
def _lacking(
    place: Any, owner: Array, parent: Array, tuples: Any, sums: Array, deficits: Array
) -> Any:
    """Return the least deficit of a way through an alternative, or some number of at least 1."""
    lacking = sums[place]
    group = owner[place]
    while group >= tuples and lacking < 1.0:
        above = parent[group - tuples]
        lacking += sums[above] - deficits[group]
        group = owner[above]
    return lacking


@compiled
def _raise(
    starts: Array,
    offsets: Array,
    members: Array,
    owner: Array,
    parent: Array,
    count: int,
    tuples: int,
    burdens: Array,
    spans: Array,
    places: Array,
    heights: Array,
    capacities: Array,
    chosen: Array,
    deletions: Array,
) -> None:
    """Raise deletions in place until the chosen bear no more than their capacity."""
    sums, deficits = _deficits(starts, offsets, members, count, tuples, deletions)
    for row in chosen:
        while deletions[row] < 1.0:
            load = 0.0
            slope = 0.0
            for burden in range(burdens[row], burdens[row + 1]):
                least = 1.0
                for index in range(spans[burden], spans[burden + 1]):
                    least = min(
                        least, _lacking(places[index], owner, parent, tuples, sums, deficits)
                    )
                if least < 1.0:
                    load += heights[burden] * (1.0 - least)
                    slope += heights[burden]
            if load <= capacities[row]:
                break
            grow = np.ceil((load - capacities[row]) / slope * GRID) / GRID
            grow = min(grow, 1.0 - deletions[row])
            deletions[row] += grow
            for burden in range(burdens[row], burdens[row + 1]):
                for index in range(spans[burden], spans[burden + 1]):
                    place = places[index]
                    change = 0.0
                    for entry in range(offsets[place], offsets[place + 1]):
                        if members[entry] == row:
                            change += grow
                    # Upwards as long as something changes.
                    while True:
                        before = sums[place]
                        sums[place] += change
                        group = owner[place]
                        if group < tuples or before > deficits[group]:
                            break
                        least = 1.0
                        for other in range(starts[group], starts[group + 1]):
                            least = min(least, sums[other])
                        change = least - deficits[group]
                        if change == 0.0:
                            break
                        deficits[group] = least
                        place = parent[group - tuples]


def line_of(problem: AlternativesProblem, pressures: Array, covers: Array, splits: Array) -> Line:
    """Return the bound that the multipliers of loads, of covers and of groups give."""
    clean = np.where(np.isfinite(pressures) & (pressures > 0.0), pressures, 0.0)
    totals = _totals(
        problem.burdens,
        problem.spans,
        problem.places,
        problem.heights,
        clean,
        covers,
        len(problem.owner),
    )
    shares = np.where(np.isfinite(splits) & (splits > TINY), splits, 0.0)
    rising = _rise(problem.starts, problem.parent, problem.tuples, totals)
    margin = _margin(problem)
    levels = _spread(*_tree(problem), totals, rising, shares, 1.0, margin)
    height, height_error = sum_with_error(levels)
    slope, slope_error = sum_with_error(clean)
    return Line(
        (Fraction(height) - Fraction(height_error) * 2) * (1 - Fraction(margin)),
        Fraction(slope) + Fraction(slope_error) * 2,
    )


@compiled
def _totals(
    burdens: Array,
    spans: Array,
    places: Array,
    heights: Array,
    pressures: Array,
    covers: Array,
    alternatives: int,
) -> Array:
    """Shrink the covers of each burden to what it allows, and add them up by alternative."""
    totals = np.zeros(alternatives)
    for row in range(len(pressures)):
        if not pressures[row] > 0.0:
            continue
        for burden in range(burdens[row], burdens[row + 1]):
            asked = 0.0
            for place in range(spans[burden], spans[burden + 1]):
                if covers[place] > TINY:
                    asked += covers[place]
            asked *= 1.0 + 4.0 * ROUNDOFF * (spans[burden + 1] - spans[burden] + 4)
            allowed = heights[burden] * pressures[row] * (1.0 - 8.0 * ROUNDOFF)
            if not asked > TINY or allowed < TINY or asked == np.inf:
                continue
            part = min(1.0, allowed / asked * (1.0 - 8.0 * ROUNDOFF))
            for place in range(spans[burden], spans[burden + 1]):
                if covers[place] > TINY:
                    totals[places[place]] += covers[place] * part
    return totals


@compiled
def _rise(starts: Array, parent: Array, tuples: int, totals: Array) -> Array:
    """Add what groups have to the alternative that lists them, in place; return it by group."""
    rising = np.zeros(len(parent))
    for group in range(len(starts) - 2, tuples - 1, -1):
        for place in range(starts[group], starts[group + 1]):
            rising[group - tuples] += totals[place]
        totals[parent[group - tuples]] += rising[group - tuples]
    return rising


def first_line(problem: AlternativesProblem, tau: float) -> Line:
    """Return a bound in closed form: every way counts for its member of the most weight in ways.

    With L_p the weight of all alternatives that reach p, and n_p that of the burdens of p in which
    p has an alternative to count for, mu_p = 1 / L_p for those with n_p > tau, and one cover of
    q(t) / L_p for each such burden, are feasible where alternatives are ways: nobody in a way has a
    larger L than whom it counts for. Elsewhere they are shrunk.
    """
    weights = np.bincount(
        problem.members[problem.members < problem.count],
        np.repeat(problem.weights[problem.root], np.diff(problem.offsets))[
            problem.members < problem.count
        ],
        problem.count,
    )
    covers, counted = _count_for(
        problem.offsets,
        problem.members,
        problem.burdens,
        problem.spans,
        problem.places,
        problem.heights,
        weights,
    )
    useful = counted > tau
    rates = np.divide(useful, weights, out=np.zeros(problem.count), where=useful)
    entries = np.diff(problem.spans[problem.burdens])
    covers *= np.repeat(rates, entries)
    return line_of(problem, rates, covers, np.zeros(len(problem.owner)))


@compiled
def _count_for(
    offsets: Array,
    members: Array,
    burdens: Array,
    spans: Array,
    places: Array,
    heights: Array,
    weights: Array,
) -> tuple[Array, Array]:
    count = len(weights)
    heaviest = np.full(len(offsets) - 1, -1, np.int32)
    for item in range(len(heaviest)):
        most = 0.0
        for place in range(offsets[item], offsets[item + 1]):
            if members[place] < count and weights[members[place]] > most:
                most = weights[members[place]]
                heaviest[item] = members[place]
    covers = np.zeros(len(places))
    counted = np.zeros(count)
    for row in range(count):
        for burden in range(burdens[row], burdens[row + 1]):
            for place in range(spans[burden], spans[burden + 1]):
                if heaviest[places[place]] == row:
                    covers[place] = heights[burden]
                    counted[row] += heights[burden]
                    break
    return covers, counted
