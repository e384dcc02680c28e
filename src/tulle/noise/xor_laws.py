"""Laws of how many bits a noise pattern flips, with certified cumulative probabilities.

Both laws here are exchangeable: given the number of flipped bits, every set of that size is
equally likely. So the number is all that has to be drawn with care.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tulle.noise.exponent import exp_bounds
from tulle.noise.laws import Bounds, Law

Array = np.ndarray[Any, Any]

_DIGITS = 62
"""Bits to which probabilities are known for predictions."""


class Moments(NamedTuple):
    """What estimators need to know about a line of exchangeable noise bits."""

    flip: float
    """The probability that a given bit is flipped."""
    covariance: float
    """The covariance of the flips of two given bits of one line."""


class Counts(Law):
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
class TwoLevel(Counts):
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
    def best(cls, epsilon: Fraction, length: int) -> TwoLevel:
        """Return the law with the cut that flips the fewest bits on average.

        Example:
            >>> TwoLevel.best(Fraction(1), 16).cut
            7
        """
        return cls(epsilon, length, _best_cut(epsilon, length))

    def cumulative(self, precision: int) -> Iterator[Bounds]:
        """Yield bounds of the sums of C(length, k), those above the cut times exp(-epsilon)."""
        patterns = _binomials(self.length)
        # Only ratios count: the total is about 2**length, and it bounds what rounding can do.
        width = precision + 8
        low, high = exp_bounds(self.epsilon, width)
        one = 1 << width
        below = sum(patterns[: self.cut + 1])
        above = (1 << self.length) - below
        total_low, total_high = below * one + above * low, below * one + above * high
        part_low = part_high = 0
        for count, number in enumerate(patterns[:-1]):
            part_low += number * (one if count <= self.cut else low)
            part_high += number * (one if count <= self.cut else high)
            # What is left out of the part takes part in the total at the same enclosure.
            yield (
                (part_low << precision) // (part_low + total_high - part_high),
                -(-(part_high << precision) // (part_high + total_low - part_low)),
            )
        yield 1 << precision, 1 << precision


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
        lows = list(accumulate(low for low, _ in weights))
        highs = list(accumulate(high for _, high in weights))
        middle = (self.length - 1) // 2
        balanced = self.length % 2 and self.field == -self.coupling * (self.length - 1)
        for count in range(self.length):
            if balanced and count == middle:
                # Weights that mirror each other: exactly one half, which no enclosure can show.
                yield 1 << precision - 1, 1 << precision - 1
                continue
            low, high = lows[count], highs[count]
            yield (
                (low << precision) // (low + highs[-1] - high),
                -(-(high << precision) // (high + lows[-1] - low)),
            )
        yield 1 << precision, 1 << precision

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
            factor = _exp(
                direction * (self.field + 2 * self.coupling * self._step(start, direction)), width
            )
            growth = _exp(2 * self.coupling, width)
            low = high = one
            count = start
            while 0 <= count + direction <= self.length:
                up, down = (
                    (self.length - count, count + 1)
                    if direction > 0
                    else (count, self.length - count + 1)
                )
                low = (low * factor[0] * up >> width) // down
                high = -(-high * factor[1] * up // (down << width))
                factor = factor[0] * growth[0] >> width, -(-factor[1] * growth[1] >> width)
                count += direction
                weights[count] = low, high
        return weights

    @staticmethod
    def _step(start: int, direction: int) -> int:
        """Return the k of the first ratio in this direction: from k to k + 1, either way."""
        return start if direction > 0 else start - 1

    def _near_mode(self) -> int:
        """Return a k whose weight is near the largest; any k is correct, a good one is cheap."""
        from scipy.special import gammaln

        k = np.arange(self.length + 1, dtype=np.float64)
        ways = gammaln(self.length + 1) - gammaln(k + 1) - gammaln(self.length - k + 1)
        return int(np.argmax(ways + float(self.field) * k + float(self.coupling) * k * (k - 1)))


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
    scale = 96
    high = 1 << scale
    low = exp_bounds(epsilon, scale)[1]
    patterns = _binomials(length)
    total = low << length
    flips = low * length << max(length - 1, 0)
    best: tuple[int, int, int] | None = None
    for cut, number in enumerate(patterns[:-1]):
        total += number * (high - low)
        flips += number * cut * (high - low)
        if best is not None and flips * best[1] >= best[0] * total:
            break  # the mean falls until the cut passes it, and rises from there on
        best = flips, total, cut
    assert best is not None
    return best[2]


@lru_cache(maxsize=8)
def _binomials(length: int) -> tuple[int, ...]:
    numbers = [1]
    for k in range(length // 2):
        numbers.append(numbers[-1] * (length - k) // (k + 1))
    mirrored = numbers[: (length + 1) // 2]
    return (*numbers, *reversed(mirrored))
