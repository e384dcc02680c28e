"""Bounds on the least deletion of tuples with several ways that hold in spite of rounding.

*Upper.* As for conjunctions: deletions are multiples of 2^-40, so what is left of a way is an exact
float. Raising g_p lowers every way with p alike, so all that p bears falls at the same rate.

*Lower.* The dual has a multiplier mu_p >= 0 for each load and c >= 0 for each way of each burden.
If the c of each burden (t, p) sum to at most q(t) mu_p, and those of all ways with r, over all
burdens, to at most 1 for every r, then the least deletion is at least sum c - tau sum mu.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.lp.alternatives import WaysProblem
from tulle.lp.certificate import (
    GRID,
    ROUNDOFF,
    TINY,
    feasible_levels,
    on_grid,
    sum_with_error,
)
from tulle.lp.compiled import compiled
from tulle.lp.deletion_certificate import Line, exact_total, heaviest

Array = npt.NDArray[Any]


def binding(problem: WaysProblem, tau: float) -> Array:
    """Return who may bear more than ``tau`` when nobody is deleted; surely everyone who does."""
    margin = 8.0 * ROUNDOFF * (np.diff(problem.burdens) + 8.0)
    return np.flatnonzero(problem.loads * (1.0 + margin) > tau)


def enough(problem: WaysProblem, tau: float, deletions: Array) -> Fraction:
    """Make the deletions enough at ``tau`` and return their exact sum."""
    rounded = on_grid(deletions, 1.0)
    # A computed load of n terms is off by less than a relative 4 (n + 8) u.
    margin = 4.0 * ROUNDOFF * (np.diff(problem.burdens) + 8.0)
    capacities = tau * (1.0 - margin) * (1.0 - 4.0 * ROUNDOFF)
    _raise(
        problem.burdens,
        problem.spans,
        problem.places,
        problem.heights,
        problem.ways.offsets,
        problem.ways.participants,
        capacities,
        binding(problem, tau),
        rounded,
    )
    return exact_total(rounded)


@compiled
def _raise(
    burdens: Array,
    spans: Array,
    places: Array,
    heights: Array,
    offsets: Array,
    participants: Array,
    capacities: Array,
    chosen: Array,
    deletions: Array,
) -> None:
    """Raise deletions in place until the chosen bear no more than their capacity."""
    remaining = np.empty(len(offsets) - 1)
    for way in range(len(remaining)):
        left = 1.0
        for place in range(offsets[way], offsets[way + 1]):
            left -= deletions[participants[place]]
        remaining[way] = left
    for row in chosen:
        while deletions[row] < 1.0:
            load = 0.0
            slope = 0.0
            for burden in range(burdens[row], burdens[row + 1]):
                most = 0.0
                for place in range(spans[burden], spans[burden + 1]):
                    most = max(most, remaining[places[place]])
                if most > 0.0:
                    load += heights[burden] * most
                    slope += heights[burden]
            if load <= capacities[row]:
                break
            grow = np.ceil((load - capacities[row]) / slope * GRID) / GRID
            grow = min(grow, 1.0 - deletions[row])
            deletions[row] += grow
            for place in range(spans[burdens[row]], spans[burdens[row + 1]]):
                remaining[places[place]] -= grow


def line_of(problem: WaysProblem, pressures: Array, covers: Array) -> Line:
    """Return the bound that the multipliers of loads and of ways give."""
    clean = np.where(np.isfinite(pressures) & (pressures > 0.0), pressures, 0.0)
    totals = _way_totals(
        problem.burdens,
        problem.spans,
        problem.places,
        problem.heights,
        clean,
        covers,
        problem.ways.tuple_count,
    )
    # As many terms as the way has members, each with its rounding.
    totals *= 1.0 - 4.0 * ROUNDOFF * (np.diff(problem.ways.offsets) + 8.0)
    levels = feasible_levels(
        problem.ways.offsets, problem.ways.participants, totals, np.ones(problem.count), totals
    )
    height, height_error = sum_with_error(levels)
    slope, slope_error = sum_with_error(clean)
    return Line(
        Fraction(height) - Fraction(height_error) * 2, Fraction(slope) + Fraction(slope_error) * 2
    )


@compiled
def _way_totals(
    burdens: Array,
    spans: Array,
    places: Array,
    heights: Array,
    pressures: Array,
    covers: Array,
    ways: int,
) -> Array:
    """Shrink the covers of each burden to what it allows, and add them up by way."""
    totals = np.zeros(ways)
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


def first_line(problem: WaysProblem, tau: float) -> Line:
    """Return a bound in closed form: every way counts for its member of the most weight in ways.

    With L_p the weight of all ways with p, and n_p that of the burdens of p in which p has a way to
    count for, mu_p = 1 / L_p for those with n_p > tau, and one cover of q(t) / L_p for each such
    burden, are feasible: nobody in a way has a larger L than whom it counts for.
    """
    owner, _ = heaviest(problem.ways)
    covers, counted = _count_for(
        problem.burdens, problem.spans, problem.places, problem.heights, owner, problem.count
    )
    useful = counted > tau
    weights = problem.ways.loads
    rates = np.divide(useful, weights, out=np.zeros(problem.count), where=useful)
    entries = np.diff(problem.spans[problem.burdens])
    return line_of(problem, rates, covers * np.repeat(rates, entries))


@compiled
def _count_for(
    burdens: Array, spans: Array, places: Array, heights: Array, owner: Array, count: int
) -> tuple[Array, Array]:
    covers = np.zeros(len(places))
    counted = np.zeros(count)
    for row in range(count):
        for burden in range(burdens[row], burdens[row + 1]):
            for place in range(spans[burden], spans[burden + 1]):
                if owner[places[place]] == row:
                    covers[place] = heights[burden]
                    counted[row] += heights[burden]
                    break
    return covers, counted
