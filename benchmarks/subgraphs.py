"""Times of listing subgraphs, of the relations they become, and of the compact form for stars.

Run with ``python -m benchmarks subgraphs``, with TULLE_DATA naming the folder of real data sets.
Without it a made-up network is used. Kernels are compiled beforehand. Times are for one run.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from typing import Any

import tulle
from benchmarks.common import find_data, print_table
from tulle.core.query import Query
from tulle.graphs.data import Graph
from tulle.graphs.generators import social_network
from tulle.graphs.patterns.enumeration import count_copies
from tulle.graphs.patterns.pattern import Pattern
from tulle.graphs.truncation.bundle_packing import solve_bundles
from tulle.graphs.truncation.bundles import bundles_of
from tulle.graphs.truncation.relation import relation_of

NAMES = ("ca-GrQc", "facebook_combined", "ca-HepPh")
LISTED: list[tuple[Query, str]] = [
    (tulle.edges(), "node"),
    (tulle.triangles(), "node"),
    (tulle.triangles(), "edge"),
    (tulle.stars(2), "node"),
    (tulle.stars(2), "edge"),
]
LISTED_WHEN_SMALL: list[tuple[Query, str]] = [
    (tulle.cliques(4), "node"),
    (tulle.cycles(4), "node"),
    (tulle.paths(3), "node"),
    (tulle.subgraphs("a-b, b-c, c-a, c-d"), "node"),
]
COUNTED = [
    tulle.paths(3),
    tulle.cycles(4),
    tulle.subgraphs("a-b, b-c, c-a, c-d"),
]
COUNTED_WHEN_SMALL = [tulle.paths(4), tulle.cycles(5), tulle.subgraphs("a-b, b-c, c-a, c-d, c-e")]
PARTS = (0.5, 0.2, 0.1, 0.05)
"""Thresholds, as parts of the largest load."""


def load() -> Iterator[tuple[str, Graph]]:
    files = {name: find_data(name) for name in NAMES}
    for name, file in files.items():
        if file is not None:
            yield name, Graph.read(file)
    if not any(files.values()):
        yield "made-up network", social_network(3_000, mean_degree=20, seed=1)


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def memory() -> float:
    """Return the most memory of the process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def is_small(graph: Graph) -> bool:
    """Return whether there are few enough copies to list those of larger patterns."""
    return graph.edge_count < 20_000


def listing(name: str, graph: Graph) -> list[dict[str, Any]]:
    rows = []
    for query, unit in LISTED + (LISTED_WHEN_SMALL if is_small(graph) else []):
        relation, seconds = timed(lambda query=query, unit=unit: relation_of(query, graph, unit))
        rows.append({"graph": name, "relation of": str(query), "unit": unit,
                     "copies": f"{relation.total:,.0f}", "tuples": f"{len(relation.weights):,}",
                     "seconds": seconds, "memory MB": memory()})  # fmt: skip
    return rows


def counting(name: str, graph: Graph) -> list[dict[str, Any]]:
    rows = []
    for query in COUNTED + (COUNTED_WHEN_SMALL if is_small(graph) else []):
        found, seconds = timed(lambda query=query: query.truth(graph))
        rows.append({"graph": name, "count of": str(query), "copies": f"{found:,}",
                     "seconds": seconds})  # fmt: skip
    return rows


def truncating(name: str, graph: Graph) -> list[dict[str, Any]]:
    rows = []
    for query in (tulle.stars(2), tulle.stars(3)):
        bundles, seconds = timed(lambda query=query: bundles_of(query, graph, "node"))
        loads = bundles.loads()
        for part in PARTS:
            tau = part * float(loads.max())
            bracket, spent = timed(
                lambda bundles=bundles, tau=tau: solve_bundles(bundles, tau, gap=tau / 100)
            )
            rows.append({"graph": name, "compact": str(query), "copies": f"{bundles.total:,.0f}",
                         "tau": tau, "nodes above tau": int((loads > tau).sum()),
                         "kept": bracket.middle / bundles.total, "seconds": seconds + spent,
                         "memory MB": memory()})  # fmt: skip
    return rows


MINUTE: dict[str, Any] = {
    "NAMES": ("ca-GrQc",),
}
"""What is smaller in the minute's version."""


def main() -> None:
    small = social_network(200, seed=1)
    listing("", small)
    counting("", small)
    truncating("", small)
    count_copies(small, Pattern.read("a-b"))
    listed, counted, truncated = [], [], []
    for name, graph in load():
        truncated += truncating(name, graph)
        counted += counting(name, graph)
        listed += listing(name, graph)
    print_table("Listing copies as a relation", listed)
    print_table("Counting copies without listing them", counted)
    print_table("Truncated value of the compact form, node privacy, gap tau / 100", truncated)


if __name__ == "__main__":
    main()
