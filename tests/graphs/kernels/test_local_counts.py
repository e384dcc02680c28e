from itertools import combinations
from math import comb

import pytest
from hypothesis import given, settings
from tests.graphs.slow_reference import SlowGraph, graphs

import tulle.core.compiled as compiled_module
import tulle.graphs.kernels.cliques as cliques_module
import tulle.graphs.kernels.local_counts as bounds_module
from tulle.core.errors import InputError
from tulle.graphs.data import Graph
from tulle.graphs.generators import all_graphs, erdos_renyi, social_network
from tulle.graphs.kernels.cliques import clique_local_sensitivity
from tulle.graphs.kernels.counts import choose_sum, degrees, pair_front, star_front
from tulle.graphs.kernels.local_counts import k_triangle_local_sensitivity


@pytest.fixture
def many_threads(monkeypatch):
    """Split even tiny work over three threads."""
    monkeypatch.setenv("TULLE_THREADS", "3")
    monkeypatch.setattr(compiled_module, "_SMALL_WORK", 0)


def check_against_definitions(graph, largest=6):
    slow = SlowGraph(graph)
    assert pair_front(graph).tolist() == slow.pair_front()
    assert [tuple(row) for row in star_front(graph).tolist()] == slow.star_front()
    for k in range(1, largest):
        change = slow.largest_change(lambda other, k=k: other.cliques(k))
        assert clique_local_sensitivity(graph, k) == change
        change = slow.largest_change(lambda other, k=k: other.k_triangles(k))
        assert k_triangle_local_sensitivity(graph, k) == change


@pytest.mark.parametrize("nodes", range(6))
def test_bounds_on_all_small_graphs_and_all_toggles(nodes):
    for graph in all_graphs(nodes):
        check_against_definitions(graph)


@given(graphs(largest=9))
@settings(deadline=None, max_examples=30)
def test_bounds_on_random_graphs(graph):
    check_against_definitions(graph)


def test_bounds_in_threads(many_threads):
    for seed in range(4):
        check_against_definitions(erdos_renyi(9, 0.6, seed=seed))


@pytest.mark.parametrize("held", [1, 3, 20])
def test_bands_of_pairs_do_not_change_the_answer(held, monkeypatch):
    whole = [clique_local_sensitivity(erdos_renyi(40, 0.4, seed=seed), 4) for seed in range(3)]
    monkeypatch.setattr(cliques_module, "_PAIRS_AT_ONCE", held)
    banded = [clique_local_sensitivity(erdos_renyi(40, 0.4, seed=seed), 4) for seed in range(3)]
    assert banded == whole


@pytest.mark.parametrize("clique", [7, 8])
def test_the_best_pair_may_have_a_smaller_bound_than_others(clique, monkeypatch):
    # Two hubs share twelve neighbours with six edges among them; each has forty more triangles.
    edges = [(hub, node) for hub in (0, 1) for node in range(2, 14)]
    edges += [(node, node + 1) for node in range(2, 14, 2)]
    for hub in (0, 1):
        ends = range(100 * (hub + 1), 100 * (hub + 1) + 80)
        edges += [(hub, end) for end in ends] + [(end, end + 1) for end in ends[::2]]
    edges += combinations(range(300, 300 + clique), 2)
    monkeypatch.setattr(cliques_module, "_PAIRS_AT_ONCE", 1)
    assert clique_local_sensitivity(Graph.from_edges(edges), 4) == comb(clique - 2, 2)


@pytest.mark.parametrize("k", [4, 5, 6])
def test_clique_sensitivity_on_a_network(k):
    graph = social_network(150, seed=4)
    slow = SlowGraph(graph)

    def cliques_in(nodes, size):
        if size == 1:
            return len(nodes)
        return sum(
            cliques_in({v for v in nodes if v < u and v in slow.near[u]}, size - 1) for u in nodes
        )

    expected = max(cliques_in(slow.near[u] & slow.near[v], k - 2) for u, v in slow.pairs)
    assert clique_local_sensitivity(graph, k) == expected


def test_star_front_gives_the_star_sensitivity():
    for seed in range(10):
        graph = erdos_renyi(12, 0.4, seed=seed)
        slow = SlowGraph(graph)
        for k in (1, 2, 3):
            change = max(
                comb(one, k - 1) + comb(two, k - 1) for one, two in star_front(graph).tolist()
            )
            assert change == slow.largest_change(lambda other, k=k: other.stars(k))


@pytest.mark.parametrize("k", [2, 9, 20, 40, 60, 99])
def test_k_triangle_sensitivity_is_exact_past_machine_integers(k):
    nodes = 100
    complete = erdos_renyi(nodes, 1.0, seed=0)
    shared = nodes - 2
    # All pairs are alike: parting one takes its own k-triangles and lowers 2 * shared others.
    expected = comb(shared, k) + 2 * shared * comb(shared - 1, k - 1)
    assert k_triangle_local_sensitivity(complete, k) == expected
    # Without one edge, joining it again changes as much.
    missing = Graph.from_edges(complete.edges()[1:], nodes=nodes)
    assert k_triangle_local_sensitivity(missing, k) == expected


@pytest.mark.parametrize("width", [2, 5])
def test_narrow_limbs_give_the_same_sensitivity(width, monkeypatch):
    made = [erdos_renyi(30, chance, seed=7) for chance in (0.3, 0.5, 0.7, 0.9)]
    whole = [k_triangle_local_sensitivity(graph, k) for graph in made for k in (1, 2, 3, 5)]
    monkeypatch.setattr(bounds_module, "_ONE_LIMB", 0)
    monkeypatch.setattr(bounds_module, "_LIMB_WIDTH", width)
    cut = [k_triangle_local_sensitivity(graph, k) for graph in made for k in (1, 2, 3, 5)]
    assert cut == whole


@pytest.mark.parametrize("k", [12, 25])
def test_k_triangle_sensitivity_in_limbs_on_an_irregular_graph(k):
    graph = erdos_renyi(70, 0.9, seed=5)
    slow = SlowGraph(graph)

    def change(u, v):
        joined = v in slow.near[u]
        total = comb(len(slow.near[u] & slow.near[v]), k)
        for w in slow.near[u] & slow.near[v]:
            for end in (u, v):
                total += comb(len(slow.near[end] & slow.near[w]) - joined, k - 1)
        return total

    expected = max(change(u, v) for u, v in slow.pairs)
    assert k_triangle_local_sensitivity(graph, k) == expected


@pytest.mark.parametrize("function", [clique_local_sensitivity, k_triangle_local_sensitivity])
@pytest.mark.parametrize("k", [0, -2, 1.5, False, "4"])
def test_sizes_are_checked(function, k):
    with pytest.raises(InputError, match="must be"):
        function(erdos_renyi(4, 0.5, seed=0), k)


def testpairs_of_a_real_graph(data_folder):
    graph = Graph.read(data_folder / "polbooks/polbooks.edges.txt", nodes=105)
    slow = SlowGraph(graph)
    assert pair_front(graph).tolist() == slow.pair_front()
    assert [tuple(row) for row in star_front(graph).tolist()] == slow.star_front()
    assert choose_sum(degrees(graph), 1) == 2 * graph.edge_count
