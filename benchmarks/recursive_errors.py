"""Median relative error of the recursive mechanism's defaults, per node, on many graphs.

Run with ``python -m benchmarks recursive_errors``, with TULLE_DATA naming the folder of real data
sets. The defaults were chosen on four graphs, ca-GrQc among them; the others, and the made-up ones,
have had no say in them. "best" is what somebody would get who knows the data and chooses the
threshold with the least sum of shortfall and median noise: no private mechanism can promise it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import networkx
import numpy as np

import tulle
from benchmarks.common import find_data, print_table
from benchmarks.recursive_figures import error, repeat
from tulle.core.query import Query
from tulle.core.registry import mechanisms
from tulle.graphs.data import Graph
from tulle.graphs.generators import social_network
from tulle.graphs.truncation.bundle_packing import BundleTruncation
from tulle.graphs.truncation.bundles import bundles_of
from tulle.graphs.truncation.relation import has_bundles, relation_of
from tulle.relations.truncation.totals import GAP, truncate

EPSILON = 0.8
RUNS = 201
NODES = 4_000
"""Of made-up networks."""
QUERIES = (tulle.triangles(), tulle.edges(), tulle.stars(2))
REAL = (
    "ca-GrQc",
    "netscience",
    "ca-HepTh",
    "power",
    "lastfm-asia",
    "deezer-HU",
    "deezer-europe",
    "email-Eu-core",
    "polblogs",
    "ca-CondMat",
    "as20000102",
)


def made_up() -> Iterator[tuple[str, Graph]]:
    """Yield networks of some models, with flat and with heavy tails."""
    models = {
        "small world": networkx.watts_strogatz_graph(NODES, 10, 0.1, seed=1),
        "preferential attachment": networkx.barabasi_albert_graph(NODES, 5, seed=1),
        "power-law cluster": networkx.powerlaw_cluster_graph(NODES, 6, 0.6, seed=1),
    }
    for name, model in models.items():
        yield name, Graph.from_edges(list(model.edges), nodes=model.number_of_nodes())
    yield "circles and meetings", social_network(NODES, mean_degree=16, seed=5)


def graphs() -> Iterator[tuple[str, Graph]]:
    for name in REAL:
        path = find_data(name)
        if path is not None:
            yield name, Graph.read(path)
    yield from made_up()


def best(graph: Graph, query: Query, truth: float) -> float:
    """Return the least error of one who chooses the threshold with the data at hand."""
    if has_bundles(query):
        truncation: Any = BundleTruncation(query, graph)
        top = float(bundles_of(query, graph, "node").loads().max(initial=1.0))
    else:
        truncation = truncate(relation_of(query, graph, "node"))
        top = float(truncation.problem.loads.max(initial=1.0))
    found = math.inf
    for tau in top * np.geomspace(0.1, 1.0, 10):
        short = truth - truncation.value(float(tau), GAP * float(tau))
        found = min(found, short + math.log(2) * float(tau) / EPSILON)
    return found / max(truth, 1.0)


def run() -> list[dict[str, Any]]:
    rows = []
    mechanism = mechanisms("graph")["recursive"]
    for name, graph in graphs():
        for query in QUERIES:
            truth = float(query.truth(graph))
            answers, seconds = repeat(mechanism, graph, query, "node", {}, RUNS, EPSILON)
            rows.append(
                {
                    "graph": name,
                    "question": str(query),
                    "truth": f"{truth:,.0f}",
                    "median error %": 100 * error(answers, truth),
                    "best %": 100 * best(graph, query, truth),
                    "seconds": seconds,
                }
            )
    return rows


MINUTE: dict[str, Any] = {
    "REAL": ("netscience",),
    "RUNS": 2,
    "NODES": 60,
    "QUERIES": QUERIES[:1],
}
"""What is smaller in the minute's version."""


def main() -> None:
    print_table(f"Recursive mechanism per node, epsilon = {EPSILON}, {RUNS} runs", run())


if __name__ == "__main__":
    main()
