"""Broken versions of the mechanisms for statistics, the printed bounds among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from tulle.audit.engine.broken import Broken
from tulle.audit.engine.laws import LaplaceVector, Law
from tulle.audit.faults import BOTH, TWICE, broken, halve_noise, leave_open, seed_source
from tulle.core.mechanism import Mechanism, Parameters, Terms
from tulle.core.query import Query
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.queries.local_counts import triangles_per_node, triples_per_node
from tulle.graphs.queries.statistics import (
    Statistic,
    assortativity,
    average_clustering,
    clustering,
    modularity,
    transitivity,
)

_SCALARS: tuple[Query, ...] = (
    transitivity(),
    average_clustering(),
    clustering(0),
    assortativity(),
    modularity([0, 1]),
)
_VECTORS: tuple[Query, ...] = (triangles_per_node(), clustering())


def wrong_widths(
    mechanism: Mechanism,
    what: str,
    fault: str,
    questions: Sequence[Query],
    widths: Callable[[Statistic, Graph, int, int], Sequence[int]],
) -> Broken:
    """Draw from a ladder of other widths: ``widths(question, graph, units, length)``."""

    def law(
        laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
    ) -> Mapping[str, Law]:
        assert isinstance(terms.query, Statistic)
        units, parts = int(settings["units"]), int(settings["parts"])
        rows = widths(terms.query, graph, units, int(settings["length"]))
        wrong = tuple(-(-min(max(row, 1), terms.query.cap(units)) // parts) for row in rows)
        return {"answer": replace(laws["answer"], widths=wrong)}

    return broken(mechanism, what, fault, questions, BOTH, law=law)


def printed_clustering(query: Statistic, graph: Graph, units: int, length: int) -> list[int]:
    """Return the dissertation's bound for the vector of clustering coefficients."""
    count = graph.node_count
    largest, half = int(degrees(graph).max(initial=0)), half_built(graph)
    return [
        -(-min(largest + (t + min(t, half)) // 2, count - 1) * units // count)
        for t in range(length)
    ]


def half_built(graph: Graph) -> int:
    """Return the most nodes that are adjacent to exactly one of two nodes, as printed."""
    count = graph.node_count
    adjacency = np.zeros((count, count), dtype=np.int64)
    for u, v in graph.edges().tolist():
        adjacency[u, v] = adjacency[v, u] = 1
    return max(
        (int(np.sum(adjacency[i] ^ adjacency[j])) for i, j in combinations(range(count), 2)),
        default=0,
    )


def removed_edges(query: Statistic, graph: Graph, units: int, length: int) -> list[int]:
    """Return the largest change over removed edges, on this graph, for every distance."""
    pairs = {(int(u), int(v)) for u, v in graph.edges()}
    here = query.position(graph, units)

    def moved(pair: tuple[int, int]) -> int:
        less = Graph.from_edges(sorted(pairs - {pair}), nodes=graph.node_count)
        return abs(here - query.position(less, units))

    changes = [moved(pair) for pair in pairs if len(pairs) > 1]
    return [max(changes, default=1)] * length


def undivided(
    laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
) -> Mapping[str, Law]:
    """Let weights fall by the whole decay from part to part."""
    answer = laws["answer"]
    return {"answer": replace(answer, decay=answer.decay * answer.parts)}


def printed_coefficients(
    laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
) -> Mapping[str, Law]:
    """Bound the vector of coefficients by the largest degree, as printed."""
    units, largest = int(settings["units"]), int(degrees(graph).max(initial=0))
    reaches = tuple(units * bound for bound in range(1, graph.node_count + 1))
    return {"answer": replace(laws["answer"], spread=largest, reaches=reaches)}


def printed_triples(
    laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
) -> Mapping[str, Law]:
    """Let noise follow the printed local sensitivity of triples per node."""
    printed = max(2 * int(degrees(graph).max(initial=0)) - 2, 1)
    centre = laws["answer"].centre
    scales = (Fraction(printed) / terms.epsilon,) * len(centre)
    return {"answer": LaplaceVector(centre, scales, Fraction(printed))}


def statistics_faults(real: Mapping[str, Mechanism]) -> list[Broken]:
    """Return all broken versions."""
    ladder, bound, decomposed = (
        real[name] for name in ("statistic_ladder", "private_bound", "decomposed")
    )
    return [
        halve_noise(ladder, "decay", _SCALARS, TWICE),
        halve_noise(bound, "epsilon_answer", _VECTORS, TWICE),
        halve_noise(decomposed, "scale", (triples_per_node(),)),
        seed_source(ladder, (transitivity(),)),
        seed_source(bound, (triangles_per_node(),)),
        seed_source(decomposed, (triples_per_node(),)),
        wrong_widths(
            ladder,
            "printed clustering",
            "d_max + half-built triangles: K3 moves by 3 (chapter 2, result 3)",
            (average_clustering(),),
            printed_clustering,
        ),
        wrong_widths(
            ladder,
            "deletions only",
            "local sensitivity over deletions only, as printed in a dissertation",
            _SCALARS,
            removed_edges,
        ),
        broken(
            ladder,
            "a rung's decay for each part",
            "an edge moves by all parts of a rung, and each costs as much as the rung",
            _SCALARS,
            law=undivided,
        ),
        leave_open(
            ladder,
            "spread",
            (transitivity(), average_clustering()),
            "the level of the widths without noise",
        ),
        broken(
            bound,
            "not raised",
            "nothing makes it unlikely that the bound is too low",
            _VECTORS,
            settings=lambda *_: {"shift": 0},
        ),
        broken(
            bound,
            "printed coefficients",
            "d_max for the coefficients: K3 moves by 3 (chapter 2, table 2)",
            (clustering(),),
            ("claims",),
            law=printed_coefficients,
        ),
        broken(
            real["laplace"],
            "printed triples",
            "2·d_max - 2, of the graph at hand and of removed edges (result 4)",
            (triples_per_node(),),
            BOTH,
            law=printed_triples,
        ),
    ]
