from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from tests.lp.packing_reference import (
    make,
    members_of,
    packing_value,
    random_problem,
    triangle_relations,
)

from tulle.core.errors import InputError, SealedError
from tulle.lp import Bracket, PackingProblem, certificate, highs, solve
from tulle.lp.reduce import reduce

TAUS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0)


def finest(tau: float) -> float:
    return max(tau / 10_000.0, 1e-9)


def assert_holds(bracket: Bracket, value: float, gap: float) -> None:
    assert bracket.upper - bracket.lower <= gap
    assert bracket.lower <= value + 1e-7
    assert bracket.upper >= value - 1e-7


def test_agrees_with_a_plain_solver_on_random_problems():
    random = np.random.default_rng(3)
    for _ in range(300):
        problem = random_problem(random)
        tau = float(random.choice(TAUS))
        gap = max(float(random.choice([tau / 50, tau / 10_000])), 1e-9)
        assert_holds(solve(problem, tau, gap=gap), packing_value(problem, tau), gap)


def test_agrees_with_a_plain_solver_on_all_triangle_relations_of_five_nodes():
    relations = 0
    for by_node, by_edge in triangle_relations(5):
        relations += 1
        for problem in (by_node, by_edge):
            for tau in (1.0, 1.5, 2.0):
                gap = tau / 1000
                assert_holds(solve(problem, tau, gap=gap), packing_value(problem, tau), gap)
    assert relations == 187


def test_value_is_tau_lipschitz_when_a_participant_leaves():
    random = np.random.default_rng(4)
    for _ in range(40):
        problem = random_problem(random)
        tau = float(random.choice(TAUS))
        gap = finest(tau)
        whole = solve(problem, tau, gap=gap)
        for participant in range(problem.count):
            rest = solve(problem.without(participant), tau, gap=gap)
            assert rest.lower <= whole.upper
            assert whole.lower - rest.upper <= tau


@pytest.mark.parametrize("symmetry", [True, False])
def test_reductions_leave_the_value_unchanged(symmetry):
    random = np.random.default_rng(5)
    for _ in range(200):
        problem = random_problem(random)
        tau = float(random.choice(TAUS))
        reduced = reduce(problem, tau, symmetry=symmetry)
        assert not reduced.row_count or reduced.capacities.min() > 0
        levels = np.zeros(reduced.column_count)
        if reduced.column_count:
            levels, _ = highs.packing_vectors(
                reduced.offsets, reduced.rows, reduced.weights, reduced.capacities
            )
        value = float(reduced.fractions(levels) @ problem.weights)
        assert value == pytest.approx(packing_value(problem, tau), abs=1e-7)


def test_single_participants_need_no_iteration():
    problem = make([[0], [0], [1], [2]], [3.0, 2.0, 1.0, 0.5])
    assert reduce(problem, 1.5).column_count == 0
    bracket = solve(problem, 1.5, gap=0.001)
    assert bracket.lower <= 1.5 + 1.0 + 0.5 <= bracket.upper
    assert bracket.upper - bracket.lower < 1e-12


def test_threshold_above_every_load_takes_everything():
    problem = make([[0, 1], [1, 2], [0, 2]])
    assert reduce(problem, 2.0).column_count == 0
    bracket = solve(problem, 2.0, gap=0.01)
    assert bracket.lower <= 3.0 <= bracket.upper


def test_filled_rows_cascade():
    # Participant 0 is filled by tuples of its own; then 1 has room, and so has 2.
    problem = make([[0], [0], [0, 1], [1, 2], [2]])
    assert reduce(problem, 1.0).column_count == 0
    assert solve(problem, 1.0, gap=0.01).lower == pytest.approx(2.0)


def test_alike_participants_become_one():
    clique = make([[a, b, c] for a in range(12) for b in range(a) for c in range(b)])
    reduced = reduce(clique, 5.0)
    assert (reduced.row_count, reduced.column_count) == (1, 1)
    bracket = solve(clique, 5.0, gap=0.01)
    assert bracket.lower <= 20.0 <= bracket.upper


@pytest.mark.parametrize("tau", [0.0, 1.0])
def test_empty_problems(tau):
    for problem in (make([], count=0), make([], count=3), make([[0, 1]], [0.0])):
        assert solve(problem, tau, gap=0.01) == Bracket(0.0, 0.0)


def test_threshold_zero_keeps_only_tuples_without_participants():
    problem = make([[0, 1], [], [1]], [2.0, 0.25, 1.0])
    bracket = solve(problem, 0.0, gap=1e-9)
    assert bracket.lower <= 0.25 <= bracket.upper
    assert bracket.upper - bracket.lower < 1e-12


def test_bounds_hold_in_exact_arithmetic_for_any_vectors():
    random = np.random.default_rng(6)
    for _ in range(200):
        problem = random_problem(random)
        tau = float(random.exponential(1.0))
        prices = random.exponential(0.4, problem.count)
        fractions = random.uniform(-0.5, 1.5, problem.tuple_count)
        upper = certificate.upper_bound(problem, tau, prices)
        exact_prices = [Fraction(price) for price in certificate.on_grid(prices, 1.0)]
        exact = Fraction(tau) * sum(exact_prices) + sum(
            Fraction(weight) * max(Fraction(0), 1 - sum(exact_prices[p] for p in members))
            for weight, members in zip(problem.weights, members_of(problem), strict=True)
        )
        assert Fraction(upper) >= exact
        assert upper <= float(exact) * (1 + 1e-13) + 1e-300
        levels = certificate.feasible_levels(
            problem.offsets,
            problem.participants,
            problem.weights,
            problem.capacities(tau),
            fractions * problem.weights,
        )
        loads = [Fraction(0)] * problem.count
        for level, weight, members in zip(
            levels, problem.weights, members_of(problem), strict=True
        ):
            assert 0 <= level <= weight
            for member in members:
                loads[member] += Fraction(level)
        assert all(load <= Fraction(tau) for load in loads)
        lower = certificate.lower_bound(problem, tau, fractions)
        total = sum(map(Fraction, levels), Fraction(0))
        assert Fraction(lower) <= total
        assert lower >= float(total) * (1 - 1e-13)


def test_sums_bound_their_own_error():
    random = np.random.default_rng(7)
    for scale in (1.0, 1e16):
        terms = np.exp(random.uniform(-30, 30, 5000)) * scale
        total, error = certificate.sum_with_error(terms)
        exact = sum(map(Fraction, terms), Fraction(0))
        assert abs(Fraction(total) - exact) <= Fraction(error)
        assert error <= 1e-15 * total


def test_colours_that_collide_cost_time_and_not_truth(monkeypatch):
    def everything_alike(offsets, rows, weights, marks):
        return np.zeros(len(marks), np.int32), np.zeros(len(weights), np.int32)

    monkeypatch.setattr("tulle.lp.reduce.refine", everything_alike)
    random = np.random.default_rng(10)
    for _ in range(60):
        problem = random_problem(random)
        assert_holds(solve(problem, 1.5, gap=0.01), packing_value(problem, 1.5), 0.01)


def test_progress_sees_bounds_that_end_within_the_gap():
    random = np.random.default_rng(9)
    problem = make([random.choice(40, 3, replace=False).tolist() for _ in range(600)])
    seen: list[tuple[float, float]] = []
    bracket = solve(problem, 5.0, gap=0.005, progress=lambda low, high: seen.append((low, high)))
    assert seen[-1] == (bracket.lower, bracket.upper)
    assert_holds(bracket, packing_value(problem, 5.0), 0.005)


@pytest.mark.parametrize(
    ("tau", "gap"), [(-1.0, 0.1), (np.nan, 0.1), (np.inf, 1.0), (1.0, 0.0), (1.0, 1e-5)]
)
def test_refuses_thresholds_and_gaps_out_of_range(tau, gap):
    with pytest.raises(InputError):
        solve(make([[0, 1]]), tau, gap=gap)


@pytest.mark.parametrize(
    ("offsets", "participants", "weights", "count"),
    [
        ([0, 1], [0], [1.0, 1.0], 1),
        ([1, 1], [0], [1.0], 1),
        ([0, 2], [0], [1.0], 1),
        ([0, 1], [1], [1.0], 1),
        ([0, 1], [-1], [1.0], 1),
        ([0, 1], [0.5], [1.0], 1),
        ([0, 1], [0], [-1.0], 1),
        ([0, 1], [0], [np.nan], 1),
        ([0, 1], [0], [1.0], -1),
        ([0, 2, 1, 3], [0, 0, 0], [1.0, 1.0, 1.0], 1),
    ],
)
def test_refuses_arrays_that_are_no_relation(offsets, participants, weights, count):
    with pytest.raises(InputError):
        PackingProblem(offsets, participants, weights, count)


def test_a_participant_named_twice_counts_once():
    problem = make([[2, 0, 2], [1, 1]])
    assert members_of(problem) == [[0, 2], [1]]
    assert problem.loads.tolist() == [1.0, 1.0, 1.0]


def test_holds_its_tongue():
    problem = make([[0, 1], [5, 7]], [1.0, 123.0])
    assert repr(problem) == "PackingProblem(...)"
    with pytest.raises(SealedError):
        pickle.dumps(problem)
