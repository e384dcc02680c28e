"""Conditions on attributes: what they mean, and what is refused."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from tests.graphs.subgraph_reference import layings

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.graphs.data import Graph
from tulle.graphs.generators import all_graphs, erdos_renyi
from tulle.graphs.patterns.attributes import AttributedGraph
from tulle.graphs.patterns.conditions import AttributeTerm
from tulle.graphs.patterns.enumeration import list_copies
from tulle.graphs.patterns.pattern import Pattern
from tulle.graphs.truncation.relation import relation_of

SIGNS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
         ">": operator.gt, ">=": operator.ge}  # fmt: skip
ASKED = [
    ("a-b", "a.age < 30"),
    ("a-b", "a.dept = b.dept"),
    ("a-b", "a.age < b.age and a-b.weight >= 2"),
    ("a-b, b-c", "b.dept = 'law'"),
    ("a-b, b-c", "a.age < c.age"),
    ("a-b, b-c", "a-b.weight > b-c.weight and a.lead = true"),
    ("a-b, b-c, c-a", "a.dept != b.dept and b.dept != c.dept and a.dept != c.dept"),
    ("a-b, b-c, c-a", "a.age <= 20 or a.lead = true and b.lead = false"),
    ("a-b, b-c, c-a, c-d", "d.dept = c.dept and a-b.weight = 3"),
    ("a-b, b-c, c-d, d-a", "a.age > 25 and c.age > 25"),
    ("a-b, b-c, c-d, d-a, a-c", "b.dept != d.dept or a-c.weight < 2.5"),
]


def attributed(graph: Graph, seed: int) -> AttributedGraph:
    random = np.random.default_rng(seed)
    nodes, edges = graph.node_count, graph.edge_count
    age = random.integers(15, 45, nodes).astype(float)
    age[random.random(nodes) < 0.1] = np.nan
    dept = [[None, "law", "art", "law"][i] for i in random.integers(0, 4, nodes)]
    return AttributedGraph.of(
        graph,
        nodes={
            "age": age,
            "dept": np.array(dept, dtype=object),
            "lead": random.random(nodes) < 0.5,
        },
        edges={"weight": random.integers(1, 5, edges)},
    )


def slow_copies(graph: AttributedGraph, pattern: Pattern) -> set[frozenset[tuple[int, int]]]:
    edge_of = {tuple(map(int, pair)): number for number, pair in enumerate(graph.edges())}

    def value(side: object, laid: dict[int, int]) -> object:
        if not isinstance(side, AttributeTerm):
            return side.value
        place = sorted(laid[node] for node in side.place)
        if len(place) == 1:
            found = graph.node_attributes[side.name][place[0]]
        else:
            found = graph.edge_attributes[side.name][edge_of[place[0], place[1]]]
        return None if found is None or found != found else found

    def holds(laid: dict[int, int]) -> bool:
        for parts in pattern.conditions:
            pairs = [(p.sign, value(p.left, laid), value(p.right, laid)) for p in parts]
            if all(x is not None and y is not None and SIGNS[s](x, y) for s, x, y in pairs):
                return True
        return False

    return {
        frozenset(tuple(sorted((laid[u], laid[v]))) for u, v in pattern.edges)
        for laid in layings(graph, pattern)
        if holds(laid)
    }


@pytest.mark.parametrize(("shape", "where"), ASKED)
def test_a_copy_counts_when_some_laying_fulfils_the_conditions(shape: str, where: str) -> None:
    pattern = Pattern.read(shape, where)
    query = tulle.subgraphs(shape, where)
    for seed in range(6):
        graph = attributed(erdos_renyi(8, 0.6, seed=seed), seed)
        pairs = [tuple(map(int, pair)) for pair in graph.edges()]
        rows = list_copies(graph, pattern, edges=True).edges.tolist()
        listed = [frozenset(pairs[edge] for edge in row) for row in rows]
        expected = slow_copies(graph, pattern)
        assert len(listed) == len(set(listed)) == len(expected)
        assert set(listed) == expected
        assert query.truth(graph) == len(expected)


@pytest.mark.parametrize(("shape", "where"), ASKED)
def test_leaving_with_attributes(shape: str, where: str) -> None:
    query = tulle.subgraphs(shape, where)
    for seed in range(3):
        graph = attributed(erdos_renyi(6, 0.7, seed=seed), seed)
        by_node, by_edge = (relation_of(query, graph, unit) for unit in ("node", "edge"))
        for node, smaller in enumerate(graph.neighbours("node")):
            assert relation_of(query, smaller, "node").total == by_node.without(node).total
        for edge, smaller in enumerate(graph.neighbours("edge")):
            assert relation_of(query, smaller, "edge").total == by_edge.without(edge).total


def test_conditions_never_raise_the_bounds() -> None:
    query = tulle.subgraphs("a-b, b-c, c-d", where="a.x = 1")
    assert query.edge_sensitivity(7) == tulle.paths(3).edge_sensitivity(7)
    for graph in all_graphs(4):
        whole = AttributedGraph.of(graph, nodes={"x": np.ones(4)})
        assert query.truth(whole) == tulle.paths(3).truth(graph)


def test_attributes_are_checked_when_given() -> None:
    graph = Graph.from_edges([(0, 1), (1, 2)])
    for wrong in ([1, 2], [b"a", b"b", b"c"], [[1], [2], [3]], [1 + 2j, 1, 1]):
        with pytest.raises(InputError):
            AttributedGraph.of(graph, nodes={"x": wrong})
    with pytest.raises(InputError, match="must be one of: number, text, truth value"):
        AttributedGraph.of(graph, nodes={"x": [1, 2, 3]}, kinds={"x": "colour"})
    with pytest.raises(InputError, match="not given: y"):
        AttributedGraph.of(graph, nodes={"x": [1, 2, 3]}, kinds={"y": "number"})
    with pytest.raises(InputError, match="name for an attribute"):
        AttributedGraph.of(graph, nodes={"x y": [1, 2, 3]})
    assert "61" not in repr(AttributedGraph.of(graph, nodes={"x": [61, 61, 61]}))


@pytest.mark.parametrize(
    "where",
    ["", "a.x", "a.x <", "a.x < 3 and", "a.x ~ 3", "q.x = 1", "a-c.w = 1", "1 = 2", "a.x = b.x c",
     "a.x = b", "not a.x = 1", "(a.x = 1)"],
)  # fmt: skip
def test_unreadable_conditions_are_refused(where: str) -> None:
    with pytest.raises(QueryError):
        tulle.subgraphs("a-b, b-c", where=where)


def test_unknown_and_unlike_attributes_are_refused_whatever_the_data() -> None:
    graph = Graph.from_edges([(0, 1)], nodes=2)
    kinds = {"age": "number"}
    staff = AttributedGraph.of(graph, nodes={"age": [1, 2], "dept": ["x", "y"]}, kinds=kinds)
    empty = AttributedGraph.of(
        Graph.from_edges([], nodes=2), nodes={"age": [None, 2], "dept": [None, None]}, kinds=kinds
    )
    for held in (staff, empty):
        with pytest.raises(QueryError, match="no attribute 'wage'"):
            tulle.subgraphs("a-b", where="a.wage > 3").truth(held)
        with pytest.raises(QueryError, match="compares a number with a text"):
            tulle.subgraphs("a-b", where="a.age = b.dept").truth(held)
        with pytest.raises(QueryError, match="compares a text with a number"):
            tulle.subgraphs("a-b", where="a.dept = 3").truth(held)
    with pytest.raises(QueryError, match="with_attributes"):
        tulle.subgraphs("a-b", where="a.age > 3").truth(graph)
