"""The audit's own checks on the mechanisms for tables of people."""

from fractions import Fraction

import pytest

from tulle.audit.exact import check_sampler
from tulle.audit.failures import check_alike
from tulle.audit.fresh import check_fresh
from tulle.audit.kind import kind_of
from tulle.audit.table import DRAWN_AT, catch, check_black_box, closed_form
from tulle.core import registry

TABLES = kind_of("table")
NAMES = ["functional", "adassp", "objective_laplace", "objective_gaussian"]
TWINS = TABLES.twins()


def test_all_mechanisms_are_here():
    assert sorted(registry.mechanisms("table")) == sorted(NAMES)
    assert {twin.mimics for twin in TWINS} == set(NAMES)


def closed(name, size):
    mechanism = registry.mechanisms("table")[name]
    for query in TABLES.questions(mechanism):
        world = TABLES.world_for(size, query)
        assert world.outside == 0
        for finding in closed_form(TABLES, mechanism, query, world):
            assert finding.passed, finding


@pytest.mark.parametrize("name", NAMES)
def test_all_tables_of_one_row(name):
    closed(name, 2)


@pytest.mark.parametrize("name", ["functional", "adassp", "objective_laplace"])
def test_all_tables_of_up_to_two_rows(name):
    closed(name, 4)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_tables_of_up_to_three_rows(name):
    closed(name, 6)


def test_the_functional_mechanism_uses_up_its_budget():
    """Neither too little noise nor too much: the worst neighbours lose epsilon."""
    mechanism = registry.mechanisms("table")["functional"]
    for query in TABLES.questions(mechanism):
        if query.norm is None:
            found = closed_form(TABLES, mechanism, query, TABLES.world_for(2, query))
            assert max(f.worst for f in found if f.check == "exact") > 1 - 1e-8, query


@pytest.mark.parametrize("name", NAMES)
def test_runs_have_the_described_law_and_are_fresh(name):
    mechanism = registry.mechanisms("table")[name]
    epsilon, delta = DRAWN_AT
    for query in TABLES.drawn_questions(mechanism):
        found = check_sampler(TABLES, mechanism, query, epsilon=epsilon, delta=delta, runs=1000)
        assert found.passed, found
        found = check_fresh(TABLES, mechanism, query, epsilon=Fraction(1), delta=delta)
        assert found.passed, found


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_runs_keep_the_promise_from_outside(name):
    mechanism = registry.mechanisms("table")[name]
    for query in TABLES.drawn_questions(mechanism):
        found = check_black_box(TABLES, mechanism, query, 20_000)
        assert found.passed, found


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_twins_are_caught(twin):
    missed = [check for check, finding in catch(TABLES, twin).items() if finding is None]
    assert not missed


def test_neighbours_fail_alike():
    names = [None, *NAMES]
    for size in (1, 2):
        found = check_alike(
            TABLES, TABLES.world(size), TABLES.odd_questions(), [(1.0, 1e-6)], names
        )
        assert found.passed, found
