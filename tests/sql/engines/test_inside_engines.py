"""What is inside one person's rows: PostgreSQL and Spark give the relations that DuckDB gives."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sql.compile.judges import busy_world, unique_keys
from tests.sql.compile.test_inside import QUESTIONS
from tests.sql.engines.test_engines import fill_postgresql
from tests.sql.inside_generator import Inside
from tests.sql.sql_worlds import COLUMNS, OWNERS, PUBLIC, connect, summary

from tulle.core.errors import QueryError
from tulle.sql.data import Database
from tulle.sql.queries import gather_tuples, sql


def check(database: Database, embedded: Database, texts: list[str], least: int) -> None:
    """Check that two engines give one relation; one that an engine cannot run is refused alike."""
    answered = 0
    for text in texts:
        found = []
        for one in (embedded, database):
            try:
                gathered = gather_tuples(one, sql(text).bind(one))  # type: ignore[arg-type]
            except QueryError:
                assert one is database, text
                break
            found.append([summary(relation, gathered.names) for relation in gathered.relations])
        if len(found) == 2:
            assert found[0] == found[1], text
            answered += 1
    assert answered >= least


def written(engine: str, seeds: range, depth: int = 1) -> list[str]:
    return [Inside(seed, engine).question(depth) for seed in seeds]


def in_postgresql(url: str) -> tuple[Database, Database]:
    rows = unique_keys(busy_world(2))
    fill_postgresql(url, rows)
    return Database.connect(url, owners=OWNERS, public=PUBLIC), connect(rows)


def in_spark(session: Any) -> tuple[Database, Database]:
    embedded = connect(unique_keys(busy_world(2)))
    for table in COLUMNS:
        arrow = embedded._engine.read(f"SELECT * FROM {table}")
        session.createDataFrame(arrow).createOrReplaceTempView(table)
    return Database.connect(session, owners=OWNERS, public=PUBLIC), embedded


def test_postgresql_gives_the_same_relations(postgres_url: str) -> None:
    database, embedded = in_postgresql(postgres_url)
    check(database, embedded, [*QUESTIONS, *written("postgres", range(20))], 33)
    database.close()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.xdist_group("spark")
def test_spark_gives_the_same_relations(spark_session: Any) -> None:
    check(*in_spark(spark_session), [QUESTIONS[0], QUESTIONS[6], *written("spark", range(5))], 5)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100, 500, 50))
def test_postgresql_gives_the_same_relations_for_many(start: int, postgres_url: str) -> None:
    database, embedded = in_postgresql(postgres_url)
    check(database, embedded, written("postgres", range(start, start + 50), 2), 40)
    database.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.xdist_group("spark")
def test_spark_gives_the_same_relations_for_many(spark_session: Any) -> None:
    check(*in_spark(spark_session), [*QUESTIONS, *written("spark", range(100, 150), 2)], 40)
