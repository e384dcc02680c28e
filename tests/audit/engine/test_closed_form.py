"""Every proof's claims and every output distribution, on all small graphs."""

from fractions import Fraction

import pytest

from tulle.audit.engine.exact import check_exact
from tulle.audit.engine.exhaustive import describe_world
from tulle.audit.engine.kind import kind_of
from tulle.audit.table import closed_form
from tulle.core import registry
from tulle.graphs.queries.counts import cliques, stars

GRAPHS = kind_of("graph")
MECHANISMS = {
    name: item for name, item in registry.mechanisms("graph").items() if GRAPHS.questions(item)
}


def check(name, size):
    mechanism = MECHANISMS[name]
    asked = GRAPHS.questions(mechanism)
    assert asked, f"{name} has no case in the audit"
    for query in asked:
        for finding in closed_form(GRAPHS, mechanism, query, GRAPHS.world_for(size, query)):
            assert finding.passed, finding


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("name", MECHANISMS)
def test_all_graphs_up_to_five_nodes(name, size):
    check(name, size)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ladder", "smoothed_ladder", "smooth", "smooth_pure"])
def test_larger_cliques_on_six_nodes(name):
    for finding in closed_form(GRAPHS, MECHANISMS[name], cliques(6), GRAPHS.world(6)):
        assert finding.passed, finding


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(20, "1e-6"), (30, "1e-6"), (16, "1e-3"), ("0.1", "0.5")]
)
def test_smooth_keeps_its_delta_at_unusual_budgets(epsilon, delta):
    """The scale's share of the proof, exp(-t)(1 - exp(-beta)) <= delta, is not for epsilon < 1
    alone: t = (epsilon/2 + beta) / (exp(beta) - 1) shrinks as beta grows."""
    mechanism, query, world = MECHANISMS["smooth"], stars(3), GRAPHS.world(5)
    budget = Fraction(epsilon), Fraction(delta)
    terms = GRAPHS.terms(query, world.datasets[0], world.unit, *budget)
    guarantee = mechanism.guarantee(terms, mechanism.settings(terms, {}))
    described = describe_world(GRAPHS, mechanism, query, world, *budget)
    finding = check_exact(GRAPHS, mechanism, query, world, described, guarantee)
    assert finding.passed, finding
