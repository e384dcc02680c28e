from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from tests.sql.sql_generator import Generator
from tests.sql.sql_questions import GROUPED, QUESTIONS
from tests.sql.sql_worlds import connect, random_world

import tulle
from tulle.relations.mechanisms.single_owner import Owned
from tulle.sql.compile.gather import gather, gather_owned
from tulle.sql.compile.rewrite import Rewritten
from tulle.sql.queries import SqlQuery, sql

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

TAUS = (0.3, 1.0, 2.5, 7.0, 1e9)

SHOP = """
    CREATE TABLE orders (number INTEGER, customer INTEGER, day INTEGER);
    CREATE TABLE line (orders INTEGER, price DOUBLE);
    CREATE TABLE held (price DOUBLE);
    INSERT INTO orders SELECT range // 2, range % 7, range % 3 FROM range(40);
    INSERT INTO line SELECT range % 25, range % 9 - 3 FROM range(90);
    INSERT INTO line VALUES (3, NULL), (NULL, 4), (3, 'infinity'), (4, 1e300);
    INSERT INTO held VALUES (2), (-5);
"""
"""Numbers of orders occur twice, so that rows of two customers meet."""

JOINED = "FROM orders JOIN line ON line.orders = number"
DAYS = {"day": [0, 2, 9]}


def shop() -> Any:
    connection = duckdb.connect()
    connection.execute(SHOP)
    return tulle.Database.connect(
        connection,
        owners={"orders": "customer", "line": "orders -> orders[number]"},
        public=["held"],
    )


@lru_cache(maxsize=1)
def fetched() -> list[tuple[Rewritten, Any]]:
    """Return statements whose rows are about one participant each, with the engine's rows."""
    found = []
    for database, question in questions():
        assert question.bound is not None
        found.append((question.bound, database._engine.fetch(question.bound.text)))
    return found


def questions() -> Iterator[tuple[Any, SqlQuery]]:
    whole = shop()
    asked = [
        sql(f"SELECT COUNT(*) {JOINED}"),
        sql(f"SELECT SUM(price) {JOINED}"),
        sql(f"SELECT day, SUM(price) {JOINED} GROUP BY day", groups=DAYS),
        sql(f"SELECT day, SUM(price * price) {JOINED} GROUP BY day", groups=DAYS),
        sql("SELECT day, COUNT(*) FROM orders GROUP BY day", groups=DAYS),
        sql("SELECT COUNT(*) FROM orders WHERE day > 5"),
        sql("SELECT SUM(x) FROM (SELECT day AS x FROM orders UNION ALL SELECT price FROM held) u"),
    ]
    yield from ((whole, question.bind(whole)) for question in asked)
    for seed in range(2):
        database = connect(random_world(seed))
        texts = [*QUESTIONS[seed::2], *(Generator(seed * 50 + n).question() for n in range(10))]
        grouped = [sql(text, groups=groups) for text, groups in GROUPED]
        for question in [*map(sql, texts), *grouped]:
            bound = question.bind(database)
            if bound.alone:
                yield database, bound


def differences() -> tuple[int, int]:
    """Compare what comes straight from the rows with what comes over relations."""
    wrong = asked = 0
    for bound, rows in fetched():
        for signed in (False, True):
            mine = gather_owned(bound, rows, signed=signed)
            theirs = Owned(gather(bound, rows).relations, signed=signed)
            asked += 1
            loads = [one.sorted[one.sorted > 0].tolist() for one in (mine, theirs)]
            same = mine.groups == theirs.groups and loads[0] == loads[1]
            same = same and mine.fixed.tolist() == theirs.fixed.tolist()
            for tau in TAUS if same else ():
                same = same and np.array_equal(mine.clipped(tau), theirs.clipped(tau))
            wrong += not same
    return wrong, asked


def test_rows_of_one_owner_add_up_as_relations_do() -> None:
    wrong, asked = differences()
    assert wrong == 0
    assert asked > 30


@pytest.mark.parametrize("fault", ["rows of two", "nobody", "sign", "group"])
def test_rows_that_are_added_up_otherwise_are_caught(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twins: a row of two people is the first one's; a public row is a person's; and so on."""
    honest = Owned.of_rows

    def broken(people: Any, places: Any, amounts: Any, groups: int, *, signed: bool) -> Owned:
        if fault == "nobody":
            people = np.where(people < 0, 0, people)
        elif fault == "sign":
            signed = False
        elif fault == "group":
            places = np.zeros_like(places)
        return honest(people, places, amounts, groups, signed=signed)

    if fault == "rows of two":
        import pyarrow.compute as pc

        monkeypatch.setattr(pc, "equal", lambda one, other: pc.is_valid(one))
    else:
        monkeypatch.setattr(Owned, "of_rows", broken)
    assert differences()[0] > 0


def test_the_order_of_rows_changes_nothing() -> None:
    """Sums of floats are rounded in one order, whatever order the engine returns rows in."""
    database = shop()
    question = sql(f"SELECT day, SUM(price / 7) {JOINED} GROUP BY day", groups=DAYS).bind(database)
    assert question.bound is not None
    rows = database._engine.fetch(question.bound.text)
    generator = np.random.default_rng(1)
    found = set()
    for _ in range(10):
        shuffled = rows.take(generator.permutation(rows.num_rows))
        owned = gather_owned(question.bound, shuffled, signed=True)
        found.add((tuple(owned.sorted.tolist()), tuple(owned.clipped(1.3).tolist())))
    assert len(found) == 1
