"""Sums of doubles: how other people's rows lie does not show in the last digit of anybody's."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pytest
from sqlglot import exp

from tulle.sql.compile import engine_totals, statements
from tulle.sql.data import Database
from tulle.sql.queries import gather_tuples, sql

Row = tuple[int, float]

TEXTS = (
    "SELECT SUM(w) FROM p",
    "SELECT SUM(w * 3 - 7) FROM p",
    "SELECT SUM(bounded) FROM p",
    "SELECT SUM(money * rate) FROM p",
)
RANGES = {"p.bounded": (0, 900)}


def rows_of(seed: int, people: int = 4, each: int = 150) -> list[Row]:
    draw = random.Random(seed)
    return [
        (who, draw.choice([0.1, 0.7, 1e-9, 3.3, 812.3]) * draw.random())
        for who in range(people)
        for _ in range(each)
    ]


def layouts() -> list[list[Row]]:
    """Return the same rows of most people in other orders, and with one more person between."""
    rows = rows_of(1)
    mixed = list(rows)
    random.Random(2).shuffle(mixed)
    more = [*rows, *((9, float(i)) for i in range(300))]
    random.Random(3).shuffle(more)
    return [rows, rows[::-1], mixed, more]


def weights(database: Database, text: str) -> dict[Any, tuple[float, ...]]:
    gathered = gather_tuples(database, sql(text).bind(database))
    found: dict[Any, tuple[float, ...]] = {}
    for note, weight in gathered.relations[0].annotations():
        (clause,) = note.normal_form().clauses()
        (who,) = (gathered.names[person][1] for person in clause)
        found[who] = tuple(sorted((*found.get(who, ()), weight)))
    found.pop(9, None)
    return found


def differing(connect: Callable[[list[Row]], Database], count: int = 4) -> list[str]:
    """Return the questions for which somebody's weight follows from how the rows lie."""
    seen: dict[str, list[Any]] = {text: [] for text in TEXTS}
    for rows in layouts()[-count:]:
        database = connect(rows)
        for text in TEXTS:
            seen[text].append(weights(database, text))
            assert len(seen[text][-1]) == 4
        database.close()
    return [text for text, found in seen.items() if any(one != found[0] for one in found)]


def in_duckdb(rows: list[Row]) -> Database:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE p (id INTEGER, w DOUBLE, bounded DOUBLE, money DECIMAL(18, 6),"
        " rate DECIMAL(18, 4))"
    )
    connection.executemany(
        "INSERT INTO p VALUES (?, ?, ?, ?, ?)", [(i, w, w, w, 1 / (3 + w)) for i, w in rows]
    )
    return Database.connect(connection, owners={"p": "id"}, ranges=RANGES)


def test_the_order_of_rows_does_not_show_in_duckdb() -> None:
    assert differing(in_duckdb) == []
    database = in_duckdb(layouts()[0])
    for text in TEXTS:
        found = weights(database, text)
        total = sum(sum(one) for one in found.values())
        assert total == pytest.approx(sql(text).truth(database), rel=1e-12), text


def test_the_order_of_rows_does_not_show_in_postgresql(postgres_url: str) -> None:
    import adbc_driver_postgresql.dbapi as driver

    def connect(rows: list[Row]) -> Database:
        listed = ", ".join(f"({i}, {w!r}, {w!r}, {w!r}, {1 / (3 + w)!r})" for i, w in rows)
        with driver.connect(postgres_url, autocommit=True) as link, link.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS p")
            cursor.execute(
                "CREATE TABLE p (id INTEGER, w DOUBLE PRECISION, bounded DOUBLE PRECISION,"
                " money DECIMAL(18, 6), rate DECIMAL(18, 4))"
            )
            cursor.execute(f"INSERT INTO p VALUES {listed}")
        return Database.connect(postgres_url, owners={"p": "id"}, ranges=RANGES)

    assert differing(connect, 2) == []


ODD = ("'NaN'", "'Infinity'", "'-Infinity'", "1e308", "-1e308", "5e-324", "-5e-324", "NULL", "0.3")
MOSTS = (1e-300, 1e-140, 1e-2, 1.0, 900.0, 1e17, 1e19, 1e30, 1e200)


def test_no_number_stops_a_sum_in_postgresql(postgres_url: str) -> None:
    """Whatever the declared range: too large, too small and not a number are cut to it."""
    import adbc_driver_postgresql.dbapi as driver

    columns = ", ".join(f"v{place} DOUBLE PRECISION" for place in range(len(MOSTS)))
    rows = ", ".join(
        f"({person}, {', '.join([value] * len(MOSTS))})" for person, value in enumerate(ODD)
    )
    with driver.connect(postgres_url, autocommit=True) as link, link.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS odd")
        cursor.execute(f"CREATE TABLE odd (id INTEGER, {columns})")
        cursor.execute(f"INSERT INTO odd VALUES {rows}")
    ranges = {f"odd.v{place}": (-most, most) for place, most in enumerate(MOSTS)}
    database = Database.connect(postgres_url, owners={"odd": "id"}, ranges=ranges)
    for place, most in enumerate(MOSTS):
        text = f"SELECT SUM(v{place}) FROM odd"
        found = [sum(one) for one in weights(database, text).values()]
        assert max(map(abs, found)) <= most * (1 + 2.0**-50)
        small = min(0.3, most)
        # To a step, which is the range over two to the power of 60.
        assert np.isclose(found, small, rtol=1e-12, atol=most * 2.0**-60).any()
        assert np.isclose(found, most, rtol=1e-12, atol=0).any()
    database.close()


@pytest.mark.filterwarnings("ignore")
def test_the_order_of_rows_does_not_show_in_spark(spark_session: Any) -> None:
    def connect(rows: list[Row]) -> Database:
        import pyarrow as pa

        ids, numbers = zip(*rows, strict=True)
        decimals = pa.array([f"{w:.6f}" for w in numbers]).cast(pa.decimal128(18, 6))
        table = {"id": ids, "w": numbers, "bounded": numbers, "money": decimals, "rate": decimals}
        frame = spark_session.createDataFrame(pa.table(table))
        frame.createOrReplaceTempView("p")
        return Database.connect(spark_session, owners={"p": "id"}, ranges=RANGES)

    try:
        assert differing(connect, 2) == []
    finally:
        spark_session.catalog.dropTempView("p")


def test_a_sum_in_the_order_of_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the engine adds as it likes."""
    plain = lambda dialect, value, bound, kind: exp.Sum(this=value)  # noqa: E731
    monkeypatch.setattr(statements, "sum_of_doubles", plain)
    assert len(differing(in_duckdb)) == len(TEXTS)


def entries(rows: list[Row]) -> list[Any]:
    held = in_duckdb(rows).engine_totals("SELECT id, id, w FROM p")
    held.place(range(10), range(10))
    owners, cells, sums = held.entries()
    return [one for one in zip(owners.to_pylist(), cells, sums, strict=True) if one[0] != 9]


def test_contributions_do_not_follow_the_order_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [entries(rows) for rows in layouts()]
    assert len(found[0]) == 4
    assert all(one == found[0] for one in found)
    monkeypatch.setattr(engine_totals, "ordered_sum", lambda value, dialect: f"SUM({value})")
    twins = [entries(rows) for rows in layouts()]
    assert any(one != twins[0] for one in twins)
    assert np.allclose([one[2] for one in twins[0]], [one[2] for one in found[0]])
