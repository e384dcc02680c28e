"""The audit's own checks on the mechanisms for contributions."""

import pytest
from tests.audit.audit_helpers import black_box_finds_nothing, runs_are_as_described

from tulle.audit.engine.failures import check_alike
from tulle.audit.engine.kind import kind_of
from tulle.audit.table import closed_form
from tulle.core import registry

TABLES = kind_of("contributions")
NAMES = [
    "block_laplace",
    "block_gaussian",
    "block_quantiles",
    "participants_laplace",
    "vote_partition",
]


def test_all_mechanisms_are_here():
    assert sorted(registry.mechanisms("contributions")) == sorted([*NAMES, *TABLES.own_checks])


def closed(name, size):
    mechanism = registry.mechanisms("contributions")[name]
    world = TABLES.world(size)
    assert world.outside == 0
    for query in TABLES.questions(mechanism):
        for finding in closed_form(TABLES, mechanism, query, world):
            assert finding.passed, finding


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("name", NAMES)
def test_all_tables_of_up_to_two_people(name, size):
    closed(name, size)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_tables_of_up_to_three_people(name):
    closed(name, 6)


def test_laplace_noise_uses_up_its_budget():
    """Neither too little noise nor too much: the worst neighbours lose epsilon, to nine digits."""
    mechanism = registry.mechanisms("contributions")["block_laplace"]
    for query in TABLES.questions(mechanism):
        found = closed_form(TABLES, mechanism, query, TABLES.world(2))
        assert max(f.worst for f in found if f.check == "exact") > 1 - 1e-8


@pytest.mark.parametrize("name", NAMES)
def test_runs_have_the_described_law_and_are_fresh(name):
    runs_are_as_described(TABLES, name, runs=1000)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_black_box_finds_nothing(name):
    black_box_finds_nothing(TABLES, name, runs=30_000)


def test_neighbours_fail_alike():
    budgets = [(1.0, 0.0), (1.0, 1e-6), ("1e-9", 1e-300), (1e4, 0.5), (0, 0), ("x", 2)]
    finding = check_alike(TABLES, TABLES.world(2), TABLES.odd_questions(), budgets, [None, *NAMES])
    assert finding.passed, finding
