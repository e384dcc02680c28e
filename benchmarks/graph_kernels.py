"""Times of the graph kernels, next to python-igraph and NetworKit in the same run.

Run with ``python benchmarks/graph_kernels.py``. With TULLE_DATA naming the folder of real data
sets it uses ego-Twitter (81,306 nodes, 1,342,296 edges), otherwise a made-up network. All graph
objects are built and all kernels compiled beforehand; nothing is kept between repeats. The peers
use as many threads as they like.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tulle.graphs.data import Graph
from tulle.graphs.generators import social_network
from tulle.graphs.kernels.cliques import clique_local_sensitivity, count_cliques
from tulle.graphs.kernels.counts import (
    count_k_triangles,
    count_stars,
    count_triangles,
    pair_front,
    star_front,
    triangles_per_node,
)
from tulle.graphs.kernels.local_counts import k_triangle_local_sensitivity

REPEATS = 7
BAR = 2.0
NODES = 60_000
"""Of the made-up network."""


def load() -> tuple[str, Callable[[], Graph]]:
    named = os.environ.get("TULLE_DATA")
    if named:
        file = Path(named, "ego-Twitter", "ego-Twitter.edges.txt.gz")
        if file.is_file():
            return "ego-Twitter", lambda: Graph.read(file, nodes=81306)
    return "made-up network", lambda: social_network(NODES, mean_degree=30, seed=1)


def seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def triangle_peers(graph: Graph, expected: int) -> dict[str, Callable[[], Any]]:
    """Return the ways in which peers can count triangles, each checked once."""
    import networkit

    peer = graph.to_igraph()
    first, second = np.ascontiguousarray(graph.edges().T.astype(np.uint64))
    other = networkit.GraphFromCoo((first, second), n=graph.node_count, directed=False)
    other.sortEdges()
    other.indexEdges()
    wedges = count_stars(graph, 2)

    def igraph_transitivity() -> int:
        return round(peer.transitivity_undirected() * wedges / 3)

    def networkit_score() -> int:
        score = networkit.sparsification.TriangleEdgeScore(other)
        score.run()
        return sum(score.scores()) // 3

    def networkit_score_run() -> None:
        networkit.sparsification.TriangleEdgeScore(other).run()

    def networkit_local() -> None:
        networkit.centrality.LocalClusteringCoefficient(other, True).run()

    def networkit_global() -> int:
        return round(networkit.globals.ClusteringCoefficient.exactGlobal(other) * wedges / 3)

    for check in (igraph_transitivity, networkit_score, networkit_global):
        if check() != expected:
            sys.exit(f"{check.__name__} found another number of triangles")
    return {
        "igraph transitivity_undirected": igraph_transitivity,
        "NetworKit TriangleEdgeScore": networkit_score_run,
        "NetworKit LocalClusteringCoefficient": networkit_local,
        "NetworKit exactGlobal": networkit_global,
    }


MINUTE: dict[str, Any] = {
    "NODES": 300,
    "REPEATS": 1,
    "BAR": 0.0,
}
"""What is smaller in the minute's version."""


def main() -> None:
    name, make = load()
    small = social_network(200, seed=1)
    own: dict[str, Callable[[Graph], Any]] = {
        "count_triangles": count_triangles,
        "triangles_per_node": triangles_per_node,
        "count_k_triangles k=2": lambda graph: count_k_triangles(graph, 2),
        "count_cliques k=4": lambda graph: count_cliques(graph, 4),
        "count_cliques k=5": lambda graph: count_cliques(graph, 5),
        "pair_front": pair_front,
        "star_front": star_front,
        "clique_local_sensitivity k=4": lambda graph: clique_local_sensitivity(graph, 4),
        "k_triangle_local_sensitivity k=2": lambda graph: k_triangle_local_sensitivity(graph, 2),
    }
    for function in own.values():
        function(small)
    make()
    print(f"{name}: {'read' if name == 'ego-Twitter' else 'make'} {seconds(make):.3f} s")
    graph = make()
    print(f"{graph.node_count} nodes, {graph.edge_count} edges\n")

    print("counting triangles, best of", REPEATS)
    contenders = {"tulle count_triangles": lambda: count_triangles(graph)}
    contenders |= triangle_peers(graph, count_triangles(graph))
    # Taking turns spreads whatever else the machine does over all of them.
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(REPEATS):
        for label, function in contenders.items():
            times[label].append(seconds(function))
    best = {label: min(found) for label, found in times.items()}
    mine = best.pop("tulle count_triangles")
    print(f"  {'tulle count_triangles':40} {mine:8.4f} s")
    for label, found in best.items():
        print(f"  {label:40} {found:8.4f} s  {found / mine:6.1f} x")
    ratio = min(best.values()) / mine
    print(f"  faster than the fastest peer by {ratio:.1f} (bar: {BAR})\n")

    print("all kernels, best of 2; largest memory of the process so far")
    for label, function in own.items():
        found = min(seconds(lambda function=function: function(graph)) for _ in range(2))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  {label:40} {found:8.4f} s  {memory:6.0f} MB")
    if ratio < BAR:
        sys.exit("below the bar")


if __name__ == "__main__":
    main()
