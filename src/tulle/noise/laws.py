"""Laws on 0, 1, 2, ... given by certified bounds on their cumulative probabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import ClassVar

from tulle.noise.source import exp_bounds

Bounds = tuple[int, int]


class Law(ABC):
    """A law on the whole numbers from 0, sampled by comparing random bits with thresholds.

    Subclasses are frozen and hashable: their thresholds are computed once and kept.
    """

    finite: ClassVar[bool] = False

    @abstractmethod
    def cumulative(self, precision: int) -> Iterator[Bounds]:
        """Yield, for k = 0, 1, ..., integers that enclose ``2**precision * P(X <= k)``.

        A law on finitely many values ends with exactly ``2**precision``. One on infinitely many
        goes on until 1 is inside the bounds, and then ends.
        """

    def floors(self, bits: int) -> list[int]:
        """Return ``floor(2**bits * P(X <= k))`` for k = 0, 1, ..., all of them certain.

        The list ends at the first value from which on the floor no longer changes: ``2**bits``
        for a law on finitely many values, else ``2**bits - 1``.
        """
        return _floors(self, bits)


@lru_cache(maxsize=256)  # a long list of large integers each
def _floors(law: Law, bits: int) -> list[int]:
    guard = 64
    while True:
        found = _certain_floors(law, bits, guard)
        if found is not None:
            return found
        guard *= 2


def _certain_floors(law: Law, bits: int, guard: int) -> list[int] | None:
    top = 1 << bits
    result = []
    for low, high in law.cumulative(bits + guard):
        if low == high == top << guard:
            result.append(top)
            return result
        floor = low >> guard
        # Below one in truth, whatever the upper bound says: only the last value reaches one.
        if floor != min(high >> guard, top - 1):
            return None
        result.append(floor)
        if floor == top - 1 and not law.finite:
            return result
    return None


def _powers(ratio: Bounds, precision: int) -> Iterator[Bounds]:
    """Yield bounds of ratio, ratio², ratio³, ... in units of ``2**-precision``."""
    low, high = ratio
    while True:
        yield low, high
        low = low * ratio[0] >> precision
        high = -(-high * ratio[1] >> precision)


@dataclass(frozen=True)
class Geometric(Law):
    """P(k) proportional to exp(-k / scale), for k >= 0."""

    scale: Fraction

    def cumulative(self, precision: int) -> Iterator[Bounds]:
        """Yield bounds of 1 - r^(k+1), where r = exp(-1 / scale)."""
        one = 1 << precision
        for low, high in _powers(exp_bounds(1 / self.scale, precision), precision):
            yield one - high, one - low


@dataclass(frozen=True)
class TruncatedGeometric(Law):
    """P(k) proportional to exp(-k / scale), for 0 <= k < count."""

    finite: ClassVar[bool] = True
    scale: Fraction
    count: int

    def cumulative(self, precision: int) -> Iterator[Bounds]:
        """Yield bounds of (1 - r^(k+1)) / (1 - r^count), where r = exp(-1 / scale)."""
        # The denominator is about count/scale when that is small: so many bits are lost.
        width = precision + 2 * max(0, int(self.scale).bit_length()) + 16
        one = 1 << width
        total_low, total_high = exp_bounds(self.count / self.scale, width)
        powers = _powers(exp_bounds(1 / self.scale, width), width)
        for _ in range(self.count - 1):
            low, high = next(powers)
            yield (
                ((one - high) << precision) // (one - total_low),
                -(-((one - low) << precision) // (one - total_high)),
            )
        yield 1 << precision, 1 << precision


@dataclass(frozen=True)
class FoldedLaplace(Law):
    """The magnitude of a discrete Laplace: P(k) proportional to exp(-k / scale), halved at 0."""

    scale: Fraction

    def cumulative(self, precision: int) -> Iterator[Bounds]:
        """Yield bounds of 1 - 2 r^(k+1) / (1 + r), where r = exp(-1 / scale)."""
        one = 1 << precision
        ratio = exp_bounds(1 / self.scale, precision)
        for low, high in _powers(ratio, precision):
            yield (
                one - -(-(high << precision + 1) // (one + ratio[0])),
                one - (low << precision + 1) // (one + ratio[1]),
            )


@dataclass(frozen=True)
class FoldedGaussian(Law):
    """The magnitude of a discrete Gaussian: P(k) ∝ exp(-k² / (2 variance)), halved at 0."""

    variance: Fraction

    def cumulative(self, precision: int) -> Iterator[Bounds]:
        """Yield bounds of the partial sums of the weights over their whole sum."""
        width = precision + int(self.variance).bit_length() + 16
        one = 1 << width
        weights = self._weights(width)
        total_low = one + 2 * sum(low for low, _ in weights)
        total_high = one + 2 * sum(high for _, high in weights)
        # What follows the last weight falls at least as fast as a geometric sequence does.
        ratio = exp_bounds(len(weights) / self.variance, width)[1]
        total_high += 2 * -(-(weights[-1][1] << width) // (one - ratio)) + 2
        part_low = part_high = one
        yield (one << precision) // total_high, -(-(one << precision) // total_low)
        for low, high in weights:
            part_low += 2 * low
            part_high += 2 * high
            yield (
                (part_low << precision) // total_high,
                -(-(part_high << precision) // total_low),
            )

    def _weights(self, width: int) -> list[Bounds]:
        """Return bounds of exp(-k² / (2 variance)) for k = 1, 2, ... until they are negligible."""
        # exp(-k²/2v) < 2**-width once k² > 2 v width ln 2; and 7/10 exceeds ln 2.
        count = isqrt(int(self.variance * width * 14) // 10) + 2
        step_low, step_high = exp_bounds(1 / self.variance, width)
        factor_low, factor_high = low, high = exp_bounds(1 / (2 * self.variance), width)
        weights = [(low, high)]
        for _ in range(count):
            factor_low = factor_low * step_low >> width
            factor_high = -(-factor_high * step_high >> width)
            low = low * factor_low >> width
            high = -(-high * factor_high >> width)
            weights.append((low, high))
        return weights
