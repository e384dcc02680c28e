"""What is refused, in words that name the clause and say why; nothing is looked at for it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sql.sql_worlds import connect, random_world, take_away

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.sql.data import Database
from tulle.sql.engines.base import EngineError
from tulle.sql.queries import one_aggregate, relation_of, sql

REFUSED = [
    ("SELECT COUNT(*) FROM edge, city RIGHT JOIN person ON a = id", "RIGHT JOIN"),
    ("SELECT COUNT(*) FROM (SELECT * FROM edge RIGHT JOIN person ON a = id) t", "RIGHT JOIN"),
    ("SELECT COUNT(*) FROM edge FULL OUTER JOIN person ON a = id", "FULL JOIN"),
    ("SELECT COUNT(*) FROM edge NATURAL SEMI JOIN person", "SEMI JOIN .* EXISTS"),
    ("SELECT COUNT(*) FROM edge NATURAL ANTI JOIN person", "ANTI JOIN"),
    ("SELECT COUNT(*) FROM edge ASOF JOIN person ON a >= id", "ASOF JOIN"),
    ("SELECT COUNT(*) FROM edge POSITIONAL JOIN person", "POSITIONAL JOIN"),
    ("SELECT COUNT(*) FROM edge, LATERAL (SELECT a) t", "LATERAL"),
    ("SELECT COUNT(*) FROM edge e(x, y)", "Renaming columns"),
    ("SELECT COUNT(*) FROM person WHERE id <> ALL (SELECT a FROM edge)", "ALL"),
    ("SELECT COUNT(*) FROM edge JOIN person ON a IN (SELECT 1)", "in ON"),
    ("SELECT a, COUNT(*) FROM edge GROUP BY ROLLUP (a)", "GROUP BY with ROLLUP"),
    ("SELECT COUNT(*) FROM (SELECT a FROM edge LIMIT 3) t", "LIMIT .* move up"),
    ("SELECT COUNT(*) FROM (SELECT a FROM edge OFFSET 3) t", "OFFSET .* move up"),
    ("SELECT COUNT(*) FROM (SELECT a FROM edge UNION SELECT 1 LIMIT 3) t", "LIMIT"),
    ("SELECT COUNT(*) OVER () FROM edge", "selects no aggregate"),
    ("SELECT KURTOSIS(a) FROM edge", "aggregate|nothing is known"),
    ("SELECT COUNT(*) FROM edge WHERE w > ALL (SELECT w FROM edge)", r"ALL \(SELECT"),
    ("SELECT COUNT(*) FROM edge, LATERAL (SELECT 1) t", "LATERAL .* GROUP BY the owner"),
    ("SELECT * FROM edge PIVOT (SUM(w) FOR a IN (1, 2))", "PIVOT .* FILTER"),
    ("SELECT a, SUM(b) OVER (), COUNT(*) FROM edge GROUP BY ALL", "GROUP BY ALL|The window"),
    ("SELECT COUNT(*) FROM edge WHERE RANDOM() < 0.5", "volatile"),
    ("SELECT COUNT(*) FROM edge WHERE NOW() > '2020-01-01'", "volatile"),
    ("SELECT COUNT(*) FROM edge WHERE CURRENT_DATE > '2020-01-01'", "volatile"),
    ("SELECT COUNT(*) FROM edge WHERE NEXTVAL('s') > 1", "volatile"),
    ("SELECT COUNT(*) FROM (SELECT UUID() AS u FROM edge) t", "volatile"),
    ("SELECT COUNT(*) FROM edge WHERE my_function(a)", r"functions=\['my_function'\]"),
    ("SELECT COUNT(*) FROM edge WHERE SIN(w) > 1", "known to be safe"),
    ("SELECT COUNT(*) FROM edge WHERE SUBSTRING('abc', a) = 'a'", "written as numbers"),
    ("SELECT COUNT(*) FROM edge TABLESAMPLE 10%", "TABLESAMPLE"),
    ("SELECT COUNT(*) FROM edge WHERE a = $1", "write the value"),
    ("SELECT COUNT(*) FROM edge FOR UPDATE", "FOR UPDATE"),
    ("SELECT COUNT(*) FROM READ_CSV('x.csv')", "table function"),
    ("SELECT COUNT(*) FROM UNNEST([1, 2])", "UNNEST"),
    ("WITH RECURSIVE r AS (SELECT 1) SELECT COUNT(*) FROM r", "RECURSIVE"),
    ("SELECT COUNT(DISTINCT (a, b)) FROM edge", "name the columns"),
    ("SELECT COUNT(DISTINCT *) FROM edge", "name the columns"),
    ("SELECT MODE(a) FROM edge", "ORDER BY n DESC LIMIT 1"),
    ("SELECT a FROM edge", "selects no aggregate"),
    ("SELECT COUNT(COUNT(*)) FROM edge", "aggregate"),
    ("SELECT COUNT(*)", "without FROM"),
    ("SELECT DISTINCT COUNT(*) FROM edge", "DISTINCT of an aggregate"),
    ("SELECT COUNT(*) FROM edge UNION SELECT COUNT(*) FROM person", "UNION of two answers"),
    ("DELETE FROM edge", "only a SELECT"),
    ("CREATE TABLE x AS SELECT 1", "only a SELECT"),
    ("SELECT COUNT(*) FROM edge; SELECT 1", "One statement"),
    ("", "One statement"),
    ("SELEC COUNT(*) FROM edge", "cannot be read"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_a_clause_is_refused_when_the_question_is_built(text: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        sql(text)


UNFIT = [
    ("SELECT COUNT(*) FROM secret", "secret has no owners and is not declared public"),
    ("SELECT COUNT(*) FROM nowhere", "no table nowhere. Tables to ask about: city, edge"),
    ("SELECT COUNT(nothing) FROM edge", "nothing"),
    ("SELECT COUNT(*) FROM edge x JOIN edge y ON a = x.b", "does not fit the schema"),
    ("SELECT COUNT(*) FROM edge WHERE rowid > 3", "rowid"),
    ("SELECT COUNT(*) FROM edge __tulle_1", "reserved"),
    ("SELECT COUNT(*) FROM edge e, (SELECT e.a FROM person) t", "schema|LATERAL"),
    (
        "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM edge WHERE a = p.id UNION"
        " SELECT 1 FROM edge WHERE b = p.id)",
        "LATERAL",
    ),
    ("SELECT COUNT(*) FROM person WHERE id IN (SELECT a, b FROM edge)", "one column"),
    ("SELECT COUNT(*) FROM edge NATURAL JOIN person", "NATURAL JOIN .* USING"),
    ("SELECT COUNT(*) FROM nowhere.edge", "tables are those of the schema main"),
    ("SELECT COUNT(*) FROM (SELECT a FROM edge UNION SELECT a, b FROM edge) t", "1 and 2 columns"),
]

ABOUT_SEVERAL = [
    ("SELECT COUNT(*) FROM person LEFT JOIN edge ON a = id", "LEFT JOIN edge .* appear"),
    ("SELECT COUNT(*) FROM person x LEFT JOIN person y ON x.age = y.id", "LEFT JOIN person"),
    ("SELECT COUNT(*) FROM city LEFT JOIN person ON name = city", "LEFT JOIN person .* appear"),
    (
        "SELECT COUNT(*) FROM (SELECT a FROM edge EXCEPT SELECT b FROM edge) t",
        "EXCEPT .* one person",
    ),
    ("SELECT COUNT(*) FROM (SELECT age FROM person EXCEPT SELECT age FROM person) t", "appear"),
    ("SELECT COUNT(*) FROM (SELECT a FROM edge EXCEPT ALL SELECT b FROM edge) t", "EXCEPT ALL"),
    ("SELECT COUNT(*) FROM (SELECT a FROM edge INTERSECT ALL SELECT 1) t", "INTERSECT ALL"),
    ("SELECT COUNT(*) FROM person WHERE id NOT IN (SELECT a FROM edge)", "IN .* of one person"),
    ("SELECT COUNT(*) FROM person WHERE age NOT IN (SELECT cust FROM orders)", "of one person"),
    ("SELECT COUNT(*) FROM person WHERE NOT EXISTS (SELECT 1 FROM edge)", "EXISTS.* of one person"),
    ("SELECT COUNT(*) FROM person WHERE NOT (id IN (SELECT a FROM edge))", "IN .* of one person"),
    ("SELECT COUNT(*) FROM person WHERE age > 3 OR id IN (SELECT a FROM edge)", "of one person"),
    ("SELECT COUNT(*) FROM person WHERE (id IN (SELECT a FROM edge)) = FALSE", "of one person"),
    ("SELECT COUNT(*) FROM edge WHERE w > (SELECT AVG(w) FROM edge)", "of one person"),
    (
        "SELECT COUNT(*) FROM person WHERE age > (SELECT price FROM orders WHERE cust = id)",
        "two rows",
    ),
    ("SELECT COUNT(*) FROM edge WHERE EXISTS (SELECT COUNT(*) FROM edge)", "several people"),
    ("SELECT COUNT(*) FROM (SELECT a, COUNT(*) AS n FROM edge GROUP BY a) t", "several people"),
    ("SELECT COUNT(*) FROM (SELECT a FROM edge GROUP BY a) t", "several people"),
    ("SELECT COUNT(*) FROM (SELECT MAX(age) AS m FROM person) t", "everybody's rows"),
    ("SELECT COUNT(*) FROM (SELECT city FROM person GROUP BY city) t", "GROUP BY city .* whose"),
    ("SELECT COUNT(*) FROM (SELECT cust + 1 AS c FROM orders GROUP BY cust + 1) t", "whose"),
    (
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER () AS r FROM person) t",
        "PARTITION BY nothing",
    ),
    ("SELECT COUNT(*) FROM (SELECT RANK() OVER (PARTITION BY note) r FROM orders) t", "BY note"),
    (
        "SELECT COUNT(*) FROM (SELECT DISTINCT ON (city) city, age FROM person) t",
        "BY city .* whose",
    ),
    (
        "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT cust FROM orders WHERE cust = p.id"
        " GROUP BY cust HAVING COUNT(*) > 1)",
        "of one person",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT o.cust, COUNT(*) AS n FROM person p LEFT JOIN orders o"
        " ON p.id = o.cust GROUP BY o.cust) t",
        "GROUP BY cust .* whose",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT id, STRING_AGG(city) s FROM person GROUP BY id) t",
        "supported are",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT cust, SUM(price * 1e0) s FROM orders GROUP BY cust) t",
        "order in which rows are found",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT x.c, COUNT(*) n FROM (SELECT DISTINCT note c FROM orders)"
        " x GROUP BY x.c) t",
        "nobody's own",
    ),
]


@pytest.mark.parametrize(("text", "words"), ABOUT_SEVERAL)
def test_what_is_about_several_people_is_refused(text: str, words: str) -> None:
    schema = connect(random_world(1)).schema
    with pytest.raises(QueryError, match=words):
        sql(text).rewrite(schema)


@pytest.mark.parametrize(("text", "words"), UNFIT)
def test_a_question_is_refused_from_the_public_schema_alone(text: str, words: str) -> None:
    schema = connect(random_world(1)).schema
    with pytest.raises(QueryError, match=words):
        sql(text).rewrite(schema)


def test_groups_must_fit_group_by() -> None:
    with pytest.raises(QueryError, match="without GROUP BY"):
        sql("SELECT COUNT(*) FROM edge", groups={"a": [1]})
    with pytest.raises(QueryError, match="GROUP BY has a; groups= has b"):
        sql("SELECT a, COUNT(*) FROM edge GROUP BY a", groups={"b": [1]})
    with pytest.raises(QueryError, match="is not in GROUP BY"):
        sql("SELECT b, COUNT(*) FROM edge GROUP BY a", groups={"a": [1]})
    with pytest.raises(QueryError, match="give it a name"):
        sql("SELECT COUNT(*) FROM edge GROUP BY a + 1", groups={"x": [1]})
    with pytest.raises(QueryError, match="ROLLUP"):
        sql("SELECT a, COUNT(*) FROM edge GROUP BY ROLLUP (a)", groups={"a": [1]})
    for bad in ({"a": [1, 1.0]}, {"a": []}, {"a": 3}, {"a": "1, 1"}, {}):
        with pytest.raises(InputError, match="groups"):
            sql("SELECT a, COUNT(*) FROM edge GROUP BY a", groups=bad)
    grouped = one_aggregate("SELECT a, COUNT(*) FROM edge GROUP BY a", groups={"a": [1]})
    assert grouped.shape == "vector"
    with pytest.raises(QueryError, match="groups"):
        relation_of(connect(random_world(1)), grouped)
    with pytest.raises(QueryError, match="more than one number"):
        grouped / 2


def test_other_arguments_are_checked() -> None:
    with pytest.raises(InputError, match="dialect must be one of"):
        sql("SELECT COUNT(*) FROM edge", dialect="oracle")
    with pytest.raises(InputError, match="list of names"):
        sql("SELECT COUNT(*) FROM edge", functions="f")
    with pytest.raises(QueryError, match="is a text"):
        sql(3)  # type: ignore[arg-type]


def test_an_allowed_function_is_run() -> None:
    database = connect(random_world(1))
    database._engine._connection.execute("CREATE MACRO double_it(x) AS 2 * x")  # type: ignore[attr-defined]
    question = sql("SELECT SUM(double_it(minutes)) FROM visit", functions=["double_it"])
    plain = sql("SELECT SUM(minutes) FROM visit")
    assert question.truth(database) == 2 * plain.truth(database)
    assert relation_of(database, question).total == 2 * plain.truth(database)


VOUCHED = (
    "SELECT SUM(double_it(minutes)) FROM visit",
    "SELECT COUNT(*) AS n, SUM(double_it(minutes)) AS total FROM visit",
    "SELECT COUNT(*) FROM visit WHERE double_it(minutes) > 4",
)


@pytest.mark.parametrize("text", VOUCHED)
def test_guarantees_say_which_functions_a_question_vouches_for(text: str) -> None:
    database = connect(random_world(1))
    database._engine._connection.execute("CREATE MACRO double_it(x) AS 2 * x")  # type: ignore[attr-defined]
    terms: dict[str, Any] = {"unit": "participant", "epsilon": 1, "delta": 1e-6}
    said = "double_it(...) follows from its arguments alone, as the question says"
    for question in (
        sql(text, functions=["double_it"]),
        2 * sql(VOUCHED[0], functions=["double_it"]),
    ):
        assert said in tulle.plan(database, question, **terms).guarantee.assumptions
    plain = sql(text.replace("double_it(minutes)", "minutes"), functions=["double_it"])
    assert said not in tulle.plan(database, sql(plain.text), **terms).guarantee.assumptions


def test_postgresql_refuses_casts_that_can_fail() -> None:
    tables = {"person": {"id": "integer", "city": "text", "age": "integer"}}
    from tulle.sql.schema.schema import Schema

    schema = Schema.build("postgres", tables, owners={"person": "id"})
    with pytest.raises(QueryError, match=r"CAST.*PostgreSQL fails"):
        sql("SELECT COUNT(*) FROM person WHERE CAST(city AS BOOLEAN)").rewrite(schema)
    written = sql("SELECT SUM(CAST(age AS DOUBLE)) FROM person WHERE CAST(age AS TEXT) <> '3'")
    assert "DOUBLE PRECISION" in written.rewrite(schema).text


def test_failures_do_not_depend_on_the_data() -> None:
    """A division by zero and a text that is no number give NULL; nothing is raised."""
    rows: dict[str, Any] = random_world(1)
    rows["person"] = [(1, "12", 0), (2, "no number", 3), (3, None, None)]
    for left in (rows, take_away(rows, ("person", 2)), take_away(rows, ("person", 1))):
        database = connect(left)
        for text in (
            "SELECT SUM(1 / age) FROM person",
            "SELECT SUM(7 % age) FROM person",
            "SELECT SUM(CAST(city AS INTEGER)) FROM person",
            "SELECT COUNT(*) FROM person WHERE CAST(city AS DATE) < '2020-01-01'",
        ):
            assert sql(text).truth(database) == relation_of(database, sql(text)).total


def test_weights_that_are_not_numbers_weigh_nothing() -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (p INTEGER, x DOUBLE)")
    connection.execute(
        "INSERT INTO t VALUES (1, 2.5), (2, 'nan'), (3, 'inf'), (4, '-inf'), (1, -1)"
    )
    database = Database.connect(connection, owners={"t": "p"})
    relation = relation_of(database, sql("SELECT SUM(x) FROM t"))
    assert sorted(relation.weights) == [-1.0, 2.5]
    distinct = relation_of(database, sql("SELECT SUM(DISTINCT x) FROM t"))
    assert sorted(distinct.weights) == [-1.0, 2.5]


def test_the_words_of_a_failing_engine_are_kept_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tulle.sql.compile.rewrite.total_statement", lambda tree, schema, **more: tree
    )
    rows = random_world(1)
    rows["person"] = [(1, "private words", 1)]
    database = connect(rows)
    question = sql("SELECT COUNT(*) FROM person WHERE city > 3")
    with pytest.raises((EngineError, QueryError)) as caught:
        relation_of(database, question)
    assert "private words" not in str(caught.value)
    assert caught.value.__suppress_context__
