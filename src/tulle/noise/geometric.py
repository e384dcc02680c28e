"""Geometric noise: the one-sided law that the others are made of."""

from __future__ import annotations

from typing import overload

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.exact import Number
from tulle.core.public import public
from tulle.core.source import Source
from tulle.noise.bits import Bits
from tulle.noise.charge import report
from tulle.noise.shape import Size, fill
from tulle.noise.source import resolve
from tulle.noise.tables import check_scale, geometric_table


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
