"""A SELECT around an aggregated one: the engine's own table is ours."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sql.tables.test_windows import GROUPS, ROWS, compare, staff

import tulle
from tulle.core.errors import QueryError

__all__ = ["staff"]

WHOLE = (
    "SELECT dept, sex, n / SUM(n) OVER () AS share FROM (SELECT dept, sex, COUNT(*) AS n "
    f"{ROWS}) WHERE n > 3 ORDER BY share DESC, dept, sex",
    "WITH t AS (SELECT dept, sex, SUM(pay) AS paid, COUNT(*) AS n FROM staff GROUP BY 1, 2) "
    "SELECT dept, sex, paid / n AS mean, paid - LAG(paid) OVER (PARTITION BY sex ORDER BY dept) "
    "AS more FROM t ORDER BY dept, sex LIMIT 7",
    "SELECT * FROM (SELECT dept, sex, n, RANK() OVER (ORDER BY n DESC) AS r FROM (SELECT dept, "
    f"sex, COUNT(*) AS n {ROWS})) WHERE r <= 3 ORDER BY r, dept, sex",
    f"SELECT * EXCLUDE (paid), paid / n AS mean FROM (SELECT dept, sex, SUM(pay) AS paid, COUNT(*) "
    f"AS n {ROWS}) ORDER BY dept, sex",
    "WITH x AS (SELECT * FROM staff WHERE pay > 99) SELECT dept, sex, n FROM (WITH x AS (SELECT * "
    "FROM staff) SELECT dept, sex, COUNT(*) AS n FROM x GROUP BY dept, sex) ORDER BY dept, sex",
    "SELECT dept, sex, COUNT(*) AS n, SUM(n) OVER (PARTITION BY dept ORDER BY sex) AS running "
    f"{ROWS} HAVING COUNT(*) > 2 QUALIFY ROW_NUMBER() OVER (PARTITION BY sex ORDER BY n DESC, "
    "dept) <= 2 ORDER BY dept, sex",
)


@pytest.mark.parametrize("text", WHOLE)
def test_a_select_around_an_answer_is_part_of_it(staff: Any, text: str) -> None:
    compare(*staff, text)


def test_both_are_one_question() -> None:
    inner = "SELECT dept, sex, COUNT(*) AS n FROM staff GROUP BY dept, sex"
    one = tulle.sql(f"SELECT * FROM ({inner}) t WHERE n > 3 ORDER BY n", groups=GROUPS)
    other = tulle.sql(f"{inner} HAVING COUNT(*) > 3 ORDER BY COUNT(*)", groups=GROUPS)
    assert one.chosen.after("duckdb") == other.chosen.after("duckdb")
    assert one.chosen.columns == other.chosen.columns


@pytest.mark.parametrize(
    "text",
    [
        "SELECT dept FROM (SELECT dept, COUNT(*) AS n FROM staff GROUP BY dept LIMIT 2) t",
        "SELECT x FROM (SELECT dept, COUNT(*) AS n FROM staff GROUP BY dept) t",
        "SELECT MAX(n) AS m FROM (SELECT dept, COUNT(*) AS n FROM staff GROUP BY dept) t",
        "SELECT * REPLACE (1 AS n) FROM (SELECT dept, COUNT(*) AS n FROM staff GROUP BY dept) t",
        "SELECT dept FROM (SELECT dept, COUNT(*) AS n FROM staff GROUP BY dept) t WHERE n > "
        "(SELECT COUNT(*) AS n FROM staff)",
        "WITH RECURSIVE staff AS (SELECT * FROM staff) SELECT dept FROM (SELECT dept, "
        "COUNT(*) AS n FROM staff GROUP BY dept) t",
    ],
)
def test_what_is_not_one_table_is_not_merged(staff: Any, text: str) -> None:
    with pytest.raises(QueryError):
        tulle.sql(text).bind(staff[0])
