"""From published associations to one number per trait and SNP, all counting the same allele."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tulle.core.arrays import Floats
from tulle.core.errors import InputError
from tulle.core.guarantee import Guarantee
from tulle.genomes.catalogue import Association

_COMPLEMENT = {"A": "T", "T": "A", "C": "G", "G": "C"}


def one_per_pair(
    associations: Sequence[Association],
) -> tuple[list[Association], dict[str, int]]:
    """Return one association for each trait and SNP, all for the same allele of a SNP.

    Of several the one with the smallest p-value is taken. Whoever reports the other letter of a
    SNP is turned round; where the letters could also be two strands of one allele, or one is
    unknown, the association is left out and counted.
    """
    counted = Counter[str]()
    best: dict[tuple[str, str], Association] = {}
    for item in associations:
        key = item.trait, item.snp
        if key in best:
            counted["reported more than once"] += 1
        if key not in best or (item.p_value or 1.0) < (best[key].p_value or 1.0):
            best[key] = item
    letters: dict[str, str] = {}
    kept = []
    for item in best.values():
        first = letters.setdefault(item.snp, item.allele)
        if item.allele == first:
            kept.append(item)
        elif not item.allele or not first or _COMPLEMENT.get(item.allele) == first:
            counted["another allele, or another strand"] += 1
        else:
            kept.append(
                Association(
                    item.trait,
                    item.snp,
                    first,
                    1 - item.frequency,
                    1 / item.odds_ratio,
                    item.p_value,
                    item.cases,
                    item.controls,
                )
            )
    return kept, dict(counted)


def baseline(items: Sequence[Association], population: float | None) -> float:
    """Return the log-odds of the allele without any of the traits.

    Lemma 7 multiplies the odds of all control groups and divides by the population's odds once
    for each trait but one. Without a population frequency, the mean of the log-odds takes its
    place, which makes the result that mean.
    """
    logits = np.log([item.frequency / (1 - item.frequency) for item in items])
    if population is None:
        return float(logits.mean())
    if not 0 < population < 1:
        raise InputError(f"The population frequency of {items[0].snp} must lie between 0 and 1.")
    return float(logits.sum() - (len(items) - 1) * np.log(population / (1 - population)))


def prevalences(traits: Sequence[str], given: Mapping[str, float] | float) -> Floats:
    """Return the prevalence of each trait, checked; one number stands for all of them."""
    if not isinstance(given, Mapping):
        given = dict.fromkeys(traits, float(given))
    missing = [trait for trait in traits if trait not in given]
    if missing:
        raise InputError(f"prevalence says nothing about {missing[0]!r}.")
    found = np.array([float(given[trait]) for trait in traits])
    if not bool(((found > 0) & (found < 1)).all()):
        raise InputError("A prevalence must lie strictly between 0 and 1.")
    return found


def orientation(allele: str, counted: str, other: str) -> bool | None:
    """Say whether the table counts this allele; None when that cannot be told."""
    if not allele or not counted:
        return None
    if allele in (counted, other):
        return allele == counted
    strand = _COMPLEMENT.get(allele)
    if strand in (counted, other):
        return strand == counted
    return None


def weakest(guarantees: Iterable[Guarantee]) -> Guarantee | None:
    """Return the weakest of some guarantees: what one participant of one study has."""
    found = list(guarantees)
    if not found:
        return None
    if not all(item.holds for item in found):
        return next(item for item in found if not item.holds)
    return max(found, key=lambda item: (item.delta, item.epsilon or item.rho or 0))
