"""Statements over the whole supported grammar, before two judges.

The engine's own answer to the statement as it is written is ours without noise, on the whole and
after somebody's rows are deleted; and what the relation says falls when somebody leaves is what
falls when their rows are deleted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from tests.sql.compile import test_inside, test_removal
from tests.sql.compile.test_inside import SEEDS, differences, world
from tests.sql.grammar import AGGREGATES, Grammar
from tests.sql.sql_extremes import SHAPES

from tulle.core.errors import QueryError
from tulle.sql.expressions.total import ENTRIES
from tulle.sql.queries import SqlQuery, sql

STOPS = (
    *(duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException),
    duckdb.BinderException,
)
"""The engine itself stops at a value of a row, where ours has NULL, or has no such function for
these types, where ours converts. Then leaving is the only judge."""


def wrong(text: str, seed: int, *, unique: bool, people: slice = slice(None)) -> Iterator[str]:
    """Yield what is wrong with a statement's relation, or its table; nothing if it is refused."""
    database, plain, _ = world(seed, unique)
    try:
        question: Any = sql(text).bind(database)
    except QueryError:
        return
    if isinstance(question, SqlQuery):
        yield from _relation(question, seed, unique=unique, people=people)
        return
    for part in question.parts():
        if isinstance(part, SqlQuery):
            yield from _relation(part, seed, unique=unique, people=people)
    if not unique:
        return
    mine = question.truth(database)
    try:
        (theirs,) = plain.execute(text).fetchall()
    except STOPS:
        return
    for name, value in zip(mine.names, theirs, strict=True):
        if not _alike(mine[name][0], value):
            yield f"{name} is {mine[name][0]}, but the engine says {value}"


def _relation(question: SqlQuery, seed: int, *, unique: bool, people: slice) -> Iterator[str]:
    try:
        yield from differences(question, seed, unique=unique, people=people)
    except STOPS:
        yield from differences(question, seed, unique=False, people=people)


def _alike(mine: Any, theirs: Any) -> bool:
    if theirs is None:
        # SQL has no sum of nothing; here, as in all answers, it is zero.
        return mine is None or mine == 0
    if mine is None:
        return bool(math.isnan(theirs))
    return math.isclose(float(mine), float(theirs), rel_tol=1e-6, abs_tol=1e-6)


def check(start: int, count: int, depth: int, every: int = 1) -> None:
    """Judge so many statements; of those who may leave, every so many do."""
    accepted = 0
    for seed in range(start, start + count):
        text = Grammar(seed).question(depth)
        place, unique = SEEDS[seed // 4 % 4], bool(seed % 4)
        people = slice(seed % every, None, every)
        assert list(wrong(text, place, unique=unique, people=people)) == [], text
        accepted += _is_accepted(text)
    assert accepted > 0.6 * count


def _is_accepted(text: str) -> bool:
    try:
        sql(text).bind(world(1, True)[0])
    except QueryError:
        return False
    return True


@pytest.mark.parametrize("start", range(0, 80, 20))
def test_random_statements(start: int) -> None:
    check(start, 20, 1, every=3)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(10_000, 14_000, 100))
def test_thousands_of_random_statements(start: int) -> None:
    check(start, 100, 2)


def test_statements_are_made_of_every_part() -> None:
    """Every function, shape and aggregate is written by some statement of the slow suite."""
    texts = " ".join(Grammar(seed).question(2) for seed in range(10_000, 14_000))
    for entry in ENTRIES:
        longest = max(entry.written.split("{}"), key=len).format().strip(" ()")
        assert longest in texts, entry.written
    assert len({Grammar(seed).question() for seed in range(200)}) == 200
    for word in ("COUNT_IF", "FILTER", "OVER", "QUALIFY", "EXCEPT", "NOT EXISTS", "WITH", "UNION"):
        assert word in texts
    assert len(AGGREGATES) + len(SHAPES) > 40


TWINS: list[Any] = [*test_inside.TWINS, *test_removal.TWINS]
QUICK = [test_inside.keep_rows_of_nobody, test_removal.forget_distinct]
"""Those that are caught within few statements; the rest is in the slow suite."""


def check_caught(twin: Any, patch: pytest.MonkeyPatch, most: int) -> None:
    twin(patch)
    caught = (
        text
        for seed in range(most)
        for text in [Grammar(seed, loose=0.8).question(1)]
        if _fails(text, SEEDS[seed // 2 % 4], unique=bool(seed % 2))
    )
    assert next(caught, None) is not None


@pytest.mark.parametrize("twin", QUICK, ids=lambda twin: twin.__name__)
def test_a_broken_twin_is_caught(twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check_caught(twin, monkeypatch, 60)


@pytest.mark.slow
@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
def test_every_broken_twin_is_caught(twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check_caught(twin, monkeypatch, 2000)


def _fails(text: str, seed: int, *, unique: bool) -> bool:
    try:
        return next(wrong(text, seed, unique=unique), None) is not None
    except (AssertionError, KeyError, IndexError, duckdb.Error):
        # A broken version may also stop with an error of its own.
        return True
