"""The error of estimates made from many independent reports: normal, with room for skewness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.error_law import ErrorLaw, check_level
from tulle.core.validate import widen_up

MOST_SIGMAS = 10_000
"""Longer vectors carry one standard error, the largest."""


@registry.register("law", "survey", "normal entries")
@dataclass(frozen=True)
class NormalLaw(ErrorLaw):
    """Approximately normal errors with these standard errors, one for each entry.

    The half-widths hold for all ``count`` entries at once, however they depend on each other
    (Bonferroni). The approximation is the central limit theorem over the clients' reports. With
    few reports that matter, a sum of coins is skewed, and far out, where many entries at once are
    covered, that shows. ``steps`` bound what one report moves an entry by. The third cumulant is
    then at most step·sigma², and the Cornish-Fisher expansion widens the interval by
    step·(z² - 1)/6 where sigma is known, by step·(2z² + 1)/6 where it is estimated. Both vanish
    against sigma as reports grow.

    Reference: Hall, The Bootstrap and Edgeworth Expansion, 1992, sections 2.5 and 2.6.
    """

    sigmas: tuple[float, ...]
    steps: tuple[float, ...]
    shape: tuple[int, ...] = ()
    count: int = 1
    known: bool = False
    """Whether sigma is known; otherwise it was estimated from the same reports."""
    name: ClassVar[str] = "normal entries"

    @classmethod
    def of(cls, sigmas: Any, steps: Any = 0.0, *, known: bool = False) -> NormalLaw:
        """Build the law from one standard error or an array of them, and steps as many or one."""
        array = np.asarray(sigmas, dtype=np.float64)
        moves = np.broadcast_to(np.asarray(steps, dtype=np.float64), array.shape)
        if array.size > MOST_SIGMAS:
            return cls((float(array.max()),), (float(moves.max()),), (), int(array.size), known)
        listed = tuple(array.ravel().tolist()), tuple(moves.ravel().tolist())
        return cls(*listed, array.shape, int(array.size), known)

    def half_width(self, level: float) -> Any:
        """Return the half-width of each entry."""
        alpha = (1 - check_level(level)) / self.count
        z = widen_up(-NormalDist().inv_cdf(alpha / 2), 16)
        skew = max(z * z - 1, 0.0) / 6 if self.known else (2 * z * z + 1) / 6
        if not self.shape:
            return z * self.sigmas[0] + skew * self.steps[0]
        width = z * np.array(self.sigmas) + skew * np.array(self.steps)
        return width.reshape(self.shape)

    @classmethod
    def from_parameters(cls, data: Mapping[str, Any]) -> NormalLaw:
        """Build the law from what ``to_json`` wrote."""
        return cls(
            tuple(data["sigmas"]),
            tuple(data["steps"]),
            tuple(data["shape"]),
            int(data["count"]),
            bool(data["known"]),
        )
