import pytest
from hypothesis import given, settings
from tests.graphs.slow_reference import SlowGraph, graphs

import tulle.core.compiled as compiled_module
from tulle.graphs.data import Graph
from tulle.graphs.generators import all_graphs, erdos_renyi
from tulle.graphs.kernels.cliques import count_cliques
from tulle.graphs.kernels.counts import (
    count_k_triangles,
    count_stars,
    count_triangles,
    degrees,
    edge_triangles,
    triangles_per_node,
)

ONE_ANSWER = {
    "facebook_combined/facebook_combined.edges.txt": (4039, 88234, 1612010),
    "email-Eu-core/email-Eu-core.edges.txt": (1005, 16064, 105461),
    "ca-HepPh/ca-HepPh.edges.txt.gz": (12008, 118489, 3358499),
    "polblogs/polblogs.edges.txt": (1490, 16715, 101043),
    "ego-Twitter/ego-Twitter.edges.txt.gz": (81306, 1342296, 13082506),
}


@pytest.fixture
def many_threads(monkeypatch):
    """Split even tiny work over three threads."""
    monkeypatch.setenv("TULLE_THREADS", "3")
    monkeypatch.setattr(compiled_module, "_SMALL_WORK", 0)


def check_against_definitions(graph):
    slow = SlowGraph(graph)
    assert degrees(graph).tolist() == [len(slow.near[node]) for node in slow.nodes]
    assert count_triangles(graph) == slow.cliques(3)
    assert triangles_per_node(graph).tolist() == [slow.triangles_at(node) for node in slow.nodes]
    assert edge_triangles(graph).tolist() == [
        len(slow.near[u] & slow.near[v]) for u, v in sorted(slow.edges)
    ]
    for k in range(1, 5):
        assert count_stars(graph, k) == slow.stars(k)
        assert count_k_triangles(graph, k) == slow.k_triangles(k)
    for k in range(1, 7):
        assert count_cliques(graph, k) == slow.cliques(k)


@pytest.mark.parametrize("nodes", range(6))
def test_counts_on_all_small_graphs(nodes):
    for graph in all_graphs(nodes):
        check_against_definitions(graph)


@given(graphs())
@settings(deadline=None, max_examples=60)
def test_counts_on_random_graphs(graph):
    check_against_definitions(graph)


def test_counts_in_threads(many_threads):
    for seed in range(5):
        check_against_definitions(erdos_renyi(17, 0.6, seed=seed))


def test_counts_pass_the_range_of_machine_integers():
    from math import comb

    star = Graph.from_edges([(0, leaf) for leaf in range(1, 301)])
    assert count_stars(star, 40) == comb(300, 40) > 2**63
    joined = [(0, 1)] + [(side, node) for side in (0, 1) for node in range(2, 302)]
    assert count_k_triangles(Graph.from_edges(joined), 40) == comb(300, 40)


@pytest.mark.parametrize("name", ONE_ANSWER)
def test_counts_on_real_graphs(name, data_folder):
    nodes, edges, triangles = ONE_ANSWER[name]
    graph = Graph.read(data_folder / name, nodes=nodes)
    assert (graph.node_count, graph.edge_count) == (nodes, edges)
    assert count_triangles(graph) == triangles
    assert int(triangles_per_node(graph).sum()) == 3 * triangles
    assert count_k_triangles(graph, 1) == 3 * triangles
