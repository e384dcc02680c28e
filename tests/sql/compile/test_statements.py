"""No row makes the engine stop: what does not fit its type, or cannot be compared, is NULL.

And no part of a statement reads a table but for the rows that take part, with their owners.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import pytest

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

import sqlglot  # noqa: E402
from sqlglot import exp  # noqa: E402
from tests.drawn import Drawn  # noqa: E402
from tests.sql.compile.judges import world  # noqa: E402
from tests.sql.grammar import Grammar  # noqa: E402
from tests.sql.inside_generator import Inside  # noqa: E402
from tests.sql.linked_generator import Linked  # noqa: E402

from tulle.core.errors import QueryError  # noqa: E402
from tulle.sql.compile import statements  # noqa: E402
from tulle.sql.compile.inside import as_written  # noqa: E402
from tulle.sql.compile.statements import total_statement  # noqa: E402
from tulle.sql.data import Database  # noqa: E402
from tulle.sql.engines.base import EngineError  # noqa: E402
from tulle.sql.queries import relation_of, sql  # noqa: E402
from tulle.sql.question.check import refuse  # noqa: E402

TABLE = """
    CREATE TABLE t (who INTEGER, a INTEGER, b BIGINT, d DOUBLE, e DECIMAL(38, 2), h HUGEINT,
                    s VARCHAR, day DATE);
    INSERT INTO t SELECT range, 1, 2, 3.5, 4, 6, '5', DATE '2020-02-01' FROM range(9);
"""
ODD = """
    INSERT INTO t SELECT 100 + range, 2147483647, 9223372036854775807, 1e308,
        999999999999999999999999999999999999.99, 170141183460469231731687303715884105727, 'x',
        DATE '200000-01-01' FROM range(3)
"""
QUESTIONS = {
    "SELECT COUNT(*) FROM t WHERE a + 1 > 0": 9,
    "SELECT SUM(a * a) FROM t": 9,
    "SELECT SUM(b * b - 1) FROM t": 27,
    "SELECT SUM(-b - b) FROM t": -36,
    "SELECT SUM(e * 10) FROM t": 360,
    "SELECT SUM(d * 10) FROM t": 315,
    "SELECT SUM(d) FROM t": 31.5,
    "SELECT SUM(d * d) FROM t": 110.25,
    "SELECT COUNT(*) FROM t WHERE s = 5": 9,
    "SELECT COUNT(*) FROM t WHERE s <> 7": 9,
    "SELECT COUNT(*) FROM t WHERE s IN (5, 6)": 9,
    "SELECT COUNT(*) FROM t x JOIN t y ON x.s = y.h - 1": 81,
    "SELECT COUNT(*) FROM t WHERE day + INTERVAL 100000 YEAR > day": 9,
    "SELECT SUM(CASE WHEN a * 2 > 1 THEN b + 1 ELSE NULL END) FROM t": 27,
    "SELECT COUNT(DISTINCT a * a) FROM t": 1,
    "SELECT COUNT(*) FROM (SELECT b + b AS z FROM t UNION SELECT a * b FROM t) u WHERE z > 1": 2,
    "SELECT COUNT(*) FROM t WHERE who IN (SELECT b * b FROM t)": 1,
}


def connect(*statements: str) -> Any:
    connection = duckdb.connect()
    for statement in statements:
        connection.execute(statement)
    return Database.connect(connection, owners={"t": "who"})


@pytest.mark.parametrize("text", QUESTIONS)
def test_rows_that_do_not_fit_are_left_out(text: str) -> None:
    plain, odd = connect(TABLE), connect(TABLE, ODD)
    for database in (plain, odd):
        assert relation_of(database, sql(text)).total == QUESTIONS[text]
    plain.close()
    odd.close()


def test_sums_of_the_widest_numbers_are_sums_of_doubles() -> None:
    odd = connect(TABLE, ODD)
    for column, most in (("e", 1e36), ("h", 1.7e38), ("b", 9.2e18)):
        weights = relation_of(odd, sql(f"SELECT SUM({column}) FROM t")).weights
        assert len(weights) == 12
        assert max(weights) == pytest.approx(most, rel=0.01)
    many = connect(TABLE, "UPDATE t SET who = 1, e = 999999999999999999999999999999999999.99")
    assert relation_of(many, sql("SELECT SUM(e) FROM t")).total == pytest.approx(9e36)
    odd.close()
    many.close()


def test_without_the_guard_the_engine_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the same questions as they were written fail, and only with some rows."""
    monkeypatch.setattr(
        "tulle.sql.compile.rewrite.total_statement",
        lambda tree, schema, **more: tree.transform(as_written),
    )
    plain, odd = connect(TABLE), connect(TABLE, ODD)
    stopped = 0
    for text in QUESTIONS:
        relation_of(plain, sql(text))
        try:
            relation_of(odd, sql(text))
        except EngineError:
            stopped += 1
    assert stopped >= 10
    plain.close()
    odd.close()


# --- sub-selects in any place --------------------------------------------------------------------

ABOUT_OTHERS = (
    "(SELECT COUNT(*) FROM person)",
    "(SELECT MAX(age) FROM person)",
    "CASE WHEN EXISTS (SELECT 1 FROM person WHERE age = 22) THEN 1 ELSE 0 END",
    "CASE WHEN 2 IN (SELECT cust FROM orders) THEN 1 ELSE 0 END",
)
"""Numbers that tell of everybody's rows."""

PLACES = (
    "SELECT COUNT(*) FROM person p WHERE p.id IN (SELECT {} FROM edge e)",
    "SELECT COUNT(*) FROM person p WHERE p.id IN (SELECT e.a * {} FROM edge e, city c)",
    "SELECT COUNT(*) FROM person p WHERE (p.id, 1) IN (SELECT e.a, {} FROM edge e)",
    "SELECT COUNT(*) FROM person p WHERE p.id IN (SELECT cust FROM orders GROUP BY cust, okey * {}"
    " HAVING COUNT(*) > 1)",
    "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT cust FROM (SELECT cust FROM orders GROUP BY"
    " cust, okey * {}) o WHERE o.cust = p.id)",
    "SELECT SUM(x) FROM (SELECT cust, price AS x FROM orders GROUP BY cust, price, {}) t",
    "SELECT SUM(x) FROM (SELECT DISTINCT ON (cust, okey * {}) cust, price AS x FROM orders) t",
    "SELECT SUM(x) FROM (SELECT DISTINCT ON (cust) cust, price AS x FROM orders"
    " ORDER BY cust, okey * {}) t",
    "SELECT SUM(x) FROM (SELECT cust, SUM(price * {}) AS x FROM orders GROUP BY cust) t",
    "SELECT SUM(x) FROM (SELECT cust, MAX(price) AS x FROM orders GROUP BY cust"
    " HAVING COUNT(*) > {}) t",
    "SELECT SUM(x) FROM (SELECT cust, MAX(price) FILTER (WHERE okey > {}) AS x FROM orders"
    " GROUP BY cust) t",
    "SELECT SUM(x) FROM (SELECT cust, ARG_MAX(price, okey * {}) AS x FROM orders GROUP BY cust) t",
    "SELECT SUM(x) FROM (SELECT cust, SUM(price) OVER (PARTITION BY cust, okey * {}) AS x"
    " FROM orders) t",
    "SELECT SUM(x) FROM (SELECT cust, LAG(price) OVER (PARTITION BY cust ORDER BY okey * {}) AS x"
    " FROM orders) t",
    "SELECT SUM(x) FROM (SELECT cust, price AS x FROM orders QUALIFY ROW_NUMBER() OVER"
    " (PARTITION BY cust ORDER BY okey * {}) = 1) t",
    "SELECT SUM(x) FROM (SELECT cust, price AS x FROM orders UNION SELECT id, {} FROM person) t",
    "SELECT SUM(x) FROM (SELECT cust, price AS x FROM orders EXCEPT SELECT id, {} FROM person) t",
    "SELECT SUM(age * {}) FROM person",
    "SELECT COUNT(*) FILTER (WHERE age > {}) FROM person",
    "SELECT COUNT(DISTINCT age * {}) FROM person",
    "SELECT MEDIAN(age * {}) FROM person",
    "SELECT age * {} AS g, COUNT(*) FROM person GROUP BY g",
    "SELECT city, COUNT(*) FROM person GROUP BY city HAVING COUNT(*) > {}",
    "SELECT COUNT(*) + {} FROM person",
    "SELECT COUNT(*) FROM person WHERE age > {}",
    "SELECT COUNT(*) FROM person WHERE age BETWEEN 1 AND {} OR age IN (1, {})",
    "SELECT COUNT(*) FROM person JOIN orders ON cust = id AND price > {}",
    "SELECT COUNT(*) FROM person LEFT JOIN orders ON cust = id AND price > {}",
    "SELECT COUNT(*) FROM person, (VALUES ({})) AS v(n)",
    "SELECT COUNT(*) FROM person WHERE NOT EXISTS (SELECT {} FROM orders WHERE cust = id)",
    "SELECT COUNT(*) FROM person WHERE id NOT IN (SELECT cust * {} FROM orders WHERE cust = id)",
    "SELECT COUNT(*) FROM person WHERE age > (SELECT MAX(price * {}) FROM orders WHERE cust = id)",
    "SELECT COUNT(*) FROM person WHERE age = (SELECT 21 FROM city WHERE name = city AND 1 = {})",
)


def planted(seed: int) -> str:
    """Return a statement of a generator, with such a number for one of its columns or constants."""
    draw = random.Random(seed)
    written = (
        Inside(seed).question(1),
        Grammar(seed).question(1).text,
        Linked(seed).question(1),
    )[seed % 3]
    tree: Any = sqlglot.parse_one(written, dialect="duckdb")
    places = [
        found
        for found in tree.find_all(exp.Column, exp.Literal)
        if not isinstance(found.parent, exp.Interval | exp.DataTypeParam | exp.Cast)
    ]
    other = sqlglot.parse_one(draw.choice(ABOUT_OTHERS), dialect="duckdb")
    draw.choice(places).replace(other)
    return str(tree.sql(dialect="duckdb"))


def read_as_written(text: str) -> Iterator[str]:
    """Yield the tables that what an engine is given reads as the statement names them.

    Where rows are chosen that take part, tables have their full names.
    """
    question: Any = sql(text).bind(world(1, unique=True).database)
    if hasattr(question, "rewrite"):
        given = question.rewrite(world(1, unique=True).database.schema).text
        for found in sqlglot.parse_one(given, dialect="duckdb").find_all(exp.Table):
            if not found.db:
                yield found.name


def are_read(texts: list[str]) -> tuple[int, list[str]]:
    """Return how many statements are accepted, and which of them read tables as written."""
    accepted, found = 0, []
    for text in texts:
        try:
            found += [text for _ in read_as_written(text)]
            accepted += 1
        except QueryError:
            pass
    return accepted, found


@pytest.mark.parametrize("other", ABOUT_OTHERS)
def test_a_sub_select_in_any_place_reads_rows_that_take_part(other: str) -> None:
    accepted, found = are_read([place.replace("{}", other) for place in PLACES])
    assert found == []
    assert accepted < 8
    plain, _ = are_read([place.replace("{}", "2") for place in PLACES])
    assert plain > len(PLACES) - 8


def test_a_sub_select_planted_anywhere_reads_rows_that_take_part() -> None:
    assert are_read([planted(seed) for seed in range(60)])[1] == []


def rewritten(texts: Iterable[str], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what the library has made of statements before the last step."""
    found = []

    def watched(tree: Any, schema: Any, **more: Any) -> Any:
        found.append(tree.copy())
        return total_statement(tree, schema, **more)

    monkeypatch.setattr("tulle.sql.compile.rewrite.total_statement", watched)
    for text in texts:
        with suppress(QueryError):
            list(read_as_written(text))
    return found


def left_unseen(trees: list[Any]) -> tuple[int, set[tuple[str, str]]]:
    """Return how many sub-selects were planted, one in each argument that a kind of expression has,
    and in which of these the last step leaves it."""
    schema, tried, found = world(1, unique=True).database.schema, set(), set()
    other: Any = sqlglot.parse_one(ABOUT_OTHERS[0])
    for tree in trees:
        for place, node in enumerate(tree.walk()):
            for argument in node.arg_types:
                here = (type(node).__name__, argument)
                listed = isinstance(node.args.get(argument), list)
                if (*here, type(node.parent)) in tried or isinstance(node, exp.Identifier):
                    continue
                tried.add((*here, type(node.parent)))
                made = tree.copy()
                changed = next(islice(made.walk(), place, None))
                added = [*changed.args[argument], other.copy()] if listed else other.copy()
                changed.set(argument, added)
                # What no parser makes may stop the last step in any way.
                with suppress(QueryError, ValueError, TypeError, AttributeError, LookupError):
                    given = total_statement(made, schema)
                    if any(not source.db for source in given.find_all(exp.Table)):
                        found.add(here)
    return len(tried), found


def test_the_last_step_sees_every_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    trees = rewritten((place.replace("{}", "2") for place in PLACES), monkeypatch)
    tried, found = left_unseen(trees)
    assert found == set()
    assert tried > 500

    def only_in_from(tree: Any) -> None:
        if isinstance(tree, exp.Table):
            check_tables(tree)

    check_tables = statements._check_tables
    monkeypatch.setattr(statements, "_check_tables", only_in_from)
    assert {("Rank", "expressions"), ("Ordered", "with_fill")} & left_unseen(trees)[1]


@pytest.mark.slow
@pytest.mark.timed(1)
def test_thousands_of_planted_sub_selects(drawn: Drawn) -> None:
    for seed in drawn.seeds():
        assert are_read([planted(seed)])[1] == []


def test_a_sub_select_that_is_left_as_it_is_written_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where nothing else notices it, the last step does; without that it is read."""
    leak = PLACES[0].format(ABOUT_OTHERS[2])

    def refuse_others(clause: str, reason: str) -> None:
        if "after IN" not in clause:
            refuse(clause, reason)

    monkeypatch.setattr("tulle.sql.compile.select_rewriter.refuse", refuse_others)
    with pytest.raises(QueryError, match="A sub-select of person here is not supported"):
        sql(leak).rewrite(world(1, unique=True).database.schema)
    monkeypatch.setattr("tulle.sql.compile.statements.refuse", lambda *words: None)
    assert list(read_as_written(leak)) == ["person"]
