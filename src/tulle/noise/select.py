"""Choices among finitely many options: private selection by scores, and even draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from math import isfinite, lcm, prod
from typing import Any, TypeVar, overload

import numpy as np

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.errors import InputError, raise_alone
from tulle.core.public import public
from tulle.core.source import Source
from tulle.core.validate import Number, rational
from tulle.noise.source import Bits, Size, exp_bounds_of, report, resolve, shape_of

Values = Sequence[Any] | Array


@overload
def exponential(
    scores: Values,
    *,
    epsilon: Number,
    sensitivity: Number,
    size: None = None,
    source: Source | None = None,
) -> int: ...
@overload
def exponential(
    scores: Values,
    *,
    epsilon: Number,
    sensitivity: Number,
    size: Size,
    source: Source | None = None,
) -> Array: ...
@public()
def exponential(
    scores: Values,
    *,
    epsilon: Number,
    sensitivity: Number,
    size: Size | None = None,
    source: Source | None = None,
) -> int | Array:
    """Draw an index i with probability proportional to exp(epsilon score_i / (2 sensitivity)).

    Scores are ints, fractions or floats; a float counts as the binary fraction that it is.

    *Guarantee.* epsilon-DP for one draw, when one unit changes each score by at most
    ``sensitivity``; each further draw costs epsilon again.

    *Error.* With probability 1 - beta the score is within 2 sensitivity ln(n / beta) / epsilon
    of the best of n.

    Raises:
        InputError: when there is no score, one is not finite, or epsilon or sensitivity is not
            above zero.

    Example:
        >>> exponential([0, 5000], epsilon=1, sensitivity=1)
        1

    Reference: McSherry, Talwar, *Mechanism design via differential privacy*, FOCS 2007.
    """
    losses = _losses(scores, epsilon, sensitivity)
    report("exponential", epsilon=epsilon, sensitivity=sensitivity)
    return _choose(Choice(losses, None), size, source)


@public()
def permute_and_flip(
    scores: Values,
    *,
    epsilon: Number,
    sensitivity: Number,
    source: Source | None = None,
) -> int:
    """Draw an index by walking through the options in random order and flipping a coin at each.

    The coin of option i says yes with probability exp(-epsilon (best - score_i) / (2
    sensitivity)); the first yes is the answer.

    *Guarantee.* epsilon-DP, when one unit changes each score by at most ``sensitivity``.

    *Error.* Never worse in expectation than :func:`exponential`, up to twice as good.

    Raises:
        InputError: as :func:`exponential`.

    Example:
        >>> permute_and_flip([0, 5000], epsilon=1, sensitivity=1)
        1

    Reference: McKenna, Sheldon, *Permute-and-Flip*, NeurIPS 2020.
    """
    losses = _losses(scores, epsilon, sensitivity)
    report("permute and flip", epsilon=epsilon, sensitivity=sensitivity)
    bits = Bits(resolve(source))
    # All coins are flipped and the whole order is drawn, although the first yes decides: when it
    # comes must not be seen from outside.
    coins = [bits.exponential(loss.numerator, loss.denominator) for loss in losses]
    waiting = list(range(len(losses)))
    chosen = 0
    for left in range(len(losses), 0, -1):
        place = bits.below(left)
        waiting[place], waiting[left - 1] = waiting[left - 1], waiting[place]
    # The best option always says yes, so that one is found.
    for index in waiting:
        chosen = index if coins[index] else chosen
    return chosen


@overload
def choose_log_weights(
    exponents: Values,
    *,
    per: Number = 1,
    multiplicities: Iterable[int] | None = None,
    size: None = None,
    source: Source | None = None,
) -> int: ...
@overload
def choose_log_weights(
    exponents: Values,
    *,
    per: Number = 1,
    multiplicities: Iterable[int] | None = None,
    size: Size | None,
    source: Source | None = None,
) -> int | Array: ...
@public()
def choose_log_weights(
    exponents: Values,
    *,
    per: Number = 1,
    multiplicities: Iterable[int] | None = None,
    size: Size | None = None,
    source: Source | None = None,
) -> int | Array:
    """Draw an index i with probability proportional to multiplicity_i * exp(-per * exponent_i).

    Exactly so: ``per`` is a fraction, which spares writing whole numbers as fractions.
    Multiplicities are whole numbers of any length (1 when left out); an option of multiplicity 0
    is never drawn. Exponents are ints, fractions or floats, the latter as binary fractions.

    *Method.* The cumulative weights and a uniform real are enclosed in intervals, which are
    refined until they decide.

    Raises:
        InputError: when there is no option, or the numbers are not as said.

    Example:
        >>> choose_log_weights([0, 0], multiplicities=[0, 10**100])
        1
    """
    counts = _whole_numbers(multiplicities)
    times = validate.positive(at_most=None, per=per)
    choice = Choice(_exact_values(exponents, "exponents"), counts, times)
    report("choice", exponents=exponents, per=times, multiplicities=counts)
    return _choose(choice, size, source)


def _choose(choice: Choice, size: Size | None, source: Source | None) -> int | Array:
    bits = Bits(resolve(source))
    if size is None:
        return choice.draw(bits)
    shape = shape_of(size)
    drawn = [choice.draw(bits) for _ in range(prod(shape))]
    return np.array(drawn, dtype=np.int64).reshape(shape)


class Choice:
    """Weights multiplicity_i * exp(-per * exponent_i), enclosed as tightly as a draw needs."""

    def __init__(
        self,
        exponents: Sequence[int | Fraction],
        multiplicities: list[int] | None,
        per: Fraction = Fraction(1),
    ) -> None:
        if multiplicities is None:
            multiplicities = [1] * len(exponents)
        if len(multiplicities) != len(exponents):
            raise InputError("multiplicities must be as many as exponents.")
        possible = [c for c, m in zip(exponents, multiplicities, strict=True) if m]
        if not possible:
            raise InputError("At least one option must have a multiplicity above zero.")
        least = min(possible)
        # A common factor changes no probability; this one makes all exponents at least zero.
        self._exponents = [
            c - least if m else None for c, m in zip(exponents, multiplicities, strict=True)
        ]
        self._multiplicities, self._per = multiplicities, per
        self._levels: dict[int, tuple[list[int], list[int]]] = {}

    def draw(self, bits: Bits, step: int = 64) -> int:
        """Draw an index, taking ``step`` random bits at a time until they decide.

        They decide at once, but for one draw in 2**64 / options.
        """
        uniform = known = 0
        precision = 128
        while True:
            uniform = uniform << step | bits.take(step)
            known += step
            lows, highs = self._cumulative(precision)
            # The weights must be finer than the bits, or more bits could not help.
            while (highs[-1] - lows[-1]) << known + 8 > lows[-1]:
                precision *= 2
                lows, highs = self._cumulative(precision)
            index = self._decide(uniform, known, lows, highs)
            if index is not None:
                return index

    @staticmethod
    def _decide(uniform: int, known: int, lows: list[int], highs: list[int]) -> int | None:
        """Return the index that every real with these first bits picks, if there is one."""
        index = _rank(highs, uniform * lows[-1] >> known)
        if index < len(highs) and (uniform + 1) * highs[-1] <= lows[index] << known:
            return index
        return None

    def _cumulative(self, precision: int) -> tuple[list[int], list[int]]:
        """Return lower and upper bounds of the sums of weights up to each option."""
        if precision not in self._levels:
            enclosed = _enclose(self._exponents, self._per, precision)
            lows = [n * low for n, (low, _) in zip(self._multiplicities, enclosed, strict=True)]
            highs = [n * high for n, (_, high) in zip(self._multiplicities, enclosed, strict=True)]
            self._levels[precision] = list(accumulate(lows)), list(accumulate(highs))
        return self._levels[precision]


_GUARD = 64
"""Bits beyond the precision: as many products as there are options round less than one of it."""


def _enclose(
    exponents: Sequence[int | Fraction | None], per: Fraction, precision: int
) -> list[tuple[int, int]]:
    """Return bounds of 2**precision·exp(-per·x) for each x, both zero where there is none.

    Each is the one before, in rising order, times exp of the gap between them; a gap that comes up
    again is not worked out again. Products are rounded outwards.
    """
    shared = lcm(*{x.denominator for x in exponents if x is not None})
    numbers = [None if x is None else x.numerator * (shared // x.denominator) for x in exponents]
    wide = precision + _GUARD
    low = high = 1 << wide
    before = 0
    factors: dict[int, tuple[int, int]] = {}
    known: dict[int | None, tuple[int, int]] = {None: (0, 0)}
    for number in sorted({x for x in numbers if x is not None}):
        gap = number - before
        if gap not in factors:
            factors[gap] = exp_bounds_of(gap * per.numerator, shared * per.denominator, wide)
        least, most = factors[gap]
        low, high, before = low * least >> wide, -(-high * most >> wide), number
        known[number] = low >> _GUARD, -(-high >> _GUARD)
    return [known[number] for number in numbers]


def _rank(limits: list[int], value: int) -> int:
    """Return how many sorted limits are at most the value, in as many steps whatever it is."""
    index, half = 0, 1 << len(limits).bit_length()
    last = len(limits) - 1
    while half := half >> 1:
        place = index + half - 1
        index += half * (place <= last and limits[min(place, last)] <= value)
    return index


def _losses(scores: Values, epsilon: Number, sensitivity: Number) -> list[Fraction]:
    """Return epsilon (best - score) / (2 sensitivity) for each score."""
    factor = validate.positive(at_most=None, epsilon=epsilon) / (
        2 * validate.positive(at_most=None, sensitivity=sensitivity)
    )
    exact = _exact_values(scores, "scores")
    best = max(exact)
    return [(best - score) * factor for score in exact]


def _exact_values(values: Values, name: str) -> list[int | Fraction]:
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if not listed:
        raise InputError(f"{name} must hold at least one number.")
    try:
        return [_exact(value) for value in listed]
    except (ValueError, TypeError):
        # The value itself stays out of the message: scores are computed from records.
        raise_alone(InputError(f"{name} must be finite numbers."))


def _exact(value: Any) -> int | Fraction:
    if type(value) is int:
        return value
    if isinstance(value, float):
        if not isfinite(value):
            raise ValueError
        return Fraction(value)
    return rational(value)


def _whole_numbers(values: Iterable[int] | None) -> list[int] | None:
    if values is None:
        return None
    return [validate.whole(multiplicities=value, at_least=0, at_most=None) for value in values]


Items = TypeVar("Items", list[Any], np.ndarray[Any, Any])


@overload
def uniform_below(bound: int, size: None = None, source: Source | None = None) -> int: ...
@overload
def uniform_below(bound: int, size: Size, source: Source | None = None) -> Array: ...
@public()
def uniform_below(
    bound: int, size: Size | None = None, source: Source | None = None
) -> int | Array:
    """Draw an integer in [0, bound), each with the same probability, exactly.

    Without ``size`` the bound may have any length; else the result is an int64 array.

    Raises:
        InputError: when the bound is not a whole number above zero, or above 2**63 with ``size``.

    Example:
        >>> uniform_below(1), 0 <= uniform_below(10**40) < 10**40
        (0, True)
    """
    bound = validate.whole(bound=bound, at_least=1, at_most=None)
    report("uniform", bound=bound)
    source = resolve(source)
    if size is None:
        # The bound may itself have been drawn: the number of bits must not tell it.
        return Bits(source).scaled(bound)
    if bound > 2**63:
        raise InputError("bound must be at most 2**63 for an array of draws; use size=None.")
    shape = shape_of(size)
    out = np.empty(prod(shape), dtype=np.int64)
    # A word is used when it falls into a whole number of cycles of the bound, else thrown away.
    width = 32 if bound <= 2**24 else 64
    limit = (1 << width) // bound * bound
    done = 0
    while done < len(out):
        batch = min(len(out) - done, 1 << 16)
        words = np.frombuffer(source.read(batch * width // 8), dtype=f"<u{width // 8}")
        if limit < 1 << width:
            words = words[words < limit]
        out[done : done + len(words)] = words % words.dtype.type(bound)
        done += len(words)
    return out.reshape(shape)


@public()
def permutation(count: int, source: Source | None = None) -> Array:
    """Draw one of the orders of 0, ..., count - 1, each with the same probability, exactly.

    *Method.* Random keys are sorted. Keys that are all different are in each order equally
    often; if two are equal, all are drawn again.

    Raises:
        InputError: when the count is not a whole number of at least zero.

    Example:
        >>> sorted(permutation(4).tolist())
        [0, 1, 2, 3]
    """
    count = validate.whole(count=count, at_least=0)
    report("permutation", count=count)
    source = resolve(source)
    while True:
        keys = np.frombuffer(source.read(8 * count), dtype="<u8")
        order = _sorting(keys)
        ranked = keys[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order.astype(np.int64, copy=False)


def _sorting(keys: Array) -> Array:
    """Return the order that sorts 64-bit keys, by digits: in as many steps whatever they are."""
    order = np.arange(len(keys))
    for digit in np.ascontiguousarray(keys).view("<u2").reshape(len(keys), 4).T:
        # Sixteen bits at a time are sorted by counting and not by comparing.
        order = order[np.argsort(digit[order], kind="stable")]
    return order


@public()
def shuffle(items: Items, source: Source | None = None) -> Items:
    """Return a copy of a list, or of an array's rows, in a uniformly random order.

    Example:
        >>> sorted(shuffle(["a", "b"]))
        ['a', 'b']
    """
    order = permutation(len(items), source)
    if isinstance(items, np.ndarray):
        return items[order]
    return [items[place] for place in order.tolist()]
