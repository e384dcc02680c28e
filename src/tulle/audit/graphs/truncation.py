"""The audit's view of truncation on graphs: counts through their copies, per node and per edge.

What truncation stands on is examined as well: who leaves a graph and who leaves its relation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.broken import Broken
from tulle.audit.engine.findings import Finding
from tulle.audit.engine.kind import Description
from tulle.audit.faults import draw_less
from tulle.audit.relations.faults import (
    both_directions_full,
    epsilon_per_lane,
    forget_one,
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
from tulle.graphs.generators import all_graphs
from tulle.graphs.queries.counts import GraphQuery, cliques, edges, k_triangles, stars, triangles
from tulle.graphs.truncation.relation import relation_of
from tulle.relations.data import Relation
from tulle.relations.truncation.mechanism import TruncationMechanism


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
        draw_less(recursive, "epsilon_answer", NODE[:1], method="run_parts"),
        not_truncated(search, plain[:2]),
        forget_owner(search, plain[:2]),
        open_limit(search, NODE[:1]),
        no_noise_at_the_stop(search, NODE[:1]),
        both_directions_full(search, (NODE[0], NODE[2])),
        draw_less(search, "epsilon_above", NODE[:1], method="run_parts"),
        not_truncated(race, plain),
        forget_owner(race, plain),
        epsilon_per_lane(race, (NODE[0], EDGE[1])),
        draw_less(race, "epsilon", NODE[:1], method="run_parts"),
    ]


REMOVAL = "removal commutes"

QUESTIONS: tuple[GraphQuery, ...] = (
    edges(),
    triangles(),
    stars(2),
    stars(3),
    k_triangles(2),
    cliques(4),
)

Names = Callable[[Graph], list[Any]]
Maker = Callable[[GraphQuery, Graph, str], Relation]


def content(relation: Relation, names: list[Any]) -> Counter[frozenset[Any]]:
    """Return the weight of each set of participants, under names that outlive renumbering."""
    found: Counter[frozenset[Any]] = Counter()
    for t, weight in enumerate(relation.weights.tolist()):
        members = relation.participants[relation.offsets[t] : relation.offsets[t + 1]]
        found[frozenset(names[int(p)] for p in members)] += weight
    return found


def check_leaving(mechanism: str, unit: str, nodes: int, make: Maker = relation_of) -> Finding:
    """Compare both ways for every graph on so many nodes, everyone who may leave, all questions."""
    cases = wrong = 0
    witness = ""
    for graph in all_graphs(nodes):
        for query in QUESTIONS:
            whole = content(make(query, graph, unit), _names(graph, unit))
            for name, smaller in _leavers(graph, unit):
                expected = Counter({who: w for who, w in whole.items() if name not in who})
                seen = content(make(query, smaller, unit), _names(smaller, unit, name))
                cases += 1
                if seen != expected:
                    wrong += 1
                    witness = f"{query} without {name}"
    return Finding(
        mechanism,
        f"copies per {unit}",
        REMOVAL,
        cases,
        float(wrong > 0) * 2,
        wrong == 0,
        f"{wrong} of {cases} differ",
        witness,
    )


def _names(graph: Graph, unit: str, gone: Any = None) -> list[Any]:
    """Return the participants' lasting names, by number."""
    if unit == "edge":
        return [(int(u), int(v)) for u, v in graph.edges()]
    count = graph.node_count + (gone is not None)
    return [node for node in range(count) if node != gone]


def _leavers(graph: Graph, unit: str) -> Iterator[tuple[Any, Graph]]:
    pairs = graph.edges()
    if unit == "edge":
        for place, (u, v) in enumerate(pairs.tolist()):
            rest = np.delete(pairs, place, axis=0)
            yield (u, v), Graph.from_edges(rest, nodes=graph.node_count)
        return
    for node in range(graph.node_count):
        kept = pairs[(pairs != node).all(axis=1)]
        yield node, Graph.from_edges(kept - (kept > node), nodes=graph.node_count - 1)


def without_one_owner(query: GraphQuery, graph: Graph, unit: str) -> Relation:
    """Make a broken relation: each copy forgets one of the participants that it needs."""
    return forget_one(relation_of(query, graph, unit))
