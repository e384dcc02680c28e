"""The strongest SNPs in order: one after another, each by its own private choice."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Wholes
from tulle.core.source import Source
from tulle.genomes.queries import TopSnps
from tulle.genomes.top import TopMechanism, TopScoresSettings
from tulle.noise import geometric
from tulle.noise.charge import NoisyMaxCharge, charge


@registry.mechanism("genotypes", "peeling", answers=(TopSnps,))
class Peeling(TopMechanism):
    """Choose the strongest SNP privately, take it out, and choose again.

    Guarantee:
        Pure epsilon, for the SNPs in their order: K choices at epsilon/K each. One choice adds
        geometric noise of scale 2·K·D/epsilon and takes the largest, the first of equals. With
        the others' noise fixed the winner's noise must reach a threshold, which one person moves
        by at most 2·D. This is permute-and-flip on whole numbers, in a form that works on arrays.

    Error:
        With probability 1 - p no choice is worse than the best left by more than the scale times
        ln(K·N/p).

    Reference:
        McKenna & Sheldon, Permute-and-flip, NeurIPS 2020; Ding, Kifer et al., The permute-and-flip
        mechanism is identical to report-noisy-max with exponential noise, 2021.

    Example:
        >>> import tulle
        >>> study = tulle.Genotypes([[0, 2], [0, 1], [0, 0]], cases=[1, 1, 0])
        >>> ask = tulle.genomes.top_snps(2)
        >>> tulle.release(study, ask, unit="row", epsilon=1000.0, mechanism="peeling").value["snps"]
        ['snp1', 'snp0']
    """

    title: ClassVar[str] = "one choice after another"
    reference: ClassVar[str] = "McKenna & Sheldon, NeurIPS 2020"
    rounds: ClassVar[bool] = True

    def selection_scale(
        self, count: int, sensitivity: int, epsilon: Fraction, delta: Fraction
    ) -> Fraction:
        return 2 * count * sensitivity / epsilon

    def choose(
        self, scores: Wholes, count: int, chosen: TopScoresSettings, source: Source | None
    ) -> Wholes:
        scale = chosen.selection_scale
        left = np.arange(len(scores))
        found = []
        for _ in range(count):
            with charge(NoisyMaxCharge(chosen.sensitivity, 1)):
                noise = geometric(scale=scale, size=len(left), source=source)
            best = int(np.argmax(scores[left] + noise))
            found.append(int(left[best]))
            left = np.delete(left, best)
        return np.array(found, dtype=np.int64)
