"""Counts per node against an oracle: the error of each mechanism over that of the best threshold.

Run with ``python -m benchmarks node_counts``, with TULLE_DATA naming the folder of real data sets.
The oracle truncates at the threshold with the least sum of what is cut and the median noise at all
of epsilon, chosen with the data at hand: no private mechanism can promise that. The constants of
``sparse_vector`` were chosen on TUNED, by simulation on the curves of what is cut; the graphs of
HELD_BACK had no say in them. The last rows are geometric means and the worst of each group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import tulle
from benchmarks.common import find_data, print_table
from benchmarks.recursive_figures import error, repeat
from tulle.core.query import Query
from tulle.core.registry import mechanisms
from tulle.graphs.data import Graph
from tulle.graphs.truncation.relation import relation_of
from tulle.relations.truncation.totals import GAP, truncate

EPSILON = 1.0
RUNS = 1001
MECHANISMS = ("recursive", "sparse_vector")
QUERIES = (tulle.edges(), tulle.triangles())
TUNED = (
    "ca-GrQc",
    "ca-HepTh",
    "netscience",
    "power",
    "lastfm-asia",
    "email-Eu-core",
    "polblogs",
    "p2p-Gnutella08",
)
HELD_BACK = ("as20000102", "wiki-Vote", "brightkite", "email-Enron")


def oracle(graph: Graph, query: Query, truth: float) -> float:
    """Return the relative error of one who chooses the threshold with the data at hand."""
    relation = relation_of(query, graph, "node")
    loads = np.bincount(
        relation.participants, np.repeat(relation.weights, np.diff(relation.offsets))
    )
    truncation, top = truncate(relation), float(loads.max(initial=1.0))
    found = math.inf
    for tau in top * np.geomspace(1.0, 0.2, 10):
        noise = math.log(2) * float(tau) / EPSILON
        if noise < found:
            cut = truth - float(truncation.value(float(tau), GAP * float(tau)))
            found = min(found, cut + noise)
    return found / max(truth, 1.0)


def measure(names: Sequence[str], group: str) -> list[dict[str, Any]]:
    """Return a row for each graph and question, and two for the group."""
    rows: list[dict[str, Any]] = []
    for name in names:
        path = find_data(name)
        if path is None:
            continue
        graph = Graph.read(path)
        for query in QUERIES:
            truth = float(query.truth(graph))
            best = oracle(graph, query, truth)
            row = {"graph": name, "question": str(query), "oracle %": 100 * best}
            for one in MECHANISMS:
                answers, _ = repeat(
                    mechanisms("graph")[one], graph, query, "node", {}, RUNS, EPSILON
                )
                row[f"{one} %"] = 100 * error(answers, truth)
                row[f"{one} / oracle"] = row[f"{one} %"] / (100 * best)
            rows.append(row)
    if not rows:
        return []
    for what, over in (("geometric mean", _geometric_mean), ("worst", max)):
        ratios = {
            f"{one} / oracle": over([r[f"{one} / oracle"] for r in rows]) for one in MECHANISMS
        }
        rows.append({"graph": f"{group}: {what}", **ratios})
    return rows


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def run() -> list[dict[str, Any]]:
    return [*measure(TUNED, "tuned on"), *measure(HELD_BACK, "held back")]


MINUTE: dict[str, Any] = {
    "TUNED": ("netscience",),
    "HELD_BACK": ("power",),
    "RUNS": 3,
    "QUERIES": QUERIES[:1],
}
"""What is smaller in the minute's version."""


def main() -> None:
    print_table(f"Counts per node, epsilon = {EPSILON}, {RUNS} runs", run())


if __name__ == "__main__":
    main()
