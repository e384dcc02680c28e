"""Without noise a table is what the engine answers itself, for every aggregate and combination."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import duckdb
import pytest
import sqlglot
from tests.drawn import Drawn
from tests.sql.sql_worlds import COLUMNS, OWNERS, PUBLIC, Rows, load, random_world, taking_part

import tulle

RANGES = {
    "person.age": (0, 120),
    "edge.w": (-5, 5),
    "orders.price": (-10, 50),
    "item.qty": (0, 10),
    "item.sku": (0, 10),
    "visit.minutes": (0, 60),
}
"""Wide enough that nothing is cut, so that the engine sees the same values."""

ONE_PERSON = {
    "person": (("age", "age + 1", "CASE WHEN age > 21 THEN 1 ELSE 0 END"), "city"),
    "orders": (("price", "price * 2 - 1", "ABS(price)"), "note"),
    "item": (("qty", "sku + qty"), "sku"),
}
"""Tables whose rows belong to one person each: expressions, and a column to group by."""

SEVERAL = {
    "edge x JOIN edge y ON x.b = y.a": (("x.w", "x.w - y.w", "y.w * y.w"), "x.w"),
    "edge": (("w", "ABS(w)"), "w"),
    "visit": (("minutes", "minutes + sid"), "sid"),
    "person JOIN visit ON id = pid": (("minutes", "age"), "city"),
    "(SELECT DISTINCT a, w FROM edge) t": (("w",), "a"),
}
"""Rows that need several people."""

GROUPS = {
    "city": ["ams", "ber", "nowhere", None],
    "note": ["x", "y", None, "z"],
    "sku": [1, 2, 3, 9],
    "x.w": [-2, -1, 0, 1, 7],
    "w": [-2, -1, 0, 1, 7],
    "sid": [1, 2, 3, 8],
    "a": [1, 2, 3, 99],
}

EVERYWHERE = (
    "COUNT(*)",
    "COUNT({x})",
    "COUNT(DISTINCT {x})",
    "SUM({x})",
    "SUM(DISTINCT {x})",
    "AVG({x})",
    "AVG(DISTINCT {x})",
    "VAR_POP({x})",
    "VAR_SAMP({x})",
    "STDDEV_POP({x})",
    "STDDEV_SAMP({x})",
    "COUNT_IF({x} > 1)",
    "COUNT(*) FILTER (WHERE {x} > 0)",
    "SUM({x}) FILTER (WHERE {x} <> 2)",
    "AVG({x}) FILTER (WHERE {x} > 0)",
    "VAR_POP({x}) FILTER (WHERE {x} IS NOT NULL)",
    "COUNT(DISTINCT {x}) FILTER (WHERE {x} > 0)",
    "SUM({x}) / COUNT(*)",
    "100.0 * SUM({x}) / NULLIF(COUNT({x}), 0)",
    "COALESCE(AVG({x}), -1) + COUNT(*)",
    "ROUND(AVG({x}) * AVG({x}), 2) - ABS(SUM({x}))",
    "CASE WHEN COUNT(*) > 2 THEN AVG({x}) ELSE 0 END",
    "GREATEST(SUM({x}), COUNT(*)) - LEAST(SUM({x}), 3)",
)
"""Every aggregate, and arithmetic on them; x stands for an expression over the row."""

ONE_PERSON_ONLY = (
    "MIN({x})",
    "MAX({x})",
    "MEDIAN({x})",
    "QUANTILE_CONT({x}, 0.25)",
    "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {x})",
    "PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY {x} DESC)",
    "MEDIAN({x}) FILTER (WHERE {x} > 0)",
    "MAX({x}) - MIN({x})",
)


def connect(rows: Rows) -> Any:
    connection = load(duckdb.connect(), rows)
    return tulle.Database.connect(connection, owners=OWNERS, public=PUBLIC, ranges=RANGES)


def engine_answer(rows: Rows, text: str) -> list[tuple[Any, ...]]:
    """Return what DuckDB answers; a sum of nothing, which it has not, is zero as in answers."""
    tree: Any = sqlglot.parse_one(text, read="duckdb")
    for one in [one for item in tree.expressions for one in item.find_all(sqlglot.exp.Sum)]:
        whole = one.parent if isinstance(one.parent, sqlglot.exp.Filter) else one
        whole.replace(sqlglot.exp.func("COALESCE", whole.copy(), sqlglot.exp.Literal.number(0)))
    asked = tree.sql(dialect="duckdb")
    return load(duckdb.connect(), taking_part(rows)).execute(asked).fetchall()


def compare(mine: Any, theirs: Any, text: str) -> None:
    if theirs is None:
        assert mine is None or mine == 0, (text, mine)
    elif isinstance(theirs, str):
        assert mine == theirs, text
    else:
        assert mine is not None, (text, theirs)
        # DuckDB cuts what it interpolates between decimals off to their digits.
        near = 0.0101 if isinstance(theirs, Decimal) else 1e-7
        found = float(mine), float(theirs)
        assert math.isclose(*found, rel_tol=1e-9, abs_tol=near), (text, *found)


def check_plain(rows: Rows, database: Any, text: str) -> None:
    question = tulle.sql(text)
    found = question.truth(database)
    (theirs,) = engine_answer(rows, text)
    if isinstance(found, int | float):
        compare(found, theirs[0], text)
        return
    assert len(found) == 1
    for name, answer in zip(found.names, theirs, strict=True):
        compare(found.to_dict()[name][0], answer, f"{name} in {text}")


def check_grouped(rows: Rows, database: Any, text: str, key: str, values: list[Any]) -> None:
    found = tulle.sql(text, groups={"k": values}).truth(database)
    theirs = {row[0]: row[1:] for row in engine_answer(rows, text)}
    listed = found.to_dict()
    assert found.keys == ("k",)
    names = [name for name in found.names if name != "k"]
    shown = listed["k"]
    for place, key_value in enumerate(shown):
        answers = theirs.get(key_value)
        for number, name in enumerate(names):
            mine = listed[name][place]
            if answers is not None:
                compare(mine, answers[number], f"{name} for {key_value!r} in {text}")


def statements(source: str, expressions: Any, aggregates: Any, draw: random.Random) -> str:
    count = draw.choice([2, 2, 3, 5])
    chosen = [
        f"{draw.choice(aggregates).format(x=draw.choice(expressions))} AS c{place}"
        for place in range(count)
    ]
    return f"SELECT {{key}}{', '.join(chosen)} FROM {source}"


@pytest.fixture(scope="module")
def worlds() -> list[tuple[Rows, Any]]:
    return [(rows, connect(rows)) for rows in map(random_world, range(4))]


CASES = [
    *((source, *found, (*EVERYWHERE, *ONE_PERSON_ONLY)) for source, found in ONE_PERSON.items()),
    *((source, *found, EVERYWHERE) for source, found in SEVERAL.items()),
]


def test_sums_of_nothing_are_zero_inside_expressions_too(worlds: Any) -> None:
    rows, database = worlds[0]
    spread = "GREATEST(SUM(qty), COUNT(*)) - LEAST(SUM(qty) FILTER (WHERE qty < 9), 3)"
    check_plain(rows, database, f"SELECT {spread} AS c0, COUNT(*) AS c1 FROM item WHERE qty > 99")


IDS = [case[0].split(" ")[0].strip("(") + str(place) for place, case in enumerate(CASES)]


@pytest.mark.parametrize(("source", "expressions", "key", "aggregates"), CASES, ids=IDS)
def test_every_aggregate(
    source: str, expressions: Any, key: str, aggregates: Any, worlds: Any
) -> None:
    rows, database = worlds[0]
    chosen = [f"{one.format(x=expressions[0])} AS c{place}" for place, one in enumerate(aggregates)]
    check_plain(rows, database, f"SELECT {', '.join(chosen)} FROM {source}")


AFTER = (
    " HAVING COUNT(*) >= 1 ORDER BY COUNT(*) DESC, k LIMIT 2",
    " HAVING AVG({x}) > 0 AND COUNT(*) IN (1, 2, 3) ORDER BY k DESC",
    "",
)


def check_generated(rows: Rows, database: Any, case: Any, draw: random.Random) -> None:
    source, expressions, key, aggregates = case
    text = statements(source, expressions, aggregates, draw)
    where = draw.choice(["", f" WHERE {expressions[0]} <> 3"])
    check_plain(rows, database, text.format(key="") + where)
    after = draw.choice(AFTER).format(x=expressions[0])
    grouped = text.format(key=f"{key} AS k, ") + f"{where} GROUP BY k{after}"
    check_grouped(rows, database, grouped, key, GROUPS[key])


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_generated_combinations(case: Any, worlds: Any) -> None:
    draw = random.Random(case[0])
    check_generated(*draw.choice(worlds), case, draw)


@pytest.mark.slow
@pytest.mark.timed(3)
def test_many_generated_combinations(drawn: Drawn) -> None:
    for seed in drawn.seeds():
        rows = random_world(seed)
        database = connect(rows)
        for case in CASES:
            check_generated(rows, database, case, random.Random(f"{seed} {case}"))


def test_order_and_limit_choose_the_engine_s_rows(worlds: Any) -> None:
    for rows, database in worlds[:2]:
        text = (
            "SELECT city AS k, COUNT(*) AS n, AVG(age) AS m FROM person WHERE city IS NOT NULL "
            "GROUP BY k HAVING COUNT(*) >= 1 ORDER BY n DESC, k LIMIT 1 OFFSET 1"
        )
        found = tulle.sql(text, groups={"k": ["cph", "ams", "ber"]}).truth(database)
        theirs = engine_answer(rows, text)
        assert [row[:2] for row in found.rows()] == [row[:2] for row in theirs]


ENGINES = (
    "SELECT city AS k, COUNT(*) AS n, SUM(age) AS s, AVG(age) AS m, VAR_SAMP(age) AS v,"
    " COUNT(*) FILTER (WHERE age > 21) AS o, MEDIAN(age) AS d, MAX(age) AS b,"
    " COUNT(DISTINCT age) AS u FROM person GROUP BY city ORDER BY n DESC, k"
)


def fill(execute: Any, rows: Rows) -> None:
    for table, columns in COLUMNS.items():
        execute(f"CREATE TABLE {table} ({columns})")
        for row in rows[table]:
            values = ", ".join("NULL" if v is None else repr(v) for v in row)
            execute(f"INSERT INTO {table} VALUES ({values})")


def test_postgresql_gives_the_same_table(postgres_url: str, worlds: Any) -> None:
    import adbc_driver_postgresql.dbapi as driver

    rows, duck = worlds[1]
    connecting = driver.connect(postgres_url, autocommit=True)
    with connecting as connection, connection.cursor() as cursor:
        fill(cursor.execute, rows)
    other = tulle.Database.connect(postgres_url, owners=OWNERS, public=PUBLIC, ranges=RANGES)
    question = tulle.sql(ENGINES, groups={"k": ["ams", "ber", "cph", None]})
    one, two = question.truth(duck).to_dict(), question.truth(other).to_dict()
    assert {name: pytest.approx(values, nan_ok=True) for name, values in one.items()} == two
    drawn = tulle.release(other, question, unit="participant", epsilon=10.0)
    assert drawn.value.keys == ("k",)
    other.close()


@pytest.mark.slow
def test_spark_gives_the_same_table(spark_session: Any, worlds: Any) -> None:
    _, duck = worlds[1]
    for table in COLUMNS:
        arrow = duck._engine.read(f"SELECT * FROM {table}")
        spark_session.createDataFrame(arrow).createOrReplaceTempView(table)
    other = tulle.Database.connect(spark_session, owners=OWNERS, public=PUBLIC, ranges=RANGES)
    question = tulle.sql(ENGINES, groups={"k": ["ams", "ber", "cph", None]})
    one, two = question.truth(duck).to_dict(), question.truth(other).to_dict()
    assert {name: pytest.approx(values, nan_ok=True) for name, values in one.items()} == two
    drawn = tulle.release(other, question, unit="participant", epsilon=10.0)
    assert drawn.value.keys == ("k",)
    other.close()
