from __future__ import annotations

from inspect import signature
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tulle
from tulle.core import registry
from tulle.core.errors import InputError, QueryError
from tulle.core.query import Query, enclose, evaluate, kind_of, parse
from tulle.core.registry import find
from tulle.core.unit import Unit

NAMES = find("query", "graph")


def test_expressions_print_as_they_are_parsed() -> None:
    for text in (
        "3 * triangles() / stars(2)",
        "(edges() + triangles()) * 2",
        "edges() - (triangles() - stars(3))",
        "edges() / (2 * triangles())",
        "-1 * edges()",
    ):
        assert str(parse(text, NAMES)) == text
        assert parse(str(parse(text, NAMES)), NAMES) == parse(text, NAMES)
    assert parse("triangles", NAMES) == tulle.triangles()
    assert parse("3 * triangles / stars(k=2)", NAMES) == 3 * tulle.triangles() / tulle.stars(2)
    assert parse("-edges", NAMES) == -1 * tulle.edges()


def leaves_mixed_up() -> list[str]:
    """Return the questions about a node that an expression takes for those about another one."""
    graph = tulle.Graph.from_edges([(1, 2), (1, 3), (2, 3), ("1", 3), (3, 4)])
    found = []
    for name, make in NAMES.items():
        if "node" in signature(make).parameters:
            question = make(node=1) - 3 * make(node="1")
            held = make(node=1).truth(graph) - 3 * make(node="1").truth(graph)
            if question.truth(graph) != held or parse(str(question), NAMES) != question:
                found.append(name)
    return found


def test_the_leaves_of_an_expression_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert leaves_mixed_up() == []
    monkeypatch.setattr(Query, "__str__", lambda self: f"{self.name}({self.node})")
    assert {"degree_of", "triangles_at"} <= set(leaves_mixed_up())


@pytest.mark.parametrize(
    "text",
    [
        "triangle",
        "stars()",
        "stars(2, 3)",
        "stars(two)",
        "triangles(",
        "__import__('os')",
        "edges ** 2",
        "edges if edges else edges",
        "(lambda: 1)()",
        "edges.truth",
        "'text'",
        "",
    ],
)
def test_what_is_not_a_question_is_refused(text: str) -> None:
    with pytest.raises(QueryError):
        parse(text, NAMES)


def test_parts_are_distinct_and_constants_cost_nothing() -> None:
    ratio = (tulle.triangles() + 1) / (tulle.triangles() + tulle.edges())
    assert ratio.parts() == (tulle.triangles(), tulle.edges())
    with pytest.raises(QueryError, match="asks nothing"):
        kind_of(parse("1 + 2", NAMES))


def test_questions_check_themselves() -> None:
    with pytest.raises(InputError, match="k must be at least 2"):
        tulle.stars(1)
    with pytest.raises(InputError, match="whole number"):
        tulle.cliques(3.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="whole number"):
        tulle.k_triangles(True)
    with pytest.raises(QueryError, match="more than one number"):
        tulle.degrees() * 2
    with pytest.raises(QueryError, match="finite numbers"):
        tulle.edges() + float("nan")
    with pytest.raises(QueryError, match="has no value"):
        tulle.edges() / 0


def test_truth_of_an_expression() -> None:
    triangle = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 0)], nodes=3)
    transitivity = 3 * tulle.triangles() / tulle.stars(2)
    assert transitivity.truth(triangle) == 1.0
    assert transitivity.truth(tulle.Graph.from_edges([], nodes=3)) == 0.0


values = st.floats(-100, 100)


@given(st.tuples(values, values), st.tuples(values, values), st.floats(0, 1), st.floats(0, 1))
def test_the_range_of_an_expression_contains_every_value(
    first: tuple[float, float], second: tuple[float, float], x: float, y: float
) -> None:
    ranges = {"edges()": tuple(sorted(first)), "triangles()": tuple(sorted(second))}
    inside = {
        name: min(max(low + part * (high - low), low), high)
        for (name, (low, high)), part in zip(ranges.items(), (x, y), strict=True)
    }
    e, t = tulle.edges(), tulle.triangles()
    for query in (e + t, e - t, e * t, e / t, 3 * t / (e + 2), (e - t) * (e + t)):
        low, high = enclose(query.tree(), ranges)  # type: ignore[attr-defined]
        value = evaluate(query.tree(), inside)  # type: ignore[attr-defined]
        slack = 1e-9 * (1 + abs(value))
        assert low - slack <= value <= high + slack


def _answered() -> list[type[Query]]:
    """Return every question that a mechanism of any kind of data answers, bases included."""
    found: list[type[Query]] = []
    waiting = [one for mechanism in registry.every_mechanism() for one in mechanism.answers]
    while waiting:
        one = waiting.pop()
        if one not in found and one.__module__.startswith("tulle."):
            found.append(one)
            waiting += one.__subclasses__()
    return found


@pytest.mark.parametrize("base", _answered(), ids=lambda base: base.__name__)
def test_no_question_takes_over_the_bound_of_another(base: type[Query]) -> None:
    """With a new answer and bounds of its own left out, it cannot be built, in any room."""
    with pytest.raises(TypeError, match=r"takes over|abstract"):
        type("Undeclared", (base,), {"truth": lambda self, dataset: 29})()


def test_no_mechanism_answers_a_question_that_none_declares() -> None:
    class Undeclared(Query):
        name = "undeclared"
        kind = "any"

        def truth(self, dataset: Any) -> int:
            return 29

    for mechanism in registry.every_mechanism():
        for unit in mechanism.units:
            assert not mechanism.supports(Undeclared(), Unit.of(unit)), mechanism.name
