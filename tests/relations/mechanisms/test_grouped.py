"""One threshold for many groups; what one participant can do to it is in the audit of it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import binom, chi2

from tulle.audit.sql.grouped import SEVERAL, SINGLE_OWNER
from tulle.audit.sql.single_owner import contributions
from tulle.core.events import Composed, Gaussian
from tulle.ledger.divergence import concentration
from tulle.noise import SeededSource
from tulle.noise.watch import watch
from tulle.relations.data import Relation
from tulle.relations.mechanisms.grouped import (
    GaussianNoise,
    InBall,
    largest_level,
    release_groups,
    release_in_ball,
    truncated_values,
)
from tulle.relations.mechanisms.single_owner import SingleOwnerRows
from tulle.relations.truncation.mechanism import GaussianTruncationLaw, TruncationLaw
from tulle.relations.truncation.totals import LARGEST, least_level, truncate


def groups_of(count: int, size: int = 40) -> list[Relation]:
    """Return groups in which everyone meets the next one; the last group has no tuples."""
    chain = np.repeat(np.arange(size + 1), 2)[1:-1]
    full = Relation.conjunctive(np.arange(0, 2 * size + 1, 2), chain, count=size + 1)
    return [full] * (count - 1) + [Relation.conjunctive([0], [], count=size + 1)]


def test_norms_and_clipped_sums_are_what_the_definitions_say() -> None:
    ball = InBall(contributions(((3.0, 4.0), (0.0, -2.0))))
    assert ball.norms == pytest.approx([5.0, 2.0])
    assert [ball.above(tau) for tau in (1.0, 3.0, 6.0)] == [2, 1, 0]
    assert ball.clipped(2.5) == pytest.approx([1.5, 2.0 - 2.0], abs=1e-8)
    assert ball.clipped(1.0) == pytest.approx([0.6, 0.8 - 1.0])
    assert ball.clipped(50.0) == pytest.approx([3.0, 2.0])


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 1e200])
def test_norms_round_outwards_at_every_size(scale: float) -> None:
    amounts = np.array([3.0, 4.0, 1 / 3, 1e-9]) * scale
    totals = SingleOwnerRows.of_rows(
        np.zeros(4, dtype=np.int64), np.arange(4), amounts, groups=4, signed=False
    )
    ball = InBall(totals)
    exact = sum(Fraction(float(a)) ** 2 for a in amounts)
    assert Fraction(float(ball.norms[0])) ** 2 >= exact
    assert Fraction(float(ball.norms[0])) ** 2 <= exact * (1 + Fraction(1, 10**8))
    for tau in (scale / 7, scale, 5 * scale):
        cut = ball.clipped(tau)
        assert sum(Fraction(float(c)) ** 2 for c in cut) <= Fraction(tau) ** 2


@pytest.mark.parametrize("weight", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("count", [0, 1, 12])
def test_no_data_make_a_release_fail(weight: float, count: int) -> None:
    relation = Relation.conjunctive(np.arange(count + 1), np.arange(count), [weight] * count)
    for theta in (1e-9, 1e12):
        several = replace(SEVERAL, theta=theta, beta=10.0, reach=1e6)
        alone = replace(several, groups_per_person=1, single_owner=True)
        totals = SingleOwnerRows([relation, relation], signed=False)
        for values, tau, _ in (
            release_groups([truncate(relation)] * 2, several, SeededSource(1)),
            release_in_ball(InBall(totals), alone, SeededSource(1)),
        ):
            assert np.isfinite(values).all()
            assert tau <= LARGEST


def test_empty_groups_do_not_lower_the_threshold() -> None:
    few, many = groups_of(2), [*groups_of(2), *[groups_of(2)[1]] * 60]
    levels = [largest_level([truncate(r) for r in rs], SEVERAL.thresholds) for rs in (few, many)]
    assert levels[0] == levels[1] == least_level(truncate(few[0]), SEVERAL.thresholds) > 0


@pytest.mark.parametrize("groups", [2, 25, 400])
def test_the_noise_grows_with_the_root_of_the_groups_a_participant_can_be_in(groups: int) -> None:
    several = replace(SEVERAL, groups=groups, groups_per_person=groups)
    noise = GaussianNoise.at(8.0, several)
    assert float(noise.sigma) == pytest.approx(
        8 * math.sqrt(groups / (2 * float(SEVERAL.rho_answer))), rel=0.012
    )
    alone = GaussianNoise.at(8.0, replace(several, groups_per_person=1, single_owner=True))
    assert float(alone.sigma) == pytest.approx(8 / math.sqrt(1.8), rel=0.003)


def test_every_draw_says_what_it_costs_and_all_together_cost_rho() -> None:
    relations = groups_of(6)
    chosen = replace(SEVERAL, groups=6, groups_per_person=6)
    with watch() as events:
        release_groups([truncate(relation) for relation in relations], chosen, None)
    assert all(isinstance(event, Gaussian) for event in events)
    assert concentration(Composed(tuple(events))) == SEVERAL.rho_select + SEVERAL.rho_answer
    with watch() as events:
        release_in_ball(
            InBall(SingleOwnerRows(relations, signed=False)),
            replace(chosen, single_owner=True),
            None,
        )
    assert concentration(Composed(tuple(events))) == SEVERAL.rho_select + SEVERAL.rho_answer


@pytest.mark.parametrize("single_owner", [False, True])
def test_the_draws_follow_the_deviation_that_is_stated(single_owner: bool) -> None:
    """Two-sided: the squares of all noise, over its variance, add up to a chi-square."""
    source, total, drawn = SeededSource(11), 0.0, 0
    people = ((3.0, 1.0),) * 6 + ((1.0, 2.0),) * 9
    relations = groups_of(3)
    for _ in range(300):
        if single_owner:
            totals = contributions(people)
            values, tau, noise = release_in_ball(InBall(totals), SINGLE_OWNER, source)
            centre = InBall(totals).clipped(tau)
        else:
            solved = [truncate(relation) for relation in relations]
            chosen = replace(SEVERAL, groups=3, groups_per_person=3)
            values, tau, noise = release_groups(solved, chosen, source)
            centre = np.array([float(v) for v in truncated_values(solved, tau)])
        total += float((((values - centre) / float(noise.sigma)) ** 2).sum())
        drawn += len(values)
    low, high = chi2.ppf([1e-6, 1 - 1e-6], drawn)
    assert low <= total <= high
    # The test has power: half the deviation, or a third more, would be noticed.
    assert chi2.cdf(low * 4, drawn) > 1 - 1e-6
    assert chi2.sf(high / 1.33**2, drawn) > 1 - 1e-3


def test_the_level_has_the_deviation_that_its_part_of_rho_buys() -> None:
    relations = groups_of(3)
    chosen = replace(SEVERAL, groups=3, groups_per_person=3, rho_select=Fraction(1, 8), theta=0.02)
    solved = [truncate(relation) for relation in relations]
    level = largest_level(solved, chosen.thresholds)
    grid = {chosen.threshold(j): j for j in range(60)}
    source = SeededSource(5)
    far = [grid[release_groups(solved, chosen, source)[1]] - level for _ in range(400)]
    # Standard deviation two: of levels that noise takes no further down than zero.
    assert level >= 5
    inside = sum(abs(one) <= 2 for one in far)
    chance = sum(math.exp(-(k**2) / 8) for k in range(-2, 3)) / sum(
        math.exp(-(k**2) / 8) for k in range(-40, 41)
    )
    low, high = binom.ppf([1e-6, 1 - 1e-6], len(far), chance)
    assert low <= inside <= high


def test_lower_ends_hold_for_all_groups_at_once() -> None:
    """The true values are those of groups in which nobody is cut."""
    relations = groups_of(20, size=30)
    solved = [truncate(relation) for relation in relations]
    chosen = replace(SEVERAL, groups=20, groups_per_person=20, reach=8.0)
    truth = np.array([relation.total for relation in relations])
    source, held, shrunk, runs = SeededSource(3), 0, 0, 120
    for _ in range(runs):
        values, _, noise = release_groups(solved, chosen, source)
        law = GaussianTruncationLaw(noise.sigma, noise.slack, 20)
        low, high = law.interval(np.maximum(values, 0.0), 0.9)
        held += bool((low <= truth).all()) and high == math.inf
        shrunk += bool((np.maximum(values - float(noise.sigma), 0.0) <= truth).all())
    assert held >= binom.ppf(1e-6, runs, 0.9)
    # Without a correction for many groups the lower ends fail.
    assert shrunk < binom.ppf(1e-6, runs, 0.9)
    known = GaussianTruncationLaw(Fraction(2), 0.25, 1, shortfall=3.0)
    assert known.half_width(0.95) == pytest.approx(2 * NormalDist().inv_cdf(0.975) + 3.25)


def test_thresholds_are_raised_where_more_stick_out_than_noise_is_worth() -> None:
    """By settings and the noisy level alone, from one up to all of the reach, and never down."""
    chosen = replace(
        SEVERAL, groups=100, groups_per_person=100, reach=4.0, rho_answer=Fraction(1, 2)
    )
    raised = [chosen.reached(level) for level in range(200)]
    # The noise on a group deviates by ten thresholds.
    assert raised[:11] == [1.0] * 11
    assert raised == sorted(raised)
    assert raised[50] == pytest.approx(4.0)
    assert raised[199] == 4.0
    assert replace(chosen, reach=0.5).reached(50) == 0.5
    assert replace(chosen, single_owner=True).reached(0) == 4.0
    taus = [chosen.threshold(level) for level in range(50)]
    assert taus == sorted(taus)


def test_variances_are_those_of_one_group_whatever_their_number() -> None:
    """Quotients of noisy numbers are corrected by them."""
    one, many = (TruncationLaw(Fraction(5), 0.5, lanes=lanes) for lanes in (1, 60))
    assert one.variance() == many.variance() == pytest.approx(2 * 5**2, rel=0.5)
    known = TruncationLaw(Fraction(5), 0.5, 0.0, lanes=60)
    assert known.variance() == one.variance()
    assert known.half_width(0.95) > one.half_width(0.95) + 5 * math.log(50)
    for count in (1, 60):
        assert GaussianTruncationLaw(Fraction(3), 0.5, count).variance() == pytest.approx(9)
