"""Statements that an engine would plan for minutes are refused by their size."""

from __future__ import annotations

from typing import Any

import pytest

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

from tulle.core.errors import QueryError  # noqa: E402
from tulle.sql.compile import size  # noqa: E402
from tulle.sql.data import Database  # noqa: E402
from tulle.sql.queries import SqlQuery, sql  # noqa: E402


@pytest.mark.parametrize(
    "nest",
    ["ROUND({}, 1)", "1 / ({} + 2)", "NULLIF({}, 3)", "CASE {} WHEN 1 THEN 2 WHEN 3 THEN 4 END"],
)
def test_nests_that_take_long_to_plan_are_refused_at_once(
    nest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the engine is handed is planned in seconds; anything longer is refused by its size."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (who INTEGER, d DOUBLE)")
    database = Database.connect(connection, owners={"t": "who"})
    written, sizes = "d", []
    honest = size.size_as_planned

    def watched(tree: Any) -> int:
        sizes.append(honest(tree))
        return sizes[-1]

    monkeypatch.setattr(size, "size_as_planned", watched)

    def deeper() -> None:
        nonlocal written
        for _ in range(40):
            written = nest.format(written)
            asked = sql(f"SELECT COUNT({written}) FROM t")
            assert isinstance(asked, SqlQuery)
            asked.rewrite(database.schema)
            assert sizes[-1] <= size.MOST_PARTS

    with pytest.raises(QueryError, match="too large"):
        deeper()
    # Without the limit each further one would be planned as much larger again.
    assert sizes[-1] > 1.5 * sizes[-2]


def test_long_lists_are_no_nests() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (who INTEGER, k INTEGER)")
    database = Database.connect(connection, owners={"t": "who"})
    listed = ", ".join(map(str, range(3000)))
    sql(f"SELECT COUNT(*) FROM t WHERE k IN ({listed})").bind(database)
    many = {"k": list(range(3000))}
    sql("SELECT k, COUNT(*) FROM t GROUP BY k", groups=many).bind(database)
