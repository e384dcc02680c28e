"""TPC-H with customers and suppliers as participants: relations add up to the true answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tulle.core.errors import QueryError
from tulle.sql.queries import gather_tuples, sql

tpch: Any = pytest.importorskip("benchmarks.tpch", reason="TPC-H: the benchmarks are not here")

from tests.sql.tpch_queries import QUERIES, REFUSED  # noqa: E402


def check(folder: Path, scale: float) -> None:
    try:
        paths = tpch.generate(folder, scale)
    except FileNotFoundError as error:
        pytest.skip(f"TPC-H: {error}")
    several = set()
    asked = [("filtered", name, tpch.OWNERS, text) for name, text in tpch.QUESTIONS.items()]
    asked += [("published", name, *rest) for name, rest in tpch.PUBLISHED.items()]
    for form, name, owners, text in asked:
        database = tpch.connect(paths, owners)
        question = sql(text)
        (relation,) = gather_tuples(database, question).relations
        assert relation.total == pytest.approx(question.truth(database), rel=1e-9), (form, name)
        assert not question.rewrite(database.schema).signed, name
        if relation.general:
            several.add((form, name))
        database.close()
    assert several == {("filtered", "Q10"), ("filtered", "Q21")}


def test_the_questions_at_a_hundredth(tmp_path: Path) -> None:
    check(tmp_path, 0.01)


@pytest.mark.slow
def test_the_questions_at_a_tenth(tmp_path: Path) -> None:
    check(tmp_path, 0.1)


def test_the_benchmark_measures_at_a_hundredth(tmp_path: Path) -> None:
    try:
        paths = tpch.generate(tmp_path, 0.01)
    except FileNotFoundError as error:
        pytest.skip(f"TPC-H: {error}")
    row = tpch.measure(paths, "Q3", "published", *tpch.PUBLISHED["Q3"])
    assert row["answer"] != "DIFFERS"
    # Sixty thousand rows, at most two hundred of one customer.
    assert row["error, %"] < 2.5
    assert row["R2T, %"] == 0.25


@pytest.fixture(scope="module")
def hundredth(tmp_path_factory: Any) -> Any:
    try:
        return tpch.generate(tmp_path_factory.mktemp("tpch"), 0.01)
    except FileNotFoundError as error:
        pytest.skip(f"TPC-H: {error}")


def test_twenty_one_of_its_questions_are_supported_sixteen_as_printed(hundredth: Any) -> None:
    databases = {"suppliers": tpch.connect(hundredth, tpch.SUPPLIERS)}
    databases["customers"] = tpch.connect(hundredth, tpch.CUSTOMERS)
    for number, asked in QUERIES.items():
        database = databases["suppliers" if asked.owners is tpch.SUPPLIERS else "customers"]
        question = sql(asked.text, groups=asked.groups or None)
        assert question.objection(database) is None, (number, question.objection(database))
    assert len(QUERIES) == 21
    assert sum(asked.printed for asked in QUERIES.values()) == 16
    for number, (text, words) in REFUSED.items():
        owners = "suppliers" if number == 11 else "customers"
        with pytest.raises(QueryError, match=words):
            sql(text).bind(databases[owners])
    for database in databases.values():
        database.close()


def test_orders_per_customer_and_their_distribution(hundredth: Any) -> None:
    """The engine's own answers to questions inside one person's rows, at no noise."""
    import duckdb

    plain = duckdb.connect()
    for table, path in hundredth.items():
        plain.execute(f"CREATE VIEW {table} AS SELECT * FROM '{path}'")
    for number in (13, 16, 20, 21, 22):
        asked = QUERIES[number]
        database = tpch.connect(hundredth, asked.owners)
        question = sql(asked.text, groups=asked.groups or None)
        found = question.truth(database)
        expected = plain.execute(asked.text).fetchall()
        if not asked.groups:
            assert found == expected[0][0]
            continue
        keys = list(asked.groups)
        table = found.to_pandas().set_index(keys)
        names = [column[0] for column in plain.execute(asked.text).description]
        for row in expected:
            line = dict(zip(names, row, strict=True))
            key = tuple(line.pop(k) for k in keys)
            key = key if len(keys) > 1 else key[0]
            if key in table.index:
                for name, value in line.items():
                    assert table.loc[key, name] == pytest.approx(float(value)), (number, key)
        database.close()
    big = """SELECT SUM(l_quantity) FROM customer, orders, lineitem WHERE o_orderkey IN (
        SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 200)
        AND c_custkey = o_custkey AND o_orderkey = l_orderkey"""
    database = tpch.connect(hundredth, tpch.CUSTOMERS)
    question = sql(big).bind(database)
    assert question.alone
    assert question.truth(database) == float(plain.execute(big).fetchone()[0]) > 0
    database.close()
