import time

import networkx as nx
import numpy as np
import pytest

from tulle.core.errors import InputError
from tulle.graphs.generators import barabasi_albert, erdos_renyi, social_network, watts_strogatz
from tulle.graphs.kernels.counts import count_stars, count_triangles, degrees

MAKERS = {
    "social": lambda seed: social_network(400, seed=seed),
    "erdos": lambda seed: erdos_renyi(400, 0.05, seed=seed),
    "watts": lambda seed: watts_strogatz(400, 8, 0.2, seed=seed),
    "barabasi": lambda seed: barabasi_albert(400, 4, seed=seed),
}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_same_seed_same_graph(maker):
    assert maker(3) == maker(3)
    assert maker(3) != maker(4)
    assert maker(3).node_count == 400


@pytest.mark.parametrize("nodes", [1000, 4000])
def test_social_network_looks_like_one(nodes):
    start = time.process_time()
    graph = social_network(nodes, seed=7)
    assert time.process_time() - start < 1
    degree = degrees(graph)
    assert 12 < degree.mean() < 20
    assert degree.max() > 4 * degree.mean()
    assert 3 * count_triangles(graph) / count_stars(graph, 2) > 0.15
    assert nx.is_connected(graph.to_networkx())


@pytest.mark.parametrize("wanted", [8, 16, 40])
def test_social_network_has_about_the_degree_asked_for(wanted):
    graph = social_network(3000, mean_degree=wanted, seed=1)
    assert degrees(graph).mean() == pytest.approx(wanted, rel=0.25)


def test_social_network_has_communities():
    graph = social_network(1500, communities=10, seed=2)
    found = nx.community.louvain_communities(graph.to_networkx(), seed=1)
    assert nx.community.modularity(graph.to_networkx(), found) > 0.4


@pytest.mark.parametrize("nodes", [2, 3, 10, 30])
def test_social_network_of_few(nodes):
    assert social_network(nodes, mean_degree=1, seed=1).node_count == nodes


def test_erdos_renyi_has_about_the_edges_asked_for():
    for nodes, chance in [(500, 0.5), (500, 0.02), (3000, 0.001)]:
        edges = erdos_renyi(nodes, chance, seed=5).edge_count
        pairs = nodes * (nodes - 1) / 2
        assert abs(edges - pairs * chance) < 5 * np.sqrt(pairs * chance)
    assert erdos_renyi(200, 0.0, seed=1).edge_count == 0
    assert erdos_renyi(200, 1.0, seed=1).edge_count == 19900
    for nodes in (0, 1, 2):
        assert erdos_renyi(nodes, 1.0, seed=1).node_count == nodes


def test_every_pair_of_erdos_renyi_is_as_likely():
    counts = np.zeros((7, 7))
    for seed in range(600):
        edges = erdos_renyi(7, 0.3, seed=seed).edges()
        counts[edges[:, 0], edges[:, 1]] += 1
    share = counts[np.triu_indices(7, 1)] / 600
    assert np.all(np.abs(share - 0.3) < 5 * np.sqrt(0.3 * 0.7 / 600))


def test_barabasi_albert_grows_hubs():
    graph = barabasi_albert(3000, 4, seed=1)
    assert degrees(graph).max() > 60
    assert 0.9 * 4 * 3000 < graph.edge_count <= 4 * 3000


def test_watts_strogatz_is_a_ring_without_rewiring():
    ring = watts_strogatz(20, 4, 0.0, seed=1)
    assert degrees(ring).tolist() == [4] * 20
    assert count_triangles(ring) == 20


@pytest.mark.parametrize(
    "call",
    [
        lambda: social_network(0, seed=1),
        lambda: social_network(10, mean_degree=50, seed=1),
        lambda: social_network(10, communities=0, seed=1),
        lambda: erdos_renyi(10, 1.5, seed=1),
        lambda: erdos_renyi(10, -0.1, seed=1),
        lambda: erdos_renyi(10, 0.5, seed=-1),
        lambda: watts_strogatz(4, 6, 0.1, seed=1),
        lambda: watts_strogatz(9, 4, 2, seed=1),
        lambda: barabasi_albert(4, 4, seed=1),
    ],
)
def test_wrong_parameters_are_refused(call):
    with pytest.raises(InputError):
        call()
