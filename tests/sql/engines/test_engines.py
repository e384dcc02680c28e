"""One question, three engines, one relation. PostgreSQL and Spark are the real programs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.sql.sql_questions import GROUPED, QUESTIONS
from tests.sql.sql_worlds import COLUMNS, OWNERS, PUBLIC, Rows, connect, random_world

from tulle.core.errors import InputError, QueryError
from tulle.sql.data import Database
from tulle.sql.queries import gather_tuples, one_aggregate, relation_of, sql

EVERY: list[tuple[str, Any]] = [*((text, None) for text in QUESTIONS), *GROUPED]
DIALECTS = [
    ("SELECT SUM(w / 2) FROM edge", "duckdb"),
    ("SELECT SUM(w / 2) FROM edge", "postgres"),
    ("SELECT SUM(w / 2) FROM edge", "spark"),
    ("SELECT SUM(7 % sku) FROM item", "spark"),
    ("SELECT COUNT(*) FROM person WHERE city || 'x' = 'amsx'", "postgres"),
]
"""Questions whose meaning depends on the dialect that they are written in."""

FEW: list[tuple[str, Any]] = [
    ("SELECT SUM(price / qty) FROM orders JOIN item USING (okey)", None),
    ("SELECT COUNT(*) FROM (SELECT a FROM edge UNION ALL SELECT DISTINCT sku FROM item) u", None),
    ("SELECT COUNT(DISTINCT p.city, v.sid) FROM person p JOIN visit v ON p.id = v.pid", None),
    ("SELECT COUNT(*) FROM person WHERE id IN (SELECT a FROM edge)", None),
]
"""Enough for every day: a merged join, numbered tuples, distinct pairs, witnesses."""


def same(
    one: Database,
    other: Database,
    text: str,
    groups: Any,
    *,
    truth: bool = True,
    dialect: str = "duckdb",
) -> None:
    """Check that two engines give equal arrays: same order, same numbers, same participants."""
    question = one_aggregate(text, groups=groups, dialect=dialect)
    first, second = gather_tuples(one, question), gather_tuples(other, question)
    assert first.names == second.names, text
    for mine, theirs in zip(first.relations, second.relations, strict=True):
        np.testing.assert_array_equal(mine.offsets, theirs.offsets, err_msg=text)
        np.testing.assert_array_equal(mine.participants, theirs.participants, err_msg=text)
        np.testing.assert_allclose(mine.weights, theirs.weights, err_msg=text)
        assert dict(mine.general) == dict(theirs.general), text
    if truth:
        np.testing.assert_allclose(question.truth(one), question.truth(other), err_msg=text)


RANGES = {"orders.price": (0, 2.5), "edge.w": (-1, None)}
RANGED = "SELECT SUM(price * (w + 1)) FROM orders JOIN edge ON a = cust WHERE price < 2.5 OR w > -1"


BIG = "CREATE TABLE big (who INTEGER, a INTEGER, s VARCHAR(9))"
LARGEST = [(1, 2**31 - 1, "x"), (2, 3, "5")]
OVERFLOWS = [
    "SELECT SUM(a * a) FROM big",
    "SELECT COUNT(*) FROM big WHERE a + 1 > 0 AND -a - 9 < 0",
    "SELECT SUM(ABS(a - who) + a) FROM big",
]
"""Products, sums and differences that do not fit 32 bits."""


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)


def fill_postgresql(url: str, rows: Rows) -> None:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for table, columns in COLUMNS.items():
            cursor.execute(f"DROP TABLE IF EXISTS {table}")
            cursor.execute(f"CREATE TABLE {table} ({columns})")
            if rows[table]:
                listed = ", ".join(f"({', '.join(map(literal, row))})" for row in rows[table])
                cursor.execute(f"INSERT INTO {table} VALUES {listed}")
        cursor.execute('DROP TABLE IF EXISTS "Odd Table"')
        cursor.execute('CREATE TABLE "Odd Table" ("Owner" text PRIMARY KEY, "select" integer)')
        cursor.execute("INSERT INTO \"Odd Table\" VALUES ('é', 3), ('B', -4)")
        cursor.execute("DROP TABLE IF EXISTS big")
        cursor.execute(BIG)
        cursor.execute(f"INSERT INTO big VALUES {', '.join(map(str, LARGEST))}")
        cursor.execute("DROP TABLE IF EXISTS note")
        cursor.execute('CREATE TABLE note ("Of" text REFERENCES "Odd Table", x float8)')
        cursor.execute("INSERT INTO note VALUES ('é', 0.5), ('é', 'NaN'), ('B', '-Infinity')")


def test_postgresql_gives_the_same_relations(postgres_url: str) -> None:
    rows = random_world(3)
    fill_postgresql(postgres_url, rows)
    embedded = connect(rows)
    owners = OWNERS | {"Odd Table": "person: Owner", "note": '"Of" -> "Odd Table"'}
    database = Database.connect(postgres_url, owners=owners, public=PUBLIC)
    # One text owner makes all of this kind texts; for the comparison they are left out.
    plain = Database.connect(postgres_url, owners=OWNERS, public=PUBLIC)
    for text, groups in [*EVERY[::4], *GROUPED]:
        same(plain, embedded, text, groups)
    for text, dialect in DIALECTS:
        same(plain, embedded, text, None, dialect=dialect)
    cut = Database.connect(postgres_url, owners=OWNERS, public=PUBLIC, ranges=RANGES)
    same(cut, connect(rows, RANGES), RANGED, None)
    cut.close()
    for text in OVERFLOWS:
        wide = Database.connect(postgres_url, owners={"big": "who"})
        assert len(relation_of(wide, sql(text)).weights) == 2
        wide.close()
    assert str(database.schema.owners["note"][0]) == 'Of -> "Odd Table"[Owner]'
    odd = gather_tuples(database, sql('SELECT SUM("select") FROM "Odd Table" WHERE "Owner" > \'\''))
    assert odd.names == (("person", "B"), ("person", "é"))
    assert sorted(odd.relations[0].weights) == [-4, 3]
    assert relation_of(database, sql("SELECT SUM(x) FROM note")).total == 0.5
    with pytest.raises(QueryError, match="does not fit the schema"):
        relation_of(database, sql("SELECT SUM(select_) FROM edge"))
    # No city is a number: the text is compared as one, and is NULL.
    assert relation_of(database, sql("SELECT COUNT(*) FROM person WHERE city > 3")).total == 0
    with pytest.raises(QueryError, match="PostgreSQL fails"):
        relation_of(database, sql("SELECT COUNT(*) FROM person WHERE city"))
    database.close()
    plain.close()


def test_a_server_that_is_not_there_is_reported_without_the_password() -> None:
    pytest.importorskip("adbc_driver_postgresql")
    with pytest.raises(InputError, match="PostgreSQL cannot be reached") as caught:
        Database.connect("postgresql://me:hidden@127.0.0.1:1/none", owners={})
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    "secret", ["hid/den", "hid#den", "hid:den", 'hid"/den', "hid@den", "hid den"]
)
def test_no_part_of_a_password_is_in_the_words_of_a_server(secret: str) -> None:
    """Not even where the URL is none, of which the driver quotes what it took for a port."""
    pytest.importorskip("adbc_driver_postgresql")
    for url in (f"me:{secret}@127.0.0.1:1/none", f"127.0.0.1:1/none?port=1&password={secret}"):
        with pytest.raises(InputError, match="PostgreSQL cannot be reached") as caught:
            Database.connect(f"postgresql://{url}", owners={})
        assert not re.search("hid|den", str(caught.value))


@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_same_relations(spark_session: Any, tmp_path: Any) -> None:
    rows = random_world(3)
    embedded = connect(rows)
    for table in COLUMNS:
        arrow = embedded._engine.read(f"SELECT * FROM {table}")
        spark_session.createDataFrame(arrow).createOrReplaceTempView(table)
    database = Database.connect(spark_session, owners=OWNERS, public=PUBLIC)
    for text, groups in [*FEW, GROUPED[0]]:
        same(database, embedded, text, groups, truth=groups is not None)
    cut = Database.connect(spark_session, owners=OWNERS, public=PUBLIC, ranges=RANGES)
    same(cut, connect(rows, RANGES), RANGED, None)
    with pytest.raises(QueryError, match="secret has no owners"):
        relation_of(database, sql("SELECT COUNT(*) FROM secret"))
    database.close()
    kinds = "who INT, a INT, s STRING"
    spark_session.createDataFrame(LARGEST, kinds).createOrReplaceTempView("big")
    wide = Database.connect(spark_session, owners={"big": "who"})
    texts = ["SELECT COUNT(*) FROM big WHERE s = 5", "SELECT SUM(CAST(s AS INTEGER)) FROM big"]
    for text in [*OVERFLOWS, *texts]:
        # Who does not fit is left out, and nothing stops; ABS gives 64 bits.
        assert len(relation_of(wide, sql(text)).weights) == 1 + ("ABS" in text), text
    wide.close()
    (tmp_path / "edge.csv").write_text("a,b\n1,2\n2,1\n")
    arcs = {"arc": tmp_path / "edge.csv"}
    files = Database.connect("local[2]", tables=arcs, types={"arc.b": "INT"}, owners={"arc": "a"})
    assert files.schema.tables["arc"] == {"a": "string", "b": "int"}
    assert relation_of(files, sql("SELECT COUNT(*) FROM arc x, arc y")).total == 4


@pytest.mark.slow
def test_postgresql_gives_the_same_relations_for_every_question(postgres_url: str) -> None:
    rows = random_world(4)
    fill_postgresql(postgres_url, rows)
    database = Database.connect(postgres_url, owners=OWNERS, public=PUBLIC)
    for text, groups in EVERY:
        same(database, connect(rows), text, groups)
    database.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_same_relations_for_every_question(spark_session: Any) -> None:
    rows = random_world(4)
    embedded = connect(rows)
    for table in COLUMNS:
        arrow = embedded._engine.read(f"SELECT * FROM {table}")
        spark_session.createDataFrame(arrow).createOrReplaceTempView(table)
    database = Database.connect(spark_session, owners=OWNERS, public=PUBLIC)
    for text, groups in EVERY:
        same(database, embedded, text, groups)
    for text, dialect in DIALECTS:
        same(database, embedded, text, None, dialect=dialect)
