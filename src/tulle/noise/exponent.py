"""Certified integer enclosures of exp(-x)."""

from __future__ import annotations

from fractions import Fraction


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
    if x == 0:
        return 1 << precision, 1 << precision
    if x >= precision:  # exp(-x) < 2**-x
        return 0, 1
    guard = 16
    while True:
        low, high = _exp_bounds(x, precision + guard)
        low >>= guard
        high = -(-high >> guard)
        if high - low <= 1:
            return low, high
        guard *= 2


def _exp_bounds(x: Fraction, precision: int) -> tuple[int, int]:
    halvings = max(0, (x.numerator // x.denominator).bit_length() + 8)
    width = precision + halvings + 8
    one = 1 << width
    shifted, divisor = x.numerator << (width - halvings), x.denominator
    small = shifted // divisor  # 2**width * y, rounded down; y <= 2**-8
    large = small + 1
    sum_low = sum_high = term_low = term_high = one
    step = 1
    while term_high > 1:
        term_low = (term_low * small >> width) // step
        term_high = -(-term_high * large // (step << width))
        sum_low += term_low
        sum_high += term_high
        step += 1
    sum_high += 1  # all further terms together are below the last one
    low = (one << width) // sum_high
    high = -(-(one << width) // sum_low)
    for _ in range(halvings):
        low = low * low >> width
        high = -(-high * high >> width)
    drop = width - precision
    return low >> drop, -(-high >> drop)
