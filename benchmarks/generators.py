"""How long each model of synthetic graphs and each metric takes, and how close the graphs are.

Run it with ``python -m benchmarks generators``; the graphs are read from ``TULLE_DATA``. Without
it a made-up network stands in. The models' times are for a whole release: private statistics,
consistency and generator.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tulle
from benchmarks.common import find_data, print_table
from tulle import metrics
from tulle.core import registry
from tulle.core.errors import QueryError
from tulle.graphs.generators import social_network
from tulle.graphs.synthesis.generators.realise import realise_degrees
from tulle.graphs.synthesis.generators.realise_joint import place_edges
from tulle.graphs.synthesis.model import SynthesisModel
from tulle.noise import SeededSource, post_processing

GRAPHS = ("facebook_combined", "ego-Twitter")
SHOWN = (
    "edges",
    "triangles",
    "degree distribution",
    "average clustering",
    "modularity",
    "assortativity",
    "mean shortest path",
)
EPSILON = 1.0
SMALL = 300
"""Nodes of the graph on which all is compiled first."""


def load(name: str) -> tuple[str, tulle.Graph]:
    """Return a data set, or a made-up network of some size in its place."""
    path = find_data(name)
    if path is not None:
        return name, tulle.Graph.read(path)
    return f"made up, for {name}", social_network(4_000, mean_degree=40.0, seed=1)


def timed(act: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long an act takes, and what it gives."""
    start = time.perf_counter()
    given = act()
    return time.perf_counter() - start, given


def time_models(name: str, graph: tulle.Graph) -> None:
    """Print each model's time and closeness on one graph."""
    truth = metrics.Portrait.of(graph)
    rows = []
    for mechanism in registry.mechanisms("graph").values():
        if not isinstance(mechanism, SynthesisModel):
            continue
        question = tulle.synthetic(mechanism.model)
        try:
            seconds, made = timed(
                lambda question=question: tulle.release(
                    graph, question, unit="edge", epsilon=EPSILON
                )
            )
        except QueryError as error:
            print(f"{mechanism.model} on {name}: {error}")
            continue
        scores = metrics.compare(truth, made.value).scores()
        rows.append(
            {"model": mechanism.model, "seconds": seconds}
            | {question: scores[question] for question in SHOWN}
        )
    print_table(f"{name}: one release at epsilon = {EPSILON:g}, and its scores", rows)


def time_parts(name: str, graph: tulle.Graph) -> None:
    """Print the time of the generators alone and of the metrics, on one graph."""
    degree = np.sort(np.diff(graph.csr()[0]))[::-1]
    random = post_processing(SeededSource(1))
    one = np.array([[graph.edge_count]])
    acts: dict[str, Callable[[], Any]] = {
        "degrees to a graph, ten swaps per edge": lambda: realise_degrees(degree, random),
        "edges placed between kinds": lambda: place_edges(
            one, degree, np.array([graph.node_count]), random, 0.0
        ),
        "edges placed near each other": lambda: place_edges(
            one, degree, np.array([graph.node_count]), random, 1.0
        ),
        "distances": lambda: metrics.measure_distances(graph),
        "betweenness": lambda: metrics.betweenness(graph),
        "Louvain": lambda: metrics.louvain(graph),
    }
    rows = [{"part": part, "seconds": timed(act)[0]} for part, act in acts.items()]
    try:
        other = graph.to_igraph()
    except ImportError:
        other = None
    if other is not None:
        seconds, found = timed(other.community_multilevel)
        rows.append({"part": "igraph's Louvain", "seconds": seconds})
        ours = metrics.modularity(graph, metrics.louvain(graph))
        print(f"{name}: modularity {ours:.4f}; igraph's {other.modularity(found):.4f}")
    print_table(f"{name}: parts ({graph.edge_count:,} edges)", rows)


MINUTE: dict[str, Any] = {
    "GRAPHS": ("facebook_combined",),
    "SMALL": 30,
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Compile on a small graph first, then measure."""
    small = social_network(SMALL, seed=1)
    for mechanism in registry.mechanisms("graph").values():
        if isinstance(mechanism, SynthesisModel):
            question = tulle.synthetic(mechanism.model)
            tulle.compare(small, tulle.release(small, question, unit="edge", epsilon=1.0).value)
    for graph in GRAPHS:
        name, data = load(graph)
        time_parts(name, data)
        time_models(name, data)


if __name__ == "__main__":
    main()
