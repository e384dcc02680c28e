"""The strongest SNPs as a set, by one draw of one-sided noise for each."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from tulle.core import registry
from tulle.core.arrays import Wholes
from tulle.core.source import Source
from tulle.genomes.queries import TopSnps
from tulle.genomes.top import TopMechanism, TopScoresSettings, largest
from tulle.noise import geometric
from tulle.noise.charge import NoisyMaxCharge, charge


@registry.mechanism("genotypes", "one_shot", answers=(TopSnps,))
class OneShot(TopMechanism):
    """Add geometric noise to every score once and name the SNPs with the largest sums.

    Guarantee:
        Pure epsilon, for the set of K SNPs. Fix the noise of all others and an order for ties:
        the set is chosen when each of its K noises reaches a threshold of its own, and one person
        moves each threshold by at most twice the sensitivity D. A geometric noise of scale
        2·K·D/epsilon reaches a threshold moved so with a chance that changes by at most
        exp(epsilon/K); the K of them are independent. What is named is a set: its order would
        tell more.

    Error:
        With probability 1 - p no SNP that was passed over is better than a chosen one by more
        than the scale times ln(N/p), for N SNPs.

    Reference:
        Durfee & Rogers, Practical differentially private top-k selection, NeurIPS 2019; McKenna &
        Sheldon, Permute-and-flip, NeurIPS 2020, whose choice of one is that of exponential noise.

    Example:
        >>> import tulle
        >>> study = tulle.Genotypes([[0, 2], [0, 1], [0, 0]], cases=[1, 1, 0])
        >>> r = tulle.release(study, tulle.genomes.top_snps(1), unit="row", epsilon=1000.0)
        >>> r.value["snps"], r.mechanism
        (['snp1'], 'one_shot')
    """

    title: ClassVar[str] = "one-sided noise on every score, once"
    reference: ClassVar[str] = "Durfee & Rogers, NeurIPS 2019"

    def selection_scale(
        self, count: int, sensitivity: int, epsilon: Fraction, delta: Fraction
    ) -> Fraction:
        return 2 * count * sensitivity / epsilon

    def choose(
        self, scores: Wholes, count: int, chosen: TopScoresSettings, source: Source | None
    ) -> Wholes:
        scale = chosen.selection_scale
        with charge(NoisyMaxCharge(chosen.sensitivity, count)):
            noise = geometric(scale=scale, size=len(scores), source=source)
        return largest(scores + noise, count)
