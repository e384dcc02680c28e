"""Closed forms of noisy sums of products, and of a tilted logistic loss with a few features."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit

from tulle.audit.contributions.laws import BlockVector
from tulle.audit.engine.laws import Claim, Law, ratio
from tulle.core.arrays import Floats


@dataclass(frozen=True)
class MomentVector(BlockVector):
    """Independent noise on sums of products; one person moves weighted sums by at most ``total``.

    Weights are those of the claim: for Laplace noise of the coefficients of the objective, for
    Gaussian noise 1 on the diagonal and the vector, 2 off the diagonal (an entry stands for two).
    """

    weights: tuple[Fraction, ...] = ()

    def claims(self, other: BlockVector) -> Iterator[Claim]:
        power = 1 if self.noise == "laplace" else 2
        for block, cap in enumerate(self.caps):
            moved = sum(
                (
                    w * abs(a - b) ** power
                    for w, a, b, label in zip(
                        self.weights, self.centre, other.centre, self.labels, strict=True
                    )
                    if label == block
                ),
                Fraction(0),
            )
            yield Claim(
                f"weighted L{power} move of part {block}",
                ratio(float(moved), float(cap)),
                f"{float(moved):g} of {float(cap):g}",
            )


def _axis(reach: float, least: float, count: int) -> Floats:
    far = np.geomspace(least, reach, count)
    return np.concatenate((-far[::-1], [0.0], far))


def _everywhere(axis: Floats, features: int) -> Floats:
    """Return the points of a grid with this axis in each of so many directions."""
    return np.stack(np.meshgrid(*(axis,) * features, indexing="ij"), axis=-1).reshape(-1, features)


PLACES = {1: _everywhere(_axis(4000, 1e-3, 2000), 1), 2: _everywhere(_axis(400, 1e-2, 32), 2)}
"""Where minima of losses are compared, by the number of features."""

FINE, CURVE = {1: 8_001, 2: 121}, 4.0
"""How many points along each axis masses are summed over, by the number of features; and how much
closer they stand about zero."""

INSIDE = {1: 32, 2: 6}
"""At how many points along each axis the density in one bin is looked at."""

REACH = {"gaussian": 9, "laplace": 36, "knorm": 40}
"""How many times its scale noise is at most, but for a negligible part of the mass."""

Person = tuple[tuple[float, ...], bool]


def _size(noise: str, vectors: Floats) -> Floats:
    """Return lengths in the norm that noise of this kind follows."""
    order = {"gaussian": 2, "laplace": 1, "knorm": np.inf}[noise]
    return np.asarray(np.linalg.norm(vectors, ord=order, axis=1))


@dataclass(frozen=True)
class Tilted(Law):
    """The minimum of the logistic loss of people (row, y) plus L·|w|²/2 + b·w, with random b.

    The density of the minimum is that of b(w) = -slope(w) times the determinant of the curvature.
    What hides the last digits of the minimiser found comes on top as ``output`` (and ``lost``, of
    delta).
    """

    noise: str
    people: tuple[Person, ...]
    features: int
    penalty: Fraction
    scale: Fraction
    slope_move: Fraction
    """The most that one person moves the slope, in the norm of the noise, as claimed."""
    volume: Fraction
    """The most that the log of the determinant moves, as claimed."""
    output: Fraction
    lost: Fraction
    width: float
    """Drawn minima are sorted into bins of this width."""

    def _bent(self, reach: float | None = None) -> tuple[Floats, Floats]:
        return _bent(self.people, self.features, float(self.penalty), reach)

    def _logs(self, reach: float | None = None) -> Floats:
        """Return log-densities up to a constant, which is the same for all tables."""
        return self._log_density(*self._bent(reach))

    def _log_density(self, slope: Floats, volume: Floats) -> Floats:
        far = _size(self.noise, slope) / float(self.scale)
        return np.asarray(volume - (far**2 / 2 if self.noise == "gaussian" else far))

    def claims(self, other: Tilted) -> Iterator[Claim]:
        ours, theirs = self._bent(), other._bent()
        moved = float(np.max(_size(self.noise, ours[0] - theirs[0])))
        yield Claim("slope", ratio(moved, float(self.slope_move)), f"moves {moved:.4g}")
        most = float(np.max(np.abs(ours[1] - theirs[1])))
        yield Claim("volume", ratio(most, float(self.volume)), f"log moves {most:.4g}")

    def loss(self, other: Tilted) -> float:
        if (self.penalty, self.scale) != (other.penalty, other.scale):
            return math.inf
        return float(np.max(self._logs() - other._logs())) + float(self.output)

    def losses(self, other: Tilted) -> tuple[Floats, Floats]:
        reach = self._reach(REACH[self.noise])
        logs = self._logs(reach)
        masses = np.exp(logs - logs.max()) * _weighted(reach, self.features)[1]
        masses *= (1 - float(self.lost)) / masses.sum()
        found = logs - other._logs(reach) + float(self.output)
        return np.append(masses, float(self.lost)), np.append(found, math.inf)

    def _reach(self, times: float) -> float:
        """Return how far the minimum is at most while the noise is so many times its scale."""
        pulls = sum(float(np.linalg.norm(row)) for row, _ in self.people)
        # Up to a power of two, so that neighbours are mostly looked at in the same places.
        most = times * float(self.scale) + 2.0 ** math.ceil(math.log2(pulls + 1))
        return most / float(self.penalty)

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        times = 2 + math.log(4 / left_out)
        far = self._reach(math.sqrt(2 * times) if self.noise == "gaussian" else times)
        count = math.ceil(far / self.width) + 1
        bins, inside = range(-count, count + 1), INSIDE[self.features]
        within = np.arange(len(bins) * inside) + 0.5
        at = _everywhere((within / inside - count - 0.5) * self.width, self.features)
        logs = self._log_density(*_slope_and_volume(self.people, float(self.penalty), at))
        cells = np.exp(logs - logs.max()).reshape((len(bins), inside) * self.features)
        masses = cells.sum(axis=tuple(range(1, 2 * self.features, 2))).ravel()
        return list(product(bins, repeat=self.features)), masses / masses.sum()


def _slope_and_volume(people: tuple[Person, ...], penalty: float, at: Floats) -> tuple[Any, Any]:
    """Return slopes, and logs of the determinant of the curvature, at some points."""
    features = at.shape[1]
    slope = penalty * at
    curvature = np.tile(penalty * np.eye(features), (len(at), 1, 1))
    for entries, y in people:
        row = np.array(entries)
        chance = expit(at @ row)
        slope = slope + (chance - y)[:, None] * row
        curvature = curvature + (chance * (1 - chance))[:, None, None] * np.outer(row, row)
    return slope, np.log(np.linalg.det(curvature))


@lru_cache(maxsize=384)
def _bent(
    people: tuple[Person, ...], features: int, penalty: float, reach: float | None
) -> tuple[Any, Any]:
    """Return the same where minima are compared, or on the grid of masses that reaches so far."""
    at = PLACES[features] if reach is None else _weighted(reach, features)[0]
    return _slope_and_volume(people, penalty, at)


@lru_cache(maxsize=64)
def _weighted(reach: float, features: int) -> tuple[Floats, Floats]:
    """Return a grid that is finer about zero, where minima are dense, and each point's share."""
    steps = np.linspace(-CURVE, CURVE, FINE[features])
    shares = _everywhere(np.cosh(steps), features).prod(axis=1)
    return _everywhere(reach * np.sinh(steps) / math.sinh(CURVE), features), shares
