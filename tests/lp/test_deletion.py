from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.lp.packing_reference import (
    deletion_value,
    make,
    random_problem,
    triangle_relations,
)

from tulle.core.errors import InputError
from tulle.lp import DeletionOracle, decide_deletion
from tulle.lp.deletion import DeletionRecord
from tulle.lp.exact import exceeds, least_deletion

TAUS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
ETA = "0.318309886183790671537767526745"


def test_exact_value_agrees_with_a_plain_solver():
    random = np.random.default_rng(11)
    for _ in range(150):
        problem = random_problem(random)
        tau = float(random.choice(TAUS))
        expected = deletion_value(problem, tau)
        assert float(least_deletion(problem, tau)) == pytest.approx(expected, abs=1e-7)


def test_decides_as_the_exact_value_does():
    random = np.random.default_rng(12)
    decisions = set()
    for _ in range(150):
        problem = random_problem(random)
        tau = float(random.choice(TAUS))
        value = least_deletion(problem, tau)
        for j in range(4):
            decided = decide_deletion(problem, tau, j, eta=ETA)
            assert decided == (value <= j + Fraction(ETA))
            decisions.add(decided)
    assert decisions == {True, False}


def test_decides_on_all_triangle_relations_of_five_nodes():
    for by_node, by_edge in triangle_relations(5):
        for problem in (by_node, by_edge):
            value = deletion_value(problem, 1.0)
            oracle = DeletionOracle(problem, eta=ETA)
            for j in range(3):
                assert oracle.decide(1.0, j) == (value <= j + float(Fraction(ETA)))


def test_ties_and_near_ties_are_decided_exactly():
    random = np.random.default_rng(13)
    tiny = Fraction(1, 10**25)
    tried = 0
    while tried < 25:
        problem = random_problem(random)
        tau = float(random.choice((0.5, 1.0, 1.5)))
        value = least_deletion(problem, tau)
        whole, eta = divmod(value, 1)
        if eta == 0:
            continue
        tried += 1
        j = int(whole)
        assert decide_deletion(problem, tau, j, eta=eta)
        assert decide_deletion(problem, tau, j, eta=eta + tiny)
        assert not decide_deletion(problem, tau, j, eta=eta - tiny)
        assert exceeds(problem, tau, value - tiny)
        assert not exceeds(problem, tau, value)


def test_least_deletion_grows_by_at_most_one_with_a_participant():
    random = np.random.default_rng(14)
    for _ in range(60):
        problem = random_problem(random)
        tau = float(random.choice(TAUS))
        value = least_deletion(problem, tau)
        for participant in range(problem.count):
            rest = least_deletion(problem.without(participant), tau)
            assert rest <= value <= rest + 1


def test_least_index_moves_by_at_most_one_with_a_participant():
    random = np.random.default_rng(15)
    thresholds = [0.25 * 1.3**j for j in range(20)]
    moved = set()
    for _ in range(40):
        problem = random_problem(random)
        index = DeletionOracle(problem, eta=ETA).least(thresholds)
        values = [least_deletion(problem, tau) for tau in thresholds]
        enough = [value <= j + Fraction(ETA) for j, value in enumerate(values)]
        assert index == (enough.index(True) if True in enough else None)
        for participant in range(problem.count):
            rest = DeletionOracle(problem.without(participant), eta=ETA).least(thresholds)
            if index is not None:
                assert rest is not None
                assert 0 <= index - rest <= 1
                moved.add(index - rest)
    assert moved == {0, 1}


def test_one_decision_settles_others():
    random = np.random.default_rng(17)
    problem = make([random.choice(30, 3, replace=False).tolist() for _ in range(300)])
    oracle = DeletionOracle(problem, eta=ETA)
    assert oracle.decide(25.0, 15)
    lower, upper = oracle.bounds(25.0)
    assert lower <= deletion_value(problem, 25.0) + 1e-7
    assert upper >= deletion_value(problem, 25.0) - 1e-7
    # Feasible at 25 is feasible above.
    assert oracle.bounds(40.0)[1] <= upper
    assert not oracle.decide(5.0, 2)
    assert oracle.bounds(4.0)[0] > oracle.bounds(5.0)[0] > 2


def test_colours_that_collide_cost_time_and_not_truth(monkeypatch):
    def everything_alike(offsets, rows, weights, marks):
        return np.zeros(len(marks), np.int32), np.zeros(len(weights), np.int32)

    monkeypatch.setattr("tulle.lp.reduce.refine", everything_alike)
    random = np.random.default_rng(18)
    for _ in range(40):
        problem = random_problem(random)
        value = least_deletion(problem, 1.0)
        for j in range(3):
            assert decide_deletion(problem, 1.0, j, eta=ETA) == (value <= j + Fraction(ETA))


def test_nothing_to_delete():
    for problem in (make([], count=0), make([], count=2), make([[0, 1]]), make([[]], count=1)):
        assert decide_deletion(problem, 1.0, 0, eta=ETA)


def test_threshold_zero_needs_a_cover():
    triangle = make([[0, 1], [1, 2], [0, 2]])
    assert not decide_deletion(triangle, 0.0, 1, eta="1/3")
    assert decide_deletion(triangle, 0.0, 1, eta="1/2")


def test_refuses_what_is_out_of_range():
    problem = make([[0, 1]])
    for eta in (0, 1, -0.5):
        with pytest.raises(InputError):
            decide_deletion(problem, 1.0, 0, eta=eta)
    with pytest.raises(InputError):
        decide_deletion(problem, -1.0, 0, eta=ETA)
    with pytest.raises(InputError):
        decide_deletion(problem, 1.0, -1, eta=ETA)
    with pytest.raises(InputError):
        DeletionOracle(problem, eta=ETA).least([2.0, 1.0])


@pytest.mark.parametrize("seed", range(20))
def test_mixtures_on_record_are_the_least_of_all_pairs(seed):
    random = np.random.default_rng(seed)
    record = DeletionRecord(9)
    for _ in range(int(random.integers(0, 7))):
        total = Fraction(int(random.integers(0, 60)), 7)
        record.totals.append((float(random.integers(1, 9)) / 3, total))
    known = [(Fraction(0), Fraction(9)), *((Fraction(at), total) for at, total in record.totals)]
    for tau in (0.1, 1.0, 5 / 3, 2.9):
        exact = Fraction(tau)
        allowed = [total for at, total in known if at <= exact]
        for low, more in known:
            for high, less in known:
                if low <= exact < high:
                    part = (high - exact) / (high - low)
                    allowed.append(part * more + (1 - part) * less)
        _, upper = record.bounds(tau)
        assert upper in allowed
        assert upper - min(allowed) < Fraction(1, 10**12)
