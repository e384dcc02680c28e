"""The recursive mechanism: totals over unrestricted joins, whoever takes part."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from tulle.core import registry, validate
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.noise import Lattice, discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge
from tulle.relations.data import Relation
from tulle.relations.queries import Total
from tulle.relations.truncation.totals import (
    GAP,
    LARGEST,
    Thresholds,
    Truncation,
    TruncationLaw,
    least_level,
    predicted_level,
    truncate,
)

PREDICTED_GAP = 1 / 32
"""How exactly a plan knows a truncated value, as a part of the error to expect."""

SELECTION_SHARE = Fraction(1, 4)
"""Part of epsilon that chooses the threshold; the rest is for the answer."""

THETA = 10.0
"""Where thresholds set out, at epsilon = 1 and above; below, with the root of epsilon. A tenth to a
hundredth of the largest contribution is best."""

START = 1 / 30
"""The very first threshold, as a part of THETA: where contributions are small, few levels lead down
to them. It costs next to nothing where they are large."""

BETA = 0.065
BENDS = (0.7, 0.5)
"""Thresholds are BETA·epsilon^0.7 apart in logarithm below epsilon = 1, and BETA·epsilon^0.5 above.
The level's noise has a scale of four over epsilon or so, and the participants who stick out of the
threshold found number about as many as the levels to it: with a small epsilon steps must be short,
with a large one they can be long."""

FARTHEST = 0.35
"""No two thresholds are further apart than this in logarithm, whatever epsilon is."""

REACH = 8.0
"""The threshold found is raised by this factor: it is where some participants must be deleted."""

STRETCH = 1 / 8
"""Below epsilon = 1 the reach is divided by this power of epsilon: the threshold found varies."""


class TruncationMechanism(Mechanism):
    """What mechanisms on relations share; each kind of data says how a question becomes one."""

    @abstractmethod
    def relation(self, terms: Terms, dataset: Dataset) -> Relation:
        """Return the relation whose total is the true answer. Custodian side."""

    def signed(self, query: Query) -> bool:
        """Say whether weights may be negative, from the question alone."""
        return bool(getattr(query, "signed", False))

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

    @abstractmethod
    def run_parts(
        self,
        query: Query,
        settings: Parameters,
        parts: list[tuple[int, Truncation]],
        source: Source | None,
    ) -> Outcome:
        """Draw the total of these parts."""

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        return self.run_parts(terms.query, settings, self.parts(terms, dataset), source)


class Recursive(TruncationMechanism):
    """Choose a threshold privately, truncate everyone to it, add Laplace noise of that size.

    The threshold has the form theta·exp(beta·j), with longer steps at the beginning: j is the least
    whole number such that deleting j participants (fractionally) leaves everyone in at most that
    much. Noise goes to j; the
    threshold found is raised by ``reach``, since beyond it only few stick out; then the truncated
    total at that threshold gets Laplace noise.

    Guarantee:
        Pure epsilon per unit, add-remove. One participant moves j by at most one (see
        ``truncation.least_level``), so j with discrete Laplace noise of scale 1/epsilon_select
        costs epsilon_select. Given the threshold tau that results, one participant moves the
        truncated value by at most tau, and the certified middle of its bracket by at most
        tau + gap, with a gap that is a fixed part of tau; snapping to a lattice adds a step, and
        the noise is discrete Laplace of that scale over epsilon_answer. The two compose. With
        signed weights both parts are released at half of epsilon each.

    Error:
        Noise of about tau/epsilon and a shortfall below the truth, because those who stick out
        are cut. Nobody can bound the shortfall privately, so intervals have a lower end only.

    Reference:
        Chen & Zhou, Recursive mechanism, SIGMOD 2013, section 5; parameters theta, beta and mu =
        ln(reach) as there, with defaults chosen on public graphs (the paper: 1, epsilon/5, 0.5
        or 1, and a geometric grid, which is start = 1).
    """

    name: ClassVar[str] = "recursive"
    title: ClassVar[str] = "truncation at a privately chosen threshold"
    reference: ClassVar[str] = "Chen & Zhou, SIGMOD 2013"
    options: ClassVar[tuple[str, ...]] = ("theta", "beta", "start", "reach", "selection_share")

    def usual_reach(self, query: Query) -> float:
        """Return the reach at epsilon = 1 when nobody names one; it follows from the question."""
        return REACH

    def usual_theta(self, query: Query) -> float:
        """Return theta at epsilon = 1 when nobody names one."""
        return THETA

    def usual_share(self, query: Query) -> Fraction:
        """Return the part of epsilon for the threshold when nobody names it."""
        return SELECTION_SHARE

    def sides(self, query: Query) -> int:
        """Return how many parts are released, each at an equal part of epsilon."""
        return 2 if self.signed(query) else 1

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        share = validate.probability(
            selection_share=options.get("selection_share", self.usual_share(terms.query))
        )
        epsilon = terms.epsilon / self.sides(terms.query)
        size = min(max(float(epsilon), 1e-9), 1e9)
        near = min(max(BETA * size ** BENDS[size > 1], 1e-4), FARTHEST)
        far = self.usual_reach(terms.query) * max(1.0, size**-STRETCH)
        beta = float(validate.positive(beta=options.get("beta", near)))
        usual = self.usual_theta(terms.query) * min(1.0, size**0.5)
        theta = float(validate.positive(theta=options.get("theta", usual)))
        reach = float(validate.positive(reach=options.get("reach", far)))
        first = min(max(START * THETA / theta, 1e-6), 1.0)
        start = float(
            validate.positive(start=options.get("start", 1 if "theta" in options else first))
        )
        if not 1e-6 <= start <= 1:
            raise InputError("start is a part of theta: it must lie between 1e-6 and 1.")
        if not 1e-4 <= beta <= 10 or not 1e-9 <= theta <= 1e12 or not 1e-3 <= reach <= 1e6:
            raise InputError(
                "theta, beta and reach must lie in [1e-9, 1e12], [1e-4, 10] and [1e-3, 1e6]."
            )
        return RecursiveSettings(theta, beta, start, reach, epsilon * share, epsilon * (1 - share))

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        if like is None:
            return Prediction(None, None)
        chosen = RecursiveSettings.read(settings)
        scale, slack, cut = Fraction(0), 0.0, 0.0
        for sign, truncation in self.parts(terms, like):
            tau = chosen.threshold(predicted_level(truncation, chosen.thresholds))
            noise = chosen.noise(tau)
            scale += noise.scale
            slack += noise.slack
            cut += sign * predicted_value(truncation, tau, float(noise.scale))
        shortfall = abs(float(terms.query.truth(like)) - cut)
        return Prediction(None, TruncationLaw(scale, slack, shortfall))

    def run_parts(
        self,
        query: Query,
        settings: Parameters,
        parts: list[tuple[int, Truncation]],
        source: Source | None,
    ) -> Outcome:
        chosen = RecursiveSettings.read(settings)
        value, scale, slack = 0.0, Fraction(0), 0.0
        thresholds = []
        for sign, truncation in parts:
            level = least_level(truncation, chosen.thresholds)
            with charge(LaplaceCharge(1)):
                level += discrete_laplace(scale=1 / chosen.epsilon_select, source=source)
            tau = chosen.threshold(max(level, 0))
            noise = chosen.noise(tau)
            point = noise.lattice.snap(truncation.value(tau, GAP * tau))
            step = noise.lattice.step
            with charge(LaplaceCharge(value_moves(tau) / step + 1)):
                point += discrete_laplace(scale=noise.scale / step, source=source)
            value += sign * noise.lattice.value(point)
            scale, slack = scale + noise.scale, slack + noise.slack
            thresholds.append(tau)
        if not self.signed(query):
            value = max(value, 0.0)
        answer: Any = round(value) if query.integral else value
        # The difference of two numbers that may each fall short is bounded on neither side.
        law = None if self.signed(query) else TruncationLaw(scale, slack + 0.5)
        return Outcome(answer, law, {"thresholds": thresholds})


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


@dataclass(frozen=True)
class NoiseOnValue:
    """The noise on a truncated value: its scale, its lattice, and what rounding adds."""

    scale: Fraction
    lattice: Lattice
    slack: float


@dataclass(frozen=True, eq=False)
class RecursiveSettings(Settings):
    """The public settings of one run of the recursive mechanism."""

    theta: float
    beta: float
    start: float
    reach: float
    epsilon_select: Fraction
    epsilon_answer: Fraction

    @cached_property
    def thresholds(self) -> Thresholds:
        """The grid of thresholds."""
        return Thresholds(self.theta, self.beta, self.start)

    def threshold(self, level: int) -> float:
        """Return the threshold to truncate at, given the (noisy) level."""
        return min(self.thresholds.at(level) * self.reach, LARGEST)

    def noise(self, tau: float) -> NoiseOnValue:
        """Return the noise that fits a value truncated at tau and certified to GAP·tau.

        The middle of a bracket of width gap is within half a gap of the value, so it moves by at
        most tau + gap; a hundredth of the gap more covers the rounding of the middle itself.
        """
        sensitivity = value_moves(tau)
        lattice = Lattice.for_scale(sensitivity)
        scale = (sensitivity + lattice.step) / self.epsilon_answer
        return NoiseOnValue(scale, lattice, float(lattice.step) + GAP * tau)


@registry.mechanism("relation", "recursive", answers=(Total,), units=("participant",))
class RelationRecursive(Recursive):
    """The recursive mechanism on a relation itself.

    Guarantee:
        As :class:`Recursive`, per participant.

    Example:
        >>> import tulle
        >>> chain = [person for pair in range(20) for person in (pair, pair + 1)]
        >>> pairs = Relation.conjunctive(range(0, 41, 2), chain)
        >>> r = tulle.release(pairs, Total(), unit="participant", epsilon=1.0)
        >>> r.mechanism
        'recursive'
    """

    def relation(self, terms: Terms, dataset: Dataset) -> Relation:
        assert isinstance(dataset, Relation)
        return dataset
