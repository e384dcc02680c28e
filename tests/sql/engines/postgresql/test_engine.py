"""PostgreSQL: what a statement means does not hang on how a server, database or role is set."""

from __future__ import annotations

import gc
import unicodedata
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlglot import exp

import tulle
from tulle.core.errors import InputError, QueryError, TulleError
from tulle.sql.engines.postgresql import conversions, engine
from tulle.sql.expressions.conversions import Typed
from tulle.sql.expressions.kinds import OPAQUE, TEXT, Kind, kind_of_column
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
"""Names that the parser takes for types; those that PostgreSQL lacks can be another type's."""

ENUM = (
    "CREATE TYPE mood AS ENUM ('1', '70000')",
    "CREATE FUNCTION written(mood) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN IF $1 = "
    "'70000' THEN RAISE EXCEPTION 'seen'; END IF; RETURN 'x'; END $$",
    "CREATE CAST (mood AS text) WITH FUNCTION written(mood) AS ASSIGNMENT",
    "CREATE TYPE pair AS (a mood, b mood)",
)
DOMAINS = (
    "CREATE DOMAIN price AS integer",
    "CREATE DOMAIN fine AS price CHECK (VALUE < 100000)",
    "CREATE DOMAIN feeling AS mood",
    "CREATE DOMAIN numbers AS integer[]",
)
CAST = (
    "CREATE TYPE colour AS ENUM ('1')",
    "CREATE DOMAIN shade AS colour",
    "CREATE FUNCTION as_colour(integer) RETURNS colour LANGUAGE sql AS 'SELECT ''1''::colour'",
    "CREATE CAST (integer AS colour) WITH FUNCTION as_colour(integer) AS IMPLICIT",
)
OWN = ("mood", "pair", "price", "fine", "feeling", "numbers")
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


def _types(url: str) -> dict[str, str]:
    """Make types of names that the parser knows; return columns of them and of other types."""
    made = {}
    for name in ("tinyint", *KNOWN[::4]):
        try:
            run(url, f"CREATE TYPE \"{name}\" AS ENUM ('1', '70000')")
            run(url, f"CREATE TABLE probe (x {name})")
        except Exception:  # noqa: BLE001 - the driver's own: a word of PostgreSQL's
            continue
        finally:
            run(url, "DROP TABLE IF EXISTS probe")
        made[f"c_{name}"] = name
    return made | {f"c_{name}": name for name in OWN}


def _traps(kind: str) -> list[str]:
    """Return functions, operators, casts of a type that fit it best and fail at one value."""
    made = []
    for name, arguments, result in (
        *(("num_nulls", "{0}", "integer"), ("format", "text, {0}", "text")),
        *(("written_{0}", "{0}", "text"), ("shorter_{0}", "{0}", "smallint")),
        *(("equal_{0}", "{0}, {0}", "boolean"), ("mixed_{0}", "{0}, integer", "boolean")),
        *(("worded_{0}", "{0}, text", "boolean"), ("add_{0}", "bigint, {0}", "bigint")),
    ):
        types = arguments.format(kind).split(", ")
        place = types.index(kind) + 1
        made.append(
            f"CREATE FUNCTION {name.format(kind)}({', '.join(types)}) RETURNS {result} IMMUTABLE "
            f"LANGUAGE plpgsql AS $$ BEGIN IF pg_catalog.num_nulls(${place}) = 0 AND "
            f"textin(textout(pg_catalog.format('%s', ${place}))) LIKE '%70000%' THEN RAISE "
            "EXCEPTION 'seen'; END IF; RETURN NULL; END $$"
        )
    for sign in ("=", ">", "<", "<>", ">="):
        for function, right in (("equal", kind), ("mixed", "integer"), ("worded", "text")):
            sides = f"LEFTARG = {kind}, RIGHTARG = {right}"
            made.append(f"CREATE OPERATOR {sign} (FUNCTION = {function}_{kind}, {sides})")
    made += [
        f"CREATE AGGREGATE {name}({kind}) (SFUNC = add_{kind}, STYPE = bigint, INITCOND = '0')"
        for name in ("sum", "max", "count")
    ]
    if kind != "mood":
        made.append(f"CREATE CAST ({kind} AS text) WITH FUNCTION written_{kind}({kind})")
    made.append(f"CREATE CAST ({kind} AS smallint) WITH FUNCTION shorter_{kind}({kind})")
    return made


def differences(url: str, columns: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the columns of which a value shows in whether a question is answered."""
    found: list[dict[str, list[str]]] = []
    for value in ("1", "70000"):
        given = {"pair": f"ROW('{value}', NULL)", "price": value, "fine": value}
        given["numbers"] = f"ARRAY[{value}]"
        listed = ", ".join(given.get(kind, f"'{value}'") for kind in columns.values())
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


def settled_as_before(self: engine.PostgreSQL, settle: Any = engine.PostgreSQL._settle) -> None:
    """Set a session so that what is the database's own is found after PostgreSQL's."""
    settle(self)
    with self._connection.cursor() as cursor:
        cursor.execute("SET search_path = pg_catalog, public, pg_temp")


def test_values_of_own_types_show_in_no_question(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A type may be called like one that others have, and what is made for it may fail."""
    run(postgres_url, *ENUM, *DOMAINS)
    columns = _types(postgres_url)
    for kind in ("tinyint", *OWN):
        run(postgres_url, *_traps(kind))
    assert len(columns) > 9
    listed = ", ".join(f'{column} public."{kind}"' for column, kind in columns.items())
    run(postgres_url, f"CREATE TABLE own (who integer, {listed})")
    assert differences(postgres_url, columns, monkeypatch) == set()
    few = {name: columns[name] for name in ("c_mood", "c_tinyint", "c_price", "c_fine")}
    # Broken versions: one that casts to text, one that finds functions and operators of the
    # database's own, one that takes types by their names.
    with monkeypatch.context() as patch:
        patch.setattr(conversions, "_written_out", conversions._plain)
        assert differences(postgres_url, few, patch) == {"c_mood", "c_tinyint"}
    with monkeypatch.context() as patch:
        patch.setattr(engine.PostgreSQL, "_settle", settled_as_before)
        assert {"c_price", "c_fine"} <= differences(postgres_url, few, patch)
    quoted = "ELSE '\"' || n.nspname || '\".\"' || y.typname || '\"' END"
    assert quoted in engine._COLUMNS
    monkeypatch.setattr(engine, "_COLUMNS", engine._COLUMNS.replace(quoted, "ELSE y.typname END"))
    assert "c_tinyint" in differences(postgres_url, few, monkeypatch)


ARGUMENTS = ("integer, fine", "fine, integer", "integer, colour", "colour, colour", "{any}, {any}")


def _picked(url: str) -> set[str]:
    """Return what of the database's own a session could pick."""
    with closing(engine.PostgreSQL.open(url)) as session:
        rows = session.read(
            "SELECT proname AS name FROM pg_proc p WHERE p.oid >= 16384 "
            "AND pg_function_is_visible(p.oid) UNION SELECT oprname FROM pg_operator o "
            "WHERE o.oid >= 16384 AND pg_operator_is_visible(o.oid) UNION SELECT typname "
            "FROM pg_type t WHERE t.oid >= 16384 AND pg_type_is_visible(t.oid)"
        ).to_pylist()
    return {row["name"] for row in rows}


def _take_places(url: str, schema: str = "public") -> None:
    """Make functions and operators of PostgreSQL's names that fit some arguments better."""
    run(url, *ROWS, *ENUM, *DOMAINS, *CAST)
    for arguments in ARGUMENTS:
        types = arguments.format(any="anyelement")
        left, right = types.split(", ")
        sides = f"LEFTARG = {left}, RIGHTARG = {right}"
        body = f"({types}) RETURNS integer LANGUAGE sql AS 'SELECT 1'"
        run(
            url,
            f"CREATE FUNCTION {schema}.power{body}",
            f"CREATE OPERATOR {schema}.% (FUNCTION = {schema}.power, {sides})",
        )


def test_nothing_of_the_databases_own_is_called(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """power(2, 3) called power(integer, domain over integer): PostgreSQL's own fit less well."""
    _take_places(postgres_url)
    assert _picked(postgres_url) == set()
    assert true_count(postgres_url, "CAST(id AS INTEGER) % 3 = 2") == 1
    monkeypatch.setattr(engine.PostgreSQL, "_settle", settled_as_before)
    assert {"power", "%", "fine"} <= _picked(postgres_url)


def test_what_somebody_put_beside_postgresqls_own_is_refused(postgres_url: str) -> None:
    _take_places(postgres_url, "pg_catalog")
    # This one is called like none of PostgreSQL's.
    run(postgres_url, "CREATE FUNCTION pg_catalog.powers() RETURNS integer RETURN 1")
    with pytest.raises(InputError, match=r"called like postgres's: %, power\."):
        tulle.Database.connect(postgres_url, owners={"person": "id"})


def test_domains_are_the_types_that_they_are_over(postgres_url: str) -> None:
    made = {
        "price": "numeric(10,2)",
        "fine": "price",
        "word": "varchar(9)",
        "day": "date",
        "numbers": "integer[]",
    }
    run(postgres_url, *(f"CREATE DOMAIN {name} AS {over}" for name, over in made.items()))
    run(
        postgres_url,
        'CREATE COLLATION any_case FROM "C"',
        "SET allow_system_table_mods = on",
        "UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'any_case'",
        *("CREATE DOMAIN loose AS text COLLATE any_case", "CREATE DOMAIN key AS integer"),
        "CREATE TABLE own (who key, p price, f fine, w word, d day, n numbers, l loose)",
        "INSERT INTO own VALUES (1, 1.25, 2.5, 'a', '2020-02-03', '{1,2}', 'x'), "
        "(2, 70000.01, NULL, 'B', NULL, NULL, NULL)",
    )
    database = tulle.Database.connect(
        postgres_url, owners={"own": "who"}, ranges={"own.p": (0, 100000)}
    )

    def truth(text: str) -> Any:
        return tulle.sql(text).truth(database)

    assert truth("SELECT SUM(p) FROM own") == 70001.26
    assert truth("SELECT COUNT(*) FROM own WHERE p - f = -1.25 AND w LIKE 'a%'") == 1
    assert truth("SELECT COUNT(*) FROM own WHERE EXTRACT(MONTH FROM d) = 2") == 1
    assert truth("SELECT COUNT(*) FROM own WHERE n = '{1,2}' OR w > 'C'") == 1
    with pytest.raises(QueryError):
        truth("SELECT COUNT(*) FROM own WHERE l LIKE 'a%'")
    assert set(database.participants()) == {("participant", 1), ("participant", 2)}
    database.close()


@pytest.mark.parametrize("name", sorted(conversions._PATTERNS))
def test_a_digit_in_a_text_is_one_of_ten(name: str, postgres_url: str) -> None:
    """In a collation of ICU a digit of any script passed for one, and no number is read from it."""
    written = Typed(exp.column("a"), Kind(TEXT))
    made = conversions.converted(written, Kind(name, 9), exp.DataType.build("DATE", "postgres"))
    assert 'COLLATE "C"), ' in made.node.sql("postgres")
    digits = "".join(chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) == "Nd")[10:]
    run(
        postgres_url,
        "CREATE TABLE person (id integer, name text)",
        f"INSERT INTO person SELECT 1, unnest(string_to_array('{digits}', NULL))",
    )
    assert true_count(postgres_url, "CAST(name AS DECIMAL(9, 0)) IS NOT NULL") == 0


def test_texts_of_own_types_have_the_usual_collation() -> None:
    """PostgreSQL fails on functions of texts whose collation takes different texts for equal."""
    given = Typed(exp.column("a"), kind_of_column('"s"."tag" COLLATE x', "postgres"))
    made = conversions.converted(given, Kind(TEXT), None).node.sql("postgres")
    assert made.endswith("FORMAT('%s', a) END) COLLATE \"default\")")


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


@pytest.mark.parametrize("key", ["COALESCE(a, b)", "COALESCE(c, d)"])
def test_equal_values_of_several_types_are_one_found_key(key: str, postgres_url: str) -> None:
    """1.50 and 1.5 were two."""
    run(
        postgres_url,
        "CREATE TABLE visit (who integer, a numeric(4,2), b numeric(6,1), c char(3), d char(5))",
        "INSERT INTO visit SELECT i, CASE WHEN i % 2 = 0 THEN 1.5 END, 1.5, "
        "CASE WHEN i % 2 = 0 THEN 'x' END, 'x' FROM generate_series(1, 400) i",
    )
    with closing(tulle.Database.connect(postgres_url, owners={"visit": "who"})) as database:
        asked = tulle.sql(f"SELECT {key} AS k, COUNT(*) AS n FROM visit GROUP BY {key}")
        terms = {"unit": "participant", "epsilon": 10, "delta": 1e-6}
        assert len(tulle.release(database, asked, **terms).value["k"]) == 1


def test_equal_texts_of_several_lengths_have_one_form(postgres_url: str) -> None:
    """'x  ' of char(3) is 'x    ' of char(5), and LIKE told which of them stood for both."""
    run(
        postgres_url,
        "CREATE TABLE visit (who integer, c char(3), d char(5))",
        "INSERT INTO visit VALUES (1, 'x', 'x'), (2, 'x', 'x')",
    )
    rows = "SELECT c AS x FROM visit UNION SELECT d FROM visit"
    with closing(tulle.Database.connect(postgres_url, owners={"visit": "who"})) as database:
        for pattern, count in (("x", 1), ("x__", 0), ("x____", 0)):
            asked = tulle.sql(f"SELECT COUNT(*) FROM ({rows}) q WHERE x LIKE '{pattern}'")
            assert sum(found.total for found in gather_tuples(database, asked).relations) == count


# --- rows that are in two tables ------------------------------------------------------------------

SHARED = (
    "CREATE TABLE base (who integer, other integer, day date)",
    "CREATE TABLE child () INHERITS (base)",
    "CREATE TABLE whole (who integer, other integer, day date) PARTITION BY RANGE (who)",
    "CREATE TABLE middle PARTITION OF whole FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (who)",
    "CREATE TABLE part PARTITION OF middle FOR VALUES FROM (0) TO (5)",
    "CREATE TABLE first (who integer, other integer, day date)",
    "CREATE TABLE second (who integer, other integer, day date)",
    "CREATE SCHEMA elsewhere",
    "CREATE TABLE elsewhere.third () INHERITS (first, second)",
    "INSERT INTO child VALUES (1, 2, '2024-01-01'), (2, 3, '2024-01-01')",
    "INSERT INTO elsewhere.third VALUES (1, 2, '2024-01-01'), (2, 3, '2024-01-01')",
    "INSERT INTO whole VALUES (1, 2, '2024-01-01'), (2, 3, '2024-01-01')",
)


@pytest.mark.parametrize("pair", [("base", "child"), ("whole", "part"), ("first", "second")])
@pytest.mark.parametrize(
    ("declared", "alike"),
    [
        ({"owners": ("who", "who")}, True),
        ({"owners": ("who", "other")}, False),
        ({"owners": ("who", ["who", "other"])}, False),
        ({"owners": ("who", None)}, False),
        ({"owners": (None, "who")}, False),
        ({"owners": (None, None)}, True),
        ({"owners": ("who", "who"), "times": "day"}, False),
    ],
)
def test_rows_that_are_in_two_tables_have_one_declaration(
    pair: tuple[str, str], declared: dict[str, Any], alike: bool, postgres_url: str
) -> None:
    """What reads a table reads the tables that inherit from it: private rows were public there."""
    run(postgres_url, *SHARED)
    listed = dict(zip(pair, declared["owners"], strict=True))
    given: dict[str, Any] = {
        "owners": {table: owner for table, owner in listed.items() if owner is not None},
        "public": [table for table, owner in listed.items() if owner is None],
    }
    if "times" in declared:
        given["times"] = {pair[1]: declared["times"]}
    if not alike:
        with pytest.raises(InputError, match=f"Rows of {pair[1]} are also rows of {pair[0]}"):
            tulle.Database.connect(postgres_url, **given)
        return
    with closing(tulle.Database.connect(postgres_url, **given)) as database:
        for participant in database.participants():
            left = database.without(*participant)
            counts = {tulle.sql(f"SELECT COUNT(*) FROM {table}").truth(left) for table in pair}
            assert len(counts) == 1


def test_rows_shared_with_a_public_table_are_caught(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine.PostgreSQL, "parts", lambda self: ())
    run(postgres_url, *SHARED)
    with closing(
        tulle.Database.connect(postgres_url, owners={"child": "who"}, public=["base"])
    ) as database:
        counted = tulle.sql("SELECT COUNT(*) FROM base").truth(database.without("participant", 1))
        assert counted == 2


def test_a_primary_key_holds_for_partitions_and_not_for_tables_that_inherit(
    postgres_url: str,
) -> None:
    """A child's row may have its parent's key once more, and an error was predicted as if not."""
    run(
        postgres_url,
        "CREATE TABLE alone (who integer PRIMARY KEY)",
        "CREATE TABLE base (who integer PRIMARY KEY)",
        "CREATE TABLE child () INHERITS (base)",
        "CREATE TABLE whole (who integer PRIMARY KEY) PARTITION BY LIST (who)",
        "CREATE TABLE part PARTITION OF whole DEFAULT",
    )
    with closing(engine.PostgreSQL.open(postgres_url)) as session:
        assert sorted(session.keys().primary) == ["alone", "part", "whole"]


def test_a_table_that_becomes_part_of_another_one_is_refused(postgres_url: str) -> None:
    run(postgres_url, "CREATE TABLE base (who integer)", "CREATE TABLE child (who integer)")
    given = {"owners": {"child": "who"}, "public": ["base"]}
    with closing(tulle.Database.connect(postgres_url, **given)) as database:
        question = tulle.sql("SELECT COUNT(*) FROM child JOIN base USING (who)")
        plan = {"unit": "participant", "epsilon": 1}
        assert tulle.release(database, question, **plan) is not None
        run(postgres_url, "ALTER TABLE child INHERIT base")
        with pytest.raises(QueryError, match="Rows of child are also rows of base"):
            tulle.release(database, question, **plan)


def test_columns_that_the_role_may_not_read_are_refused_before_the_price(postgres_url: str) -> None:
    """PREPARE looks at no privileges: the question was paid for, and then failed."""
    run(
        postgres_url,
        *ROWS,
        "CREATE TABLE hidden (id TEXT)",
        "DROP ROLE IF EXISTS few_columns",
        "CREATE ROLE few_columns LOGIN",
        "GRANT SELECT (id) ON person TO few_columns",
    )
    url = postgres_url.replace("postgres:@", "few_columns:@")
    with pytest.raises(InputError, match="there is no table 'hidden'"):
        tulle.Database.connect(url, owners={"hidden": "id"})
    with connected(url) as database:
        assert tulle.sql("SELECT COUNT(DISTINCT id) FROM person").truth(database) == 3
        named = tulle.sql("SELECT COUNT(*) FROM person WHERE name IS NULL")
        with pytest.raises(QueryError, match="'name' could not be resolved"):
            tulle.release(database, named, unit="participant", epsilon=1)


def test_a_database_that_nobody_has_any_more_leaves_no_connection(postgres_url: str) -> None:
    run(postgres_url, *ROWS)
    listed = tulle.Database.connect(postgres_url, owners={"person": "id"})
    connection = listed._engine._connection
    around = [listed]
    around.append(around)
    del listed, around
    assert not connection._closed
    gc.collect()
    assert connection._closed


def test_a_database_that_cannot_be_described_leaves_no_connection(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong while connecting."""
    run(postgres_url, *ROWS)
    opened: list[Any] = []

    def stopped(self: Any, tables: Any) -> None:
        opened.append(self._connection)
        raise KeyboardInterrupt

    monkeypatch.setattr(engine.PostgreSQL, "hold", stopped)
    with pytest.raises(KeyboardInterrupt):
        tulle.Database.connect(postgres_url, owners={"person": "id"})
    assert [one._closed for one in opened] == [True]
