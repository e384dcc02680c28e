"""How many nodes stick out of a bound: brute force over small graphs, and the search on it."""

from __future__ import annotations

import numpy as np
import pytest

import tulle
from tulle.audit.engine.exhaustive import describe_world
from tulle.audit.graphs.kind import AuditedGraphs
from tulle.audit.graphs.threshold import LARGEST_DEGREE
from tulle.core.registry import mechanisms
from tulle.core.validate import rational
from tulle.graphs.data import Graph
from tulle.graphs.generators import all_graphs
from tulle.graphs.sensitivity.degrees import sticking_out


def slowly(degrees, bound):
    return next(k for k in range(99) if sum(degree > bound + k for degree in degrees) <= k)


def without(graph, node):
    pairs = graph.edges()
    kept = pairs[(pairs != node).all(axis=1)]
    return Graph.from_edges(kept - (kept > node), nodes=graph.node_count - 1)


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5])
def test_one_node_moves_all_numbers_one_way_by_at_most_one(nodes):
    bounds = range(nodes + 2)
    for graph in all_graphs(nodes):
        degrees = np.bincount(graph.edges().ravel(), minlength=nodes).tolist()
        here = np.array(sticking_out(graph, bounds))
        assert here.tolist() == [slowly(degrees, bound) for bound in bounds]
        assert (here == 0).tolist() == [max(degrees) <= bound for bound in bounds]
        for node in range(nodes):
            moved = here - np.array(sticking_out(without(graph, node), bounds))
            assert moved.min() >= 0
            assert moved.max() <= 1


def test_nodes_above_a_bound_would_jump():
    # Who joins all nodes of an empty graph raises all of them above zero at once.
    star = Graph.from_edges([(0, other) for other in range(1, 6)])
    assert sticking_out(star, [0]) == [1]
    assert (np.bincount(star.edges().ravel()) > 0).sum() == 6


def test_the_exact_law_uses_its_epsilon_and_no_more():
    kind, search = AuditedGraphs(), mechanisms("graph")["degree_threshold"]
    world = kind.world_for(4, LARGEST_DEGREE)
    for epsilon in (rational("1/2"), rational(3)):
        described = describe_world(
            kind, search, LARGEST_DEGREE, world, epsilon, rational(0), {"stopping": 1}
        )
        laws = [one.parts[0][1] for one in described]
        assert all(np.exp(law.logs()).sum() == pytest.approx(1) for law in laws)
        worst = max(laws[a].loss(laws[b]) for a, b in world.distinct_pairs(laws)[0])
        assert 0.5 * float(epsilon) < worst <= float(epsilon) + 1e-9


def test_per_edge_the_largest_degree_gets_little_noise():
    star = Graph.from_edges([(0, other) for other in range(1, 40)])
    answer = tulle.release(star, tulle.max_degree(), unit="edge", epsilon=60.0)
    assert answer.value == 39
