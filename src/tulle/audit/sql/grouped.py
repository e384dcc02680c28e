"""Many groups with Gaussian noise: what one participant does to all of them, on all small cases.

Rows of several participants: every way to put pairs of four people into two groups, with and
without each of the people, at every threshold of a grid. Rows of one participant: all small
contributions. The loss is compared with the stated rho as Rényi divergences of several orders: the
level's noise and, given the level, the noise on all groups. A mechanism is rho-zero-concentrated
when the divergence of order a is at most a·rho at every order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np

from tulle.audit.engine.findings import Finding
from tulle.audit.relations.tiny import conjunctive
from tulle.audit.sql.single_owner import GROUPS, People, contributions, neighbours
from tulle.core.arrays import Floats
from tulle.relations.data import Relation
from tulle.relations.mechanisms.grouped import (
    GaussianNoise,
    GroupedSettings,
    InBall,
    truncated_values,
)
from tulle.relations.mechanisms.single_owner import SingleOwnerRows
from tulle.relations.truncation.totals import least_level, truncate

Key = tuple[tuple[int, ...], ...]
"""For each group, the weights of the pairs that are in it."""

SEVERAL = GroupedSettings(
    0.5,
    0.3,
    1.0,
    1.0,
    Fraction(1, 10),
    Fraction(9, 10),
    groups=GROUPS,
    groups_per_person=GROUPS,
    single_owner=False,
)
SINGLE_OWNER = replace(SEVERAL, groups_per_person=1, single_owner=True)
RHO = SEVERAL.rho_select + SEVERAL.rho_answer

PEOPLE = 4
PAIRS = tuple(combinations(range(PEOPLE), 2))
WEIGHTS = (1, 3, 1, 2, 1, 3)
"""Of the pairs: some have a larger one."""

ORDERS = (1.25, 2.0, 4.0, 16.0, 64.0)
LEVELS = range(24)
"""Beyond the last, every threshold is above all loads."""


@dataclass(frozen=True)
class Seen:
    """One dataset as a run sees it: its level, and the snapped values at each level's threshold."""

    level: int
    values: Floats
    """A row for each level, a column for each group; in steps."""


Look = Callable[[Any], tuple[int, Sequence[Sequence[float | Fraction]]]]
"""Returns the level of a dataset, and for each level the values of all groups."""


@dataclass(frozen=True)
class GroupRelease:
    """A way to release groups: how data become a level and values, and the noise on them."""

    look: Look
    chosen: GroupedSettings
    variance: float = 1.0
    """By which factor the variance of the values' noise is off."""

    def seen(self, data: Any) -> Seen:
        """Look at one dataset."""
        level, listed = self.look(data)
        lattices = [self.noise(j).lattice for j in LEVELS]
        rows = [
            [lattice.snap(value) for value in row]
            for lattice, row in zip(lattices, listed, strict=True)
        ]
        return Seen(level, np.array(rows, dtype=np.float64))

    def noise(self, level: int) -> GaussianNoise:
        """Return the noise at a level."""
        return _noise(self.chosen, level)

    def loss(self, one: Seen, other: Seen) -> float:
        """Return the largest divergence of any order, as a part of what is allowed."""
        logs, others = (_level_logs(seen.level, self.chosen) for seen in (one, other))
        allowed = np.array([float(self.noise(j).squared) for j in LEVELS])
        moved = ((one.values - other.values) ** 2).sum(axis=1) / allowed
        # The squared move over the variance, which is squared / (2·rho_answer).
        squares = moved * 2 * float(self.chosen.rho_answer) / self.variance
        worst = 0.0
        for order in ORDERS:
            terms = order * logs + (1 - order) * others + order * (order - 1) * squares / 2
            top = terms.max()
            divergence = (top + math.log(np.exp(terms - top).sum())) / (order - 1)
            worst = max(worst, divergence / (order * float(RHO)))
        return worst


@cache
def _noise(chosen: GroupedSettings, level: int) -> GaussianNoise:
    return GaussianNoise.at(chosen.threshold(level), chosen)


@cache
def _level_logs(level: int, chosen: GroupedSettings) -> Floats:
    """Return log-probabilities of the levels; all noise below zero, or beyond, is at the ends."""
    reach = 200
    noise = np.arange(-reach, reach + 1)
    masses = np.exp(-(noise**2) * float(chosen.rho_select))
    places = np.clip(level + noise, 0, len(LEVELS) - 1)
    found = np.bincount(places, masses / masses.sum(), len(LEVELS))
    return np.asarray(np.log(np.maximum(found, 1e-300)), dtype=np.float64)


# --- rows of several participants ---------------------------------------------------------------


def relations(key: Key) -> list[Relation]:
    """Return the relation of each group."""
    return [
        conjunctive([(pair, float(w)) for pair, w in zip(PAIRS, group, strict=True) if w], PEOPLE)
        for group in key
    ]


@cache
def _level_of(group: tuple[int, ...]) -> int:
    return least_level(truncate(relations((group,))[0]), SEVERAL.thresholds)


@cache
def _values_of(group: tuple[int, ...]) -> tuple[float | Fraction, ...]:
    solved = truncate(relations((group,))[0])
    return tuple(truncated_values([solved], SEVERAL.threshold(j))[0] for j in LEVELS)


def own_programs(key: Key) -> tuple[int, list[list[float | Fraction]]]:
    """Look at groups as a release does; each group's numbers are worked out once."""
    level = max(_level_of(group) for group in key)
    return level, [[_values_of(group)[j] for group in key] for j in LEVELS]


def pairs_in_groups() -> Iterator[tuple[Key, Key]]:
    """Yield every way to put weighted pairs into groups, before and after each person leaves."""
    subsets = [
        tuple(w if chosen else 0 for w, chosen in zip(WEIGHTS, mask, strict=True))
        for mask in product((False, True), repeat=len(PAIRS))
    ]
    for key in product(subsets, repeat=GROUPS):
        for person in range(PEOPLE):
            less = tuple(
                tuple(0 if person in pair else w for pair, w in zip(PAIRS, group, strict=True))
                for group in key
            )
            if less != key:
                yield key, less
                yield less, key


# --- checks -------------------------------------------------------------------------------------


def check(way: GroupRelease, cases: Iterator[tuple[Any, Any]], what: str) -> Finding:
    """Compare the loss of all neighbours with the stated rho."""
    seen: dict[Any, Seen] = {}
    known: dict[tuple[int, int, bytes], float] = {}
    count, worst, witness = 0, 0.0, ""
    for one, other in cases:
        count += 1
        for data in (one, other):
            if data not in seen:
                seen[data] = way.seen(data)
        first, second = seen[one], seen[other]
        key = first.level, second.level, np.abs(first.values - second.values).tobytes()
        if key not in known:
            known[key] = way.loss(first, second)
        if known[key] > worst:
            worst, witness = known[key], f"{one} and {other}"
    passed = worst <= 1 + 1e-9
    return Finding("gaussian", what, CHECK, count, worst, passed, f"{worst:.4g} of rho", witness)


CHECK = "exact, many groups"

HONEST = GroupRelease(own_programs, SEVERAL)
BALL = GroupRelease(lambda people: look_in_ball(contributions(people)), SINGLE_OWNER)


def look_in_ball(
    totals: SingleOwnerRows, cut: Callable[[InBall, float], Any] = InBall.clipped
) -> tuple[int, list[list[float | Fraction]]]:
    """Look at contributions of one participant each."""
    ball = InBall(totals)
    rows = [list(cut(ball, SINGLE_OWNER.threshold(j)).tolist()) for j in LEVELS]
    return least_level(ball, SINGLE_OWNER.thresholds), rows


def sum_of_levels(key: Key) -> tuple[int, list[list[float | Fraction]]]:
    """Let the level be the sum over groups, with the noise of one: a broken way."""
    return sum(_level_of(group) for group in key), own_programs(key)[1]


def one_solution(key: Key) -> tuple[int, list[list[float | Fraction]]]:
    """Read the groups off one optimal solution of all groups together: a broken way.

    As if the vector moved by no more than its sum does, tau.
    """
    from tulle.lp.highs import packing_vectors

    groups = relations(key)
    offsets = np.concatenate([[0], *(g.offsets[1:] for g in groups)]).astype(np.int64)
    starts = np.cumsum([0, *(len(g.participants) for g in groups)])
    sizes = [len(g.weights) for g in groups]
    offsets[1:] += np.repeat(starts[:-1], sizes)
    members = np.concatenate([g.participants for g in groups]).astype(np.int64)
    weights = np.concatenate([g.weights for g in groups])
    ends = np.cumsum(sizes)[:-1]
    rows: list[list[float | Fraction]] = []
    for j in LEVELS:
        capacities = np.full(PEOPLE, SEVERAL.threshold(j))
        levels = weights
        if sum(sizes):
            levels = packing_vectors(offsets, members, weights, capacities)[0]
        rows.append([float(part.sum()) for part in np.split(levels, ends)])
    return own_programs(key)[0], rows


def few_pairs() -> Iterator[tuple[Key, Key]]:
    """Yield the ways to put at most three pairs into groups."""
    for key, less in pairs_in_groups():
        if sum(weight > 0 for group in (*key, *less) for weight in group) <= 5:
            yield key, less


def cut_each(ball: InBall, tau: float) -> Any:
    """Cut everyone to tau in each group, and not to a norm of tau: a broken way."""
    totals = ball.totals
    return np.bincount(totals.places, np.clip(totals.amounts, -tau, tau), totals.groups)


def cut_by_rounded_norms(ball: InBall, tau: float) -> Any:
    """Take norms of contributions that were rounded to whole numbers: a broken way."""
    totals = ball.totals
    squares = np.bincount(totals.people, np.floor(np.abs(totals.amounts)) ** 2, len(totals.loads))
    return totals.scaled(np.minimum(1.0, tau / np.maximum(np.sqrt(squares), tau)))


def with_halves() -> Iterator[tuple[People, People]]:
    """Yield contributions that are no whole numbers."""
    for people, others in neighbours():
        yield (
            tuple(tuple(a * 0.9 for a in p) for p in people),
            tuple(tuple(a * 0.9 for a in p) for p in others),
        )


def broken_ways() -> dict[str, tuple[GroupRelease, Iterator[tuple[Any, Any]]]]:
    """Return broken ways by name, each with data on which it must be caught."""
    one_group = replace(SEVERAL, groups_per_person=1)
    return {
        "half the noise": (replace(HONEST, variance=0.25), few_pairs()),
        "rho of one group for all": (replace(HONEST, chosen=one_group), few_pairs()),
        "the sum of all levels": (replace(HONEST, look=sum_of_levels), few_pairs()),
        "groups read off one solution": (GroupRelease(one_solution, one_group), few_pairs()),
        "each group cut by itself": (
            replace(BALL, look=lambda people: look_in_ball(contributions(people), cut_each)),
            neighbours(),
        ),
        "norms after rounding": (
            replace(
                BALL,
                look=lambda people: look_in_ball(contributions(people), cut_by_rounded_norms),
            ),
            with_halves(),
        ),
    }


def grouped_findings() -> list[Finding]:
    """Return what is found on small data, and on broken ways that must be caught."""
    found = [
        check(HONEST, pairs_in_groups(), "groups of pairs"),
        check(BALL, neighbours(), "groups of signed sums"),
    ]
    ways = broken_ways().items()
    return found + [check(way, cases, name).of_broken(name) for name, (way, cases) in ways]
