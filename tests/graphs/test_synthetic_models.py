"""The models that count, flip or group edges: what they keep, and what they refuse."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from synthesis_reference import release

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.graphs.data import all_graphs
from tulle.graphs.generators import erdos_renyi, social_network
from tulle.graphs.kernels import count_triangles, degrees
from tulle.graphs.synthesis.kronecker import drop_edges, expected_counts, fit_parameters
from tulle.graphs.synthesis.topm import coins_for
from tulle.noise import SeededSource
from tulle.noise.afterwards import afterwards

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


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "5", "30"])
@pytest.mark.parametrize(("nodes", "edges"), [(4, 1), (4, 5), (100, 60), (100, 4900), (4000, 9)])
def test_coins_keep_both_inequalities(nodes, edges, epsilon):
    from tulle.noise.exponent import exp_bounds

    spent = Fraction(epsilon)
    rates = coins_for(nodes, edges, spent)
    # In exact numbers, with exp(-x) known to 200 bits: p1 <= e^eps·p0, 1 - p0 <= e^eps·(1 - p1).
    digits = 200
    shrink = Fraction(exp_bounds(spent, digits)[1], 2**digits)
    absent = Fraction(exp_bounds(1 / rates.skip, digits)[1], 2**digits)
    assert rates.keep * shrink <= 1 - absent
    assert absent * shrink <= 1 - rates.keep
    assert 0 <= rates.keep <= 1


def test_coins_give_the_right_number():
    nodes, edges = 400, 3000
    pairs = nodes * (nodes - 1) // 2
    for epsilon in (Fraction(1, 2), Fraction(2), Fraction(9)):
        rates = coins_for(nodes, edges, epsilon)
        expected = edges * float(rates.keep) + (pairs - edges) * rates.invent
        assert expected == pytest.approx(edges, rel=0.01)


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


def test_kronecker_moments_by_counting_all_graphs():
    """The formulas against expectations over every graph on four nodes."""
    a, b, c = 0.9, 0.5, 0.2
    base = np.array([[a, b], [b, c]])
    chance = np.kron(base, base)
    expected = np.zeros(4)
    for graph in all_graphs(4):
        joined = np.zeros((4, 4), dtype=bool)
        for u, v in graph.edges():
            joined[u, v] = True
        upper = np.triu_indices(4, 1)
        weight = np.prod(np.where(joined[upper], chance[upper], 1 - chance[upper]))
        degree = degrees(graph)
        counts = [
            graph.edge_count,
            (degree * (degree - 1) // 2).sum(),
            (degree * (degree - 1) * (degree - 2) // 6).sum(),
            count_triangles(graph),
        ]
        expected += weight * np.array(counts)
    assert expected_counts(np.array([a, b, c]), 2) == pytest.approx(expected)


@pytest.mark.parametrize("nodes", [100, 128, 300])
def test_kronecker_recovers_its_parameters_for_any_n(nodes):
    random = afterwards(SeededSource(1))
    true = np.array([0.95, 0.55, 0.3])
    power = (nodes - 1).bit_length()
    survive = [math.prod((nodes - i) / (2**power - i) for i in range(j)) for j in (2, 3, 4, 3)]
    wanted = expected_counts(true, power) * np.array(survive)
    found = fit_parameters(wanted, nodes, True)
    assert found == pytest.approx(true, abs=0.02)
    edges = drop_edges(found, nodes, round(wanted[0]), random)
    assert len(edges) == round(wanted[0])
    assert edges.max() < nodes


def test_kronecker_keeps_degrees_where_triangles_are_out_of_reach():
    """As on any clustered graph: the counts that can be had are had, within a few per cent."""
    nodes, power = 5241, 13
    wanted = np.array([14_484.0, 229_867.0, 2_482_738.0, 48_260.0])
    survive = [math.comb(nodes, j) / math.comb(2**power, j) for j in (2, 3, 4, 3)]
    found = expected_counts(fit_parameters(wanted, nodes, True), power) * np.array(survive)
    assert found[:3] == pytest.approx(wanted[:3], rel=0.05)
    assert found[3] < wanted[3] / 10
