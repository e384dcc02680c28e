"""The audit's view of truncation on graphs: counts through their copies, per node and per edge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tulle.audit.engine.broken import Broken
from tulle.audit.engine.kind import Description
from tulle.audit.faults import TWICE, draw_less, halve_noise, seed_source
from tulle.audit.relations.faults import (
    both_directions_full,
    epsilon_per_lane,
    forget_owner,
    free_choice,
    no_noise_at_the_stop,
    not_truncated,
    open_limit,
)
from tulle.audit.relations.kind import OPTIONS as TRUNCATION_OPTIONS
from tulle.audit.relations.kind import law_of_total
from tulle.core.mechanism import Mechanism, Parameters, Terms
from tulle.core.query import Query
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import GraphQuery, edges, k_triangles, stars, triangles
from tulle.relations.mechanisms.recursive import TruncationMechanism


@dataclass(frozen=True)
class Per(Query):
    """A question of the audit: a count, and per whom."""

    query: GraphQuery
    unit: str
    name: ClassVar[str] = "per"
    kind: ClassVar[str] = "graph"

    def truth(self, dataset: Graph) -> Any:
        return self.query.truth(dataset)

    def __str__(self) -> str:
        return f"{self.query} per {self.unit}"


NODE, EDGE = (
    tuple(Per(query, unit) for query in (edges(), triangles(), stars(2), k_triangles(2)))
    for unit in ("node", "edge")
)
TRUNCATED: tuple[Per, ...] = (*NODE, *EDGE)
"""The questions; per node, stars and k-triangles have a solver of their own."""

DRAWN_TRUNCATED = (NODE[0], NODE[2], EDGE[1])

OPTIONS: dict[str, Sequence[Parameters]] = {
    "recursive": TRUNCATION_OPTIONS["recursive"][:1],
    "sparse_vector": TRUNCATION_OPTIONS["sparse_vector"][:1],
    "race": TRUNCATION_OPTIONS["race"][:2],
}

LARGEST = 4
"""Nodes of the largest graphs: their programs are solved at every threshold."""


def describe_truncated(
    mechanism: TruncationMechanism, terms: Terms, settings: Parameters, graph: Graph
) -> Description:
    """Describe the released total of a graph's copies."""
    relation = mechanism.relation(terms, graph)
    law = law_of_total(
        mechanism, terms.query, settings, relation, lambda: mechanism.parts(terms, graph)
    )
    return Description((("answer", law),))


def small_truncated(unit: str) -> tuple[Graph, Graph]:
    """Return a hub with six others, some of them joined; and the same without a node or an edge."""
    ring = [(1, 2), (2, 3), (4, 5), (5, 6)]
    whole = Graph.from_edges([*((0, other) for other in range(1, 7)), *ring], nodes=7)
    if unit == "node":
        return whole, Graph.from_edges([(u - 1, v - 1) for u, v in ring], nodes=6)
    return whole, Graph.from_edges([*((0, other) for other in range(2, 7)), *ring], nodes=7)


def truncation_faults(real: Mapping[str, Mechanism]) -> list[Broken]:
    """Return broken versions of the recursive mechanism, the search and the race."""
    recursive, search, race = (real[name] for name in ("recursive", "sparse_vector", "race"))
    assert isinstance(recursive, TruncationMechanism)
    assert isinstance(search, TruncationMechanism)
    assert isinstance(race, TruncationMechanism)
    # Whatever is not compact goes through the tuples of copies, whose truncation is changed.
    plain = (NODE[0], NODE[1], EDGE[1])
    return [
        not_truncated(recursive, plain),
        forget_owner(recursive, plain),
        free_choice(recursive, (NODE[0], EDGE[1])),
        halve_noise(recursive, "epsilon_answer", (NODE[0], NODE[2], EDGE[1]), TWICE),
        draw_less(recursive, "epsilon_answer", NODE[:1], method="run_parts"),
        seed_source(recursive, NODE[:1]),
        not_truncated(search, plain[:2]),
        forget_owner(search, plain[:2]),
        open_limit(search, NODE[:1]),
        no_noise_at_the_stop(search, NODE[:1]),
        both_directions_full(search, (NODE[0], NODE[2])),
        draw_less(search, "epsilon_above", NODE[:1], method="run_parts"),
        seed_source(search, NODE[:1]),
        not_truncated(race, plain),
        forget_owner(race, plain),
        epsilon_per_lane(race, (NODE[0], EDGE[1])),
        draw_less(race, "epsilon", NODE[:1], method="run_parts"),
        seed_source(race, NODE[:1]),
    ]
