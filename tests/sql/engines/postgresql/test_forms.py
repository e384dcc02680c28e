"""PostgreSQL fails on functions of texts whose collation takes different texts for equal."""

from __future__ import annotations

from typing import Any

import pytest

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.sql.expressions import texts
from tulle.sql.expressions.kinds import TEXT

MAKE = (
    'CREATE COLLATION any_case FROM "C"',
    "CREATE TABLE person (id INTEGER, name TEXT COLLATE any_case, town TEXT)",
    "INSERT INTO person VALUES (1, 'Ann', 'x'), (2, 'bob', 'y'), (3, NULL, NULL)",
    # What CREATE COLLATION ... (deterministic = false) writes, also on servers built without ICU.
    "SET allow_system_table_mods = on",
    "UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'any_case'",
)
FUNCTIONS = [entry for entry in texts.ENTRIES if entry.takes[0] == {TEXT}]


def make(url: str) -> None:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in MAKE:
            cursor.execute(statement)


def test_a_text_of_such_a_collation_is_no_argument_and_no_owner(postgres_url: str) -> None:
    make(postgres_url)
    database = tulle.Database.connect(postgres_url, owners={"person": "id"})
    assert FUNCTIONS
    for entry in FUNCTIONS:
        text = "SELECT COUNT(*) FROM person WHERE {} IS NOT NULL"
        for column in ("town", "name"):
            written = entry.written.format(*[column] * len(entry.takes))
            asked: Any = tulle.sql(text.format(f"({written})"))
            if column == "town":
                asked.bind(database, {})
                continue
            with pytest.raises(QueryError):
                asked.bind(database, {})
    database.close()
    with pytest.raises(InputError, match="written in several ways"):
        tulle.Database.connect(postgres_url, owners={"person": "name"})
