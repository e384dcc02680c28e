"""Bounds on the least deletion that hold in spite of rounding, worked out on the unreduced problem.

*Upper.* Deletions are multiples of 2^-40 in [0, 1], so what remains of a tuple is an exact float
and the total is an exact fraction. Loads are summed with a bound on their rounding; if one might
pass tau, its participant is deleted a little more.

*Lower.* By weak duality, for every mu >= 0 and every w with 0 <= w_t <= q(t) sum_{p in t} mu_p and
sum_{t with p} w_t <= 1, the least deletion is at least sum w - tau sum mu. The bound is a line in
tau, so it holds at every threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.compiled import compiled
from tulle.lp.certificate import (
    GRID,
    ROUNDOFF,
    TINY,
    feasible_levels,
    on_grid,
    sum_with_error,
)
from tulle.lp.deletion_first_order import raise_deletions
from tulle.lp.problem import PackingProblem

Array = npt.NDArray[Any]


def feasible_total(problem: PackingProblem, tau: float, deletions: Array) -> Fraction:
    """Make the deletions feasible at ``tau`` and return their exact sum."""
    rounded = on_grid(deletions, 1.0)
    row_offsets, row_columns = problem.by_participant
    # A computed load of n terms is off by less than a relative 4 (n + 8) u.
    margin = 4.0 * ROUNDOFF * (np.diff(row_offsets) + 8.0)
    capacities = tau * (1.0 - margin) * (1.0 - 4.0 * ROUNDOFF)
    raise_deletions(
        problem.offsets,
        problem.participants,
        problem.weights,
        capacities,
        row_offsets,
        row_columns,
        # Whose load fits with nobody deleted, in spite of rounding, needs no look.
        problem.loads * (1.0 + 2.0 * margin) > capacities,
        rounded,
        GRID,
    )
    return exact_total(rounded)


def exact_total(deletions: Array) -> Fraction:
    """Return the exact sum of multiples of 2^-40."""
    scaled = (deletions * GRID).astype(np.int64)
    # In two halves, because the whole may pass 2^63.
    high, low = scaled >> 20, scaled & (2**20 - 1)
    return Fraction(int(high.sum()) * 2**20 + int(low.sum()), 2**40)


@dataclass(frozen=True, slots=True)
class Line:
    """The least deletion is at least ``height - slope * tau`` at every threshold tau."""

    height: Fraction
    slope: Fraction

    def at(self, tau: float) -> Fraction:
        """Return the exact bound at ``tau``."""
        return self.height - self.slope * Fraction(tau)


def dual_line(problem: PackingProblem, pressures: Array, covers: Array) -> Line:
    """Return the bound that the multipliers of loads and of covers give."""
    clean = np.where(np.isfinite(pressures) & (pressures > 0.0), pressures, 0.0)
    limits = _limits(problem.offsets, problem.participants, problem.weights, clean)
    levels = feasible_levels(
        problem.offsets, problem.participants, limits, np.ones(problem.count), covers
    )
    height, height_error = sum_with_error(levels)
    slope, slope_error = sum_with_error(clean)
    return Line(
        Fraction(height) - Fraction(height_error) * 2, Fraction(slope) + Fraction(slope_error) * 2
    )


@compiled
def _cover_sums(offsets: Array, participants: Array, count: int, covers: Array) -> Array:
    sums = np.zeros(count)
    for item in range(len(covers)):
        for place in range(offsets[item], offsets[item + 1]):
            sums[participants[place]] += covers[item]
    return sums


def cover_sums(problem: PackingProblem, covers: Array) -> Array:
    """Return the covers of each participant's tuples in sum, within rounding."""
    return _cover_sums(problem.offsets, problem.participants, problem.count, covers)


@compiled
def _heaviest(offsets: Array, participants: Array, weights: Array, loads: Array) -> Array:
    owner = np.full(len(weights), -1, np.int32)
    for item in range(len(weights)):
        most = 0.0
        for place in range(offsets[item], offsets[item + 1]):
            if loads[participants[place]] > most:
                most = loads[participants[place]]
                owner[item] = participants[place]
    return owner


def heaviest(problem: PackingProblem) -> tuple[Array, Array]:
    """Give every tuple to its member of largest load; return (owner or -1, weight owned by each).

    With L the loads and n the weight owned, w_t = q(t) / L_owner and mu_p = 1 / L_p for those with
    n_p > tau are feasible multipliers: no participant has a larger load than the owners of its
    tuples, so its w sum to at most 1. Hence D(tau) >= sum_p max(0, n_p - tau) / L_p.
    """
    owner = _heaviest(problem.offsets, problem.participants, problem.weights, problem.loads)
    owned = np.bincount(owner[owner >= 0], problem.weights[owner >= 0], problem.count)
    return owner, owned


@compiled
def _limits(offsets: Array, participants: Array, weights: Array, pressures: Array) -> Array:
    """Return floats that are certainly at most weight times pressure of each tuple."""
    limits = np.empty(len(weights))
    for item in range(len(weights)):
        pressure = 0.0
        for place in range(offsets[item], offsets[item + 1]):
            pressure += pressures[participants[place]]
        terms = offsets[item + 1] - offsets[item]
        limits[item] = weights[item] * pressure * (1.0 - 4.0 * ROUNDOFF * (terms + 4))
        if limits[item] < TINY:
            limits[item] = 0.0
    return limits
