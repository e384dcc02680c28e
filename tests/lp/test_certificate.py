"""Bounds on the packing value and on the least deletion that hold in spite of rounding."""

import numpy as np
import pytest
from tests.lp.packing_reference import (
    deletion_value,
    make,
    members_of,
    random_problem,
)

from tulle.lp import highs
from tulle.lp.certificate import dual_line, feasible_total
from tulle.lp.exact import least_deletion
from tulle.lp.reduce import reduce_deletion


def test_certificates_hold_in_exact_arithmetic_for_any_vectors():
    random = np.random.default_rng(16)
    for _ in range(100):
        problem = random_problem(random)
        tau = float(random.exponential(1.0))
        value = least_deletion(problem, tau)
        total = feasible_total(problem, tau, random.uniform(-0.2, 1.2, problem.count))
        assert total >= value
        line = dual_line(
            problem,
            random.exponential(0.3, problem.count),
            random.exponential(0.3, problem.tuple_count),
        )
        assert line.at(tau) <= value
        assert line.at(2 * tau) <= least_deletion(problem, 2 * tau)


def test_good_vectors_give_tight_certificates():
    # A path of two tuples: its middle must lose half of them.
    problem = make([[0, 1], [1, 2]])
    assert members_of(problem) == [[0, 1], [1, 2]]
    assert float(feasible_total(problem, 1.0, np.array([0.0, 0.5, 0.0]))) == pytest.approx(0.5)
    line = dual_line(problem, np.array([0.0, 0.5, 0.0]), np.array([0.5, 0.5]))
    assert float(line.at(1.0)) == pytest.approx(0.5)


def test_solvers_agree_on_a_reduced_deletion_problem():
    random = np.random.default_rng(19)
    for _ in range(60):
        problem = random_problem(random)
        reduced = reduce_deletion(problem, 1.0)
        if not len(reduced.weights):
            assert deletion_value(problem, 1.0) == pytest.approx(0.0, abs=1e-9)
            continue
        deletions, pressures, covers = highs.deletion_vectors(
            reduced.offsets,
            reduced.rows,
            reduced.weights,
            reduced.capacities,
            reduced.sizes,
            reduced.deletable,
            reduced.binding,
        )
        value = deletion_value(problem, 1.0)
        total = feasible_total(problem, 1.0, reduced.everyone(deletions))
        line = dual_line(problem, reduced.everyone(pressures), reduced.every_tuple(covers))
        assert float(total) == pytest.approx(value, abs=1e-7)
        assert float(line.at(1.0)) == pytest.approx(value, abs=1e-7)
