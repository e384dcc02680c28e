"""No row makes the engine stop: what does not fit its type, or cannot be compared, is NULL."""

from __future__ import annotations

from typing import Any

import pytest

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

from tulle.sql.compile.inside import as_written  # noqa: E402
from tulle.sql.data import Database  # noqa: E402
from tulle.sql.engines.base import EngineError  # noqa: E402
from tulle.sql.queries import relation_of, sql  # noqa: E402

TABLE = """
    CREATE TABLE t (who INTEGER, a INTEGER, b BIGINT, d DOUBLE, e DECIMAL(38, 2), h HUGEINT,
                    s VARCHAR, day DATE);
    INSERT INTO t SELECT range, 1, 2, 3.5, 4, 6, '5', DATE '2020-02-01' FROM range(9);
"""
ODD = """
    INSERT INTO t SELECT 100 + range, 2147483647, 9223372036854775807, 1e308,
        999999999999999999999999999999999999.99, 170141183460469231731687303715884105727, 'x',
        DATE '200000-01-01' FROM range(3)
"""
QUESTIONS = {
    "SELECT COUNT(*) FROM t WHERE a + 1 > 0": 9,
    "SELECT SUM(a * a) FROM t": 9,
    "SELECT SUM(b * b - 1) FROM t": 27,
    "SELECT SUM(-b - b) FROM t": -36,
    "SELECT SUM(e * 10) FROM t": 360,
    "SELECT SUM(d * 10) FROM t": 315,
    "SELECT SUM(d) FROM t": 31.5,
    "SELECT SUM(d * d) FROM t": 110.25,
    "SELECT COUNT(*) FROM t WHERE s = 5": 9,
    "SELECT COUNT(*) FROM t WHERE s <> 7": 9,
    "SELECT COUNT(*) FROM t WHERE s IN (5, 6)": 9,
    "SELECT COUNT(*) FROM t x JOIN t y ON x.s = y.h - 1": 81,
    "SELECT COUNT(*) FROM t WHERE day + INTERVAL 100000 YEAR > day": 9,
    "SELECT SUM(CASE WHEN a * 2 > 1 THEN b + 1 ELSE NULL END) FROM t": 27,
    "SELECT COUNT(DISTINCT a * a) FROM t": 1,
    "SELECT COUNT(*) FROM (SELECT b + b AS z FROM t UNION SELECT a * b FROM t) u WHERE z > 1": 2,
    "SELECT COUNT(*) FROM t WHERE who IN (SELECT b * b FROM t)": 1,
}


def connect(*statements: str) -> Any:
    connection = duckdb.connect()
    for statement in statements:
        connection.execute(statement)
    return Database.connect(connection, owners={"t": "who"})


@pytest.mark.parametrize("text", QUESTIONS)
def test_rows_that_do_not_fit_are_left_out(text: str) -> None:
    plain, odd = connect(TABLE), connect(TABLE, ODD)
    for database in (plain, odd):
        assert relation_of(database, sql(text)).total == QUESTIONS[text]
    plain.close()
    odd.close()


def test_sums_of_the_widest_numbers_are_sums_of_doubles() -> None:
    odd = connect(TABLE, ODD)
    for column, most in (("e", 1e36), ("h", 1.7e38), ("b", 9.2e18)):
        weights = relation_of(odd, sql(f"SELECT SUM({column}) FROM t")).weights
        assert len(weights) == 12
        assert max(weights) == pytest.approx(most, rel=0.01)
    many = connect(TABLE, "UPDATE t SET who = 1, e = 999999999999999999999999999999999999.99")
    assert relation_of(many, sql("SELECT SUM(e) FROM t")).total == pytest.approx(9e36)
    odd.close()
    many.close()


def test_without_the_guard_the_engine_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the same questions as they were written fail, and only with some rows."""
    monkeypatch.setattr(
        "tulle.sql.compile.rewrite.total_statement",
        lambda tree, schema, **more: tree.transform(as_written),
    )
    plain, odd = connect(TABLE), connect(TABLE, ODD)
    stopped = 0
    for text in QUESTIONS:
        relation_of(plain, sql(text))
        try:
            relation_of(odd, sql(text))
        except EngineError:
            stopped += 1
    assert stopped >= 10
    plain.close()
    odd.close()
