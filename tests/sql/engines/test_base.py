"""Nothing of a record in errors, in what they are chained to, in logs, or on the terminal."""

from __future__ import annotations

import gc
import logging
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tulle
import tulle.sql.engines.base
import tulle.sql.engines.duckdb.engine
from tulle.core.errors import TulleError
from tulle.sql.data import Database
from tulle.sql.engines.base import Engine

SECRET = "hidden_7431"
"""A value of a row that makes a statement fail."""

FAILING = "SELECT CAST(note AS INTEGER) AS n FROM keepsake"


def traces(error: BaseException) -> str:
    """Return all that can be read off an error: its words, its chain, variables of its frames."""
    found = [str(error), repr(error), *traceback.format_exception(error)]
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        found += [str(one), repr(one), repr(one.args), repr(getattr(one, "__notes__", ""))]
        waiting += [one.__context__, one.__cause__]
        trace = one.__traceback__
        while trace is not None:
            if "/tests/" not in trace.tb_frame.f_code.co_filename:
                for value in trace.tb_frame.f_locals.values():
                    with suppress(Exception):  # what is closed may not even have a repr
                        found.append(repr(value))
                    if isinstance(value, BaseException):
                        waiting.append(value)
            trace = trace.tb_next
    held = [item for item in gc.get_referents(error) if isinstance(item, BaseException)]
    return "\n".join([*found, *map(str, held)])


@contextmanager
def overheard(capfd: Any) -> Iterator[list[str]]:
    """Collect everything that is logged, at every level, or written to the terminal."""
    heard: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(logging.Formatter().format(record))

    ear = Ear(logging.NOTSET)
    names = [None, "py4j", "py4j.java_gateway", "py4j.clientserver", "SQLQueryContextLogger"]
    before = [(logging.getLogger(name), logging.getLogger(name).level) for name in names[:4]]
    for logger, _ in before:
        logger.setLevel(logging.DEBUG)
    logging.getLogger().addHandler(ear)
    capfd.readouterr()
    try:
        yield heard
    finally:
        logging.getLogger().removeHandler(ear)
        for logger, level in before:
            logger.setLevel(level)
        heard.extend(capfd.readouterr())


@contextmanager
def from_java(session: Any, heard: list[str]) -> Iterator[None]:
    """Collect what the Java machine writes: it keeps the terminal that it was started with."""
    errors = Path(f"/proc/{session.sparkContext._gateway.proc.pid}/fd/2")
    if not errors.is_file():
        pytest.skip("Java does not write its errors to a file here")
    with errors.open("rb") as file:
        file.seek(0, 2)
        yield
        time.sleep(0.5)  # what goes on after the failure writes too
        heard.append(file.read().decode(errors="replace"))


def leaks(engine: Engine, capfd: Any, statement: str = FAILING) -> str:
    """Return all traces of a statement that fails; it must fail."""
    session = getattr(engine, "_session", None)
    said: list[str] = []
    java = nullcontext() if session is None else from_java(session, said)
    with overheard(capfd) as heard, java:
        try:
            engine.fetch(statement)
        except TulleError as error:
            sys.last_value = error
            found = traces(error)
        else:
            pytest.fail("the statement does not fail, so it shows nothing")
    return "\n".join([found, *heard, *said])


def filled() -> Any:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE keepsake AS SELECT 1 AS id, '{SECRET}' AS note")
    return connection


def test_duckdb_keeps_a_value_back(capfd: Any) -> None:
    database = Database.connect(filled(), owners={"keepsake": "id"})
    assert SECRET not in leaks(database._engine, capfd)
    database._engine._connection.execute(  # type: ignore[attr-defined]
        "CREATE VIEW broken AS SELECT CAST(note AS INTEGER) AS n FROM keepsake"
    )
    assert SECRET not in leaks(database._engine, capfd, "SELECT SUM(n) AS n FROM broken")


def test_postgresql_keeps_a_value_back(postgres_url: str, capfd: Any) -> None:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(postgres_url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS keepsake")
        cursor.execute(f"CREATE TABLE keepsake AS SELECT 1 AS id, '{SECRET}'::text AS note")
        cursor.execute(
            "CREATE OR REPLACE FUNCTION tell(x text) RETURNS text LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE WARNING 'seen %', x; RETURN x; END $$"
        )
        database = Database.connect(postgres_url, owners={"keepsake": "id"})
        stored = FAILING.replace("keepsake", "public.keepsake")
        assert SECRET not in leaks(database._engine, capfd, stored)
        with overheard(capfd) as heard:
            told = "SELECT public.tell(note) AS t FROM public.keepsake"
            assert database._engine.fetch(told).num_rows == 1
        assert SECRET not in "\n".join(heard)
        database.close()
        cursor.execute("DROP TABLE keepsake")
        cursor.execute("DROP FUNCTION tell")


@pytest.mark.filterwarnings("ignore")
def test_spark_keeps_a_value_back(spark_session: Any, capfd: Any) -> None:
    context = spark_session._jvm.org.apache.logging.log4j.LogManager
    before = context.getRootLogger().getLevel().toString()
    frame = spark_session.createDataFrame([(1, SECRET), (2, SECRET)], "id INT, note STRING")
    frame.repartition(2).createOrReplaceTempView("keepsake")
    spark_session.sparkContext.setLogLevel("INFO")
    database = Database.connect(spark_session, owners={"keepsake": "id"})
    try:
        assert SECRET not in leaks(database._engine, capfd)
        # A user who turns the log on again is not heard either while a question runs.
        spark_session.sparkContext.setLogLevel("INFO")
        assert SECRET not in leaks(database._engine, capfd)
        database.close()
        assert context.getRootLogger().getLevel().toString() == "INFO"
    finally:
        spark_session.sparkContext.setLogLevel(before)
        spark_session.catalog.dropTempView("keepsake")


def test_checking_and_connecting_keep_a_value_back(capfd: Any, tmp_path: Path) -> None:
    """A view over a file is read when names are resolved, and its row is in the engine's words."""
    file = tmp_path / "rows.csv"
    lines = "\n".join(f"{i},{SECRET}" for i in range(5))
    file.write_text(f"id,note\n{lines}\n1,2,3,{SECRET}\n")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE p AS SELECT 1 AS id")
    database = Database.connect(connection, owners={"p": "id"})
    strict = f"read_csv('{file}', columns={{'id': 'INTEGER', 'note': 'INTEGER'}})"
    with overheard(capfd) as heard:
        bad = tmp_path / "bad.parquet"
        bad.write_text(SECRET)
        for statement in (
            "SELECT nothing FROM p",
            f"SELECT * FROM '{bad}'",
            "SELECT id || 1 FROM q",
        ):
            with pytest.raises(TulleError, match="does not accept the query") as caught:
                database._engine.check(statement)
            assert SECRET not in traces(caught.value)
        with pytest.raises(TulleError) as caught:
            database._engine.fetch(f"SELECT * FROM {strict}")
        assert SECRET not in traces(caught.value)
        with pytest.raises(TulleError, match="cannot read") as caught:
            Database.connect("duckdb://", tables={"t": bad}, owners={})
        assert SECRET not in traces(caught.value)
        with pytest.raises(TulleError, match="cannot open") as caught:
            Database.connect(f"duckdb:///{bad}", owners={})
        assert SECRET not in traces(caught.value)
    assert SECRET not in "\n".join(heard)


def test_an_error_that_is_only_hidden_is_caught(
    monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    """The twin: ``from None``, which keeps what it hides."""

    def hide(error: BaseException) -> None:
        raise error from None

    database = Database.connect(filled(), owners={"keepsake": "id"})
    monkeypatch.setattr(tulle.sql.engines.base, "raise_alone", hide)
    assert SECRET in leaks(database._engine, capfd)


@pytest.mark.filterwarnings("ignore")
def test_a_driver_that_logs_is_caught(
    spark_session: Any, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    """The twins: Python's loggers not kept still, or Java's."""
    from tulle.sql.engines.spark.engine import Spark

    frame = spark_session.createDataFrame([(1, SECRET)], "id INT, note STRING")
    frame.createOrReplaceTempView("keepsake")
    engine = Spark(spark_session, owned=False)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(tulle.sql.engines.base, "quiet", lambda families: nullcontext())
            assert SECRET in leaks(engine, capfd)
        engine.close()
        # Another database of this session may still keep Java still.
        spark_session.sparkContext.setLogLevel("ERROR")
        with monkeypatch.context() as patch:
            patch.setattr(Spark, "muted", lambda self: nullcontext())
            assert SECRET in leaks(engine, capfd)
        assert SECRET not in leaks(engine, capfd)
    finally:
        engine.close()
        spark_session.catalog.dropTempView("keepsake")


@pytest.mark.parametrize(
    "error", [UnicodeDecodeError("utf-8", b"", 0, 1, SECRET), MemoryError(SECRET), KeyError(SECRET)]
)
def test_whatever_a_driver_raises_is_replaced(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver decodes texts and allocates; not all that it raises is of its own kind."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 1 AS who")
    database = Database.connect(connection, owners={"t": "who"})

    def fail(cursor: Any, statement: str) -> Any:
        raise error

    monkeypatch.setattr(tulle.sql.engines.duckdb.engine, "_rows_of", fail)
    with pytest.raises(TulleError) as caught:
        tulle.release(database, tulle.sql("SELECT COUNT(*) FROM t"), unit="participant", epsilon=1)
    assert type(caught.value).__name__ == "EngineError"
    assert SECRET not in traces(caught.value)
