"""The recursive mechanism: totals over unrestricted joins, whoever takes part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from tulle.core import registry, validate
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError
from tulle.core.mechanism import Parameters, Settings, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge
from tulle.relations.data import Relation
from tulle.relations.queries import Total
from tulle.relations.truncation.mechanism import (
    NoiseOnValue,
    Side,
    TruncationMechanism,
    predicted_value,
)
from tulle.relations.truncation.totals import (
    GAP,
    LARGEST,
    Thresholds,
    Truncation,
    least_level,
    predicted_level,
)


@dataclass(frozen=True)
class Tuning:
    """Numbers that were set by hand, on public graphs (``benchmarks/recursive_errors.py``)."""

    share: Fraction = Fraction(1, 4)
    """Part of epsilon that chooses the threshold; the rest is for the answer."""
    theta: float = 10.0
    """Where thresholds set out, at epsilon = 1 and above; below, with the root of epsilon. A tenth
    to a hundredth of the largest contribution is best."""
    first: float = 1 / 3
    """The very first threshold: where contributions are small, few levels lead down to them. It
    costs next to nothing where they are large."""
    beta: float = 0.065
    bends: tuple[float, float] = (0.7, 0.5)
    """Thresholds are beta·epsilon^0.7 apart in logarithm below epsilon = 1, and beta·epsilon^0.5
    above. The level's noise has a scale of four over epsilon or so, and the participants who stick
    out of the threshold found number about as many as the levels to it: with a small epsilon steps
    must be short, with a large one they can be long."""
    farthest: float = 0.35
    """No two thresholds are further apart than this in logarithm, whatever epsilon is."""
    reach: float = 8.0
    """The threshold found is raised by this factor: it is where some participants must be
    deleted."""
    stretch: float = 1 / 8
    """Below epsilon = 1 the reach is divided by this power of epsilon: the threshold found
    varies."""


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

    tuned: ClassVar[Mapping[type[Query], Tuning]] = {}
    """Questions whose usual settings differ from those of all others."""

    def tuning(self, query: Query) -> Tuning:
        """Return the numbers that settings follow where nobody names them, from the question."""
        return next((one for kind, one in self.tuned.items() if isinstance(query, kind)), Tuning())

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        usual = self.tuning(terms.query)
        share = validate.share(selection_share=options.get("selection_share", usual.share))
        epsilon = terms.epsilon / self.sides(terms.query)
        size = min(max(float(epsilon), 1e-9), 1e9)
        near = min(max(usual.beta * size ** usual.bends[size > 1], 1e-4), usual.farthest)
        far = usual.reach * max(1.0, size**-usual.stretch)
        beta = float(validate.positive(beta=options.get("beta", near)))
        theta = float(
            validate.positive(theta=options.get("theta", usual.theta * min(1.0, size**0.5)))
        )
        reach = float(validate.positive(reach=options.get("reach", far)))
        first = 1.0 if "theta" in options else min(max(usual.first / theta, 1e-6), 1.0)
        start = float(validate.positive(start=options.get("start", first)))
        if not 1e-6 <= start <= 1:
            raise InputError("start is a part of theta: it must lie between 1e-6 and 1.")
        if not 1e-4 <= beta <= 10 or not 1e-9 <= theta <= 1e12 or not 1e-3 <= reach <= 1e6:
            raise InputError(
                "theta, beta and reach must lie in [1e-9, 1e12], [1e-4, 10] and [1e-3, 1e6]."
            )
        return RecursiveSettings(theta, beta, start, reach, epsilon * share, epsilon * (1 - share))

    def expect_side(self, truncation: Truncation, settings: Parameters) -> Side:
        chosen = RecursiveSettings.read(settings)
        return chosen.expected(truncation, predicted_level(truncation, chosen.thresholds))

    def release_side(
        self, truncation: Truncation, settings: Parameters, source: Source | None
    ) -> Side:
        chosen = RecursiveSettings.read(settings)
        level = least_level(truncation, chosen.thresholds)
        with charge(LaplaceCharge(1)):
            level += discrete_laplace(scale=1 / chosen.epsilon_select, source=source)
        tau = chosen.threshold(max(level, 0))
        noise = chosen.noise(tau)
        point = noise.lattice.snap(truncation.value(tau, GAP * tau))
        with charge(LaplaceCharge(noise.moved)):
            point += discrete_laplace(scale=noise.steps(), source=source)
        return Side(noise.lattice.value(point), tau, noise.scale, noise.slack)


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
        """Return the noise that fits a value truncated at tau."""
        return NoiseOnValue.at(tau, self.epsilon_answer)

    def expected(self, truncation: Truncation, level: int) -> Side:
        """Return what to expect of a public stand-in's part at this level."""
        tau = self.threshold(level)
        noise = self.noise(tau)
        value = predicted_value(truncation, tau, float(noise.scale))
        return Side(value, tau, noise.scale, noise.slack)


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
