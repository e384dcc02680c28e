"""Connecting, sealing, reading files, kinds of participants, odd names."""

from __future__ import annotations

import copy
import pickle
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.sql.sql_worlds import connect, random_world, summary

import tulle
from tulle.core.errors import InputError, MissingExtraError, QueryError, SealedError, UnitError
from tulle.sql.data import Database
from tulle.sql.engines.base import EngineError
from tulle.sql.queries import gather_tuples, relation_of, sql


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE orders (o_orderkey INT PRIMARY KEY, o_custkey INT)")
        connection.execute("CREATE TABLE lineitem (l_orderkey INT, price DECIMAL(10, 2))")
        connection.execute("INSERT INTO orders VALUES (1, 10), (2, 10), (3, 20)")
        connection.execute("INSERT INTO lineitem VALUES (1, 5), (1, 6), (2, 7), (3, 8), (9, 99)")
    return path


OWNERS = {"orders": "o_custkey", "lineitem": "l_orderkey -> orders.o_custkey"}


def test_a_duckdb_file(shop: Path) -> None:
    database = Database.connect(f"duckdb:///{shop}", owners=OWNERS)
    assert relation_of(database, sql("SELECT SUM(price) FROM lineitem")).total == 26
    assert database.participants() == [("participant", 10), ("participant", 20)]
    with pytest.raises(InputError, match="no DuckDB file"):
        Database.connect("duckdb:///nowhere.duckdb", owners={})
    database.close()


def test_a_toml_file_says_the_same(shop: Path) -> None:
    file = shop.parent / "shop.toml"
    file.write_text(
        'url = "duckdb:///shop.duckdb"\n[owners]\norders = "o_custkey"\n'
        'lineitem = "l_orderkey -> orders.o_custkey"\n'
    )
    database = Database.from_toml(file)
    assert database.schema == Database.connect(f"duckdb:///{shop}", owners=OWNERS).schema
    file.write_text('url = "duckdb://"\nowner = 3\n')
    with pytest.raises(InputError, match="must have url and owners"):
        Database.from_toml(file)
    file.write_text("url = ")
    with pytest.raises(InputError, match="is not TOML"):
        Database.from_toml(file)
    with pytest.raises(InputError, match="cannot be read"):
        Database.from_toml(shop.parent / "nowhere.toml")


def test_csv_and_parquet_files(tmp_path: Path) -> None:
    (tmp_path / "it's.csv").write_text("a,b\n1,2\n2,3\n")
    duckdb.sql("SELECT 1 AS id, 'x' AS name").write_parquet(str(tmp_path / "node.parquet"))
    tables = {"edge": tmp_path / "it's.csv", "node": tmp_path / "node.parquet"}
    types = {"edge.a": "INTEGER", "edge.b": "INTEGER"}
    database = Database.connect(
        "duckdb://", tables=tables, types=types, owners={"edge": ["a", "b"], "node": "id"}
    )
    question = sql("SELECT COUNT(*) FROM edge JOIN node ON a = id")
    gathered = gather_tuples(database, question)
    assert list(gathered.relations[0].participants) == [0, 1]
    assert gathered.names == (("participant", 1), ("participant", 2))
    with pytest.raises(InputError, match="there is no file"):
        Database.connect("duckdb://", tables={"x": tmp_path / "none.csv"}, owners={})
    for wrong, words in (
        ({"edge.c": "INTEGER"}, "has no such column"),
        *(
            ({"edge.a": text}, "is not a type")
            for text in (
                "NOT A TYPE",
                "INTEGER, edge.b=DATE",
                "INTEGER) AS x --",
                "DATE FORMAT 'y'",
            )
        ),
        ({"node.id": "TEXT"}, "types of its own"),
        ({"other.id": "TEXT"}, "types of its own"),
    ):
        with pytest.raises(InputError, match=words):
            Database.connect("duckdb://", tables=tables, types=wrong, owners={"edge": "a"})
    with pytest.raises(InputError, match="memory must be a size"):
        Database.connect("duckdb://", tables=tables, owners={"edge": "a"}, memory="lots")


def test_a_csv_column_is_text_whatever_its_rows_hold(tmp_path: Path) -> None:
    def opened(body: str, **types: str) -> Database:
        (tmp_path / "p.csv").write_text(f"id,salary\n{body}")
        return Database.connect(
            "duckdb://",
            tables={"p": tmp_path / "p.csv"},
            types={f"p.{name}": kind for name, kind in types.items()},
            owners={"p": "id"},
        )

    bodies = ("", "1,2\n", "1,2\nx,many\n", "1\n", "1;2\n", '"1","2"\n', "id,salary\n", "# 1,2\n")
    assert {str(opened(body).schema.tables) for body in bodies} == {
        "{'p': {'id': 'VARCHAR', 'salary': 'VARCHAR'}}"
    }
    typed = opened("1,2.5\n2,many\n3,\n", salary="DOUBLE")
    assert typed.schema.tables["p"]["salary"] == "DOUBLE"
    assert sql("SELECT SUM(salary) FROM p").truth(typed) == 2.5
    assert sql("SELECT COUNT(*) FROM p").truth(typed) == 3


def test_memory_is_a_public_limit_with_one_behaviour(tmp_path: Path) -> None:
    file = str(tmp_path / "big.duckdb")
    with duckdb.connect(file) as made:
        made.execute("CREATE TABLE p AS SELECT range AS id, range::TEXT AS t FROM range(3000000)")
    small = Database.connect(f"duckdb:///{file}", owners={"p": "id"}, memory="12MB")
    question = sql("SELECT COUNT(DISTINCT x.t || y.t) FROM p x JOIN p y ON x.id = y.id")
    with pytest.raises(EngineError, match="the price stays paid"):
        relation_of(small, question)


@pytest.mark.parametrize("url", ["mysql://user:secret@host/db", 3, "shop.duckdb"])
def test_other_urls_are_refused_without_showing_a_password(url: Any) -> None:
    with pytest.raises(InputError, match="starts with duckdb://") as caught:
        Database.connect(url, owners={})
    assert "secret" not in str(caught.value)


def test_a_database_is_sealed() -> None:
    database = connect(random_world(1))
    assert repr(database) == f"{database}" == "<Database: sealed>"
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SealedError):
            leak(database)
    with pytest.raises(InputError, match=r"Use Database\.connect"):
        Database()
    with pytest.raises(UnitError, match="participant"):
        database.check_unit("node")
    with pytest.raises(InputError, match="left this database already"):
        database.without("person", 1).without("person", 2)


def test_facts_are_equal_on_neighbours_and_hold_no_rows() -> None:
    database = connect(random_world(1))
    unit = database.check_unit("participant")
    facts = database.facts(unit)
    assert set(facts) == {"dialect", "tables", "owners", "public"}
    assert "secret" not in facts["tables"]
    for neighbour in database.neighbours("participant"):
        assert neighbour.facts(unit) == facts
    assert connect({table: [] for table in random_world(1)}).facts(unit) == facts


def test_the_doors_of_the_library() -> None:
    assert tulle.Database is Database
    question = tulle.sql("SELECT COUNT(*) FROM edge")
    assert question == sql("SELECT COUNT(*) FROM edge;  ")
    assert question.kind == "database"
    assert question.integral
    assert not tulle.sql("SELECT SUM(w) FROM edge").integral
    assert question.canonical() == tulle.sql("select count( * )\nfrom edge").canonical()
    assert str(2 * question) == "2 * sql('SELECT COUNT(*) FROM edge')"
    database = connect(random_world(1))
    ratio = tulle.sql("SELECT SUM(w) FROM edge") / question
    assert ratio.truth(database) == pytest.approx(
        tulle.sql("SELECT SUM(w) FROM edge").truth(database) / question.truth(database)
    )


def test_kinds_of_participants_are_kept_apart_and_one_kind_is_not() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE sale AS SELECT 5 AS customer, 5 AS supplier")
    question = sql("SELECT COUNT(*) FROM sale")
    apart = Database.connect(connection, owners={"sale": ["c: customer", "s: supplier"]})
    assert gather_tuples(apart, question).names == (("c", 5), ("s", 5))
    together = Database.connect(connection, owners={"sale": ["customer", "supplier"]})
    relation = gather_tuples(together, question).relations[0]
    assert list(relation.offsets) == [0, 1]


def test_identifiers_of_mixed_and_composite_types() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE a AS SELECT 'x' AS tenant, 'yz' AS person")
    connection.execute("INSERT INTO a VALUES ('xy', 'z'), ('x', NULL)")
    connection.execute(
        "CREATE TABLE b AS SELECT 7::DECIMAL(9, 0) AS p, '7' AS q, DATE '2020-01-01' AS d"
    )
    database = Database.connect(connection, owners={"a": "(tenant, person)", "b": ["p", "q", "d"]})
    first = gather_tuples(database, sql("SELECT COUNT(*) FROM a"))
    assert len(first.names) == 2
    second = gather_tuples(database, sql("SELECT COUNT(*) FROM b"))
    # Written like composites, so that no text can look like one.
    assert second.names == (("participant", "10:2020-01-01"), ("participant", "1:7"))
    pairs = gather_tuples(database, sql("SELECT COUNT(*) FROM a x, a y"))
    assert sorted(pairs.relations[0].weights) == [1, 1, 2]


def test_odd_names_are_quoted() -> None:
    connection = duckdb.connect()
    connection.execute('CREATE TABLE "My ""Table" AS SELECT 1 AS "the owner", 2 AS "select"')
    database = Database.connect(connection, owners={'My "Table': '"the owner"'})
    question = sql('SELECT SUM("select") FROM "My ""Table" WHERE "the owner" = 1')
    assert relation_of(database, question).total == question.truth(database) == 2


def test_large_whole_numbers_stay_apart_when_a_float_says_they_are_equal() -> None:
    """Two owners that equal the same float are two owners: both are needed."""
    big = 2**53
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE p AS SELECT {big}::BIGINT AS id UNION SELECT {big + 1}")
    connection.execute(f"CREATE TABLE f AS SELECT {big}::DOUBLE AS x")
    database = Database.connect(connection, owners={"p": "id"}, public=["f"])
    question = sql("SELECT COUNT(*) FROM p a, f, p b WHERE a.id = f.x AND f.x = b.id")
    gathered = gather_tuples(database, question)
    ways = summary(gathered.relations[0], gathered.names)
    assert sum(ways.values()) == question.truth(database)
    assert any(len(clause) == 2 for clauses, _ in ways for clause in clauses)


@pytest.mark.parametrize(
    ("library", "extra", "act"),
    [
        ("sqlglot", "sql", lambda: sql("SELECT COUNT(*) FROM t")),
        ("sqlglot", "sql", lambda: Database.connect("duckdb://", owners={})),
        ("duckdb", "sql", lambda: Database.connect("duckdb://", owners={})),
        ("pyspark.sql", "spark", lambda: Database.connect("local[2]", owners={})),
        (
            "adbc_driver_postgresql.dbapi",
            "postgres",
            lambda: Database.connect("postgresql://x", owners={}),
        ),
    ],
)
def test_a_missing_library_names_its_extra(
    library: str, extra: str, act: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=rf"tulle\[{extra}\]"):
        act()


def test_a_question_is_checked_against_public_facts_before_anything_is_spent() -> None:
    database = connect(random_world(1))
    facts = database.facts(database.check_unit("participant"))
    sql("SELECT COUNT(*) FROM edge JOIN item ON a = sku").bound_to(facts)
    with pytest.raises(QueryError, match="no table secret"):
        sql("SELECT COUNT(*) FROM secret").bound_to(facts)


def test_equal_looking_groups_are_different_questions() -> None:
    text = "SELECT city, COUNT(*) FROM person GROUP BY city"
    one, other = sql(text, groups={"city": [1]}), sql(text, groups={"city": ["1"]})
    assert one.canonical() != other.canonical()
    assert str(one) != str(other)


def test_tables_that_no_engine_would_read_are_refused() -> None:
    for url in ("postgresql://nobody@nowhere/x", "postgres://x", duckdb.connect()):
        with pytest.raises(tulle.InputError, match="tables= gives files and frames"):
            Database.connect(url, owners={"t": "a"}, tables={"t": "t.csv"})
