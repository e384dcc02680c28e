"""Medians, quantiles, ARG_MAX and spreads of one person's rows, before the two judges."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sql.compile.judges import REFUSED, wrong
from tests.sql.grammar import Asked
from tests.sql.inside_generator import LOOKED_FOR

from tulle.core.errors import QueryError
from tulle.sql.compile.ranked import Ranked
from tulle.sql.data import Database
from tulle.sql.queries import sql

ORDERS = "SELECT cust AS k, okey AS x, price AS y FROM orders"
LINES = "SELECT o.cust AS k, i.sku AS x, i.qty AS y FROM orders o JOIN item i ON o.okey = i.okey"


def asked(written: str, rows: str) -> list[Asked]:
    made = written.format(x="s.x", y="s.y")
    grouped = f"FROM ({rows}) s GROUP BY s.k"
    return [
        Asked(f"SELECT SUM(t.v) FROM (SELECT s.k, {made} AS v {grouped}) t"),
        Asked(f"SELECT COUNT(*) FROM (SELECT s.k {grouped}, s.x % 2 HAVING {made} > 1) t"),
    ]


@pytest.mark.parametrize("written", LOOKED_FOR)
def test_both_judges_agree(written: str) -> None:
    for place, (seed, unique) in enumerate([(1, False), (2, True), (3, True)]):
        assert list(wrong(asked(written, (ORDERS, LINES)[place % 2]), seed, unique=unique)) == []


def test_numbers_beyond_the_person_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin numbers the rows of everybody together."""
    windows = Ranked.windows
    monkeypatch.setattr(Ranked, "windows", lambda self, by: windows(self, []))
    found = [what for _, what in wrong(asked(LOOKED_FOR[0], ORDERS), 2, unique=True)]
    assert found
    assert REFUSED not in found


@pytest.fixture
def orders() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE orders AS SELECT * FROM (VALUES (1, 5, 'b', 1), (1, 5, 'a', 2), "
        "(1, 2, 'c', 3), (2, NULL, 'd', 1), (2, 1, NULL, 2), (3, 4, 'e', 1))"
        " t(who, price, kind, place)"
    )
    return Database.connect(connection, owners={"orders": "who"})


@pytest.mark.parametrize(
    ("chosen", "counted"),
    [
        ("ARG_MAX(kind, price) = 'a'", 1),
        ("MAX_BY(kind, place) = 'c'", 1),
        ("ARG_MIN(kind, price) IS NULL", 1),
        ("MEDIAN(price) = 5", 1),
        ("QUANTILE_CONT(price, 0.25) = 3.5", 1),
        ("PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY price DESC) = 5", 1),
        ("STDDEV_POP(price) = SQRT(2)", 1),
        ("STDDEV_SAMP(price) IS NULL", 2),
        ("BOOL_AND(price > 1)", 2),
        ("BOOL_OR(price > 4)", 1),
    ],
)
def test_ties_and_nothing_at_all(orders: Any, chosen: str, counted: int) -> None:
    """Of rows that tie the least value is taken, and what has NULL on either side is left out."""
    text = f"SELECT COUNT(*) FROM (SELECT who FROM orders GROUP BY who HAVING {chosen}) t"
    assert sql(text).truth(orders) == counted


@pytest.mark.parametrize(
    ("inner", "words"),
    [
        ("SELECT who, MODE(kind) AS v FROM orders GROUP BY who", "ARG_MAX and ARG_MIN"),
        ("SELECT who, QUANTILE_DISC(price, 0.5) AS v FROM orders GROUP BY who", "QUANTILE_CONT"),
        ("SELECT who, STRING_AGG(kind, ',') AS v FROM orders GROUP BY who", "STRING_AGG"),
        ("SELECT kind, MEDIAN(price) AS v FROM orders GROUP BY kind", "Add the column"),
        (
            "SELECT who, (SELECT MEDIAN(price) FROM orders p WHERE p.who = o.who) v FROM orders o",
            "sub-select in FROM",
        ),
    ],
)
def test_what_is_not_supported_says_what_would_do(orders: Any, inner: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        sql(f"SELECT COUNT(v) FROM ({inner}) t").bind(orders)
