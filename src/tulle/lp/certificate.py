"""Bounds on the packing value and on the least deletion that hold in spite of rounding.

Both are worked out on the unreduced problem from vectors of any origin, and trust nothing else.

*Upper.* For every price vector >= 0, weak duality gives
``X(tau) <= tau sum_p price_p + sum_t q(t) max(0, 1 - sum_{p in t} price_p)``. Prices are first
rounded to multiples of 2^-40 in [0, 1] (a price above 1 is never better than 1), so that the sum of
up to 2048 of them, and its difference from 1, are exact floats. A limit of its own has its capacity
in place of tau, and the price that is best given those of participants.

*Lower.* Levels are clipped to [0, q] and each is shrunk by the worst overload of its participants,
with a margin for the rounding of loads. What is left is feasible in exact arithmetic.

*Sums* are compensated. With unit roundoff u and n terms >= 0, the result of Sum2 of Ogita, Rump and
Oishi ("Accurate sum and dot product", 2005, proposition 4.5) is off by at most a relative
u + (2 n u)^2; an ordinary sum of n terms in any order by at most 2 n u. A product adds u.
Nothing underflows: weights and tau are zero or at least 2^-900, and levels below 2^-1000 are taken
for zero.

For the least deletion:

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

import numpy as np

from tulle.core.arrays import Array
from tulle.core.compiled import compiled
from tulle.lp.first_order import raise_deletions
from tulle.lp.problem import PackingProblem

GRID = 2.0**40
ROUNDOFF = 2.0**-53
TINY = 2.0**-1000
"""Levels below this are taken for zero."""


def on_grid(values: Array, largest: float) -> Array:
    """Return the values clipped to [0, largest] and rounded to multiples of 2^-40."""
    clean = np.nan_to_num(values, nan=0.0, posinf=largest, neginf=0.0)
    rounded: Array = np.rint(np.clip(clean, 0.0, largest) * GRID) / GRID
    return rounded


@compiled
def sum_with_error(terms: Array) -> tuple[float, float]:
    """Return the sum of terms >= 0 and a bound on its error."""
    total = 0.0
    lost = 0.0
    for term in terms:
        grown = total + term
        part = grown - total
        lost += (total - (grown - part)) + (term - part)
        total = grown
    total += lost
    small = len(terms) * 2.0 * ROUNDOFF
    return total, total * (4.0 * ROUNDOFF + 4.0 * small * small)


@compiled
def _dual_terms(offsets: Array, participants: Array, weights: Array, prices: Array) -> Array:
    terms = np.zeros(len(weights))
    for item in range(len(weights)):
        spare = 1.0
        for place in range(offsets[item], offsets[item + 1]):
            spare -= prices[participants[place]]
        if spare > 0.0:
            terms[item] = weights[item] * spare
    return terms


@compiled
def _price_limits(
    offsets: Array,
    participants: Array,
    weights: Array,
    count: int,
    capacities: Array,
    prices: Array,
) -> None:
    """Set the prices of limits, numbered from ``count`` on, given those of participants.

    Of the tuples of a limit, in order of what each lacks of 1, the first that would overfill it
    sets the price. Tuples of one limit that do not stand together give a price that is not best.
    """
    prices[count:] = 0.0
    spare = np.ones(len(weights))
    first = 0
    for item in range(len(weights)):
        last = offsets[item + 1] - 1
        limit = participants[last] if last >= offsets[item] else -1
        if limit < count:
            first = item + 1
            continue
        for place in range(offsets[item], last):
            spare[item] -= prices[participants[place]]
        following = offsets[item + 2] - 1 if item + 1 < len(weights) else -1
        if following >= offsets[item + 1] and participants[following] == limit:
            continue
        order = np.argsort(-spare[first : item + 1])
        filled = 0.0
        for place in order:
            filled += weights[first + place]
            if filled > capacities[limit - count]:
                prices[limit] = max(prices[limit], spare[first + place])
                break
        first = item + 1


def upper_bound(problem: PackingProblem, tau: float, prices: Array) -> float:
    """Return a float that is certainly at least the packing value."""
    offsets, participants, weights = problem.offsets, problem.participants, problem.weights
    rounded = on_grid(prices, 1.0)
    if len(problem.limits):
        _price_limits(offsets, participants, weights, problem.count, problem.limits, rounded)
    priced, price_error = sum_with_error(rounded[: problem.count])
    limited, limit_error = sum_with_error(rounded[problem.count :] * problem.limits)
    terms = _dual_terms(offsets, participants, weights, rounded)
    kept, kept_error = sum_with_error(terms)
    # Each term carries one rounding, and so do the product with tau and the sums.
    rest = (kept + kept_error) + (limited + limit_error)
    bound = (tau * (priced + price_error) + rest) * (1.0 + 16.0 * ROUNDOFF)
    return float(np.nextafter(bound, np.inf)) if bound > 0.0 else 0.0


@compiled
def feasible_levels(
    offsets: Array, participants: Array, limits: Array, capacities: Array, levels: Array
) -> Array:
    """Return levels in [0, limit] whose sum over any participant is certainly within capacity."""
    count = len(capacities)
    loads = np.zeros(count)
    terms = np.zeros(count)
    safe = np.empty(len(limits))
    for item in range(len(limits)):
        level = levels[item]
        if not level > TINY:
            level = 0.0
        safe[item] = min(level, limits[item])
        for place in range(offsets[item], offsets[item + 1]):
            loads[participants[place]] += safe[item]
            terms[participants[place]] += 1.0
    shrink = np.ones(count)
    for participant in range(count):
        most = loads[participant] * (1.0 + 4.0 * ROUNDOFF * (terms[participant] + 8.0))
        if most > capacities[participant]:
            shrink[participant] = capacities[participant] / most * (1.0 - 8.0 * ROUNDOFF)
    for item in range(len(limits)):
        least = 1.0
        for place in range(offsets[item], offsets[item + 1]):
            least = min(least, shrink[participants[place]])
        if least < 1.0:
            safe[item] *= least
            if safe[item] < TINY:
                safe[item] = 0.0
    return safe


def lower_bound(problem: PackingProblem, tau: float, fractions: Array) -> float:
    """Return a float that is certainly at most the packing value."""
    levels = feasible_levels(
        problem.offsets,
        problem.participants,
        problem.weights,
        problem.capacities(tau),
        fractions * problem.weights,
    )
    total, error = sum_with_error(levels)
    return max(0.0, float(np.nextafter((total - error) * (1.0 - 4.0 * ROUNDOFF), -np.inf)))


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
