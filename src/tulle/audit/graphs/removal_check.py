"""Truncation on graphs: does who leaves the graph leave its relation, and no more?

The recursive mechanism and the race stand on it that the relation of a neighbour is the relation
with that participant struck out. This checks it on all small graphs, per node and per edge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tulle.audit.engine.findings import Finding
from tulle.audit.relations.faults import forget_one
from tulle.graphs.data import Graph, all_graphs
from tulle.graphs.queries.counts import GraphQuery, cliques, edges, k_triangles, stars, triangles
from tulle.graphs.truncation.relation import relation_of
from tulle.relations.data import Relation

LEAVING = "leaving commutes"

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
        LEAVING,
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


def forget_owner(query: GraphQuery, graph: Graph, unit: str) -> Relation:
    """Make a broken relation: each copy forgets one of the participants that it needs."""
    return forget_one(relation_of(query, graph, unit))
