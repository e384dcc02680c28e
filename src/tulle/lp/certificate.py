"""Bounds on the packing value that hold in spite of rounding.

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
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.compiled import compiled
from tulle.lp.problem import PackingProblem

Array = npt.NDArray[Any]

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
