"""Statistics asked of odd and tiny graphs, and how well they are answered on larger ones."""

from __future__ import annotations

import numpy as np
import pytest

import tulle
from tulle.core.query import parse
from tulle.core.registry import find, mechanisms
from tulle.graphs.generators import erdos_renyi, social_network, watts_strogatz
from tulle.graphs.mechanisms.decomposed import TriplesLaw
from tulle.graphs.mechanisms.isotonic import graphical
from tulle.graphs.mechanisms.private_bound import safe_shift
from tulle.graphs.mechanisms.statistic_ladder import StatisticLadder, width_level
from tulle.ledger.answer import plan_for

SCALARS = [
    tulle.transitivity(),
    tulle.average_clustering(),
    tulle.clustering(0),
    tulle.assortativity(),
]
VECTORS = [tulle.triangles_per_node(), tulle.triples_per_node(), tulle.clustering()]


def tiny(nodes, edges):
    return tulle.Graph.from_edges(np.array(edges, dtype=np.int64).reshape(-1, 2), nodes=nodes)


@pytest.mark.parametrize("edges", [[], [(0, 1)]])
@pytest.mark.parametrize("nodes", [2, 3])
@pytest.mark.parametrize("query", [*SCALARS, *VECTORS], ids=str)
def test_graphs_with_hardly_an_edge(query, nodes, edges):
    graph = tiny(nodes, edges)
    plan = plan_for(graph, query, unit="edge", epsilon=1.0, delta=1e-6)
    for offer in plan.offers:
        answer = tulle.release(
            graph, query, unit="edge", epsilon=1.0, delta=1e-6, mechanism=offer.mechanism
        )
        assert np.shape(answer.value) == np.shape(query.truth(graph))
        assert np.isfinite(answer.value).all()
        assert tulle.Release.from_json(answer.to_json()).query == str(query)


@pytest.mark.parametrize("nodes", [0, 1])
@pytest.mark.parametrize("query", [*SCALARS[:2], *VECTORS], ids=str)
def test_graphs_without_a_pair_say_so(query, nodes):
    with pytest.raises(tulle.QueryError, match="no pair of nodes"):
        tulle.release(tiny(nodes, []), query, unit="edge", epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("nodes", [0, 1, 2])
def test_degree_distributions_per_node_of_nothing(nodes):
    answer = tulle.release(tiny(nodes, []), tulle.degree_distribution(), unit="node", epsilon=1.0)
    assert answer.value.shape == (1001,)


def test_a_node_that_is_not_there():
    graph = tulle.Graph.from_edges([("ann", "bob"), ("bob", "cas")])
    assert tulle.clustering("bob").truth(graph) == 0.0
    assert tulle.degree_of("bob").truth(graph) == 2
    for query in (tulle.clustering("dan"), tulle.triangles_at(7), tulle.degree_of("x") + 1):
        with pytest.raises(tulle.QueryError, match="no node"):
            tulle.release(graph, query, unit="edge", epsilon=1.0)
    with pytest.raises(tulle.InputError, match="whole number"):
        tulle.clustering(1.5)


def test_a_partition_must_fit():
    graph = tiny(4, [(0, 1), (2, 3)])
    with pytest.raises(tulle.QueryError, match="one label for each node"):
        tulle.release(graph, tulle.modularity([0, 1]), unit="edge", epsilon=1.0)
    with pytest.raises(tulle.InputError, match="one label"):
        tulle.modularity(3)
    with pytest.raises(tulle.InputError, match="one label"):
        tulle.modularity([[1], [2]])
    assert tulle.modularity("aabb") == tulle.modularity([7, 7, 1, 1])
    assert str(tulle.modularity("aabb")) != str(tulle.modularity("abab"))


def test_names_can_be_written():
    names = find("query", "graph")
    for text in ("transitivity", "clustering(3)", "clustering", "modularity([0, 0, 1])"):
        assert parse(text, names).kind == "graph"


def test_errors_are_as_predicted():
    """The prediction on the graph itself is what releases from it are off by."""
    graph = erdos_renyi(150, 0.15, seed=8)
    for query in (tulle.transitivity(), tulle.average_clustering()):
        plan = plan_for(graph, query, unit="edge", epsilon=2.0, like=graph)
        truth = query.truth(graph)
        offer = plan.chosen
        assert offer.mechanism == "statistic_ladder"
        runs = (StatisticLadder().run(offer.terms, offer.settings, graph, None) for _ in range(60))
        errors = [abs(outcome.value - truth) for outcome in runs]
        predicted = plan.chosen.prediction.rank()
        assert predicted / 2 < np.median(errors) < 2 * predicted


def test_triples_are_unbiased_and_covered():
    graph = social_network(300, seed=2)
    truth = tulle.triples_per_node().truth(graph)
    drawn = [
        tulle.release(
            graph, tulle.triples_per_node(), unit="edge", epsilon=1.0, mechanism="decomposed"
        )
        for _ in range(1000)
    ]
    large = truth > 200
    errors = np.array([answer.value for answer in drawn])[:, large] - truth[large]
    # Without the correction the bias would be half the noise's variance, 4. Each answer errs by
    # itself, so the mean's own error is known: two is seven times as much.
    assert errors.std() / np.sqrt(errors.size) < 0.35
    assert abs(errors.mean()) < 2
    hits = sum(
        bool(((low <= truth) & (truth <= high)).all())
        for low, high in (answer.interval(0.9) for answer in drawn[:40])
    )
    assert hits >= 28
    law = TriplesLaw(drawn[0].error.scale, 300)
    assert law.half_width(0.9) > 0


def test_levels_and_shifts():
    from fractions import Fraction

    assert width_level(1, Fraction(1, 10)) == 0
    for width in (1, 2, 5, 1000, 10**12):
        assert width <= np.exp(0.1 * width_level(width, Fraction(1, 10))) * (1 + 1e-9)
    for rate, delta in ((Fraction(1, 3), Fraction(1, 10**6)), (Fraction(2), Fraction(1, 20))):
        w, q = safe_shift(rate, delta), np.exp(-float(rate))
        assert q ** (w + 1) / (1 + q) <= float(delta)
    assert safe_shift(Fraction(1), Fraction(1, 10**320)) > 700


def test_released_degrees_are_those_of_a_graph():
    graph = social_network(300, seed=5)
    answer = tulle.release(graph, tulle.degrees(), unit="edge", epsilon=0.3)
    sequence = answer.value
    assert (np.diff(sequence) <= 0).all()
    assert graphical(sequence).tolist() == sequence.tolist()
    sums = np.cumsum(sequence)
    for k in range(1, len(sequence) + 1):
        assert sums[k - 1] <= k * (k - 1) + np.minimum(sequence[k:], k).sum()
    assert int(sequence.sum()) % 2 == 0


def test_the_projection_keeps_a_subgraph():
    from tulle.graphs.mechanisms.projection import projected_degrees

    graph = social_network(200, seed=5)
    own = np.diff(graph.csr()[0])
    for bound in (1, 4, 1000):
        kept = projected_degrees(graph, bound)
        assert (kept <= np.minimum(own, bound)).all()
        assert int(kept.sum()) % 2 == 0
    assert projected_degrees(graph, 1000).tolist() == own.tolist()


def test_tiny_budgets_fail_alike_or_not_at_all():
    """What noise can be drawn is decided by public numbers, not by the bound that was drawn."""
    for graph in (tiny(6, []), tiny(6, [(0, 1), (1, 2), (2, 0)])):
        for query in VECTORS:
            answer = tulle.release(graph, query, unit="edge", epsilon="1e-6", delta=1e-6)
            assert len(answer.value) == 6
    with pytest.raises(tulle.QueryError, match="too small"):
        plan_for(
            tiny(10**6, []),
            tulle.triangles_per_node(),
            unit="edge",
            epsilon="1e-9",
            delta=1e-6,
            mechanism="private_bound",
        )


@pytest.mark.parametrize("mechanism", ["smoothed_ladder", "ladder", "smooth_pure"])
@pytest.mark.parametrize("query", [tulle.degree_squares("ab" * 30), tulle.chains()], ids=str)
def test_laws_of_counts_know_how_large_a_spread_can_be(query, mechanism):
    """The degrees of a part are many more than there are nodes."""
    graph = erdos_renyi(60, 0.6, seed=3)
    plan = plan_for(graph, query, unit="edge", epsilon=1.0, mechanism=mechanism, like=graph)
    offer, one = plan.chosen, mechanisms("graph")[mechanism]
    truth = query.truth(graph)
    drawn = [one.run(offer.terms, offer.settings, graph, None) for _ in range(60)]
    errors = np.array([abs(float(outcome.value) - truth) for outcome in drawn])
    predicted = offer.prediction.typical.half_width(0.5)
    assert np.median(errors) < 1.6 * predicted
    assert offer.prediction.bound.half_width(0.5) >= predicted
    hits = sum(
        error <= outcome.error.half_width(0.9) for error, outcome in zip(errors, drawn, strict=True)
    )
    assert hits >= 45


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_all_coefficients_under_a_small_budget_are_about_as_good_as_their_mean(delta):
    """Little can be known of each, so the budget goes to what can: the average."""
    graph, like = (watts_strogatz(400, 20, 0.2, seed=seed) for seed in (1, 2))
    truth = tulle.clustering().truth(graph)
    plan = plan_for(
        graph, tulle.clustering(), unit="edge", epsilon=1.0, delta=delta, like=like,
        mechanism="decomposed",
    )  # fmt: skip
    offer, one = plan.chosen, mechanisms("graph")["decomposed"]
    errors = [
        np.abs(one.run(offer.terms, offer.settings, graph, None).value - truth).mean()
        for _ in range(10)
    ]
    assert np.mean(errors) < 2 * np.abs(truth - truth.mean()).mean()
