"""K-norm noise in L-infinity on the integers: one radius for all numbers of a vector."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np

from tulle.core import validate
from tulle.core.arrays import Wholes
from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.core.source import Source
from tulle.core.validate import Number
from tulle.noise.source import Bits, report, resolve
from tulle.noise.tables import FEW, LARGEST_SCALE, geometric_table

LARGEST_RADIUS = 2**60
"""So large may (count + 128)·scale be: the radius is beyond 2**63 once in 2**1000 draws then."""

_GUARD = 64
"""Bits by which a coin's chance is enclosed; those that do not decide are computed in full."""


@public()
def discrete_knorm(*, scale: Number, count: int, source: Source | None = None) -> Wholes:
    """Draw ``count`` integers x with probability proportional to exp(-max abs(x_i) / scale).

    *Guarantee.* Added to integers of which one unit moves each by at most D, all at once,
    scale = D / epsilon is epsilon-DP: max abs(x_i) is a norm, and moves by at most D.

    *Error.* The standard deviation of each number is about count·scale/sqrt(3) where there are
    many; independent Laplace noise for the same bound has sqrt(2)·count·scale.

    *Method.* With q = exp(-1/scale), exp(-m/scale) is the sum of (1 - q)·q^R over all R >= m. So x
    is uniform in the cube {-R, ..., R}^count, where R has the weight (2R + 1)^count·q^R. The sum of
    count + 1 geometric variables has the weight binomial(R + count, count)·q^R, and is accepted
    with the chance (2R + 1)^count / ((2R + 2)·(2R + 4)···(2R + 2·count)), a third or more.

    Raises:
        InputError: when the count is not a whole number above zero, or the scale is below half the
            count, or too large for 64-bit integers.

    Example:
        >>> discrete_knorm(scale=40, count=3).shape
        (3,)

    Reference: Hardt & Talwar, *On the geometry of differential privacy*, STOC 2010.
    """
    exact = validate.positive(at_most=None, scale=scale)
    numbers = validate.whole(count=count, at_least=1)
    if 2 * exact < numbers:
        raise InputError(
            f"scale must be at least half of count = {numbers}. Count in smaller steps: twice as "
            "many steps have twice the scale."
        )
    if (numbers + 128) * exact > LARGEST_RADIUS or exact > LARGEST_SCALE:
        raise InputError("scale is too large for 64-bit integers; count in larger steps.")
    report("knorm", scale=exact)
    source = resolve(source)
    bits = Bits(source)
    radius = _radius(exact, numbers, bits, source)
    width = 2 * radius + 1
    return np.array([bits.scaled(width) - radius for _ in range(numbers)], dtype=np.int64)


def _radius(scale: Fraction, count: int, bits: Bits, source: Source) -> int:
    """Draw the radius of the cube.

    How often it is drawn again says nothing about what is accepted: each try is independent.
    """
    while True:
        if count < FEW or bits.step == 1:
            radius = sum(bits.geometric(scale) for _ in range(count + 1))
        else:
            radius = int(geometric_table(scale).draw(count + 1, "magnitude", source).sum())

        def floor(known: int, radius: int = radius) -> tuple[int, bool]:
            return accepted_floor(radius, count, known)

        if bits.less(floor):
            return radius


def accepted_floor(radius: int, count: int, known: int) -> tuple[int, bool]:
    """Return the floor of 2**known times the chance to accept, and whether it is exact."""
    top = 2 * radius + 1
    low = high = 1 << known + _GUARD
    for bottom in range(top + 1, top + 2 * count, 2):
        low = low * top // bottom
        high = -(-high * top // bottom)
    if low >> _GUARD == high >> _GUARD:
        return low >> _GUARD, False
    # The chance is a multiple of 2**-known, or very near one.
    whole = prod(range(top + 1, top + 2 * count, 2))
    quotient, rest = divmod(top**count << known, whole)
    return quotient, rest == 0
