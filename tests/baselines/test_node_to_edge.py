"""N2E, rebuilt: what one node moves the clipped sequence by, and that it runs."""

from __future__ import annotations

import numpy as np
from baselines.node_to_edge import (
    clipped_sequence,
    edges_by_clipping,
    kept_edges,
    node_to_edge,
)

import tulle
from tulle.graphs.data import Graph
from tulle.graphs.generators import all_graphs
from tulle.noise import SeededSource


def without(graph: Graph, node: int) -> Graph:
    kept = [other for other in range(graph.node_count) if other != node]
    place = {other: index for index, other in enumerate(kept)}
    pairs = [(place[u], place[v]) for u, v in graph.edges().tolist() if node not in (u, v)]
    return Graph.from_edges(np.array(pairs).reshape(-1, 2), nodes=len(kept))


def test_a_node_moves_the_clipped_sequence_by_at_most_twice_the_bound() -> None:
    reached = dict.fromkeys((1, 2, 3), 0)
    for graph in all_graphs(5):
        for bound in reached:
            here = clipped_sequence(graph, bound, 5)
            for node in range(5):
                there = clipped_sequence(without(graph, node), bound, 5)
                reached[bound] = max(reached[bound], int(np.abs(here - there).sum()))
    assert all(moved <= 2 * bound for bound, moved in reached.items())
    # The bound itself, as if a node were worth so many edges once, is not enough.
    assert all(moved > bound for bound, moved in reached.items())


def test_little_noise_brings_the_degrees_back() -> None:
    ring = Graph.from_edges([(i, (i + s) % 60) for i in range(60) for s in (1, 2)], nodes=60)
    found = node_to_edge(ring, 4000, SeededSource(1))
    assert found.tolist() == tulle.degree_distribution().truth(ring)[: len(found)].tolist()
    assert abs(edges_by_clipping(ring, 4000, SeededSource(1)) - 120) <= 1


def test_a_node_moves_the_kept_edges_by_at_most_the_bound() -> None:
    reached = dict.fromkeys((1, 2, 3), 0)
    for graph in all_graphs(5):
        for bound in reached:
            here = kept_edges(graph, bound)
            for node in range(5):
                there = kept_edges(without(graph, node), bound)
                reached[bound] = max(reached[bound], abs(here - there))
    assert all(moved == bound for bound, moved in reached.items())
