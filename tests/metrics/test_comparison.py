"""Metrics against networkx and igraph, and by hand."""

import json
import math
from itertools import permutations

import networkx as nx
import numpy as np
import pytest

import tulle
from tulle import metrics
from tulle.core.errors import InputError
from tulle.graphs.data import Graph
from tulle.graphs.generators import barabasi_albert, erdos_renyi, social_network, watts_strogatz
from tulle.metrics import distances as distances_module

GRAPHS = {
    "social": social_network(200, seed=3),
    "sparse": erdos_renyi(150, 0.012, seed=4),
    "ring": watts_strogatz(90, 4, 0.0, seed=1),
    "hubs": barabasi_albert(120, 2, seed=2),
    "cliques": Graph.from_edges(
        [(i, j) for b in (0, 6, 12) for i in range(b, b + 6) for j in range(b, i)], nodes=20
    ),
}


@pytest.fixture(params=GRAPHS)
def graph(request):
    return GRAPHS[request.param]


def lengths_of(graph):
    found = dict(nx.all_pairs_shortest_path_length(graph.to_networkx()))
    return [d for row in found.values() for d in row.values() if d]


def test_distances_are_those_of_networkx(graph):
    found = metrics.measure_distances(graph)
    expected = np.bincount(lengths_of(graph))[1:]
    assert found.counts.tolist() == expected.tolist()
    assert found.diameter == len(expected)
    assert found.mean == pytest.approx(np.mean(lengths_of(graph)))


def test_a_sample_of_sources_finds_the_true_diameter(graph):
    found = metrics.measure_distances(graph, sources=5)
    assert found.sources == 5
    assert found.diameter == max(lengths_of(graph))
    assert found.diameter_known
    assert found.counts.sum() <= 5 * graph.node_count


def test_a_diameter_that_would_take_too_long_is_a_lower_bound(monkeypatch):
    monkeypatch.setattr(distances_module, "MOST_SEARCHES", 1)
    found = metrics.measure_distances(GRAPHS["ring"], sources=1)
    assert found.diameter <= max(lengths_of(GRAPHS["ring"]))
    assert not metrics.measure_distances(GRAPHS["social"], sources=1).diameter_known


def test_betweenness_is_that_of_networkx(graph):
    expected = nx.betweenness_centrality(graph.to_networkx())
    found = metrics.betweenness(graph)
    assert found == pytest.approx(np.array([expected[v] for v in range(graph.node_count)]))


def test_sampled_betweenness_is_near():
    graph = GRAPHS["social"]
    exact, sampled = metrics.betweenness(graph), metrics.betweenness(graph, sources=150)
    assert np.corrcoef(exact, sampled)[0, 1] > 0.9
    assert sampled.sum() == pytest.approx(exact.sum(), rel=0.2)


def test_a_portrait_is_what_networkx_sees(graph):
    seen, other = metrics.Portrait.of(graph), graph.to_networkx()
    assert seen.triangles == sum(nx.triangles(other).values()) // 3
    assert seen.transitivity == pytest.approx(nx.transitivity(other))
    assert seen.average_clustering == pytest.approx(nx.average_clustering(other))
    assert seen.density == pytest.approx(nx.density(other))
    assert seen.mean_degree == pytest.approx(np.mean([d for _, d in other.degree]))
    assert seen.degree_variance == pytest.approx(np.var([d for _, d in other.degree]))
    values = np.linalg.eigvalsh(nx.to_numpy_array(other))
    assert seen.largest_eigenvalue == pytest.approx(values[-1])
    assert np.linalg.norm(seen.centrality) == pytest.approx(1)
    if np.ptp(seen.degree[seen.degree > 0]):
        expected = nx.degree_pearson_correlation_coefficient(other)
        assert seen.assortativity == pytest.approx(expected)
    else:
        assert seen.assortativity == 0
    parts = [set(np.flatnonzero(seen.communities == c).tolist()) for c in set(seen.communities)]
    assert seen.modularity == pytest.approx(nx.community.modularity(other, parts))
    assert repr(seen) == "<Portrait: sealed>"


def test_eigenvector_centrality_is_that_of_networkx():
    graph = GRAPHS["social"]
    expected = nx.eigenvector_centrality_numpy(graph.to_networkx())
    found = metrics.Portrait.of(graph).centrality
    assert found == pytest.approx(np.array([expected[v] for v in range(200)]), abs=1e-6)


def test_larger_spectra_are_those_of_the_whole_matrix():
    graph = social_network(500, seed=8)
    values = np.linalg.eigvalsh(graph.to_scipy().toarray())[::-1][:50]
    assert metrics.Portrait.of(graph).spectrum == pytest.approx(values)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_louvain_is_as_good_as_that_of_igraph(seed):
    graph = social_network(1500, seed=seed)
    found = metrics.modularity(graph, metrics.louvain(graph, seed=seed))
    other = graph.to_igraph()
    assert found >= other.modularity(other.community_multilevel()) - 0.01


def test_louvain_finds_what_is_planted():
    graph = GRAPHS["cliques"]
    found = metrics.louvain(graph)
    assert metrics.mutual_information(found[:18], np.arange(18) // 6) == pytest.approx(1)
    assert len(set(found[18:])) == 2
    assert np.array_equal(found, metrics.louvain(graph))


def test_mutual_information_by_hand():
    one, other = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert metrics.mutual_information(one, other) == pytest.approx(0)
    third = np.array([0, 0, 0, 1])
    shared = (
        0.5 * math.log(0.5 / 0.375) + 0.25 * math.log(0.25 / 0.375) + 0.25 * math.log(0.25 / 0.125)
    )
    entropy = math.log(2) - 0.75 * math.log(0.75) - 0.25 * math.log(0.25)
    assert metrics.mutual_information(one, third) == pytest.approx(2 * shared / entropy)
    assert metrics.mutual_information(np.zeros(3, int), np.zeros(3, int)) == 1
    with pytest.raises(InputError, match="same nodes"):
        metrics.mutual_information(one, one[:3])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([0, 0, 1, 1, 2], [0, 1, 1, 0, 1]),
        ([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]),
        ([0, 0, 0, 1, 2, 3], [0, 0, 0, 0, 0, 1]),
        ([0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 1, 1]),
        ([0, 0, 0, 0], [0, 1, 1, 2]),
    ],
)
def test_chance_is_what_dealing_the_labels_at_random_gives(one, other):
    """Against the mean over all ways to deal them."""
    one, other = np.array(one), np.array(other)
    dealt = [metrics.mutual_information(one, np.array(way)) for way in permutations(other.tolist())]
    plain, chance = metrics.mutual_information(one, other), np.mean(dealt)
    expected = (plain - chance) / (1 - chance)
    assert metrics.information_beyond_chance(one, other) == pytest.approx(expected)
    assert metrics.information_beyond_chance(other, one) == pytest.approx(expected)


def test_very_many_communities_agree_with_anything_by_chance():
    random = np.random.default_rng(1)
    truth, made = random.integers(0, 30, 3000), random.integers(0, 1500, 3000)
    assert metrics.mutual_information(truth, made) > 0.3
    assert metrics.information_beyond_chance(truth, made) == pytest.approx(0, abs=0.01)
    half = np.where(random.random(3000) < 0.5, truth, made + 30)
    assert metrics.information_beyond_chance(truth, half) > 0.2
    assert metrics.information_beyond_chance(truth, truth) == pytest.approx(1)
    for same in (np.zeros(5, int), np.arange(5), np.zeros(0, int)):
        assert metrics.information_beyond_chance(same, same) == 1
    with pytest.raises(InputError, match="same nodes"):
        metrics.information_beyond_chance(truth, made[:3])


def test_average_f1_by_hand():
    assert metrics.average_f1([[0, 1, 2]], [[0, 1], [2, 3]]) == pytest.approx((0.8 + 0.6) / 2)
    assert metrics.average_f1([], []) == 1
    assert metrics.average_f1([], [[1, 2]]) == 0
    assert metrics.average_f1([[0, 1], [1, 2]], [[1, 2], [0, 1]]) == 1


def test_scores_by_hand():
    assert metrics.divergence(np.array([1.0, 1]), np.array([2.0])) == pytest.approx(
        0.5 * math.log(0.5) + 0.5 * math.log(0.5 / 2.220446e-16), rel=1e-6
    )
    assert metrics.divergence(np.array([2, 2]), np.array([1, 1, 0])) == 0
    assert metrics.relative_error(-2, 1) == 1.5
    assert metrics.top_error(np.arange(200.0), np.arange(200.0) + 3) == 3
    assert metrics.top_error(np.array([]), np.array([])) == 0


def test_a_graph_compared_with_itself_is_perfect(graph):
    found = tulle.compare(graph, graph)
    for row in found.rows:
        assert row.score == pytest.approx(1 if row.higher_is_better else 0)
    assert set(metrics.PGB) <= set(found.scores())


def test_the_comparison_speaks(tmp_path):
    truth, made = GRAPHS["social"], erdos_renyi(200, 0.08, seed=1)
    found = tulle.compare(metrics.Portrait.of(truth), made, communities=[[0, 1, 2], [3, 4]])
    read = json.loads(json.dumps(found.to_json()))
    assert len(read["rows"]) == 20
    assert "average clustering" in str(found)
    assert "<table>" in found._repr_html_()
    assert found["triangles"] > 0.3
    with pytest.raises(InputError, match="was not compared"):
        found["colour"]
    found.figure(tmp_path / "c.png", title="made up")
    assert (tmp_path / "c.png").stat().st_size > 20_000
    with pytest.raises(InputError, match="graphs are compared"):
        tulle.compare(truth, "nothing")


@pytest.mark.parametrize("nodes", [0, 1, 2, 3])
@pytest.mark.parametrize("edges", [0, 1])
def test_tiny_graphs_are_compared(nodes, edges, tmp_path):
    if edges and nodes < 2:
        return
    tiny = Graph.from_edges([(0, 1)][:edges], nodes=nodes)
    found = tulle.compare(tiny, tiny)
    assert all(row.score == pytest.approx(round(row.score)) for row in found.rows)
    tulle.compare(tiny, GRAPHS["hubs"]).figure(tmp_path / "c.png")
    assert json.dumps(tulle.compare(tiny, GRAPHS["hubs"]).to_json(), allow_nan=False)
