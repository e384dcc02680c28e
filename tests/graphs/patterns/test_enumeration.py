"""Patterns, their copies, the questions that count them and the relations they become."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from tests.graphs.slow_reference import graphs
from tests.graphs.subgraph_reference import connected_patterns, copies, one_of_each

import tulle
import tulle.core.compiled as compiled_module
from tulle.core.errors import InputError, QueryError, UnitError
from tulle.core.query import parse
from tulle.core.registry import find
from tulle.graphs.data import Graph
from tulle.graphs.generators import all_graphs, erdos_renyi
from tulle.graphs.patterns.enumeration import count_copies, list_copies
from tulle.graphs.patterns.pattern import Pattern
from tulle.graphs.queries.subgraphs import PatternQuery
from tulle.graphs.truncation.relation import relation_of
from tulle.relations.data import Relation

SMALL = [pattern for nodes in (2, 3, 4) for pattern in connected_patterns(nodes)]
LARGE = connected_patterns(5)
QUESTIONS = [
    tulle.edges(),
    tulle.triangles(),
    tulle.stars(2),
    tulle.stars(3),
    tulle.k_triangles(2),
    tulle.k_triangles(3),
    tulle.cliques(3),
    tulle.cliques(4),
    tulle.paths(3),
    tulle.paths(4),
    tulle.cycles(4),
    tulle.cycles(5),
    tulle.subgraphs("a-b, b-c, c-a, c-d"),
    tulle.subgraphs("a-b, b-c, c-a, c-d, d-e"),
]


def check_copies(graph: Graph, pattern: Pattern) -> None:
    expected = copies(graph, pattern)
    found = list_copies(graph, pattern, edges=True)
    numbered = [tuple(map(int, pair)) for pair in graph.edges()]
    listed = [frozenset(numbered[edge] for edge in row) for row in found.edges.tolist()]
    assert len(listed) == len(set(listed)), "a copy is listed twice"
    assert set(listed) == expected
    assert count_copies(graph, pattern) == len(expected)
    for nodes, row in zip(found.nodes.tolist(), listed, strict=True):
        laid = {tuple(sorted((nodes[u], nodes[v]))) for u, v in pattern.edges}
        assert laid == row, "the nodes do not stand where the pattern says"


def test_there_are_as_many_patterns_as_known() -> None:
    assert [len(connected_patterns(nodes)) for nodes in (2, 3, 4)] == [1, 2, 6]
    assert len(LARGE) == 21


@pytest.mark.parametrize("nodes", [0, 1, 2, 3, 4])
def test_small_patterns_on_all_small_graphs(nodes: int) -> None:
    for graph in all_graphs(nodes):
        for pattern in SMALL:
            check_copies(graph, pattern)


def test_all_patterns_on_graphs_of_five_nodes() -> None:
    for graph in one_of_each(5):
        for pattern in SMALL + LARGE:
            check_copies(graph, pattern)


@given(graphs())
@settings(deadline=None, max_examples=25)
def test_random_graphs(graph: Graph) -> None:
    if graph.edge_count > 30:
        return
    for pattern in SMALL:
        check_copies(graph, pattern)


def test_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TULLE_THREADS", "3")
    monkeypatch.setattr(compiled_module, "_SMALL_WORK", 0)
    for pattern in SMALL:
        check_copies(erdos_renyi(9, 0.6, seed=3), pattern)


def test_counts_on_real_data(data_folder) -> None:
    graph = Graph.read(data_folder / "facebook_combined" / "facebook_combined.edges.txt")
    relation = relation_of(tulle.triangles(), graph, "node")
    assert relation.total == 1612010
    assert relation_of(tulle.stars(2), graph, "node").total == 9314849


# --- patterns -------------------------------------------------------------------------------


def test_patterns_with_a_name_become_that_question() -> None:
    assert tulle.subgraphs("a-b") == tulle.edges() == tulle.paths(1)
    assert tulle.subgraphs("a-b, b-c, c-a") == tulle.triangles() == tulle.cycles(3)
    assert tulle.subgraphs("a-b, b-c") == tulle.stars(2) == tulle.paths(2)
    assert tulle.subgraphs("a-b, b-c, c-d") == tulle.paths(3)
    assert tulle.subgraphs("a-b, b-c, c-d, d-a, a-c") == tulle.k_triangles(2)
    assert tulle.subgraphs(nx.complete_graph(5)) == tulle.cliques(5)


def test_questions_read_back_from_their_text() -> None:
    names = find("query", "graph")
    for query in (*QUESTIONS, tulle.subgraphs("a-b, b-c", where="a.x = 'it' or a-b.w >= 2.5")):
        assert parse(str(query), names) == query


@pytest.mark.parametrize(
    "wrong",
    ["", "a", "a-a", "a-b, b-a", "a-b, c-d", "a-b-c", "a-b,", 7, [(1, 2, 3)], [(0, 1), 5],
     [(v, v + 1) for v in range(5)]],
)  # fmt: skip
def test_wrong_patterns_are_refused(wrong: object) -> None:
    with pytest.raises(QueryError):
        tulle.subgraphs(wrong)


def test_wrong_sizes_are_refused() -> None:
    for wrong in (lambda: tulle.paths(0), lambda: tulle.paths(5), lambda: tulle.cycles(2),
                  lambda: tulle.cycles(6), lambda: tulle.paths(1.5)):  # fmt: skip
        with pytest.raises(InputError):
            wrong()


# --- questions ------------------------------------------------------------------------------


@pytest.mark.parametrize("query", [q for q in QUESTIONS if isinstance(q, PatternQuery)], ids=str)
def test_bounds_hold_and_are_reached(query: PatternQuery) -> None:
    for nodes in (2, 3, 4):
        worst = largest = 0
        for graph in all_graphs(nodes):
            here = query.truth(graph)
            largest = max(largest, here)
            for other in graph.neighbours("edge"):
                worst = max(worst, abs(here - query.truth(other)))
        assert worst == query.edge_sensitivity(nodes)
        assert largest == query.maximum(nodes)
    for nodes in (5, 6, 9):
        whole = Graph.from_edges(list(nx.complete_graph(nodes).edges), nodes=nodes)
        less = Graph.from_edges(whole.edges()[1:], nodes=nodes)
        assert query.truth(whole) == query.maximum(nodes)
        assert query.truth(whole) - query.truth(less) == query.edge_sensitivity(nodes)


# --- relations ------------------------------------------------------------------------------


def as_bag(relation: Relation, names: list[int] | None = None) -> Counter[frozenset[int]]:
    """The tuples as sets of participants with their weights, participants renamed."""
    bag: Counter[frozenset[int]] = Counter()
    for t, weight in enumerate(relation.weights):
        members = relation.participants[relation.offsets[t] : relation.offsets[t + 1]]
        key = frozenset(int(p) if names is None else names[p] for p in members)
        assert len(key) == len(members), "a participant stands twice in a tuple"
        assert key not in bag, "tuples with the same participants are not merged"
        bag[key] = float(weight)
    return bag


def check_leaving(query: tulle.core.query.Query, graph: Graph) -> None:
    by_node, by_edge = (relation_of(query, graph, unit) for unit in ("node", "edge"))
    assert by_node.total == by_edge.total == query.truth(graph)
    assert (by_node.count, by_edge.count) == (graph.node_count, graph.edge_count)
    pairs = graph.edges()
    for node in range(graph.node_count):
        kept = pairs[(pairs != node).all(axis=1)]
        smaller = Graph.from_edges(kept - (kept > node), nodes=graph.node_count - 1)
        names = [v for v in range(graph.node_count) if v != node]
        left = as_bag(relation_of(query, smaller, "node"), names)
        assert left == as_bag(by_node.without(node))
    for edge in range(graph.edge_count):
        smaller = Graph.from_edges(np.delete(pairs, edge, axis=0), nodes=graph.node_count)
        names = [e for e in range(graph.edge_count) if e != edge]
        left = as_bag(relation_of(query, smaller, "edge"), names)
        assert left == as_bag(by_edge.without(edge))


@pytest.mark.parametrize("query", QUESTIONS, ids=str)
def test_leaving_strikes_out_exactly_ones_own_tuples(query: tulle.core.query.Query) -> None:
    for nodes in (2, 3, 4):
        for graph in all_graphs(nodes):
            check_leaving(query, graph)
    for graph in one_of_each(5):
        check_leaving(query, graph)


@pytest.mark.slow
@pytest.mark.parametrize("query", QUESTIONS, ids=str)
def test_leaving_on_all_graphs_of_five_nodes(query: tulle.core.query.Query) -> None:
    for graph in all_graphs(5):
        check_leaving(query, graph)


def test_larger_cliques_and_groups_of_triangles() -> None:
    graph = erdos_renyi(14, 0.8, seed=5)
    for query in (tulle.cliques(6), tulle.k_triangles(4), tulle.stars(5)):
        for unit in ("node", "edge"):
            assert relation_of(query, graph, unit).total == query.truth(graph)


def test_merging_with_large_node_numbers() -> None:
    far = 2**21
    graph = Graph.from_edges([(0, 1), (1, far), (far, 0), (0, 2)], nodes=far + 1)
    relation = relation_of(tulle.stars(2), graph, "node")
    assert as_bag(relation) == {
        frozenset({0, 1, far}): 3.0,
        frozenset({0, 1, 2}): 1.0,
        frozenset({0, 2, far}): 1.0,
    }


def test_other_questions_and_units_have_no_relation() -> None:
    graph = Graph.from_edges([(0, 1)])
    with pytest.raises(QueryError, match="does not count"):
        relation_of(tulle.degrees(), graph, "node")
    with pytest.raises(UnitError):
        relation_of(tulle.edges(), graph, "row")
