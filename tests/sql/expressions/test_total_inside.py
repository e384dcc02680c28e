"""No row makes an engine stop inside one person's rows either: odd values at every new place."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
from tests.drawn import Drawn, are_enough
from tests.sql.expressions.test_total import (
    check_taken,
    in_duckdb,
    in_postgres,
    in_spark,
    planted,
)

from tulle.core.errors import QueryError, TulleError
from tulle.sql.compile import statements
from tulle.sql.data import Database
from tulle.sql.queries import relations_of, sql

_ROWS = "FROM extreme x"
_EACH = f"{_ROWS} GROUP BY who"

POSITIONS = {
    "aggregate": f"(SELECT who, MAX({{v}}) AS m, COUNT({{v}}) AS n {_EACH}) t WHERE m IS NULL",
    "distinct": f"(SELECT who, COUNT(DISTINCT {{v}}) AS m {_EACH}) t WHERE m > 1",
    "sum": f"(SELECT who, SUM({{v}}) AS m {_EACH}) t WHERE m > 3",
    "distinct sum": f"(SELECT who, SUM(DISTINCT {{v}}) AS m {_EACH}) t WHERE m * m * m > 3",
    "average": f"(SELECT who, AVG({{v}}) AS m {_EACH}) t WHERE m < 3",
    "key": f"(SELECT who, {{v}} AS k {_ROWS} GROUP BY who, {{v}}) t WHERE k IS NULL",
    "having": f"(SELECT who {_EACH} HAVING MIN({{v}}) IS NOT NULL) t",
    "filter": f"(SELECT who, SUM(1) FILTER (WHERE ({{v}}) IS NULL) AS n {_EACH}) t WHERE n > 1",
    "partition": f"(SELECT RANK() OVER (PARTITION BY who, {{v}} ORDER BY i) AS r {_ROWS}) t"
    " WHERE r > 1",
    "order": f"(SELECT ROW_NUMBER() OVER (PARTITION BY who ORDER BY {{v}} DESC) AS r {_ROWS}) t"
    " WHERE r = 2",
    "window": f"(SELECT LAG({{v}}) OVER (PARTITION BY who ORDER BY i) AS m {_ROWS}) t"
    " WHERE m IS NULL",
    "running sum": f"(SELECT SUM({{v}}) OVER (PARTITION BY who ORDER BY i ROWS BETWEEN 2 PRECEDING"
    f" AND CURRENT ROW) AS m {_ROWS}) t WHERE m > 1",
    "qualify": f"(SELECT who {_ROWS} QUALIFY MAX({{v}}) OVER (PARTITION BY who) IS NULL) t",
    "distinct on": f"(SELECT DISTINCT ON (who) who, {{v}} AS m {_ROWS} ORDER BY who, m) t",
    "left join": "extreme x LEFT JOIN extreme z ON x.who = z.who AND ({v}) IS NULL",
    "left side": "extreme x LEFT JOIN extreme z ON x.who = z.who AND ({v}) = z.s",
    "not exists": "extreme z WHERE NOT EXISTS (SELECT 1 FROM extreme x WHERE x.who = z.who"
    " AND ({v}) IS NOT NULL)",
    "not in": "extreme z WHERE z.i NOT IN (SELECT {v} FROM extreme x WHERE x.who = z.who)",
    "value not in": "extreme x WHERE ({v}) NOT IN (SELECT z.i FROM extreme z WHERE z.who = x.who)",
    "one value": "extreme z WHERE z.i > (SELECT MAX({v}) FROM extreme x WHERE x.who = z.who)",
    "one sum": "extreme z WHERE z.i > (SELECT 2 * SUM({v}) FROM extreme x WHERE x.who = z.who)",
    "one value's condition": "extreme z WHERE (SELECT COUNT(*) FROM extreme x WHERE x.who = z.who"
    " AND ({v}) IS NULL) > 1 OR z.i = 3",
    "selected": "(SELECT (SELECT MIN({v}) FROM extreme x WHERE x.who = z.who) AS q"
    " FROM extreme z) t WHERE q IS NULL",
    "except": "(SELECT who, {v} AS q FROM extreme x EXCEPT SELECT who, i FROM extreme) t",
    "intersect all": "(SELECT who, s AS q FROM extreme INTERSECT ALL SELECT who, {v}"
    " FROM extreme x) t",
    "except public": "(SELECT who, {v} AS q FROM extreme x) t WHERE NOT EXISTS (SELECT 1 FROM"
    " (SELECT 1 AS one) p WHERE p.one = t.q)",
}
"""Every place inside one person's rows where an expression may stand."""


def outcome(database: Database, text: str) -> str:
    try:
        for relation in relations_of(database, sql(text)):
            _ = relation.weights
    except QueryError as error:
        return f"refused: {error}"
    except TulleError as error:
        return f"{type(error).__name__}: {error}"
    return "answered"


def check(database: Database, cases: Iterable[tuple[str, str]], least: float) -> None:
    """Check that a question fares alike with and without the one who has odd values."""
    left, answered, tried = database.without("participant", 7), 0, 0
    for position, expression in cases:
        tried += 1
        rows = POSITIONS[position].format(v=expression.replace("y.", "x."))
        text = f"SELECT COUNT(*) FROM {rows}"
        said = outcome(database, text)
        assert said == "answered" or said.startswith("refused"), text
        assert said == outcome(left, text), text
        answered += said == "answered"
    assert are_enough(answered, tried, least)


def rotated(dialect: str, step: int, start: int = 0) -> list[tuple[str, str]]:
    """Return every step-th expression, each at the next position."""
    names = list(POSITIONS)
    taken = check_taken(dialect)[start::step]
    return [(names[place % len(names)], text) for place, text in enumerate(taken)]


def test_a_question_fares_alike_in_duckdb() -> None:
    check(in_duckdb(planted("duckdb")), rotated("duckdb", 23), 40)


def test_a_question_fares_alike_in_postgresql(postgres_url: str) -> None:
    database = in_postgres(postgres_url, planted("postgres"))
    check(database, rotated("postgres", 41), 15)
    database.close()


@pytest.mark.slow
@pytest.mark.timed(2)
@pytest.mark.filterwarnings("ignore")
def test_questions_fare_alike_at_every_position_in_spark(drawn: Drawn, spark_session: Any) -> None:
    cases = list(product(POSITIONS, check_taken("spark")))
    check(in_spark(spark_session, planted("spark")), drawn.shuffled(cases), 0.1)


@pytest.mark.slow
@pytest.mark.timed(4)
def test_questions_fare_alike_at_every_position_in_duckdb(drawn: Drawn) -> None:
    cases = list(product(POSITIONS, check_taken("duckdb")))
    check(in_duckdb(planted("duckdb")), drawn.shuffled(cases), 0.1)


@pytest.mark.slow
@pytest.mark.timed(4)
def test_questions_fare_alike_at_every_position_in_postgresql(
    drawn: Drawn, postgres_url: str
) -> None:
    database = in_postgres(postgres_url, planted("postgres"))
    check(database, drawn.shuffled(list(product(POSITIONS, check_taken("postgres")))), 0.1)
    database.close()


def test_an_unguarded_sum_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    database = in_duckdb(planted("duckdb"))
    cases = [("sum", "x.g"), ("running sum", "x.g"), ("one sum", "x.g")]
    check(database, cases, 3)
    monkeypatch.setattr(statements, "exact_terms", lambda dialect, given, node, most: given)
    with pytest.raises(AssertionError):
        check(database, cases, 3)
