"""Noise with polynomial tails, for mechanisms calibrated to smooth sensitivity."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal, overload

import numpy as np

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.errors import InputError
from tulle.core.exact import Number, round_up, widen_up
from tulle.core.public import public
from tulle.core.source import Source
from tulle.noise.bits import Bits
from tulle.noise.charge import report
from tulle.noise.shape import Size, shape_of
from tulle.noise.source import resolve

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
    exact = validate.positive(scale=scale)
    _check_power(power)
    report("heavy", scale=exact, power=power)
    bits = Bits(resolve(source))
    if size is None:
        return _draw(exact, power, bits)
    out = np.empty(shape_of(size), dtype=object)
    for place in np.ndindex(out.shape):
        out[place] = _draw(exact, power, bits)
    return out


def _check_power(power: object) -> None:
    if power not in (2, 4):
        raise InputError(f"power must be 2 or 4; got {power!r}.")


def _draw(scale: Fraction, power: int, bits: Bits, step: int | None = None) -> int:
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
