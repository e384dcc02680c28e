"""Values that are equal and yet differ: wherever rows are merged, they are one value.

Zero has two signs, DuckDB's NaN as well, decimals of PostgreSQL can end in zeros, and a column can
take "Ann" for "ann". If the engine chose which of them is kept, the order of other people's rows
would choose, and a row that is there because of either of two people would weigh what one of them
makes of it. Random statements of this kind are in ``test_grammar``.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

from tests.sql.sql_worlds import summary, without  # noqa: E402

from tulle.core.errors import QueryError  # noqa: E402
from tulle.sql.compile.statements import Compiler  # noqa: E402
from tulle.sql.data import Database  # noqa: E402
from tulle.sql.queries import gather_tuples, sql  # noqa: E402

MERGED = (
    "SELECT DISTINCT v, tag FROM t",
    "SELECT v, tag FROM t UNION SELECT v, tag FROM t",
    "SELECT v, tag FROM t INTERSECT SELECT v, tag FROM t",
    "SELECT v, tag FROM t UNION ALL SELECT DISTINCT v, tag FROM t",
    "SELECT v, tag FROM t WHERE EXISTS (SELECT 1 FROM t AS o WHERE o.v = t.v)",
    "SELECT DISTINCT who, v, tag FROM t",
    "SELECT who, v, tag FROM t UNION SELECT who, v, tag FROM t",
    "SELECT who, v, tag FROM t EXCEPT SELECT who, v, tag FROM t WHERE who > 9",
    "SELECT who, v, MAX(tag) AS tag FROM t GROUP BY who, v",
    "SELECT who, MIN(v) AS v, tag FROM t GROUP BY who, tag",
)
WEIGHTS = (
    "LENGTH(CAST(u.v AS VARCHAR))",
    "CASE WHEN CAST(u.v AS VARCHAR) LIKE '-%' THEN 100 ELSE 1 END",
    "CASE WHEN u.tag LIKE 'a%' THEN 100 ELSE 1 END",
)
DUCKDB = [
    *((1, "0.0", "ann"), (2, "-0.0", "Ann"), (1, "-0.0", "aNN"), (3, "NaN", "ann")),
    (2, "-NaN", "Ann"),
]
POSTGRES = [(1, "1.0", "ann"), (2, "1.00", "ann"), (1, "1.000", "ann"), (3, "2", "ann")]


def in_duckdb(rows: Any) -> Database:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (who INTEGER, v DOUBLE, tag VARCHAR COLLATE NOCASE)")
    for who, number, name in rows:
        sign = "-" if number.startswith("-") else ""
        value = f"{sign}CAST('{number.removeprefix('-')}' AS DOUBLE)"
        connection.execute(f"INSERT INTO t VALUES ({who}, {value}, '{name}')")
    return Database.connect(connection, owners={"t": "person: who"})


def relations(database: Database, text: str) -> Any:
    return gather_tuples(database, sql(text))  # type: ignore[arg-type]


def differing(text: str) -> list[str]:
    """Return whose leaving, and which order of rows, the relation does not foresee."""
    found = relations(in_duckdb(DUCKDB), text)
    wrong = []
    for who in (1, 2, 3):
        left = relations(in_duckdb([row for row in DUCKDB if row[0] != who]), text)
        if [summary(r, left.names) for r in left.relations] != without(found, ("person", who)):
            wrong.append(f"{who} leaves")
    for order in itertools.islice(itertools.permutations(DUCKDB), 1, None, 41):
        other = relations(in_duckdb(order), text)
        if summary(other.relations[0], other.names) != summary(found.relations[0], found.names):
            wrong.append(f"order {order}")
    return wrong


@pytest.mark.parametrize("rows", MERGED)
def test_equal_values_are_one(rows: str) -> None:
    for weight in WEIGHTS:
        text = f"SELECT SUM({weight}) FROM ({rows}) AS u"
        assert differing(text) == [], text


def test_without_one_form_leaving_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Compiler, "_same_value", lambda self, node, scope: self.value(node.this, scope)
    )
    for rows in MERGED[:4]:
        assert differing(f"SELECT SUM({WEIGHTS[1]}) FROM ({rows}) AS u"), rows


def test_postgresql_s_decimals_are_one(postgres_url: str) -> None:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(postgres_url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (who INTEGER, v NUMERIC, tag TEXT)")
        for who, number, name in POSTGRES:
            cursor.execute(f"INSERT INTO t VALUES ({who}, {number}, '{name}')")
    database = Database.connect(postgres_url, owners={"t": "who"})
    for rows in MERGED[:4]:
        found = relations(database, f"SELECT SUM({WEIGHTS[0]}) FROM ({rows}) AS u")
        kept = [weight for _, weight in found.relations[0].annotations()]
        assert set(kept) <= {1.0, 2.0, 3.0, 6.0}, rows  # "1" and "2", some of them several times
    database.close()


def test_what_has_no_one_form_is_refused() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (who INTEGER, gap INTERVAL)")
    database = Database.connect(connection, owners={"t": "who"})
    assert sql("SELECT COUNT(DISTINCT gap) FROM t").objection(database) is None
    for rows in ("SELECT DISTINCT gap FROM t", "SELECT gap FROM t UNION SELECT gap FROM t"):
        with pytest.raises(QueryError, match="CAST it AS TEXT"):
            sql(f"SELECT COUNT(*) FROM ({rows}) u WHERE CAST(u.gap AS VARCHAR) = 'x'").bind(
                database
            )


SUMS = (
    "SELECT who, SUM(v) AS s FROM d GROUP BY who",
    "SELECT who, AVG(v) AS s FROM d GROUP BY who",
    "SELECT who, SUM(DISTINCT v * 3) AS s FROM d GROUP BY who",
    "SELECT who, SUM(v) OVER (PARTITION BY who ORDER BY x) AS s FROM d",
    "SELECT a.who, (SELECT SUM(b.v) FROM d AS b WHERE b.who = a.who) AS s FROM d AS a",
)


def doubles(rows: list[tuple[int, float, int]], ranges: Any) -> Database:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE d (who INTEGER, v DOUBLE, x INTEGER)")
    connection.executemany("INSERT INTO d VALUES (?, ?, ?)", rows)
    return Database.connect(connection, owners={"d": "who"}, ranges=ranges)


@pytest.mark.parametrize("inner", SUMS)
def test_sums_of_doubles_inside_do_not_depend_on_the_order_of_rows(inner: str) -> None:
    """To the last digit, which a comparison can show; and they are the engine's, nearly."""
    draw = random.Random(1)
    rows = [(i % 3, draw.uniform(-10, 10) * 10.0 ** draw.randint(-9, 0), i) for i in range(90)]
    rows.append((1, float("inf"), 90))
    text = f"SELECT SUM(u.s) FROM ({inner}) AS u"
    bounds = {"d.v": (-10, 10)}
    with pytest.raises(QueryError, match="ranges="):
        sql(text).bind(doubles(rows, None))
    first = doubles(rows, bounds)
    shown = first._engine.read(sql(text).rewrite(first.schema).text).to_pylist()  # type: ignore[union-attr]
    for seed in range(3):
        random.Random(seed).shuffle(rows)
        again = doubles(rows, bounds)
        found = again._engine.read(sql(text).rewrite(again.schema).text).to_pylist()  # type: ignore[union-attr]
        assert sorted(map(str, found)) == sorted(map(str, shown))
    plain = duckdb.connect()
    plain.execute("CREATE TABLE d (who INTEGER, v DOUBLE, x INTEGER)")
    plain.executemany("INSERT INTO d VALUES (?, ?, ?)", [(w, min(v, 10.0), x) for w, v, x in rows])
    (answer,) = plain.execute(text).fetchone()  # type: ignore[misc]
    assert sql(text).truth(first) == pytest.approx(answer, rel=1e-9)
