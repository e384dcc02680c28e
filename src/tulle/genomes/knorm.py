"""K-norm noise on allele counts, chi-square statistics and p-values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Wholes
from tulle.core.dataset import Dataset
from tulle.core.error_law import KNormLaw
from tulle.core.mechanism import Outcome, Parameters, Prediction, Terms
from tulle.core.source import Source
from tulle.genomes.data import Genotypes
from tulle.genomes.laplace import FINENESS, Laplace, Numbers, check_noise
from tulle.genomes.queries import AlleleCounts, ChiSquares, PValues, SnpQuery
from tulle.noise import Lattice, discrete_knorm
from tulle.noise.charge import KNormCharge, charge
from tulle.noise.watch import disjoint, part


@dataclass(frozen=True, eq=False, kw_only=True)
class KNormSettings(Numbers):
    """The public settings of one run."""

    numbers: int
    """How many numbers share a radius."""
    draws: int
    scale: Fraction

    def law(self) -> KNormLaw:
        """Return the law of the noise on all entries."""
        slack = 0.5 if self.range is None else float(self.step) / 2
        return KNormLaw(self.scale, self.numbers, self.step, draws=self.draws, slack=slack)


@registry.mechanism("genotypes", "knorm", answers=(AlleleCounts, ChiSquares, PValues))
class KNorm(Laplace):
    """Add K-norm noise: one radius for all numbers, since one person moves all of them a little.

    Guarantee:
        Pure epsilon. *Allele counts*: one person is in one group, and the groups' noise is drawn
        apart. Who joins or leaves adds (-1, 1), (0, 1), (1, 1) or (0, 0) to the numbers (d, m) of
        each SNP: each moves by at most 1, all at once. Who changes moves each of d + m and m - d,
        the copies of either allele, by at most 2: so noise is drawn for those, and halved sums and
        differences of them are released. Where the table is declared complete, d moves by at most 2
        under ``row``, and d and the size of the group by at most 1 under ``participant``.
        *Chi-square and p-values*: each moves by at most the bound of :class:`Laplace`, plus a
        lattice step. Noise of density falling with the largest of its numbers, of scale D/epsilon,
        pays for moves of at most D in each number.

        Numbers are counted in steps so small that the sampler serves the scale, and counts are
        rounded to whole people afterwards: post-processing.

    Error:
        Per number about 0.58·D·K / epsilon, K numbers to a draw, where Laplace noise has 1.41·D·K.
        The interval is for all numbers at once, through the law of the radius.

    Reference:
        Hardt & Talwar, On the geometry of differential privacy, STOC 2010; Awan & Slavkovic,
        Structure and sensitivity in differential privacy, JASA 2021.

    Example:
        >>> import tulle
        >>> study = tulle.Genotypes([[0, 1], [2, 2], [1, 0]], cases=[0, 1, 1])
        >>> r = tulle.release(study, tulle.genomes.allele_counts(), unit="row", epsilon=1.0)
        >>> r.mechanism, r.value.shape
        ('knorm', (2, 2, 2))
    """

    title: ClassVar[str] = "one radius of noise for all SNPs"
    reference: ClassVar[str] = "Hardt & Talwar, STOC 2010; Awan & Slavkovic, JASA 2021"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        found = self.numbers(terms)
        snps = self.snps(terms)
        if found.groups is None:
            numbers, draws = snps, 1
            moved = found.sensitivity / found.step + 1
        else:
            draws = found.groups
            numbers = found.entries // draws
            people = Fraction(2 if terms.unit.name == "row" else 1)
            # Steps so small that the scale is half of the numbers at least.
            step = Lattice.for_scale(
                min(2 * people / (numbers * terms.epsilon), Fraction(1)), 1
            ).step
            found = replace(found, sensitivity=people, step=step)
            moved = people / step
        scale = moved / terms.epsilon
        check_noise(scale * (numbers + 128), terms)
        return KNormSettings(**found.typed(), numbers=numbers, draws=draws, scale=scale)

    def fineness(self, terms: Terms) -> Fraction:
        return min(FINENESS, 2 / (self.snps(terms) * terms.epsilon))

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        chosen = KNormSettings.read(settings)
        law = chosen.law()
        # The radius is count + 1 scales on average, and numbers are uniform up to it; half a
        # difference of two of them is a third of it on average.
        halved = chosen.range is None and is_halved(terms, chosen)
        mean = (law.count + 1) * float(law.scale * law.step) / (3 if halved else 2)
        return Prediction(law, law, mean)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Genotypes)
        assert isinstance(terms.query, SnpQuery)
        chosen = KNormSettings.read(settings)
        centre = self.centre(terms, chosen, dataset)
        names = [dataset.snps[place] for place in terms.query.chosen(len(dataset.snps))]
        step, scale, count = chosen.step, chosen.scale, chosen.numbers
        moved = chosen.sensitivity / step
        if chosen.range is not None:
            with charge(KNormCharge(moved + 1)):
                noisy = centre + discrete_knorm(scale=scale, count=count, source=source)
            return Outcome(chosen.reals(terms, noisy), chosen.law(), {"snps": names})
        drawn = []
        with disjoint():
            for group in ("cases", "controls")[: chosen.draws]:
                with part(group), charge(KNormCharge(moved)):
                    drawn.append(discrete_knorm(scale=scale, count=count, source=source))
        noise = np.stack(drawn).reshape(centre.shape)
        noise = whole_noise(noise, int(1 / step), halved=is_halved(terms, chosen))
        return Outcome(chosen.counts(centre + noise), chosen.law(), {"snps": names})


def is_halved(terms: Terms, chosen: Numbers) -> bool:
    """Return whether noise on counts is drawn for d + m and m - d."""
    return terms.unit.name == "row" and chosen.sizes is None


def whole_noise(noise: Wholes, steps: int, *, halved: bool) -> Wholes:
    """Return noise on (d, m) in whole people, from noise in steps of which so many are one.

    Where it was drawn for d + m and m - d, ``halved``, it is turned back first. Rounded to the
    nearest, upwards in the middle.
    """
    if halved:
        first, second = noise[..., 0], noise[..., 1]
        noise = np.stack((first - second, first + second), axis=-1)
        steps *= 2
    return np.asarray((2 * noise + steps) // (2 * steps))
