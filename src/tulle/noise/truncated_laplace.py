"""Discrete Laplace noise within a bound, and tails of noise, rounded up."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

import numpy as np

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.source import Source
from tulle.core.validate import Number
from tulle.noise.source import drawn_elsewhere, report, resolve
from tulle.noise.tables import check_scale, laplace_table


def truncated_laplace(
    *, scale: Number, bound: int, size: int, source: Source | None = None
) -> Array:
    """Draw integers x of -bound, ..., bound with probability proportional to exp(-abs(x)/scale).

    Exactly: discrete Laplace noise is drawn again as long as it is beyond the bound, which says
    nothing about what is kept.

    Raises:
        InputError: when the scale is not a positive number, or above 2**48.

    Example:
        >>> truncated_laplace(scale=100, bound=0, size=3)
        array([0, 0, 0])
    """
    exact = validate.positive(at_most=None, scale=scale)
    bound = validate.whole(bound=bound, at_least=0, at_most=None)
    report("truncated laplace", scale=exact, bound=bound)
    check_scale(exact)
    source = resolve(source)

    def draw(count: int) -> Array:
        if drawn_elsewhere():
            from tulle.noise import opendp_backend

            return np.asarray(opendp_backend.laplace(exact, count, source))
        table, mode = laplace_table(exact)
        return table.draw(count, mode, source)

    out = draw(size) if size else np.zeros(0, dtype=np.int64)
    again = np.flatnonzero(np.abs(out) > bound)
    while len(again):
        out[again] = draw(len(again))
        again = again[np.abs(out[again]) > bound]
    return out


def chance_of_end(scale: Fraction, bound: int) -> Fraction:
    """Return the probability of x = bound under :func:`truncated_laplace`, rounded up.

    (1 - q) q^bound / (1 + q - 2 q^(bound + 1)) with q = exp(-1/scale).
    """
    if bound == 0:
        return Fraction(1)
    with localcontext() as context:
        context.prec = 60
        q = (-1 / _decimal(scale)).exp()
        end = (-_decimal(Fraction(bound) / scale)).exp()
        found = (1 - q) * end / (1 + q - 2 * q * end)
        # 1 - q loses the digits that the scale has; sixty are many more than that.
        return Fraction(found) * (1 + Fraction(1, 10**25))


def gaussian_tail(variance: Fraction, start: int) -> Fraction:
    """Return at least the probability that discrete Gaussian noise is ``start`` (> 0) or more.

    From one integer to the next the weight falls at least by exp(-(2 start + 1)/(2 variance)), and
    all weights add up to at least max(1, sqrt(2 pi variance)), by Poisson's formula.
    """
    with localcontext() as context:
        context.prec = 60
        spread = _decimal(2 * variance)
        first = (-(Decimal(start) ** 2) / spread).exp()
        falls = (-Decimal(2 * start + 1) / spread).exp()
        whole = max(Decimal(1), (Decimal("3.14159265358979") * spread).sqrt())
        context.rounding = ROUND_CEILING
        return Fraction(first / (1 - falls) / whole) * (1 + Fraction(1, 10**25))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
