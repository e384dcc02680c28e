"""Gaussian noise on the integers."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import overload

import numpy as np

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.errors import InputError
from tulle.core.exact import Number
from tulle.core.public import public
from tulle.core.source import Source
from tulle.noise import opendp_backend
from tulle.noise.bernoulli import exponential_coins
from tulle.noise.bits import Bits
from tulle.noise.charge import report
from tulle.noise.laplace import laplace_from_bits
from tulle.noise.laws import FoldedGaussian
from tulle.noise.shape import Size, fill
from tulle.noise.source import resolve
from tulle.noise.tables import LARGEST_SCALE, Table, laplace_table

LARGEST_TABLE_SIGMA = 4096
"""Up to this sigma a table is made; it has about 6.5 sigma entries."""


@overload
def discrete_gaussian(
    *,
    sigma: Number | None = None,
    variance: Number | None = None,
    size: None = None,
    source: Source | None = None,
) -> int: ...
@overload
def discrete_gaussian(
    *,
    sigma: Number | None = None,
    variance: Number | None = None,
    size: Size,
    source: Source | None = None,
) -> Array: ...
@public()
def discrete_gaussian(
    *,
    sigma: Number | None = None,
    variance: Number | None = None,
    size: Size | None = None,
    source: Source | None = None,
) -> int | Array:
    """Draw an integer x with probability proportional to exp(-x² / (2 sigma²)), exactly.

    Give sigma or the variance sigma². Without ``size`` the result is an int of any length, else
    an int64 array of that shape.

    *Guarantee.* Added to an integer query of L2 sensitivity D, it is rho-zCDP for
    rho = D² / (2 sigma²).

    *Error.* The variance is at most sigma², and the tails are at most those of the continuous
    Gaussian.

    Raises:
        InputError: when not exactly one of sigma and variance is given, or it is not a positive
            number, or sigma is 2**48 or more with ``size``.

    Example:
        >>> discrete_gaussian(sigma=0.01), discrete_gaussian(variance="1/10000", size=2)
        (0, array([0, 0]))

    Reference: Canonne, Kamath, Steinke, *The Discrete Gaussian for Differential Privacy*,
    NeurIPS 2020.
    """
    if (sigma is None) == (variance is None):
        raise InputError("Give either sigma or variance, and not both.")
    if sigma is not None:
        exact = validate.positive(sigma=sigma) ** 2
    else:
        exact = validate.positive(variance=variance)
    report("gaussian", variance=exact)
    if opendp_backend.active():
        return opendp_backend.gaussian(exact, size, source)
    source = resolve(source)
    if size is None:
        return gaussian_from_bits(exact, Bits(source))
    if exact >= LARGEST_SCALE**2:
        raise InputError("sigma must be below 2**48 for an array of draws; use size=None.")

    def many(count: int) -> Array:
        if exact <= LARGEST_TABLE_SIGMA**2:
            return gaussian_table(exact).draw(count, "folded", source)
        return _reject(exact, count, source)

    return fill(size, source, lambda bits: gaussian_from_bits(exact, bits), many)


def gaussian_from_bits(variance: Fraction, bits: Bits) -> int:
    """Draw one discrete Gaussian by rejection from a discrete Laplace (algorithm 3).

    How often it is drawn again says nothing about what is accepted: each try is independent.
    """
    scale = isqrt(int(variance)) + 1
    numerator, denominator = variance.numerator, variance.denominator
    below = 2 * numerator * denominator * scale**2
    while True:
        candidate = laplace_from_bits(Fraction(scale), bits)
        # The exponent below, over one denominator: reducing it would take time by its value.
        distance = abs(candidate) * denominator * scale - numerator
        if bits.exponential(distance**2, below):
            return candidate


def _exponent(candidate: int, scale: int, variance: Fraction) -> Fraction:
    return (abs(candidate) - variance / scale) ** 2 / (2 * variance)


@lru_cache(maxsize=16)
def gaussian_table(variance: Fraction) -> Table:
    """Return the table of the magnitude of a discrete Gaussian."""
    return Table.of((FoldedGaussian(variance),), (0,))


def _reject(variance: Fraction, count: int, source: Source) -> Array:
    """Draw by the same rejection, in bulk."""
    scale = isqrt(int(variance)) + 1
    table, mode = laplace_table(Fraction(scale))
    centre, spread = float(variance / scale), float(2 * variance)
    out = np.empty(count, dtype=np.int64)
    done = 0
    while done < count:
        # Three in four are accepted.
        batch = min(count - done, 1 << 15) * 4 // 3 + 16
        candidates = table.draw(batch, mode, source)
        # Where exp(-x) matters at all (x < 45) the three roundings below change x by less than
        # 2**-44: well inside the margin of 2**-40 that the exact path takes over.
        x = (np.abs(candidates).astype(np.float64) - centre) ** 2 / spread

        def exact(place: int, drawn: Array = candidates) -> Fraction:
            return _exponent(int(drawn[place]), scale, variance)

        kept = candidates[exponential_coins(x, exact, source)][: count - done]
        out[done : done + len(kept)] = kept
        done += len(kept)
    return out
