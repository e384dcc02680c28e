"""Counting cliques, and how much one edge can change the count. Custodian side."""

import networkx as nx
import numpy as np
import pytest

from tulle.core.errors import InputError
from tulle.graphs.generators import barabasi_albert, erdos_renyi, watts_strogatz
from tulle.graphs.kernels.cliques import count_cliques
from tulle.graphs.kernels.counts import (
    count_k_triangles,
    count_stars,
    count_triangles,
    triangles_per_node,
)


@pytest.mark.parametrize(
    "graph",
    [erdos_renyi(300, 0.08, seed=1), watts_strogatz(400, 10, 0.1, seed=2),
     barabasi_albert(500, 6, seed=3)],
    ids=["erdos-renyi", "watts-strogatz", "barabasi-albert"],
)  # fmt: skip
def test_counts_agree_with_networkx(graph):
    peer = graph.to_networkx()
    per_node = nx.triangles(peer)
    assert triangles_per_node(graph).tolist() == [per_node[node] for node in range(len(per_node))]
    assert count_triangles(graph) == sum(per_node.values()) // 3
    sizes = np.bincount([len(clique) for clique in nx.enumerate_all_cliques(peer)], minlength=7)
    for k in range(1, 7):
        assert count_cliques(graph, k) == sizes[k]


def test_large_complete_graph_has_rows_of_many_words():
    graph = erdos_renyi(150, 1.0, seed=0)
    assert count_cliques(graph, 4) == 150 * 149 * 148 * 147 // 24
    assert count_cliques(graph, 5) == 150 * 149 * 148 * 147 * 146 // 120


def test_more_than_there_is_gives_zero():
    graph = erdos_renyi(6, 1.0, seed=0)
    assert count_cliques(graph, 7) == count_cliques(graph, 500) == 0
    assert count_stars(graph, 10**6) == count_k_triangles(graph, 10**6) == 0


@pytest.mark.parametrize("function", [count_stars, count_k_triangles, count_cliques])
@pytest.mark.parametrize("k", [0, -1, 2.5, True, "3", None])
def test_sizes_are_checked(function, k):
    with pytest.raises(InputError, match="must be"):
        function(erdos_renyi(4, 0.5, seed=0), k)
