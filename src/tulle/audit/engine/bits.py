"""Closed forms of noise on bits: whole patterns that are XORed on, and independent coins."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tulle.audit.engine.laws import Claim, Law
from tulle.core.arrays import Floats
from tulle.core.validate import rational
from tulle.noise.xor.patterns import flip_probability


class Noise:
    """The law of a noise pattern: log-probabilities by pattern, a number with a bit per cell.

    Compared by identity, so that tables of long laws stay fast: use one object for one law.
    """

    def __init__(self, exponents: Any) -> None:
        logs = np.asarray(exponents, dtype=np.float64)
        top = float(logs.max())
        self.logs: Floats = logs - (top + math.log(float(np.exp(logs - top).sum())))


@dataclass(frozen=True)
class BitPattern(Law):
    """A pattern of noise XORed onto the true bits."""

    truth: int
    noise: Noise

    def claims(self, other: BitPattern) -> Iterator[Claim]:
        """Yield that the noise does not look at the data: neighbours have the same law."""
        same = np.array_equal(self.noise.logs, other.noise.logs)
        figure = "one law" if same else "neighbours have different laws of noise"
        yield Claim("noise ignores data", 0.0 if same else math.inf, figure)

    def loss(self, other: BitPattern) -> float:
        """Return the largest log-ratio; it depends only on where the true bits differ."""
        return _loss(self.noise, other.noise, self.truth ^ other.truth)

    def losses(self, other: BitPattern) -> tuple[Floats, Floats]:
        places = np.arange(len(self.noise.logs))
        logs = self.noise.logs[places ^ self.truth]
        return np.exp(logs), logs - other.noise.logs[places ^ other.truth]

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        places = np.arange(len(self.noise.logs))
        return places.tolist(), np.exp(self.noise.logs[places ^ self.truth])


@lru_cache(maxsize=4096)
def _loss(one: Noise, other: Noise, difference: int) -> float:
    places = np.arange(len(one.logs))
    possible = one.logs > -math.inf
    return float(np.max(one.logs[possible] - other.logs[places ^ difference][possible]))


@dataclass(frozen=True)
class Coins(Law):
    """Independent bits: bit i is 1 with chance ``ones[true bit i]``."""

    truth: tuple[int, ...]
    ones: tuple[Any, Any]
    """The chance of a released 1 for a true 0, and for a true 1: floats, or decimals if exact."""
    zeros: tuple[Any, Any] | None = None
    """The chances of a released 0, where one less the others would lose digits."""

    def claims(self, other: Coins) -> Iterator[Claim]:
        """Yield that one unit is one bit, with the same coins on both sides."""
        moved = sum(a != b for a, b in zip(self.truth, other.truth, strict=True))
        same = self.ones == other.ones
        yield Claim("one bit per unit", float(moved) if same else math.inf, f"{moved} bits differ")

    def loss(self, other: Coins) -> float:
        total = 0.0
        for a, b in zip(self.truth, other.truth, strict=True):
            if a != b:
                p, q = self.ones[a], other.ones[b]
                total += max(_log_ratio(p, q), _log_ratio(self._zero(a), other._zero(b)))
        return total

    def _zero(self, bit: int) -> Any:
        """Return the chance of a released 0; where coins are alike, without losing digits."""
        if self.zeros is not None:
            return self.zeros[bit]
        alike = self.ones[0] + self.ones[1] == 1
        return self.ones[1 - bit] if alike else 1 - self.ones[bit]

    def losses(self, other: Coins) -> tuple[Floats, Floats]:
        masses = self.points(0.0)[1]
        return masses, np.log(masses) - np.log(other.points(0.0)[1])

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        masses = np.array([1.0])
        for bit in self.truth:
            chance = float(self.ones[bit])
            masses = np.concatenate([masses * (1 - chance), masses * chance])
        return list(range(len(masses))), masses


@lru_cache(maxsize=1024, typed=True)
def _log_ratio(p: Any, q: Any) -> float:
    if p == 0:
        return -math.inf
    if q == 0:
        return math.inf
    if isinstance(p, Decimal) and isinstance(q, Decimal):
        with localcontext() as context:
            context.prec = _DIGITS
            return float(p.ln() - q.ln())
    return math.log(p) - math.log(q)


_DIGITS = 60


def exact_coins(truth: tuple[int, ...], epsilon: Fraction) -> Coins:
    """Return coins that flip each bit with chance 1 / (1 + exp(epsilon)), to sixty digits.

    Example:
        >>> from fractions import Fraction
        >>> exact_coins((0,), Fraction(10**4)).loss(exact_coins((1,), Fraction(10**4)))
        10000.0
    """
    with localcontext() as context:
        context.prec = _DIGITS
        shrink = (-Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        keep = 1 / (1 + shrink)
        flip = shrink * keep
    return Coins(truth, (flip, keep), (keep, flip))


def response_coins(truth: tuple[int, ...], settings: Mapping[str, Any]) -> Coins:
    """Return the coins of a response: exact where its chances are those of its epsilon."""
    invent, keep = settings["invent"], settings["keep"]
    if "epsilon" in settings:
        epsilon = rational(settings["epsilon"])
        flip = flip_probability(epsilon)
        if (invent, keep) == (flip, 1 - flip):
            return exact_coins(truth, epsilon)
    return Coins(truth, (invent, keep))


def kept_coins(truth: tuple[int, ...], skip: Fraction, keep: Fraction) -> Coins:
    """Return coins that invent a one with chance 1 - exp(-1 / skip), and keep one with another."""
    with localcontext() as context:
        context.prec = 2 * _DIGITS
        absent = (-Decimal(skip.denominator) / Decimal(skip.numerator)).exp()
        held, lost = (Decimal(x.numerator) / Decimal(x.denominator) for x in (keep, 1 - keep))
        return Coins(truth, (1 - absent, held), (absent, lost))


def number_of(bits: Any) -> int:
    """Return bits as one number, the first bit least significant."""
    return int(sum(int(bit) << place for place, bit in enumerate(np.asarray(bits).ravel())))
