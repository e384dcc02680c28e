"""The strongest SNPs by the exponential mechanism, round after round, at an (epsilon, delta)."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Wholes
from tulle.core.guarantee import epsilon_of_rho, floor_to
from tulle.core.source import Source
from tulle.genomes.queries import TopSnps
from tulle.genomes.top import TopMechanism, TopScoresSettings
from tulle.noise import choose_log_weights, uniform_below
from tulle.noise.charge import ChoiceCharge, charge


@registry.mechanism("genotypes", "exponential", answers=(TopSnps,))
class Exponential(TopMechanism):
    """Draw the SNPs one after another, each with weight exp(score / scale).

    Guarantee:
        (epsilon, delta), for the SNPs in their order. A round at scale 2·D/e has log-ratios that
        span at most e, so it is (e²/8)-zero-concentrated; K rounds add up to K·e²/8, and e is the
        largest for which that implies (epsilon, delta), or K·e <= epsilon where that is larger.
        For many SNPs this is far less noise than a pure guarantee needs: it grows with the square
        root of K. Draws are exact; SNPs of equal score are drawn together and then evenly.

    Error:
        With probability 1 - p no choice is worse than the best left by more than the scale times
        ln(K·N/p).

    Reference:
        Durfee & Rogers, Practical differentially private top-k selection, NeurIPS 2019; Cesar &
        Rogers, Bounding, concentrating, and truncating, ALT 2021, for bounded range.

    Example:
        >>> import tulle
        >>> study = tulle.Genotypes([[0, 2], [0, 1], [0, 0]], cases=[1, 1, 0])
        >>> r = tulle.release(study, tulle.genomes.top_snps(2), unit="row", epsilon=1000.0,
        ...                   delta=1e-6, mechanism="exponential")
        >>> r.value["snps"]
        ['snp1', 'snp0']
    """

    title: ClassVar[str] = "one choice after another, with a delta"
    reference: ClassVar[str] = "Durfee & Rogers, NeurIPS 2019"
    needs_delta: ClassVar[bool] = True
    rounds: ClassVar[bool] = True

    def selection_scale(
        self, count: int, sensitivity: int, epsilon: Fraction, delta: Fraction
    ) -> Fraction:
        return 2 * sensitivity / round_epsilon(count, epsilon, delta)

    def choose(
        self, scores: Wholes, count: int, chosen: TopScoresSettings, source: Source | None
    ) -> Wholes:
        scale = chosen.selection_scale
        levels, places = np.unique(scores, return_inverse=True)
        order = np.argsort(places, kind="stable")
        # The SNPs of each level that are still there.
        groups = np.split(order, np.cumsum(np.bincount(places, minlength=len(levels)))[:-1])
        left = [group.tolist() for group in groups]
        exponents = [(int(levels[-1]) - int(level)) / scale for level in levels]
        found = []
        for _ in range(count):
            counts = [len(group) for group in left]
            with charge(ChoiceCharge(chosen.sensitivity, levels.tolist(), scale)):
                level = choose_log_weights(exponents, multiplicities=counts, source=source)
                place = uniform_below(counts[level], source=source)
            found.append(left[level].pop(place))
        return np.array(found, dtype=np.int64)


@lru_cache(maxsize=256)
def round_epsilon(count: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest epsilon of one round of so many that together keep (epsilon, delta).

    Example:
        >>> one = round_epsilon(100, Fraction(1), Fraction(1, 10**6))
        >>> 4.4 < 100 * one < 4.5
        True
    """
    low, high = epsilon / count, 2 * epsilon
    for _ in range(40):
        middle = (low + high) / 2
        # Short fractions: they end up in the settings and in every weight.
        middle = Fraction(round(middle * 2**40), 2**40)
        if epsilon_of_rho(count * middle**2 / 8, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return max(floor_to(low, 12), floor_to(epsilon / count, 12))
