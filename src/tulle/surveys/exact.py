"""Exact comparisons of probability ratios with exp(epsilon), in whole numbers."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from tulle.core import validate
from tulle.core.validate import Number, round_up
from tulle.noise.source import exp_bounds

LARGEST_EPSILON = Fraction(64)
"""Designs for a larger epsilon are those for this one, which satisfy it as well."""


def checked_epsilon(epsilon: Number) -> Fraction:
    """Return epsilon as a fraction above zero."""
    return validate.positive(epsilon=epsilon)


def exp_of_minus(epsilon: Fraction, precision: int) -> Fraction:
    """Return a fraction slightly above exp(-epsilon), right to ``precision`` bits of it."""
    used = min(epsilon, LARGEST_EPSILON)
    # exp(-epsilon) has about 1.45 epsilon leading zero bits.
    places = precision + int(used * 29 / 20) + 2
    return Fraction(exp_bounds(used, places)[1], 1 << places)


def round_up_to(value: Fraction, bits: int) -> Fraction:
    """Round a fraction in (0, 1] up, to so many significant bits, with a power of two below."""
    places = bits + max(0, value.denominator.bit_length() - value.numerator.bit_length())
    return Fraction(-(-(value.numerator << places) // value.denominator), 1 << places)


def ratio_is_within(ratio: Fraction, epsilon: Fraction) -> bool:
    """Tell whether ratio <= exp(epsilon), with certainty: a True is proven, in integers.

    Both sides can only be equal at epsilon = 0, so that more digits always decide.

    Example:
        >>> ratio_is_within(Fraction(2718, 1000), Fraction(1))
        True
        >>> ratio_is_within(Fraction(2719, 1000), Fraction(1))
        False
    """
    if ratio <= 1:
        return epsilon >= 0
    if epsilon <= 0:
        return False
    precision = 64
    while True:
        low, high = exp_bounds(epsilon, precision)
        # ratio <= exp(epsilon) exactly when exp(-epsilon)·ratio <= 1.
        if high * ratio <= 1 << precision:
            return True
        if low * ratio > 1 << precision:
            return False
        precision *= 2


def epsilon_of_ratio(ratio: Fraction) -> Fraction:
    """Return ln(ratio), rounded up to a float, for a ratio of at least one.

    Example:
        >>> float(epsilon_of_ratio(Fraction(3)))
        1.0986122886681098
    """
    with localcontext() as context:
        context.prec = 60
        context.rounding = ROUND_CEILING
        value = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
        value += (abs(value) + 1) * Decimal("1e-50")
    found = Fraction(round_up(Fraction(value)))
    # The claim is proven rather than trusted to the sixty digits.
    while not ratio_is_within(ratio, found):
        found = Fraction(round_up(found * (1 + Fraction(1, 2**52))))
    return found
