"""From released allele counts to frequencies, odds ratios and tests. Costs no privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tulle.core.arrays import Floats
from tulle.core.error_law import LaplaceLaw, check_level
from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.core.release import Release
from tulle.genomes.scores import chi_squares as statistics


@public()
@dataclass(frozen=True)
class SnpEstimates:
    """A number for each SNP, with an interval that covers the true number of the data at hand.

    The intervals are for the noise alone, for all SNPs at once: they say what the study's own
    table holds, not what holds for everybody else.
    """

    snps: tuple[str, ...]
    value: Floats
    low: Floats
    high: Floats
    level: float


@public()
def allele_frequencies(release: Release, *, level: float = 0.95) -> dict[str, SnpEstimates]:
    """Return the frequency of the counted allele among known genotypes, for each group.

    With d and m released, the frequency is 1/2 + d/(2m). Its ends are those of the quotient over
    the intervals of d and m, within [0, 1]; where m may be zero nothing is known.

    Raises:
        InputError: when this is not a release of allele counts.

    Example:
        >>> import tulle
        >>> study = tulle.Genotypes([[2], [1], [0], [0]], cases=[1, 1, 0, 0])
        >>> r = tulle.release(study, tulle.genomes.allele_counts(), unit="row", epsilon=1000.0)
        >>> allele_frequencies(r)["cases"].value.tolist()
        [0.75]
    """
    value, width, names = _counts(release, level)
    # Of a table that is declared complete the number of people may be public.
    known = 0.0 if isinstance(release.parameters.get("sizes"), list) else width
    words = ("cases", "controls") if len(value) == 2 else ("everyone",)
    found = {}
    for word, sums in zip(words, value, strict=True):
        d, m = sums[:, 0].astype(np.float64), sums[:, 1].astype(np.float64)
        low, high = _quotient(d, m, width, known)
        middle = np.where(m > 0, np.clip(0.5 + d / (2 * np.maximum(m, 1)), 0, 1), 0.5)
        found[word] = SnpEstimates(names, middle, 0.5 + low / 2, 0.5 + high / 2, level)
    return found


@public()
def odds_ratios(release: Release, *, level: float = 0.95) -> SnpEstimates:
    """Return the odds ratio of the counted allele, cases to controls, from private frequencies.

    An odds ratio itself has no bounded sensitivity; the frequencies have. Half an allele is added
    to either side of each, so that the ratio is always a finite number.

    Raises:
        InputError: when this is not a release of allele counts of cases and controls.
    """
    value, _, names = _counts(release, level, compared=True)
    frequencies = allele_frequencies(release, level=level)
    sizes = np.maximum(value[:, :, 1].astype(np.float64), 1.0)
    odds = []
    for place, word in enumerate(("cases", "controls")):
        found, half = frequencies[word], 0.5 / (2 * sizes[place])
        ends = (found.value, found.low, found.high)
        odds.append([(np.clip(f, 0, 1) + half) / (1 - np.clip(f, 0, 1) + half) for f in ends])
    (case, case_low, case_high), (control, control_low, control_high) = odds
    return SnpEstimates(
        names, case / control, case_low / control_high, case_high / control_low, level
    )


@public()
def association_tests(release: Release) -> SnpEstimates:
    """Return the chi-square statistic computed from released allele counts, without an interval.

    Noise in the counts makes it larger on average: compare it with :func:`significance` only when
    the noise is small beside the counts, or ask for ``chi_squares`` themselves.

    Raises:
        InputError: when this is not a release of allele counts of cases and controls.
    """
    value, _, names = _counts(release, 0.95, compared=True)
    people = np.maximum(value[:, :, 1].astype(np.float64), 0.0)
    alleles = np.clip(value[:, :, 0] + people, 0, 2 * people)
    found = statistics(alleles, 2 * people)
    blank = np.full_like(found, np.nan)
    return SnpEstimates(names, found, blank, blank, 0.0)


@public()
def significance(release: Release, *, level: float = 0.95) -> SnpEstimates:
    """Return p-values from released chi-square statistics, with intervals.

    A p-value falls as the statistic grows, so the ends of one give the ends of the other.

    Raises:
        InputError: when this is not a release of chi-square statistics.
    """
    from scipy.stats import chi2

    if not isinstance(release, Release) or not release.query.startswith("chi_squares("):
        raise InputError("This needs a release of tulle.genomes.chi_squares().")
    low, high = release.interval(check_level(level))
    value, smallest, largest = (chi2.sf(x, 1) for x in (release.value, high, low))
    return SnpEstimates(tuple(release.parameters["snps"]), value, smallest, largest, level)


@public()
def score_intervals(release: Release, *, level: float = 0.95) -> SnpEstimates:
    """Return the released scores of the strongest SNPs, with intervals; none is shown below zero.

    Raises:
        InputError: when this is not a release of ``top_snps(..., scores=True)``.
    """
    from tulle.core.validate import rational

    known = release.parameters if isinstance(release, Release) else {}
    if "score_scale" not in known:
        raise InputError("This needs a release of tulle.genomes.top_snps(..., scores=True).")
    step = rational(known["step"])
    law = LaplaceLaw(rational(known["score_scale"]), step=step, count=int(known["count"]))
    width = law.half_width(level) + (float(step) / 2 if known["weights"] is None else 0.0)
    noisy = np.array(release.value["scores"], dtype=np.float64)
    value, low, high = (np.maximum(noisy + side * width, 0.0) for side in (0, -1, 1))
    return SnpEstimates(tuple(release.value["snps"]), value, low, high, level)


def _counts(
    release: Release, level: float, *, compared: bool = False
) -> tuple[Any, float, tuple[str, ...]]:
    if not isinstance(release, Release) or not release.query.startswith("allele_counts("):
        raise InputError("This needs a release of tulle.genomes.allele_counts().")
    if compared and len(release.value) != 2:
        raise InputError("This compares cases with controls; nobody was labelled as such.")
    assert release.error is not None
    width = release.error.half_width(check_level(level))
    return np.asarray(release.value), width, tuple(release.parameters["snps"])


def _quotient(d: Floats, m: Floats, width: float, known: float) -> tuple[Floats, Floats]:
    """Return the ends of d/m within [-1, 1] when d is off by ``width`` at most, m by ``known``."""
    least, most = m - known, np.maximum(m + known, 1.0)
    # A negative numerator is smallest over the smallest denominator, a positive one over the
    # largest; where the denominator may be zero or less, the quotient may be anything.
    unknown = least < 1
    safe = np.where(unknown, 1.0, least)
    low_end, high_end = d - width, d + width
    low = np.where(low_end < 0, low_end / safe, low_end / most)
    high = np.where(high_end > 0, high_end / safe, high_end / most)
    return (
        np.clip(np.where(unknown, -1.0, low), -1, 1),
        np.clip(np.where(unknown, 1.0, high), -1, 1),
    )
