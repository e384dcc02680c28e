"""Joins are joins in the statement itself, and not by an optimiser's grace.

Where DuckDB's optimiser fails, the statement runs as it is written. A product of tables would then
take time that is quadratic in the rows, and time tells.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

from sqlglot import exp  # noqa: E402

from tulle.sql.compile import derivations  # noqa: E402
from tulle.sql.data import Database  # noqa: E402
from tulle.sql.queries import relation_of, sql  # noqa: E402

TABLES = """
CREATE TABLE person (id INTEGER, city VARCHAR, age INTEGER);
CREATE TABLE orders (number INTEGER, customer BIGINT, price DOUBLE);
CREATE TABLE item (number INTEGER, sku INTEGER);
CREATE TABLE edge (a INTEGER, b INTEGER);
INSERT INTO person SELECT range, 'c' || (range % 3), range FROM range(40);
INSERT INTO orders SELECT range, range % 40, range FROM range(80);
INSERT INTO item SELECT range % 80, range % 7 FROM range(160);
INSERT INTO edge SELECT range % 40, (range * 7 + 1) % 40 FROM range(60);
"""
OWNERS = {
    "person": "person: id",
    "orders": "person: customer",
    "item": "number -> orders[number]",
    "edge": ["person: a", "person: b"],
}
QUESTIONS = {
    "two tables": "SELECT COUNT(*) FROM person JOIN orders ON id = customer",
    "in WHERE": "SELECT COUNT(*) FROM person, orders WHERE id = customer AND price > 3",
    "a path to the owner": "SELECT COUNT(*) FROM item",
    "two that only a third links": "SELECT COUNT(*) FROM person p, person q, edge e "
    "WHERE p.id = e.a AND q.id = e.b",
    "a triangle": "SELECT COUNT(*) FROM edge x JOIN edge y ON x.b = y.a "
    "JOIN edge z ON y.b = z.a AND z.b = x.a",
    "what can fail": "SELECT SUM(price) FROM person JOIN orders ON id + 1 = customer + 1",
    "a witness": "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM edge e "
    "WHERE e.a = p.id)",
    "distinct": "SELECT COUNT(DISTINCT sku) FROM person JOIN orders ON id = customer "
    "JOIN item USING (number)",
}
PRODUCTS = r"CROSS_PRODUCT|NESTED_LOOP_JOIN|BLOCKWISE_NL_JOIN"


@pytest.fixture(scope="module")
def database() -> Any:
    connection = duckdb.connect()
    connection.execute(TABLES)
    return Database.connect(connection, owners=OWNERS)


def as_written(database: Database, text: str) -> str:
    """Return DuckDB's plan for a question's statement when nothing is optimised."""
    statement = sql(text).bind(database).rewrite(database.schema).text  # type: ignore[union-attr]
    with database._engine._cursor() as cursor:  # type: ignore[attr-defined]
        cursor.execute("PRAGMA disable_optimizer")
        return "\n".join(
            row[1] for row in cursor.execute(f"EXPLAIN (FORMAT json) {statement}").fetchall()
        )


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_statement_as_written_joins_by_hashing(name: str, database: Database) -> None:
    plan = as_written(database, QUESTIONS[name])
    assert re.search(PRODUCTS, plan) is None, plan
    assert "HASH_JOIN" in plan


@pytest.mark.parametrize("name", QUESTIONS)
def test_all_conditions_in_where_are_caught(
    name: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: sources side by side, as they were; its relation is the same."""
    expected = relation_of(database, sql(QUESTIONS[name])).total
    monkeypatch.setattr(
        derivations,
        "_joined",
        lambda sources, conditions: ([(one, []) for one in sources], list(conditions)),
    )
    assert re.search(PRODUCTS, as_written(database, QUESTIONS[name]))
    assert relation_of(database, sql(QUESTIONS[name])).total == expected


def test_the_users_order_would_be_a_product(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: conditions in ON, but sources in the order in which they were named."""
    order = derivations._joined

    def in_order(sources: Any, conditions: Any) -> Any:
        joined, rest = order(sources, conditions)
        parts = [part for _, on in joined for part in on]
        placed: set[str] = set()
        made = []
        for source in sources:
            placed.add(source.alias_or_name)
            now = [c for c in parts if {f.table for f in c.find_all(exp.Column)} <= placed]
            parts = [c for c in parts if c not in now]
            made.append((source, now))
        return made, rest

    monkeypatch.setattr(derivations, "_joined", in_order)
    text = QUESTIONS["two that only a third links"]
    assert re.search(PRODUCTS, as_written(database, text))


def test_every_comparison_of_a_join_is_guarded(database: Database) -> None:
    text = QUESTIONS["what can fail"]
    statement = sql(text).bind(database).rewrite(database.schema).text  # type: ignore[union-attr]
    on = re.search(r"ON (.*?)(?:WHERE|\) AS|$)", statement, re.DOTALL)
    assert on is not None
    assert on[1].count("TRY(") == 2


def test_what_does_not_compare_two_sources_stays_where_it_was(database: Database) -> None:
    text = "SELECT COUNT(*) FROM person p, person q WHERE p.age = 3 OR q.age = 4"
    assert "CROSS JOIN" in database.rewritten(sql(text))  # type: ignore[arg-type]
    compared = "SELECT COUNT(*) FROM person p, person q WHERE p.age < q.age"
    assert "CROSS JOIN" not in database.rewritten(sql(compared))  # type: ignore[arg-type]
