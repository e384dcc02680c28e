"""No row makes an engine stop: every expression that is taken, on values at the edges of types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sql_extremes import (
    TAME,
    TYPES,
    compiled,
    expressions,
    inserted,
    nested,
    rows,
    schema,
)
from sqlglot import exp

import tulle
from tulle.core.errors import QueryError
from tulle.sql import conversions, statements, total
from tulle.sql.data import Database
from tulle.sql.engines.base import EngineError
from tulle.sql.queries import relation_of, sql

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

BATCH = 120
"""So many expressions are run in one statement."""


def in_duckdb(listed: list[dict[str, str | None]]) -> Database:
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE extreme ({', '.join(f'{n} {k}' for n, k in TYPES['duckdb'].items())})"
    )
    connection.execute(f"INSERT INTO extreme VALUES {inserted('duckdb', listed)}")
    return Database.connect(connection, owners={"extreme": "who"})


def in_postgres(url: str, listed: list[dict[str, str | None]]) -> Database:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS extreme")
        kinds = ", ".join(f"{n} {k}" for n, k in TYPES["postgres"].items())
        cursor.execute(f"CREATE TABLE extreme ({kinds})")
        cursor.execute(f"INSERT INTO extreme VALUES {inserted('postgres', listed)}")
    return Database.connect(url, owners={"extreme": "who"})


def in_spark(session: Any, listed: list[dict[str, str | None]]) -> Database:
    names = ", ".join(TYPES["spark"])
    session.sql(
        f"SELECT * FROM VALUES {inserted('spark', listed)} AS t({names})"
    ).createOrReplaceTempView("extreme")
    return Database.connect(session, owners={"extreme": "who"})


def failing(database: Database, texts: list[str]) -> list[str]:
    """Return the expressions on which the engine stops."""
    dialect = database.schema.dialect

    def stops(part: list[str]) -> bool:
        taken, _, query = compiled(part, dialect)
        statement = query.sql(dialect=dialect)
        try:
            database._engine.check(statement)
            database._engine.fetch(statement)
        except (EngineError, QueryError):
            return bool(taken)
        return False

    def search(part: list[str]) -> Iterator[str]:
        if stops(part):
            if len(part) == 1:
                yield part[0]
            else:
                yield from search(part[: len(part) // 2])
                yield from search(part[len(part) // 2 :])

    taken, _, _ = compiled(texts, dialect)
    return [f for start in range(0, len(taken), BATCH) for f in search(taken[start : start + BATCH])]


def check_taken(dialect: str) -> list[str]:
    """Check that every entry is taken for some kinds, and return all that is."""
    taken, refused, _ = compiled(expressions(dialect), dialect)
    assert len(taken) > len(refused)
    return taken


def test_duckdb_stops_at_nothing() -> None:
    database = in_duckdb(rows("duckdb"))
    assert failing(database, check_taken("duckdb")) == []
    assert failing(database, nested("duckdb", 1, 300)) == []


def test_postgresql_stops_at_nothing(postgres_url: str) -> None:
    database = in_postgres(postgres_url, rows("postgres"))
    assert failing(database, check_taken("postgres")) == []
    assert failing(database, nested("postgres", 1, 300)) == []
    database.close()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.xdist_group("spark")
def test_spark_stops_at_nothing(spark_session: Any) -> None:
    database = in_spark(spark_session, rows("spark"))
    assert failing(database, check_taken("spark")) == []
    assert failing(database, nested("spark", 1, 100)) == []
