"""How wrong a truncated total may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.error_law import ErrorLaw, check_level
from tulle.core.exact import widen_up
from tulle.core.expression_error import SampledLaw


@registry.register("law", "relation", "truncation")
@dataclass(frozen=True)
class TruncationLaw(ErrorLaw):
    """Laplace noise of this scale on a truncated value that is never above the truth.

    How far the truncated value lies below the truth depends on the few participants with the
    largest contributions, and no private release can bound those: an interval has a lower end
    only. For a public stand-in the shortfall is known, and then there are two ends.
    """

    scale: Fraction
    slack: float
    """What snapping to a lattice and the certified gap add to the noise."""
    shortfall: float | None = None
    lanes: int = 1
    """From how many independent draws the value was picked."""
    penalty: float = 0.0
    """What was taken off the value on purpose."""
    name: ClassVar[str] = "truncation"

    @property
    def leaves_out(self) -> str:
        """What truncation cut: it is known for a stand-in alone."""
        if self.shortfall is not None:
            return ""
        return (
            "Each participant counts up to a threshold that was chosen privately; what anybody has "
            "beyond it was cut, so that the truth may be larger by any amount."
        )

    def half_width(self, level: float) -> float:
        """Return the noise's half-width, plus the shortfall where that is known, of all draws."""
        alpha = 1 - check_level(level)
        if self.shortfall is not None:
            alpha /= self.lanes
        noise = float(self.scale) * -math.log(alpha)
        return widen_up(noise + self.slack + (self.shortfall or 0.0))

    def of_one(self) -> TruncationLaw:
        """Return the law of one draw, where this one holds for all groups."""
        return replace(self, lanes=1)

    def variance(self) -> float:
        """Return about the mean squared error of one draw."""
        return super().variance() if self.lanes == 1 else replace(self, lanes=1).variance()

    def interval(self, value: Any, level: float) -> tuple[Any, Any]:
        """Return the lower end and infinity; all the failure probability is on one side."""
        if self.shortfall is not None:
            return super().interval(value, level)
        alpha = 1 - check_level(level)
        below = float(self.scale) * math.log(max(self.lanes / (2 * alpha), 1.0)) - self.penalty
        return np.maximum(value - widen_up(below + self.slack), 0.0), math.inf


@registry.register("law", "relation", "gaussian truncation")
@dataclass(frozen=True)
class GaussianTruncationLaw(ErrorLaw):
    """Gaussian noise on truncated values of ``count`` groups, none of them above the truth.

    As :class:`TruncationLaw`: what was cut is known for a public stand-in alone, and without that
    an interval has a lower end only. Intervals hold for all groups at once.
    """

    sigma: Fraction
    slack: float
    """What snapping to a lattice and the certified gap add to the noise."""
    count: int = 1
    shortfall: float | None = None
    """The most that was cut in any group, where that is known."""
    name: ClassVar[str] = "gaussian truncation"

    @property
    def leaves_out(self) -> str:
        """What truncation cut: it is known for a stand-in alone."""
        return TruncationLaw(self.sigma, self.slack, self.shortfall).leaves_out

    def half_width(self, level: float) -> float:
        """Return the noise's half-width, plus the shortfall where that is known."""
        alpha = (1 - check_level(level)) / self.count
        noise = float(self.sigma) * -NormalDist().inv_cdf(alpha / 2)
        return widen_up(noise + self.slack + (self.shortfall or 0.0))

    def of_one(self) -> GaussianTruncationLaw:
        """Return the law of one group."""
        return replace(self, count=1)

    def variance(self) -> float:
        """Return the variance of the noise on one group, and the square of what it falls short."""
        return float(self.sigma) ** 2 + (self.shortfall or 0.0) ** 2

    def interval(self, value: Any, level: float) -> tuple[Any, Any]:
        """Return the lower end and infinity; all the failure probability is on one side."""
        if self.shortfall is not None:
            return super().interval(value, level)
        alpha = (1 - check_level(level)) / self.count
        below = max(float(self.sigma) * -NormalDist().inv_cdf(alpha), 0.0)
        return np.maximum(value - widen_up(below + self.slack), 0.0), math.inf


@dataclass(frozen=True, eq=False)
class StandInLaw(ErrorLaw):
    """The errors on a public stand-in, whose truncated totals are known. For predictions only.

    The half-width is that of ``joint``, a law for all groups at once, where there are several; of
    one number it is taken from ``errors``: shown less true answers, a row for each group and a
    column for each case, all of them as likely as each other.
    """

    joint: ErrorLaw
    errors: Any
    name: ClassVar[str] = "stand-in"

    @classmethod
    def of(
        cls,
        joint: ErrorLaw,
        truth: Any,
        cases: Sequence[tuple[Any, Any]],
        shown: Callable[[Any], Any] = np.asarray,
    ) -> StandInLaw:
        """Return the law over equally likely cases: truncated totals, and points of the noise.

        ``shown`` is what becomes of a noisy total before it is released.
        """
        drawn = [shown(cut[:, None] + np.asarray(noise)[None, :]) for cut, noise in cases]
        return cls(joint, np.concatenate(drawn, axis=1) - truth[:, None])

    def of_one(self) -> SampledLaw:
        """Return the law of one group's answer, whichever it is."""
        known = np.abs(self.errors[~np.isnan(self.errors)])
        return SampledLaw(tuple(_thinned(np.sort(known)).tolist()))

    def points(self, group: int, fractions: Any) -> Any:
        """Return the errors of one group that such parts of all its errors are below."""
        ordered = np.sort(self.errors[group])
        return ordered[(fractions * len(ordered)).astype(np.int64)]

    def half_width(self, level: float) -> float:
        """Return the half-width for all groups at once."""
        several = len(self.errors) > 1
        return self.joint.half_width(level) if several else self.of_one().half_width(level)

    def variance(self) -> float:
        """Return that of one group's answer."""
        return self.joint.variance()


_KEPT = 4097
"""How many errors of a stand-in stand for all of them."""


def _thinned(sizes: Any) -> Any:
    if len(sizes) > _KEPT:
        sizes = sizes[((np.arange(_KEPT) + 0.5) * len(sizes) / _KEPT).astype(np.int64)]
    return sizes


_MOST = 2**20
"""How many errors are worked out at most, over all groups."""


def _even(groups: int) -> Any:
    """Return numbers between 0 and 1, evenly; an odd number, so that no noise is among it."""
    count = min(max(_MOST // (9 * max(groups, 1)), 15), 511) | 1
    return (np.arange(count) + 0.5) / count


def laplace_points(scale: float, groups: int = 1) -> Any:
    """Return numbers that are laid out evenly over Laplace noise of a scale."""
    even = _even(groups)
    return -scale * np.sign(even - 0.5) * np.log(1 - 2 * np.abs(even - 0.5))


def gaussian_points(sigma: float, groups: int = 1) -> Any:
    """Return numbers that are laid out evenly over Gaussian noise of a deviation."""
    from scipy.special import ndtri

    return sigma * ndtri(_even(groups))
