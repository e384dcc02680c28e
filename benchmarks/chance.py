"""How much of the models' mutual information with the true communities is chance.

Louvain finds a community for each node that has no edge. A model that leaves many nodes without
edges then shows thousands of communities, and the mutual information of any two divisions grows
with their number. For each model: its communities, how many of them are single nodes, the mutual
information with those of the true graph, what the same labels have when they are dealt to the
nodes at random (exactly, in expectation), and what is beyond that. The row "Louvain again" is the
true graph itself, searched in another order: more than that nobody can reach.

Environment: CHANCE_REPEATS is how many graphs are drawn of each model.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import tulle
from benchmarks.common import find_data, print_table
from benchmarks.synthetic import GRAPHS, draw_dgg
from tulle.metrics import information_beyond_chance, louvain, mutual_information

EPSILONS = (0.5, 1.0, 5.0)
MODELS = ("dgg", "2.5k", "communities", "auto")
REPEATS = 3


def look(truth: Any, found: Any) -> dict[str, float]:
    """Return how two divisions agree, and how much of it is chance."""
    plain, beyond = mutual_information(truth, found), information_beyond_chance(truth, found)
    return {
        "communities": float(found.max() + 1),
        "single nodes": float((np.bincount(found) == 1).sum()),
        "mutual information": plain,
        # Beyond is (plain - chance) / (1 - chance).
        "by chance": (plain - beyond) / (1 - beyond) if beyond < 1 else 0.0,
        "beyond chance": beyond,
    }


def draw(graph: tulle.Graph, model: str, epsilon: float, seed: int) -> tulle.Graph:
    """Return a synthetic graph."""
    if model == "dgg":
        return draw_dgg(graph, epsilon, seed)
    made: tulle.Graph = tulle.release(
        graph, tulle.synthetic(model), unit="edge", epsilon=epsilon
    ).value
    return made


MINUTE: dict[str, Any] = {
    "GRAPHS": GRAPHS[:1],
    "EPSILONS": (1.0,),
    "MODELS": ("dgg", "auto"),
    "REPEATS": 1,
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print a table for each graph."""
    repeats = int(os.environ.get("CHANCE_REPEATS", REPEATS))
    for name in GRAPHS:
        path = find_data(name)
        rows: list[dict[str, Any]] = []
        if path is not None:
            graph = tulle.Graph.read(path)
            truth = louvain(graph)
            again = look(truth, louvain(graph, seed=2))
            rows.append({"model": "Louvain again", "epsilon": "", **again})
            for epsilon in EPSILONS:
                for model in MODELS:
                    made = (draw(graph, model, epsilon, seed) for seed in range(repeats))
                    seen = [look(truth, louvain(one)) for one in made]
                    means = {key: float(np.mean([s[key] for s in seen])) for key in seen[0]}
                    rows.append({"model": model, "epsilon": epsilon, **means})
        print_table(f"Communities of {name}, mean of {repeats} graphs", rows)


if __name__ == "__main__":
    main()
