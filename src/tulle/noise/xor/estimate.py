"""How far off released bits are, and what is computed from them."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar

from tulle.core.error_law import ErrorLaw, check_level


@dataclass(frozen=True)
class Estimate:
    """An unbiased value, or an array of them, and the standard error of each."""

    value: Any
    error: Any

    def interval(self, level: float) -> tuple[Any, Any]:
        """Return (low, high) by the normal approximation, for each value on its own.

        Example:
            >>> low, high = Estimate(10.0, 1.0).interval(0.95)
            >>> round(low, 2), round(high, 2)
            (8.04, 11.96)
        """
        width = NormalDist().inv_cdf((1 + check_level(level)) / 2) * self.error
        return self.value - width, self.value + width


@dataclass(frozen=True)
class FlipLaw(ErrorLaw):
    """Cells that are wrong with this probability: the error of a cell is 0 or 1.

    The half-width holds for all cells at once, so it is 0 only when hardly any is ever flipped.
    """

    flip: float
    cells: int
    name: ClassVar[str] = "flips"

    def half_width(self, level: float) -> float:
        """Return 0 when all cells are right with this probability, else 1."""
        wrong = 1 - check_level(level)
        return 0.0 if self.flip <= wrong / self.cells else 1.0
