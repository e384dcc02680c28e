"""The audit's own checks on the mechanisms for matrices and topologies, and the guide's code."""

import re
from pathlib import Path

import pytest
from tests.audit.audit_helpers import black_box_finds_nothing, runs_are_as_described

from tulle.audit.engine.failures import check_alike
from tulle.audit.engine.kind import kind_of
from tulle.audit.table import closed_form
from tulle.core import registry

MATRICES = kind_of("matrix")
NAMES = ["cells", "two_level", "coupled"]


def test_all_mechanisms_are_here():
    assert sorted(registry.mechanisms("matrix")) == sorted(NAMES)


def closed(name, size):
    mechanism = registry.mechanisms("matrix")[name]
    asked = MATRICES.questions(mechanism)
    assert asked
    for query in asked:
        world = MATRICES.world_for(size, query)
        assert world.outside == 0
        for finding in closed_form(MATRICES, mechanism, query, world):
            assert finding.passed, finding


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", NAMES)
def test_all_matrices_up_to_five_cells(name, size):
    closed(name, size)


@pytest.mark.slow
@pytest.mark.parametrize("size", [6, 7, 8])
@pytest.mark.parametrize("name", NAMES)
def test_all_matrices_up_to_eight_cells(name, size):
    closed(name, size)


@pytest.mark.parametrize("name", NAMES)
def test_runs_have_the_described_law_and_are_fresh(name):
    runs_are_as_described(MATRICES, name, runs=1500)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_black_box_finds_nothing(name):
    black_box_finds_nothing(MATRICES, name, runs=50_000)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_neighbours_fail_alike(size):
    budgets = [(1.0, 0.0), ("1e-9", 0.0), (1e4, 0.5), (0, 0), (-1, 0), ("x", 2)]
    finding = check_alike(
        MATRICES, MATRICES.world(size), MATRICES.odd_questions(), budgets, [None, *NAMES]
    )
    assert finding.passed, finding


def test_the_guide_runs():
    guide = Path(__file__).parents[3] / "docs" / "matrices.md"
    code = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    assert len(code) >= 4
    exec(compile("\n".join(code), str(guide), "exec"), {})
