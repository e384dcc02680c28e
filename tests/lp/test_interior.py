from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.lp.packing_reference import make, random_problem

from tulle.lp import DeletionOracle, PackingProblem
from tulle.lp.deletion import InteriorRun, fits_interior
from tulle.lp.exact import least_deletion
from tulle.lp.interior import Interior, factorise, solve_factor
from tulle.lp.reduce import reduce_deletion
from tulle.relations.data import Relation
from tulle.relations.truncation.totals import Thresholds, least_level, truncate

ETA = "0.3183"


def hub(pairs: int) -> PackingProblem:
    """One participant in few tuples, whose leaving is the cheapest way to relieve all others."""
    shared = [(0, 2 * pair + 1, 2 * pair + 2) for pair in range(pairs)]
    alone = [(person,) for person in range(1, 2 * pairs + 1)]
    weights = [1.0] * pairs + [pairs - 0.5] * (2 * pairs)
    return make([*shared, *alone], weights, 2 * pairs + 1)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 40])
def test_factorisation_of_quasidefinite_matrices(size):
    random = np.random.default_rng(size)
    half = random.normal(size=(size, size))
    matrix = np.block(
        [
            [half @ half.T + np.eye(size), half],
            [half.T, -(half.T @ half) - np.eye(size)],
        ]
    )
    signs = np.repeat([1.0, -1.0], size)
    order = random.permutation(2 * size)
    matrix, signs = matrix[np.ix_(order, order)], signs[order]
    right = random.normal(size=2 * size)
    factor, found = np.tril(matrix), right.copy()
    factorise(factor, signs)
    solve_factor(factor, signs, found)
    assert matrix @ found == pytest.approx(right, abs=1e-8)


def test_interior_point_closes_in_on_the_exact_value():
    # Nothing rests on it: where rounding stops it early, the other methods go on.
    random = np.random.default_rng(21)
    tried = close = 0
    while tried < 100:
        problem = random_problem(random)
        tau = float(random.choice((0.5, 1.0, 1.5, 2.0)))
        reduced = reduce_deletion(problem, tau, also=np.ones(problem.count, np.bool_))
        if not fits_interior(reduced, tau):
            continue
        tried += 1
        value = float(least_deletion(problem, tau))
        run = InteriorRun(reduced, tau, value)
        while not run.exhausted:
            run.step()
        run.settle()
        assert run.lower <= value + 1e-7
        assert run.upper >= value - 1e-7
        close += run.upper - run.lower <= 1e-3 * (1.0 + value)
    assert close >= 90


def test_many_tuples_need_hardly_more_steps_than_few():
    random = np.random.default_rng(22)
    steps = []
    for tuples in (1_000, 100_000):
        members = np.sort(random.integers(0, 60, (tuples, 3)), axis=1)
        problem = PackingProblem(3 * np.arange(tuples + 1), members.ravel(), np.ones(tuples), 60)
        tau = 0.8 * float(problem.loads.max())
        run = Interior(reduce_deletion(problem, tau, also=np.zeros(60, np.bool_)), tau)
        while run.theta > 1e-5:
            run.advance()
        steps.append(run.steps)
    assert max(steps) <= 25
    assert steps[1] <= steps[0] + 8


def test_the_interior_point_alone_decides_as_the_exact_value_does():
    random = np.random.default_rng(23)
    decisions = []
    for _ in range(120):
        problem = random_problem(random)
        tau = float(random.choice((0.5, 1.0, 1.5, 2.0)))
        value = least_deletion(problem, tau)
        for j in range(3):
            target = j + Fraction(ETA)
            decided = DeletionOracle(problem, eta=ETA)._press(tau, target)
            assert decided is None or decided == (value <= target)
            decisions.append(decided)
    assert decisions.count(True) > 10
    assert decisions.count(False) > 10


def test_who_does_not_bind_is_deleted_where_that_is_cheaper():
    problem = hub(10)
    assert least_deletion(problem, 10.0) == Fraction(1, 2)
    reduced = reduce_deletion(problem, 10.0, also=np.zeros(problem.count, np.bool_))
    assert reduced.row_of[0] < 0
    oracle = DeletionOracle(problem, eta="0.7")
    assert oracle._press(10.0, Fraction("0.7")) is True
    assert DeletionOracle(problem, eta="0.45").decide(10.0, 0) is False


def test_what_is_known_holds_at_all_thresholds():
    random = np.random.default_rng(24)
    mixed = 0
    for _ in range(40):
        problem = random_problem(random)
        oracle = DeletionOracle(problem, eta=ETA)
        for tau in (0.5, 1.25, 2.0):
            for j in range(3):
                oracle.decide(tau, j)
        for tau in np.linspace(0.5, 2.5, 9).tolist():
            lower, upper = oracle.bounds(tau)
            assert lower <= least_deletion(problem, tau) <= upper
            plain = [total for reached, total in oracle._record.totals if reached <= tau]
            mixed += upper < min(plain, default=Fraction(problem.count))
    assert mixed > 0


def test_the_search_finds_the_least_level_in_spite_of_any_estimate():
    random = np.random.default_rng(25)
    thresholds = Thresholds(0.3, 0.2)

    class Misled:
        def __init__(self, honest, guesses):
            self.honest, self.guesses = honest, guesses

        def decide(self, tau, level):
            return self.honest.decide(tau, level)

        def estimate(self, tau):
            return self.guesses(tau)

    for _ in range(25):
        members = np.sort(random.integers(0, 12, (40, 3)), axis=1)
        relation = Relation.conjunctive(3 * np.arange(41), members.ravel(), count=12)
        honest = truncate(relation)
        expected = next(j for j in range(200) if honest.decide(thresholds.at(j), j))
        noisy = random.uniform(0, 20, 1000)
        for guesses in (
            lambda tau: None,
            lambda tau: 0.0,
            lambda tau: 1e9,
            lambda tau, noisy=noisy: float(noisy[int(tau * 100) % 1000]),
        ):
            assert least_level(Misled(honest, guesses), thresholds) == expected
        assert least_level(truncate(relation), thresholds) == expected
