"""Laplace noise on allele counts, chi-square statistics and p-values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Floats, Wholes
from tulle.core.dataset import Dataset
from tulle.core.error_law import LaplaceLaw
from tulle.core.errors import QueryError
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.genomes.data import Genotypes
from tulle.genomes.queries import AlleleCounts, ChiSquares, PValues, SnpQuery, groups_of
from tulle.genomes.scores import COUNT_SENSITIVITY, chi_square_sensitivity
from tulle.noise import Lattice, discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge

FINENESS = Fraction(1, 256)
"""Step of the lattice as a share of the sensitivity of one entry."""

LARGEST_SCALE = 2**47
"""The samplers for arrays hold at most this scale."""


NOISY = "noisy"
"""Sizes of groups that get noise as the counts do, where they are not public."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Numbers(Settings):
    """What is released: how many numbers, what one person moves of a SNP, and the lattice."""

    entries: int
    sensitivity: Fraction
    step: Fraction
    groups: int | None = None
    """Of counts: how many groups there are."""
    sizes: Any = None
    """Of counts in a complete table: the public sizes of the groups, or "noisy"."""
    range: tuple[float, ...] | None = None
    """Of real numbers: the public range of each."""

    def value(self, terms: Terms, noisy: Wholes) -> Wholes | Floats:
        """Return what is released, from the numbers that had noise added."""
        return self.counts(noisy) if self.range is None else self.reals(terms, noisy)

    def counts(self, noisy: Wholes) -> Wholes:
        """Return d and m of each group and SNP."""
        if self.sizes is None:
            return noisy
        if self.sizes == NOISY:
            noisy, sizes = noisy[:, :-1], noisy[:, -1:]
        else:
            sizes = np.array(self.sizes, dtype=np.int64)[:, None]
        return np.stack((noisy, np.broadcast_to(sizes, noisy.shape)), axis=-1)

    def reals(self, terms: Terms, noisy: Wholes) -> Floats:
        """Return the real numbers of lattice points; of p-values, the nearest that can be one.

        A chi-square stays as the noise left it, below zero too: raised to zero, those of SNPs
        without any association would be too large on average, and so would sums over them. Whoever
        shows one shows zero instead.
        """
        value: Floats = Lattice(self.step).value(noisy)
        if self.range is None or not isinstance(terms.query, PValues):
            return value
        low, high = self.range
        return np.clip(value, low, high)


@dataclass(frozen=True, eq=False, kw_only=True)
class LaplaceSettings(Numbers):
    """The public settings of one run."""

    scale: Fraction

    def law(self) -> LaplaceLaw:
        """Return the law of the noise on all entries."""
        slack = 0.0 if self.range is None else float(self.step) / 2
        return LaplaceLaw(self.scale, step=self.step, count=self.entries, slack=slack)


@registry.mechanism("genotypes", "laplace", answers=(AlleleCounts, ChiSquares, PValues))
class Laplace(Mechanism):
    """Add discrete Laplace noise to every number, of a scale that fits what one person can move.

    Guarantee:
        Pure epsilon. Allele counts of K SNPs: one person is in one group and moves each SNP's two
        numbers by at most 2 in L1, both alleles and missing values included, so 2K in all; under
        ``participant`` as well as under ``row``. Where the table is declared complete, m is the
        size of the group for every SNP: public under ``row``, and one number under
        ``participant``, where who joins moves K + 1 in all. Chi-square: at most the exact largest
        step of the statistic for the public numbers of cases and controls (``scores.py`` has the
        argument), times K, plus a lattice step each. P-values lie in [0, 1] and one person can
        move one by more than 0.8, so 1 is used.

    Error:
        The noise itself; for real values half a lattice step more.

    Reference:
        Dwork et al., TCC 2006; Uhler, Slavković & Fienberg, J. Privacy & Confidentiality 2013,
        for tests of association.

    Example:
        >>> import tulle
        >>> study = tulle.Genotypes([[0], [2], [1]], cases=[0, 1, 1])
        >>> r = tulle.release(study, tulle.genomes.allele_counts(), unit="row", epsilon=1.0,
        ...                   mechanism="laplace")
        >>> r.mechanism, r.value.shape
        ('laplace', (2, 1, 2))
    """

    title: ClassVar[str] = "noise on what one person can move"
    reference: ClassVar[str] = "Dwork et al., TCC 2006"

    def supports(self, query: Query, unit: Unit) -> bool:
        if isinstance(query, AlleleCounts):
            return True
        # Without public sizes one more case can move a test by as much as all alleles together.
        return isinstance(query, ChiSquares | PValues) and unit.name == "row"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        found = self.numbers(terms)
        total = self.total(terms, found)
        check_noise(total / terms.epsilon, terms)
        return LaplaceSettings(**found.typed(), scale=total / terms.epsilon)

    def total(self, terms: Terms, found: Numbers) -> Fraction:
        """Return the most that one person moves all numbers, in L1 and in steps.

        Snapping a real number to the lattice adds up to a step; counts are whole already.
        """
        if found.sizes == NOISY:
            return Fraction(self.snps(terms) + 1)
        moved = found.sensitivity / found.step + (found.range is not None)
        return moved * self.snps(terms)

    def snps(self, terms: Terms) -> int:
        """Return how many SNPs are asked about."""
        assert isinstance(terms.query, SnpQuery)
        return len(terms.query.chosen(int(terms.facts["snps"])))

    def numbers(self, terms: Terms) -> Numbers:
        """Return how many numbers there are, what one person moves of a SNP, and the lattice."""
        snps = self.snps(terms)
        if isinstance(terms.query, AlleleCounts):
            groups = 2 if terms.facts["labelled"] else 1
            found = Numbers(
                groups=groups,
                entries=2 * snps * groups,
                sensitivity=Fraction(COUNT_SENSITIVITY),
                step=Fraction(1),
            )
            if "complete" not in terms.facts:
                return found
            if "groups" in terms.facts:
                return replace(found, entries=snps * groups, sizes=terms.facts["groups"])
            return replace(found, entries=(snps + 1) * groups, sizes=NOISY)
        sensitivity = self.sensitivity(terms)
        step = Lattice.for_scale(sensitivity, self.fineness(terms)).step
        return Numbers(
            entries=snps, sensitivity=sensitivity, step=step, range=tuple(self.range(terms))
        )

    def fineness(self, terms: Terms) -> Fraction:
        """Return the step of the lattice of real entries as a share of their sensitivity."""
        return FINENESS

    def range(self, terms: Terms) -> list[float]:
        """Return the public range of a real entry.

        A p-value is at most one, the statistic at most the number of alleles.
        """
        if isinstance(terms.query, ChiSquares):
            return [0.0, 2.0 * sum(groups_of(terms) or ())]
        return [0.0, 1.0]

    def sensitivity(self, terms: Terms) -> Fraction:
        """Return the most that one person moves one real entry."""
        groups = groups_of(terms)
        if groups is None:
            raise QueryError(f"{terms.query} needs public sizes of the groups: ask it per row.")
        return (
            chi_square_sensitivity(*groups) if isinstance(terms.query, ChiSquares) else Fraction(1)
        )

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        law = LaplaceSettings.read(settings).law()
        return Prediction(law, law, float(law.scale) * float(law.step))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Genotypes)
        assert isinstance(terms.query, SnpQuery)
        chosen = LaplaceSettings.read(settings)
        centre = self.centre(terms, chosen, dataset)
        names = [dataset.snps[place] for place in terms.query.chosen(len(dataset.snps))]
        with charge(LaplaceCharge(self.total(terms, chosen))):
            noisy = centre + discrete_laplace(scale=chosen.scale, size=centre.shape, source=source)
        return Outcome(chosen.value(terms, noisy), chosen.law(), {"snps": names})

    def centre(self, terms: Terms, chosen: Numbers, dataset: Genotypes) -> Wholes:
        """Return the whole numbers that noise is added to; of counts, a row for each group.

        For each SNP d and m; where the table is declared complete d alone and, if it is not
        public, the size of the group after the others.
        """
        truth = terms.query.truth(dataset)
        if isinstance(terms.query, AlleleCounts):
            counts = np.asarray(truth, dtype=np.int64)
            if chosen.sizes is None:
                return counts
            if chosen.sizes == NOISY:
                return np.column_stack((counts[..., 0], dataset.group_sizes()))
            return counts[..., 0]
        return np.asarray(Lattice(chosen.step).snap(truth), dtype=np.int64)


def check_noise(scale: Fraction, terms: Terms) -> None:
    """Refuse noise that 64-bit numbers cannot hold, before anything is spent.

    Raises:
        QueryError: by public facts alone.
    """
    if scale > LARGEST_SCALE:
        raise QueryError(
            f"{terms.query} would need noise of scale {float(scale):.2g} at this epsilon, which "
            "64-bit numbers cannot hold. Ask about fewer SNPs, or spend more."
        )
