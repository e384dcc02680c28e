"""Tables 10 to 13 of Wang's dissertation, remade with budgets that hold.

Original graph, then `1k`, `2k`, `kronecker` and `auto` at epsilon 0.2, 2, 20 and 200, one graph
each (DISSERTATION_REPEATS for a mean of more): n, m, mean degree d, assortativity r, average
clustering C, mean distance l, largest distance l_max, largest eigenvalue, triangles, transitivity
t, modularity Q.

Why the figures differ from the printed ones:

* The printed DP-1K noises a histogram that ends at the true largest degree and lets the number of
  nodes grow with the noise. Here the grid is public and n is kept, so n is always right and small
  epsilon no longer makes graphs of twice the size.
* The printed DP-2K noises only the cells that are occupied, with a sensitivity that knows removed
  edges only, and calls an (epsilon, delta) result (epsilon, 0). Here degrees are classed on a
  public grid, every class gets noise for additions and removals, and epsilon is pure. Graphs keep
  their scale at every epsilon, where the printed ones have up to 1.7 million edge ends (GC at 2);
  in exchange the joint degrees are coarser, which shows at epsilon 200.
* The printed SKG has no privacy at all and only powers of two; here its moments are private and n
  is any number.
* `auto` did not exist: it is the only one that keeps triangles and clustering.
* Two Enron cores stand in for the 148 nodes of the dissertation, which are not public as such.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import tulle
from benchmarks.common import find_data, print_table
from tulle.metrics import Portrait

TABLES = {
    "Table 10, GC": "ca-GrQc",
    "Table 11, AS20": "as20000102",
    "Table 12, Enron core (stand-in)": "enron-core-igraph",
    "Table 12, Enron core (second stand-in)": "enron-core-simplices",
    "Table 13, Polbooks": "polbooks",
}
MODELS = ("1k", "2k", "kronecker", "auto")
EPSILONS = (0.2, 2.0, 20.0, 200.0)


def describe(portrait: Portrait) -> dict[str, float]:
    """Return the rows of the dissertation's tables."""
    return {
        "n": portrait.nodes,
        "m": portrait.edges,
        "d": portrait.mean_degree,
        "r": portrait.assortativity,
        "C": portrait.average_clustering,
        "l": portrait.distances.mean,
        "l_max": portrait.distances.diameter,
        "lambda": portrait.largest_eigenvalue,
        "triangles": portrait.triangles,
        "t": portrait.transitivity,
        "Q": portrait.modularity,
    }


def table(name: str, repeats: int) -> list[dict[str, Any]]:
    """Return one table, a row for each figure."""
    path = find_data(name)
    if path is None:
        return []
    graph = tulle.Graph.read(path)
    columns = {"original": describe(Portrait.of(graph))}
    for model in MODELS:
        for epsilon in EPSILONS:
            made = []
            for _ in range(repeats):
                value = tulle.release(
                    graph, tulle.synthetic(model), unit="edge", epsilon=epsilon
                ).value
                made.append(describe(Portrait.of(value)))
            columns[f"{model} ({epsilon:g})"] = {
                row: float(np.mean([one[row] for one in made])) for row in made[0]
            }
    return [
        {"": row, **{column: f"{figures[row]:.4g}" for column, figures in columns.items()}}
        for row in columns["original"]
    ]


def main() -> None:
    """Print all tables, each in two halves so that lines stay readable."""
    repeats = int(os.environ.get("DISSERTATION_REPEATS", "1"))
    for title, name in TABLES.items():
        rows = table(name, repeats)
        if not rows:
            continue
        columns = list(rows[0])
        for part in (MODELS[:2], MODELS[2:]):
            shown = ["", "original", *(c for c in columns if c.split(" ")[0] in part)]
            print_table(title, [{column: row[column] for column in shown} for row in rows])


if __name__ == "__main__":
    main()
