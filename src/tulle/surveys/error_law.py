"""The error of estimates made from many independent reports: normal, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.error_law import ErrorLaw, check_level
from tulle.core.exact import widen_up

MOST_SIGMAS = 10_000
"""Longer vectors carry one standard error, the largest."""


@registry.register("law", "survey", "normal entries")
@dataclass(frozen=True)
class NormalLaw(ErrorLaw):
    """Approximately normal errors with these standard errors, one for each entry.

    The half-widths hold for all ``count`` entries at once, however they depend on each other
    (Bonferroni). The approximation is the central limit theorem over the clients' reports.
    """

    sigmas: tuple[float, ...]
    shape: tuple[int, ...] = ()
    count: int = 1
    name: ClassVar[str] = "normal entries"

    @classmethod
    def of(cls, sigmas: Any) -> NormalLaw:
        """Build the law from one standard error or an array of them."""
        array = np.asarray(sigmas, dtype=np.float64)
        if array.size > MOST_SIGMAS:
            return cls((float(array.max()),), (), int(array.size))
        return cls(tuple(array.ravel().tolist()), array.shape, int(array.size))

    def half_width(self, level: float) -> Any:
        """Return the half-width of each entry."""
        alpha = (1 - check_level(level)) / self.count
        quantile = widen_up(-NormalDist().inv_cdf(alpha / 2), 16)
        if not self.shape:
            return quantile * self.sigmas[0]
        return quantile * np.array(self.sigmas).reshape(self.shape)

    @classmethod
    def from_parameters(cls, data: Mapping[str, Any]) -> NormalLaw:
        """Build the law from what ``to_json`` wrote."""
        return cls(tuple(data["sigmas"]), tuple(data["shape"]), int(data["count"]))
