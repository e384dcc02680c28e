"""Statistics: compositions, coverage of their intervals, and degree distributions per node."""

from __future__ import annotations

from fractions import Fraction

import pytest
from scipy.stats import binom

import tulle
from tulle.audit.engine.kind import kind_of
from tulle.audit.faults import broken_versions
from tulle.audit.graphs.kind import QUESTIONS as AUDITED
from tulle.audit.graphs.statistics import COUNTS, LEFT_OUT, STATISTICS
from tulle.audit.table import closed_form
from tulle.core import registry
from tulle.graphs.generators import erdos_renyi, social_network
from tulle.graphs.mechanisms.projection import candidates
from tulle.ledger.answer import draw, plan_for

GRAPHS = kind_of("graph")
LEVEL, SIGNIFICANCE = 0.9, 1e-6


def test_every_statistic_and_what_it_is_made_of_is_examined():
    known = {
        name
        for name, make in registry.find("query", "graph").items()
        if make.__module__.rpartition(".")[2] in ("statistics", "local_counts", "partitions")
    }
    assert known == {query.name for query in (*COUNTS, *STATISTICS)}
    for query in (*COUNTS, *STATISTICS):
        unit = tulle.Unit.of("edge")
        for mechanism in registry.mechanisms("graph").values():
            if mechanism.supports(query, unit):
                assert query in GRAPHS.questions(mechanism) or (mechanism.name, query) in LEFT_OUT
        parts = query.decomposition()
        for part in () if parts is None else parts.parts():
            assert any(type(part) is type(asked) for asked in AUDITED), part


@pytest.mark.parametrize("query", [*COUNTS, *STATISTICS], ids=str)
def test_every_statistic_has_a_twin_that_is_caught_on_it(query):
    """By the claims or the exact distributions on all graphs of four nodes, on this question."""
    twins = [twin for twin in broken_versions(GRAPHS) if query in twin.questions]
    assert any(
        not finding.passed
        for twin in twins
        for finding in closed_form(GRAPHS, twin, query, GRAPHS.world(4))
    )


def check_composition(size):
    """Coefficients from triangles, degrees and the average: (epsilon, delta) together."""
    mechanism, query = registry.mechanisms("graph")["decomposed"], tulle.clustering()
    for finding in closed_form(GRAPHS, mechanism, query, GRAPHS.world(size)):
        assert finding.passed, finding


@pytest.mark.parametrize("size", [2, 3, 4])
def test_coefficients_from_their_parts(size):
    check_composition(size)


@pytest.mark.slow
def test_coefficients_from_their_parts_on_five_nodes():
    check_composition(5)


QUESTIONS = [
    (tulle.transitivity(), "statistic_ladder"),
    (tulle.transitivity(), "decomposed"),
    (tulle.average_clustering(), "statistic_ladder"),
    (tulle.clustering(3), "statistic_ladder"),
    (tulle.clustering(3), "decomposed"),
    (tulle.assortativity(), "statistic_ladder"),
    (tulle.assortativity(), "decomposed"),
    (tulle.modularity([0, 1, 2] * 20), "statistic_ladder"),
    (tulle.modularity([0, 1, 2] * 20), "decomposed"),
]


def covered(graph, query, mechanism, epsilon, runs):
    """Return how many of the runs have the truth inside their interval; planned once."""
    truth = query.truth(graph)
    plan = plan_for(graph, query, unit="edge", epsilon=epsilon, mechanism=mechanism)
    ends = (draw(plan, graph, None, debit=None).interval(LEVEL) for _ in range(runs))
    return sum(low <= truth <= high for low, high in ends)


@pytest.mark.parametrize(("query", "mechanism"), QUESTIONS, ids=str)
def test_intervals_cover_on_a_small_network(query, mechanism):
    runs = 30
    hits = covered(social_network(60, seed=5), query, mechanism, 4, runs)
    assert binom.cdf(hits, runs, LEVEL) >= SIGNIFICANCE, f"{hits} of {runs}"


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.5", "4"])
@pytest.mark.parametrize(("query", "mechanism"), QUESTIONS, ids=str)
def test_intervals_cover(query, mechanism, epsilon):
    runs = 200
    for graph in (social_network(60, seed=6), erdos_renyi(60, 0.3, seed=7)):
        hits = covered(graph, query, mechanism, epsilon, runs)
        assert binom.cdf(hits, runs, LEVEL) >= SIGNIFICANCE, f"{hits} of {runs}"


def test_a_degree_distribution_per_node():
    graph = social_network(400, seed=3)
    answer = tulle.release(
        graph,
        tulle.degree_distribution(),
        unit="node",
        epsilon=Fraction(4),
        mechanism="projection",
        largest=64,
    )
    assert answer.value.shape == (65,)
    assert (answer.value >= 0).all()
    assert str(answer.guarantee).endswith("per node (add-remove)")
    assert abs(int(answer.value.sum()) - 400) < 200
    back = tulle.Release.from_json(answer.to_json())
    assert back.value.tolist() == answer.value.tolist()
    assert back.parameters["bound"] in candidates(64)
