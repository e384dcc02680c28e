from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import tulle
import tulle.graphs.generators
from tulle.graphs.truncation.bundle_packing import BundleTruncation
from tulle.graphs.truncation.relation import relation_of
from tulle.noise import SeededSource
from tulle.relations.annotations import ALWAYS, Participant
from tulle.relations.data import Relation
from tulle.relations.mechanisms.race import RaceSettings, lanes_of, run_race
from tulle.relations.queries import total
from tulle.relations.truncation.totals import truncate


def friends(people: int = 200, groups: int = 60, seed: int = 1) -> Relation:
    """Pairs of people who share a group: a self-join, with a few people in many groups."""
    generator = np.random.Generator(np.random.PCG64(seed))
    popularity = generator.pareto(2.0, people) + 1
    pairs: set[tuple[int, int]] = set()
    for _ in range(groups):
        chosen = generator.choice(people, 8, replace=False, p=popularity / popularity.sum())
        pairs |= {(int(min(a, b)), int(max(a, b))) for a in chosen for b in chosen if a != b}
    members = np.array(sorted(pairs)).ravel()
    return Relation.conjunctive(np.arange(0, len(members) + 1, 2), members, count=people)


def test_recursive_answers_and_bounds_from_below() -> None:
    relation = friends()
    runs, held, errors = 200, 0, []
    for _ in range(runs):
        r = tulle.release(relation, total(), unit="participant", epsilon=2.0)
        low, high = r.interval(0.9)
        held += low <= relation.total
        errors.append(abs(r.value - relation.total) / relation.total)
        assert high == float("inf")
    # With coverage of 0.9 or more, fewer than this many would be seen once in a million times.
    assert held >= binom.ppf(1e-6, runs, 0.9)
    assert np.median(errors) < 0.5
    assert "at least" in repr(r)


def test_race_needs_a_bound_and_stays_below() -> None:
    relation = friends()
    with pytest.raises(tulle.QueryError, match="it needs bound="):
        tulle.release(relation, total(), unit="participant", epsilon=1.0, mechanism="race")
    below = 0
    for _ in range(60):
        r = tulle.release(
            relation, total(), unit="participant", epsilon=2.0, mechanism="race", bound=256
        )
        below += r.value <= relation.total
    assert below >= binom.ppf(1e-6, 60, 0.95)


class Counting:
    """A truncation that counts what is asked of it, and forgets nothing it has answered."""

    def __init__(self, honest) -> None:
        self.honest, self.asked, self.kept = honest, 0, {}

    def value(self, tau: float, gap: float) -> float:
        self.asked += 1
        if (tau, gap) not in self.kept:
            self.kept[tau, gap] = self.honest.value(tau, gap)
        return self.kept[tau, gap]

    def ceiling(self, tau: float) -> float:
        return self.honest.ceiling(tau)


def truncations():
    crowd = friends()
    few = Relation.from_annotations(
        [
            (Participant(0) & (Participant(1) | Participant(2)), 3.0),
            (Participant(1) | Participant(3), 2.0),
            (Participant(0) & Participant(3), 40.0),
        ]
    )
    graph = tulle.graphs.generators.social_network(120, seed=3)
    yield "joins", truncate(crowd)
    yield "expressions", truncate(few)
    yield "triangles", truncate(relation_of(tulle.triangles(), graph, "node"))
    yield "stars", BundleTruncation(tulle.stars(2), graph)


@pytest.mark.parametrize("epsilon", ["1", "20", "1000"])
def test_pruning_the_race_changes_no_answer(epsilon) -> None:
    lanes = lanes_of(RaceSettings(Fraction(4096), 12, Fraction(epsilon)))
    for name, honest in truncations():
        truncation = Counting(honest)
        plain_values = [truncation.value(lane.tau, lane.gap) for lane in lanes]
        for lane, value in zip(lanes, plain_values, strict=True):
            assert value <= truncation.ceiling(lane.tau) + lane.gap
        truncation.asked = 0
        for seed in range(40):
            best, winner = run_race(lanes, truncation, SeededSource(seed))
            source = SeededSource(seed)
            noises = [lane.draw(source) for lane in lanes]
            plain = [
                lane.lattice.value(lane.lattice.snap(value) + noise) - lane.penalty
                for lane, value, noise in zip(lanes, plain_values, noises, strict=True)
            ]
            assert best == max(0.0, *plain)
            expected = lanes[plain.index(best)] if max(plain) > 0 else None
            assert winner is expected
        # Most thresholds are never solved.
        assert truncation.asked < 40 * 6, name


def test_the_planner_prefers_recursive_and_says_why() -> None:
    from tulle.ledger.answer import plan_for

    plan = plan_for(friends(), total(), unit="participant", epsilon=1.0)
    assert plan.mechanism == "recursive"
    assert ("race", "it needs bound=") in plan.refused


def test_signed_totals_pay_for_both_parts_and_promise_no_interval() -> None:
    relation = Relation.conjunctive([0, 1, 2, 3], [0, 1, 2], [50.0, -20.0, 30.0])
    r = tulle.release(relation, total(signed=True), unit="participant", epsilon=4.0)
    assert len(r.parameters["thresholds"]) == 2
    assert r.guarantee.epsilon == 4
    with pytest.raises(tulle.TulleError, match="no interval"):
        r.interval(0.9)
    # Unsigned, tuples of negative weight do not count at all, so that the rule is monotone.
    assert total().truth(relation) == 80.0


@pytest.mark.parametrize("count", [0, 1, 5])
def test_empty_and_tiny_relations_work_like_any_other(count: int) -> None:
    relation = Relation.conjunctive(np.arange(count + 1), np.arange(count), count=count)
    for mechanism, options in (("recursive", {}), ("race", {"bound": 16})):
        r = tulle.release(
            relation, total(), unit="participant", epsilon=1.0, mechanism=mechanism, **options
        )
        assert r.value >= 0


@pytest.mark.parametrize(
    "options",
    [
        {"theta": 0},
        {"beta": -1},
        {"reach": "nan"},
        {"selection_share": 1},
        {"theta": 1e300},
        {"start": 2},
    ],
)
def test_settings_out_of_range_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(tulle.InputError):
        tulle.release(
            friends(20, 2),
            total(),
            unit="participant",
            epsilon=1.0,
            mechanism="recursive",
            **options,
        )


@pytest.mark.parametrize("weight", [1e-300, 1e-9, 1e9, 1e15, 1e300])
@pytest.mark.parametrize("theta", ["1e-9", "1e-7", "10", "1e12"])
def test_no_weight_and_no_threshold_makes_a_release_fail(weight: float, theta: str) -> None:
    """Failures must not depend on the data: neighbours have other weights and other forms."""
    a, b, c = (Participant(name) for name in "abc")
    notes = [((a & b) | c, weight), (c | a, 2 * weight)]
    whole = Relation.from_annotations(notes)
    assert not whole.is_conjunctive
    for relation in (whole, Relation.from_annotations([(n.without("c"), w) for n, w in notes])):
        for reach in ("1", "1e6"):
            r = tulle.release(
                relation,
                total(),
                unit="participant",
                epsilon=1.0,
                mechanism="recursive",
                theta=theta,
                reach=reach,
                beta="10",
            )
            assert r.value >= 0


@pytest.mark.parametrize("weight", [0.5, 1e18, 1e200])
def test_what_needs_nobody_is_neither_cut_nor_in_the_way(weight: float) -> None:
    """Next to a large public number, what people add is still told apart, and nothing fails."""
    joined = Relation.conjunctive([0, 2, 4, 4], [0, 1, 1, 2], [1.0, 3.0, weight], count=3)
    a, b = Participant("a"), Participant("b")
    notes = Relation.from_annotations([(a | b, 4.0), (ALWAYS, weight)])
    for relation in (joined, notes):
        for held in (relation, relation.without(0)):
            truncation = truncate(held)
            moved = truncation.value(2.0, 0.01) - Fraction(weight)
            assert 0 <= moved <= 5
            assert truncation.ceiling(2.0) >= truncation.value(2.0, 0.01)
            for mechanism, options in (("recursive", {}), ("race", {"bound": 16})):
                r = tulle.release(
                    held, total(), unit="participant", epsilon=1.0, mechanism=mechanism, **options
                )
                assert r.value >= 0


def test_an_expression_without_intervals_still_prints() -> None:
    relation = Relation.conjunctive([0, 1, 2, 3], [0, 1, 2], [50.0, -20.0, 30.0])
    ratio = total(signed=True) / total()
    r = tulle.release(relation, ratio, unit="participant", epsilon=4.0)
    assert "interval" not in repr(r)
    with pytest.raises(tulle.TulleError, match="no interval"):
        r.interval(0.9)
