"""The packing and the deletion LP by a restarted, reflected Halpern primal-dual gradient method."""

import numpy as np
import pytest
from tests.lp.packing_reference import (
    random_problem,
)

from tulle.lp import first_order
from tulle.lp.reduce import reduce


def test_repair_gives_a_feasible_packing():
    random = np.random.default_rng(8)
    for _ in range(100):
        problem = random_problem(random)
        reduced = reduce(problem, 1.0)
        if not reduced.column_count:
            continue
        levels = random.uniform(0, 1, reduced.column_count) * reduced.weights
        shape = (reduced.offsets, reduced.rows, reduced.weights, reduced.capacities)
        total = first_order.repair(*shape, levels, True)
        loads = np.zeros(reduced.row_count)
        np.add.at(loads, reduced.rows, np.repeat(levels, np.diff(reduced.offsets)))
        assert np.all(loads <= reduced.capacities * (1 + 1e-12))
        assert np.all(levels <= reduced.weights * (1 + 1e-12))
        assert total == pytest.approx(levels.sum())
