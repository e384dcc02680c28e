"""Other spellings of supported statements: the engine's own answer is ours."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from sqlglot import exp
from tests.sql.sql_extremes import schema as extreme_schema

from tulle.core.errors import InputError, QueryError
from tulle.sql.data import Database
from tulle.sql.queries import one_aggregate, relations_of, sql
from tulle.sql.question import arguments, spellings

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

TABLES = {
    "users": "id INTEGER, city VARCHAR, born DATE",
    "orders": "id INTEGER, user_id INTEGER, price INTEGER, placed DATE",
    "city": "city VARCHAR, country VARCHAR",
    '"Mixed Case"': '"User" INTEGER, "Some Value" INTEGER',
}
OWNERS = {"users": "id", "orders": "user_id", "Mixed Case": "User"}


def world(seed: int) -> Any:
    """Return a connection with small tables that have NULLs, duplicates and broken references."""
    draw = random.Random(seed)
    connection = duckdb.connect()
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")

    def some(values: list[Any]) -> Any:
        return None if draw.random() < 0.15 else draw.choice(values)

    days = ["2020-01-31", "2020-02-29", "2021-12-31", "2022-01-01"]
    places = ["Rome", "Oslo", "Bern"]
    for _ in range(12):
        row = (draw.randrange(6), some(places), some(days))
        connection.execute("INSERT INTO users VALUES (?, ?, ?)", row)
        order = (draw.randrange(9), draw.randrange(7), some([1, 2, 5, 9]), some(days))
        connection.execute("INSERT INTO orders VALUES (?, ?, ?, ?)", order)
        pair = (draw.randrange(6), some([1, 2, 3]))
        connection.execute('INSERT INTO "Mixed Case" VALUES (?, ?)', pair)
    for pair in (("Rome", "IT"), ("Oslo", "NO"), ("Rome", "IT")):
        connection.execute("INSERT INTO city VALUES (?, ?)", pair)
    return connection


STATEMENTS = [
    "SELECT COUNT(*) FROM users WHERE DAYNAME(born) = 'Friday' OR MONTHNAME(born) = 'December'",
    "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER w AS n, SUM(price) OVER (w ROWS BETWEEN 1"
    " PRECEDING AND CURRENT ROW) AS s FROM orders WINDOW w AS (PARTITION BY user_id ORDER BY"
    " placed, price, id)) t WHERE n = 2 AND s > 2",
    "SELECT COUNT(*) FROM orders o SEMI JOIN users u ON o.user_id = u.id AND u.city = 'Rome'",
    "SELECT SUM(o.price) FROM orders o ANTI JOIN users u ON o.user_id = u.id WHERE o.price > 1",
    "SELECT COUNT(*) FROM users SEMI JOIN city USING (city)",
    "SELECT COUNT(*) FROM (SELECT u.* FROM users u) t WHERE t.city = 'Rome'",
    "SELECT SUM(t.price) FROM (SELECT o.*, u.city FROM users u JOIN orders o ON o.user_id = u.id) t"
    " WHERE t.city IS NOT NULL",
    "WITH w AS (SELECT orders.* FROM orders, users) SELECT COUNT(*) FROM w",
    "SELECT COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY ALL) t WHERE n > 1",
    "SELECT SUM(n) FROM (SELECT user_id AS u, price % 2 AS odd, SUM(price) AS n, 1 AS one"
    " FROM orders GROUP BY ALL) t WHERE odd = 1",
    "SELECT COUNT(*) FROM users WHERE city = ANY(['Rome', 'Oslo']) OR NOT id = ANY([1, 2])",
    "SELECT COUNT(*) FROM main.users",
    "SELECT COUNT(*) FROM memory.main.users u WHERE u.city = 'Rome'",
    "SELECT COUNT(*) FROM main.users WHERE main.users.city = 'Rome'",
    "SELECT COUNT(u.*) FROM users u JOIN orders o ON o.user_id = u.id",
    "SELECT COUNT(*) FROM users NATURAL JOIN city",
    "SELECT COUNT(*) FROM users JOIN city USING (city) WHERE country = 'IT'",
    "SELECT COUNT(*) FROM (users u JOIN orders o ON o.user_id = u.id) JOIN city c"
    " ON c.city = u.city",
    "SELECT COUNT(*) FROM city c JOIN (users u JOIN orders o ON o.user_id = u.id)"
    " ON c.city = u.city AND o.price > 1",
    "SELECT COUNT(*) FROM city c CROSS JOIN (users u CROSS JOIN orders o)",
    "SELECT COUNT(*) FROM city c JOIN ((users u JOIN orders o ON o.user_id = u.id)) ON TRUE",
    "SELECT COUNT(*) FROM (users)",
    "SELECT SUM(v.points) FROM users u JOIN (VALUES ('Rome', 3), ('Oslo', 4)) v(town, points)"
    " ON u.city = v.town",
    "SELECT COUNT(*) FROM users u, (VALUES (1), (2), (2)) v WHERE u.id = v.col0",
    "WITH v(town, points) AS (VALUES ('Rome', 3), ('Bern', NULL)) SELECT SUM(points)"
    " FROM users JOIN v ON city = town",
    "SELECT COUNT(*) FROM users WHERE (id, city) IN ((1, 'Rome'), (2, 'Oslo'))",
    "SELECT COUNT(*) FROM users WHERE city > '' AND (id, city) NOT IN ((1, 'Rome'), (2, 'Oslo'))",
    "SELECT COUNT(*) FROM users WHERE (id, city) IN (SELECT o.user_id, c.city FROM orders o,"
    " city c WHERE o.price > 1)",
    "SELECT COUNT(*) FROM users WHERE city IS DISTINCT FROM 'Rome'",
    "SELECT COUNT(*) FROM users WHERE date_part('year', born) = 2020",
    "SELECT COUNT(*) FROM users WHERE week(born) = 53 OR dayofweek(born) = 5 OR isodow(born) = 6",
    "SELECT COUNT(*) FROM orders o JOIN users u ON o.user_id = u.id"
    " WHERE date_diff('month', u.born, o.placed) > 1",
    "SELECT SUM(datediff('day', u.born, o.placed)) FROM orders o JOIN users u ON o.user_id = u.id",
    "SELECT COUNT(*) FROM users WHERE strftime(born, '%Y-%m') = '2020-02'",
    "SELECT COUNT(*) FROM users WHERE LEFT(city, 1) = 'R' OR RIGHT(city, 2) = 'lo'",
    "SELECT COUNT(*) FROM users WHERE city ~ '^[RO]' AND NOT regexp_matches(city, 'o$')",
    "SELECT COUNT(*) FROM users WHERE POSITION('o' IN city) = 2 OR CONTAINS(city, 'er')",
    "SELECT SUM(sqrt(price)) FROM orders WHERE ln(price) >= 0",
    "SELECT SUM(price & 1) FROM orders WHERE price << 1 > 3",
    "SELECT SUM(price > 1) FROM orders",
    'SELECT SUM("Some Value") FROM "Mixed Case" WHERE "User" > 1',
    'SELECT SUM("Some Value") FROM main."Mixed Case" AS "M" WHERE "M"."User" > 1',
    "SELECT COUNT(DISTINCT date_trunc('month', placed)) FROM orders",
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_the_engines_own_answer_is_ours(text: str) -> None:
    for seed in range(2):
        connection = world(seed)
        database = Database.connect(connection, owners=OWNERS, public=["city"])
        question = sql(text)
        expected = connection.execute(text).fetchall()[0][0]
        found = relations_of(database, question)[0].total
        assert found == pytest.approx(float(expected or 0)), (text, seed)
        assert question.truth(database) == pytest.approx(float(expected or 0))
        for person in database.participants()[:1]:
            left = relations_of(database.without(*person), question)[0].total
            assert left == pytest.approx(float(question.truth(database.without(*person))))


def test_between_symmetric_takes_its_ends_in_either_order() -> None:
    database = Database.connect(world(2), owners=OWNERS, public=["city"])
    for word in ("", "NOT "):
        text = f"SELECT COUNT(*) FROM orders WHERE price {word}BETWEEN SYMMETRIC 5 AND 2"
        other = f"SELECT COUNT(*) FROM orders WHERE price {word}BETWEEN 2 AND 5"
        assert sql(text, dialect="postgres").truth(database) == sql(other).truth(database) > 0


def test_an_approximate_count_is_the_exact_one() -> None:
    """What an engine approximates may follow the order of rows; ours never does."""
    database = Database.connect(world(0), owners=OWNERS, public=["city"])
    rough, exact = (
        relations_of(database, sql(f"SELECT {count} FROM users"))[0].total
        for count in ("APPROX_COUNT_DISTINCT(city)", "COUNT(DISTINCT city)")
    )
    assert rough == exact > 0


def test_two_spellings_are_one_question() -> None:
    database = Database.connect(world(1), owners=OWNERS, public=["city"])
    for one, other in (
        ("SELECT COUNT(*) FROM main.users", "SELECT COUNT(*) FROM users"),
        (
            "SELECT COUNT(*) FROM users WHERE date_part('year', born) = 2020",
            "SELECT COUNT(*) FROM users WHERE EXTRACT(year FROM born) = 2020",
        ),
        (
            "SELECT COUNT(*) FROM (users u JOIN orders o ON o.user_id = u.id)",
            "SELECT COUNT(*) FROM users u JOIN orders o ON o.user_id = u.id",
        ),
    ):
        forms = [sql(text).bind(database).canonical() for text in (one, other)]
        assert forms[0] == forms[1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT COUNT(*) FROM other.users", "tables are those of the schema main"),
        ("SELECT COUNT(*) FROM far.main.users", "tables are those of the schema main"),
        ("SELECT COUNT(*) FROM users WHERE other.users.id = 1", "those of the schema main"),
        ("WITH users AS (SELECT 1 AS id) SELECT COUNT(*) FROM main.users", "view of WITH"),
        ('SELECT COUNT(*) FROM users NATURAL JOIN "Mixed Case"', "no column in common"),
        ("SELECT COUNT(*) FROM (VALUES (1, 2), (3)) v(a, b)", "all of one length"),
        ("SELECT COUNT(*) FROM users, (VALUES (users.id)) v(a)", "constants only"),
        ("SELECT COUNT(*) FROM users WHERE (id, city) IN (SELECT id FROM users)", "2 values and 1"),
        ("SELECT COUNT(*) FROM users WHERE date_part('hour', born) = 1", "has the fields"),
        ("SELECT COUNT(*) FROM users WHERE date_diff('week', born, born) = 1", "are counted in"),
        ("SELECT COUNT(*) FROM users WHERE strftime(born, '%A') = 'x'", "a format is made of"),
        ("SELECT COUNT(*) FROM users WHERE city ~ city", "must be written as a text"),
        ("SELECT COUNT(*) FROM users WHERE city ~ '(a+)+'", "repeated without end"),
        ("SELECT COUNT(*) FROM users WHERE LEFT(city, id) = 'a'", "must be written as a number"),
        ("SELECT SUM(POWER(price, price)) FROM orders", "the exponent must be written"),
        ("SELECT COUNT(*) FROM users WHERE REPLACE(city, '', 'x') = 'a'", "not empty"),
    ],
)
def test_what_is_not_supported_is_said_in_plain_words(text: str, words: str) -> None:
    database = Database.connect(world(0), owners=OWNERS, public=["city"])
    with pytest.raises(QueryError, match=words):
        sql(text).bind(database)


def test_days_of_the_week_are_numbered_by_the_dialect() -> None:
    text = "SELECT SUM(dayofweek(day)) FROM extreme"
    own = sql(text, dialect="spark").rewrite(extreme_schema("spark")).text
    other = sql(text).rewrite(extreme_schema("spark")).text
    assert own != other
    assert "- 1" in other


def test_groups_of_values_that_are_no_numbers() -> None:
    """NaN is one group, and infinities are groups of their own."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'nan'::DOUBLE), (2, 'inf'), (3, 'nan'),"
        " (4, 2.5), (5, NULL), (6, '-inf'), (7, 2.5)) v(who, x)"
    )
    database = Database.connect(connection, owners={"t": "who"})
    values = [float("nan"), float("inf"), float("-inf"), 2.5, None]
    question = one_aggregate("SELECT x, COUNT(*) FROM t GROUP BY x", groups={"x": values})
    assert [one.total for one in relations_of(database, question)] == [2, 1, 1, 2, 1]
    with pytest.raises(InputError, match="distinct"):
        sql("SELECT x, COUNT(*) FROM t GROUP BY x", groups={"x": [float("nan"), float("nan")]})


CHOSEN = (
    *("city IS NOT NULL", "city NOTNULL", "NOT city IS NULL", "city IS NULL", "city ISNULL"),
    *("n IS NOT NULL AND city NOT IN ('Rome')", "n NOT BETWEEN 1 AND 2", "NOT (city IS NOT NULL)"),
    *("CASE WHEN city IS NOT NULL THEN n END > 0", "(city IS NOT NULL OR n > 100) AND n >= 0"),
)
"""Conditions on the rows of an answer, which every dialect has."""


def chosen_alike() -> Iterator[str]:
    """Yield the conditions by which other rows are chosen in another dialect."""
    database = Database.connect(world(1), owners=OWNERS, public=["city"])
    groups = {"city": ["Rome", "Oslo", "Bern", None]}
    for condition in CHOSEN:
        text = f"SELECT city, COUNT(*) AS n FROM users GROUP BY city HAVING {condition}"
        asked = (sql(text, groups=groups, dialect=one) for one in ("duckdb", "postgres", "spark"))
        try:
            first, *others = [str(one.bind(database).truth(database)) for one in asked]
        except QueryError:
            continue
        if others != [first, first]:
            yield condition


def test_a_condition_means_the_same_in_every_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(chosen_alike()) == []
    monkeypatch.delitem(spellings._RULES, exp.Is)
    monkeypatch.setitem(arguments._KNOWN, exp.Is, ("this", "expression", "negate"))
    assert "city IS NOT NULL" in list(chosen_alike())
