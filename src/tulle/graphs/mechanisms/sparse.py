"""Vectors most of whose entries are small beside their noise: zero where noise alone decides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Floats, Wholes
from tulle.core.error_law import LaplaceLaw

_STEPS = 16
"""How many thresholds are compared, from nought to the highest."""

_AT_ONCE = 2**14
"""How many entries are looked at together."""

_SURE = 2.0
"""By how many standard errors a lower threshold must look better than the highest.

Chosen among 1 to 4 on vectors of zeros and on polbooks; one more costs networks of few nodes up to
a quarter, one less makes zeros worse."""


@lru_cache(maxsize=64)
def highest_threshold(count: int) -> float:
    """Return above which size noise of scale one would be a hundredth in so many entries together.

    count·E[z; z > t] = count·(t + 1)·exp(-t)/2 = 1/100; of fewer than a hundred entries, as much as
    one of them is of all. On polbooks, netscience, polblogs and ca-GrQc a tenth was up to a tenth
    worse than zeros where noise is large, and never better.
    """
    entries, reach = max(count, 1), 1.0
    for _ in range(60):
        reach = math.log(min(entries, 100) * entries / 2) + math.log1p(reach)
        reach = max(reach, 0.0)
    return reach


def keep_large(noisy: Wholes, scale: float) -> tuple[Wholes, int]:
    """Set entries to zero that are below a threshold, and return it too. Post-processing.

    *Error.* At the highest threshold, and with noise of scale s, entries that are all zero are off
    by s/100 in all of them together; whatever they are, by no more than that beyond what all zeros
    would be, but for entries near half the threshold. A lower one is taken where it is better by
    more than chance. What a threshold costs is r(x) for an entry x, and for Laplace noise
    E[r(x + Z) - s²·r''(x + Z)] = r(x): so the noisy entries themselves tell the sum of r without
    bias, and its standard error.
    """
    entries = np.asarray(noisy, dtype=np.float64) / scale
    highest = highest_threshold(entries.size)
    tried = np.linspace(0.0, highest, _STEPS, endpoint=False)
    gain, squares = np.zeros(_STEPS), np.zeros(_STEPS)
    for part in np.array_split(entries, entries.size // _AT_ONCE + 1):
        saved = _estimates(part, highest) - _estimates(part, tried[:, None])
        gain += saved.sum(axis=1)
        squares += (saved**2).sum(axis=1)
    surely = gain - _SURE * np.sqrt(squares)
    best = int(surely.argmax())
    chosen = float(tried[best]) if surely[best] > 0 else highest
    limit = math.floor(chosen * scale)
    return np.where(noisy > limit, noisy, 0), limit


def expected_error(truth: Wholes, scale: float) -> float:
    """Return about the mean error of :func:`keep_large` on entries that are known."""
    entries = np.asarray(truth, dtype=np.float64) / scale
    highest = highest_threshold(entries.size)
    tried = np.linspace(0.0, highest, _STEPS + 1).tolist()
    return scale * min(float(_risks(entries, one)[0].mean()) for one in tried)


def _risks(entries: Floats, threshold: float | Floats) -> tuple[Floats, Floats]:
    """Return E|kept - x| for entries x and noise of scale one, and its second derivative.

    Kept is x + Z where that is above the threshold t, and zero otherwise. For x <= t, with
    u = t - x, it is x·(1 - exp(-u)/2) + (u + 1)·exp(-u)/2; for x > t, with w = x - t, it is
    x·exp(-w)/2 + 1 - (w + 1)·exp(-w)/2.
    """
    away = np.abs(entries - threshold)
    half = np.exp(-away) / 2
    below = entries <= threshold
    risk = np.where(
        below,
        entries * (1 - half) + (away + 1) * half,
        entries * half + 1 - (away + 1) * half,
    )
    curve = np.where(below, -half * (3 + entries - away), -half * (1 - entries + away))
    return risk, curve


def _estimates(entries: Floats, threshold: float | Floats) -> Floats:
    risk, curve = _risks(entries, threshold)
    return np.asarray(risk - curve)


def kept_interval(value: Any, width: float, threshold: int) -> tuple[Any, Any]:
    """Return the ends for entries of which those up to a threshold were set to zero."""
    known = np.asarray(value, dtype=np.float64)
    return known - width, np.where(known > 0, known, float(threshold)) + width


@registry.register("law", "graph", "sparse laplace")
@dataclass(frozen=True)
class SparseLaplaceLaw(LaplaceLaw):
    """Laplace noise, after which entries up to a threshold were set to zero."""

    threshold: int = 0
    name: ClassVar[str] = "sparse laplace"

    def interval(self, value: Any, level: float) -> tuple[Any, Any]:
        """Return the ends; an entry that is zero may have been as large as the threshold."""
        return kept_interval(value, super().half_width(level), self.threshold)

    def half_width(self, level: float) -> float:
        """Return the half-width for any entry."""
        return super().half_width(level) + self.threshold
