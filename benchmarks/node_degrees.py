"""Degrees per node, and synthetic graphs made of what was released per node.

Run with ``python -m benchmarks node_degrees``, with TULLE_DATA naming the folder of real data sets.
First the largest degree by ``degree_threshold``: medians and quartiles. Then the distribution by
``projection``, as Day, Li & Lyu published it (``baselines/degree_counts.py``) and by N2E
(``baselines/node_to_edge.py``): the part of the nodes that are misplaced, and the largest distance
between cumulated distributions. Then the number of edges by ``sparse_vector`` and by N2E. Then a
synthetic graph per node beside a model per edge. The constants of ``degree_threshold``,
``projection`` and ``sparse_vector`` were chosen on other graphs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from baselines.degree_counts import degree_counts
from baselines.node_to_edge import edges_by_clipping, node_to_edge

import tulle
from benchmarks.common import find_data, print_table
from tulle.graphs.data import Graph
from tulle.graphs.mechanisms.projection import on_grid

NAMES = ("wiki-Vote", "email-Enron", "as20000102", "brightkite")
SPREAD_NAMES = (
    *NAMES,
    "facebook_combined",
    "ca-HepPh",
    "ca-CondMat",
    "deezer-europe",
    "p2p-Gnutella25",
    "1138_bus",
    "polbooks",
)
DRAWN = ("as20000102", "wiki-Vote", "brightkite", "email-Enron")
RUNS = 21
FEWER = 21
EPSILONS = (1.0,)
SPREAD_EPSILONS = (0.5, 1.0, 2.0, 5.0)
SYNTHETIC_EPSILONS = (2.0, 5.0)


def read(name: str) -> Graph | None:
    """Return a real graph, or None."""
    path = find_data(name)
    return None if path is None else Graph.from_edges(np.loadtxt(path, dtype=np.int64))


def largest_degrees() -> list[dict[str, Any]]:
    """Return a row for each graph and epsilon."""
    rows = []
    for name in NAMES:
        graph = read(name)
        if graph is None:
            continue
        for epsilon in EPSILONS:
            drawn = [
                tulle.release(graph, tulle.max_degree(), unit="node", epsilon=epsilon).value
                for _ in range(RUNS)
            ]
            low, middle, high = np.quantile(drawn, [0.25, 0.5, 0.75])
            rows.append(
                {
                    "graph": name,
                    "epsilon": epsilon,
                    "largest degree": tulle.max_degree().truth(graph),
                    "median": float(middle),
                    "quartiles": f"{low:.0f} to {high:.0f}",
                }
            )
    return rows


def shown(graph: Graph, truth: Graph) -> dict[str, float]:
    """Return what is compared between a synthetic graph and the true one."""
    largest = 2000
    one, other = on_grid(graph, largest), on_grid(truth, largest)
    cumulated = np.cumsum(one / one.sum()) - np.cumsum(other / other.sum())
    return {
        "nodes": graph.node_count,
        "edges": graph.edge_count,
        "triangles": tulle.triangles().truth(graph),
        "largest degree": tulle.max_degree().truth(graph),
        "degrees apart (K-S)": float(np.abs(cumulated).max()),
        "transitivity": tulle.transitivity().truth(graph),
        "assortativity": tulle.assortativity().truth(graph),
    }


def distributions() -> list[dict[str, Any]]:
    """Return a row for each graph and epsilon: how far distributions are off, medians."""

    def projection(graph: Graph, epsilon: float) -> Any:
        return tulle.release(graph, tulle.degree_distribution(), unit="node", epsilon=epsilon).value

    rows = []
    ways = {"projection": projection, "as published": degree_counts, "N2E": node_to_edge}
    for name in SPREAD_NAMES:
        graph = read(name)
        if graph is None:
            continue
        for epsilon in SPREAD_EPSILONS:
            row: dict[str, Any] = {"graph": name, "epsilon": epsilon}
            for way, drawn in ways.items():
                off = [misplaced(drawn(graph, epsilon), graph) for _ in range(FEWER)]
                apart = np.median(off, axis=0)
                row |= {f"{way}: misplaced": float(apart[0]), f"{way}: K-S": float(apart[1])}
            rows.append(row)
    return rows


def numbers_of_edges() -> list[dict[str, Any]]:
    """Return a row for each graph and epsilon: median errors of the number of edges."""

    def sparse_vector(graph: Graph, epsilon: float) -> float:
        return float(tulle.release(graph, tulle.edges(), unit="node", epsilon=epsilon).value)

    rows = []
    for name in SPREAD_NAMES:
        graph = read(name)
        if graph is None:
            continue
        for epsilon in SPREAD_EPSILONS:
            row: dict[str, Any] = {"graph": name, "edges": graph.edge_count, "epsilon": epsilon}
            for way, drawn in (("tulle", sparse_vector), ("N2E", edges_by_clipping)):
                off = [abs(drawn(graph, epsilon) - graph.edge_count) for _ in range(RUNS)]
                row[way] = float(np.median(off))
            rows.append(row)
    return rows


def misplaced(found: Any, graph: Graph) -> tuple[float, float]:
    """Return half the L1 distance of two distributions over the nodes, and their K-S distance."""
    true = tulle.degree_distribution().truth(graph)
    one, other = np.zeros((2, max(len(true), len(found))))
    one[: len(true)], other[: len(found)] = true, found
    apart = np.cumsum(one / one.sum()) - np.cumsum(other / max(other.sum(), 1))
    return float(np.abs(one - other).sum() / 2 / one.sum()), float(np.abs(apart).max())


def synthetic_graphs() -> list[dict[str, Any]]:
    """Return what synthetic graphs show, per node and per edge."""
    rows = []
    for name in DRAWN:
        graph = read(name)
        if graph is None:
            continue
        rows.append({"graph": name, "made of": "itself", **shown(graph, graph)})
        for epsilon in SYNTHETIC_EPSILONS:
            question = tulle.synthetic_per_node()
            made = tulle.release(graph, question, unit="node", epsilon=epsilon).value
            rows.append({"graph": name, "made of": f"per node, {epsilon}", **shown(made, graph)})
            auto = tulle.release(graph, tulle.synthetic("auto"), unit="edge", epsilon=epsilon).value
            rows.append(
                {"graph": name, "made of": f"auto per edge, {epsilon}", **shown(auto, graph)}
            )
    return rows


MINUTE: dict[str, Any] = {
    "NAMES": NAMES[:1],
    "SPREAD_NAMES": ("polbooks",),
    "DRAWN": (),
    "RUNS": 3,
    "FEWER": 1,
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print all tables."""
    print_table(f"The largest degree per node, {RUNS} runs", largest_degrees())
    print_table(f"Degree distributions per node, medians of {FEWER} runs", distributions())
    print_table(f"Numbers of edges per node, median error of {RUNS} runs", numbers_of_edges())
    print_table("Synthetic graphs, one of each", synthetic_graphs())


if __name__ == "__main__":
    main()
