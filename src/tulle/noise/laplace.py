"""Geometric and Laplace noise on the integers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, overload

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.exact import Number
from tulle.core.public import public
from tulle.core.source import Source
from tulle.noise import opendp_backend
from tulle.noise.bits import Bits
from tulle.noise.charge import report
from tulle.noise.shape import Size, by_value, fill, is_array
from tulle.noise.source import resolve
from tulle.noise.tables import check_scale, geometric_table, laplace_table


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
    exact = validate.positive(scale=scale)
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
    exact = validate.positive(scale=scale)
    report("laplace", scale=exact)
    if opendp_backend.active():
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
    double = 2 * validate.positive(scale=scale)
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
