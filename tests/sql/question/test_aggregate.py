from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

import pytest
from sqlglot import exp

import tulle.sql.question.aggregate
from tulle.core.errors import QueryError
from tulle.sql.queries import one_aggregate as sql
from tulle.sql.schema.schema import Schema

SCHEMA = Schema.build(
    "duckdb",
    {"visit": {"person": "INTEGER", "day": "INTEGER", "town": "VARCHAR"}},
    owners={"visit": "person"},
)
BY_DAY = "SELECT day, COUNT(*) FROM visit GROUP BY day"
BY_TOWN = "SELECT town, COUNT(*) FROM visit GROUP BY town"


def test_many_groups_can_be_asked_for() -> None:
    towns = [f"town {place}" for place in range(600)]
    bound = sql(BY_TOWN, groups={"town": towns}).bound_to(SCHEMA.to_json())
    assert bound.bound is not None
    assert bound.bound.groups == 600
    assert bound.bound.text.count("\"town\" = 'town 599'") == 2


def test_a_long_list_of_numbers_is_joined() -> None:
    bound = sql(BY_DAY, groups={"day": list(range(600))}).bound_to(SCHEMA.to_json())
    assert bound.bound is not None
    assert bound.bound.groups == 600
    assert bound.bound.text.count("(599, 599)") == 1
    assert '"day" = 599' not in bound.bound.text


def test_the_place_of_a_number_is_found_by_halving() -> None:
    distinct = "SELECT day, COUNT(DISTINCT town) FROM visit GROUP BY day"
    bound = sql(distinct, groups={"day": list(range(600))}).bound_to(SCHEMA.to_json())
    assert bound.bound is not None
    assert bound.bound.groups == 600
    assert bound.bound.text.count('"day" = 599') == 1
    # As many comparisons on the way to a value as halvings.
    assert max(map(len, re.findall(r"^ *", bound.bound.text, re.MULTILINE))) < 100


def places(values: list[Any], column: str) -> dict[Any, Any]:
    """Return the place that DuckDB finds for each value of a column."""
    duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")
    meant = exp.column("x")
    number, parts = tulle.sql.question.aggregate.group_number([meant], (("x", tuple(values)),))
    inside = exp.and_(*parts)
    found = duckdb.connect().execute(
        f"SELECT x, {number.sql(dialect='duckdb')}, {inside.sql(dialect='duckdb')} "
        f"FROM (SELECT {column} AS x FROM range(40) t(i))"
    )
    return {x: place for x, place, there in found.fetchall() if there}


NUMBERS = [7, -3, 30, 2, 11, 0, 5, 19, 8, 12, 100]
COLUMNS = {
    "whole": ("CAST(i AS INTEGER) - 5", NUMBERS),
    "double": ("i / 2.0 - 5", NUMBERS),
    "day": (
        "DATE '2024-02-20' + CAST(i AS INTEGER)",
        [date(2024, 2, 1) + timedelta(days=place * 7 % 31) for place in range(25)],
    ),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_places_are_those_of_the_list(name: str) -> None:
    column, values = COLUMNS[name]
    found = places(values, column)
    assert len(found) > 4
    assert all(values[place] == value for value, place in found.items())


def test_places_of_another_order_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: values that are not in order are halved all the same."""
    monkeypatch.setattr(
        tulle.sql.question.aggregate, "sorted", lambda listed, key: list(listed), raising=False
    )
    column, values = COLUMNS["whole"]
    found = places(values, column)
    assert any(place is None for place in found.values())


def test_groups_in_one_long_chain_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: every further group is one level deeper."""
    monkeypatch.setattr(
        tulle.sql.question.aggregate, "_any_of", lambda conditions: exp.or_(*conditions)
    )
    with pytest.raises(QueryError, match="nested too deeply"):
        test_many_groups_can_be_asked_for()


def test_a_list_of_groups_means_any_of_them() -> None:
    duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")
    for count in range(1, 9):
        conditions: list[Any] = [
            exp.EQ(this=exp.column("x"), expression=exp.Literal.number(k)) for k in range(count)
        ]
        whole = tulle.sql.question.aggregate._any_of(conditions).sql(dialect="duckdb")
        found = duckdb.connect().execute(
            f"SELECT x FROM (SELECT range - 1 AS x FROM range(12)) t WHERE {whole} ORDER BY x"
        )
        assert [x for (x,) in found.fetchall()] == list(range(count))


@pytest.mark.parametrize(
    "condition",
    [
        " OR ".join(f"day = {k}" for k in range(900)),
        " AND ".join(f"day <> {k}" for k in range(3000)),
        "(" * 600 + "day = 1" + ")" * 600,
        "+".join(["day"] * 2000) + " > 0",
    ],
    ids=["or", "and", "brackets", "sum"],
)
def test_what_is_nested_too_deeply_is_refused_in_words(condition: str) -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        sql(f"SELECT COUNT(*) FROM visit WHERE {condition}").bound_to(SCHEMA.to_json())
