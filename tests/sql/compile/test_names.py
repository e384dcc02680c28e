"""Which table and which column: names are resolved once, when connecting, and used in full."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tulle
import tulle.sql.compile.owned_rows
from tulle.core.errors import QueryError
from tulle.sql.data import Database
from tulle.sql.engines.duckdb.engine import DuckDB
from tulle.sql.queries import relation_of, sql

COUNT = sql("SELECT COUNT(*) FROM p")
"""Asked of a table that has one row; whatever hides it has seven."""

OWNERS = {"p": "id"}


def seven(kind: str, name: str) -> str:
    numbers = " UNION ALL ".join(f"SELECT {i} AS id, 1 AS x" for i in range(7))
    return f"CREATE {kind} {name} AS {numbers}"


def one(name: str) -> str:
    return f"CREATE TABLE {name} AS SELECT 1 AS id, 1 AS x"


def in_duckdb(tmp_path: Path) -> tuple[Any, Callable[[], Database]]:
    connection = duckdb.connect()
    for statement in (
        one("p"),
        "CREATE SCHEMA other",
        seven("TABLE", "other.p"),
        f"ATTACH '{tmp_path / 'far.duckdb'}' AS far",
        seven("TABLE", "far.p"),
    ):
        connection.execute(statement)
    return connection.execute, lambda: Database.connect(connection, owners=OWNERS)


DUCKDB_CHANGES = [
    "USE other",
    "USE far",
    "SET search_path = 'other,main'",
    "SET schema = 'other'",
    seven("TEMP TABLE", "p"),
    seven("TEMP VIEW", "p"),
    seven("TEMP TABLE", '"P"'),
]


@pytest.mark.parametrize("change", DUCKDB_CHANGES)
def test_duckdb_reads_the_table_that_was_connected_to(change: str, tmp_path: Path) -> None:
    execute, connect = in_duckdb(tmp_path)
    database = connect()
    execute(change)
    assert relation_of(database, COUNT).total == COUNT.truth(database) == 1
    assert database.participants() == [("participant", 1)]
    assert COUNT.objection(database) is None


def test_duckdb_takes_the_schema_that_is_the_current_one_when_connecting(tmp_path: Path) -> None:
    execute, connect = in_duckdb(tmp_path)
    for change, total in (("USE other", 7), ("USE memory.main", 1), ("USE far", 7)):
        execute(change)
        database = connect()
        execute("USE memory.main")
        assert relation_of(database, COUNT).total == COUNT.truth(database) == total, change


def test_a_private_table_is_not_read_as_a_public_one_of_its_name() -> None:
    """The private table p must not be read in place of another schema's public one."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE p AS SELECT range AS id FROM range(100)")
    connection.execute("CREATE SCHEMA open; CREATE TABLE open.p AS SELECT 1 AS id; USE open")
    database = Database.connect(connection, owners={}, public=["p"])
    connection.execute("USE main")
    assert relation_of(database, COUNT).total == 1


def test_a_short_name_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: tables by their short names, on a cursor that looks where the connection does."""
    full = tulle.sql.compile.owned_rows._called

    def short(schema: Any, table: str, name: str) -> Any:
        found = full(schema, table, name)
        found.set("db", None)
        found.set("catalog", None)
        return found

    monkeypatch.setattr(tulle.sql.compile.owned_rows, "_called", short)
    monkeypatch.setattr(DuckDB, "_cursor", lambda self: closing(self._connection.cursor()))
    execute, connect = in_duckdb(tmp_path)
    execute("USE other")
    assert relation_of(connect(), COUNT).total == 1  # and 7 are in the table that was connected to


def test_a_python_variable_is_no_table() -> None:
    connection = duckdb.connect()
    connection.execute(one("p"))
    database = Database.connect(connection, owners=OWNERS)
    connection.execute("DROP TABLE p")
    p = connection.sql("SELECT 1 AS id, 1 AS x UNION ALL SELECT 2, 2").to_arrow_table()
    assert p.num_rows == 2
    with pytest.raises(tulle.TulleError):
        database._engine.fetch(COUNT.rewrite(database.schema).text)
    with pytest.raises(QueryError, match="columns of p are not those"):
        relation_of(database, COUNT)


CHANGES = [
    "ALTER TABLE p ADD COLUMN y INTEGER",
    "ALTER TABLE p DROP COLUMN x",
    "ALTER TABLE p RENAME COLUMN x TO z",
    "ALTER TABLE p ALTER COLUMN x TYPE VARCHAR",
    "ALTER TABLE p ALTER COLUMN id TYPE BIGINT",
    "ALTER TABLE p RENAME TO q",
    "DROP TABLE p",
]


def refusals(database: Database, tmp_path: Path) -> set[str]:
    """Return what asking says in every way of asking; a ledger must not be charged."""
    study = tulle.Ledger(tmp_path / "study.ledger").open(
        "study", database, unit="participant", epsilon=1
    )
    said = set()
    for act in (
        lambda: study.ask(COUNT, epsilon=0.5),
        lambda: study.ask(COUNT / 2, epsilon=0.5),
        lambda: study.plan(COUNT, epsilon=0.5),
        lambda: tulle.release(database, COUNT, unit="participant", epsilon=0.5),
        lambda: relation_of(database, COUNT),
    ):
        with pytest.raises(QueryError) as caught:
            act()
        said.add(str(caught.value))
    assert study.remaining == 1
    return said


@pytest.mark.parametrize("change", CHANGES)
def test_tables_that_change_after_connecting_are_refused_alike(change: str, tmp_path: Path) -> None:
    execute, connect = in_duckdb(tmp_path)
    database = connect()
    execute(change)
    (said,) = refusals(database, tmp_path)
    assert said.startswith("The columns of p are not those")


# --- PostgreSQL -----------------------------------------------------------------------------------


def test_postgresql_reads_the_table_that_was_connected_to(
    postgres_url: str, tmp_path: Path
) -> None:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(postgres_url, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in (
            "DROP SCHEMA IF EXISTS other CASCADE",
            "DROP TABLE IF EXISTS p CASCADE",
            'DROP TABLE IF EXISTS "P"',
            one("p"),
            seven("TABLE", '"P"'),
            "CREATE SCHEMA other",
            seven("TABLE", "other.p"),
            "CREATE TABLE other.far (id INTEGER PRIMARY KEY)",
            "CREATE TABLE far (id INTEGER, who INTEGER)",
            "CREATE TABLE near (id INTEGER REFERENCES other.far)",
        ):
            cursor.execute(statement)
        database = Database.connect(postgres_url, owners=OWNERS | {"P": "id"})
        # A key of another schema's table of that name says nothing about this one.
        with pytest.raises(tulle.InputError, match=r"near|which key|far"):
            Database.connect(postgres_url, owners={"near": "id -> far.nothing", "far": "who"})
        assert ("near", ("id",)) not in database._engine.keys().foreign
        mine = database._engine._connection.cursor()  # type: ignore[attr-defined]
        mine.execute("SET default_transaction_read_only = off")
        for change in (
            "SET search_path = other, public",
            seven("TEMP TABLE", "p"),
            seven("TEMP TABLE", "pg_class"),
        ):
            mine.execute(change)
            assert relation_of(database, COUNT).total == COUNT.truth(database) == 1, change
        assert relation_of(database, sql('SELECT COUNT(*) FROM "P"')).total == 7
        cursor.execute("ALTER TABLE p ADD COLUMN y INTEGER")
        (said,) = refusals(database, tmp_path)
        assert said.startswith("The columns of p are not those")
        mine.close()
        database.close()
        for statement in (
            "DROP SCHEMA other CASCADE",
            'DROP TABLE p, "P", far, near CASCADE',
        ):
            cursor.execute(statement)


# --- Spark ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_spark_reads_the_table_that_was_connected_to(spark_session: Any, tmp_path: Path) -> None:
    def run(statement: str) -> None:
        spark_session.sql(statement)

    rows = "USING parquet AS SELECT explode(sequence(0, {})) AS id, 1 AS x"
    for name in ("tulle_one", "tulle_two"):
        run(f"CREATE DATABASE {name} LOCATION '{tmp_path / name}'")
    try:
        run("CREATE TABLE tulle_one.p " + rows.format(0))
        run("CREATE TABLE tulle_two.p " + rows.format(6))
        run("USE tulle_one")
        database = Database.connect(spark_session, owners=OWNERS)
        run("USE tulle_two")
        assert relation_of(database, COUNT).total == 1
        run("USE tulle_one")
        spark_session.range(7).selectExpr("id", "1 AS x").createOrReplaceTempView("p")
        # What is called p is another table now: refused, where it used to be read.
        (said,) = refusals(database, tmp_path)
        assert said.startswith("The columns of p are not those")
        hidden = Database.connect(spark_session, owners=OWNERS)
        assert relation_of(hidden, COUNT).total == 7
        spark_session.catalog.dropTempView("p")
        with pytest.raises(QueryError, match="columns of p are not those"):
            relation_of(hidden, COUNT)
        assert relation_of(database, COUNT).total == 1
        database.close()
        hidden.close()
    finally:
        run("USE default")
        run("DROP DATABASE tulle_one CASCADE")
        run("DROP DATABASE tulle_two CASCADE")
        spark_session.catalog.dropTempView("p")
