"""A question owns its bound: one without it cannot be built, and none takes over another's."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
import pytest

import tulle
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import GraphQuery, ProfiledCount, SubgraphCount, Triangles
from tulle.graphs.queries.local_counts import BoundedVector
from tulle.graphs.queries.statistics import Statistic, Transitivity
from tulle.ledger.answer import plan_for


def wedges(graph: Graph) -> int:
    degrees = np.diff(graph.csr()[0])
    return int((degrees * (degrees - 1) // 2).sum())


@pytest.mark.parametrize(
    "base", [GraphQuery, ProfiledCount, SubgraphCount, BoundedVector, Statistic]
)
def test_a_question_without_bounds_cannot_be_built(base: type) -> None:
    undeclared = type("Undeclared", (base,), {"truth": lambda self, graph: wedges(graph)})
    with pytest.raises(TypeError, match="abstract"):
        undeclared()


@pytest.mark.parametrize("base", [Triangles, Transitivity])
def test_a_new_answer_does_not_take_over_a_bound(base: type) -> None:
    with pytest.raises(TypeError, match="takes over"):
        type("Wedges", (base,), {"truth": lambda self, graph: wedges(graph)})


@dataclass(frozen=True)
class Wedges(GraphQuery):
    """A count with a global bound and nothing else."""

    name: ClassVar[str] = "wedges"

    def truth(self, dataset: Graph) -> int:
        return wedges(dataset)

    def edge_sensitivity(self, nodes: int) -> int:
        return 2 * max(nodes - 2, 0)

    def maximum(self, nodes: int) -> int:
        return nodes * (nodes - 1) * (nodes - 2) // 2


def test_a_global_bound_alone_is_answered_by_it_alone() -> None:
    star = Graph.from_edges([(0, leaf) for leaf in range(1, 30)], nodes=31)
    plan = plan_for(star, Wedges(), unit="edge", epsilon=1.0)
    assert [offer.mechanism for offer in plan.offers] == ["laplace"]
    assert plan.chosen.settings["sensitivity"] >= wedges(star) - wedges(
        Graph.from_edges([(0, leaf) for leaf in range(1, 29)], nodes=31)
    )
    for other in (
        "ladder",
        "smoothed_ladder",
        "smooth",
        "smooth_pure",
        "recursive",
        "private_bound",
    ):
        with pytest.raises(tulle.QueryError, match="cannot answer"):
            plan_for(star, Wedges(), unit="edge", epsilon=1.0, mechanism=other)
    with pytest.raises(tulle.QueryError, match="cannot be answered per node"):
        plan_for(star, Wedges(), unit="node", epsilon=1.0)


@pytest.mark.parametrize(
    "query",
    [tulle.edges(), tulle.triangles(), tulle.degrees(), tulle.degree_distribution()],
    ids=str,
)
def test_one_edge_moves_an_answer_by_its_bounds_at_most(query: GraphQuery) -> None:
    nodes, worst, squared = 5, 0, 0
    pairs = list(combinations(range(nodes), 2))
    for bits in range(2 ** len(pairs)):
        there = [pair for place, pair in enumerate(pairs) if bits >> place & 1]
        truth = np.atleast_1d(query.truth(Graph.from_edges(there, nodes=nodes)))
        for pair in there:
            less = Graph.from_edges([other for other in there if other != pair], nodes=nodes)
            moved = truth - np.atleast_1d(query.truth(less))
            worst = max(worst, int(np.abs(moved).sum()))
            squared = max(squared, int((moved**2).sum()))
    assert worst == query.edge_sensitivity(nodes)
    assert squared == query.edge_squared(nodes)
