"""Truncated values and levels: what one participant can do to them, by brute force."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.relations import written_out
from tests.relations.enumeration import General

import tulle
from tulle.relations.annotations import (
    ALWAYS,
    Annotation,
    Either,
    Participant,
    Together,
    either,
    together,
)
from tulle.relations.data import Relation
from tulle.relations.queries import total
from tulle.relations.truncation.totals import (
    LARGEST,
    Thresholds,
    least_level,
    predicted_level,
    truncate,
)

Item = tuple[Annotation, float]
GRID = Thresholds(theta=0.5, beta=0.35)
TAUS = (0.5, 1.0, 1.7, 3.0)
GAP = 1e-3


def triangle_relations(nodes: int, *, by_edge: bool) -> Iterator[tuple[Relation, set[int]]]:
    """Every graph's triangles as a relation over its nodes or its edges, and who takes part."""
    pairs = list(itertools.combinations(range(nodes), 2))
    place = {pair: index for index, pair in enumerate(pairs)}
    for mask in range(1 << len(pairs)):
        found = []
        for a, b, c in itertools.combinations(range(nodes), 3):
            sides = [place[a, b], place[a, c], place[b, c]]
            if all(mask >> side & 1 for side in sides):
                found.append(sides if by_edge else [a, b, c])
        offsets = np.arange(0, 3 * len(found) + 1, 3)
        members = np.array(found, dtype=np.int64).ravel()
        count = len(pairs) if by_edge else nodes
        there = {p for p in range(len(pairs)) if mask >> p & 1} if by_edge else set(range(nodes))
        yield Relation.conjunctive(offsets, members, count=count), there


@pytest.mark.parametrize(
    ("nodes", "by_edge"),
    [
        (4, False),
        (4, True),
        (5, False),
        pytest.param(5, True, marks=pytest.mark.slow),
    ],
)
def test_one_participant_moves_the_value_by_tau_and_the_level_by_one(
    nodes: int, by_edge: bool
) -> None:
    seen: dict[bytes, tuple[list[float], int]] = {}

    def measure(relation: Relation) -> tuple[list[float], int]:
        key = relation.participants.tobytes()
        if key not in seen:
            truncation = truncate(relation)
            values = [truncation.value(tau, GAP * tau) for tau in TAUS]
            seen[key] = values, least_level(truncation, GRID)
        return seen[key]

    compared = 0
    for relation, there in triangle_relations(nodes, by_edge=by_edge):
        values, level = measure(relation)
        for p in there:
            fewer, below = measure(relation.without(p))
            assert 0 <= level - below <= 1
            for tau, value, less in zip(TAUS, values, fewer, strict=True):
                assert -GAP * tau <= value - less <= tau * (1 + GAP)
            compared += 1
    assert (
        compared
        >= {(4, False): 256, (4, True): 192, (5, False): 5120, (5, True): 5120}[nodes, by_edge]
    )


def test_the_value_without_truncation_moves_further() -> None:
    """The twin: releasing the plain total with noise for tau is caught by the same comparison."""
    worst = max(
        relation.total - relation.without(0).total
        for relation, _ in triangle_relations(5, by_edge=False)
    )
    assert worst > max(TAUS)


leaf = st.integers(0, 4).map(Participant)
notes = st.recursive(
    leaf,
    lambda parts: st.one_of(
        st.lists(parts, min_size=2, max_size=3).map(lambda p: together(*p)),
        st.lists(parts, min_size=2, max_size=3).map(lambda p: either(*p)),
    ),
    max_leaves=5,
)
relations = st.lists(st.tuples(notes, st.integers(1, 3).map(float)), min_size=1, max_size=5)


def fixed_names(items: list[Item]) -> Relation:
    """Build a relation whose participants keep their numbers: five of them."""
    anchors = [(Participant(n), 0.0) for n in range(5)]
    return Relation.from_annotations([*anchors, *items], normalise=False)


@given(relations, st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_and_or_trees_have_the_same_sensitivities(items: list[Item], gone: int) -> None:
    relation = fixed_names(items)
    whole, less = (truncate(r) for r in (relation, relation.without(gone)))
    for tau in TAUS:
        moved = whole.value(tau, GAP) - less.value(tau, GAP)
        assert -2 * GAP <= moved <= tau + 2 * GAP
        assert whole.value(tau, GAP) <= relation.total + GAP
    assert 0 <= least_level(whole, GRID) - least_level(less, GRID) <= 1


@given(relations)
@settings(max_examples=40, deadline=None)
def test_the_relaxation_is_below_the_general_mechanism_and_meets_it(
    items: list[Item],
) -> None:
    relation = fixed_names(items)
    truncation, general = truncate(relation), General(relation)
    for tau in TAUS:
        assert truncation.value(tau, GAP) <= general.value(tau) + GAP
    enough = 100.0
    assert truncation.value(enough, GAP * enough) == pytest.approx(relation.total, abs=0.1)
    assert general.value(enough) == pytest.approx(relation.total)
    # The general mechanism's own sequences have the properties that its proof needs.
    assert general.sequence(0) == 0
    sizes = range(general.count)
    assert all(general.sequence(i) <= general.sequence(i + 1) for i in sizes)
    assert all(general.bounding(i) <= general.bounding(i + 1) for i in sizes)


@pytest.mark.parametrize("start", [1.0, 1 / 30, 1e-6])
def test_thresholds_never_decrease_and_end_on_their_geometric_course(start: float) -> None:
    grid = Thresholds(10.0, 0.07, start)
    taus = [grid.at(j) for j in range(400)]
    assert taus == sorted(taus)
    assert taus[0] == pytest.approx(10.0 * start)
    assert taus[-1] == pytest.approx(10.0 * np.exp(0.07 * 399), rel=1e-9)
    assert grid.at(10**9) == LARGEST


@given(relations)
@settings(max_examples=40, deadline=None)
def test_the_default_has_the_numbers_of_the_normal_form(items: list[Item]) -> None:
    """What is left as it is written and what is written out wholly are the same to a release."""
    notes = [(note.factored_form(), height) for note, height in items]
    whole = [(note.normal_form(), height) for note, height in items]
    for (short, _), (long, _) in zip(notes, whole, strict=True):
        assert {frozenset(w) for w in written_out.ways(short)} == long.clauses()
        assert all(len(set(w)) == len(w) for w in written_out.ways(short))
    one, other = (truncate(fixed_names(listed)) for listed in (notes, whole))
    for tau in TAUS:
        assert one.value(tau, GAP) == pytest.approx(other.value(tau, GAP), abs=2 * GAP)
    assert least_level(one, GRID) == least_level(other, GRID)


def test_long_expressions_that_share_nobody_stay_short() -> None:
    clauses = [either(*(Participant(3 * n + k) for k in range(3))) for n in range(12)]
    assert together(*clauses).factored_form() == together(*clauses)
    linked = together(*clauses, either(Participant(0), Participant(99)))
    assert len(linked.factored_form().parts) == 12  # type: ignore[attr-defined]


def test_writing_out_only_what_is_short_is_caught() -> None:
    """The twin: which form is taken depends on who takes part, and one then moves X by far."""
    last = Participant(4)
    notes = [((Participant(n) | last) & Participant(n), 9.0) for n in range(4)]

    def twin(items: list[Item]) -> list[Item]:
        return [(n if isinstance(n, Either | Together) and _holds_either(n) else n.normal_form(), h)
                for n, h in items]  # fmt: skip

    left = [(note.parts[0].without(4) & note.parts[1], h) for note, h in notes]  # type: ignore[attr-defined]
    moved = [
        [truncate(fixed_names(form(items))).value(3.0, GAP) for items in (notes, left)]
        for form in (list, twin, lambda items: [(n.factored_form(), h) for n, h in items])
    ]
    assert -2 * GAP <= moved[0][0] - moved[0][1] <= 3.0 + 2 * GAP
    assert -2 * GAP <= moved[2][0] - moved[2][1] <= 3.0 + 2 * GAP
    assert moved[1][1] - moved[1][0] > GAP * 10


def _holds_either(note: Annotation) -> bool:
    return isinstance(note, Either) or any(isinstance(part, Either) for part in note.parts)  # type: ignore[attr-defined]


@pytest.mark.parametrize("reply", ["empty", "zeros", "nan"])
@given(relations, st.integers(0, 4))
@settings(max_examples=8, deadline=None)
def test_no_solver_is_needed_for_an_answer(reply: str, items: list[Item], gone: int) -> None:
    """Whether there is an answer must not depend on whether a solver finds it."""

    def failing(cost, upper, lower, *_):
        if reply == "empty":
            return np.zeros(0), np.zeros(0)
        fill = np.nan if reply == "nan" else 0.0
        return np.full(len(cost), fill), np.full(len(lower), fill)

    relation = fixed_names([*items, (Participant(0), 2.0), (ALWAYS, 1.5)])
    for held in (relation, relation.without(gone)):
        honest = truncate(held)
        expected = [honest.value(tau, GAP) for tau in TAUS], least_level(honest, GRID)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tulle.lp.highs.minimise", failing)
            # Without patience the solver is asked at once, then exact arithmetic.
            patch.setattr("tulle.lp.program._PATIENCE", 0)
            left = truncate(held)
            assert [left.value(tau, GAP) for tau in TAUS] == pytest.approx(expected[0], abs=GAP)
            assert least_level(left, GRID) == expected[1]


def test_a_release_goes_through_without_a_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tulle.lp.highs.minimise", lambda *_: (np.zeros(0), np.zeros(0)))
    people = [Participant(n) for n in range(6)]
    notes = [((a | b) & (a | c), 3.0) for a, b, c in itertools.permutations(people, 3)]
    relation = Relation.from_annotations(notes, normalise=False)
    for held in (relation, relation.without(0)):
        r = tulle.release(held, total(), unit="participant", epsilon=1.0, mechanism="recursive")
        assert r.value >= 0


def test_predicted_thresholds_are_those_of_runs_within_a_tenth():
    random = np.random.default_rng(5)
    for beta in (0.2, 0.02, 0.002):
        thresholds = Thresholds(0.5, beta)
        for _ in range(10):
            members = np.sort(random.integers(0, 12, (60, 3)), axis=1)
            relation = Relation.conjunctive(3 * np.arange(61), members.ravel(), count=12)
            run = thresholds.at(least_level(truncate(relation), thresholds))
            predicted = thresholds.at(predicted_level(truncate(relation), thresholds))
            # Near the first threshold a prediction takes what loads alone say.
            nearly = 1.5 if predicted <= 1.5 * thresholds.at(0) else 1.1
            assert run <= predicted <= nearly * run * (1 + 1e-12)
