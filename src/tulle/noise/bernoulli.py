"""Exact coins: rational probabilities, and exp(-x) for rational x."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import prod
from typing import overload

import numpy as np

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.core.source import Source
from tulle.core.validate import Number
from tulle.noise.source import Bits, Size, exp_bounds, is_array, report, resolve, shape_of
from tulle.noise.tables import by_value

_FEW_COINS = 2048
"""Up to so many coins have 128 bits each, and need no compiled code."""


@overload
def bernoulli(  # type: ignore[overload-overlap]
    p: Array, size: None = None, source: Source | None = None
) -> Array: ...
@overload
def bernoulli(p: Number, size: None = None, source: Source | None = None) -> bool: ...
@overload
def bernoulli(p: Number | Array, size: Size, source: Source | None = None) -> Array: ...
@public()
def bernoulli(
    p: Number | Array, size: Size | None = None, source: Source | None = None
) -> bool | Array:
    """Draw True with probability p, exactly.

    Without ``size`` the result is a bool, else an array of them. An array of probabilities gives
    one draw per entry.

    Raises:
        InputError: when p is not a number in [0, 1].

    Example:
        >>> bernoulli(1), bernoulli("0/3", size=2)
        (True, array([False, False]))
    """
    if is_array(p):
        drawn = by_value(p, "p", size, lambda each, n: bernoulli(each, n, source))
        return drawn.astype(np.bool_)
    exact = validate.non_negative(at_most=None, p=p)
    if exact > 1:
        raise InputError(f"p must be at most 1; got {p!r}.")
    report("coin", p=exact)
    source = resolve(source)
    if size is None:
        return Bits(source).fraction(exact.numerator, exact.denominator)
    shape = shape_of(size)

    def floor(known: int) -> tuple[int, bool]:
        quotient, rest = divmod(exact.numerator << known, exact.denominator)
        return quotient, rest == 0

    return fixed_coins(floor, prod(shape), source).reshape(shape)


def fixed_coins(floor: Callable[[int], tuple[int, bool]], count: int, source: Source) -> Array:
    """Flip coins of one probability p, in as many steps whatever they show.

    ``floor(n)`` returns the floor of 2**n·p and whether it is exact. Few: 128 bits each. Many: a
    byte each is compared with the first byte of p, and for those that tie, one in 256, a further
    word with the next 63 bits of p. Words are read for more ties than there ever are. Coins that
    tie again, one in 2**71, are settled by themselves.
    """
    bits = Bits(source)
    if count <= _FEW_COINS:
        return _few_coins(floor, count, bits, source)
    from tulle.noise import kernels as _kernels  # numba is slow to import

    threshold, rest = floor(8)[0], floor(8 + 63)[0] & (1 << 63) - 1
    first = np.frombuffer(source.read(count), dtype=np.uint8)
    expected = count / 256
    spare = int(expected + 12 * expected**0.5) + 32
    out = np.empty(count, dtype=np.uint8)
    more = np.empty(0, dtype=np.int64)
    used, again = 1, 0
    while used > len(more):  # once: more than twelve deviations beyond what is expected are rare
        words = np.frombuffer(source.read(8 * spare), dtype="<u8") >> np.uint64(1)
        more = np.append(more, words.astype(np.int64))
        used, again = _kernels.flip_coins(first, more, threshold, rest, out)
    if again and not floor(8 + 63)[1]:
        known = (threshold << 63) + rest
        for place in np.flatnonzero(out == 2).tolist():
            out[place] = bits.less(floor, known, 8 + 63)
    return np.asarray(out == 1)


def _few_coins(
    floor: Callable[[int], tuple[int, bool]], count: int, bits: Bits, source: Source
) -> Array:
    if bits.step == 1:  # a tape is read bit by bit
        return np.array([bits.less(floor) for _ in range(count)], dtype=np.bool_)
    whole, exact = floor(128)
    if whole >> 128:
        source.read(16 * count)
        return np.ones(count, dtype=np.bool_)
    words = np.frombuffer(source.read(16 * count), dtype="<u8").reshape(count, 2)
    high, low = np.uint64(whole >> 64), np.uint64(whole & (1 << 64) - 1)
    same = words[:, 1] == high
    out = (words[:, 1] < high) | same & (words[:, 0] < low)
    for place in [] if exact else np.flatnonzero(same & (words[:, 0] == low)).tolist():
        out[place] = bits.less(floor, whole, 128)
    return np.asarray(out)


@overload
def bernoulli_exp(  # type: ignore[overload-overlap]
    x: Array, size: None = None, source: Source | None = None, *, denominator: int = 1
) -> Array: ...
@overload
def bernoulli_exp(
    x: Number, size: None = None, source: Source | None = None, *, denominator: int = 1
) -> bool: ...
@overload
def bernoulli_exp(
    x: Number | Array, size: Size, source: Source | None = None, *, denominator: int = 1
) -> Array: ...
@public()
def bernoulli_exp(
    x: Number | Array,
    size: Size | None = None,
    source: Source | None = None,
    *,
    denominator: int = 1,
) -> bool | Array:
    """Draw True with probability exp(-x / denominator), exactly.

    An array of integers or floats gives one draw per entry; its floats count as the binary
    fractions that they are, whereas a single float counts as the decimal that it prints.

    *Method.* One draw: a series of rational coins. An array: 64 bits against exp in floating
    point with a margin of 2**-40, assumed to cover the errors of the mathematical library; the
    draws inside the margin are settled in integer arithmetic.

    Raises:
        InputError: when x is negative or not finite, or the denominator is not in [1, 2**63].

    Example:
        >>> bernoulli_exp(0), bernoulli_exp(10**9)
        (True, False)
    """
    denominator = validate.whole(denominator=denominator, at_least=1, at_most=None)
    if denominator > 2**63:
        raise InputError("denominator must be at most 2**63.")
    report("exponential coin", x=x, denominator=denominator)
    source = resolve(source)
    if is_array(x):
        entries = np.asarray(x)
        if size is not None and shape_of(size) != entries.shape:
            raise InputError("size must equal the shape of the array x, or be left out.")
        if entries.dtype.kind not in "iuf" or not (np.isfinite(entries) & (entries >= 0)).all():
            raise InputError("x must hold finite numbers of at least zero.")
        flat = entries.reshape(-1)

        def fraction_at(place: int) -> Fraction:
            return Fraction(flat[place].item()) / denominator

        approximate = flat.astype(np.float64) / denominator
        return exponential_coins(approximate, fraction_at, source).reshape(entries.shape)
    fraction = validate.non_negative(at_most=None, x=x) / denominator
    if size is None:
        return Bits(source).exponential(fraction.numerator, fraction.denominator)
    shape = shape_of(size)
    approximate = np.full(prod(shape), float(min(fraction, Fraction(2**60))))
    return exponential_coins(approximate, lambda _: fraction, source).reshape(shape)


def exponential_coins(
    approximate: Array, exact: Callable[[int], Fraction], source: Source
) -> Array:
    """Draw Bernoulli(exp(-x)) for each x, given to 2**-40 and, by place, exactly."""
    from tulle.noise import kernels as _kernels  # numba is slow to import

    count = len(approximate)
    raw = np.frombuffer(source.read(8 * count), dtype="<u8")
    words = raw.astype(np.uint64, copy=False)
    verdicts = np.empty(count, dtype=np.uint8)
    if _kernels.accept_exponential(approximate, words, verdicts):
        bits = Bits(source)
        for place in np.flatnonzero(verdicts == 2).tolist():
            verdicts[place] = settle_exponential(exact(place), int(words[place]), 64, bits)
    return verdicts.view(np.bool_)


def settle_exponential(x: Fraction, uniform: int, known: int, bits: Bits) -> bool:
    """Tell whether a uniform real is below exp(-x), given its first bits; draw more if needed."""
    while True:
        low, high = exp_bounds(x, known)
        if uniform < low:
            return True
        if uniform >= high:
            return False
        uniform = uniform << 64 | bits.take(64)
        known += 64
