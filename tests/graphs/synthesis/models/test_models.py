"""The models that count, flip or group edges: what they keep, and what they refuse."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from tests.graphs.synthesis_reference import release

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.graphs.data import Graph
from tulle.graphs.generators import erdos_renyi, social_network
from tulle.ledger.answer import plan_for
from tulle.noise import SeededSource

MODELS = ("auto", "topm", "response", "kronecker", "communities")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("epsilon", [0.1, 50.0])
@pytest.mark.parametrize(
    ("nodes", "edges"),
    [(0, []), (1, []), (2, []), (2, [(0, 1)]), (3, []), (3, [(0, 1), (1, 2)]), (6, [(0, 5)])],
)
def test_tiny_graphs_work(model, epsilon, nodes, edges):
    graph = tulle.Graph.from_edges(edges, nodes=nodes)
    made = release(graph, model, epsilon).value
    assert made.node_count == nodes
    assert made.edge_count <= nodes * (nodes - 1) // 2


@pytest.mark.parametrize("model", MODELS)
def test_complete_and_empty_graphs_work(model):
    for probability in (0.0, 1.0):
        made = release(erdos_renyi(24, probability, seed=1), model, 2.0).value
        assert made.node_count == 24


def test_too_small_a_budget_gives_advice():
    graph = social_network(50, seed=1)
    with pytest.raises(QueryError, match=r"too small.*Spend more"):
        release(graph, "auto", 1e-9)
    for model in ("topm", "communities", "kronecker", "response"):
        assert release(graph, model, 1e-9).value.node_count == 50


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("auto", {"blocks": "perhaps"}),
        ("auto", {"parts": "edges,secrets"}),
        ("auto", {"colour": "red"}),
        ("topm", {"edges": -1}),
        ("communities", {"size": 0}),
        ("kronecker", {"triangles": "many"}),
    ],
)
def test_wrong_options_are_refused(model, options):
    with pytest.raises(InputError):
        release(social_network(30, seed=1), model, 1.0, **options)


def test_topm_refuses_more_edges_than_can_be_made_by_public_facts():
    empty = Graph.from_edges([], nodes=200_000)
    with pytest.raises(QueryError, match=r"edges="):
        plan_for(empty, tulle.synthetic("topm"), unit="edge", epsilon=1e-9)
    with pytest.raises(QueryError, match=r"edges="):
        plan_for(empty, tulle.synthetic("topm", edges=10**10), unit="edge", epsilon=1e-9)
    plan_for(empty, tulle.synthetic("topm", edges=10**5), unit="edge", epsilon=1e-9)
    small = Graph.from_edges([(0, 1)], nodes=50)
    assert release(small, "topm", 1e-9).value.node_count == 50


def test_topm_keeps_the_number_of_edges():
    graph = social_network(800, seed=2)
    made = release(graph, "topm", 1.0).value
    assert made.edge_count == pytest.approx(graph.edge_count, abs=6 * math.sqrt(graph.edge_count))


def test_response_thins_to_the_number_of_edges():
    graph = social_network(400, seed=2)
    made = release(graph, "response", 4.0).value
    assert made.edge_count == pytest.approx(graph.edge_count, rel=0.15)


def test_communities_place_all_edges_between():
    """Three cliques, a few edges between: at a large budget nothing is lost or misplaced."""
    clique = [(u, v) for u in range(40) for v in range(u)]
    edges = [(40 * c + u, 40 * c + v) for c in range(3) for u, v in clique]
    edges += [(u, 40 + u) for u in range(10)] + [(40 + u, 80 + u) for u in range(20)]
    graph = tulle.Graph.from_edges(edges, nodes=120)
    made = release(graph, "communities", 400.0).value
    assert made.edge_count == pytest.approx(graph.edge_count, rel=0.03)


# --- a public partition ---------------------------------------------------------------------------

SCHOOLS = [0, 0, 1, 1]


def exact(graph, partition):
    """Return what the model counts when its communities are public, without noise."""
    from tulle.graphs.synthesis.edge_counts import pair_counts
    from tulle.graphs.synthesis.models.communities import inner_degrees

    labels = np.array(partition)
    kinds = int(labels.max()) + 1
    row, column = np.triu_indices(kinds)
    return inner_degrees(graph, labels), pair_counts(graph, labels, kinds)[row != column]


def test_an_edge_moves_two_inner_degrees_or_one_count_between_parts():
    pairs = list(combinations(range(4), 2))
    for mask in range(2 ** len(pairs)):
        held = [pair for place, pair in enumerate(pairs) if mask >> place & 1]
        for pair in held:
            fewer = [other for other in held if other != pair]
            for partition in (SCHOOLS, [0, 0, 0, 0], [0, 1, 2, 0]):
                found = [
                    exact(
                        tulle.Graph.from_edges(np.array(edges).reshape(-1, 2), nodes=4), partition
                    )
                    for edges in (held, fewer)
                ]
                moved = [int(np.abs(one - two).sum()) for one, two in zip(*found, strict=True)]
                assert moved in ([2, 0], [0, 1])


def test_a_public_partition_is_kept():
    schools = np.repeat([0, 1, 2], 40)
    random = np.random.default_rng(1)
    pairs = np.array(list(combinations(range(120), 2)))
    same = schools[pairs[:, 0]] == schools[pairs[:, 1]]
    graph = tulle.Graph.from_edges(pairs[random.random(len(pairs)) < np.where(same, 0.3, 0.01)])
    names = np.array(["north", "south", "west"])[schools]
    query = tulle.synthetic(partition=names)
    assert query.model == "communities"
    assert "3 parts" in str(query)
    assert "north" not in str(query)
    r = tulle.release(graph, query, unit="edge", epsilon=2.0, source=SeededSource(1))

    def within(one):
        first, second = schools[one.edges()].T
        return np.mean(first == second)

    assert abs(within(r.value) - within(graph)) < 0.1
    # Communities that were found again would not be the schools of those very nodes.
    found = tulle.release(
        graph, tulle.synthetic("communities"), unit="edge", epsilon=2.0, source=SeededSource(1)
    )
    assert abs(within(found.value) - within(graph)) > 0.1


@pytest.mark.parametrize(
    ("model", "partition", "said"),
    [
        ("communities", [0, 1], "has 2 labels and the graph 9 nodes"),
        ("1k", [0] * 9, "does not keep a public partition"),
        ("communities", "0,x", "one label for each node"),
        ("communities", "0,0,0,0,0,0,0,0,7", "without a gap"),
    ],
)
def test_a_partition_that_does_not_fit_is_refused(model, partition, said):
    ring = tulle.Graph.from_edges([(i, (i + 1) % 9) for i in range(9)], nodes=9)
    with pytest.raises(tulle.TulleError, match=said):
        tulle.release(ring, tulle.synthetic(model, partition=partition), unit="edge", epsilon=9.0)


def test_a_plan_says_that_attributes_are_not_kept():
    ring = tulle.Graph.from_edges([(i, (i + 1) % 9) for i in range(9)], nodes=9)
    schools = ring.with_attributes(nodes={"school": ["a"] * 9})
    plan = plan_for(schools, tulle.synthetic("1k"), unit="edge", epsilon=60.0)
    assert any("school" in note and "not kept" in note for note in plan.notes())
