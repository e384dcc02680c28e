"""Noise that is added to integers: geometric, Laplace, Gaussian, and with polynomial tails."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any, Literal, overload

import numpy as np

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.core.source import Source
from tulle.core.validate import Number, round_up, widen_up
from tulle.noise.bernoulli import exponential_coins
from tulle.noise.source import Bits, Size, drawn_elsewhere, is_array, report, resolve, shape_of
from tulle.noise.tables import (
    LARGEST_SCALE,
    FoldedGaussian,
    SamplingTable,
    by_value,
    check_scale,
    fill,
    geometric_table,
    laplace_table,
)


@overload
def geometric(*, scale: Number, size: None = None, source: Source | None = None) -> int: ...
@overload
def geometric(*, scale: Number, size: Size, source: Source | None = None) -> Array: ...
@public()
def geometric(
    *, scale: Number, size: Size | None = None, source: Source | None = None
) -> int | Array:
    """Draw k >= 0 with probability proportional to exp(-k / scale), exactly.

    Without ``size`` the result is an int of any length, else an int64 array of that shape.

    Raises:
        InputError: when the scale is not a positive number, or above 2**48 with ``size``.

    Example:
        >>> geometric(scale=0.001)
        0
    """
    exact = validate.positive(at_most=None, scale=scale)
    report("geometric", scale=exact)
    source = resolve(source)

    def one(bits: Bits) -> int:
        return bits.geometric(exact)

    if size is None:
        return one(Bits(source))
    check_scale(exact)
    return fill(
        size, source, one, lambda count: geometric_table(exact).draw(count, "magnitude", source)
    )


@overload
def discrete_laplace(  # type: ignore[overload-overlap]
    *, scale: Array | Sequence[Any], size: Size | None = None, source: Source | None = None
) -> Array: ...
@overload
def discrete_laplace(*, scale: Number, size: None = None, source: Source | None = None) -> int: ...
@overload
def discrete_laplace(*, scale: Number, size: Size, source: Source | None = None) -> Array: ...
@public()
def discrete_laplace(
    *,
    scale: Number | Array | Sequence[Any],
    size: Size | None = None,
    source: Source | None = None,
) -> int | Array:
    """Draw an integer x with probability proportional to exp(-abs(x) / scale), exactly.

    Without ``size`` the result is an int of any length, else an int64 array of that shape. An
    array of scales gives one draw per entry.

    *Guarantee.* Added to an integer query of sensitivity D, scale = D / epsilon is epsilon-DP.

    *Error.* P(abs(x) >= k) = 2 r^k / (1 + r) for k >= 1, where r = exp(-1 / scale).

    Raises:
        InputError: when the scale is not a positive number, or above 2**48 for an array.

    Example:
        >>> discrete_laplace(scale=0.001), discrete_laplace(scale=0.001, size=3)
        (0, array([0, 0, 0]))

    Reference: Ghosh, Roughgarden, Sundararajan, *Universally utility-maximizing privacy
    mechanisms*, STOC 2009; sampled as in Canonne, Kamath, Steinke, NeurIPS 2020, or by table.
    """
    if is_array(scale):
        return by_value(
            scale, "scale", size, lambda s, n: discrete_laplace(scale=s, size=n, source=source)
        )
    exact = validate.positive(at_most=None, scale=scale)
    report("laplace", scale=exact)
    if drawn_elsewhere():
        from tulle.noise import opendp_backend

        return opendp_backend.laplace(exact, size, source)
    source = resolve(source)
    if size is None:
        return laplace_from_bits(exact, Bits(source))
    check_scale(exact)

    def many(count: int) -> Array:
        table, mode = laplace_table(exact)
        return table.draw(count, mode, source)

    return fill(size, source, lambda bits: laplace_from_bits(exact, bits), many)


def laplace_from_bits(scale: Fraction, bits: Bits) -> int:
    """Draw one discrete Laplace: a sign and a magnitude, again while they spell minus zero.

    How often it is drawn again says nothing about what is accepted: each try is independent.
    """
    while True:
        negative = bits.bit()
        magnitude = bits.geometric(scale)
        if not negative:
            return magnitude
        if magnitude:
            return -magnitude


@overload
def rounded_laplace(*, scale: Number, size: None = None, source: Source | None = None) -> int: ...
@overload
def rounded_laplace(*, scale: Number, size: Size, source: Source | None = None) -> Array: ...
@public()
def rounded_laplace(
    *, scale: Number, size: Size | None = None, source: Source | None = None
) -> int | Array:
    """Draw continuous Laplace noise of that scale, rounded to the nearest integer, exactly.

    *Guarantee.* Rounding is post-processing: for an integer query q, ``q + rounded_laplace(...)``
    is the rounding of q plus continuous noise, and keeps the guarantee of continuous noise.

    *Method.* The floor of twice the continuous variable is a geometric variable of twice the
    scale, mirrored (k or -k-1) by a fair sign; adding one and halving rounds to nearest.

    Raises:
        InputError: when the scale is not a positive number, or above 2**47 for an array.

    Example:
        >>> rounded_laplace(scale=0.001)
        0
    """
    double = 2 * validate.positive(at_most=None, scale=scale)
    report("rounded laplace", scale=double / 2)
    source = resolve(source)

    def one(bits: Bits) -> int:
        negative = bits.bit()
        magnitude = bits.geometric(double)
        return ((~magnitude if negative else magnitude) + 1) // 2

    if size is None:
        return one(Bits(source))
    check_scale(double)

    def many(count: int) -> Array:
        return (geometric_table(double).draw(count, "mirrored", source) + 1) // 2

    return fill(size, source, one, many)


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
        exact = validate.positive(at_most=None, sigma=sigma) ** 2
    else:
        exact = validate.positive(at_most=None, variance=variance)
    report("gaussian", variance=exact)
    if drawn_elsewhere():
        from tulle.noise import opendp_backend

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
def gaussian_table(variance: Fraction) -> SamplingTable:
    """Return the table of the magnitude of a discrete Gaussian."""
    return SamplingTable.of((FoldedGaussian(variance),), (0,))


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


Power = Literal[2, 4]


@overload
def heavy_tailed(
    *, scale: Number, power: Power, size: None = None, source: Source | None = None
) -> int: ...
@overload
def heavy_tailed(
    *, scale: Number, power: Power, size: Size, source: Source | None = None
) -> Array: ...
@public()
def heavy_tailed(
    *, scale: Number, power: Power, size: Size | None = None, source: Source | None = None
) -> int | Array:
    """Draw scale * Z rounded to the nearest integer, Z of density ∝ 1 / (1 + abs(z)^power).

    Without ``size`` the result is an int of any length. With it, the array holds Python ints
    (dtype object), since such noise has no bound that int64 could respect.

    *Guarantee.* Z may scale with a smooth bound S on sensitivity: see the reference for which
    multiple of S. Rounding an integer plus continuous noise is post-processing.

    *Error.* :func:`heavy_tailed_quantile` bounds abs(Z); rounding adds at most 1/2. For power 2
    (the Cauchy law) no mean exists; for power 4 the variance of Z is 1.

    *Method.* Ratio of uniforms: for (u, v) uniform on u² <= 1 / (1 + (v/u)^power), the ratio v/u
    has the law of Z. Both are dyadic intervals in integer arithmetic, halved until they lie
    inside or outside the region and, if inside, round to one integer.

    Raises:
        InputError: when the scale is not a positive number, or the power is neither 2 nor 4.

    Example:
        >>> isinstance(heavy_tailed(scale=10, power=4), int)
        True

    Reference: Nissim, Raskhodnikova, Smith, *Smooth sensitivity and sampling in private data
    analysis*, STOC 2007; Kinderman, Monahan, *Computer generation of random variables using the
    ratio of uniform deviates*, 1977.
    """
    exact = validate.positive(at_most=None, scale=scale)
    _check_power(power)
    report("heavy", scale=exact, power=power)
    bits = Bits(resolve(source))
    if size is None:
        return heavy_from_bits(exact, power, bits)
    out = np.empty(shape_of(size), dtype=object)
    for place in np.ndindex(out.shape):
        out[place] = heavy_from_bits(exact, power, bits)
    return out


def _check_power(power: object) -> None:
    if power not in (2, 4):
        raise InputError(f"power must be 2 or 4; got {power!r}.")


def heavy_from_bits(scale: Fraction, power: int, bits: Bits, step: int | None = None) -> int:
    """Draw one; ``step`` is how many bits extend u and v at a time.

    So many that they decide at once, but for one draw in 2**100: both sides of a cell round to one
    integer unless scale / u² is as large as 2**step.
    """
    if step is None:
        step = 320 + int(scale).bit_length()
    while True:
        magnitude = _magnitude(scale, power, bits, step)
        if magnitude is not None:
            # A sign is drawn for zero as well: else the bits that are taken would tell.
            return -magnitude if bits.bit() else magnitude


def _magnitude(scale: Fraction, power: int, bits: Bits, step: int) -> int | None:
    """Return the rounded scale * v / u for u, v uniform on [0, 1], or None outside the region."""
    u = v = width = 0
    inside = False
    numerator, denominator = scale.numerator, scale.denominator
    while True:
        u = u << step | bits.take(step)
        v = v << step | bits.take(step)
        width += step
        if not inside:
            verdict = _inside(u, v, width, power)
            if verdict is False:
                return None
            inside = verdict is True
        if inside and u:
            # The ratio lies strictly between v / (u + 1) and (v + 1) / u, but for a null set.
            low = _round_down_half(numerator * v, denominator * (u + 1))
            high = -_round_down_half(-numerator * (v + 1), denominator * u)
            if low == high:
                return low


def _round_down_half(numerator: int, denominator: int) -> int:
    """Return floor(x + 1/2). With both signs reversed: ceil(x - 1/2), which takes an open end."""
    return (2 * numerator + denominator) // (2 * denominator)


def _inside(u: int, v: int, width: int, power: int) -> bool | None:
    """Tell whether a cell [u, u+1] x [v, v+1], in units of 2**-width, is in the region or out.

    None says that it is in parts both.
    """
    one = 1 << 2 * width
    if power == 2:  # u² + v² <= 1
        if (u + 1) ** 2 + (v + 1) ** 2 <= one:
            return True
        return False if u * u + v * v > one else None
    # v⁴ <= t - t² for t = u²; the right side rises until t = 1/2 and falls after it.
    near, far = u * u, (u + 1) ** 2
    ends = near * (one - near), far * (one - far)
    if (v + 1) ** 4 <= min(ends):
        return True
    highest = one * one // 4 if 2 * near <= one <= 2 * far else max(ends)
    return False if v**4 > highest else None


@public()
def heavy_tailed_quantile(level: Number, power: Power) -> float:
    """Return a bound that abs(Z) stays below with probability at least ``level``.

    Z is the noise of :func:`heavy_tailed` before scaling. The bound is rounded outwards and
    within 1e-9, relative, of the quantile, except beyond level 1 - 1e-7, where it may be larger.

    Raises:
        InputError: when the level is not strictly between 0 and 1, or the power not 2 or 4.

    Example:
        >>> round(heavy_tailed_quantile(0.5, 2), 6)
        1.0
    """
    exact = validate.probability(level=level)
    _check_power(power)
    outside = float(1 - exact)
    if power == 2:
        # tan(pi level / 2), written with the tail, which floats keep precisely near one.
        if outside < 0.5:
            return widen_up(1 / math.tan(math.pi / 2 * outside) * (1 + 1e-13))
        return widen_up(math.tan(math.pi / 2 * round_up(exact)) * (1 + 1e-13))
    # The density is below sqrt(2) / pi / z⁴, whose two tails beyond z sum to this much.
    tail_bound = math.cbrt(2 * math.sqrt(2) / (3 * math.pi * outside)) * (1 + 1e-12)
    if outside < 1e-7:
        return tail_bound
    low, high = 0.0, tail_bound
    target = round_up(exact) + 1e-15
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _quartic_level(middle) < target else (low, middle)
    return min(tail_bound, high * (1 + 1e-10))


def _quartic_level(z: float) -> float:
    """Return P(abs(Z) <= z) for power 4."""
    root = math.sqrt(2) * z
    logarithm = math.log1p(2 * root / (z * z - root + 1)) / 2
    angle = math.atan(root + 1) + math.atan(root - 1)
    return (logarithm + angle) / math.pi
