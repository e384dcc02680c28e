"""Gaussian noise on allele counts, chi-square statistics and p-values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.error_law import GaussianLaw
from tulle.core.events import Event
from tulle.core.events import Gaussian as GaussianEvent
from tulle.core.gaussian import rho_for
from tulle.core.mechanism import Outcome, Parameters, Prediction, Terms
from tulle.core.source import Source
from tulle.genomes.data import Genotypes
from tulle.genomes.laplace import NOISY, Laplace, Numbers, check_noise
from tulle.genomes.queries import AlleleCounts, ChiSquares, PValues, SnpQuery
from tulle.noise import discrete_gaussian
from tulle.noise.charge import GaussianCharge, charge


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianSettings(Numbers):
    """The public settings of one run."""

    squared: Fraction
    """The square of the most that one person moves all numbers in L2, in steps."""
    variance: Fraction

    def law(self) -> GaussianLaw:
        """Return the law of the noise on all entries."""
        # The root, rounded up.
        sigma = Fraction(math.isqrt(math.ceil(self.variance * 10**12)) + 1, 10**6)
        return GaussianLaw(sigma, self.entries, self.step)


@registry.mechanism("genotypes", "gaussian", answers=(AlleleCounts, ChiSquares, PValues))
class Gaussian(Laplace):
    """Add discrete Gaussian noise to every number, of a variance that fits a person's squares.

    Guarantee:
        (epsilon, delta). *Allele counts* of K SNPs: who joins or leaves moves the two numbers of
        each SNP by (1, 1) at most, whose squares add up to 2; who changes moves them by (2, 0) or
        (1, 1) at most: 4. So 2K or 4K in all; of a table that is declared complete K + 1 or 4K,
        since m is one number or public. *Chi-square and p-values*: K times the square of
        what one of them moves, a lattice step included. Independent discrete Gaussian noise of
        variance squares / (2·rho) is rho-zero-concentrated (Canonne, Kamath & Steinke 2020,
        theorem 4), and rho is one that by itself implies (epsilon, delta), as
        :mod:`tulle.core.gaussian` shows; for accounts that add rho up, by their corollary 13.

    Error:
        The noise itself: it grows with the root of the number of SNPs, where that of pure
        mechanisms grows with their number.

    Reference:
        Canonne, Kamath & Steinke, The discrete Gaussian for differential privacy, NeurIPS 2020.

    Example:
        >>> import tulle
        >>> study = tulle.Genotypes([[0] * 50, [2] * 50, [1] * 50], cases=[0, 1, 1])
        >>> r = tulle.release(
        ...     study, tulle.genomes.allele_counts(), unit="row", epsilon=1.0, delta=1e-6)
        >>> r.mechanism
        'gaussian'
    """

    title: ClassVar[str] = "Gaussian noise on what one person can move"
    reference: ClassVar[str] = "Canonne et al., NeurIPS 2020"
    needs_delta: ClassVar[bool] = True
    concentrated: ClassVar[bool] = True

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        found = self.numbers(terms)
        if found.sizes == NOISY:
            squared = Fraction(self.snps(terms) + 1)
        elif isinstance(terms.query, AlleleCounts):
            squared = Fraction(4 if terms.unit.name == "row" else 2) * self.snps(terms)
        else:
            moved = found.sensitivity / found.step + 1
            squared = moved**2 * self.snps(terms)
        variance = squared / (2 * rho_for(terms, squared))
        check_noise(Fraction(math.isqrt(math.ceil(variance))), terms)
        return GaussianSettings(**found.typed(), squared=squared, variance=variance)

    def event(self, terms: Terms, settings: Parameters) -> Event:
        chosen = GaussianSettings.read(settings)
        return GaussianEvent.of(chosen.squared, chosen.variance)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        law = GaussianSettings.read(settings).law()
        return Prediction(law, law, float(law.sigma * law.step) * math.sqrt(2 / math.pi))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Genotypes)
        assert isinstance(terms.query, SnpQuery)
        chosen = GaussianSettings.read(settings)
        centre = self.centre(terms, chosen, dataset)
        names = [dataset.snps[place] for place in terms.query.chosen(len(dataset.snps))]
        with charge(GaussianCharge(chosen.squared)):
            noisy = centre + discrete_gaussian(
                variance=chosen.variance, size=centre.shape, source=source
            )
        return Outcome(chosen.value(terms, noisy), chosen.law(), {"snps": names})
