"""Certified integer enclosures of exp(-x) and of 1 / (1 + exp(x))."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache


def exp_bounds(x: Fraction, precision: int) -> tuple[int, int]:
    """Return integers ``low <= 2**precision * exp(-x) <= high`` for x >= 0.

    The two differ by at most 1, and are equal only where x = 0.

    *Method.* exp(y) for y = x / 2**halvings is bounded by its Taylor sum with every term rounded
    down, or up plus the remainder; its inverse is squared ``halvings`` times, each time rounding
    outwards. Integers only.

    Example:
        >>> exp_bounds(Fraction(1), 8)
        (94, 95)
    """
    if x >= precision:  # exp(-x) < 2**-x
        return 0, 1
    return exp_bounds_of(x.numerator, x.denominator, precision)


def exp_bounds_of(numerator: int, denominator: int, precision: int) -> tuple[int, int]:
    """Do the same for x = numerator / denominator, in as many steps whatever the numerator."""
    # exp(-x) < 2**-x, so beyond this the bounds are 0 and 1; they are computed all the same.
    near = min(numerator, precision * denominator)
    guard = 16
    while True:
        low, high = _exp_bounds(near, denominator, precision + guard)
        low >>= guard
        high = -(-high >> guard)
        if high - low <= 1:
            break
        guard *= 2
    if numerator == 0:
        return 1 << precision, 1 << precision
    return (0, 1) if near < numerator else (low, high)


@lru_cache(maxsize=64)
def _steps(precision: int) -> tuple[int, int, int]:
    """Return halvings, width and terms that are enough for all x up to the precision."""
    halvings = precision.bit_length() + 8
    width = precision + halvings + 8
    # y <= 2**-8: after so many terms what is left is below 2**-width.
    terms, bits = 0, 0
    while bits < width + 1:
        terms += 1
        bits += 8 + terms.bit_length() - 1
    return halvings, width, terms


def _exp_bounds(numerator: int, denominator: int, precision: int) -> tuple[int, int]:
    halvings, width, terms = _steps(precision)
    one = 1 << width
    small = (numerator << width - halvings) // denominator  # 2**width * y, rounded down
    large = small + 1
    sum_low = sum_high = term_low = term_high = one
    for step in range(1, terms + 1):
        term_low = (term_low * small >> width) // step
        term_high = -(-term_high * large // (step << width))
        sum_low += term_low
        sum_high += term_high
    sum_high += 1  # all further terms together are below the last one
    low = (one << width) // sum_high
    high = -(-(one << width) // sum_low)
    for _ in range(halvings):
        low = low * low >> width
        high = -(-high * high >> width)
    drop = width - precision
    return low >> drop, -(-high >> drop)


@lru_cache(maxsize=1024)
def logistic_floor(x: Fraction, bits: int) -> int:
    """Return floor(2**bits / (1 + exp(x))), certainly.

    Unless x = 0 the value is irrational, so that finer bounds always decide.

    Example:
        >>> logistic_floor(Fraction(0), 8), logistic_floor(Fraction(1), 8)
        (128, 68)
    """
    if x == 0:
        return 1 << bits - 1
    guard = 64
    while True:
        width = bits + guard
        low, high = exp_bounds(abs(x), width)
        one = 1 << width
        if x > 0:
            least, most = (low << bits) // (one + low), (high << bits) // (one + high)
        else:
            least, most = (one << bits) // (one + high), (one << bits) // (one + low)
        if least == most:
            return least
        guard *= 2
