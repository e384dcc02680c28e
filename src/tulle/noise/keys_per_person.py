"""For how many keys each person counts: chosen privately from a few candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tulle.core.source import Source
from tulle.noise.charge import ExponentialCharge, charge
from tulle.noise.select import exponential


@dataclass(frozen=True)
class Tuning:
    """How the number of keys per person is chosen privately.

    Chosen on check-ins and ca-AstroPh (epsilon 1), where it is within a tenth of the best fixed
    number; there the number that most people have would find a third as many keys.
    """

    candidates: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    quantile: Fraction = Fraction(3, 4)
    """Which part of all people should have all their keys counted."""
    share: Fraction = Fraction(1, 10)
    """Which part of epsilon pays for the choice."""
    steepness: int = 2
    """How much likelier a candidate is than the next larger, before any data; as exponent."""


TUNING = Tuning()


MOVED = max(TUNING.quantile, 1 - TUNING.quantile)
"""How far one person moves a score, at most."""


def key_scores(having: Mapping[int, int], epsilon: Fraction) -> list[Fraction]:
    """Return how good each number of keys per person is: minus the distance from the quantile.

    ``having`` says how many people have how many keys. With q the quantile a candidate scores
    -|(1 - q)·within - q·above|, where so many people have at most that many keys, or more. Whoever
    joins or leaves changes one of the two by one, hence every score by at most max(q, 1 - q). What
    is taken off larger candidates, so that of equally good ones the smallest is likely, is the same
    for all data.

    Example:
        >>> scores = key_scores({1: 60, 2: 20, 9: 20}, Fraction(1))
        >>> TUNING.candidates[scores.index(max(scores))]
        2
    """
    found, everyone = [], sum(having.values())
    later = TUNING.steepness * 2 * MOVED / epsilon
    for place, most in enumerate(TUNING.candidates):
        within = sum(people for keys, people in having.items() if keys <= most)
        missing = TUNING.quantile * (everyone - within)
        found.append(-abs((1 - TUNING.quantile) * within - missing) - place * later)
    return found


def choose_keys(having: Mapping[int, int], epsilon: Fraction, source: Source | None) -> int:
    """Choose for how many keys everyone counts, by the exponential mechanism: pure epsilon."""
    scores = key_scores(having, epsilon)
    with charge(ExponentialCharge(MOVED)):
        place = exponential(scores, epsilon=epsilon, sensitivity=MOVED, source=source)
    return TUNING.candidates[place]
