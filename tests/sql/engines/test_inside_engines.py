"""What is inside one person's rows: PostgreSQL and Spark give the relations that DuckDB gives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import pytest
from tests.drawn import Drawn, are_enough
from tests.sql.compile.judges import RANGES, busy_world, unique_keys, value_counts, world
from tests.sql.compile.test_inside import QUESTIONS
from tests.sql.engines.test_engines import fill_postgresql
from tests.sql.grammar import DATED, VIEWS, Asked, Grammar
from tests.sql.inside_generator import Inside
from tests.sql.sql_worlds import COLUMNS, OWNERS, PUBLIC, connect, summary

from tulle.core.errors import QueryError
from tulle.sql.data import Database
from tulle.sql.keys.question import DiscoveredTable
from tulle.sql.queries import SqlQuery, gather_tuples, sql
from tulle.sql.tables.quantiles import SqlQuantile


def check(database: Database, embedded: Database, texts: Iterable[str], least: float) -> None:
    """Check that two engines give one relation; one that an engine cannot run is refused alike."""
    answered = tried = 0
    for text in texts:
        tried += 1
        found = []
        for one in (database, embedded):
            try:
                gathered = gather_tuples(one, sql(text).bind(one))  # type: ignore[arg-type]
                found.append([summary(relation, gathered.names) for relation in gathered.relations])
            except QueryError:
                found.append(None)
        if found[0] is not None:
            assert found[0] == found[1], text
            answered += 1
    assert are_enough(answered, tried, least)


def written(engine: str, seeds: Iterable[int], depth: int = 1) -> Iterator[str]:
    return (Inside(seed, engine).question(depth) for seed in seeds)


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
def test_spark_gives_the_same_relations(spark_session: Any) -> None:
    check(*in_spark(spark_session), [QUESTIONS[0], QUESTIONS[6], *written("spark", range(5))], 5)


@pytest.mark.slow
@pytest.mark.timed(3)
def test_postgresql_gives_the_same_relations_for_many(drawn: Drawn, postgres_url: str) -> None:
    database, embedded = in_postgresql(postgres_url)
    check(database, embedded, written("postgres", drawn.seeds(), 2), 0.6)
    database.close()


@pytest.mark.slow
@pytest.mark.timed(2)
@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_same_relations_for_many(drawn: Drawn, spark_session: Any) -> None:
    texts = chain(QUESTIONS, written("spark", drawn.seeds(), 2))
    check(*in_spark(spark_session), texts, 0.5)


# --- the whole grammar ----------------------------------------------------------------------------


SPELLED = re.compile(r"CAST\(\w+\.\w+ AS VARCHAR\)")
"""How a double is written is each engine's own."""


def relations_of_parts(database: Database, asked: Asked) -> list[Any]:
    """Return the relations, or the values that are ranked, of all that is bought."""
    question: Any = sql(asked.text, groups=asked.groups).bind(database)
    if isinstance(question, DiscoveredTable):
        return []
    parts = [question] if isinstance(question, SqlQuery) else question.parts()
    gathered = [gather_tuples(database, part) for part in parts if isinstance(part, SqlQuery)]
    ranked = [part.rewrite(database.schema).text for part in parts if isinstance(part, SqlQuantile)]
    return [
        *(summary(relation, one.names) for one in gathered for relation in one.relations),
        *(value_counts(database._engine.fetch(text)) for text in ranked),
    ]


def check_grammar(database: Database, seeds: Iterable[int], least: float) -> None:
    """Check that an engine gives the relations that DuckDB gives, to whatever it accepts."""
    answered = tried = 0
    for seed in seeds:
        tried += 1
        asked = Grammar(seed).question(1)
        if SPELLED.search(asked.text):
            continue
        try:
            found = relations_of_parts(database, asked)
        except QueryError:
            continue
        assert found == relations_of_parts(world(2, True).database, asked), asked
        answered += bool(found)
    assert are_enough(answered, tried, least)


def check_dates(database: Database, least: int) -> None:
    """Check that an engine ranks the dates that DuckDB ranks, as days and seconds."""
    answered = 0
    for source, _, date in DATED:
        asked = Asked(f"SELECT MAX({date}) AS last, COUNT(*) AS n FROM {source}")
        try:
            found = relations_of_parts(database, asked)
        except QueryError:
            continue
        assert found == relations_of_parts(world(2, True).database, asked), asked
        answered += 1
    assert answered >= least


def whole_postgresql(url: str) -> Database:
    import adbc_driver_postgresql.dbapi as driver

    here = world(2, True)
    fill_postgresql(url, here.rows)
    with driver.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE reading (who INTEGER, v DOUBLE PRECISION, tag TEXT, seen DATE, "
            "heard TIMESTAMP)"
        )
        for row in here.rows["reading"]:
            values = ", ".join("NULL" if value is None else f"'{value}'" for value in row)
            cursor.execute(f"INSERT INTO reading VALUES ({values})")
        for view in VIEWS:
            cursor.execute(view)
    owners = OWNERS | {"reading": "person: who"}
    return Database.connect(url, owners=owners, public=PUBLIC, ranges=RANGES)


def test_postgresql_gives_the_same_relations_for_the_whole_grammar(postgres_url: str) -> None:
    database = whole_postgresql(postgres_url)
    check_grammar(database, range(20_000, 20_020), 8)
    check_dates(database, len(DATED))
    database.close()


@pytest.mark.slow
@pytest.mark.timed(4)
def test_postgresql_gives_the_same_relations_for_thousands(drawn: Drawn, postgres_url: str) -> None:
    database = whole_postgresql(postgres_url)
    check_grammar(database, drawn.seeds(), 0.3)
    database.close()


def whole_spark(session: Any) -> Database:
    """Return the tables on Spark; its views would compute something, and are left out.

    Its timestamps have a time zone, and so no range.
    """
    here = world(2, True)
    for table in (*COLUMNS, "reading"):
        arrow = here.database._engine.read(f"SELECT * FROM {table}")
        session.createDataFrame(arrow).createOrReplaceTempView(table)
    owners = OWNERS | {"reading": "person: who"}
    ranges = {name: ends for name, ends in RANGES.items() if name != "reading.heard"}
    return Database.connect(session, owners=owners, public=PUBLIC, ranges=ranges)


@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_same_relations_for_the_whole_grammar(spark_session: Any) -> None:
    database = whole_spark(spark_session)
    check_grammar(database, range(20_000, 20_012), 4)
    check_dates(database, len(DATED) - 2)


@pytest.mark.slow
@pytest.mark.timed(3)
@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_same_relations_for_thousands(drawn: Drawn, spark_session: Any) -> None:
    check_grammar(whole_spark(spark_session), drawn.seeds(), 0.2)
