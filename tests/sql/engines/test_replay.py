"""Whole paths on PostgreSQL and Spark, replayed on neighbours; DuckDB is in tests/audit."""

import logging
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.audit.replay import worlds
from tests.audit.replay.engine import Case, replay_case

import tulle

QUESTIONS = worlds.questions()["database", "sql"]


def check(variants: Any, engine: str, count: int) -> None:
    for query in QUESTIONS[:count]:
        seen = replay_case(Case(f"staff, {engine}", "participant", variants, query, "1", "1e-6"))
        assert seen.gives("ask"), seen.shown
        assert seen.findings == ()


@pytest.mark.slow
def test_postgresql_shows_the_same_on_neighbours(postgres_url: str) -> None:
    import adbc_driver_postgresql.dbapi as driver

    def opened(staff: Any, friends: Any, folder: Path) -> Any:
        with driver.connect(postgres_url, autocommit=True) as link, link.cursor() as cursor:
            for table in ("person", "friend"):
                cursor.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in (*worlds.MAKE_STAFF, *worlds.staff_rows(staff, friends)):
                cursor.execute(statement)
        return tulle.Database.connect(postgres_url, owners=worlds.OWNERS, ranges=worlds.RANGES)

    check([partial(opened, *rows) for rows in worlds.STAFFS["staff"]], "postgresql", len(QUESTIONS))


def spark_variants(session: Any, names: Any) -> Any:
    """Return openers of the staff on Spark: the first of these variants, and its neighbours."""
    kinds = {"person": "id INT, name STRING, salary DOUBLE, dept STRING", "friend": "a INT, b INT"}

    def opened(staff: Any, friends: Any, folder: Path) -> Any:
        for (name, kind), rows in zip(kinds.items(), (staff, friends), strict=True):
            frame = session.createDataFrame([list(row) for row in rows], kind)
            frame.createOrReplaceTempView(name)
        return tulle.Database.connect(session, owners=worlds.OWNERS, ranges=worlds.RANGES)

    return [partial(opened, *rows) for rows in worlds.STAFFS["staff"][:names]]


@pytest.mark.xdist_group("spark")
def test_spark_shows_the_same_on_a_neighbour(spark_session: Any) -> None:
    """One question in all that shows: text, warnings, log, printed lines, JSON, entries."""
    check(spark_variants(spark_session, 2), "spark", 1)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_spark_shows_the_same_on_neighbours(spark_session: Any) -> None:
    check(spark_variants(spark_session, 3), "spark", len(QUESTIONS))


@pytest.mark.xdist_group("spark")
def test_a_neighbour_that_spark_tells_of_is_caught(
    spark_session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: an engine that logs how many rows it has read."""
    from tulle.sql.engines.spark.engine import Spark

    read = Spark.read

    def telling(engine: Any, statement: str) -> Any:
        found = read(engine, statement)
        logging.getLogger("rows").warning("%d rows", found.num_rows)
        return found

    monkeypatch.setattr(Spark, "read", telling)
    case = Case(
        "staff, spark", "participant", spark_variants(spark_session, 2), QUESTIONS[0], "1", "1e-6"
    )
    assert any("rows" in finding for finding in replay_case(case).findings)
