"""How wrong a statistic is that was drawn from a ladder of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Floats
from tulle.core.error_law import ErrorLaw, check_level
from tulle.core.exact import widen_up
from tulle.graphs.mechanisms.ladder import ladder_half_width

THOUSANDTH = 7
"""Minus the logarithm of about a thousandth: what the whole range weighs where profiles end."""

_BLOCKS = 500
"""Into how many pieces either side of the level's noise is cut; each counts as its worst end."""

_IGNORED = 1e-6
"""The part of the failure probability at which the level's noise is cut off, and charged."""

_LARGEST, _STEEP, _ROUNDING = 300.0, 50.0, 1e-9
"""Exponents beyond which numbers would overflow, and what covers rounding."""


@registry.register("law", "graph", "direct")
@dataclass(frozen=True)
class StatisticLadderLaw(ErrorLaw):
    """The error when the first width is known through its private level only.

    The released level is ℓ + Z: K_0 <= exp(slope·ℓ) bounds the widths, of which rung t has at most
    K_0·exp(slope·t), and Z is discrete Laplace noise. The half-width is exp(slope·(ℓ + Z)) times
    the least factor c for which

        Σ_z P(Z = z)·T(c·exp(slope·z)) <= 1 - level,

    where T(y) bounds the probability of an error above y·exp(slope·ℓ). Answer and level have
    independent noise, so this is the probability that the interval misses; keeping a part of it
    for a level that is too low would take wider ones. Where the widths that are drawn from may
    grow faster than K, they can overtake it far out; that far is charged as a miss.
    """

    decay: Fraction
    smoothing: Fraction
    slope: Fraction
    units: int
    most: int
    spread: int
    spread_scale: Fraction
    name: ClassVar[str] = "direct"

    def half_width(self, level: float) -> float:
        """Return the half-width at the level, at most the whole range."""
        factor = self.factor(1 - check_level(level))
        # Widths are at least one, so the true level is never below nought.
        reach = float(self.slope) * max(self.spread, 0) + math.log(factor)
        # One step for the place of a number in its rung, one for rounding the statistic.
        steps = math.exp(reach) + 2 if reach < math.log(self.most) else self.most
        return widen_up(min(steps, self.most) / self.units)

    def factor(self, failure: float) -> float:
        """Return c: how many first widths the interval reaches, or all when that is too few."""
        ends, chances, ignored = self._level_noise(failure)
        shifts = np.exp(np.minimum(float(self.slope) * ends, _LARGEST))

        if self.slope < self.smoothing:
            ignored += math.exp(-THOUSANDTH * max(float(self.decay / self.smoothing) - 1, 0.0))

        def missed(factor: float) -> float:
            return ignored + float(chances @ self.tail(factor * shifts))

        low, high = 0.0, 1.0
        while missed(high) > failure:
            high *= 2
            if high >= self.most:
                return float(self.most)
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if missed(middle) > failure else (low, middle)
        return high * (1 + _ROUNDING)

    def tail(self, reach: Floats) -> Floats:
        """Bound the probability of an error above ``reach``, in units of exp(slope·ℓ).

        With widths that grow by at most exp(smoothing) the rung exceeds r with probability at most
        exp(-rate·r), rate = decay - smoothing. An error beyond r rungs and a share s of the next
        one needs a rung above r, and if it is r + 1 a place beyond that share of it: numbers of
        a rung are equally likely.
        """
        slope, rate = float(self.slope), float(self.decay - self.smoothing)
        if rate <= 0:
            return np.ones_like(reach)
        if slope > _STEEP:
            # One rung at most is told apart: the next are too wide to be reached.
            rungs = np.floor(np.minimum(reach, 1.0))
            before, width = rungs, np.where(rungs > 0, np.inf, 1.0)
        else:
            rungs = np.floor(np.log1p(reach * math.expm1(slope)) / slope)
            before, width = np.expm1(slope * rungs) / math.expm1(slope), np.exp(slope * rungs)
        share = np.clip((reach - before) / width, 0.0, 1.0)
        return np.asarray(np.exp(-rate * rungs) * (1 + share * math.expm1(-rate)))

    def _level_noise(self, failure: float) -> tuple[Floats, Floats, float]:
        """Return pieces of the level's noise: lower end, probability; and what is left out."""
        if self.spread_scale == 0:
            return np.zeros(1), np.ones(1), 0.0
        rate = 1 / float(self.spread_scale)
        farthest = math.ceil(-math.log(failure * _IGNORED) / rate)
        step = -(-farthest // _BLOCKS)
        ends = np.arange(-farthest, farthest + 1, step, dtype=np.float64)
        # P(Z >= z), from the tails of the discrete Laplace law.
        above = np.exp(-rate * np.abs(np.where(ends > 0, ends, ends - 1))) / (1 + math.exp(-rate))
        above = np.where(ends > 0, above, 1 - above)
        chances = above - np.append(above[1:], 0.0)
        return ends, chances, 1 - float(above[0])


@dataclass(frozen=True)
class KnownStatisticLadderLaw(ErrorLaw):
    """The error of a ladder whose widths are known, as those of a public stand-in are."""

    decay: Fraction
    units: int
    most: int
    widths: tuple[int, ...]
    name: ClassVar[str] = "known direct"

    def half_width(self, level: float) -> float:
        """Return the half-width at the level."""
        failure = 1 - check_level(level)
        steps = ladder_half_width(list(self.widths), self.most, self.decay, failure)
        return (steps + 1) / self.units
