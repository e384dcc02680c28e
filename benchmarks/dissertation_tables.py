"""Tables 10 to 13 of Wang's dissertation, remade with budgets that hold.

Original graph, then `1k`, `2k`, `kronecker` and `auto` at epsilon 0.2, 2, 20 and 200, the mean of
a few graphs each. Writes what ``docs/dissertation.md`` shows, beside the printed figures and why
they differ.

All models are measured, unless ``DISSERTATION_MODELS`` names some of them (``auto,2k``): figures of
the others are then kept from the run before. Results are written after each cell.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import tulle
from benchmarks.common import find_data, print_table
from tulle.graphs.kernels.counts import degrees, triangles_per_node
from tulle.metrics import assortativity, louvain, measure_distances, modularity
from tulle.metrics.portrait import leading_eigenpair
from tulle.noise import SeededSource

GRAPHS = ("ca-GrQc", "as20000102", "enron-core-igraph", "enron-core-simplices", "polbooks")
MODELS = ("1k", "2k", "kronecker", "auto")
EPSILONS = (0.2, 2.0, 20.0, 200.0)
REPEATS = 5
FIGURES = ("n", "m", "d", "r", "C", "l", "l_max", "lambda", "triangles", "t", "Q")
RESULTS = Path(__file__).parents[1] / "docs" / "results" / "dissertation.json"


def describe(graph: tulle.Graph) -> list[float]:
    """Return the rows of the dissertation's tables, in the order of ``FIGURES``."""
    degree, triangles = degrees(graph), triangles_per_node(graph)
    pairs = degree * (degree - 1) // 2
    distances = measure_distances(graph)
    found = (
        graph.node_count,
        graph.edge_count,
        degree.mean(),
        assortativity(graph),
        (triangles / np.maximum(pairs, 1)).mean(),
        distances.mean,
        distances.diameter,
        leading_eigenpair(graph, 1)[0][0],
        triangles.sum() // 3,
        triangles.sum() / max(pairs.sum(), 1),
        modularity(graph, louvain(graph)),
    )
    return [float(figure) for figure in found]


def measure(graph: tulle.Graph, model: str, epsilon: float) -> tuple[list[float], float]:
    """Return the mean figures of a model's graphs, and the seconds that one of them takes."""
    made, seconds = [], 0.0
    for seed in range(REPEATS):
        start = time.perf_counter()
        one = tulle.release(
            graph,
            tulle.synthetic(model),
            unit="edge",
            epsilon=epsilon,
            source=SeededSource(seed),
        ).value
        seconds += time.perf_counter() - start
        made.append(describe(one))
    return [float(f"{figure:.6g}") for figure in np.mean(made, axis=0)], seconds / REPEATS


def fill(results: dict[str, Any], name: str, models: list[str]) -> None:
    """Measure one graph's table for some models and write it, cell by cell."""
    path = find_data(name)
    if path is None:
        return
    graph = tulle.Graph.read(path)
    table = results["tables"].setdefault(name, {})
    table["original"] = describe(graph)
    for model in models:
        for epsilon in EPSILONS:
            cell = f"{model} {epsilon:g}"
            table[cell], seconds = measure(graph, model, epsilon)
            print(f"{name}, {cell}: {seconds:.2f} s a graph", flush=True)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def begin() -> dict[str, Any]:
    """Return the results of the run before, or empty ones."""
    empty: dict[str, Any] = {"repeats": REPEATS, "figures": list(FIGURES), "tables": {}}
    if not RESULTS.exists():
        return empty
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found if {**found, "tables": {}} == empty else empty


MINUTE: dict[str, Any] = {
    "GRAPHS": ("polbooks",),
    "MODELS": ("1k", "2k"),
    "EPSILONS": (2.0,),
    "REPEATS": 1,
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Measure, write and print all tables, a line for each model and epsilon."""
    named = os.environ.get("DISSERTATION_MODELS", ",".join(MODELS)).split(",")
    results = begin()
    for name in GRAPHS:
        fill(results, name, [model for model in MODELS if model in named])
    for name, table in results["tables"].items():
        rows = [
            {"": cell, **dict(zip(FIGURES, figures, strict=True))}
            for cell, figures in table.items()
        ]
        print_table(name, rows)


if __name__ == "__main__":
    main()
