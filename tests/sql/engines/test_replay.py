"""Whole paths on PostgreSQL and Spark, replayed on neighbours; DuckDB is in tests/audit."""

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


@pytest.mark.slow
def test_spark_shows_the_same_on_neighbours(spark_session: Any) -> None:
    kinds = {"person": "id INT, name STRING, salary DOUBLE, dept STRING", "friend": "a INT, b INT"}

    def opened(staff: Any, friends: Any, folder: Path) -> Any:
        for (name, kind), rows in zip(kinds.items(), (staff, friends), strict=True):
            frame = spark_session.createDataFrame([list(row) for row in rows], kind)
            frame.createOrReplaceTempView(name)
        return tulle.Database.connect(spark_session, owners=worlds.OWNERS, ranges=worlds.RANGES)

    check([partial(opened, *rows) for rows in worlds.STAFFS["staff"][:2]], "spark", 2)
