"""PostgreSQL fails on functions of texts whose collation takes different texts for equal, and on
comparisons of texts of two collations; not before it meets a row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import pytest

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.sql.engines.base import EngineError
from tulle.sql.engines.postgresql import conversions
from tulle.sql.engines.postgresql.dialect import PostgreSQLDialect
from tulle.sql.expressions import texts
from tulle.sql.expressions.kinds import TEXT
from tulle.sql.queries import gather_tuples

MAKE = (
    'CREATE COLLATION any_case FROM "C"',
    "CREATE TABLE person (id INTEGER, name TEXT COLLATE any_case, town TEXT)",
    "INSERT INTO person VALUES (1, 'Ann', 'x'), (2, 'bob', 'y'), (3, NULL, NULL)",
    # What CREATE COLLATION ... (deterministic = false) writes, also on servers built without ICU.
    "SET allow_system_table_mods = on",
    "UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'any_case'",
)
FUNCTIONS = [entry for entry in texts.ENTRIES if entry.takes[0] == {TEXT}]


def make(url: str, *statements: str) -> None:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def test_a_text_of_such_a_collation_is_no_argument_and_no_owner(postgres_url: str) -> None:
    make(postgres_url, *MAKE)
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


# --- texts of several collations ------------------------------------------------------------------

COLUMNS = {
    "plain": "text",
    "c": 'text COLLATE "C"',
    "posix": 'varchar(9) COLLATE "POSIX"',
    "padded": "char(3) COLLATE mine",
    "word": "worded",
    "CAST(name AS TEXT)": "name",
    "CAST(listed AS TEXT)": 'text[] COLLATE "POSIX"',
    "CAST(loose AS TEXT)": "text COLLATE any_case",
    "CAST(loosely AS TEXT)": "text[] COLLATE any_case",
}
"""Texts as a question writes them, with the types of their columns."""

# The collation that takes different texts for equal is one of a language, where there is one:
# with "C" PostgreSQL does not look at what it is.
COLLATED = (
    'CREATE COLLATION mine FROM "C"',
    "CREATE DOMAIN worded AS text COLLATE mine",
    "DO $$ BEGIN EXECUTE format('CREATE COLLATION any_case FROM %I', (SELECT collname FROM "
    "pg_collation WHERE collprovider = 'c' ORDER BY collname IN ('C', 'POSIX'), 1 LIMIT 1)); "
    "END $$",
    "CREATE TABLE texts (id integer, "
    + ", ".join(
        f"{name.removeprefix('CAST(').removesuffix(' AS TEXT)')} {kind}"
        for name, kind in COLUMNS.items()
    )
    + ")",
    "INSERT INTO texts VALUES (1, 'a', 'a', 'a', 'a', 'a', 'a', '{a}', 'a', '{a}')",
    "SET allow_system_table_mods = on",
    "UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'any_case'",
)
MEETING = (
    *("{0} = {1}", "{0} < {1}", "{0} IN ({1}, 'b')", "{0} BETWEEN {1} AND {1}"),
    *("{0} IS DISTINCT FROM {1}", "(CASE {0} WHEN {1} THEN 1 END) = 1"),
    *("NULLIF({0}, {1}) = 'a'", "GREATEST({0}, {1}) = 'a'", "LEAST({0}, {1}) < 'a'"),
    *("{0} IN (SELECT {1} FROM texts o WHERE o.id = t.id)", "CONCAT({0}, {1}) = 'aa'"),
    *("(SELECT MAX({1}) FROM texts o WHERE o.id = t.id) = {0}",),
)
MIXED = ("COALESCE({0}, {1})", "({0} || {1})", "(CASE WHEN id = 2 THEN {0} ELSE {1} END)")
"""What is made of two texts and is one itself."""


CONDITIONS = (
    *MEETING,
    *(
        f"({entry.written.format(mixed, '{1}')}) IS NOT NULL"
        for entry, mixed in zip(FUNCTIONS, cycle(MIXED), strict=False)
    ),
)


def failing(url: str, conditions: Sequence[str] = CONDITIONS) -> list[str]:
    """Return the conditions on which PostgreSQL fails, most of them at a row."""
    database = tulle.Database.connect(url, owners={"texts": "id"})
    listed = [*COLUMNS]
    pairs = [*zip(listed, listed[1:] + listed[:1], strict=True), (listed[1], listed[3])]
    found = []
    for condition in conditions:
        each = [condition.replace("{0}", one).replace("{1}", other) for one, other in pairs]
        terms = " + ".join(f"CASE WHEN {one} THEN 1 ELSE 0 END" for one in each)
        try:
            gather_tuples(database, tulle.sql(f"SELECT SUM({terms}) FROM texts t"))
        except (EngineError, QueryError):
            found.append(condition)
    database.close()
    return found


def test_texts_of_all_collations_meet_on_every_row(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of which a condition compared such texts ended the statement: that it is there showed.

    Broken versions: one that reads columns as they are, one that casts to text as it is.
    """
    make(postgres_url, *COLLATED)
    assert failing(postgres_url) == []
    few = ("{0} = {1}", "{0} < {1}")
    with monkeypatch.context() as patch:
        patch.setattr(PostgreSQLDialect, "text_collation", None)
        assert failing(postgres_url, few) == [*few]
    monkeypatch.setattr(conversions, "collated", lambda given, collation: given)
    assert failing(postgres_url, few) == [*few]
