"""The whole topology of a graph under randomized response, and what is estimated from it."""

import json
from collections import Counter
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import stats

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.graphs.generators import all_graphs, social_network
from tulle.graphs.topology.estimates import (
    estimate_degrees,
    estimate_density,
    estimate_edges,
    estimate_triangles,
    limit,
)
from tulle.graphs.topology.response import Response, Topology, TopologyCodec, topology
from tulle.ledger.answer import plan_for
from tulle.noise import SeededSource
from tulle.noise.xor.patterns import flip_probability

GRAPH = social_network(60, seed=3)


def test_pairs_are_numbered_without_gaps():
    for nodes in (2, 3, 7):
        full = tulle.Graph.from_edges(
            [(u, v) for u in range(nodes) for v in range(u + 1, nodes)], nodes=nodes
        )
        assert topology().truth(full).bits().tolist() == [1] * comb(nodes, 2)
        for place in range(comb(nodes, 2)):
            bits = np.zeros(comb(nodes, 2), dtype=np.uint8)
            bits[place] = 1
            one = Topology(nodes, np.packbits(bits))
            assert topology().truth(one.to_graph()) == one
            assert len(one.edges()) == one.edge_count == 1


def test_truth_and_conversions():
    true = topology().truth(GRAPH)
    assert np.array_equal(true.edges(), GRAPH.edges())
    assert true.to_graph() == GRAPH
    assert (true.to_scipy() != GRAPH.to_scipy()).nnz == 0
    assert hash(true) == hash(topology().truth(GRAPH))
    assert true != "graph"


def test_the_law_of_all_releases_of_all_graphs_on_three_and_four_nodes():
    """One bit per pair: neighbours differ in one bit, so the worst ratio is exactly epsilon."""
    flip = flip_probability(1)
    for nodes in (3, 4):
        size = comb(nodes, 2)
        wrong = np.array([bin(k).count("1") for k in range(2**size)])
        logs = wrong * np.log(flip) + (size - wrong) * np.log1p(-flip)
        weights = 1 << np.arange(size)
        worst = 0.0
        for graph in all_graphs(nodes):
            here = int(topology().truth(graph).bits() @ weights)
            for neighbour in graph.neighbours("edge"):
                there = int(topology().truth(neighbour).bits() @ weights)
                places = np.arange(2**size)
                worst = max(worst, float((logs[places ^ here] - logs[places ^ there]).max()))
        assert worst == pytest.approx(1.0, rel=1e-12)


def test_real_runs_have_that_law():
    path = tulle.Graph.from_edges([(0, 1), (1, 2)], nodes=3)
    runs = 6000
    seen = Counter(
        tuple(tulle.release(path, topology(), unit="edge", epsilon=1).value.bits().tolist())
        for _ in range(runs)
    )
    flip = flip_probability(1)
    truth = topology().truth(path).bits()
    observed, expected = [], []
    for k in range(8):
        bits = tuple(k >> i & 1 for i in range(3))
        wrong = int((np.array(bits) != truth).sum())
        observed.append(seen[bits])
        expected.append(runs * flip**wrong * (1 - flip) ** (3 - wrong))
    assert stats.chisquare(observed, expected).pvalue > 1e-6


def test_pieces_fit_together(monkeypatch):
    from tulle.graphs.topology import response

    monkeypatch.setattr(response, "_CHUNK", 64)
    r = tulle.release(GRAPH, topology(), unit="edge", epsilon=60)
    assert r.value.to_graph() == GRAPH


def test_json_and_ledger(tmp_path):
    r = tulle.release(GRAPH, topology(), unit="edge", epsilon=1)
    back = tulle.Release.from_json(json.dumps(r.to_json()))
    assert back.value == r.value
    assert estimate_edges(back) == estimate_edges(r)
    broken = TopologyCodec.encode(r.value) | {"nodes": 70}
    with pytest.raises(InputError, match="one bit"):
        TopologyCodec.decode(broken)
    study = tulle.Ledger(tmp_path / "a.ledger").open("g", GRAPH, unit="edge", epsilon=1)
    assert study.ask(topology(), epsilon=1).value == study.ask(topology(), epsilon=1).value
    assert "topology" in repr(study.ask(topology(), epsilon=1))


def test_plan_and_refusals():
    plan = plan_for(GRAPH, topology(), unit="edge", epsilon=1)
    assert plan.mechanism == "response"
    assert plan.chosen.prediction.mean_error == pytest.approx(0.2689, abs=1e-4)
    with pytest.raises(QueryError, match="per edge"):
        tulle.release(GRAPH, topology(), unit="node", epsilon=1)
    with pytest.raises(QueryError, match="at least two"):
        tulle.release(tulle.Graph.from_edges([], nodes=1), topology(), unit="edge", epsilon=1)
    huge = tulle.Graph.from_edges([(0, 1)], nodes=200_000)
    with pytest.raises(QueryError, match="pairs"):
        tulle.release(huge, topology(), unit="edge", epsilon=1)
    r = tulle.release(GRAPH, tulle.edges(), unit="edge", epsilon=1)
    with pytest.raises(InputError, match="topology"):
        estimate_edges(r)


def test_the_limit_is_attained():
    for epsilon in (0.1, 1, 5):
        found = limit(tulle.release(GRAPH, topology(), unit="edge", epsilon=epsilon))
        assert found.possible
        assert found.ones == pytest.approx(1, abs=0.01)
        assert found.zeros == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("epsilon", [1, 3])
def test_estimates_are_unbiased_and_their_errors_true(epsilon):
    runs = 300
    degrees = np.bincount(GRAPH.edges().ravel(), minlength=60)
    exact = {
        "edges": GRAPH.edge_count,
        "density": GRAPH.edge_count / comb(60, 2),
        "triangles": tulle.triangles().truth(GRAPH),
    }
    found = {name: [] for name in exact}
    errors = {name: [] for name in exact}
    off_degrees = []
    for _ in range(runs):
        r = tulle.release(GRAPH, topology(), unit="edge", epsilon=epsilon)
        for name, function in (
            ("edges", estimate_edges),
            ("density", estimate_density),
            ("triangles", estimate_triangles),
        ):
            estimate = function(r)
            found[name].append(estimate.value - exact[name])
            errors[name].append(estimate.error)
        by_node = estimate_degrees(r)
        off_degrees.append((by_node.value - degrees) / by_node.error)
    for name, off in found.items():
        assert abs(np.mean(off)) < 5 * np.std(off) / np.sqrt(runs), name
        stated = np.sqrt(np.mean(np.square(errors[name])))
        assert np.std(off) == pytest.approx(stated, rel=0.25), name
        covered = np.mean(np.abs(off) <= 1.645 * np.array(errors[name]))
        assert covered > 0.82, name
    assert np.std(off_degrees) == pytest.approx(1, abs=0.05)
    assert abs(np.mean(off_degrees)) < 0.05


def test_the_variance_of_triangles_by_its_formula():
    """With true numbers in place of estimates, against simulation on a dense little graph."""
    nodes, epsilon = 8, 2
    graph = tulle.Graph.from_edges(
        [(u, v) for u in range(8) for v in range(u + 1, 8) if (u * v) % 3 != 1], nodes=nodes
    )
    flip = flip_probability(epsilon)
    spread = flip * (1 - flip) / (1 - 2 * flip) ** 2
    adjacency = graph.to_scipy().toarray()
    common = (adjacency @ adjacency)[np.triu_indices(nodes, 1)]
    variance = (
        spread * (common**2).sum()
        + spread**2 * (nodes - 2) * graph.edge_count
        + spread**3 * comb(nodes, 3)
    )
    values = [
        estimate_triangles(tulle.release(graph, topology(), unit="edge", epsilon=epsilon)).value
        for _ in range(2000)
    ]
    assert np.var(values) == pytest.approx(variance, rel=0.15)
    assert np.mean(values) == pytest.approx(
        tulle.triangles().truth(graph), abs=5 * np.sqrt(variance / 2000)
    )


def test_tiny_graphs():
    two = tulle.Graph.from_edges([(0, 1)], nodes=2)
    r = tulle.release(two, topology(), unit="edge", epsilon=50)
    assert estimate_triangles(r).value == 0
    assert r.value.edges().tolist() == [[0, 1]]
    assert Response().settings(
        tulle.core.mechanism.Terms(
            topology(), tulle.Unit.of("edge"), Fraction(1), Fraction(0), {"nodes": 2}
        ),
        {},
    )["keep"] == pytest.approx(0.731, abs=1e-3)


def test_xor_asked_of_a_graph_is_its_topology():
    graph = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3)], nodes=6)
    r = tulle.release(graph, tulle.xor(), unit="edge", epsilon=60.0)
    assert r.mechanism == "response"
    assert r.value == tulle.topology().truth(graph)
    asked = [
        tulle.release(graph, query, unit="edge", epsilon=1.0, source=SeededSource(4)).value
        for query in (tulle.xor(), tulle.topology())
    ]
    assert asked[0] == asked[1]
    reached = limit(tulle.release(graph, tulle.xor(), unit="edge", epsilon=1.0))
    assert abs(reached.ones - 1) < 0.01
    assert abs(reached.zeros - 1) < 0.01
    with pytest.raises(QueryError, match=r"tulle\.xor\(\)"):
        tulle.release(graph, tulle.xor("general", pi=[[-1]]), unit="edge", epsilon=1.0)
    with pytest.raises(QueryError, match="per node"):
        tulle.release(graph, tulle.xor(), unit="node", epsilon=1.0)


def test_a_ledger_knows_that_both_are_one_question(tmp_path):
    graph = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3)], nodes=6)
    study = tulle.Ledger(tmp_path / "study.ledger").open("g", graph, unit="edge", epsilon=1)
    assert study.ask(tulle.xor(), epsilon=1).value == study.ask(tulle.topology(), epsilon=1).value
