"""An engine that nobody foresaw, SQLite, is the folder ``sqlite`` beside this file and no more."""

from __future__ import annotations

import importlib
import inspect
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

import tulle
from tulle.core import registry
from tulle.core.errors import InputError, QueryError
from tulle.sql.data import Database
from tulle.sql.dialect import Dialect, dialect_of
from tulle.sql.engines.connector import Connector, place_of
from tulle.sql.expressions import kinds
from tulle.sql.expressions.total import ENTRIES
from tulle.sql.queries import one_aggregate, relation_of, relations_of, sql

FOLDER = "tests.sql.engines.sqlite"
PARTS = ("forms", "dialect", "connect")
OWNERS = {"person": "person: id", "orders": "person: customer"}
TABLES = """
CREATE TABLE person (id INTEGER, city TEXT, age INTEGER) STRICT;
CREATE TABLE orders (number INTEGER, customer INTEGER, price REAL) STRICT;
CREATE TABLE loose (id INTEGER);
INSERT INTO person VALUES (1, 'ams', 30), (2, 'ams', 40), (3, 'ber', 50), (NULL, 'ber', 60);
INSERT INTO orders VALUES (1, 1, 2.5), (2, 1, 3.5), (3, 2, 4.0), (4, 9, 1e308), (5, 2, 1e308);
"""


@pytest.fixture(scope="module", autouse=True)
def folder() -> Iterator[dict[str, Any]]:
    """The folder's parts; importing them registers the engine, until the end of these tests."""
    parts = {part: importlib.import_module(f"{FOLDER}.{part}") for part in PARTS}
    if "sqlite" not in registry.find("dialect", "database"):
        parts = {part: importlib.reload(module) for part, module in parts.items()}
    yield parts
    # Other tests list all engines.
    for known in registry._items.values():
        for name in [name for name in known if "sqlite" in name]:
            del known[name]


@pytest.fixture
def database() -> Iterator[Database]:
    connection = sqlite3.connect(":memory:")
    connection.executescript(TABLES)
    found = Database.connect(connection, owners=OWNERS, ranges={"orders.price": (0, 100)})
    yield found
    found.close()


@pytest.mark.parametrize(
    ("text", "total"),
    [
        ("SELECT COUNT(*) FROM person", 3),
        ("SELECT COUNT(DISTINCT city) FROM person", 2),
        ("SELECT SUM(age) FROM person", 120),
        ("SELECT SUM(price) FROM orders WHERE price + 1 > 3.6", 207.5),
        ("SELECT SUM(price) FROM person JOIN orders ON id = customer WHERE city = 'ams'", 110),
        ("SELECT COUNT(*) FROM person x JOIN person y ON x.city = y.city AND x.id < y.id", 1),
    ],
)
def test_questions_are_answered(text: str, total: float, database: Database) -> None:
    assert relation_of(database, sql(text)).total == pytest.approx(total)
    assert sql(text).truth(database) == pytest.approx(total)


def test_a_release_goes_through(database: Database) -> None:
    question = sql("SELECT COUNT(*) FROM person")
    release = tulle.release(database, question, unit="participant", epsilon=1e4)
    assert release.value == pytest.approx(3, abs=1)


def test_groups_and_neighbours(database: Database) -> None:
    question = one_aggregate(
        "SELECT city, COUNT(*) FROM person GROUP BY city", groups={"city": "ams, ber"}
    )
    assert [one.total for one in relations_of(database, question)] == [2, 1]
    assert len(list(database.neighbours("participant"))) == 4


def test_a_file_is_opened_by_its_url(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.sqlite") as connection:
        connection.executescript(TABLES)
    (tmp_path / "shop.toml").write_text('url = "sqlite:///shop.sqlite"\nowners = {person = "id"}')
    found = Database.from_toml(tmp_path / "shop.toml")
    assert relation_of(found, sql("SELECT COUNT(*) FROM person")).total == 3
    found.close()
    with pytest.raises(InputError, match=r"starts with .*sqlite://"):
        Database.connect("oracle://shop", owners=OWNERS)


def test_what_has_no_form_is_refused_from_the_schema_alone(
    database: Database, folder: dict[str, Any]
) -> None:
    facts = database.facts("participant")
    refused, said = [], folder["forms"].FORMS
    for entry in ENTRIES:
        if entry.name not in said and entry.expands is None and kinds.DOUBLE in entry.takes[0]:
            places = entry.written.count("{}")
            text = f"SELECT COUNT({entry.written.format(*['price'] * places)}) FROM orders"
            with pytest.raises(QueryError, match="SQLite has no form of it"):
                sql(text).bound_to(facts)
            refused.append(entry.name)
    assert len(set(refused)) > 10
    with pytest.raises(QueryError, match="SQLite has no form of it"):
        sql("SELECT SUM(SQRT(price)) FROM orders").bound_to(facts)


def test_a_table_that_may_hold_anything_is_refused(database: Database) -> None:
    with pytest.raises(InputError, match="not a STRICT table"):
        Database.connect(database._engine._connection, owners={"loose": "id"})  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [Dialect, Connector])
def test_what_leaves_something_unsaid_cannot_be_built(
    kind: type[Any], folder: dict[str, Any]
) -> None:
    """Nothing has a default: a class without one of the members is abstract."""
    parts = {Dialect: folder["dialect"].SQLiteDialect, Connector: folder["connect"].SQLiteConnector}
    whole = parts[kind]
    members = sorted(kind.__abstractmethods__)
    assert len(members) > 6
    for name in members:
        said = {member: getattr(whole, member) for member in members if member != name}
        with pytest.raises(TypeError, match=name):
            type("Partly", (kind,), said)()
        assert inspect.isabstract(type("Partly", (kind,), said))


def test_the_default_engine_does_not_stand_in() -> None:
    assert dialect_of("sqlite").title == "SQLite"
    with pytest.raises(KeyError):
        dialect_of("oracle")


def test_no_part_of_a_user_or_a_password_is_in_what_is_shown_of_a_url() -> None:
    """An account is called like its database, and releases say so."""
    draw = random.Random(7)
    for _ in range(2000):
        one, two, three = (
            "secret".join(draw.choices("/@?#:&=%\"' .[]\\", k=draw.randrange(4))) + "secret"
            for _ in range(3)
        )
        held = draw.choice(["", f"{one}@", f"{one}:{two}@"])
        asked = draw.choice(["", f"?password={three}", f"?{one}={two}&host=x"])
        shown = place_of(f"postgresql://{held}host:5432/shop{asked}")
        assert "secret" not in shown
        assert shown in ("postgresql://host:5432/shop", "postgresql://database")
    assert place_of("duckdb:///shop.duckdb") == "duckdb:///shop.duckdb"
