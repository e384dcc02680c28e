"""Counts within and between groups, against obvious computations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tulle
from tulle.core.errors import InputError, QueryError


@st.composite
def grouped(draw: st.DrawFn) -> tuple[tulle.Graph, list[str | None]]:
    """A small graph, and a group or none for each node."""
    count = draw(st.integers(1, 7))
    pairs = list(itertools.combinations(range(count), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    groups = draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=count, max_size=count))
    return tulle.Graph.from_edges(chosen, nodes=count), groups


@given(grouped())
def test_mixing_counts_each_pair_of_groups(case: tuple[tulle.Graph, list[str | None]]) -> None:
    graph, groups = case
    listed = ["b", "a"]
    slow = dict.fromkeys(itertools.combinations_with_replacement(listed, 2), 0)
    for u, v in graph.edges().tolist():
        for pair in {(groups[u], groups[v]), (groups[v], groups[u])}:
            if pair in slow:
                slow[pair] += 1
    attributed = graph.with_attributes(nodes={"g": groups})
    found = tulle.mixing(by="g", groups=listed).truth(attributed)
    assert found.tolist() == list(slow.values())
    labels = [str(group) for group in groups]
    whole = tulle.mixing(labels)
    assert whole.truth(graph).sum() == graph.edge_count
    inside = [a == b for a, b in itertools.combinations_with_replacement(whole.groups, 2)]
    assert whole.truth(graph)[inside].sum() == tulle.edges_within(labels).truth(graph)


def test_mixing_is_released_as_a_table_of_groups() -> None:
    graph = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3)], nodes=4)
    staff = graph.with_attributes(nodes={"dept": ["law", "law", "art", "art"]})
    asked = tulle.mixing(by="dept", groups=["art", "law"])
    release = tulle.release(staff, asked, unit="edge", epsilon=50)
    table = release.to_dict()
    assert list(table["dept"]) == ["art", "art", "law"]
    assert list(table["other dept"]) == ["art", "law", "law"]
    assert np.asarray(release.value).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"by": "dept"},
        {"groups": ["a"]},
        {"partition": "aabb", "by": "dept", "groups": ["a"]},
        {"by": "dept", "groups": ["a", "a"]},
        {"by": "dept", "groups": []},
        {"by": "dept", "groups": [float("nan")]},
    ],
)
def test_mixing_refuses_what_does_not_say_the_groups(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"groups|partition"):
        tulle.mixing(**wrong)  # type: ignore[arg-type]


def test_mixing_is_refused_before_it_is_paid_for_where_the_attribute_does_not_fit() -> None:
    graph = tulle.Graph.from_edges([(0, 1)], nodes=2)
    aged = graph.with_attributes(nodes={"age": [20, 30]}, kinds={"age": "number"})
    for data, groups, words in ((graph, ["a"], "no attribute"), (aged, ["a"], "kind number")):
        by = "age" if data is aged else "dept"
        with pytest.raises(QueryError, match=words):
            tulle.release(data, tulle.mixing(by=by, groups=groups), unit="edge", epsilon=1)
