"""Broken twins of the mechanisms on genotypes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.faults import FaithfulTwin, Twin
from tulle.audit.engine.kind import Description
from tulle.audit.genomes.kind import QUESTIONS, describe, describe_choice, describe_noise
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.exact import rational, text
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.genomes.data import Genotypes
from tulle.genomes.exponential import Exponential
from tulle.genomes.laplace import Laplace
from tulle.genomes.one_shot import OneShot
from tulle.genomes.peeling import Peeling
from tulle.genomes.queries import AlleleCounts, ChiSquares
from tulle.genomes.scores import true_chi_squares
from tulle.noise import Lattice, discrete_laplace


class GenomeTwin(FaithfulTwin):
    """A twin that hands everything to the real mechanism, but for its fault."""

    kind: ClassVar[str] = "genotypes"
    original: ClassVar[type[Mechanism]] = Laplace
    mimics: ClassVar[str] = "laplace"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return describe(self.mimics, terms, settings, dataset)


class OneAllele(GenomeTwin):
    """Counts with noise for one allele, where a person carries two."""

    name: ClassVar[str] = "laplace, one allele moves"
    fault: ClassVar[str] = "one person carries two alleles; the noise is for one"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = [
        asked for asked in QUESTIONS["laplace"] if isinstance(asked.query, AlleleCounts)
    ]

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = dict(super().settings(terms, options))
        return honest | {"scale": text(rational(honest["scale"]) / 2)}


class PerSnp(GenomeTwin):
    """Noise for one SNP on each of several."""

    name: ClassVar[str] = "laplace, noise for one SNP"
    fault: ClassVar[str] = "a person has a genotype at every SNP, and all of them may change"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = [
        asked for asked in QUESTIONS["laplace"] if asked.snps == 2
    ]

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = dict(super().settings(terms, options))
        return honest | {"scale": text(rational(honest["scale"]) / int(terms.facts["snps"]))}


class GenotypeSensitivity(GenomeTwin):
    """The sensitivity 4n/(n + 2) of the genotype test, used for the allelic one.

    The published bound is for tables of three genotypes by two equal groups with positive
    margins. The allelic table of the same people holds twice as many alleles and moves twice as
    far, and unequal groups move further still.
    """

    name: ClassVar[str] = "laplace, chi-square moves 4n/(n + 2)"
    fault: ClassVar[str] = "the printed bound is for another table, and for positive margins"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = [
        asked for asked in QUESTIONS["laplace"] if isinstance(asked.query, ChiSquares)
    ]

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = dict(super().settings(terms, options))
        people = sum(terms.facts["groups"])
        printed = Fraction(4 * people, people + 2)
        scale = (printed / rational(honest["step"]) + 1) / terms.epsilon
        return honest | {"sensitivity": text(printed), "scale": text(scale)}


class CalledOnly(GenomeTwin):
    """Chi-square of the called genotypes alone, with the noise for complete tables."""

    name: ClassVar[str] = "laplace, missing genotypes dropped"
    fault: ClassVar[str] = "dropping missing genotypes makes the margins depend on the data"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = GenotypeSensitivity.questions

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        centre = self._centre(settings, dataset)
        scale = rational(settings["scale"])
        noise = discrete_laplace(scale=scale, size=centre.shape, source=source)
        return Outcome(Lattice(rational(settings["step"])).value(centre + noise), None)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return describe_noise(terms, settings, self._centre(settings, dataset))

    def _centre(self, settings: Parameters, dataset: Any) -> Any:
        assert isinstance(dataset, Genotypes)
        cells, labels = dataset.to_numpy(), dataset.labels
        called = (cells >= 0).all(axis=1)
        assert labels is not None
        kept = Genotypes(cells[called], cases=labels[called])
        found = true_chi_squares(kept) if min(kept.group_sizes()) else np.zeros(cells.shape[1])
        return np.asarray(Lattice(rational(settings["step"])).snap(found), dtype=np.int64)


class _WeakChoice(GenomeTwin):
    """Selection noise that forgets how many SNPs are chosen."""

    fault: ClassVar[str] = "every chosen SNP is a choice, and all of them are paid for once"
    questions: ClassVar[Sequence[Query]] = ()
    factor: ClassVar[Fraction] = Fraction(1, 2)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = dict(super().settings(terms, options))
        scale = rational(honest["selection_scale"]) * self.factor
        return honest | {"selection_scale": text(scale)}


class WeakOneShot(_WeakChoice):
    """One draw of noise per score, for half of what one person moves two scores apart."""

    name: ClassVar[str] = "one_shot, half the noise"
    fault: ClassVar[str] = "one person can raise one score and lower another: twice the step"
    original: ClassVar[type[Mechanism]] = OneShot
    mimics: ClassVar[str] = "one_shot"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    questions: ClassVar[Sequence[Query]] = QUESTIONS["one_shot"]


class UnsplitPeeling(_WeakChoice):
    """Every round of peeling spends the whole budget."""

    name: ClassVar[str] = "peeling, every round at full price"
    fault: ClassVar[str] = "the rounds add up, and each spends the whole budget"
    original: ClassVar[type[Mechanism]] = Peeling
    mimics: ClassVar[str] = "peeling"
    questions: ClassVar[Sequence[Query]] = QUESTIONS["peeling"]

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = dict(self.original().settings(terms, options))
        # One round with the noise of half a round shows on a choice of one as well.
        scale = rational(honest["selection_scale"]) / (2 * int(honest["count"]))
        return honest | {"selection_scale": text(scale)}


class SteepExponential(_WeakChoice):
    """Weights that are four times as steep as the budget allows."""

    name: ClassVar[str] = "exponential, a quarter of the scale"
    fault: ClassVar[str] = "the rounds add up to more than epsilon and delta"
    original: ClassVar[type[Mechanism]] = Exponential
    mimics: ClassVar[str] = "exponential"
    needs_delta: ClassVar[bool] = True
    questions: ClassVar[Sequence[Query]] = QUESTIONS["exponential"]
    factor: ClassVar[Fraction] = Fraction(1, 4)


class FreeScores(GenomeTwin):
    """The scores of the chosen without noise of their own."""

    name: ClassVar[str] = "one_shot, scores with a tenth of the noise"
    fault: ClassVar[str] = "the scores are read a second time and must be paid for again"
    original: ClassVar[type[Mechanism]] = OneShot
    mimics: ClassVar[str] = "one_shot"
    questions: ClassVar[Sequence[Query]] = QUESTIONS["one_shot"][-1:]

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = dict(super().settings(terms, options))
        return honest | {"score_scale": text(rational(honest["score_scale"]) / 10)}

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return describe_choice("one_shot", terms, settings, dataset)


@registry.register("audit", "genotypes", "faults")
def genome_twins() -> Sequence[Twin]:
    """Return all twins of the mechanisms on genotypes."""
    return [
        OneAllele(),
        PerSnp(),
        GenotypeSensitivity(),
        CalledOnly(),
        WeakOneShot(),
        UnsplitPeeling(),
        SteepExponential(),
        FreeScores(),
    ]
