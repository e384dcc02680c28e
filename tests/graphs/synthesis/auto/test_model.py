"""The model auto: bounds by brute force, what it spends, and what comes out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.graphs.synthesis_reference import most_moved, release, terms_for

import tulle
from tulle.core.registry import mechanisms
from tulle.graphs.generators import social_network
from tulle.graphs.kernels.counts import count_triangles, degrees
from tulle.graphs.synthesis.auto.model import (
    LADDERS,
    STEP,
    closure_limit,
    correlation_moves,
    mixing_classes,
    mixing_moves,
)
from tulle.graphs.synthesis.auto.schedule import PARTS, budgets_of, schedule_of, scores_of
from tulle.graphs.synthesis.edge_counts import (
    closed_picks,
    member_counts,
    order_counts,
    pair_counts,
)
from tulle.graphs.synthesis.joint_degrees.classes import soft_classes
from tulle.graphs.synthesis.models.communities import inner_degrees
from tulle.noise import SeededSource
from tulle.noise.post_processing import post_processing

# What one edge can move, over all small graphs, additions and removals.


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_bounds_of_all_parts(nodes):
    labels = np.arange(nodes) % 3

    def count(graph):
        return np.concatenate(
            [
                order_counts(graph, 2),
                pair_counts(graph, labels, 3),
                member_counts(graph, labels, 3),
                inner_degrees(graph, labels),
            ]
        )

    # Order and pairs one each, members two, inner degrees two.
    assert most_moved(nodes, count) <= 1 + 1 + 2 + 2
    assert most_moved(nodes, lambda g: order_counts(g, 2)) == 1
    assert most_moved(nodes, lambda g: member_counts(g, labels, 3)) == 2


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_bounds_of_closure(nodes, limit):
    assert most_moved(nodes, lambda g: closed_picks(g, limit)) <= limit + 2


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
@pytest.mark.parametrize("ratio", [2, 3, 4])
def test_bounds_of_mixing(nodes, ratio):
    classes = soft_classes(nodes, Fraction(ratio))
    most = most_moved(nodes, lambda g: classes.measure(g, STEP))
    assert most <= mixing_moves(classes)
    # Not far from it: a bound that is much too large would be noise for nothing.
    assert most >= mixing_moves(classes) / 3


def test_picks_without_a_limit_move_without_bound():
    """Two hubs that everybody else knows: joining them closes all picks at once."""
    leaves = range(2, 40)
    apart = [(hub, leaf) for hub in (0, 1) for leaf in leaves]
    far, near = (
        closed_picks(tulle.Graph.from_edges(edges, nodes=40), 10**9)
        for edges in (apart, [*apart, (0, 1)])
    )
    assert near - far >= 38
    limited = [
        closed_picks(tulle.Graph.from_edges(edges, nodes=40), 2)
        for edges in (apart, [*apart, (0, 1)])
    ]
    assert abs(limited[1] - limited[0]) <= 4


def test_picks_estimate_clustering():
    graph = social_network(2000, seed=3)
    mean = closed_picks(graph) / 2000
    neighbours_of = graph.to_networkx()
    import networkx

    assert mean == pytest.approx(networkx.average_clustering(neighbours_of), abs=0.05)


# The budget.


def test_every_part_gets_the_noise_that_its_budget_buys(monkeypatch):
    graph = social_network(400, communities=4, seed=2)
    auto = mechanisms("graph")["synthetic_auto"]
    terms = terms_for(graph, tulle.synthetic("auto", blocks="yes"), "4")
    settings = auto.settings(terms, {})
    used = []

    def record(*, scale, size=None, source=None):
        used.append(scale)
        return 0 if size is None else np.zeros(size, dtype=np.int64)

    monkeypatch.setattr("tulle.graphs.synthesis.auto.model.discrete_laplace", record)
    seen = auto.measure(terms, settings, graph, SeededSource(1))
    budgets = budgets_of(seen, settings)
    limit = closure_limit(seen, settings)
    sensitivity = {
        "edges": 1,
        "order": 1,
        "reached": 2,
        "sequence": 2,
        "closure": limit + 2,
        "correlation": correlation_moves(scores_of(seen, settings)),
        "mixing": mixing_moves(mixing_classes(400)),
        "members": 2,
        "pairs": 1,
    }
    assert list(seen) == list(budgets)
    assert used == [sensitivity[n] / budgets[n] for n in seen if n not in LADDERS]


# What comes out.


@pytest.mark.parametrize("parts", ["edges", "edges,reached,sequence", *PARTS])
def test_auto_copes_with_any_parts(parts):
    made = release(social_network(40, seed=1), "auto", 3.0, parts=parts).value
    assert made.node_count == 40


def test_a_release_is_replayed_and_redrawn():
    from tulle.core.release import Release
    from tulle.graphs.synthesis.model import regenerate

    first = release(social_network(60, seed=1), "auto", 2.0)
    again = Release.from_json(first.to_json())
    assert np.array_equal(again.value.edges(), first.value.edges())
    more = regenerate(again, SeededSource(3))
    assert np.array_equal(more.edges(), regenerate(first, SeededSource(3)).edges())
    assert abs(more.edge_count - first.value.edge_count) <= 2


def test_auto_is_close_on_a_social_network():
    graph = social_network(1500, communities=6, seed=4)
    made = release(graph, "auto", 4.0).value
    assert made.edge_count == pytest.approx(graph.edge_count, rel=0.01)
    assert count_triangles(made) == pytest.approx(count_triangles(graph), rel=0.1)
    assert degrees(made).var() == pytest.approx(degrees(graph).var(), rel=0.25)
    # The generator numbers communities in order: auto may find that, and must profit.
    scores = tulle.compare(graph, made)
    assert scores["communities"] > 0.3
    assert scores["average clustering"] < 0.2


def test_the_order_is_used_only_where_it_tells_something():
    auto = mechanisms("graph")["synthetic_auto"]
    graph = social_network(1500, communities=6, seed=4)
    mixed = post_processing(SeededSource(5)).permutation(1500)[graph.edges()]
    for edges, expected in ((graph.edges(), True), (mixed, False)):
        one = tulle.Graph.from_edges(edges, nodes=1500)
        terms = terms_for(one, tulle.synthetic(), "1")
        settings = auto.settings(terms, {})
        seen = auto.measure(terms, settings, one, SeededSource(1))
        assert (schedule_of(seen, settings) == "blocks") == expected
        assert ("members" in seen) == expected
