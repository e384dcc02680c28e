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


def test_without_noise_they_have_the_engine_s_answers(hundredth: Any) -> None:
    import duckdb

    plain = duckdb.connect()
    for table, path in hundredth.items():
        plain.execute(f"CREATE VIEW {table} AS SELECT * FROM '{path}'")
    compared = 0
    for number, asked in QUERIES.items():
        database = tpch.connect(hundredth, asked.owners)
        question = sql(asked.text, groups=asked.groups or None)
        found: Any = question.truth(database)
        expected = plain.execute(asked.text).fetchall()
        if not hasattr(found, "names"):
            assert float(found) == pytest.approx(float(expected[0][0] or 0)), number
            compared += 1
        else:
            keys = list(found.keys)
            names = [column[0] for column in plain.description]
            theirs = {}
            for row in expected:
                line = dict(zip(names, row, strict=True))
                theirs[tuple(str(line.pop(key)) for key in keys)] = line
            for place in range(len(found[found.names[0]])):
                key = tuple(str(found[name][place]) for name in keys)
                for name, value in theirs.get(key, {}).items():
                    mine = found[name][place] or 0
                    assert float(mine) == pytest.approx(float(value or 0), rel=1e-6), (number, key)
                    compared += 1
        database.close()
    assert compared > 60


def test_customers_with_more_than_so_many_in_one_order(hundredth: Any) -> None:
    import duckdb

    plain = duckdb.connect()
    for table, path in hundredth.items():
        plain.execute(f"CREATE VIEW {table} AS SELECT * FROM '{path}'")
    big = """SELECT SUM(l_quantity) FROM customer, orders, lineitem WHERE o_orderkey IN (
        SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 200)
        AND c_custkey = o_custkey AND o_orderkey = l_orderkey"""
    database = tpch.connect(hundredth, tpch.CUSTOMERS)
    question = sql(big).bind(database)
    assert question.single_owner
    assert question.truth(database) == float(plain.execute(big).fetchone()[0]) > 0
    database.close()
