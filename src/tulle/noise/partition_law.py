"""The error law of numbers of people that were found with their keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.error_law import ErrorLaw, check_level


@registry.register("law", "core", "people_found")
@dataclass(frozen=True)
class PeopleLaw(ErrorLaw):
    """Noise on numbers of people that is within the threshold, for all keys at once.

    Noise beyond it is what delta pays for. Keys of people who have more than they count for have
    more people than the number says, so without ``whole`` an interval has a lower end only.
    """

    threshold: int
    spread: float
    """The noise's standard deviation."""
    whole: bool
    name: ClassVar[str] = "people_found"

    @property
    def leaves_out(self) -> str:
        """Who is not counted."""
        if self.whole:
            return ""
        return (
            "Everyone counts for a limited number of keys, so that more people may have a key than "
            "its number says."
        )

    def half_width(self, level: float) -> float:
        """Return the threshold, at every level."""
        check_level(level)
        return float(self.threshold)

    def interval(self, value: Any, level: float) -> tuple[Any, Any]:
        """Return the number less and plus the threshold; the upper end only if all are counted."""
        low = np.maximum(value - self.half_width(level), 1.0)
        return low, value + self.half_width(level) if self.whole else np.inf

    def variance(self) -> float:
        """Return the noise's variance."""
        return self.spread**2
