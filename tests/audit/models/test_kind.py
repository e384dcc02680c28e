"""The audit's own checks on the mechanisms for tables of people."""

from fractions import Fraction

import pytest
from tests.audit.audit_helpers import black_box_finds_nothing, runs_are_as_described

from tulle.audit.engine.failures import check_alike
from tulle.audit.engine.kind import kind_of
from tulle.audit.faults import broken_versions
from tulle.audit.models.kind import CHANGE_HIDDEN, rows_of
from tulle.audit.table import closed_form
from tulle.core import registry

TABLES = kind_of("table")
NAMES = ["functional", "adassp", "objective_knorm", "objective_laplace", "objective_gaussian"]


def test_all_mechanisms_are_here():
    assert sorted(registry.mechanisms("table")) == sorted(NAMES)
    assert {twin.mimics for twin in broken_versions(TABLES)} == set(NAMES)


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


@pytest.mark.parametrize("name", ["functional", "adassp", "objective_knorm", "objective_laplace"])
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


def test_a_change_of_sensitive_features_alone_costs_the_attribute_epsilon():
    """Neighbours here differ in one person's sensitive feature (b) and in nothing else."""
    mechanism = registry.mechanisms("table")["functional"]
    world = TABLES.world_for(4, CHANGE_HIDDEN)
    terms = TABLES.terms(CHANGE_HIDDEN, world.datasets[0], world.unit, Fraction(1))
    settings = mechanism.settings(terms, {})
    laws = [
        TABLES.describe(mechanism, terms, settings, dataset).parts[0][1]
        for dataset in world.datasets
    ]
    visible = [tuple(sorted((a, y) for a, _, y in rows_of(d))) for d in world.datasets]
    losses = [
        laws[one].loss(laws[other])
        for one, other in zip(world.first.tolist(), world.second.tolist(), strict=True)
        if visible[one] == visible[other]
    ]
    stated = float(Fraction(settings["attribute_epsilon"]))
    assert len(losses) > 300
    assert stated * (1 - 1e-5) <= max(losses) <= stated < 0.9


@pytest.mark.parametrize("name", NAMES)
def test_runs_have_the_described_law_and_are_fresh(name):
    runs_are_as_described(TABLES, name, runs=1000)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_runs_keep_the_promise_from_outside(name):
    black_box_finds_nothing(TABLES, name, runs=20_000)


def test_neighbours_fail_alike():
    names = [None, *NAMES]
    for size in (1, 2):
        found = check_alike(
            TABLES, TABLES.world(size), TABLES.odd_questions(), [(1.0, 1e-6)], names
        )
        assert found.passed, found
