"""The statements that engines run, as text. To write them anew: TULLE_SNAPSHOTS=write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tulle.sql.queries import one_aggregate as sql
from tulle.sql.schema.schema import Schema

FOLDER = Path(__file__).parent / "snapshots"

TYPES = {
    "duckdb": ("BIGINT", "DECIMAL(15,2)", "VARCHAR", "DATE"),
    "postgres": ("bigint", "numeric(15,2)", "text", "date"),
    "spark": ("bigint", "decimal(15,2)", "string", "date"),
}

OWNERS = {
    "customer": "customer: c_custkey",
    "orders": "customer: o_custkey",
    "lineitem": ["l_orderkey -> orders[o_orderkey]", "supplier: l_suppkey"],
    "knows": ["customer: a", "customer: b"],
}

QUESTIONS: dict[str, tuple[str, Any]] = {
    "one_table": ("SELECT COUNT(*) FROM orders WHERE o_date < DATE '1995-01-01'", None),
    "join_over_a_path": (
        "SELECT SUM(l_price / l_tax) FROM orders JOIN lineitem ON l_orderkey = o_orderkey",
        None,
    ),
    "self_join": ("SELECT COUNT(*) FROM knows x JOIN knows y ON x.b = y.a", None),
    "distinct": ("SELECT COUNT(DISTINCT c_name) FROM customer", None),
    "union": ("SELECT COUNT(*) FROM (SELECT a FROM knows UNION SELECT b FROM knows) u", None),
    "exists": (
        "SELECT COUNT(*) FROM customer c WHERE EXISTS (SELECT 1 FROM orders WHERE o_custkey ="
        " c.c_custkey)",
        None,
    ),
    "groups": (
        "SELECT EXTRACT(YEAR FROM o_date) AS y, COUNT(*) FROM orders GROUP BY y",
        {"y": [1994, 1995]},
    ),
}


def schema(dialect: str) -> Schema:
    key, money, text, date = TYPES[dialect]
    tables = {
        "customer": {"c_custkey": key, "c_name": text},
        "orders": {"o_orderkey": key, "o_custkey": key, "o_date": date},
        "lineitem": {"l_orderkey": key, "l_suppkey": key, "l_price": money, "l_tax": money},
        "knows": {"a": key, "b": key},
    }
    return Schema.build(dialect, tables, owners=OWNERS)


@pytest.mark.parametrize("dialect", TYPES)
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_statement_is_the_one_that_was_read_and_kept(name: str, dialect: str) -> None:
    text, groups = QUESTIONS[name]
    written = sql(text, groups=groups).rewrite(schema(dialect)).text
    # Comments in front would be taken for SQL: the question is in the test, next to the name.
    file = FOLDER / f"{name}.{dialect}.sql"
    if os.environ.get("TULLE_SNAPSHOTS") == "write":
        file.write_text(written + "\n", encoding="utf-8")
    assert file.is_file(), "read the statement, then write it with TULLE_SNAPSHOTS=write"
    assert written + "\n" == file.read_text(encoding="utf-8")


def test_no_snapshot_is_left_over() -> None:
    names = {f"{name}.{dialect}.sql" for name in QUESTIONS for dialect in TYPES}
    assert {file.name for file in FOLDER.iterdir()} == names
