"""Closed forms of private choices among SNPs: which set, or which order, with what chance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, permutations
from typing import Any, Literal

import numpy as np

from tulle.audit.engine.laws import Claim, LaplaceVector, Law, ratio
from tulle.core.arrays import Floats
from tulle.genomes.knorm import whole_noise

Way = Literal["one_shot", "peeling", "laplace_top", "exponential"]

ORDERED = ("peeling", "exponential")
Chosen = tuple[int, ...]


@dataclass(frozen=True)
class Selection(Law):
    """The choice of ``count`` places by noisy whole scores."""

    way: Way
    scores: tuple[int, ...]
    count: int
    scale: Fraction
    sensitivity: int
    """The most that one person moves a score, as claimed."""

    def claims(self, other: Selection) -> Iterator[Claim]:
        moved = max(abs(a - b) for a, b in zip(self.scores, other.scores, strict=True))
        figure = f"moves {moved} of {self.sensitivity}"
        yield Claim("score sensitivity", ratio(moved, self.sensitivity), figure)

    def loss(self, other: Selection) -> float:
        if self.scores == other.scores:
            return 0.0
        return float(np.max(self._logs() - other._logs()))

    def losses(self, other: Selection) -> tuple[Floats, Floats]:
        logs = self._logs()
        return np.exp(logs), logs - other._logs()

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        return list(outcomes(self.way, len(self.scores), self.count)), np.exp(self._logs())

    def _logs(self) -> Floats:
        # Only differences of scores matter to a choice.
        least = min(self.scores)
        levelled = tuple(score - least for score in self.scores)
        return _log_chances(self.way, levelled, self.count, self.scale)


@dataclass(frozen=True)
class ChosenScores(Law):
    """Noise on the scores of the chosen SNPs, whichever they are: examined for the worst choice.

    Which scores are released is for the choice to say, and that is another part; given the same
    choice on two neighbours, the loss is that of the noise on the chosen scores.
    """

    scores: tuple[int, ...]
    count: int
    scale: Fraction
    sensitivity: int
    """The most that one person moves one score, as claimed."""

    def _worst(self, other: ChosenScores) -> tuple[LaplaceVector, LaplaceVector]:
        """Return the two laws on the scores that move furthest."""
        moves = [abs(a - b) for a, b in zip(self.scores, other.scores, strict=True)]
        places = sorted(range(len(moves)), key=lambda place: -moves[place])[: self.count]
        return self._only(places), other._only(places)

    def _only(self, places: list[int]) -> LaplaceVector:
        return LaplaceVector(
            tuple(self.scores[place] for place in places),
            (self.scale,) * len(places),
            Fraction(self.count * self.sensitivity),
        )

    def claims(self, other: ChosenScores) -> Iterator[Claim]:
        ours, theirs = self._worst(other)
        return ours.claims(theirs)

    def loss(self, other: ChosenScores) -> float:
        ours, theirs = self._worst(other)
        return ours.loss(theirs)

    def losses(self, other: ChosenScores) -> tuple[Floats, Floats]:
        ours, theirs = self._worst(other)
        return ours.losses(theirs)

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        return self._only(list(range(self.count))).points(left_out)


@dataclass(frozen=True)
class KNormVector(Law):
    """K-norm noise on numbers in steps, of which ``steps`` are one person in what is released.

    With ``halved`` the numbers are d + m and m - d, and d and m are released.
    """

    centre: tuple[int, ...]
    scale: Fraction
    sensitivity: Fraction
    """The most that one person moves any of the numbers, as claimed."""
    steps: int
    halved: bool

    def _moved(self, other: KNormVector) -> int:
        return max(abs(a - b) for a, b in zip(self.centre, other.centre, strict=True))

    def claims(self, other: KNormVector) -> Iterator[Claim]:
        moved = self._moved(other)
        figure = f"moves {moved} of {self.sensitivity}"
        yield Claim("largest move", ratio(moved, float(self.sensitivity)), figure)

    def loss(self, other: KNormVector) -> float:
        return math.inf if self.scale != other.scale else float(self._moved(other) / self.scale)

    def losses(self, other: KNormVector) -> tuple[Floats, Floats]:
        return np.array([1.0]), np.array([self.loss(other)])

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        # Of one SNP: the one or two numbers of a group, all radii but those that hardly occur.
        scale = float(self.scale)
        tail = math.log(1 / left_out)
        reach = math.ceil(scale * (tail + math.log1p(tail) + 1)) + 1
        axis = np.arange(-reach, reach + 1)
        grids = np.meshgrid(*[axis] * len(self.centre))
        noise = np.stack([grid.ravel() for grid in grids], axis=-1)
        masses = np.exp(-np.abs(noise).max(axis=1) / scale)
        centre = np.array(self.centre)
        if self.halved:
            centre = np.array([centre[0] - centre[1], centre[0] + centre[1]]) // 2
        whole = centre // self.steps + whole_noise(noise, self.steps, halved=self.halved)
        values, places = np.unique(whole, axis=0, return_inverse=True)
        summed = np.bincount(places.ravel(), weights=masses / masses.sum())
        return [tuple(value) for value in values.tolist()], summed.astype(np.float64)


def outcomes(way: Way, options: int, count: int) -> list[Chosen]:
    """Return all that can be chosen: sets in order of place, or ordered choices."""
    every = permutations if way in ORDERED else combinations
    return list(every(range(options), count))


@lru_cache(maxsize=20_000)
def _log_chances(way: Way, scores: tuple[int, ...], count: int, scale: Fraction) -> Floats:
    found = outcomes(way, len(scores), count)
    if way == "exponential":
        logs = [_log_weighted(scores, chosen, float(scale)) for chosen in found]
    elif way == "peeling":
        logs = [_log_order(scores, chosen, scale) for chosen in found]
    else:
        logs = [_log_set(way == "laplace_top", scores, chosen, scale) for chosen in found]
    return np.array(logs)


def _log_order(scores: tuple[int, ...], chosen: Chosen, scale: Fraction) -> float:
    total, left = 0.0, list(range(len(scores)))
    for place in chosen:
        subset = tuple(scores[option] for option in left)
        total += _log_set(False, subset, (left.index(place),), scale)
        left.remove(place)
    return total


def _log_weighted(scores: tuple[int, ...], chosen: Chosen, scale: float) -> float:
    """Return the log-chance of an order when each choice has weight exp(score / scale)."""
    total, left = 0.0, dict(enumerate(scores))
    for place in chosen:
        top = max(left.values())
        weights = [math.exp((score - top) / scale) for score in left.values()]
        total += (left.pop(place) - top) / scale - math.log(math.fsum(weights))
    return total


@lru_cache(maxsize=100_000)
def _log_set(two_sided: bool, scores: tuple[int, ...], chosen: Chosen, scale: Fraction) -> float:
    """Return the log-chance that exactly these places have the largest sums, the first of equals.

    Summed over the value v and place of the largest sum outside the set: everything else outside
    stays below it, everything chosen above; equals are decided by their places.
    """
    others = [place for place in range(len(scores)) if place not in chosen]
    if not others:
        return 0.0
    rate = 1 / float(scale)
    reach = math.ceil(45 / rate) + 1
    low = min(scores[place] for place in others) - (reach if two_sided else 0)
    values = np.arange(low, max(scores) + reach + 1)
    total = -math.inf
    for top in others:
        logs = _log_mass(two_sided, values - scores[top], rate)
        for place in range(len(scores)):
            if place == top:
                continue
            shift = values - scores[place]
            if place in chosen:
                # Above, or equal and earlier in place.
                logs = logs + _log_tail(two_sided, shift + (place > top), rate)
            else:
                # Below, or equal and later in place.
                logs = logs + _log_below(two_sided, shift + (place > top), rate)
        peak = float(logs.max())
        if peak > -math.inf:
            total = float(np.logaddexp(total, peak + math.log(float(np.exp(logs - peak).sum()))))
    return total


def _log_mass(two_sided: bool, x: Any, rate: float) -> Floats:
    if two_sided:
        return np.asarray(math.log(math.tanh(rate / 2)) - np.abs(x) * rate, dtype=np.float64)
    return np.where(x >= 0, math.log(-math.expm1(-rate)) - x * rate, -math.inf)


def _log_tail(two_sided: bool, x: Any, rate: float) -> Floats:
    """Return ln P(noise >= x)."""
    if not two_sided:
        return np.asarray(-np.maximum(x, 0) * rate, dtype=np.float64)
    # P(noise >= x) = q^x / (1 + q) for x >= 1, and one minus the mirrored tail otherwise.
    up = -np.maximum(x, 1) * rate - math.log1p(math.exp(-rate))
    down = -np.maximum(1 - x, 1) * rate - math.log1p(math.exp(-rate))
    found = np.where(x >= 1, up, np.log1p(-np.exp(down)))
    return np.asarray(found, dtype=np.float64)


def _log_below(two_sided: bool, x: Any, rate: float) -> Floats:
    """Return ln P(noise < x)."""
    tail = _log_tail(two_sided, x, rate)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(-np.expm1(tail)), dtype=np.float64)
