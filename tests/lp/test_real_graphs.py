from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.lp.packing_reference import make

from tulle.lp import DeletionOracle, PackingProblem, solve


@pytest.fixture(scope="module")
def triangles(data_folder) -> dict[str, PackingProblem]:
    """The triangles of netscience, by node and by edge."""
    path = data_folder / "netscience" / "netscience.edges.txt"
    if not path.is_file():
        pytest.skip("netscience is not in the folder of real data sets")
    edges = np.loadtxt(path, dtype=int, comments="#").tolist()
    number = {tuple(sorted(edge)): index for index, edge in enumerate(edges)}
    later: dict[int, set[int]] = {}
    for first, second in number:
        later.setdefault(first, set()).add(second)
    found = [
        (first, second, third)
        for first, second in number
        for third in later.get(second, set()) & later[first]
    ]
    by_edge = [[number[a, b], number[b, c], number[a, c]] for a, b, c in found]
    return {"node": make(found), "edge": make(by_edge)}


@pytest.mark.parametrize("unit", ["node", "edge"])
def test_value_is_increasing_and_concave_in_the_threshold(triangles, unit):
    problem = triangles[unit]
    taus = np.arange(1.0, 12.0)
    brackets = [solve(problem, tau, gap=tau / 1000) for tau in taus]
    slack = taus[-1] / 1000
    steps = [after.middle - before.middle for before, after in pairwise(brackets)]
    assert min(steps) > -slack
    assert all(after <= before + 2 * slack for before, after in pairwise(steps))
    whole = solve(problem, float(problem.loads.max()), gap=1.0)
    assert whole.lower <= 3764 <= whole.upper


@pytest.mark.parametrize(("unit", "expected"), [("node", 33), ("edge", 30)])
def test_least_index_is_where_two_searches_meet(triangles, unit, expected):
    problem = triangles[unit]
    thresholds = [np.exp(0.1 * j) / 2 for j in range(70)]
    assert DeletionOracle(problem, eta="0.3183").least(thresholds) == expected
    # One by one, with nothing remembered in between.
    assert DeletionOracle(problem, eta="0.3183").decide(thresholds[expected], expected)
    assert not DeletionOracle(problem, eta="0.3183").decide(thresholds[expected - 1], expected - 1)
