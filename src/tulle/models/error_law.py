"""The error of coefficients, to first order in the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Floats
from tulle.core.error_law import ErrorLaw, check_level

UNKNOWN = 1e300
"""The deviation of a coefficient about which a release says nothing."""


@registry.register("law", "table", "coefficients")
@dataclass(frozen=True)
class CoefficientLaw(ErrorLaw):
    """Released minus least-squares coefficients: a deviation for each, and a bias of the penalty.

    The released coefficients w solve (M + P)w = v with noisy M and v and a known penalty P, so
    that w - truth = (M + P)^-1·(e - E·truth - P·truth) exactly, where e and E are the noise. With
    w in place of the truth on the right, that has the covariance from which ``deviations`` come.
    Noise is Gaussian, or a sum of Laplace variables, whose tails lie between those two laws.
    """

    noise: str
    deviations: tuple[float, ...]
    bias: tuple[float, ...]
    name: ClassVar[str] = "coefficients"

    def __post_init__(self) -> None:
        object.__setattr__(self, "deviations", tuple(self.deviations))
        object.__setattr__(self, "bias", tuple(self.bias))

    def widths(self, level: float) -> Floats:
        """Return a half-width for each coefficient; all hold at once with this probability."""
        alpha = -math.expm1(math.log(check_level(level)) / len(self.deviations))
        reach = -NormalDist().inv_cdf(alpha / 2)
        if self.noise == "laplace":
            reach = max(reach, -math.log(alpha) / math.sqrt(2))
        widths: Floats = reach * np.array(self.deviations) + np.abs(np.array(self.bias))
        return widths

    def half_width(self, level: float) -> float:
        """Return the width of the least certain coefficient."""
        return float(self.widths(level).max())

    def interval(self, value: Any, level: float) -> tuple[Any, Any]:
        """Return the ends for each coefficient."""
        widths = self.widths(level)
        return value - widths, value + widths
