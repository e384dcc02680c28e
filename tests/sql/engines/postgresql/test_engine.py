"""PostgreSQL: what a statement means does not hang on how a server, database or role is set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlglot import exp

import tulle
from tulle.core.errors import InputError, TulleError
from tulle.sql.engines.postgresql import conversions, engine
from tulle.sql.expressions.kinds import OPAQUE, kind_of_column
from tulle.sql.queries import gather_tuples

ROWS = (
    "CREATE TABLE person (id TEXT, name TEXT)",
    r"INSERT INTO person VALUES ('1', 'a\'), ('2', NULL), ('猫', '猫')",
)
HARMLESS = {
    # The custodian's choice: how a time with a zone is a date.
    "TimeZone",
    # About texts and objects that no question has, or about what is written and not read.
    *("default_text_search_config", "icu_validation_level", "lc_messages", "xmlbinary"),
    *("escape_string_warning", "lo_compat_privileges", "quote_all_identifiers"),
    # In which order rows come: no answer hangs on that.
    "synchronize_seqscans",
}


def run(url: str, *statements: str) -> None:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@contextmanager
def connected(url: str) -> Iterator[Any]:
    database = tulle.Database.connect(url, owners={"person": "id"})
    try:
        yield database
    finally:
        database.close()


def true_count(url: str, condition: str) -> Any:
    with connected(url) as database:
        return tulle.sql(f"SELECT COUNT(*) FROM person WHERE {condition}").truth(database)


@pytest.mark.parametrize(
    ("setting", "condition", "count"),
    [
        ("standard_conforming_strings = off", r"name = 'a\' OR name = ' OR true OR name = '", 1),
        ("transform_null_equals = on", "name = NULL", 0),
        ("client_encoding = 'LATIN1'", "name = '猫'", 1),
        ("search_path = public, pg_catalog", "CAST(name AS TEXT) = '猫'", 1),
    ],
)
def test_settings_of_a_database_change_no_question(
    setting: str, condition: str, count: int, postgres_url: str
) -> None:
    name = urlsplit(postgres_url).path.removeprefix("/")
    run(postgres_url, *ROWS, "CREATE DOMAIN public.text AS pg_catalog.text CHECK (VALUE <> '猫')")
    run(postgres_url, f"ALTER DATABASE {name} SET {setting}")
    assert true_count(postgres_url, condition) == count


def test_every_text_comes_back_whatever_a_url_says(postgres_url: str) -> None:
    """Texts that the client's encoding lacks made the engine stop on their rows alone."""
    run(postgres_url, *ROWS)
    with connected(f"{postgres_url}&options=-cclient_encoding%3DLATIN1") as database:
        assert ("participant", "猫") in database.participants()


def test_settings_left_alone_are_caught(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(engine._SETTINGS, "client_encoding")
    with pytest.raises(Exception):  # noqa: B017, PT011 - the driver's own, or a wrong text
        test_every_text_comes_back_whatever_a_url_says(postgres_url)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "WIN1252", "EUC_JP"])
def test_databases_of_which_not_every_text_can_be_read_are_refused(
    encoding: str, postgres_server: Any, postgres_url: str
) -> None:
    name = f"in_{encoding.lower()}"
    run(
        postgres_url,
        f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' "
        "LC_CTYPE 'C'",
    )
    try:
        with pytest.raises(InputError, match=f"the database is in {encoding}"):
            tulle.Database.connect(postgres_server.get_uri(name), owners={})
    finally:
        run(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


def test_every_setting_of_language_and_form_is_fixed_or_says_nothing(postgres_url: str) -> None:
    """A newer server's settings fail here until somebody has looked at them."""
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(postgres_url) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM pg_settings WHERE context IN ('user', 'superuser') "
            "AND category ~ 'Locale and Formatting|Version and Platform'"
        )
        names = {row[0] for row in cursor.fetchall()}
    assert {name.lower() for name in names - HARMLESS} <= set(engine._SETTINGS)


# --- types of the database's own ------------------------------------------------------------------

KNOWN = [
    name
    for name in sorted({one.value.lower() for one in exp.DataType.Type})
    if kind_of_column(name, "postgres").name != OPAQUE and "(" not in name
]
"""Names that the parser takes for types; those that PostgreSQL lacks can be a domain's."""

ENUM = (
    "CREATE TYPE mood AS ENUM ('1', '70000')",
    "CREATE FUNCTION written(mood) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN IF $1 = "
    "'70000' THEN RAISE EXCEPTION 'seen'; END IF; RETURN 'x'; END $$",
    "CREATE CAST (mood AS text) WITH FUNCTION written(mood) AS ASSIGNMENT",
    "CREATE TYPE pair AS (a mood, b mood)",
)
PLACES = (
    *("SELECT SUM(CAST({} AS SMALLINT)) FROM own", "SELECT COUNT(*) FROM own WHERE {} = '1'"),
    *(
        "SELECT COUNT(*) FROM own WHERE {} > 1",
        "SELECT COUNT(DISTINCT {}) FROM own",
        "SELECT SUM({}) FROM own",
    ),
    *(
        "SELECT COUNT(*) FROM own WHERE EXTRACT(YEAR FROM {}) > 2",
        "SELECT COUNT(*) FROM own WHERE NOT {}",
    ),
    "SELECT COUNT(*) FROM own x JOIN own y ON x.{0} = y.{0}",
    "SELECT COUNT(*) FROM (SELECT who, MAX({}) AS m FROM own GROUP BY who) q WHERE m IS NULL",
    "SELECT COUNT(CASE WHEN who = 1 THEN {} END) FROM own",
)


def _domains(url: str) -> dict[str, str]:
    """Make domains of names that the parser knows; return columns of them and of other types."""
    made = {}
    for name in ("tinyint", *KNOWN[::4]):
        try:
            run(url, f'CREATE DOMAIN "{name}" AS integer', f"CREATE TABLE probe (x {name})")
        except Exception:  # noqa: BLE001 - the driver's own: a word of PostgreSQL's
            continue
        finally:
            run(url, "DROP TABLE IF EXISTS probe")
        made[f"c_{name}"] = name
    return made | {"c_mood": "mood", "c_pair": "pair"}


def differences(url: str, columns: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the columns of which a value shows in whether a question is answered."""
    found: list[dict[str, list[str]]] = []
    for value in ("1", "70000"):
        given = {"mood": f"'{value}'", "pair": f"ROW('{value}', NULL)"}
        listed = ", ".join(given.get(kind, value) for kind in columns.values())
        rows = f"(1, {listed}), (2, {listed})"
        run(url, "TRUNCATE own", f"INSERT INTO own (who, {', '.join(columns)}) VALUES {rows}")
        database = tulle.Database.connect(url, owners={"own": "who"})
        monkeypatch.setattr(database, "check", lru_cache(maxsize=None)(database._engine.check))
        found.append({column: [] for column in columns})
        for column in columns:
            for text in PLACES:
                try:
                    gather_tuples(database, tulle.sql(text.format(column)))
                    found[-1][column].append("answered")
                except TulleError as error:
                    found[-1][column].append(str(error))
        database.close()
    return {column for column in columns if found[0][column] != found[1][column]}


def test_values_of_own_types_show_in_no_question(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A domain may be called like a type that others have, and a cast of one's own may fail."""
    run(postgres_url, *ENUM)
    columns = _domains(postgres_url)
    assert len(columns) > 5
    listed = ", ".join(f'{column} public."{kind}"' for column, kind in columns.items())
    run(postgres_url, f"CREATE TABLE own (who integer, {listed})")
    assert differences(postgres_url, columns, monkeypatch) == set()
    few = {name: columns[name] for name in ("c_mood", "c_tinyint")}
    # Broken versions: one that casts to text, one that takes types by their names.
    with monkeypatch.context() as patch:
        patch.setattr(conversions, "_written_out", conversions._plain)
        assert differences(postgres_url, few, patch) == {"c_mood"}
    quoted = "ELSE '\"' || n.nspname || '\".\"' || y.typname || '\"' END"
    assert quoted in engine._COLUMNS
    monkeypatch.setattr(engine, "_COLUMNS", engine._COLUMNS.replace(quoted, "ELSE y.typname END"))
    assert "c_tinyint" in differences(postgres_url, few, monkeypatch)


def test_own_types_are_texts(postgres_url: str) -> None:
    run(postgres_url, *ENUM, "CREATE TABLE own (who integer, m mood, p pair)")
    run(postgres_url, "INSERT INTO own VALUES (1, '1', ROW(NULL, NULL)), (2, '70000', NULL)")
    database = tulle.Database.connect(postgres_url, owners={"own": "who"})

    def count(condition: str) -> Any:
        return tulle.sql(f"SELECT COUNT(*) FROM own WHERE {condition}").truth(database)

    assert count("m = '70000'") == count("m IN ('1', 'x')") == count("p = '(,)'") == 1
    assert count("p IS NULL") == 1
    assert count("CAST(m AS INTEGER) > 1") == 1
    database.close()
    with pytest.raises(InputError, match="can be written in several ways"):
        tulle.Database.connect(postgres_url, owners={"own": "m"})
