"""Everyone cut by themselves: what one participant can do, over all small contributions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from tulle.noise import SeededSource
from tulle.relations.owned import NoiseOnGroups, Owned, release_owned
from tulle.relations.recursive import Choice
from tulle.relations.relation import Relation
from tulle.relations.truncation import LARGEST, Thresholds, least_level

GROUPS = 2
VECTORS = list(itertools.product((-2.0, 0.0, 1.0, 3.0), repeat=GROUPS))
CHOICE = Choice(Thresholds(0.5, 0.35), 1.0, Fraction(1, 4), Fraction(3, 4))
EPSILON = CHOICE.select + CHOICE.answer
LEVELS = range(12)

Cut = Callable[[Owned, float], np.ndarray]
Level = Callable[[Owned], int]


def owned(people: tuple[tuple[float, ...], ...], *, signed: bool = True) -> Owned:
    """Each participant's vector as tuples, some of them in two parts."""
    relations = []
    for group in range(GROUPS):
        entries = [(p, v[group]) for p, v in enumerate(people) if v[group]]
        halves = [(p, part) for p, amount in entries for part in (amount / 4, amount * 3 / 4)]
        members = [p for p, _ in halves]
        relations.append(
            Relation.conjunctive(
                np.arange(len(members) + 1), members, [w for _, w in halves], count=len(people)
            )
        )
    return Owned(relations, signed=signed)


def neighbours() -> Iterator[tuple[tuple[tuple[float, ...], ...], tuple[tuple[float, ...], ...]]]:
    """All of up to three participants, without each of them, and both ways."""
    for size in (1, 2, 3):
        vectors = VECTORS if size < 3 else VECTORS[::2]
        for people in itertools.combinations_with_replacement(vectors, size):
            for gone in range(size):
                less = people[:gone] + people[gone + 1 :]
                yield people, less
                yield less, people


def least(found: Owned) -> int:
    return least_level(found, CHOICE.thresholds)


def loss(found: Owned, other: Owned, cut: Cut, level: Level = least) -> float:
    """The largest log-ratio of a release, in closed form: noise on the level, then on the sums."""
    here, there = level(found), level(other)
    assert abs(here - there) <= 1 or level is not least
    worst = 0.0
    for drawn in LEVELS:
        tau = CHOICE.threshold(drawn)
        noise = NoiseOnGroups.at(tau, GROUPS, CHOICE.answer)
        moved = sum(
            abs(noise.lattice.snap(float(a)) - noise.lattice.snap(float(b)))
            for a, b in zip(cut(found, tau), cut(other, tau), strict=True)
        )
        ratio = (abs(drawn - there) - abs(drawn - here)) * CHOICE.select
        worst = max(worst, float(ratio) + moved / float(noise.scale / noise.lattice.step))
    return worst


@pytest.mark.parametrize("signed", [True, False])
def test_a_release_costs_epsilon_on_all_small_contributions(signed: bool) -> None:
    worst = max(
        loss(owned(people, signed=signed), owned(other, signed=signed), Owned.clipped)
        for people, other in neighbours()
    )
    # All of epsilon is used by someone, and never more.
    assert 0.9 * EPSILON < worst <= EPSILON * (1 + 1e-12)


def cut_each_group(found: Owned, tau: float) -> np.ndarray:
    """The twin: everyone is cut to tau in each group, and not in all together."""
    cut = np.clip(found.amounts, -tau, tau)
    return np.bincount(found.places, cut, found.groups)


def cut_nobody(found: Owned, tau: float) -> np.ndarray:
    return np.bincount(found.places, found.amounts, found.groups)


def cut_together(found: Owned, tau: float) -> np.ndarray:
    """The twin: all totals are scaled by what the largest contribution would need."""
    return cut_nobody(found, tau) * min(1.0, tau / max(found.loads.max(initial=tau), tau))


@pytest.mark.parametrize("twin", [cut_each_group, cut_nobody, cut_together])
def test_other_ways_of_cutting_are_caught(twin: Cut) -> None:
    worst = max(loss(owned(a), owned(b), twin) for a, b in neighbours())
    assert worst > 1.05 * EPSILON


def test_a_level_from_sums_of_all_is_caught() -> None:
    """The twin: a level that follows the total, which one participant moves by anything."""

    def total(found: Owned) -> int:
        return int(found.loads.sum())

    worst = max(loss(owned(a), owned(b), Owned.clipped, total) for a, b in neighbours())
    assert worst > 1.05 * EPSILON


def test_level_and_values_are_what_the_definitions_say() -> None:
    people = ((3.0, 0.0), (1.0, -2.0), (1.0, 0.0))
    found = owned(people)
    assert [found.above(tau) for tau in (0.5, 1.5, 2.9, 3.5)] == [3, 2, 2, 0]
    assert found.clipped(1.5) == pytest.approx([1.5 + 0.5 + 1.0, -1.0])
    assert found.clipped(4.0) == pytest.approx([5.0, -2.0])
    # Unsigned, what is below zero does not count, for loads neither.
    assert owned(people, signed=False).clipped(2.5) == pytest.approx([2.5 + 1 + 1, 0.0])


def test_tuples_of_two_are_cut_and_tuples_of_nobody_are_public() -> None:
    relation = Relation.conjunctive([0, 2, 3, 3], [0, 1, 1], [7.0, 2.0, 1e18], count=2)
    found = Owned([relation], signed=False)
    assert found.clipped(100.0).tolist() == [2.0]
    assert found.fixed.tolist() == [1e18]
    assert Owned([relation.without(0)], signed=False).clipped(100.0).tolist() == [2.0]
    assert Owned([relation.without(1)], signed=False).clipped(100.0).tolist() == [0.0]


@pytest.mark.parametrize("weight", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_no_contributions_make_a_release_fail(weight: float, count: int) -> None:
    relation = Relation.conjunctive(np.arange(count + 1), np.arange(count), [weight] * count)
    found = Owned([relation, relation], signed=False)
    for theta in (1e-9, 1e12):
        choice = Choice(Thresholds(theta, 10.0), 1e6, Fraction(1, 4), Fraction(3, 4))
        values, tau, _ = release_owned(found, choice, SeededSource(1))
        assert np.isfinite(values).all()
        assert tau <= LARGEST


def test_the_noise_is_that_of_one_number_whatever_the_groups() -> None:
    one, many = (NoiseOnGroups.at(8.0, groups, Fraction(1)) for groups in (1, 50))
    assert 8 <= one.scale <= 8.02
    assert 8 <= many.scale <= 8.02


def test_the_draws_follow_the_scale_that_is_stated() -> None:
    """Two-sided: absolute noise is exponential, so its median is ln 2 of the scale."""
    members = np.repeat(np.arange(400), 4)
    relations = [Relation.conjunctive(np.arange(len(members) + 1), members)] * 2
    found = Owned(relations, signed=False)
    source = SeededSource(7)
    below, drawn = 0, 0
    for _ in range(300):
        values, tau, noise = release_owned(found, CHOICE, source)
        far = np.abs(values - found.clipped(tau))
        below += int(np.sum(far <= float(noise.scale) * math.log(2)))
        drawn += 2
    low, high = binom.ppf([1e-6, 1 - 1e-6], drawn, 0.5)
    assert low <= below <= high
    # The test has power: half the scale would be noticed.
    assert binom.cdf(high, drawn, 1 - 0.5**2) < 1e-9
