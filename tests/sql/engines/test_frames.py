"""Frames of pandas, polars and Arrow, and what is temporary in a DuckDB connection, as tables."""

from __future__ import annotations

from typing import Any

import pytest

import tulle
from tulle.core.errors import InputError
from tulle.sql.data import Database
from tulle.sql.queries import relations_of, sql

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")
pyarrow = pytest.importorskip("pyarrow")

COLUMNS: dict[str, list[Any]] = {
    "customer": [1, 1, 2, 3, 3],
    "city": ["Rome", None, "Oslo", "Rome", ""],
    "price": [1.5, 2.0, None, 4.0, 8.0],
    "paid": [True, False, True, True, False],
}
OWNERS = {"orders": "customer"}


def pandas_frame() -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(COLUMNS)


def polars_frame() -> Any:
    polars = pytest.importorskip("polars")
    return polars.DataFrame(COLUMNS)


def arrow_frame() -> Any:
    return pyarrow.table(COLUMNS)


FRAMES = {"pandas": pandas_frame, "polars": polars_frame, "arrow": arrow_frame}


def total(database: Database, text: str) -> float:
    return float(relations_of(database, sql(text))[0].total)


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_is_a_table(kind: str) -> None:
    database = Database.from_tables({"orders": FRAMES[kind]()}, owners=OWNERS)
    assert total(database, "SELECT COUNT(*) FROM orders WHERE city = 'Rome'") == 2
    assert total(database, "SELECT SUM(price) FROM orders WHERE paid") == 5.5
    assert total(database, "SELECT COUNT(*) FROM orders WHERE price IS NULL") == 1
    assert total(database.without("participant", 3), "SELECT COUNT(*) FROM orders") == 3


def test_an_answer_comes_out(tmp_path: Any) -> None:
    database = Database.from_tables({"orders": arrow_frame()}, owners=OWNERS)
    account = tulle.Ledger(tmp_path / "a.ledger").open(
        "study", database, unit="participant", epsilon=2
    )
    assert account.ask(sql("SELECT COUNT(*) FROM orders"), epsilon=1).value is not None


def test_a_frame_that_changes_later_changes_no_answer() -> None:
    frame = pandas_frame()
    database = Database.from_tables({"orders": frame}, owners=OWNERS)
    frame.loc[:, "price"] = 1000.0
    assert total(database, "SELECT SUM(price) FROM orders") == 15.5


@pytest.mark.parametrize("kind", FRAMES)
def test_types_are_the_same_whoever_leaves(kind: str) -> None:
    """What DuckDB, or pandas itself, would infer from the values differs between neighbours."""
    frame = FRAMES[kind]()
    whole = Database.from_tables({"orders": frame}, owners=OWNERS).schema
    for rows in ([], [1], [1, 4], [0, 1, 2, 3]):
        left = (
            frame.take(pyarrow.array(rows, pyarrow.int64()))
            if kind == "arrow"
            else frame[rows]
            if kind == "polars"
            else frame.iloc[rows]
        )
        assert Database.from_tables({"orders": left}, owners=OWNERS).schema == whole


def test_objects_of_pandas_are_texts_unless_declared() -> None:
    pandas = pytest.importorskip("pandas")
    mixed = [[1, "x", None], [1, 2, 3], [None, None, None], ["2020-01-01", 5.5, float("nan")]]
    seen = set()
    for values in mixed:
        frame = pandas.DataFrame(
            {"customer": [1, 2, 3], "value": pandas.Series(values, dtype="object")}
        )
        frame["kind"] = pandas.Categorical(["a", "b", "a"][: len(values)])
        for types in (None, {"orders.value": "INTEGER"}):
            database = Database.from_tables({"orders": frame}, owners=OWNERS, types=types)
            seen.add((types is None, str(database.schema.tables["orders"])))
    assert sorted(seen) == [
        (False, "{'customer': 'BIGINT', 'value': 'INTEGER', 'kind': 'VARCHAR'}"),
        (True, "{'customer': 'BIGINT', 'value': 'VARCHAR', 'kind': 'VARCHAR'}"),
    ]
    assert total(database, "SELECT SUM(value) FROM orders") == 6


def test_categories_and_missing_types_tell_nothing() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {
            "customer": [1, 2],
            "kind": polars.Series(["secret", "other"], dtype=polars.Categorical),
            "level": polars.Series(["low", "high"], dtype=polars.Enum(["low", "high"])),
            "nothing": [None, None],
        }
    )
    database = Database.from_tables({"orders": frame}, owners=OWNERS)
    assert dict(database.schema.tables["orders"]) == {
        "customer": "BIGINT",
        "kind": "VARCHAR",
        "level": "VARCHAR",
        "nothing": "VARCHAR",
    }
    assert total(database, "SELECT COUNT(*) FROM orders WHERE level = 'low'") == 1


def test_moments_of_pandas_are_moments() -> None:
    pandas = pytest.importorskip("pandas")
    days = pandas.to_datetime(["2020-01-31 10:00", "2021-01-01 00:00", None])
    frame = pandas.DataFrame({"customer": [1, 2, 3], "at": days, "zoned": days.tz_localize("UTC")})
    database = Database.from_tables({"orders": frame}, owners=OWNERS)
    assert total(database, "SELECT COUNT(*) FROM orders WHERE hour(at) = 10") == 1
    assert total(database, "SELECT COUNT(*) FROM orders WHERE date_part('year', at) = 2021") == 1


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"orders": 5}, "must be a file, or a frame"),
        ({"orders": pyarrow.table({})}, "there are none"),
        ({"orders": pyarrow.table([[1], [2]], names=["a", "a"])}, "a occurs twice"),
    ],
)
def test_what_is_no_table_is_refused(tables: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Database.from_tables(tables, owners=OWNERS)


def test_a_lazy_frame_is_refused() -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(InputError, match="collect"):
        Database.from_tables({"orders": polars.DataFrame(COLUMNS).lazy()}, owners=OWNERS)
    with pytest.raises(InputError, match="no such column"):
        Database.from_tables(
            {"orders": arrow_frame()}, owners=OWNERS, types={"orders.nothing": "DATE"}
        )


def test_temporary_tables_and_registered_frames_are_copied() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE town AS SELECT 'Rome' AS name, 'IT' AS country")
    connection.execute("CREATE TEMP TABLE visit AS SELECT 1 AS who, 2::HUGEINT AS many")
    connection.register("orders", arrow_frame())
    owners = {"orders": "customer", "visit": "who"}
    database = Database.connect(connection, owners=owners, public=["town"])
    text = "SELECT COUNT(*) FROM orders o JOIN town t ON o.city = t.name"
    assert total(database, text) == 2
    assert total(database, "SELECT SUM(many) FROM visit") == 2
    connection.execute("INSERT INTO visit VALUES (2, 5)")
    connection.unregister("orders")
    assert total(database, "SELECT SUM(many) FROM visit") == 2
    assert total(database, text) == 2
    # A permanent table of the same name, made later, is another one.
    connection.execute("CREATE TABLE memory.main.visit AS SELECT 9 AS who, 9::HUGEINT AS many")
    assert total(database, "SELECT SUM(many) FROM visit") == 2
    database.close()
    left = connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()
    assert not [name for (name,) in left if "tulle" in name]


def test_temporary_things_whose_types_follow_from_values_are_refused() -> None:
    connection = duckdb.connect()
    connection.register("orders", pandas_frame())
    with pytest.raises(InputError, match=r"Database\.from_tables"):
        Database.connect(connection, owners=OWNERS)
    connection.unregister("orders")
    connection.execute("CREATE TEMP VIEW orders AS SELECT 1 AS customer")
    with pytest.raises(InputError, match="CREATE TEMP TABLE"):
        Database.connect(connection, owners=OWNERS)
