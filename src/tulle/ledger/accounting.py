"""Tighter sums for many releases, from the law of what they can lose together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from tulle.core import validate
from tulle.core.arrays import Floats, Wholes
from tulle.core.errors import InputError
from tulle.core.guarantee import Guarantee
from tulle.core.validate import Number, round_down, round_up

_STEPS = 2**18
"""The plain sum of all epsilons in steps of the grid; losses are rounded up to it."""

_DROPPED = 1e-12
"""This part of delta pays for outcomes that are too unlikely to be followed."""

_LEAST = 1e-250
"""Below this delta floats end, and the plain sum is all that is promised."""


def compose_tightly(guarantees: Iterable[Guarantee], *, delta: Number) -> Guarantee:
    """Return the least epsilon at this total delta for releases whose prices were fixed in advance.

    Each release is replaced by the worst mechanism with its guarantee, and those are composed
    numerically, rounding every loss up. The result is never above the plain sum.

    Guarantee:
        Holds when the prices (not the questions) were fixed before the first answer. For prices
        chosen along the way only :meth:`Guarantee.compose` holds; ledgers therefore use that.

        The worst mechanism with (e, d) tells all with probability d, else it is randomised response
        (Kairouz, Oh & Viswanath, ICML 2015): of n alike, the loss is (2k - n)·e with a binomial k.
        Probabilities are only multiplied and added, never subtracted, so that each is right in
        proportion, however small; a Fourier transform is right to 1e-16 of the largest alone.

    Raises:
        InputError: when nothing is given, units differ, or a guarantee is concentrated.

    Example:
        >>> hundred = [Guarantee.of("edge", epsilon=0.05)] * 100
        >>> float(compose_tightly(hundred, delta=1e-6).epsilon) < 3
        True
    """
    items = list(guarantees)
    total = Guarantee.compose(items)
    wanted = validate.delta(above_zero=True, delta=delta)
    if total.epsilon is None:
        raise InputError("Convert concentrated guarantees first: guarantee.to_approximate(delta).")
    if total.delta > wanted:
        raise InputError(
            f"The releases have delta = {round_up(total.delta)} in all, above {round_up(wanted)}."
        )
    epsilon = min(_numerically(items, total, wanted), total.epsilon)
    return Guarantee(total.unit, epsilon, wanted, assumptions=total.assumptions, holds=total.holds)


def _numerically(items: list[Guarantee], total: Guarantee, delta: Fraction) -> Fraction:
    """Return an epsilon, which may be above the plain sum."""
    assert total.epsilon is not None
    # The deltas add up to the probability that anything tells all, or more.
    left, most = round_down(delta - total.delta), round_up(total.epsilon)
    if left < _LEAST:
        return total.epsilon
    kinds = Counter(round_up(item.epsilon or Fraction(0)) for item in items)
    step = most / _STEPS
    lowest, masses = 0, np.ones(1)
    dropped = _DROPPED * left / len(kinds)
    for epsilon, times in kinds.items():
        places, each = _response(epsilon, times, step, dropped)
        lowest, masses = _added(lowest, masses, places, each)
    # Logarithms of factorials, and one rounding for each addition.
    slack = 1e-9 + 1e-14 * math.lgamma(len(items) + 2)
    losses = (lowest + np.arange(len(masses))) * step
    allowed = left * (1 - _DROPPED) * (1 - slack)

    def gained(epsilon: float) -> float:
        above = losses > epsilon
        return float(masses[above] @ -np.expm1(epsilon - losses[above]))

    low, high = 0.0, most
    if gained(low) <= allowed:
        high = low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if gained(middle) <= allowed else (middle, high)
    # Losses are right to a few parts in 2^53 of the largest one.
    return Fraction(high * (1 + 1e-12) + most * 1e-12)


def _response(epsilon: float, times: int, step: float, dropped: float) -> tuple[Wholes, Floats]:
    """Return the losses of so many randomised responses in steps, rounded up, and their masses.

    The unlikeliest, of this mass together at most, are left out or taken to lose more.
    """
    from scipy.special import gammaln

    right = np.arange(times + 1.0)
    logs = gammaln(times + 1.0) - gammaln(right + 1) - gammaln(times - right + 1)
    logs -= times * math.log1p(math.exp(-epsilon)) + (times - right) * epsilon
    masses = np.exp(logs)
    small = dropped / (times + 1)
    kept = np.flatnonzero(masses > small)
    first, last = int(kept[0]), int(kept[-1])
    masses[first] += masses[:first].sum()
    places = np.ceil((2 * right - times) * epsilon / step)[first : last + 1].astype(np.int64)
    return places, masses[first : last + 1]


def _added(lowest: int, masses: Floats, places: Wholes, each: Floats) -> tuple[int, Floats]:
    """Return the law of a sum of two losses, one of them on a few places only."""
    made = np.zeros(len(masses) + int(places[-1] - places[0]))
    for place, mass in zip((places - places[0]).tolist(), each.tolist(), strict=True):
        made[place : place + len(masses)] += mass * masses
    return lowest + int(places[0]), made
