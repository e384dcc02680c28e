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
    "WITH t AS (SELECT dept, sex, SUM(pay) AS paid, COUNT(*) AS n FROM staff GROUP BY 1, 2), y AS "
    "(SELECT dept, sex, paid / n AS mean FROM t WHERE n > 2) SELECT dept, sex, 2 * mean AS twice "
    "FROM y WHERE mean > 1 ORDER BY dept, sex",
    # The same name again: each body knows the one before it.
    "WITH t AS (SELECT * FROM staff WHERE pay > 20), t2 AS (SELECT dept, sex, COUNT(*) AS n FROM t "
    "GROUP BY dept, sex), y AS (WITH t AS (SELECT dept, sex, n + 1 AS n FROM t2) SELECT dept, sex, "
    "n + 1 AS n FROM t), unused AS (SELECT n FROM t2) SELECT * FROM y ORDER BY dept, sex",
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
        "SELECT n + 1 AS m FROM (WITH RECURSIVE staff AS (SELECT * FROM staff) SELECT COUNT(*) AS "
        "n FROM staff) t",
    ],
)
def test_what_is_not_one_table_is_not_merged(staff: Any, text: str) -> None:
    with pytest.raises(QueryError):
        tulle.sql(text).bind(staff[0])


def test_answers_that_are_joined_are_refused_in_words_about_them(staff: Any) -> None:
    text = (
        "WITH t AS (SELECT dept, COUNT(*) AS n FROM staff GROUP BY dept), u AS (SELECT dept, n AS "
        "m FROM t) SELECT t.dept, n, m FROM t JOIN u ON t.dept = u.dept"
    )
    with pytest.raises(QueryError, match="does not only compute with an aggregated SELECT"):
        tulle.sql(text, groups=GROUPS).bind(staff[0])
