"""Membership inference: was this person in the case group of a study? From its frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.attacks.intervals import rate_interval
from tulle.attacks.limits import SUCCESS_REASON, success_limit
from tulle.attacks.report import CERTAIN, AttackReport, released
from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.core.release import Release
from tulle.genomes.data import MISSING
from tulle.genomes.estimates import allele_frequencies

LEVEL = 0.95


def membership_scores(release: Release, profiles: Any, reference: Any) -> npt.NDArray[np.float64]:
    """Return, per person, how much more they look like the cases than like the reference.

    The sum over SNPs of (frequency among cases - reference)·(own frequency - reference), divided
    by the variance of the allele; missing genotypes add nothing.
    """
    known = released(release, "a release of tulle.genomes.allele_counts()")
    cases = next(iter(allele_frequencies(known).values())).value
    people, base = _read(profiles, reference, len(cases))
    own = np.where(people == MISSING, base, people / 2)
    return np.asarray(((cases - base) * (own - base) / (base * (1 - base))).sum(axis=1))


@public()
def membership_inference(
    release: Release, profiles: Any, *, reference: Any, truth: Any
) -> AttackReport:
    """Guess who of some people was in the case group, from its released allele counts.

    Half of the people were, and the adversary knows that: the half with the larger scores is
    guessed. ``reference`` holds the allele frequencies of people at large.

    Error:
        The limit is for someone who was either in the study or replaced by another; the adversary
        knew each with even odds.

    Raises:
        InputError: when the release, the profiles and the reference do not fit each other.

    Reference:
        Homer et al., Resolving individuals contributing trace amounts of DNA, PLoS Genetics 2008;
        Sankararaman et al., Nature Genetics 2009, for the weights.
    """
    scores = membership_scores(release, profiles, reference)
    real = np.asarray(truth)
    if real.shape != scores.shape or not bool(np.isin(real, (0, 1)).all()):
        raise InputError("truth must say for each person whether they took part: 1 or 0.")
    if 2 * int(real.sum()) != len(real):
        raise InputError("Half of the people must have taken part, so that guessing is right half.")
    order = np.argsort(-scores, kind="stable")
    guess = np.zeros(len(scores), dtype=bool)
    guess[order[: len(scores) // 2]] = True
    right = int((guess == real.astype(bool)).sum())
    units = 1 if release.guarantee.unit.relation == "replace" else 2
    return AttackReport(
        attack="membership",
        secret="who was among the cases",
        knows=("everybody's genotypes", "the allele frequencies of people at large"),
        measure="success",
        before=0.5,
        after=right / len(real),
        interval=rate_interval(right, len(real), LEVEL),
        level=LEVEL,
        wide=rate_interval(right, len(real), CERTAIN),
        limits=(0.0, success_limit("0.5", release.guarantee, units=units, values=2)),
        reason=SUCCESS_REASON,
        guarantee=release.guarantee,
        trials=len(real),
        details={"snps": len(np.asarray(reference)), "separation": _separation(scores, real)},
    )


def _separation(scores: npt.NDArray[np.float64], real: npt.NDArray[Any]) -> float:
    """Return how often somebody who took part scores above somebody who did not."""
    from scipy.stats import rankdata

    members = real.astype(bool)
    inside, outside = int(members.sum()), int((~members).sum())
    ranks = rankdata(scores)[members].sum()
    return float((ranks - inside * (inside + 1) / 2) / (inside * outside))


def _read(profiles: Any, reference: Any, snps: int) -> tuple[Any, npt.NDArray[np.float64]]:
    people, base = np.asarray(profiles), np.asarray(reference, dtype=np.float64)
    if people.ndim != 2 or people.shape[1] != snps or base.shape != (snps,):
        raise InputError(f"profiles and reference must have one column for each of {snps} SNPs.")
    if not bool(((base > 0) & (base < 1)).all()):
        raise InputError("The reference frequencies must lie strictly between 0 and 1.")
    if not bool(np.isin(people, (MISSING, 0, 1, 2)).all()):
        raise InputError("A profile holds 0, 1, 2 or -1 (missing).")
    return people, base
