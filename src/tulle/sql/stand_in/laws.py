"""How wrong answers on a stand-in would be, whose truncated totals are known; for predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tulle.core.dataset import Dataset
from tulle.core.error_law import ErrorLaw
from tulle.core.expression_error import SampledLaw


@dataclass(frozen=True)
class _FullSize:
    """A stand-in's contributions, where each participant stands for several."""

    inner: Any
    times: float

    def decide(self, tau: float, level: int) -> bool:
        return bool(self.inner.decide(tau, int(level / self.times)))

    def estimate(self, tau: float) -> float | None:
        found = self.inner.estimate(tau)
        return None if found is None else found * self.times


def in_full_size(contributions: Any, like: Dataset) -> Any:
    """Return contributions on a stand-in that decides as all whom it stands for would."""
    return contributions if like.stands_for == 1 else _FullSize(contributions, like.stands_for)


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

    # Laws without fields are equal, and a law's variance is computed once for all that are.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

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
