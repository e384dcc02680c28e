"""Which mechanism when: every mechanism on every kind of network; writes what the guide shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tulle
from benchmarks.common import print_table
from tulle.core.registry import mechanisms
from tulle.core.unit import Unit
from tulle.graphs.data import Graph
from tulle.graphs.generators import social_network

RUNS = 11
EPSILONS = ("0.1", "1")
DELTA = 1e-6
NODES = 1000
RESULTS = Path(__file__).parents[1] / "docs" / "results" / "which.json"


def networks() -> dict[str, Graph]:
    """Made-up networks of different kinds: results must not come from anybody's data."""
    import networkx

    return {
        f"social, {NODES:,}": social_network(NODES, seed=1),
        f"random, {NODES:,}": Graph.from_networkx(
            networkx.gnm_random_graph(NODES, 5 * NODES, seed=3)
        ),
        f"hubs, {NODES:,}": Graph.from_networkx(networkx.barabasi_albert_graph(NODES, 5, seed=4)),
    }


def questions(unit: str) -> Iterator[Any]:
    """Questions that several mechanisms answer."""
    yield tulle.edges()
    yield tulle.triangles()
    yield tulle.stars(2)
    if unit == "edge":
        yield tulle.k_triangles(2)
        yield tulle.average_clustering()
        yield tulle.transitivity()


def run() -> list[dict[str, Any]]:
    """Measure the median relative error of every mechanism that can answer."""
    rows = []
    for unit in ("edge", "node"):
        for name, graph in networks().items():
            for query in questions(unit):
                for epsilon in EPSILONS:
                    errors = _errors(graph, query, unit, epsilon)
                    rows.append(
                        {
                            "unit": unit,
                            "epsilon": epsilon,
                            "graph": name,
                            "question": str(query),
                            "errors": errors,
                        }
                    )
    return rows


def _errors(graph: Graph, query: Any, unit: str, epsilon: str) -> dict[str, float]:
    truth = float(query.truth(graph))
    found = {}
    for mechanism in mechanisms("graph").values():
        protected = Unit.of(unit)
        if not mechanism.supports(query, protected) or mechanism.needs_options:
            continue
        if not mechanism.offers(query, protected):
            continue  # plans leave it out: slow, and known to be worse
        delta = DELTA if mechanism.needs_delta else 0.0
        wrong = [
            abs(
                tulle.release(
                    graph, query, unit=unit, epsilon=epsilon, delta=delta, mechanism=mechanism.name
                ).value
                - truth
            )
            for _ in range(RUNS)
        ]
        found[mechanism.name] = float(np.median(wrong)) / max(abs(truth), 1e-9)
    return found


MINUTE: dict[str, Any] = {
    "RUNS": 1,
    "EPSILONS": ("1",),
    "NODES": 40,
}
"""What is smaller in the minute's version."""


def main() -> None:
    rows = run()
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"runs": RUNS, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    flat = [
        {
            **{k: v for k, v in row.items() if k != "errors"},
            "best": min(row["errors"], key=row["errors"].get),
        }
        for row in rows
        if row["errors"]
    ]
    print_table("Which mechanism when", flat)
