"""Laws of how many bits a noise pattern flips, with certified cumulative probabilities.

Both laws here are exchangeable: given the number of flipped bits, every set of that size is
equally likely. So the number is all that has to be drawn with care.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np

from tulle.core.arrays import Array
from tulle.noise.source import exp_bounds
from tulle.noise.tables import Bounds, TableLaw

_LONG = 500
"""Above this length the numbers of patterns are enclosed instead of written out."""

_DIGITS = 62
"""Bits to which probabilities are known for predictions."""


class Moments(NamedTuple):
    """What estimators need to know about a line of exchangeable noise bits."""

    flip: float
    """The probability that a given bit is flipped."""
    covariance: float
    """The covariance of the flips of two given bits of one line."""


class Counts(TableLaw):
    """A law on 0, ..., length: the number of flipped bits in a line of so many."""

    finite: ClassVar[bool] = True
    length: int

    def masses(self) -> Array:
        """Return the probabilities of 0, ..., length to within 2**-62."""
        floors = [0, *self.floors(_DIGITS)]
        steps = [b - a for a, b in pairwise(floors)]
        return np.array(steps, dtype=np.float64) / 2.0**_DIGITS

    def moments(self) -> Moments:
        """Return the flip probability and the covariance of two flips."""
        masses = self.masses()
        count = np.arange(self.length + 1, dtype=np.float64)
        flip = float(masses @ count) / self.length
        if self.length == 1:
            return Moments(flip, 0.0)
        pairs = float(masses @ (count * (count - 1))) / (self.length * (self.length - 1))
        return Moments(flip, pairs - flip * flip)


@dataclass(frozen=True)
class TwoLevelPatterns(Counts):
    """Patterns of at most ``cut`` flips are exp(epsilon) times as likely as all the others.

    *Guarantee.* Any two patterns differ by a factor of at most exp(epsilon), so a line XORed with
    one is epsilon-private whatever happens to all of its bits.

    *Error.* With the best cut no epsilon-private way to release the line has fewer expected wrong
    bits, in the worst case over lines. Averaging a mechanism over all x -> M(x xor r) xor r keeps
    its guarantee and makes it XOR noise; and among noises, weights between 1 and exp(epsilon)
    that minimise the mean (a ratio of linear forms) are extreme: high below the mean, low above.
    """

    epsilon: Fraction
    length: int
    cut: int

    @classmethod
    def best(cls, epsilon: Fraction, length: int) -> TwoLevelPatterns:
        """Return the law with the cut that flips the fewest bits on average.

        Example:
            >>> TwoLevelPatterns.best(Fraction(1), 16).cut
            7
        """
        return cls(epsilon, length, _best_cut(epsilon, length))

    def cumulative(self, precision: int) -> Iterator[Bounds]:
        """Yield bounds of the sums of C(length, k), those above the cut times exp(-epsilon)."""
        # Only ratios count, so the numbers of patterns may be relative to the largest one.
        width = precision + 2 * self.length.bit_length() + 24
        heavy = exp_bounds(self.epsilon, width)
        one = 1 << width
        lows, highs = [], []
        for count, (low, high) in enumerate(_patterns(self.length, width)):
            factor = (one, one) if count <= self.cut else heavy
            lows.append(low * factor[0])
            highs.append(high * factor[1])
        yield from _shares(lows, highs, precision)


@dataclass(frozen=True)
class Coupled(Counts):
    """k flips weigh C(length, k)·exp(field·k + coupling·k·(k - 1)).

    This is a column of the matrix-valued Bernoulli law whose parameter matrices are multiples of
    the identity: every flip has the same weight, and so has every pair of flips in one column.

    *Guarantee.* One more flip among the others' k multiplies the weight of a pattern by
    exp(field + 2·coupling·k), so one cell costs the larger of |field| and
    |field + 2·coupling·(length - 1)|: the exponent is linear in k.
    """

    field: Fraction
    coupling: Fraction
    length: int

    def price(self) -> Fraction:
        """Return the exact epsilon for one changed cell."""
        return max(abs(self.field), abs(self.field + 2 * self.coupling * (self.length - 1)))

    def cumulative(self, precision: int) -> Iterator[Bounds]:
        """Yield bounds of the partial sums of the weights over their whole sum."""
        width = precision + 2 * self.length.bit_length() + 24
        weights = self._weights(width)
        middle = (self.length - 1) // 2
        balanced = self.length % 2 and self.field == -self.coupling * (self.length - 1)
        lows, highs = (list(ends) for ends in zip(*weights, strict=True))
        for count, bounds in enumerate(_shares(lows, highs, precision)):
            if balanced and count == middle:
                # Weights that mirror each other: exactly one half, which no enclosure can show.
                yield 1 << precision - 1, 1 << precision - 1
            else:
                yield bounds

    def _weights(self, width: int) -> list[Bounds]:
        """Return bounds of the weights relative to one near the largest, in 2**-width.

        From one k to the next the weight is multiplied by (length - k) / (k + 1) and by
        exp(field + 2·coupling·k), which itself is multiplied by exp(2·coupling).
        """
        start = self._near_mode()
        one = 1 << width
        weights: list[Bounds] = [(0, 0)] * (self.length + 1)
        weights[start] = one, one
        for direction in (1, -1):
            low = high = one
            count = start
            for factor in self._factors(start, direction, width):
                up, down = (
                    (self.length - count, count + 1)
                    if direction > 0
                    else (count, self.length - count + 1)
                )
                low = (low * factor[0] * up >> width) // down
                high = -(-high * factor[1] * up // (down << width))
                count += direction
                weights[count] = low, high
        return weights

    def _factors(self, start: int, direction: int, width: int) -> Iterator[Bounds]:
        """Yield bounds of exp(±(field + 2·coupling·k)) for the steps away from ``start``."""
        steps = range(start, self.length) if direction > 0 else range(start - 1, -1, -1)
        if self.length <= 256 or self.price() > 16:
            # A factor far below the last digit kept must not be multiplied up again.
            for k in steps:
                yield _exp(direction * (self.field + 2 * self.coupling * k), width)
            return
        growth = _exp(2 * self.coupling, width)
        for k in steps:
            if k == steps[0]:
                low, high = _exp(direction * (self.field + 2 * self.coupling * k), width)
            yield low, high
            low, high = low * growth[0] >> width, -(-high * growth[1] >> width)

    def _near_mode(self) -> int:
        """Return a k whose weight is near the largest; any k is correct, a good one is cheap."""
        from scipy.special import gammaln

        k = np.arange(self.length + 1, dtype=np.float64)
        ways = gammaln(self.length + 1) - gammaln(k + 1) - gammaln(self.length - k + 1)
        return int(np.argmax(ways + float(self.field) * k + float(self.coupling) * k * (k - 1)))


def _shares(lows: list[int], highs: list[int], precision: int) -> Iterator[Bounds]:
    """Yield bounds of the partial sums of enclosed weights over their whole sum; the last is 1."""
    part_low = part_high = 0
    rest_low, rest_high = sum(lows), sum(highs)
    for low, high in zip(lows[:-1], highs[:-1], strict=True):
        part_low, part_high = part_low + low, part_high + high
        rest_low, rest_high = rest_low - low, rest_high - high
        yield (
            (part_low << precision) // (part_low + rest_high),
            -(-(part_high << precision) // (part_high + rest_low)),
        )
    yield 1 << precision, 1 << precision


def _exp(x: Fraction, width: int) -> Bounds:
    """Return integers that enclose 2**width · exp(x), for x of either sign."""
    low, high = exp_bounds(abs(x), width)
    if x <= 0:
        return low, high
    guard = width + 2 * int(x) + 8
    low, high = exp_bounds(x, guard)
    return (1 << width + guard) // high, -(-(1 << width + guard) // low)


def _best_cut(epsilon: Fraction, length: int) -> int:
    """Return the cut with the least mean; nothing private depends on it being the best."""
    from scipy.special import gammaln

    k = np.arange(length + 1, dtype=np.float64)
    ways = gammaln(length + 1) - gammaln(k + 1) - gammaln(length - k + 1)
    weights = np.exp(ways - ways.max())
    few = weights * -np.expm1(-float(epsilon))
    heavy = np.exp(-float(epsilon)) * weights
    totals = np.cumsum(few) + heavy.sum()
    flips = np.cumsum(few * k) + (heavy * k).sum()
    # Far below the centre of a long line all is zero in floating point: no cut is there.
    known = totals[:-1] > 0
    means = np.full(length, np.inf)
    np.divide(flips[:-1], totals[:-1], out=means, where=known)
    return int(np.argmin(means))


@lru_cache(maxsize=8)
def _patterns(length: int, width: int) -> tuple[Bounds, ...]:
    """Return how many patterns have 0, ..., length ones: exactly, or relative and enclosed."""
    if length > _LONG:
        return tuple(Coupled(Fraction(0), Fraction(0), length)._weights(width))
    numbers = [1]
    for k in range(length // 2):
        numbers.append(numbers[-1] * (length - k) // (k + 1))
    whole = (*numbers, *reversed(numbers[: (length + 1) // 2]))
    return tuple((number, number) for number in whole)
