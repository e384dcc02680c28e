"""Median relative error of private counts on real graphs, every mechanism, one budget."""

from __future__ import annotations

from typing import Any

import numpy as np

import tulle
from benchmarks.common import find_data, print_table
from tulle.core.mechanism import Mechanism
from tulle.core.registry import mechanisms
from tulle.core.unit import Unit

GRAPHS = ("ca-GrQc", "facebook_combined", "p2p-Gnutella25", "wiki-Vote")
RUNS = {"triangles": 200}
"""Releases per cell; other questions than these get ``FEW``."""
FEW = 40
QUESTIONS = (tulle.triangles(), tulle.stars(2), tulle.k_triangles(2), tulle.cliques(4))
EPSILON = 1.0
DELTA = 1e-6


def run() -> list[dict[str, Any]]:
    """Measure many releases of each question by each mechanism."""
    rows = []
    for name in GRAPHS:
        path = find_data(name)
        if path is None:
            continue
        graph = tulle.Graph.read(path)
        for query in QUESTIONS:
            truth = query.truth(graph)
            for mechanism in mechanisms("graph").values():
                # Without an option that nobody could choose well, some cannot run at all.
                if mechanism.needs_options or not mechanism.supports(query, Unit.of("edge")):
                    continue
                errors, covered = _measure(graph, query, mechanism, truth)
                rows.append(
                    {
                        "graph": name,
                        "question": str(query),
                        "mechanism": mechanism.name,
                        "runs": RUNS.get(query.name, FEW),
                        "truth": truth,
                        "median error": float(np.median(errors)),
                        "relative": f"{100 * np.median(errors) / max(truth, 1):.3f} %",
                        "95 % interval covers": f"{100 * covered:.0f} %",
                    }
                )
    return rows


def _measure(
    graph: tulle.Graph, query: Any, mechanism: Mechanism, truth: int
) -> tuple[list[float], float]:
    delta = DELTA if mechanism.needs_delta else 0.0
    errors, covered = [], 0
    runs = RUNS.get(query.name, FEW)
    for _ in range(runs):
        answer = tulle.release(
            graph, query, unit="edge", epsilon=EPSILON, delta=delta, mechanism=mechanism.name
        )
        low, high = answer.interval(0.95)
        covered += low <= truth <= high
        errors.append(abs(answer.value - truth))
    return errors, covered / runs


MINUTE: dict[str, Any] = {
    "GRAPHS": ("ca-GrQc",),
    "RUNS": {},
    "QUESTIONS": QUESTIONS[:1],
    "FEW": 1,
}
"""What is smaller in the minute's version."""


def main() -> None:
    print_table(f"Accuracy at epsilon = {EPSILON}, per edge", run())


if __name__ == "__main__":
    main()
