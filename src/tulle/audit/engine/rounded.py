"""Continuous noise on a smooth bound, rounded to whole numbers: exact masses of each cell."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tulle.audit.engine.laws import Centred, Claim, log_ratio, ratio
from tulle.core.arrays import Floats, Wholes

_PLACES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


@dataclass(frozen=True)
class Rounded(Centred):
    """Centre plus (bound / alpha) times a variable of fixed shape, rounded to nearest."""

    centre: int
    bound: Fraction
    alpha: Fraction
    beta: Fraction

    @property
    def scale(self) -> float:
        """The factor on the variable."""
        return float(self.bound / self.alpha)

    def claims(self, other: Rounded) -> Iterator[Claim]:
        moved = abs(self.centre - other.centre)
        yield Claim(
            "bound covers",
            ratio(moved, float(self.bound)),
            f"moves {moved}, S = {float(self.bound):.6g}",
        )
        yield Claim(
            "bound is smooth",
            log_ratio(other.bound, self.bound, self.beta),
            f"S' / S = {float(other.bound / self.bound):.6g}, beta = {float(self.beta):.4g}",
        )

    @abstractmethod
    def logs(self, values: Wholes) -> Floats:
        """Return the log-probabilities of the values, to a relative 1e-13."""

    @abstractmethod
    def reach(self, left_out: float) -> int:
        """Return a distance from the centre beyond which at most that much mass lies."""

    def largest_ratio(self, other: Rounded) -> float:
        values = self._far(other)
        return float(np.max(self.logs(values) - other.logs(values)))

    def _far(self, other: Rounded) -> Wholes:
        """Return all values near the centres, and sparser ones to a million scales away."""
        near = math.ceil(30 * max(self.scale, other.scale)) + abs(self.centre - other.centre) + 2
        far = np.geomspace(near, near * 1e5, 200).astype(np.int64)
        reach = np.concatenate([-far[::-1], np.arange(-near, near + 1), far])
        return np.unique(np.concatenate([self.centre + reach, other.centre + reach]))

    def ratios(self, other: Rounded) -> tuple[Floats, Floats]:
        far = self.reach(1e-16) + abs(self.centre - other.centre)
        values = self.centre + np.arange(-far, far + 1)
        logs = self.logs(values)
        return np.exp(logs), logs - other.logs(values)

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        far = self.reach(left_out)
        values = self.centre + np.arange(-far, far + 1)
        return values.tolist(), np.exp(self.logs(values))


@dataclass(frozen=True)
class RoundedLaplace(Rounded):
    """The shape is Laplace: masses of cells are differences of exponentials."""

    def logs(self, values: Wholes) -> Floats:
        """Return ln of exp(-(|k| - 1/2)/b)·(1 - exp(-1/b))/2, and of 1 - exp(-1/(2b)) at 0."""
        rate = 1 / self.scale
        distance = np.abs(values - self.centre)
        away = -(distance - 0.5) * rate + math.log(-math.expm1(-rate) / 2)
        return np.where(distance == 0, math.log(-math.expm1(-rate / 2)), away)

    def reach(self, left_out: float) -> int:
        return math.ceil(-self.scale * math.log(left_out)) + 1


@dataclass(frozen=True)
class RoundedHeavy(Rounded):
    """The shape has density proportional to 1 / (1 + z⁴)."""

    def logs(self, values: Wholes) -> Floats:
        distance = np.abs(values - self.centre)
        near = _near_logs(self.scale)
        listed = distance < len(near)
        found = near[np.where(listed, distance, 0)]
        found[~listed] = _cell_logs(distance[~listed], self.scale)
        return found

    def reach(self, left_out: float) -> int:
        # Two tails of at most sqrt(2) / (3·pi·z³) each. Heavy tails never become negligible.
        return math.ceil(self.scale * min(math.cbrt(0.31 / left_out), 1e4)) + 1


@lru_cache(maxsize=256)
def _near_logs(scale: float) -> Floats:
    """Return the log-probabilities of all cells within forty scales, which most comparisons use."""
    return _cell_logs(np.arange(math.ceil(40 * scale) + 8), scale)


def _cell_logs(distance: Wholes, scale: float) -> Floats:
    """Integrate the density over each cell; beyond one in the variable 1/z, flat there."""
    low = np.maximum(distance - 0.5, 0.0) / scale
    high = (distance + 0.5) / scale
    inner = _integral(np.minimum(low, 1.0), np.minimum(high, 1.0), inverted=False)
    outer = _integral(1 / np.maximum(high, 1.0), 1 / np.maximum(low, 1.0), inverted=True)
    mass = (inner + outer) * (math.sqrt(2) / math.pi)
    return np.asarray(np.log(np.where(distance == 0, 2 * mass, mass)), dtype=np.float64)


def _integral(low: Floats, high: Floats, *, inverted: bool) -> Floats:
    """Integrate 1/(1 + x⁴), or u²/(1 + u⁴) for x = 1/u, between points of [0, 1]."""
    half = (high - low)[:, None] / 2
    x = (high + low)[:, None] / 2 + half * _PLACES
    square = x * x
    density = (square if inverted else 1.0) / (1 + square * square)
    return np.asarray((density * half) @ _WEIGHTS, dtype=np.float64)
