"""Closed forms of noisy sums of products, and of a tilted logistic loss with one feature."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import laplace, norm

from tulle.audit.contributions.laws import BlockVector
from tulle.audit.engine.laws import Claim, Floats, Law, ratio


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


GRID = np.concatenate((-np.geomspace(4000, 1e-3, 2000), [0.0], np.geomspace(1e-3, 4000, 2000)))
FINE = 8_001


@dataclass(frozen=True)
class Tilted(Law):
    """The minimum of the logistic loss of rows (a, y) plus L·w²/2 + b·w, with random b.

    K-norm noise on one number is Laplace noise.

    The density of the minimum is that of b(w) = -slope(w) times the curvature. What hides the
    last digits of the minimiser found comes on top as ``output`` (and ``lost``, of delta).
    """

    noise: str
    people: tuple[tuple[float, bool], ...]
    penalty: Fraction
    spread: Fraction
    slope_move: Fraction
    """The most that one person moves the slope, as claimed."""
    volume: Fraction
    """The most that the log of the curvature moves, as claimed."""
    output: Fraction
    lost: Fraction
    width: float = 0.5
    """Drawn minima are sorted into bins of this width."""

    def _slope(self, at: Floats) -> Floats:
        total = float(self.penalty) * at
        for a, y in self.people:
            total = total + (expit(a * at) - y) * a
        return np.asarray(total)

    def _curvature(self, at: Floats) -> Floats:
        total = np.full(at.shape, float(self.penalty))
        for a, _ in self.people:
            chance = expit(a * at)
            total = total + a * a * chance * (1 - chance)
        return total

    def _logs(self, at: Floats) -> Floats:
        """Return log-densities up to a constant, which is the same for all tables."""
        far = np.abs(self._slope(at)) / float(self.spread)
        density = -(far**2) / 2 if self.noise == "gaussian" else -far
        return np.asarray(density + np.log(self._curvature(at)))

    def claims(self, other: Tilted) -> Iterator[Claim]:
        moved = float(np.max(np.abs(self._slope(GRID) - other._slope(GRID))))
        yield Claim("slope", ratio(moved, float(self.slope_move)), f"moves {moved:.4g}")
        logs = np.log(self._curvature(GRID)) - np.log(other._curvature(GRID))
        most = float(np.max(np.abs(logs)))
        yield Claim("volume", ratio(most, float(self.volume)), f"log moves {most:.4g}")

    def loss(self, other: Tilted) -> float:
        if (self.penalty, self.spread) != (other.penalty, other.spread):
            return math.inf
        return float(np.max(self._logs(GRID) - other._logs(GRID))) + float(self.output)

    def losses(self, other: Tilted) -> tuple[Floats, Floats]:
        at = self._range()
        masses = np.exp(self._logs(at))
        masses *= (1 - float(self.lost)) / masses.sum()
        found = self._logs(at) - other._logs(at) + float(self.output)
        return np.append(masses, float(self.lost)), np.append(found, math.inf)

    def _range(self) -> Floats:
        """Return evenly spaced points that hold all but a negligible part of the mass."""
        reach = float(self.spread) * (9 if self.noise == "gaussian" else 36)
        most = (reach + sum(abs(a) for a, _ in self.people)) / float(self.penalty)
        return np.linspace(-most, most, FINE)

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        law = norm if self.noise == "gaussian" else laplace
        most = (
            float(self.spread) * (4 + math.log(2 / left_out)) + sum(abs(a) for a, _ in self.people)
        ) / float(self.penalty)
        count = math.ceil(most / self.width) + 1
        bins = np.arange(-count, count + 1)
        edges = (np.append(bins, bins[-1] + 1) - 0.5) * self.width
        # The minimum is at most x when the slope at x is at least zero: b >= -slope(x).
        below = law.cdf(self._slope(edges) / float(self.spread))
        return bins.tolist(), np.diff(below)


AXIS = np.concatenate((-np.geomspace(400, 1e-2, 24), [0.0], np.geomspace(1e-2, 400, 24)))
PLANE = np.stack(np.meshgrid(AXIS, AXIS), axis=-1).reshape(-1, 2)
"""Where minima of losses with two features are compared."""


@dataclass(frozen=True)
class TiltedPlane(Law):
    """The same with two features, where it matters in which norm the slope's move is bounded."""

    noise: str
    people: tuple[tuple[float, float, bool], ...]
    penalty: Fraction
    spread: Fraction
    slope_move: Fraction
    """The most that one person moves either number of the slope, as claimed."""
    volume: Fraction
    output: Fraction

    def claims(self, other: TiltedPlane) -> Iterator[Claim]:
        ours, theirs = _plane(self.people, self.penalty), _plane(other.people, other.penalty)
        moved = float(np.max(np.abs(ours[0] - theirs[0])))
        yield Claim("slope", ratio(moved, float(self.slope_move)), f"moves {moved:.4g}")
        most = float(np.max(np.abs(ours[1] - theirs[1])))
        yield Claim("volume", ratio(most, float(self.volume)), f"log moves {most:.4g}")

    def _logs(self) -> Floats:
        slope, volume = _plane(self.people, self.penalty)
        sizes = np.abs(slope).max(axis=1) if self.noise == "knorm" else np.abs(slope).sum(axis=1)
        return np.asarray(volume - sizes / float(self.spread))

    def loss(self, other: TiltedPlane) -> float:
        if (self.penalty, self.spread) != (other.penalty, other.spread):
            return math.inf
        return float(np.max(self._logs() - other._logs())) + float(self.output)

    def losses(self, other: TiltedPlane) -> tuple[Floats, Floats]:
        raise NotImplementedError("only pure guarantees are examined with two features")

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        raise NotImplementedError("runs are drawn with one feature")


@lru_cache(maxsize=2048)
def _plane(people: tuple[tuple[float, float, bool], ...], penalty: Fraction) -> Any:
    """Return slopes and logs of the determinant of the curvature, all over the plane."""
    slope = float(penalty) * PLANE
    curvature = np.tile(float(penalty) * np.eye(2), (len(PLANE), 1, 1))
    for *entries, y in people:
        row = np.array(entries)
        chance = expit(PLANE @ row)
        slope = slope + (chance - y)[:, None] * row
        curvature = curvature + (chance * (1 - chance))[:, None, None] * np.outer(row, row)
    return slope, np.log(np.linalg.det(curvature))
