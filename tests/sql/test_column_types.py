"""No value of any column type, in any place of a question, shows besides the noise.

Types and their values come from what the engines say of themselves (:mod:`tests.sql.sql_types`).
The everyday suite tries some pairs of a type and a place, the slow one others in every run, and
all of them where it has the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import duckdb
import pytest
from sqlglot import exp
from tests.drawn import Drawn, are_enough
from tests.sql.expressions.test_total import unguarded
from tests.sql.spark_types import SPARK, SPARK_POOL, taken
from tests.sql.sql_types import NEAR, ODD, PLACES, TAME, Column, Place, attack

import tulle
from tulle.sql.compile import owned_rows
from tulle.sql.compile.derivations import select
from tulle.sql.compile.statements import total_statement
from tulle.sql.expressions.kinds import kind_of_column
from tulle.sql.schema.schema import Schema

SAMPLE = 61
"""Of so many pairs of a type and a place, one is tried every day."""


DUCKDB_FORMS = {
    "ARRAY": ("INTEGER[3]",),
    "DECIMAL": ("DECIMAL(4,1)", "DECIMAL(38,0)", "DECIMAL(38,37)"),
    "ENUM": ("ENUM('sad', 'ok', 'happy')", "ENUM('a')"),
    "LIST": ("INTEGER[]",),
    "MAP": ("MAP(VARCHAR, INTEGER)",),
    "STRUCT": ("STRUCT(a INTEGER, b VARCHAR)",),
    "UNION": ("UNION(n INTEGER, s VARCHAR)",),
    "VARCHAR": ("VARCHAR", "VARCHAR COLLATE NOCASE", "JSON"),
}
"""How types are declared that take parameters."""

NOT_STORED = {"NULL", "TUPLE", "TYPE"}
"""Types that DuckDB lists and no table may have."""

POSTGRES_MADE = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
    "CREATE TYPE pair AS (a text, b integer)",
    "CREATE DOMAIN small AS integer CHECK (VALUE < 1000000)",
)
POSTGRES_FORMS = {
    "numeric": ("numeric", "numeric(4,1)", "numeric(38,37)"),
    "bpchar": ("char(3)",),
    "varchar": ("varchar", "varchar(2)"),
    "bit": ("bit(3)",),
    "text": ("text", 'text COLLATE "C"'),
}


# --- DuckDB -------------------------------------------------------------------------------------


def fitting(pool: Sequence[str], fits: Any) -> tuple[str, ...]:
    return tuple(text for text in dict.fromkeys(pool) if fits(text))


@lru_cache(maxsize=1)
def duckdb_columns() -> tuple[Column, ...]:
    """Return every type that DuckDB lists with the values that it takes."""
    connection = duckdb.connect()
    listed = connection.execute(
        "SELECT DISTINCT logical_type FROM duckdb_types() WHERE internal ORDER BY 1"
    ).fetchall()
    found = []
    for (name,) in listed:
        if name in NOT_STORED:
            continue
        for written in DUCKDB_FORMS.get(name, (name,)):
            kind = written.split(" COLLATE")[0]
            taken = connection.execute(
                f"SELECT x FROM (SELECT unnest(?) AS x) p WHERE TRY_CAST(x AS {kind}) IS NOT NULL",
                [[*TAME, *ODD]],
            ).fetchall()
            fits = {text for (text,) in taken}.__contains__
            found.append(Column(written, fitting(TAME, fits)[:4], fitting(ODD, fits)))
    return tuple(found)


def in_duckdb(column: Column, rows: Any, place: Place) -> Any:
    connection = duckdb.connect()
    kind = column.type.split(" COLLATE")[0]
    for name in ("t", "u"):
        connection.execute(f"CREATE TABLE {name} (id INTEGER, v {column.type}, w INTEGER)")
        for who, v in rows:
            row = f"INSERT INTO {name} VALUES (?, TRY_CAST(? AS {kind}), ?)"
            connection.execute(row, [who, v, who % 3])
    return tulle.Database.connect(
        connection, owners=place.owners, ranges=place.ranges, times=place.times
    )


def check(pairs: Iterable[tuple[Column, Place]], connect: Any, least: float) -> None:
    """Attack with these pairs, of which some must be answered."""
    answered = tried = 0
    for column, place in pairs:
        tried += 1
        seen = attack(column, place, connect)
        assert seen.findings == (), (column.type, place.name)
        for one in seen.shown:
            raised = re.match(r"raises (\w+)", one.text)
            allowed = {"InputError", "QueryError", "UnitError"}
            assert raised is None or raised[1] in allowed, (column.type, place.name, one)
        assert seen.gives("plan") == seen.gives("ask"), (column.type, place.name)
        answered += seen.gives("ask")
    assert are_enough(answered, tried, least)


def test_every_type_has_values() -> None:
    columns = duckdb_columns()
    assert len({column.type.split("(")[0] for column in columns}) >= 30
    assert [column.type for column in columns if not column.tame] == []


def test_some_types_in_some_places_of_duckdb() -> None:
    pairs = list(product(duckdb_columns(), PLACES))
    check(pairs[7::SAMPLE], in_duckdb, 5)


def test_owners_are_of_types_in_which_one_is_written_in_one_way() -> None:
    """Accepted or refused from the catalogue: by the declaration alone, before any row."""
    accepted = set()
    for column in duckdb_columns():
        try:
            in_duckdb(column, [], PLACES[0]).close()
        except tulle.InputError:
            continue
        accepted.add(column.type.split("(")[0])
    assert {"ENUM", "INTEGER", "VARCHAR", "UUID", "DATE"} <= accepted
    assert not {"MAP", "STRUCT", "UNION", "INTEGER[3]", "INTEGER[]", "DOUBLE"} & accepted


def paths(schema: Schema, rows: Sequence[Column]) -> Iterator[tuple[Column, str]]:
    """Yield the types of rows that a path may compare, and what gives the number of each row."""
    for place, row in enumerate(rows):
        try:
            there = owned_rows.owned_rows(schema, f"rows_{place}")
            text = total_statement(select([exp.column("n", table="t")], *there), schema)
        except tulle.QueryError:
            continue
        yield row, text.sql(dialect=schema.dialect)


def owners_over(rows: Sequence[Column]) -> dict[str, str]:
    return {"person": "id", **{f"rows_{at}": "r -> person[k]" for at in range(len(rows))}}


def led_to_two(keys: Iterable[Column], rows: Sequence[Column]) -> tuple[int, list[str]]:
    """Return how many pairs of types a path may compare, and those in which a row leads to two.

    All keys differ, and each is another person's; so two would share the row.
    """
    values, asked, found = [[*TAME, *ODD, *NEAR]], 0, []
    for key in keys:
        connection = duckdb.connect()
        fill = (
            "INSERT INTO {} SELECT row_number() OVER (), x FROM "
            "(SELECT DISTINCT TRY_CAST(unnest(?) AS {}) AS x) p"
        )
        connection.execute(f"CREATE TABLE person (id INTEGER, k {key.type})")
        connection.execute(fill.format("person", key.type), values)
        for place, row in enumerate(rows):
            connection.execute(f"CREATE TABLE rows_{place} (n INTEGER, r {row.type})")
            connection.execute(fill.format(f"rows_{place}", row.type), values)
        try:
            schema = tulle.Database.connect(connection, owners=owners_over(rows)).schema
        except tulle.InputError:
            continue
        for row, text in paths(schema, rows):
            asked += 1
            led = connection.execute(text).fetchall()
            if len(led) > len(set(led)):
                found.append(f"{row.type} -> {key.type}")
    return asked, found


KEYS = ("BIGINT", "UBIGINT", "HUGEINT", "DECIMAL(", "FLOAT", "DOUBLE", "TIME", "DATE", "VARCHAR")
"""How the types begin that are tried as keys every day."""


def everyday_keys() -> list[Column]:
    return [one for one in plain_columns() if one.type.startswith(KEYS)]


def plain_columns() -> list[Column]:
    """Return the types in which texts are not declared to be equal in any case."""
    return [one for one in duckdb_columns() if "COLLATE" not in one.type]


def test_a_row_leads_to_one_of_the_keys_that_differ() -> None:
    asked, found = led_to_two(everyday_keys(), everyday_keys())
    assert found == []
    assert asked > 80


@pytest.mark.slow
def test_a_row_of_any_type_leads_to_one_of_the_keys_that_differ() -> None:
    assert led_to_two(plain_columns(), plain_columns())[1] == []


def test_keys_that_are_compared_as_doubles_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_one_kind(schema: Schema, *places: tuple[str, str]) -> bool:
        types = (schema.tables[table][name] for table, name in places)
        return len({kind_of_column(one, schema.dialect).name for one in types}) == 1

    monkeypatch.setattr(owned_rows, "_is_same", is_one_kind)
    monkeypatch.setattr(Schema, "_check_key", lambda schema, link: None)
    _, found = led_to_two(everyday_keys(), everyday_keys())
    assert {"BIGINT -> HUGEINT", "TIMESTAMP_NS -> TIMESTAMP_NS"} <= set(found)


def test_an_unguarded_product_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    unguarded(monkeypatch, "duckdb", "{} * {}")
    column = next(column for column in duckdb_columns() if column.type == "BIGINT")
    place = next(place for place in PLACES if place.name == "squared weight")
    assert attack(column, place, in_duckdb).findings != ()


@pytest.mark.slow
@pytest.mark.timed(6)
def test_all_types_in_all_places_of_duckdb(drawn: Drawn) -> None:
    check(drawn.shuffled(list(product(duckdb_columns(), PLACES))), in_duckdb, 0.05)


# --- PostgreSQL ---------------------------------------------------------------------------------


def postgres_columns(cursor: Any) -> Iterator[Column]:
    """Yield every type that PostgreSQL lists and a table may have, with the values it takes."""
    cursor.execute(
        "SELECT typname FROM pg_type WHERE typtype IN ('b', 'e', 'd', 'r', 'm', 'c') "
        "AND typrelid NOT IN (SELECT oid FROM pg_class WHERE relkind <> 'c') AND typisdefined "
        "AND (typname NOT LIKE '\\_%' OR typname IN ('_int4', '_text', '_mood')) "
        "AND typnamespace IN (SELECT oid FROM pg_namespace WHERE nspname IN "
        "('pg_catalog', 'public')) ORDER BY 1"
    )
    names = [row[0] for row in cursor.fetchall()]
    pool = ", ".join("'" + text.replace("'", "''") + "'" for text in (*TAME, *ODD))
    for name in names:
        for written in POSTGRES_FORMS.get(name, (f'"{name}"',)):
            kind = written.split(" COLLATE")[0]
            try:
                cursor.execute(f"CREATE TEMP TABLE tried (v {written})")
                cursor.execute("DROP TABLE tried")
                cursor.execute(
                    f"SELECT p.x FROM unnest(ARRAY[{pool}]) AS p(x) "
                    f"WHERE pg_input_is_valid(p.x, '{kind}')"
                )
                fits = {row[0] for row in cursor.fetchall()}.__contains__
            except Exception:  # noqa: BLE001 - no table has such values, or nobody writes them
                continue
            tame = fitting(TAME, fits)[:4]
            if tame:
                yield Column(written, tame, fitting(ODD, fits))


def in_postgres(url: str) -> Any:
    import adbc_driver_postgresql.dbapi as driver

    def connect(column: Column, rows: Any, place: Place) -> Any:
        with driver.connect(url, autocommit=True) as link, link.cursor() as cursor:
            for name in ("t", "u"):
                cursor.execute(f"DROP TABLE IF EXISTS {name}")
                cursor.execute(f"CREATE TABLE {name} (id integer, v {column.type}, w integer)")
                for who, v in rows:
                    value = "NULL" if v is None else "'" + v.replace("'", "''") + "'"
                    cursor.execute(f"INSERT INTO {name} VALUES ({who}, {value}, {who % 3})")
        return tulle.Database.connect(
            url, owners=place.owners, ranges=place.ranges, times=place.times
        )

    return connect


def postgres_pairs(url: str) -> list[tuple[Column, Place]]:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(url, autocommit=True) as link, link.cursor() as cursor:
        for statement in POSTGRES_MADE:
            cursor.execute(statement)
        columns = list(postgres_columns(cursor))
    assert len(columns) >= 40
    return list(product(columns, PLACES))


def test_some_types_in_some_places_of_postgresql(postgres_url: str) -> None:
    check(postgres_pairs(postgres_url)[11 :: 3 * SAMPLE], in_postgres(postgres_url), 0.05)


@pytest.mark.slow
@pytest.mark.timed(6)
def test_all_types_in_all_places_of_postgresql(drawn: Drawn, postgres_url: str) -> None:
    pairs = drawn.shuffled(postgres_pairs(postgres_url))
    check(pairs, in_postgres(postgres_url), 0.05)


# --- Spark --------------------------------------------------------------------------------------


@pytest.fixture
def clocks(spark_session: Any) -> Iterator[Any]:
    """A session where clocks are set back once a year."""
    before = spark_session.conf.get("spark.sql.session.timeZone")
    spark_session.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark_session
    spark_session.conf.set("spark.sql.session.timeZone", before)


def led_in_spark(session: Any, keys: Sequence[str], rows: Sequence[str]) -> tuple[int, list[str]]:
    """Return the same of Spark."""
    pool, asked, found = SPARK_POOL, 0, []
    held = session.createDataFrame([(text,) for text in pool], "x STRING").localCheckpoint()

    def fill(table: str, number: str, name: str, kind: str) -> None:
        made = held.selectExpr(f"{SPARK[kind].format('x')} AS {name}").where(f"{name} IS NOT NULL")
        made = made if kind.startswith(("map", "variant")) else made.distinct()
        made = made.selectExpr(f"MONOTONICALLY_INCREASING_ID() AS {number}", name)
        made.localCheckpoint().createOrReplaceTempView(table)

    for place, row in enumerate(rows):
        fill(f"rows_{place}", "n", "r", row)
    columns = [Column(row, (), ()) for row in rows]
    for key in keys:
        fill("person", "id", "k", key)
        database = tulle.Database.connect(session, owners=owners_over(columns))
        for row, text in paths(database.schema, columns):
            asked += 1
            led = database._engine.fetch(text).column("n").to_pylist()
            if len(led) > len(set(led)):
                found.append(f"{row.type} -> {key}")
        database.close()
    for table in owners_over(columns):
        session.catalog.dropTempView(table)
    return asked, found


@pytest.mark.filterwarnings("ignore")
def test_a_row_of_spark_leads_to_one_of_the_keys_that_differ(
    clocks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, rows = ("timestamp", "array<string>", "binary"), ("string", "timestamp_ntz", "timestamp")
    asked, found = led_in_spark(clocks, keys, rows)
    assert found == []
    assert asked >= 4
    # A broken version writes whatever the key is as a text.
    monkeypatch.setattr(owned_rows, "_check_text", lambda *_: None)
    _, found = led_in_spark(clocks, keys, rows)
    assert set(found) == {
        *("string -> timestamp", "timestamp_ntz -> timestamp", "string -> array<string>"),
    }


@pytest.mark.slow
@pytest.mark.timed(3)
@pytest.mark.filterwarnings("ignore")
def test_a_row_of_any_type_of_spark_leads_to_one(drawn: Drawn, clocks: Any) -> None:
    for key in drawn.shuffled(list(SPARK)):
        assert led_in_spark(clocks, [key], list(SPARK))[1] == [], key


def in_spark(session: Any) -> Any:
    def connect(column: Column, rows: Any, place: Place) -> Any:
        frame = session.createDataFrame(
            [(who, v, who % 3) for who, v in rows], "id INT, v STRING, w INT"
        )
        frame = frame.selectExpr("id", f"{SPARK[column.type].format('v')} AS v", "w")
        frame = frame.localCheckpoint()
        for name in ("t", "u"):
            frame.createOrReplaceTempView(name)
        return tulle.Database.connect(
            session, owners=place.owners, ranges=place.ranges, times=place.times
        )

    return connect


def spark_columns(session: Any) -> list[Column]:
    """Return types of Spark with the values that they take."""
    found = []
    for kind, texts in taken(session).items():
        tame = [text for text in texts if text in TAME] or list(texts)
        found.append(Column(kind, tuple(tame[:4]), tuple(t for t in texts if t not in tame[:4])))
    assert all(column.tame for column in found)
    return found


@pytest.mark.filterwarnings("ignore")
def test_some_types_in_some_places_of_spark(spark_session: Any) -> None:
    pairs = list(product(spark_columns(spark_session), PLACES))
    check(pairs[5 :: 12 * SAMPLE], in_spark(spark_session), 0)


@pytest.mark.slow
@pytest.mark.timed(6)
@pytest.mark.filterwarnings("ignore")
def test_all_types_in_all_places_of_spark(drawn: Drawn, spark_session: Any) -> None:
    pairs = drawn.shuffled(list(product(spark_columns(spark_session), PLACES)))
    check(pairs, in_spark(spark_session), 0.05)
