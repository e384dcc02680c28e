from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.relations.written_out import slope, ways

from tulle.core.errors import InputError
from tulle.relations import annotations
from tulle.relations.annotated_table import AnnotatedTable
from tulle.relations.annotations import (
    ALWAYS,
    NEVER,
    Annotation,
    Either,
    Participant,
    Together,
    either,
    together,
)
from tulle.relations.data import Relation
from tulle.relations.truncation.totals import truncate

NAMES = range(4)
leaves = st.one_of(st.sampled_from([Participant(n) for n in NAMES]), st.just(ALWAYS))
trees = st.recursive(
    leaves,
    lambda parts: st.one_of(
        st.lists(parts, min_size=2, max_size=3).map(lambda p: together(*p)),
        st.lists(parts, min_size=2, max_size=3).map(lambda p: either(*p)),
    ),
    max_leaves=6,
)
presences = st.lists(st.fractions(0, 1, max_denominator=8), min_size=4, max_size=4)


@given(trees)
def test_the_relaxation_is_the_truth_at_the_corners(note: Annotation) -> None:
    for corner in itertools.product((0, 1), repeat=len(NAMES)):
        assert note.relax(corner) == note.holds(corner)  # type: ignore[arg-type]


@given(trees, presences, presences, st.fractions(0, 1, max_denominator=4))
def test_the_relaxation_is_convex_and_grows(
    note: Annotation, first: list[Fraction], second: list[Fraction], part: Fraction
) -> None:
    between = [part * x + (1 - part) * y for x, y in zip(first, second, strict=True)]
    assert note.relax(between) <= part * note.relax(first) + (1 - part) * note.relax(second)
    larger = [max(x, y) for x, y in zip(first, second, strict=True)]
    assert note.relax(first) <= note.relax(larger)


@given(trees, presences, st.sampled_from(list(NAMES)), st.fractions(0, 1, max_denominator=8))
def test_the_slope_bounds_the_growth(
    note: Annotation, presence: list[Fraction], name: int, more: Fraction
) -> None:
    raised = [max(x, more) if n == name else x for n, x in enumerate(presence)]
    growth = note.relax(raised) - note.relax(presence)
    assert growth <= (raised[name] - presence[name]) * slope(note, name)


@given(trees, presences, st.sampled_from(list(NAMES)))
def test_leaving_is_being_absent(note: Annotation, presence: list[Fraction], name: int) -> None:
    absent = [Fraction(0) if n == name else x for n, x in enumerate(presence)]
    assert note.without(name).relax(presence) == note.relax(absent)
    assert note.normal_form().without(name).relax(presence) == note.normal_form().relax(absent)


@given(trees, st.sampled_from(list(NAMES)))
def test_the_normal_form_is_safe(note: Annotation, name: int) -> None:
    """Striking out before or after normalising gives one expression, whatever the truth table."""
    assert note.normal_form().without(name).normal_form() == note.without(name).normal_form()


def test_a_rewriting_with_the_same_truth_table_is_not_safe() -> None:
    """One participant decides how the others' annotations are written, and moves X too far.

    (a or b) and (a or c) has the truth table of a or (b and c), but half of each of a, b, c is
    enough to strike the first out, and not the second.
    """
    a, b, c = (Participant(name) for name in "abc")
    long = (a | b) & (a | c)
    short = a | (b & c)
    for corner in itertools.product((False, True), repeat=3):
        present = dict(zip("abc", corner, strict=True))
        assert long.holds(present) == short.holds(present)
    tuples, tau = 10, 1.0

    def copies(form: Annotation) -> Relation:
        def renamed(note: Annotation, i: int) -> Annotation:
            if isinstance(note, Participant):
                return Participant((i, note.name))
            assert isinstance(note, Together | Either)
            parts = (renamed(part, i) for part in note.parts)
            return (together if isinstance(note, Together) else either)(*parts)

        notes = [(renamed(form, i), 100.0) for i in range(tuples)]
        return Relation.from_annotations(notes, normalise=False)

    # A careless engine simplifies only when an eleventh participant is there: one more or less.
    careless = truncate(copies(long)).value(tau, 0.01), truncate(copies(short)).value(tau, 0.01)
    assert abs(careless[0] - careless[1]) > 4 * tau
    # Always normalising, or never, leaves both sides equal.
    notes = [Relation.from_annotations([(form, 100.0)]) for form in (long, short)]
    values = [truncate(relation).value(tau, 0.01) for relation in notes]
    assert values[0] == pytest.approx(values[1], abs=0.02)


rows = st.dictionaries(
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.sampled_from([Participant(n) for n in NAMES]),
    max_size=5,
)


@given(rows, rows, st.sampled_from(list(NAMES)))
@settings(max_examples=60)
def test_the_algebra_commutes_with_leaving(
    first: dict[tuple[int, int], Annotation],
    second: dict[tuple[int, int], Annotation],
    name: int,
) -> None:
    left, right = AnnotatedTable.of(["a", "b"], first), AnnotatedTable.of(["b", "c"], second)

    def ask(one: AnnotatedTable, two: AnnotatedTable) -> AnnotatedTable:
        joined = one.join(two)
        paths = joined.select(lambda row: row["a"] != row["c"]).project(["a", "c"])
        return paths.union(one.rename({"b": "c"})).normalise()

    whole = ask(left, right).without(name).normalise()
    gone = ask(left.without(name), right.without(name))
    assert whole.rows == gone.rows


def test_tables_refuse_what_they_cannot_do() -> None:
    table = AnnotatedTable.of(["a", "b"], {(1, 2): Participant("p")})
    with pytest.raises(InputError, match="no column 'c'"):
        table.project(["c"])
    with pytest.raises(InputError, match="equal columns"):
        table.union(table.rename({"a": "x"}))
    with pytest.raises(InputError, match="distinct"):
        AnnotatedTable.of(["a", "a"], {})
    assert "1" not in repr(table)


def test_relations_from_tables_and_arrays_agree() -> None:
    people = AnnotatedTable.of(["x"], [((n,), f"p{n}") for n in range(4)])
    pairs = people.join(people.rename({"x": "y"})).select(lambda row: row["x"] < row["y"])
    relation = Relation.from_table(pairs, weight=lambda row: row["x"] + row["y"])
    assert relation.total == sum(x + y for x in range(4) for y in range(x + 1, 4))
    assert relation.is_conjunctive
    assert [other.total for other in relation.neighbours(relation.check_unit("participant"))] == [
        sum(x + y for x in range(4) for y in range(x + 1, 4) if gone not in (x, y))
        for gone in range(4)
    ]


def test_signed_weights_split_into_two_nonnegative_parts() -> None:
    relation = Relation.conjunctive([0, 1, 2, 3], [0, 1, 2], [5.0, -2.0, 0.0])
    positive, negative = relation.parts()
    assert (positive.total, negative.total) == (5.0, 2.0)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (([1, 2], [0]), "offsets"),
        (([0, 2], [0]), "offsets"),
        (([0, 2, 1], [0]), "offsets"),
        (([0, 1], [-1]), "numbered from zero"),
        (([0, 1], [0], [np.nan]), "finite"),
        (([0, 1], [0], [1.0, 2.0]), "one finite number per tuple"),
    ],
)
def test_relations_refuse_arrays_that_do_not_fit(arguments: tuple[object, ...], what: str) -> None:
    with pytest.raises(InputError, match=what):
        Relation.conjunctive(*arguments)  # type: ignore[arg-type]
    assert either(NEVER) == NEVER


clauses = st.lists(st.sets(st.integers(0, 7), min_size=1, max_size=3), min_size=2, max_size=7).map(
    lambda listed: together(*(either(*map(Participant, clause)) for clause in listed))
)


def has_the_ways_of_the_normal_form(note: Annotation) -> bool:
    """Neither a way that contains another nor one who is met twice: both would change burdens."""
    found = ways(note.factored_form())
    return {frozenset(way) for way in found} == note.clauses() and all(
        len(set(way)) == len(way) for way in found
    )


@given(clauses)
@settings(max_examples=300)
def test_linked_clauses_are_divided_without_changing_their_ways(note: Annotation) -> None:
    assert has_the_ways_of_the_normal_form(note)


def test_a_division_that_lets_others_stand_in_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: ways with x need nobody to leave. The relaxation is the same, the ways are not."""
    listed = [(0, 1, 2), (0, 3, 4), (1, 3, 5), (2, 4, 5)]
    note = together(*(either(*map(Participant, clause)) for clause in listed))
    assert has_the_ways_of_the_normal_form(note)
    real = annotations._without

    def stays(parts, people):
        return real(parts, people if len(people) < 2 else ())

    monkeypatch.setattr(annotations, "_without", stays)
    assert not has_the_ways_of_the_normal_form(note)


def test_many_linked_clauses_stay_short() -> None:
    """Clauses in a ring, each sharing one with the next: ways are millions, the form is short."""
    ring = together(
        *(either(*map(Participant, (2 * n, 2 * n + 1, (2 * n + 2) % 40))) for n in range(20))
    )

    def length(note: Annotation) -> int:
        return sum(map(length, note.parts)) if isinstance(note, Together | Either) else 1

    assert length(ring.factored_form()) < 2_000
