"""What mechanisms that truncate share: one loop over signed parts, and the law of their errors.

A question whose weights may be negative is answered part by part, those above zero less those
below. A mechanism says how *one* part is released, and what to expect of it: which parts there are
and how they are put together is the same for all of them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.error_law import ErrorLaw, check_level
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.validate import widen_up
from tulle.noise import Lattice
from tulle.relations.data import Relation
from tulle.relations.truncation.totals import GAP, LARGEST, Truncation, truncate

PREDICTED_GAP = 1 / 32
"""How exactly a plan knows a truncated value, as a part of the error to expect."""


@dataclass(frozen=True)
class Side:
    """What is released of the tuples of one sign, or what to expect of it."""

    value: float
    threshold: float | None
    """Where it was truncated; None where no threshold was found."""
    scale: Fraction
    slack: float
    """What snapping to a lattice and the certified gap add to the noise."""
    penalty: float = 0.0
    """What was taken off the value on purpose."""
    lanes: int = 1
    """From how many independent draws the value was picked."""


class TruncationMechanism(Mechanism):
    """What mechanisms on relations share; each kind of data says how a question becomes one."""

    @abstractmethod
    def relation(self, terms: Terms, dataset: Dataset) -> Relation:
        """Return the relation whose total is the true answer. Custodian side."""

    @abstractmethod
    def release_side(
        self, truncation: Truncation, settings: Parameters, source: Source | None
    ) -> Side:
        """Draw the total of one part."""

    @abstractmethod
    def expect_side(self, truncation: Truncation, settings: Parameters) -> Side:
        """Return what :meth:`release_side` would give without noise, on a public stand-in."""

    def signed(self, query: Query) -> bool:
        """Say whether weights may be negative, from the question alone."""
        return bool(getattr(query, "signed", False))

    def sides(self, query: Query) -> int:
        """Return how many parts are released, each at an equal part of epsilon."""
        return 2 if self.signed(query) else 1

    def parts(self, terms: Terms, dataset: Dataset) -> list[tuple[int, Truncation]]:
        """Return the relation's parts with their signs: both if the question is signed.

        Which parts there are must not depend on the data, nor must the budget of each.
        """
        return self.truncations(terms.query, self.relation(terms, dataset))

    def truncations(self, query: Query, relation: Relation) -> list[tuple[int, Truncation]]:
        """Return the parts of one relation, as :meth:`parts` does."""
        positive, negative = relation.parts()
        if self.signed(query):
            return [(1, truncate(positive)), (-1, truncate(negative))]
        return [(1, truncate(positive))]

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        """Predict on a public stand-in; without one nothing is known of the threshold."""
        if like is None:
            return Prediction(None, None)
        scale, slack, short = Fraction(0), 0.0, 0.0
        for sign, truncation in self.parts(terms, like):
            side = self.expect_side(truncation, settings)
            scale, slack = scale + side.scale, slack + side.slack
            # Where nobody is cut, the value is the true total.
            short += sign * (truncation.ceiling(LARGEST) - side.value)
        return Prediction(None, TruncationLaw(scale, slack, abs(short)))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        return self.run_parts(terms.query, settings, self.parts(terms, dataset), source)

    def run_parts(
        self,
        query: Query,
        settings: Parameters,
        parts: list[tuple[int, Truncation]],
        source: Source | None,
    ) -> Outcome:
        """Draw the total of these parts."""
        value, sides = 0.0, []
        for sign, truncation in parts:
            side = self.release_side(truncation, settings, source)
            value += sign * side.value
            sides.append(side)
        law = None
        if not self.signed(query):
            # Elsewhere it is a difference of two numbers that may each fall short, which is bounded
            # on neither side.
            value, law = max(value, 0.0), _law(sides[0])
        shown: Any = round(value) if query.integral else value
        return Outcome(shown, law, self.details(sides, law))

    def details(self, sides: Sequence[Side], law: ErrorLaw | None) -> Mapping[str, Any]:
        """Return what else a release tells."""
        return {"thresholds": [side.threshold for side in sides]}


def _law(side: Side) -> TruncationLaw:
    """Return the law of a released total."""
    return TruncationLaw(side.scale, side.slack + 0.5, lanes=side.lanes, penalty=side.penalty)


@dataclass(frozen=True)
class NoiseOnValue:
    """The noise on a truncated value: its scale, its lattice, and what rounding adds."""

    scale: Fraction
    lattice: Lattice
    slack: float
    moved: Fraction
    """The most that one participant moves the snapped value, in steps of the lattice."""

    @classmethod
    def at(cls, tau: float, epsilon: Fraction) -> NoiseOnValue:
        """Return the noise that fits a value truncated at tau and certified to GAP·tau.

        The middle of a bracket of width gap is within half a gap of the value, so it moves by at
        most tau + gap; a hundredth of the gap more covers the rounding of the middle itself.
        """
        lattice = Lattice.for_scale(value_moves(tau))
        moved = value_moves(tau) / lattice.step + 1
        slack = float(lattice.step) + GAP * tau
        return cls(moved * lattice.step / epsilon, lattice, slack, moved)

    def steps(self) -> Fraction:
        """Return the scale in steps of the lattice."""
        return self.scale / self.lattice.step


def value_moves(tau: float) -> Fraction:
    """Return the most that one participant moves the certified middle at this threshold."""
    return Fraction(tau) * (1 + Fraction(GAP) * Fraction(101, 100))


def predicted_value(truncation: Truncation, tau: float, scale: float) -> float:
    """Return a truncated value as exactly as the error to expect is worth knowing.

    What is cut and the noise make the error; a small part of their sum is near enough for a
    prediction, and found far faster than the bracket that a release needs.
    """
    whole = float(truncation.ceiling(LARGEST))
    gap: float = whole * PREDICTED_GAP
    while True:
        value = float(truncation.value(tau, max(gap, GAP * tau)))
        enough = PREDICTED_GAP * (scale + max(whole - value - gap, 0.0))
        if gap <= max(2 * enough, GAP * tau):
            return value
        gap = enough


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
