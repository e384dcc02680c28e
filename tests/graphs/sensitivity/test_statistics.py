"""What one edge does to each statistic, on all small graphs, edges added and removed."""

from __future__ import annotations

from itertools import combinations

import networkx
import numpy as np
import pytest

from tulle.audit.engine.kind import kind_of
from tulle.graphs.data import Graph
from tulle.graphs.generators import barabasi_albert, erdos_renyi, social_network
from tulle.graphs.kernels.local_counts import FINE, closing_weight
from tulle.graphs.queries.local_counts import (
    chains,
    triangles_at,
    triangles_per_node,
    triples_per_node,
)
from tulle.graphs.queries.partitions import degree_squares
from tulle.graphs.queries.statistics import (
    Modularity,
    assortativity,
    average_clustering,
    clustering,
    modularity,
    transitivity,
)
from tulle.graphs.sensitivity.statistics import CLOSING_GROWTH

WORLD = kind_of("graph").world
LENGTH = 14
COUNTS = [chains(), triangles_at(0), triangles_at(1), degree_squares([0, 1]), degree_squares()]


def questions(size):
    return [
        transitivity(),
        average_clustering(),
        clustering(0),
        assortativity(),
        modularity([0] * (size // 2) + [1] * (size - size // 2)),
        modularity(list(range(size))),
    ]


@pytest.mark.parametrize("units", [2**40, 2**40 + 7, 24])
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_profiles_of_statistics_on_all_graphs(size, units):
    world = WORLD(size)
    for query in questions(size):
        values = [query.position(graph, units) for graph in world.datasets]
        rows = [query.profile(graph, units, LENGTH) for graph in world.datasets]
        largest = query.cap(units)
        for a, b in zip(world.first.tolist(), world.second.tolist(), strict=True):
            assert abs(values[a] - values[b]) <= rows[a][0], (query, a, b)
            shifted = [*rows[a][1:], largest]
            assert all(theirs <= ours for theirs, ours in zip(rows[b], shifted, strict=True))
        assert all(sorted(row) == row for row in rows)


def neighbours_of(graph):
    """Yield all graphs with one edge more or less."""
    nodes = graph.node_count
    edges = {tuple(sorted(map(int, edge))) for edge in graph.edges()}
    for pair in combinations(range(nodes), 2):
        yield Graph.from_edges(sorted(edges ^ {pair}), nodes=nodes)


@pytest.mark.parametrize("nodes", [6, 7, 9])
def test_the_profile_of_a_node_on_larger_graphs(nodes):
    """Degrees above two, where the coefficient and common neighbours bound it more closely."""
    generator = np.random.default_rng(nodes)
    units, query, closer, needed = 2**30 + 3, clustering(0), 0, 0
    pairs = np.array(list(combinations(range(nodes), 2)))
    for turn in range(60):
        # Node 0 has most others as neighbours, which know each other rarely or often; where
        # rarely, the last one may know all of them.
        known = turn % 2
        dense = generator.random() * (0.1 if known else 1)
        chances = np.where(pairs[:, 0] == 0, 0.8, dense)
        if known:
            chances[pairs[:, 1] == nodes - 1] = 0.9
        edges = pairs[generator.random(len(pairs)) < chances]
        graph = Graph.from_edges(edges, nodes=nodes)
        row = query.profile(graph, units, LENGTH)
        degree = int((edges == 0).sum())
        closer += row[0] < 2 * units / max(degree, 2)
        share = query.position(graph, units) / units
        forgetful = 2 * units * max(share / max(degree - 2, 1), 1 / (degree * (degree - 1)))
        for other in neighbours_of(graph):
            moved = abs(query.position(graph, units) - query.position(other, units))
            assert moved <= row[0]
            needed += moved > forgetful + 1
            shifted = [*row[1:], units]
            theirs = query.profile(other, units, LENGTH)
            assert all(t <= o for t, o in zip(theirs, shifted, strict=True))
    assert closer > 5
    # A bound that forgets common neighbours would be too low.
    assert needed > 5


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("query", COUNTS, ids=str)
def test_profiles_of_counts_on_all_graphs(query, size):
    world = WORLD(size)
    values = [query.truth(graph) for graph in world.datasets]
    rows = [query.measure(graph, LENGTH).profile for graph in world.datasets]
    spreads = [query.measure(graph, 1).spread for graph in world.datasets]
    for a, b in zip(world.first.tolist(), world.second.tolist(), strict=True):
        assert abs(values[a] - values[b]) <= rows[a][0]
        shifted = [*rows[a][1:], query.cap(size)]
        assert all(theirs <= ours for theirs, ours in zip(rows[b], shifted, strict=True))
        assert abs(spreads[a] - spreads[b]) <= 1


@pytest.mark.parametrize("size", [3, 4, 5])
def test_local_sensitivities_of_the_vectors(size):
    """The closing weight bounds the whole vector of coefficients; common neighbours bound N_Δ."""
    world = WORLD(size)
    vectors = [clustering().truth(graph) for graph in world.datasets]
    corners = [triangles_per_node().truth(graph) for graph in world.datasets]
    weights = [closing_weight(graph) for graph in world.datasets]
    shared = [triangles_per_node_bound().measure(g, 1).spread for g in world.datasets]
    worst = 0.0
    for a, b in zip(world.first.tolist(), world.second.tolist(), strict=True):
        moved = float(np.abs(vectors[a] - vectors[b]).sum())
        worst = max(worst, moved)
        assert moved <= weights[a] / FINE + 1e-9
        assert abs(weights[a] - weights[b]) <= CLOSING_GROWTH
        assert np.abs(corners[a] - corners[b]).sum() <= 3 * min(shared[a], shared[b])
    # The global sensitivity is n - 2 + 4/(n - 1), not n - 1 as printed.
    assert worst == pytest.approx(size - 2 + 4 / (size - 1))


def triangles_per_node_bound():
    from tulle.graphs.queries.counts import triangles

    return triangles()


@pytest.mark.parametrize(
    "graph",
    [social_network(200, seed=3), erdos_renyi(80, 0.2, seed=4), barabasi_albert(150, 4, seed=5)],
    ids=["social", "random", "preferential"],
)
def test_truths_agree_with_networkx(graph):
    peer = graph.to_networkx()
    assert transitivity().truth(graph) == pytest.approx(networkx.transitivity(peer), abs=1e-12)
    assert average_clustering().truth(graph) == pytest.approx(networkx.average_clustering(peer))
    order = sorted(peer)
    expected = networkx.clustering(peer)
    assert clustering().truth(graph) == pytest.approx([expected[node] for node in order])
    assert clustering(7).truth(graph) == pytest.approx(expected[7])
    found = assortativity().truth(graph)
    assert found == pytest.approx(networkx.degree_assortativity_coefficient(peer), abs=1e-9)
    labels = [node % 3 for node in order]
    parts = [{node for node in order if node % 3 == part} for part in range(3)]
    found = modularity(labels).truth(graph)
    assert found == pytest.approx(networkx.community.modularity(peer, parts), abs=1e-12)
    corners = networkx.triangles(peer)
    assert triangles_per_node().truth(graph).tolist() == [corners[node] for node in order]
    assert triangles_at(7).truth(graph) == corners[7]
    assert chains().truth(graph) == sum(
        (peer.degree(u) - 1) * (peer.degree(v) - 1) for u, v in peer.edges
    )
    assert triples_per_node().truth(graph).sum() == sum(d * (d - 1) // 2 for _, d in peer.degree())


@pytest.mark.parametrize(
    "query", [transitivity(), clustering(3), assortativity(), modularity("abc")], ids=str
)
def test_a_decomposition_has_the_same_truth(query):
    for graph in (social_network(120, seed=9), erdos_renyi(60, 0.3, seed=2)):
        assert query.decomposition().truth(graph) == pytest.approx(query.truth(graph), abs=1e-12)


@pytest.mark.parametrize("edges", [[], [(0, 1)]])
@pytest.mark.parametrize("nodes", [2, 3])
def test_truths_of_almost_nothing(nodes, edges):
    graph = Graph.from_edges(np.array(edges, dtype=np.int64).reshape(-1, 2), nodes=nodes)
    for query in (transitivity(), average_clustering(), clustering(1), assortativity()):
        assert query.truth(graph) == 0.0
    assert clustering().truth(graph).tolist() == [0.0] * nodes
    assert isinstance(modularity([0] * nodes), Modularity)
    assert modularity([0] * nodes).truth(graph) == 0.0
