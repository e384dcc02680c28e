"""How far off released bits are, what no private release of bits can beat, and what it tells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar

from tulle.core import validate
from tulle.core.error_law import ErrorLaw, check_level
from tulle.core.validate import Number, widen_up


@dataclass(frozen=True)
class FlipEstimate:
    """An unbiased value, or an array of them, and the standard error of each."""

    value: Any
    error: Any

    def interval(self, level: float) -> tuple[Any, Any]:
        """Return (low, high) by the normal approximation, for each value on its own.

        Example:
            >>> low, high = FlipEstimate(10.0, 1.0).interval(0.95)
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


@dataclass(frozen=True)
class Limit:
    """How close a release of bits comes to what its epsilon allows.

    For every epsilon-private release, P(1 | 1) <= exp(epsilon)·P(1 | 0) and
    P(0 | 0) <= exp(epsilon)·P(0 | 1), with P(out | in) for one bit.
    """

    keep: float
    """P(1 | 1): how often a one is kept."""
    invent: float
    """P(1 | 0): how often a one is invented."""
    epsilon: float

    @property
    def ones(self) -> float:
        """P(1 | 1) as a share of the most that is possible: above 1 the claim is false."""
        return self.keep * math.exp(-self.epsilon) / self.invent if self.invent else math.inf

    @property
    def zeros(self) -> float:
        """P(0 | 0) as a share of the most that is possible: above 1 the claim is false."""
        lost = 1 - self.keep
        return (1 - self.invent) * math.exp(-self.epsilon) / lost if lost else math.inf

    @property
    def possible(self) -> bool:
        """Whether any epsilon-private release can do this; rounding to 1e-9 is forgiven."""
        return max(self.ones, self.zeros) <= 1 + 1e-9

    def __str__(self) -> str:
        return (
            f"keep {self.keep:.4f} <= e^{self.epsilon:g} · invent {self.invent:.4f}: "
            f"{min(self.ones, self.zeros):.2%} of what is possible"
            f"{'' if self.possible else ', which no private release can do'}"
        )


def most_kept(*, released: float, pairs: int, edges: int, epsilon: Number) -> float:
    """Return the largest share of true edges that can survive in a private topology.

    ``released`` is the expected number of edges of the release, ``edges`` that of the graph. From
    keep·edges + invent·(pairs - edges) = released and keep <= exp(epsilon)·invent.

    Example:
        >>> share = most_kept(released=1.13e5, pairs=8154741, edges=88234, epsilon=1)
        >>> round(share, 3)
        0.037
    """
    growth = math.exp(validate.positive(epsilon=epsilon))
    return min(1.0, released * growth / (edges * growth + pairs - edges))


def leakage(*, prior: Number, epsilon: Number) -> float:
    """Return the most certain that anyone can become of one bit, having known all the others.

    *Guarantee.* An upper bound on the largest posterior probability of either value: odds grow by
    at most exp(epsilon). It is attained by randomized response when the released bit agrees with
    the likelier value, and it need not be attained otherwise.

    Raises:
        InputError: when the prior is not strictly between 0 and 1.

    Example:
        >>> round(leakage(prior=0.5, epsilon=1), 3)
        0.731

    Reference: Ji et al., *An XOR Mechanism*, PVLDB 14(5), 2021, theorem 4, which states the bound
    as an equality.
    """
    chance = float(validate.probability(prior=prior))
    growth = math.exp(validate.positive(epsilon=epsilon))
    bounds = [p * growth / (p * growth + 1 - p) for p in (chance, 1 - chance)]
    return min(1.0, widen_up(max(bounds), 8))
