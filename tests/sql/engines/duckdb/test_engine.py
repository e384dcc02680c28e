"""A statement that DuckDB's optimiser cannot plan is run as it is written."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import Any

import duckdb
import pytest
from tests.sql.compile.judges import connected, take_away, world

from tulle.sql.engines.base import EngineError
from tulle.sql.engines.duckdb.engine import read_rows
from tulle.sql.queries import sql

ORDERS = "(SELECT cust AS k, okey AS x, price AS y FROM orders)"
NOTED = "(SELECT cust AS k, okey AS x, price AS y FROM orders WHERE note = 'x')"
UNPLANNED = f"""
SELECT COUNT(s1.k) FROM edge e LEFT JOIN (
    SELECT s2.k AS k, s2.x AS x, s3.y AS y
    FROM (SELECT s4.k AS k, s4.x AS x, COALESCE(s5.x, s4.y) AS y
          FROM {NOTED} s5 RIGHT JOIN {ORDERS} s4 ON s4.k = s5.k AND s4.x < s5.x) s2
    LEFT JOIN (SELECT s6.k AS k, s6.x AS x, s7.x AS y
               FROM {ORDERS} s6 LEFT JOIN {NOTED} s7 ON s6.k = s7.k AND s6.x < s7.x
               WHERE s6.x > 1) s3
    ON s2.k = s3.k AND s3.y IS NULL
    WHERE NOT (s2.y > 2)) s1
ON s1.k = e.a WHERE (e.w IN (CAST(s1.y AS BIGINT), CAST(s1.x AS BIGINT))) IS NULL
"""


def planned(connection: Any, statement: str) -> bool:
    """Say whether the optimiser can plan a statement."""
    try:
        connection.sql(statement).to_arrow_table()
    except duckdb.Error:
        return False
    return True


def test_what_the_optimiser_cannot_plan_is_answered() -> None:
    """Whether it can depends on who is in the data; the answer comes all the same."""
    here = world(3, True)
    statement = sql(UNPLANNED).bind(here.database).rewrite(here.database.schema).text
    fared = set()
    for who in here.people:
        left = connected(take_away(here.rows, who), collate=False)
        fared.add(planned(left, statement))
        with left.cursor() as cursor:
            cursor.execute("PRAGMA disable_optimizer")
            as_written = cursor.sql(statement).to_arrow_table()
        key = [(name, "ascending") for name in as_written.column_names]
        assert read_rows(left.cursor, statement).sort_by(key).equals(as_written.sort_by(key))
    assert False in fared, "a newer DuckDB plans this statement: look for another"


@pytest.mark.parametrize(
    ("fault", "again"),
    [(duckdb.InternalException, True), (duckdb.Error, True), (duckdb.OutOfMemoryException, False)],
)
def test_only_a_fault_of_the_engine_is_tried_again(
    fault: type[Exception], again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever an optimiser says, the statement runs as written; memory that ends, ends."""
    engine = world(1, True).database._engine
    asked: list[str] = []

    class Cursor:
        def execute(self, text: str) -> None:
            asked.append(text)

        def sql(self, text: str) -> Any:
            if asked:
                return duckdb.sql(text)
            raise fault("'a record'")

    @contextmanager
    def cursor() -> Any:
        yield Cursor()

    monkeypatch.setattr(engine, "_cursor", cursor)
    if again:
        assert engine.fetch("SELECT 1 AS one").num_rows == 1
        assert asked == ["PRAGMA disable_optimizer", "PRAGMA enable_optimizer"]
    else:
        with pytest.raises(EngineError, match=r"^(?!.*a record)"):
            engine.fetch("SELECT 1 AS one")
        assert asked == []


def test_rows_that_are_kept_are_computed_once_and_go_with_who_reads_them() -> None:
    """Several statements read the same rows, also where the optimiser fails on their plan."""
    engine = world(1, True).database._engine
    engine._connection.execute("CREATE SEQUENCE drawn")
    place = ".".join(engine._place)
    space, other = engine.workspace(), engine.workspace()
    kept = space.keep(f"SELECT nextval('{place}.drawn') AS one FROM range(3)")
    first = space.fetch(f"SELECT one FROM {kept} k").column("one").to_pylist()
    assert space.fetch(f"SELECT one FROM {kept} k").column("one").to_pylist() == first
    again = space.keep(f"SELECT one + 1 AS one FROM {kept} k")
    after = [one + 1 for one in first]
    assert space.fetch(f"SELECT one FROM {again} k").column("one").to_pylist() == after
    seven = other.keep("SELECT 7 AS one")
    assert other.fetch(f"SELECT one FROM {seven} k").column("one").to_pylist() == [7]
    with pytest.raises(EngineError):
        engine.fetch(f"SELECT one FROM {kept} k")
    del space, other
    gc.collect()
    temporary = "SELECT COUNT(*) FROM duckdb_tables() WHERE temporary"
    assert engine.fetch(temporary).column(0).to_pylist() == [0]
