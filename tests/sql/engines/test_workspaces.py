"""What engines keep for one question: computed once, seen by nobody else, and gone afterwards."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import tulle
from tulle.sql.data import Database
from tulle.sql.engines.base import EngineError, Workspace
from tulle.sql.engines.duckdb import engine as duckdb_engine
from tulle.sql.engines.spark import engine as spark_engine


def check_kept(engine: Any, drawn: str) -> tuple[str, str]:
    """Check that what a statement draws is drawn once; return what two workspaces kept."""
    space, other = engine.workspace(), engine.workspace()
    assert space.keeps
    kept = space.keep(drawn)
    first = space.fetch(f"SELECT one FROM {kept} k").to_pylist()
    assert space.fetch(f"SELECT one FROM {kept} k").to_pylist() == first
    again = space.keep(f"SELECT one FROM {kept} k", looked_up="one")
    assert space.fetch(f"SELECT one FROM {again} k").to_pylist() == first
    seven = other.keep("SELECT 7 AS one")
    assert other.fetch(f"SELECT one FROM {seven} k").to_pylist() == [{"one": 7}]
    assert not [name for name in engine.tables() if name.startswith("__tulle")]
    return kept, seven


def test_postgresql(postgres_url: str) -> None:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(postgres_url, autocommit=True) as link, link.cursor() as cursor:
        cursor.execute("CREATE TABLE noted (person INTEGER)")
    database = Database.connect(postgres_url, owners={"noted": "person"})
    engine: Any = database._engine
    kept, _ = check_kept(engine, "SELECT random() AS one")
    gc.collect()
    space = engine.workspace()
    space.keep("SELECT 8 AS one")
    with pytest.raises(EngineError):
        engine.fetch(f"SELECT one FROM {kept} k")
    count = "SELECT COUNT(*) AS n FROM pg_class WHERE relname LIKE '%tulle_kept%'"
    assert engine.fetch(count).to_pylist() == [{"n": 1}]
    with pytest.raises(EngineError):
        space.keep("SELECT 1 / (person - person) AS one FROM noted UNION ALL SELECT 1 / 0")
    with pytest.raises(EngineError), engine._connection.cursor() as cursor:
        engine.attempt(lambda: cursor.execute("INSERT INTO noted VALUES (1)"), EngineError())
    database.close()
    # A limit of temporary files does not hold for tables: then nothing is kept.
    limited = Database.connect(postgres_url, owners={"noted": "person"}, memory="64MB")
    assert type(limited._engine.workspace()) is Workspace
    limited.close()


@pytest.mark.filterwarnings("ignore")
def test_spark(spark_session: Any) -> None:
    spark_session.range(3).createOrReplaceTempView("noted")
    try:
        database = Database.connect(spark_session, owners={"noted": "id"})
        engine: Any = database._engine
        kept, seven = check_kept(engine, "SELECT rand() AS one")
        gc.collect()
        for gone in (kept, seven):
            with pytest.raises(EngineError):
                engine.fetch(f"SELECT one FROM {gone} k")
        assert not spark_session.catalog.isCached("noted")
        # A few rows are kept in few parts, and the session's settings are as they were.
        usual = {"spark.sql.shuffle.partitions": "50", "spark.sql.adaptive.enabled": "true"}
        names = (*usual, spark_engine._ADAPTIVE)
        before = {name: spark_session.conf.get(name, None) for name in names}
        for name, value in usual.items():
            spark_session.conf.set(name, value)
        space = engine.workspace()
        few = space.keep("SELECT id % 2 AS one FROM noted DISTRIBUTE BY one")
        space.fetch(f"SELECT one FROM {few} k")
        assert spark_session.sql(f"SELECT one FROM {few}").rdd.getNumPartitions() < 10
        assert spark_session.conf.get(names[-1], None) == before[names[-1]]
        for name in usual:
            spark_session.conf.set(name, before[name])
        del space
        database.close()
    finally:
        spark_session.catalog.dropTempView("noted")


# --- one moment for what is paid for at once ------------------------------------------------------

ONE_EACH = (
    ("SELECT COUNT(*) FROM noted", {}, 1),
    ("SELECT SUM(x) FROM noted", {}, 1),
    ("SELECT AVG(x) AS a, COUNT(*) AS n FROM noted", {}, 3),
    ("SELECT k, SUM(x) AS s FROM noted GROUP BY k", {"groups": {"k": [0, 1, 2]}}, 1),
    ("SELECT k, MEDIAN(x) AS m FROM noted GROUP BY k", {"groups": {"k": [0, 1, 2]}}, 1),
    ("SELECT COUNT(DISTINCT k) FROM noted", {}, 1),
    ("SELECT COUNT(*) FROM noted p JOIN noted q ON p.k = q.k + 1", {}, 1),
    ("SELECT k, COUNT(*) AS n FROM noted GROUP BY k", {}, 2),
    ("SELECT k, COUNT(DISTINCT id) AS n FROM noted GROUP BY k", {"keys_per_person": "private"}, 2),
    ("SELECT SUM(id) AS s FROM noted", {"ranges": "private"}, 2),
)
"""Questions, and how many of their parts have a price of their own: each reads the tables once."""


def moments(text: str, options: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often the tables themselves are read while a question is answered."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE noted AS SELECT range % 500 AS id, range % 3 AS k, range % 7 AS x "
        "FROM range(3000)"
    )
    database = Database.connect(connection, owners={"noted": "id"}, ranges={"noted.x": (0, 7)})
    read: list[str] = []
    with monkeypatch.context() as patch:
        for kind, name in (
            *((duckdb_engine.DuckDB, "read"), (duckdb_engine.TemporaryTables, "keep")),
            (duckdb_engine.TemporaryTables, "fetch"),
        ):
            plain = getattr(kind, name)

            def noting(self: Any, statement: str, plain: Any = plain, **options: Any) -> Any:
                read.append(statement)
                return plain(self, statement, **options)

            patch.setattr(kind, name, noting)
        tulle.release(
            database, tulle.sql(text, **options), unit="participant", epsilon=8.0, delta=1e-6
        )
    return sum('"noted"' in statement for statement in read)


@pytest.mark.parametrize(("text", "options", "number"), ONE_EACH)
def test_what_has_one_price_is_read_at_one_moment(
    text: str, options: Any, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows may change meanwhile: bounds that hold for two moments together do not hold."""
    assert moments(text, options, monkeypatch) == number


def test_a_second_moment_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    # A broken version whose workspace keeps nothing.
    monkeypatch.setattr(duckdb_engine.DuckDB, "workspace", lambda self: Workspace(self))
    assert moments(*ONE_EACH[0][:2], monkeypatch) == 2
