from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp

import tulle.sql.question.aggregate
from tulle.core.errors import QueryError
from tulle.sql.queries import sql
from tulle.sql.schema.schema import Schema

SCHEMA = Schema.build(
    "duckdb", {"visit": {"person": "INTEGER", "day": "INTEGER"}}, owners={"visit": "person"}
)
BY_DAY = "SELECT day, COUNT(*) FROM visit GROUP BY day"


def test_many_groups_can_be_asked_for() -> None:
    days = list(range(600))
    bound = sql(BY_DAY, groups={"day": days}).bound_to(SCHEMA.to_json())
    assert bound.bound is not None
    assert bound.bound.groups == 600
    assert bound.bound.text.count('"day" = 599') == 2


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
