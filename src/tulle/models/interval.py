"""How far released coefficients are from the minimum without noise, from public numbers alone.

Let F be the loss with its penalty, t its minimum, and w the minimum of F tilted by b. Then the
gradient of F at w is -b. The logistic loss has a third derivative of at most its second times the
length of a row (Bach, Self-concordant analysis for logistic regression, EJS 2010): with rows of
length sqrt(R) at most, penalty L, and curvature of the losses at w of at least C in all directions,

    |b| >= C·(1 - exp(-sqrt(R)·r)) / sqrt(R) + L·r,   r = |w - t|,

whatever the data. The right side grows with r without end, so a bound on |b|, whose law is public,
bounds r. C is zero, or a lower bound that a share of epsilon bought.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Floats
from tulle.core.error_law import ErrorLaw, check_level
from tulle.core.validate import widen_up

_LATTICES = 1 + 2.0**-20
"""Covers that noise is on a lattice of 2^-45 of its spread, and rounding in floating point."""


@registry.register("law", "table", "minimum")
@dataclass(frozen=True)
class MinimumLaw(ErrorLaw):
    """Released coefficients against the minimum of the same loss and penalty without noise.

    The ends hold for all coefficients at once. All fields are public.
    """

    noise: str
    spread: float
    """Of the tilt; ``output`` that of the noise on the minimum."""
    output: float
    penalty: float
    tolerance: float
    """How long a gradient may be where the minimum was taken for found."""
    row: float
    """The longest row, its intercept included."""
    lengths: tuple[float, ...]
    """How far each coefficient moves, in its own units, for a move of length one; ``sums`` for one
    of largest entry one."""
    sums: tuple[float, ...]
    curvature: float = 0.0
    """A noisy least curvature of the losses, and the scale of its Laplace noise."""
    curvature_scale: float = 0.0
    name: ClassVar[str] = "minimum"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", tuple(self.lengths))
        object.__setattr__(self, "sums", tuple(self.sums))

    @property
    def leaves_out(self) -> str:
        return (
            "The interval is about the coefficients of the same fit without noise, its penalty of "
            f"{self.penalty:.3g} included, and not about a fit without a penalty."
        )

    def widths(self, level: float) -> Floats:
        """Return how far each coefficient may be off, all at once with this probability."""
        alpha = 1 - check_level(level)
        count = len(self.lengths)
        known = 0.0
        if self.curvature_scale > 0:
            known = self.curvature - self.curvature_scale * math.log(2 / alpha)
        tilt = tilt_length(self.noise, self.spread, count, alpha / 2)
        entry = self.output * (output_reach(self.noise, count, alpha / 4) + 2.0**-10)
        near = self.tolerance * _LATTICES / self.penalty
        away = near + math.sqrt(count) * entry
        least = max(known, 0.0) * math.exp(-self.row * away)
        reach = radius(tilt, self.penalty, least, self.row) + near
        return np.array(
            [
                widen_up(length * reach + total * entry)
                for length, total in zip(self.lengths, self.sums, strict=True)
            ]
        )

    def half_width(self, level: float) -> float:
        """Return that of the coefficient that may be off most."""
        return float(self.widths(level).max())

    def interval(self, value: Any, level: float) -> tuple[Any, Any]:
        """Return the ends for each coefficient."""
        widths = self.widths(level)
        return value - widths, value + widths


def tilt_length(noise: str, spread: float, count: int, alpha: float) -> float:
    """Return what the Euclidean length of the tilt exceeds with this probability at most.

    K-norm noise is a length with a gamma law times a point of the cube's surface: one entry of size
    one, the others uniform, whose squares add up to a third each, and a little more (Hoeffding).

    Example:
        >>> tilt_length("knorm", 1.0, 12, 0.05) < tilt_length("laplace", 12.0, 12, 0.05)
        True
    """
    from scipy.special import gammainccinv

    if noise == "gaussian":
        found = math.sqrt(count) + math.sqrt(2 * math.log(1 / alpha))
    elif noise == "knorm":
        others = count - 1
        squares = 1 + others / 3 + math.sqrt(others * math.log(2 / alpha) / 2)
        found = float(gammainccinv(count, alpha / 2)) * math.sqrt(min(squares, count))
    else:
        largest = math.sqrt(count) * math.log(count / alpha)
        found = min(largest, float(gammainccinv(count, alpha)))
    return spread * found * _LATTICES


def output_reach(noise: str, count: int, alpha: float) -> float:
    """Return what no entry of the noise on the minimum exceeds, in spreads, but so often."""
    if noise == "gaussian":
        return -NormalDist().inv_cdf(alpha / (2 * count))
    return math.log(count / alpha)


def radius(tilt: float, penalty: float, least: float, row: float) -> float:
    """Return the r at which least·(1 - exp(-row·r))/row + penalty·r is ``tilt``, rounded up.

    Example:
        >>> radius(10.0, 2.0, 0.0, 1.0), round(radius(1.0, 0.001, 1000.0, 1.0), 4)
        (5.0, 0.001)
    """
    low, high = 0.0, tilt / penalty
    if least <= 0:
        return high
    for _ in range(200):
        middle = (low + high) / 2
        if least * -math.expm1(-row * middle) / row + penalty * middle < tilt:
            low = middle
        else:
            high = middle
    return high * (1 + 2.0**-40)


def least_curvature(features: Floats, at: Floats) -> float:
    """Return the least eigenvalue of the losses' curvature at some coefficients. Custodian side.

    At public coefficients a person adds chance·(1 - chance)·aa', at most R/4 in every direction; so
    one who comes or goes, or turns into another, moves it by at most R/4 (Weyl).
    """
    from scipy.special import expit

    chance = expit(np.clip(features @ at, -700.0, 700.0))
    weighted = features * (chance * (1 - chance))[:, None]
    return max(float(np.linalg.eigvalsh(features.T @ weighted)[0]), 0.0) if len(at) else 0.0
