"""The largest rho within a budget, and scales as short numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from tulle.core.exact import round_up
from tulle.core.guarantee import epsilon_of_rho


@lru_cache(maxsize=64)
def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a rho, nearly the largest, such that rho-zCDP implies (epsilon, delta).

    Example:
        >>> 0.01 < largest_rho(Fraction(1), Fraction(1, 10**6)) < 0.03
        True
    """
    low, high = math.log(float(epsilon)) * 2 - 200.0, math.log(float(epsilon)) + 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if epsilon_of_rho(Fraction(math.exp(middle)), delta) <= epsilon:
            low = middle
        else:
            high = middle
    return Fraction(math.exp(low))


def short_up(value: Fraction) -> Fraction:
    """Round up to thirty binary digits."""
    mantissa, exponent = math.frexp(round_up(value))
    return Fraction(math.ceil(math.ldexp(mantissa, 30))) * Fraction(2) ** (exponent - 30)
