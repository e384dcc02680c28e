"""Every proof's claims and every output distribution, on all small graphs."""

from collections import Counter
from fractions import Fraction
from functools import lru_cache
from itertools import permutations

import pytest

from tulle.audit.engine.exact import check_exact
from tulle.audit.engine.exhaustive import describe_world
from tulle.audit.engine.kind import kind_of
from tulle.audit.graphs.kind import UNLABELLED
from tulle.audit.table import BUDGETS, closed_form
from tulle.core import registry
from tulle.graphs.queries.counts import cliques, stars
from tulle.graphs.queries.local_counts import degree_of

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


# --- one graph of each shape stands for all ----------------------------------------------------


def differing(kind, mechanism, query, nodes):
    """Return the graphs whose description is not that of the graph of their shape."""
    shapes, all_of_them = kind.world_for(nodes, query), kind.world(nodes)
    by_shape = {
        shape_of(graph): described
        for graph, described in zip(
            shapes.datasets, described_in(kind, mechanism, query, shapes), strict=True
        )
    }
    found = described_in(kind, mechanism, query, all_of_them)
    pairs = zip(all_of_them.datasets, found, strict=True)
    return [graph.edges().tolist() for graph, one in pairs if by_shape[shape_of(graph)] != one]


def described_in(kind, mechanism, query, world):
    return describe_world(kind, mechanism, query, world, *BUDGETS[1], kind.options(mechanism)[0])


def shape_of(graph):
    return _shape(graph.node_count, tuple(map(tuple, graph.edges().tolist())))


@lru_cache(maxsize=4096)
def _shape(nodes, edges):
    """The smallest list of edges under any numbering: slow and obvious."""
    return min(
        tuple(sorted(tuple(sorted((order[u], order[v]))) for u, v in edges))
        for order in permutations(range(nodes))
    )


CASES = [
    (name, query)
    for name, mechanism in MECHANISMS.items()
    for query in GRAPHS.questions(mechanism)
    if query in UNLABELLED
]


@pytest.mark.parametrize("nodes", [3, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_numbers_of_nodes_change_no_description(nodes):
    assert {query for _, query in CASES} == UNLABELLED
    for name, query in CASES:
        assert not differing(GRAPHS, MECHANISMS[name], query, nodes), (name, query)


def test_a_question_that_looks_at_numbers_is_found(monkeypatch):
    asked = degree_of(0)
    monkeypatch.setattr("tulle.audit.graphs.kind.UNLABELLED", UNLABELLED | {asked})
    assert differing(GRAPHS, MECHANISMS["laplace"], asked, 3)


@pytest.mark.parametrize("nodes", [0, 1, 2, 3, 4, 5])
def test_shapes_have_the_neighbours_of_all_graphs(nodes):
    """As often as all graphs have them, by the unit's own list of neighbours."""
    shapes, all_of_them = GRAPHS.world_for(nodes, stars(2)), GRAPHS.world(nodes)
    assert len({shape_of(graph) for graph in shapes.datasets}) == len(shapes.datasets)

    def pairs(world):
        named = [shape_of(graph) for graph in world.datasets]
        return Counter((named[a], named[b]) for a, b in zip(world.first, world.second, strict=True))

    assert pairs(shapes) == pairs(all_of_them)


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
