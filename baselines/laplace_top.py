"""The strongest SNPs by two-sided noise: the scheme of the chapter, kept for comparison."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from baselines import baseline
from tulle.core.arrays import Wholes
from tulle.core.mechanism import Parameters
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.core.validate import rational
from tulle.genomes.queries import TopSnps
from tulle.genomes.top import TopMechanism, largest
from tulle.noise import discrete_laplace
from tulle.noise.charge import NoisyMaxCharge, charge


@baseline("genotypes", "laplace_top", answers=(TopSnps,))
class LaplaceTop(TopMechanism):
    """Add Laplace noise to every score once and name the SNPs with the largest sums.

    With scores asked for, choosing adds noise of scale 4·K·D/epsilon and the scores of the chosen
    get fresh noise of scale 2·K·D/epsilon: the published scheme.

    Guarantee:
        Pure epsilon, for the set of K SNPs, by the argument of ``one_shot``: Laplace noise, too,
        reaches a threshold moved by 2·D with a chance that changes by at most exp(2·D/scale).

    Error:
        With probability 1 - p a chosen SNP falls short by at most the scale times ln(N/p) +
        ln(K/p): the bound of ``one_shot`` and a term for noise downwards. Among many SNPs the
        noise upwards decides and both find about as many. Plans do not offer it.

    Reference:
        Bhaskar et al., Discovering frequent patterns in sensitive data, KDD 2010; Fienberg,
        Slavković & Uhler, Privacy preserving GWAS data sharing, ICDM workshops 2011.
    """

    title: ClassVar[str] = "two-sided noise on every score, once"
    reference: ClassVar[str] = "Bhaskar et al., KDD 2010"
    two_sided: ClassVar[bool] = True

    def offers(self, query: Query, unit: Unit) -> bool:
        return False

    def selection_scale(
        self, count: int, sensitivity: int, epsilon: Fraction, delta: Fraction
    ) -> Fraction:
        return 2 * count * sensitivity / epsilon

    def choose(
        self, scores: Wholes, count: int, settings: Parameters, source: Source | None
    ) -> Wholes:
        scale = rational(settings["selection_scale"])
        with charge(NoisyMaxCharge(settings["sensitivity"], count)):
            noise = discrete_laplace(scale=scale, size=len(scores), source=source)
        return largest(scores + noise, count)
