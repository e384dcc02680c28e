"""What the mechanisms for the strongest SNPs share: scores on a lattice, and the released form."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Wholes
from tulle.core.dataset import Dataset
from tulle.core.error_law import ErrorLaw, check_level
from tulle.core.errors import QueryError
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.core.validate import widen_up
from tulle.genomes.data import Genotypes
from tulle.genomes.laplace import FINENESS, check_noise
from tulle.genomes.queries import TopSnps, groups_of
from tulle.genomes.scores import chi_square_sensitivity, true_chi_squares, true_differences
from tulle.noise import Lattice, discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge


@dataclass(frozen=True)
class Tuning:
    """What epsilon is divided into where scores are asked for.

    Not chosen on any data: with halves neither part has more than twice the noise that the whole
    epsilon would leave it, and no other division promises that.
    """

    score_share: Fraction = Fraction(1, 2)
    """Buys the scores of the chosen SNPs; the rest chooses them."""


_TUNING = Tuning()


@registry.register("law", "genotypes", "selection")
@dataclass(frozen=True)
class SelectionLaw(ErrorLaw):
    """How far the score of a chosen SNP may lie below that of one that was passed over.

    It is at most the largest noise upwards on any of ``draws`` scores, each beyond scale·ln(1/p)
    with probability p at most, plus the largest noise downwards on the ``chosen`` best, which is
    zero for one-sided noise (``chosen`` = 0).
    """

    scale: Fraction
    step: Fraction
    draws: int
    chosen: int
    name: ClassVar[str] = "selection"

    def half_width(self, level: float) -> float:
        """Return the largest shortfall of the score, with this probability."""
        missed = 1 - check_level(level)
        reach = math.log(self.draws / missed) + 1 / float(self.scale)
        if self.chosen:
            reach += math.log(self.chosen / missed) + 1 / float(self.scale)
        return widen_up(float(self.scale) * reach * float(self.step))


@dataclass(frozen=True, eq=False)
class TopScoresSettings(Settings):
    """The public settings of one run."""

    snps: int
    count: int
    sensitivity: int
    """The most that one person moves a score, in steps."""
    step: Fraction
    weights: tuple[int, ...] | None
    """Of differences: what an allele of a case and of a control counts."""
    selection_scale: Fraction
    score_scale: Fraction | None = None
    """Of the noise on the chosen scores, where they are released."""


class TopMechanism(Mechanism):
    """Base of the ways to choose the strongest SNPs. Subclasses say how noise chooses."""

    kind: ClassVar[str] = "genotypes"
    rounds: ClassVar[bool] = False
    """Whether every choice draws noise anew."""
    two_sided: ClassVar[bool] = False
    """Whether noise may also lower a score."""

    def supports(self, query: Query, unit: Unit) -> bool:
        return isinstance(query, TopSnps) and (query.by == "difference" or unit.name == "row")

    @abstractmethod
    def choose(
        self, scores: Wholes, count: int, chosen: TopScoresSettings, source: Source | None
    ) -> Wholes:
        """Return the places of the chosen SNPs."""

    @abstractmethod
    def selection_scale(
        self, count: int, sensitivity: int, epsilon: Fraction, delta: Fraction
    ) -> Fraction:
        """Return the scale of the noise that chooses, for whole scores."""

    def selection_law(self, settings: Parameters) -> SelectionLaw:
        """Return how wrong the choice may be."""
        chosen = TopScoresSettings.read(settings)
        draws = chosen.snps * (chosen.count if self.rounds else 1)
        lowered = chosen.count if self.two_sided else 0
        return SelectionLaw(chosen.selection_scale, chosen.step, draws, lowered)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        query, snps = _top(terms), int(terms.facts["snps"])
        if query.count > snps:
            raise QueryError(f"{query} asks for {query.count} SNPs; there are {snps}.")
        groups = groups_of(terms)
        moved, step, weights = _sensitivity(query, groups, terms.unit)
        share = _TUNING.score_share if query.scores else Fraction(0)
        chosen = self.selection_scale(query.count, moved, terms.epsilon * (1 - share), terms.delta)
        check_noise(chosen, terms)
        scale = query.count * moved / (terms.epsilon * share) if query.scores else None
        return TopScoresSettings(
            snps, query.count, moved, step, tuple(weights) if weights else None, chosen, scale
        )

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        law = self.selection_law(settings)
        return Prediction(law, law)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Genotypes)
        chosen = TopScoresSettings.read(settings)
        scores = whole_scores(_top(terms), chosen, dataset)
        places = self.choose(scores, chosen.count, chosen, source)
        value: dict[str, Any] = {
            "places": places.tolist(),
            "snps": [dataset.snps[place] for place in places],
        }
        if chosen.score_scale is not None:
            with charge(LaplaceCharge(len(places) * chosen.sensitivity)):
                noise = discrete_laplace(scale=chosen.score_scale, size=len(places), source=source)
            # Below zero too: raised, those of SNPs without association would be too large.
            noisy = Lattice(chosen.step).value(scores[places] + noise)
            value["scores"] = np.asarray(noisy).tolist()
        return Outcome(value, None)


def whole_scores(query: TopSnps, chosen: TopScoresSettings, dataset: Genotypes) -> Wholes:
    """Return the scores in steps of the lattice, as whole numbers."""
    if query.by == "difference":
        assert chosen.weights is not None
        first, second = chosen.weights
        return true_differences(dataset, (first, second))
    return np.asarray(Lattice(chosen.step).snap(true_chi_squares(dataset)), dtype=np.int64)


def largest(noisy: Wholes, count: int) -> Wholes:
    """Return the places of the largest numbers, in order of place; of equals the first."""
    order = np.argsort(-noisy, kind="stable")[:count]
    return np.sort(order).astype(np.int64)


def _top(terms: Terms) -> TopSnps:
    assert isinstance(terms.query, TopSnps)
    return terms.query


def _sensitivity(
    query: TopSnps, groups: tuple[int, int] | None, unit: Unit
) -> tuple[int, Fraction, tuple[int, int] | None]:
    """Return how many steps one person moves a score, the step, and the weights of the groups."""
    if query.by == "difference":
        weights = query.weights(groups)
        # Someone who joins adds at most one copy more or less than one; who changes, two.
        return max(weights) * (2 if unit.name == "row" else 1), Fraction(1), weights
    if groups is None:
        raise QueryError(f"{query} needs public sizes of the groups: ask it per row.")
    sensitivity = chi_square_sensitivity(*groups)
    step = Lattice.for_scale(sensitivity, FINENESS).step
    return math.floor(sensitivity / step) + 1, step, None
