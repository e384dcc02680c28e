"""A name of WITH means what it means to the engine, however often it is given."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pytest
from sqlglot import exp, parse_one

import tulle
from tulle.core.errors import QueryError
from tulle.sql.question import outer_select, with_names
from tulle.sql.question.with_names import body_of

NAMES = ("staff", "t", "T", "u")
"""Few, so that one hides another: a table's too."""


@pytest.fixture(scope="module")
def staff() -> Any:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE staff AS SELECT range AS who, range * 37 % 101 AS pay, range % 5 AS dept "
        "FROM range(200)"
    )
    database = tulle.Database.connect(connection, owners={"staff": "who"})
    yield database, connection.cursor()
    database.close()


class Names:
    """Writes statements in which bodies of WITH are nested and hide each other."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def rows(self, known: tuple[str, ...], depth: int) -> str:
        """Return a SELECT of rows of people."""
        views, known = self.views(known, depth)
        low = self.draw.randrange(40)
        source = self.draw.choice(known)
        if depth and self.draw.random() < 0.3:
            source = f"({self.rows(known, depth - 1)}) {self.draw.choice(NAMES)}"
        return f"{views}SELECT * FROM {source} WHERE pay > {low}"

    def views(self, known: tuple[str, ...], depth: int) -> tuple[str, tuple[str, ...]]:
        """Return WITH, if there is one, and the names that are known after it."""
        listed: list[str] = []
        given: set[str] = set()
        for _ in range(self.draw.choice([0, 1, 1, 2, 2]) if depth else 0):
            name = self.draw.choice(NAMES)
            if name.lower() not in given:
                listed.append(f"{name} AS ({self.rows(known, depth - 1)})")
                given.add(name.lower())
                known = (*known, name)
        return (f"WITH {', '.join(listed)} " if listed else ""), known

    def answer(self, known: tuple[str, ...], depth: int) -> str:
        """Return an aggregated SELECT, or one around it."""
        views, known = self.views(known, 2)
        if depth and self.draw.random() < 0.6:
            inner = self.answer(known, depth - 1)
            name = self.draw.choice(NAMES)
            if self.draw.random() < 0.5:
                return f"{views}SELECT dept, n FROM ({inner}) {name}"
            given = {
                part.split(" AS ")[0].lower() for part in views.removeprefix("WITH ").split(", ")
            }
            if name.lower() not in given:
                more = f"{views}, " if views else "WITH "
                last = self.draw.choice([one for one in ("staff", "u", "v") if one != name])
                after = f", {last} AS ({self.rows(known, 0)})" if last not in given else ""
                return f"{more.strip()} {name} AS ({inner}){after} SELECT dept, n FROM {name}"
        return f"{views}SELECT dept, COUNT(*) AS n FROM {self.draw.choice(known)} GROUP BY dept"


def wrong(staff: Any, seeds: range) -> list[str]:
    """Return the statements to which ours is another answer than the engine's."""
    database, plain = staff
    found, answered = [], 0
    for seed in seeds:
        text = Names(seed).answer(("staff",), 2)
        theirs = dict(plain.execute(text).fetchall())
        try:
            mine = tulle.sql(text, groups={"dept": [0, 1, 2, 3, 4]}).truth(database)
        except QueryError:
            continue
        answered += 1
        counts = {k: n for k, n in zip(mine["dept"], mine["n"], strict=True) if n}
        if counts != theirs:
            found.append(text)
    assert answered > len(seeds) // 2
    return found


def keep_all(views: Any, body: Any, own: Any) -> Any:
    """Let an inner SELECT see names that are given after it."""
    listed = [one for part in (views, own) if part is not None for one in part.expressions]
    kept = [one.copy() for one in listed if one is not body]
    return exp.With(expressions=kept) if kept else None


BROKEN = {
    "take_the_first_body": (with_names, "reversed", list),
    "keep_later_bodies": (outer_select, "_views", keep_all),
}


def test_the_innermost_name_is_meant(staff: Any) -> None:
    assert wrong(staff, range(90)) == []


@pytest.mark.parametrize("name", BROKEN)
def test_broken_versions_are_caught(staff: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*BROKEN[name], raising=False)
    assert wrong(staff, range(60))


def test_names_are_told_as_the_dialect_does() -> None:
    text = 'WITH t AS (SELECT 1 AS a) SELECT * FROM (WITH "T" AS (SELECT 2 AS a) SELECT * FROM t) q'
    for dialect, meant in (("duckdb", "T"), ("postgres", "t")):
        tree = parse_one(text, dialect=dialect)
        assert body_of(tree.find(exp.Table), dialect).alias == meant
