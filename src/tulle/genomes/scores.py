"""Sums over people, the tests made of them, and how far one person moves each.

For a group of people write d for the sum of (genotype - 1) and m for the number of people whose
genotype is known, per SNP. A missing genotype adds (0, 0), the others (-1, 1), (0, 1) or (1, 1).
Hence one person moves (d, m) by at most 2 in L1, whether they join, leave or change: two records
differ by at most 2 as well, so that missing values cost nothing. With n people, d + n is the count
of alleles when a missing genotype counts as one copy.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import gcd

import numba
import numpy as np

from tulle.core.arrays import Floats, Truths, Wholes
from tulle.genomes.data import Cells, Genotypes

COUNT_SENSITIVITY = 2
"""The most that one person moves (d, m) of one SNP, over all groups together."""


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _sums(cells: Cells, chosen: Truths, found: Wholes) -> None:
    for person in range(cells.shape[0]):
        if chosen[person]:
            for snp in range(cells.shape[1]):
                value = cells[person, snp]
                if value >= 0:
                    found[snp, 0] += value - 1
                    found[snp, 1] += 1


def group_sums(dataset: Genotypes) -> Wholes:
    """Return (group, SNP, 2): the sums d and m for cases and controls, or for everyone."""
    cells, cases = dataset.cells(), dataset.labels
    groups = [np.ones(len(cells), dtype=np.bool_)] if cases is None else [cases, ~cases]
    found = np.zeros((len(groups), cells.shape[1], 2), dtype=np.int64)
    for place, chosen in enumerate(groups):
        _sums(cells, chosen, found[place])
    return found


def chi_squares(alleles: Floats, sizes: Floats) -> Floats:
    """Return Pearson's statistic of each 2 x 2 table of alleles.

    ``alleles`` is (2, SNPs), the counted alleles of cases and controls; ``sizes`` the numbers of
    all alleles in either group, of a shape that fits. Where an allele does not occur, or occurs
    only, the statistic is 0.
    """
    counted = alleles.sum(axis=0)
    total = np.broadcast_to(sizes.sum(axis=0), counted.shape)
    margin = counted * (total - counted) * np.broadcast_to(sizes[0] * sizes[1], counted.shape)
    cross = alleles[0] * (sizes[1] - alleles[1]) - alleles[1] * (sizes[0] - alleles[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        found = total * cross**2 / margin
    return np.where(margin > 0, found, 0.0)


def true_chi_squares(dataset: Genotypes) -> Floats:
    """Return the statistic of each SNP, a missing genotype counted as one copy."""
    people = np.array(dataset.group_sizes(), dtype=np.float64)
    alleles = group_sums(dataset)[:, :, 0] + people[:, None]
    return chi_squares(alleles, 2 * people[:, None])


@lru_cache(maxsize=64)
def chi_square_sensitivity(cases: int, controls: int) -> Fraction:
    """Return the most that one person's genotype moves the statistic, rounded up.

    With a and b counted alleles among 2R and 2S, T in all and m = a + b, the statistic is
    T·(a²/(2R·m) + b²/(2S·m) + (2R - a)²/(2R·(T - m)) + (2S - b)²/(2S·(T - m))) - T. Each term is
    a square over a linear function, which is convex. So along a alone the steps grow: the largest
    step up or down is the first or the last one, for every b, and likewise along b. Those are
    compared for all values of the other count; for R = S = n/2 the result is 8n/(n + 2).
    """
    worst = 0.0
    for own, others in ((cases, controls), (controls, cases)):
        sizes = np.array([[2.0 * own], [2.0 * others]])
        counts = np.arange(2 * others + 1, dtype=np.float64)
        for end, step in ((0, 1), (0, 2), (2 * own, -1), (2 * own, -2)):
            ends = [
                chi_squares(np.stack([np.full_like(counts, place), counts]), sizes)
                for place in (end, end + step)
            ]
            worst = max(worst, float(np.abs(ends[0] - ends[1]).max()))
    # The statistic is at most T and computed in a few roundings, here and on the data.
    rounding = Fraction(2 * (cases + controls), 2**48) + Fraction(1, 10**9)
    return Fraction(worst).limit_denominator(10**12) + rounding


def difference_weights(cases: int, controls: int) -> tuple[int, int]:
    """Return whole weights of cases and controls in the inverse ratio of their numbers."""
    common = gcd(cases, controls) or 1
    return max(controls // common, 1), max(cases // common, 1)


def true_differences(dataset: Genotypes, weights: tuple[int, int]) -> Wholes:
    """Return |w·d of the cases - v·d of the controls| for weights (w, v).

    With weights in the inverse ratio of the groups this is proportional to the difference of
    their allele frequencies.
    """
    sums = group_sums(dataset)[:, :, 0]
    found: Wholes = np.abs(weights[0] * sums[0] - weights[1] * sums[1])
    return found
