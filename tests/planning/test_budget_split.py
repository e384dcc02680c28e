"""Budgets are divided by the error that they buy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import tulle
from tulle.core.unit import Unit
from tulle.graphs.generators import social_network
from tulle.ledger.answer import plan_for
from tulle.planning.budget_split import LEAST_SHARE, Split, best_shares, choose_split, rounded
from tulle.planning.planner import make_plan


@pytest.mark.parametrize("spreads", [[1.0, 1.0], [8.0, 1.0], [1.0, 30.0, 0.2], [0.0, 1.0]])
def test_best_shares_are_a_minimum(spreads):
    count = len(spreads)
    even = [1 / count] * count
    found = np.array(best_shares(even, spreads, [1.0] * count))
    assert found.sum() == pytest.approx(1)
    assert (found >= LEAST_SHARE * 0.9).all()

    def error(shares):
        return sum((s / x) ** 2 for s, x in zip(spreads, shares, strict=True))

    least = error(found)
    for a in range(count):
        for b in range(count):
            moved = found.copy()
            moved[a] += 0.01
            moved[b] -= 0.01
            if moved.min() >= LEAST_SHARE:
                assert error(moved) >= least * (1 - 1e-6)


def test_powers_are_measured():
    """A leaf whose error does not fall with its budget should get little of it."""
    made = []

    def plan(shares):
        errors = (1 / float(shares[0]), 5 / float(shares[1]) ** 0.25)
        made.append(shares)
        return Split(tuple(shares), errors, sum(e * e for e in errors) ** 0.5)

    found = choose_split(2, plan, lambda split: split.plans)
    grid = [Fraction(k, 100) for k in range(2, 99)]
    best = min(plan((x, 1 - x)).error for x in grid)
    assert found.error <= best * 1.01
    assert sum(found.shares) == 1


def test_shares_add_up_to_one():
    for shares in ([0.3333, 0.3333, 0.3334], [0.99995, 0.00005]):
        found = rounded(shares)
        assert sum(found) == 1
        assert all(share > 0 for share in found)


def test_a_plan_shows_its_division_and_never_predicts_worse_than_equal_shares():
    graph = social_network(500, seed=4)
    query = 3 * tulle.triangles() / tulle.stars(2)
    plan = plan_for(graph, query, unit="edge", epsilon=1.0, like=graph)
    assert sum(plan.shares) == 1
    assert "divided as triangles()" in repr(plan)
    assert plan.half_width(0.95) > plan.half_width(0.5) > 0
    spent = sum(part.guarantee.epsilon for part in plan.parts)
    assert Fraction(999, 1000) <= spent <= 1


def test_without_a_stand_in_shares_are_equal():
    query = tulle.edges() / tulle.triangles()
    plan = make_plan(query, kind="graph", facts={"nodes": 3}, unit=Unit.of("edge"), epsilon=1.0)
    assert set(plan.shares) == {Fraction(1, 2)}
    assert plan.half_width(0.5) is None


def test_routes_are_compared_and_either_can_be_named():
    graph, public = social_network(300, seed=4), social_network(300, seed=4)
    plan = plan_for(graph, tulle.transitivity(), unit="edge", epsilon=1.0, like=public)
    assert {offer.mechanism for offer in plan.offers} == {"statistic_ladder", "decomposed"}
    ranks = [offer.prediction.rank() for offer in plan.offers]
    assert ranks == sorted(ranks)
    whole = tulle.release(
        graph, tulle.transitivity(), unit="edge", epsilon=2.0, mechanism="decomposed", like=public
    )
    assert set(whole.parts) == {"triangles()", "stars(2)"}
    assert whole.mechanism == "decomposed"
    assert whole.guarantee.epsilon <= 2
    back = tulle.Release.from_json(whole.to_json())
    assert back.interval(0.9) == whole.interval(0.9)
    assert 0 <= whole.value <= 1
    with pytest.raises(tulle.InputError, match="no options"):
        tulle.release(
            graph, tulle.transitivity(), unit="edge", epsilon=1, mechanism="decomposed", units=3
        )


def test_a_ledger_keeps_a_composed_answer(tmp_path):
    graph = social_network(100, seed=4)
    study = tulle.Ledger(tmp_path / "study.ledger").open("g", graph, unit="edge", epsilon=2.0)
    first = study.ask(tulle.transitivity(), epsilon=1.0, mechanism="decomposed")
    again = study.ask(tulle.transitivity(), epsilon=1.0, mechanism="decomposed")
    assert first.value == again.value
    assert float(study.remaining) == pytest.approx(1.0, abs=1e-6)


def test_too_small_a_budget_gives_advice():
    graph = social_network(30, seed=4)
    with pytest.raises(tulle.InputError, match="too small to divide among 4"):
        tulle.release(
            graph, tulle.assortativity(), unit="edge", epsilon="1e-9", mechanism="decomposed"
        )
