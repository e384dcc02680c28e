"""Everyone cut by themselves; what one participant can do to it is in the audit of it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from tulle.audit.sql.single_owner import CHOICE, contributions
from tulle.core.events import Composed, price
from tulle.noise import SeededSource
from tulle.noise.watch import watch
from tulle.relations.data import Relation
from tulle.relations.mechanisms.recursive import RecursiveSettings
from tulle.relations.mechanisms.single_owner import (
    MANY,
    NoiseOnGroups,
    SingleOwnerRows,
    release_totals,
)
from tulle.relations.truncation.totals import LARGEST


def test_level_and_values_are_what_the_definitions_say() -> None:
    people = ((3.0, 0.0), (1.0, -2.0), (1.0, 0.0))
    found = contributions(people)
    assert [found.above(tau) for tau in (0.5, 1.5, 2.9, 3.5)] == [3, 2, 2, 0]
    assert found.clipped(1.5) == pytest.approx([1.5 + 0.5 + 1.0, -1.0])
    assert found.clipped(4.0) == pytest.approx([5.0, -2.0])
    # Unsigned, what is below zero does not count, for loads neither.
    assert contributions(people, signed=False).clipped(2.5) == pytest.approx([2.5 + 1 + 1, 0.0])


def test_tuples_of_two_are_cut_and_tuples_of_nobody_are_public() -> None:
    relation = Relation.conjunctive([0, 2, 3, 3], [0, 1, 1], [7.0, 2.0, 1e18], count=2)
    found = SingleOwnerRows([relation], signed=False)
    assert found.clipped(100.0).tolist() == [2.0]
    assert found.fixed.tolist() == [1e18]
    assert SingleOwnerRows([relation.without(0)], signed=False).clipped(100.0).tolist() == [2.0]
    assert SingleOwnerRows([relation.without(1)], signed=False).clipped(100.0).tolist() == [0.0]


@pytest.mark.parametrize("weight", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_no_contributions_make_a_release_fail(weight: float, count: int) -> None:
    relation = Relation.conjunctive(np.arange(count + 1), np.arange(count), [weight] * count)
    found = SingleOwnerRows([relation, relation], signed=False)
    for theta in (1e-9, 1e12):
        choice = RecursiveSettings(theta, 10.0, 1.0, 1e6, Fraction(1, 4), Fraction(3, 4))
        values, tau, _ = release_totals(found, choice, SeededSource(1))
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
    found = SingleOwnerRows(relations, signed=False)
    source = SeededSource(7)
    below, drawn = 0, 0
    for _ in range(300):
        values, tau, noise = release_totals(found, CHOICE, source)
        far = np.abs(values - found.clipped(tau))
        below += int(np.sum(far <= float(noise.scale) * math.log(2)))
        drawn += 2
    low, high = binom.ppf([1e-6, 1 - 1e-6], drawn, 0.5)
    assert low <= below <= high
    # The test has power: half the scale would be noticed.
    assert binom.cdf(high, drawn, 1 - 0.5**2) < 1e-9


def test_many_groups_get_the_same_noise_in_one_array() -> None:
    groups = MANY + 200
    people = np.arange(groups)
    found = SingleOwnerRows.of_rows(people, people, np.full(groups, 3.0), groups, signed=False)
    with watch() as events:
        values, tau, noise = release_totals(found, CHOICE, SeededSource(4))
    assert price(Composed(tuple(events)))[0] == CHOICE.epsilon_select + CHOICE.epsilon_answer
    # The mean absolute deviation of the noise is its scale; that of 1,224 draws is near it.
    off = np.abs(values - found.clipped(tau)).mean()
    assert abs(off / float(noise.scale) - 1) < 6 / math.sqrt(groups)
