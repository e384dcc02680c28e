"""What is public about a graph, by unit: plans, refusals and errors say nothing else."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tulle
from tulle.audit.engine.failures import public_part, speak
from tulle.audit.engine.kind import kind_of
from tulle.core import registry
from tulle.core.dataset import Facts
from tulle.core.errors import QueryError, TulleError
from tulle.core.guarantee import Guarantee
from tulle.core.query import Query
from tulle.core.unit import Unit
from tulle.graphs.data import READ_OFF, Graph
from tulle.graphs.facts import EdgeFacts, NodeFacts
from tulle.graphs.synthesis.query import MODELS
from tulle.ledger.answer import plan_for, release
from tulle.noise import SeededSource

ASKED: dict[str, list[tuple[Any, ...]]] = {
    "stars": [(2,), (50,)],
    "k_triangles": [(2,), (50,)],
    "cliques": [(3,), (50,)],
    "eigenvalues": [(1,), (2,), (40,)],
    "spectrum": [(1,), (40,)],
    "low_rank": [(1,), (40,)],
    "triangles_at": [("ann",), ("eve",), (7,), (0,), (99,)],
    "degree_of": [("ann",), ("eve",), (7,), (0,), (99,)],
    "clustering": [(), ("ann",), ("eve",), (7,)],
    "edges_within": [("aabb",), ("aabba",), ((),)],
    "mixing": [("aabb",), ("aabba",)],
    "degree_squares": [(), ("aabb",), ("aabba",)],
    "modularity": [("aabb",), ("aabba",)],
    "paths": [(1,), (3,)],
    "cycles": [(4,)],
    "subgraphs": [("a-b, b-c, c-a, c-d",), ("a-b", "a.age < 30"), ("a-b", "a.dept = b.dept")],
    "joint_degrees": [(), (2,), (50,)],
    "synthetic": [(model,) for model in MODELS],
}
"""Arguments for each question, such that some fit the graph below and others do not."""

LIKE = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=5)


def questions() -> list[Query]:
    """Every registered question, so that a new one is in by itself."""
    return [
        factory(*arguments)
        for name, factory in registry.find("query", "graph").items()
        for arguments in ASKED.get(name, [()])
    ]


def named_graph(cls: type[Graph] = Graph) -> Graph:
    edges = [("ann", "bob"), ("bob", 7), (7, "ann")]
    return cls.from_edges(edges, nodes=["ann", "bob", "cas", 7])


def near(graph: Graph, unit: str) -> list[Graph]:
    """The graph and some of its neighbours: nodes gone, nodes added, edges changed."""
    found = list(graph.neighbours(unit))
    return [graph, *found[:4], *found[4:][:1], found[-1]]


def asked(unit: str) -> Iterator[tuple[Query, str | None]]:
    known = registry.mechanisms("graph")
    for query in questions():
        yield query, None
        yield query, "no such mechanism"
        able = [name for name, item in known.items() if item.supports(query, Unit.of(unit))]
        unable = [name for name in known if name not in able]
        yield from ((query, name) for name in (*able, *unable[:1]))


def words(graphs: Sequence[Graph], unit: str, *, run: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield each question with what every graph says to it: plan, refusal, error, release."""
    kind = kind_of("graph")
    for query, name in asked(unit):
        terms: dict[str, Any] = {"unit": unit, "epsilon": 2, "mechanism": name, "like": LIKE}
        item = registry.mechanisms("graph").get(name or "")
        terms["delta"] = "1e-6" if item is None or item.needs_delta else 0
        options = {} if item is None else kind.options(item)[0]

        def released(graph: Graph) -> str:
            noise = SeededSource(1)
            answer = release(graph, query, source=noise, **terms, **options)  # noqa: B023
            # These draw their threshold privately, and the scale follows.
            used = " ".join([answer.mechanism, *(p.mechanism for p in answer.parts.values())])
            searched = "recursive" in used or "sparse_vector" in used
            drawn = ("scale", "thresholds", "penalty") if searched else ()
            # The bound before the answer, which is drawn.
            drawn += ("above",) if "degree_threshold" in used else ()
            return public_part(answer, (*kind.private, *drawn))

        said = [
            speak(partial(plan_for, graph, query, options=options, **terms)) for graph in graphs
        ]
        if run:
            said = [f"{one} {speak(partial(released, graph))}" for one, graph in zip(said, graphs)]  # noqa: B905
        yield f"{query} {name}", said


@pytest.mark.parametrize("unit", ["edge", "node"])
def test_plans_refusals_and_errors_are_the_same_on_neighbours(unit: str) -> None:
    for question, said in words(near(named_graph(), unit), unit, run=False):
        assert len(set(said)) == 1, (question, set(said))


@pytest.mark.parametrize("unit", ["edge", "node"])
def test_releases_differ_in_private_numbers_only(unit: str) -> None:
    graph = named_graph()
    found = list(graph.neighbours(unit))
    for question, said in words([graph, found[0], found[-1]], unit, run=True):
        assert len(set(said)) == 1, (question, set(said))


class Open(Graph):
    """A broken graph: what is public under one unit is shown to the other too."""

    def facts(self, unit: str | Unit) -> EdgeFacts:
        return EdgeFacts(self.node_count, self._labels, {})


def test_facts_shown_to_the_wrong_unit_are_caught() -> None:
    graph = named_graph(Open)
    smaller = Open.from_edges([("bob", 7)], nodes=["bob", "cas", 7])
    differing = [
        question
        for question, said in words([graph, smaller], "node", run=False)
        if len(set(said)) > 1
    ]
    assert any("'ann'" in question or "ann" in question for question in differing)
    assert any("edges_within" in question for question in differing)


def test_facts_are_types_by_unit() -> None:
    graph = named_graph()
    edge, node = graph.facts("edge"), graph.facts("node")
    assert isinstance(edge, EdgeFacts)
    assert (edge.nodes, dict(edge)) == (4, {"nodes": 4})
    assert [edge.find(name) for name in (7, "ann", "cas", "eve", 0, "7")] == [0, 1, 3] + [None] * 3
    assert isinstance(node, NodeFacts)
    assert dict(node) == {}
    for name in ("nodes", "find", "node_count", "labels", "edges", "csr"):
        assert not hasattr(node, name)
    plain: Facts = node
    with pytest.raises(KeyError):
        plain["nodes"]


def test_named_nodes_are_public_per_edge_only() -> None:
    graph = named_graph()
    for query in (tulle.degree_of("eve"), tulle.triangles_at(0), tulle.clustering("eve")):
        with pytest.raises(QueryError, match="no node"):
            plan_for(graph, query, unit="edge", epsilon=1)
        with pytest.raises(QueryError) as caught:
            plan_for(graph, query, unit="node", epsilon=1)
        assert "no node" not in str(caught.value)
    with pytest.raises(QueryError, match="3 labels and the graph 4"):
        plan_for(graph, tulle.modularity("aab"), unit="edge", epsilon=1)
    with pytest.raises(QueryError) as caught:
        plan_for(graph, tulle.modularity("aab"), unit="node", epsilon=1)
    assert "labels" not in str(caught.value)


def test_degree_squares_of_all_nodes_are_answered() -> None:
    star = Graph.from_edges([(0, 1), (0, 2), (0, 3)], nodes=5)
    answer = release(star, tulle.degree_squares(), unit="edge", epsilon=100, source=SeededSource(1))
    assert abs(answer.value - 36) < 20
    with pytest.raises(QueryError, match="2 labels and the graph 5"):
        release(star, tulle.degree_squares("ab"), unit="edge", epsilon=1)


EXTREMES = {
    "empty": [],
    "one edge": [(0, 1)],
    "star": [(0, leaf) for leaf in range(1, 7)],
    "complete": list(itertools.combinations(range(7), 2)),
    "two halves": [(u, v) for u in range(3) for v in range(3, 7)],
}


@pytest.mark.parametrize("name", EXTREMES)
def test_no_graph_makes_a_warning(name: str) -> None:
    graph = Graph.from_edges(EXTREMES[name], nodes=7)
    kind = kind_of("graph")
    known = registry.mechanisms("graph")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for unit in ("edge", "node"):
            for query, name in asked(unit):
                options = kind.options(known[name])[0] if name in known else {}
                terms = {"unit": unit, "epsilon": 3, "delta": "1e-6", "mechanism": name}
                try:
                    answer = release(
                        graph, query, like=LIKE, source=SeededSource(2), **terms, **options
                    )
                    repr(answer), answer.report(), answer.interval(0.95)
                except TulleError:
                    continue


# --- attributes ---------------------------------------------------------------------------------

CONDITIONS = ["a.age < 30", "a.age = 'x'", "a.age = true", "a.age = b.age", "a.wage = 1"]


def columns() -> Iterator[tuple[Any, dict[str, str]]]:
    """Columns of three values of which two are missing, or unlike, in every container."""
    for values in ([None, None, 30], [None, "x", None], [True, None, None], [1, "x", None]):
        yield values, {}
        for kind in ("number", "text", "truth value"):
            yield values, {"age": kind}
        yield np.array(values, dtype=object), {}
        yield pd.Series(values, dtype=object), {}
    yield np.array([np.nan, np.nan, 30]), {}
    yield np.array([True, False, True]), {}
    yield pd.Series([None, None, 30], dtype="Int64"), {}
    yield pd.Series([None, True, None], dtype="boolean"), {}
    yield pl.Series([None, None, 30], dtype=pl.Int64), {}
    yield pa.array([None, None, 30], pa.int64()), {}
    yield pa.array([None, None, True], pa.bool_()), {}


@pytest.mark.parametrize("unit", ["edge", "node"])
def test_kinds_of_attributes_follow_from_no_value(unit: str) -> None:
    graph = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
    told = set()
    for column, kinds in columns():
        whole = graph.with_attributes(nodes={"age": column}, kinds=kinds)
        for where in CONDITIONS:
            query = tulle.subgraphs("a-b", where)
            terms: dict[str, Any] = {"unit": unit, "epsilon": 1, "mechanism": "race"}
            terms |= {"like": whole, "options": {"bound": 4}}
            said = {
                speak(partial(plan_for, held, query, **terms))
                for held in (whole, *whole.neighbours(unit))
            }
            assert len(said) == 1, (column, kinds, where, said)
            told |= said
    assert any("compares a text with a number" in words for words in told)
    assert any(words.startswith("gives Plan") for words in told)


def test_wrong_kinds_are_refused_before_the_debit(tmp_path: Path) -> None:
    graph = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
    held = graph.with_attributes(nodes={"age": [25, 61, None]})
    study = tulle.Ledger(tmp_path / "s.ledger").open("x", held, unit="edge", epsilon=2)
    for where in ("a.age < 30", "a.wage < 30"):
        with pytest.raises(QueryError):
            study.ask(tulle.subgraphs("a-b", where), epsilon=1)
    assert float(study.remaining) == 2


def test_a_table_of_people_is_laid_out_by_label(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("who,age,dept\nzed,9,law\ncas,,art\nann,61,law\n7,x,art\n")
    graph = named_graph()
    table = pd.DataFrame({"who": ["cas", "ann"], "age": [1.0, 61.0]})
    for nodes, kinds in ((tmp_path / "people.csv", {"age": "number"}), (table, {})):
        held = graph.with_attributes(nodes=nodes, kinds=kinds)
        assert tulle.subgraphs("a-b", "a.age > 60").truth(held) == 2
        assert held.facts("node").kinds["node"]["age"] == "number"
    plain = graph.with_attributes(nodes=tmp_path / "people.csv")
    assert plain.facts("node").kinds["node"] == {"age": "text", "dept": "text"}
    assert tulle.subgraphs("a-b", "a.dept = 'law' and b.dept = 'art'").truth(plain) == 1


# --- assumptions and units ----------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["edge", "node"])
def test_every_surface_says_what_is_assumed(unit: str, tmp_path: Path) -> None:
    read_off = Graph.from_edges([("ann", "bob"), ("bob", "cas")])
    known = Graph.from_edges([("ann", "bob"), ("bob", "cas")], nodes=["ann", "bob", "cas"])
    words = READ_OFF[unit]
    query = tulle.edges() / tulle.triangles()
    terms = {"epsilon": 1, "like": LIKE, "mechanism": "laplace" if unit == "edge" else "recursive"}
    for graph, expected in ((read_off, True), (known, False)):
        file = tmp_path / f"{expected}.ledger"
        study = tulle.Ledger(file).open("x", graph, unit=unit, epsilon=9, delta="1e-5")
        for asked in (tulle.edges(), query):
            plan = study.plan(asked, **terms)
            answer = study.ask(asked, **terms)
            page = answer.report().replace("&#x27;", "'")
            for text in (
                repr(plan),
                plan._repr_html_(),
                str(plan.to_json()),
                repr(answer),
                answer._repr_html_(),
                str(answer.guarantee),
                str(answer.to_json()),
                page,
                study.report(),
                str(tulle.Release.from_json(answer.to_json()).guarantee),
                str(Guarantee.compose([answer.guarantee, answer.guarantee])),
            ):
                assert (words in text) == expected
