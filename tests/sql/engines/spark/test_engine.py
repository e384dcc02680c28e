"""What only the engine for Spark has to take care of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import tulle
from tulle.core.errors import QueryError, TulleError
from tulle.sql.engines.base import EngineError
from tulle.sql.engines.spark import engine as spark
from tulle.sql.engines.spark.dialect import SparkDialect
from tulle.sql.engines.spark.engine import Spark
from tulle.sql.expressions import entry
from tulle.sql.expressions.kinds import WHOLE, Kind


class TooDeep:
    """A session whose planner overflows; rows that are asked for never come."""

    conf = SimpleNamespace(getAll={}, set=lambda *_: None, unset=lambda _: None)

    def sql(self, _statement: str) -> Any:
        def overflow() -> None:
            raise RuntimeError("java.lang.StackOverflowError")

        def wait() -> None:
            pytest.fail("Spark hands rows over in a thread of its own, which would die unnoticed.")

        execution = SimpleNamespace(executedPlan=overflow)
        planner = SimpleNamespace(queryExecution=lambda: execution)
        return SimpleNamespace(schema=None, _jdf=planner, toArrow=wait)


def test_a_statement_that_overflows_the_planner_is_refused_and_not_waited_for() -> None:
    engine = Spark.__new__(Spark)
    engine._session = TooDeep()
    engine._levels = {}
    with pytest.raises(QueryError, match="Nothing was spent"):
        engine.check("SELECT 1")
    with pytest.raises(EngineError):
        engine.fetch("SELECT 1")


@pytest.mark.filterwarnings("ignore")
def test_days_between_are_counted_to_the_ends_of_the_calendar(
    spark_session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 32 bits the last day comes before the first, and two days would be one period."""
    ends = "DATE '+5881580-07-11' AS last, DATE '-5877641-06-23' AS first"
    frame = spark_session.range(1).selectExpr("id", *ends.split(", ")).localCheckpoint()
    frame.createOrReplaceTempView("ends")

    def apart() -> float:
        database = tulle.Database.connect(spark_session, owners={"ends": "id"})
        return float(tulle.sql("SELECT SUM(last - first) FROM ends").truth(database))

    assert apart() == 2**32 - 1
    plain = entry.said("CAST(DATEDIFF({0}, {1}) AS BIGINT)", Kind(WHOLE, 19))
    monkeypatch.setitem(SparkDialect.forms, "days between", plain)  # type: ignore[arg-type]
    assert apart() == -1
    spark_session.catalog.dropTempView("ends")


# --- settings of the session ----------------------------------------------------------------------

QUESTIONS = {
    "SELECT COUNT(*) FROM said WHERE txt = 'a''b'": 1,
    "SELECT COUNT(*) FROM said WHERE txt || '${system:java.version}' LIKE '%java%'": 4,
    r"SELECT COUNT(*) FROM said WHERE txt = 'a\b'": 1,
    "SELECT COUNT(*) FROM said WHERE txt = 'X'": 1,
    "SELECT SUM(CAST(txt AS INTEGER)) FROM said": 0,
    "SELECT SUM(m) FROM (SELECT who, COUNT(*) AS m FROM said GROUP BY who) q": 4,
    "SELECT COUNT(*) FROM said x WHERE NOT EXISTS (SELECT 1 FROM said y WHERE y.who = x.who "
    "AND y.txt = 'c')": 2,
    "SELECT COUNT(*) FROM said WHERE day < DATE '1500-01-01'": 1,
    "SELECT COUNT(*) FROM (SELECT who, txt FROM said UNION SELECT who, txt FROM said) q": 4,
}


@pytest.fixture
def said(spark_session: Any, tmp_path: Path) -> Iterator[Any]:
    """A session over one file, whose settings are what they were afterwards."""
    rows = {
        "who": [1, 2, 3, 3],
        "txt": ["a'b", r"a\b", "c", "X"],
        "day": [date(1000, 1, 1), *[date(2024, 1, 1)] * 3],
    }
    pyarrow.parquet.write_table(pyarrow.table(rows), tmp_path / "said.parquet")
    spark_session.read.parquet(str(tmp_path / "said.parquet")).createOrReplaceTempView("said")
    before = spark_session.conf.getAll
    yield spark_session
    for name in spark_session.conf.getAll.keys() - before.keys():
        spark_session.conf.unset(name)
    for name, value in before.items():
        if spark_session.conf.isModifiable(name):
            spark_session.conf.set(name, value)
    spark_session.catalog.dropTempView("said")


def _answers(session: Any) -> dict[str, Any]:
    database = tulle.Database.connect(session, owners={"said": "who"})
    found: dict[str, Any] = {}
    for text in QUESTIONS:
        try:
            found[text] = tulle.sql(text).truth(database)
        except TulleError as error:
            found[text] = str(error)
    database.close()
    return found


def test_settings_of_a_session_change_no_question(
    said: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One let a date stop Spark; one put the machine's environment into a question's texts."""
    assert _answers(said) == QUESTIONS
    listed = {row["key"]: row["value"] for row in said.sql("SET -v").collect()}
    other = {"true": "false", "false": "true"}
    changed = {name: other[value] for name, value in listed.items() if value in other}
    changed |= {
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true",
        "spark.sql.parquet.datetimeRebaseModeInRead": "EXCEPTION",
        "spark.sql.parquet.int96RebaseModeInRead": "EXCEPTION",
    }
    for name, value in changed.items():
        if not spark.HARMLESS.match(name) and said.conf.isModifiable(name):
            said.conf.set(name, value)
    given = said.conf.getAll
    assert len(given) > 100
    assert _answers(said) == QUESTIONS
    assert said.conf.getAll == given
    # A broken version leaves a session as it is.
    for name in changed.keys() - {"spark.sql.parquet.datetimeRebaseModeInRead"}:
        with suppress(Exception):
            said.conf.unset(name)
    said.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    monkeypatch.setattr(spark, "HARMLESS", re.compile(""))
    monkeypatch.setattr(spark, "MEANING", {})
    found = _answers(said)
    assert sum(found[text] != QUESTIONS[text] for text in QUESTIONS) >= 4


def test_a_session_is_set_back_when_the_last_statement_ends() -> None:
    """Two statements at once: the first to end must not give the other one the user's settings."""
    held = {"spark.sql.caseSensitive": "true", "spark.sql.shuffle.partitions": "7"}
    conf = SimpleNamespace(
        set=held.__setitem__, unset=held.__delitem__, isModifiable=lambda _: True, getAll=held
    )
    session = SimpleNamespace(conf=conf)
    before = dict(held)
    one, other = (spark._usual_settings(session) for _ in range(2))
    one.__enter__()
    meant = dict(held)
    assert meant == {"spark.sql.shuffle.partitions": "7", **spark.MEANING}
    other.__enter__()
    one.__exit__(None, None, None)
    assert held == meant
    other.__exit__(None, None, None)
    assert held == before
    assert not spark._changed


@pytest.mark.filterwarnings("ignore")
def test_functions_of_the_session_that_are_called_like_sparks_are_found(spark_session: Any) -> None:
    """Before Spark 4.3 such a function is called in place of Spark's own."""
    engine = Spark(spark_session, owned=False)
    spark_session.udf.register("md5", str)
    spark_session.udf.register("nobody_has_this", str)
    try:
        assert engine.shadowed() == []  # the session at hand puts its own first
        assert spark_session.sql("SELECT md5('a') AS d").head().d != "a"
        older = SimpleNamespace(version="4.2.1")
        assert not spark._puts_its_own_first(older)
        assert spark.session_functions(spark_session) == ["md5"]
    finally:
        for name in ("md5", "nobody_has_this"):
            spark_session.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")
    assert spark.session_functions(spark_session) == []
