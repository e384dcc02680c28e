"""PostgreSQL: what a statement means does not hang on how a server, database or role is set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

import tulle
from tulle.core.errors import InputError
from tulle.sql.engines.postgresql import engine

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
