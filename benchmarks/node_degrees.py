"""Degrees per node, and synthetic graphs made of what was released per node.

Run with ``python -m benchmarks node_degrees``, with TULLE_DATA naming the folder of real data sets.
First the largest degree by ``degree_threshold``: medians and quartiles. Then a synthetic graph from
four releases that divide epsilon (distribution, edges, triangles, largest degree), beside the same
from the true numbers, which shows what such numbers alone can say, and a model per edge. The
constants of ``degree_threshold`` were chosen on other graphs.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

import tulle
from benchmarks.common import find_data, print_table
from tulle.graphs.data import Graph
from tulle.graphs.mechanisms.projection import on_grid

NAMES = ("wiki-Vote", "email-Enron", "as20000102", "brightkite")
DRAWN = ("as20000102", "wiki-Vote")
RUNS = 21
EPSILONS = (1.0,)
SYNTHETIC_EPSILONS = (2.0, 5.0)
SHARES = {"degrees": "2/5", "edges": "1/5", "triangles": "3/10", "largest": "1/10"}
QUESTIONS: dict[str, Any] = {
    "degrees": tulle.degree_distribution(),
    "edges": tulle.edges(),
    "triangles": tulle.triangles(),
    "largest": tulle.max_degree(),
}


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


def released(graph: Graph, epsilon: float) -> dict[str, Any]:
    """Return the four releases per node that divide epsilon."""
    return {
        name: tulle.release(
            graph, query, unit="node", epsilon=Fraction(SHARES[name]) * Fraction(epsilon)
        )
        for name, query in QUESTIONS.items()
    }


def synthetic_graphs() -> list[dict[str, Any]]:
    """Return what synthetic graphs show, per node and per edge."""
    rows = []
    for name in DRAWN:
        graph = read(name)
        if graph is None:
            continue
        rows.append({"graph": name, "made of": "itself", **shown(graph, graph)})
        for epsilon in SYNTHETIC_EPSILONS:
            made = tulle.graph_from_releases(**released(graph, epsilon))
            rows.append({"graph": name, "made of": f"per node, {epsilon}", **shown(made, graph)})
            auto = tulle.release(graph, tulle.synthetic("auto"), unit="edge", epsilon=epsilon).value
            rows.append(
                {"graph": name, "made of": f"auto per edge, {epsilon}", **shown(auto, graph)}
            )
    return rows


MINUTE: dict[str, Any] = {"NAMES": NAMES[:1], "DRAWN": (), "RUNS": 3}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print both tables."""
    print_table(f"The largest degree per node, {RUNS} runs", largest_degrees())
    print_table("Synthetic graphs, one of each", synthetic_graphs())


if __name__ == "__main__":
    main()
