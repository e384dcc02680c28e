"""Private spectra of real networks: how near, how fast, and what communities they show.

Run with ``TULLE_DATA=<folder> python -m benchmarks spectra``.
"""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import tulle
from benchmarks.common import find_data, print_table

DELTA = 1e-6

CASES: list[tuple[str, int, float, str | None]] = [
    ("facebook_combined", 1, 1.0, None),
    ("facebook_combined", 5, 1.0, None),
    ("facebook_combined", 5, 2.0, None),
    ("facebook_combined", 1, 1.0, "power"),
    ("facebook_combined", 1, 1.0, "power_pure"),
    ("facebook_combined", 5, 2.0, "power"),
    ("ca-GrQc", 1, 5.0, None),
    ("ca-GrQc", 1, 5.0, "power"),
    ("ca-GrQc", 1, 1.0, None),
    ("ca-GrQc", 1, 1.0, "power"),
    ("ego-Twitter", 1, 1.0, None),
    ("ego-Twitter", 5, 1.0, None),
]


def cosines(one: Any, other: Any) -> Any:
    """Return the cosines of the principal angles between two sets of orthonormal vectors."""
    return np.clip(np.linalg.svd(one.T @ other, compute_uv=False), 0, 1)


def compare() -> None:
    rows: list[dict[str, Any]] = []
    graphs: dict[str, Any] = {}
    for name, k, epsilon, mechanism in CASES:
        path = find_data(name)
        if path is None:
            continue
        if name not in graphs:
            graph = tulle.Graph.read(path, ignore=["direction"])
            graphs[name] = graph, tulle.spectrum(5).truth(graph)
        graph, true = graphs[name]
        reached, seconds = [], []
        for _ in range(1 if name == "ego-Twitter" else 3):
            start = time.perf_counter()
            r = tulle.release(
                graph,
                tulle.spectrum(k),
                unit="edge",
                epsilon=epsilon,
                delta=DELTA,
                mechanism=mechanism,
            )
            seconds.append(time.perf_counter() - start)
            reached.append(cosines(true.vectors[:, :k], r.value.vectors))
        rows.append(
            {
                "graph": name,
                "k": k,
                "epsilon": epsilon,
                "mechanism": r.mechanism + ("" if mechanism else " (default)"),
                "guarantee": r.guarantee.measure,
                "mean cosine": float(np.mean(reached)),
                "least of the runs": float(np.min(np.mean(reached, axis=1))),
                "seconds": float(np.median(seconds)),
            }
        )
    print_table("spectrum(k): cosines of principal angles with the true vectors", rows)


def k_means(points: Any, k: int, rounds: int = 50) -> Any:
    """Return a cluster for each point; the start is spread out, and everything is fixed."""
    centres = points[[int(np.argmax(np.linalg.norm(points, axis=1)))]]
    while len(centres) < k:
        gaps = np.min(np.linalg.norm(points[:, None] - centres, axis=2), axis=1)
        centres = np.vstack([centres, points[[int(np.argmax(gaps))]]])
    nearest = np.zeros(len(points), dtype=np.int64)
    for _ in range(rounds):
        nearest = np.argmin(np.linalg.norm(points[:, None] - centres, axis=2), axis=1)
        for place in np.unique(nearest):
            centres[place] = points[nearest == place].mean(axis=0)
    return nearest


def mutual_information(one: Any, other: Any) -> float:
    """Return the normalised mutual information of two partitions: 1 when they are the same."""
    table = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(table, (one, other), 1 / len(one))
    left, right = table.sum(axis=1), table.sum(axis=0)
    held = table > 0
    shared = float(np.sum(table[held] * np.log(table[held] / np.outer(left, right)[held])))
    entropy = [-float(np.sum(p[p > 0] * np.log(p[p > 0]))) for p in (left, right)]
    return 2 * shared / sum(entropy)


def communities() -> None:
    path = find_data("email-Eu-core")
    if path is None:
        return
    graph = tulle.Graph.read(path, ignore=["direction"])
    labels = Path(os.environ["TULLE_DATA"], "email-Eu-core", "email-Eu-core.labels.csv")
    with labels.open(encoding="utf-8") as lines:
        table = list(csv.reader(lines))
    department = {row[0]: int(row[1]) for row in table if row[1].isdigit()}
    known = np.array([department[str(label)] for label in graph.labels])
    k = 20

    def clustered(vectors: Any) -> float:
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return mutual_information(k_means(vectors / np.maximum(lengths, 1e-9), 42), known)

    true = tulle.spectrum(k).truth(graph).vectors
    rows = [{"epsilon": "none (true)", "mechanism": "", "nmi": clustered(true)}]
    for epsilon in (1.0, 2.0, 3.0, 4.0, 6.0, 8.0):
        r = tulle.release(graph, tulle.spectrum(k), unit="edge", epsilon=epsilon, delta=DELTA)
        rows.append(
            {"epsilon": epsilon, "mechanism": r.mechanism, "nmi": clustered(r.value.vectors)}
        )
    rng = np.random.default_rng(1)
    rows.append(
        {"epsilon": "chance", "mechanism": "", "nmi": clustered(rng.normal(size=true.shape))}
    )
    print_table(f"communities of email-Eu-core from spectrum({k}), 42 departments", rows)


def main() -> None:
    compare()
    communities()


if __name__ == "__main__":
    main()
