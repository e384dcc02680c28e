"""Which parts of each expression are understood."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

import sqlglot
from sqlglot import exp
from tests.sql.compile.judges import world
from tests.sql.compile.test_statements import PLACES

from tulle.core.errors import TulleError
from tulle.sql.queries import sql
from tulle.sql.question import arguments

STATEMENTS = (
    *(place.replace("{}", "2") for place in PLACES),
    "SELECT ROUND(SUM(age), 1) + COALESCE(AVG(age), 0) + FLOOR(MEDIAN(age)) FROM person",
    "SELECT id % 2 AS g, COUNT(*) AS n FROM person GROUP BY g ORDER BY n DESC LIMIT 3 OFFSET 1",
    "SELECT city, SUM(COUNT(*)) OVER (ORDER BY city ROWS 1 PRECEDING) AS r, RANK() OVER"
    " (ORDER BY COUNT(*)) AS s, LAG(COUNT(*)) OVER (ORDER BY city) AS t FROM person GROUP BY city",
    "WITH a AS (SELECT id FROM person) SELECT COUNT(*) FROM a",
    "SELECT COUNT(*) FROM reading WHERE CAST(tag AS DECIMAL(4, 1)) > 1 AND seen IS NULL",
    "SELECT COUNT(*) FROM person WHERE CASE age WHEN 20 THEN TRUE ELSE FALSE END",
)
UNHEARD = (
    *("SELECT MAX(age, 2) FROM person", "SELECT COUNT(* EXCLUDE (age)) FROM person"),
    "SELECT COUNT(*, age) FROM person",
    "SELECT COUNT(*) FROM reading WHERE CAST(tag AS INT DEFAULT 5 ON CONVERSION ERROR) = 5",
    "SELECT city, COUNT(*) AS n FROM person GROUP BY city LIMIT 1 BY city",
    "SELECT city, COUNT(*) AS n FROM person GROUP BY city ORDER BY n WITH FILL",
    *("SELECT ROUND(AVG(age), 1, 1) FROM person", "SELECT FLOOR(AVG(age), 2) FROM person"),
    "SELECT city, SUM(COUNT(*)) OVER w FROM person GROUP BY city",
    "SELECT AVG(age)::DECIMAL(10, x) FROM person",
)
"""Each has a part that the parser reads, and that nothing here would look at."""

SAME = {
    *(("Identifier", name) for name in ("quoted", "temporary", "global_")),
    *(("DataType", name) for name in ("nested", "values", "kind", "nullable")),
    *(("Coalesce", "is_nvl"), ("Coalesce", "is_null"), ("Cast", "safe"), ("CTE", "materialized")),
    *(("Count", "big_int"), ("Subquery", "alias"), ("Literal", "is_string"), ("In", "is_global")),
    *(("Subquery", "with_"), ("Union", "with_"), ("Except", "with_"), ("Select", "with_")),
    *(("Select", "order"), ("Order", "this"), ("Ordered", "desc"), ("Ordered", "nulls_first")),
    *(("Column", "table"), ("Column", "db"), ("Column", "catalog"), ("TableAlias", "columns")),
    *(("Select", "distinct"), ("Limit", "limit_options"), ("Window", "order"), ("If", "false")),
    *(("WindowSpec", "end"), ("WindowSpec", "end_side"), ("In", "expressions"), ("In", "field")),
}
"""Parts that change nothing, or nothing where a number or a word is planted."""


def outcome(text: str) -> str | None:
    """Return what is bought for a statement, and done with it; None if it is refused."""
    database = world(2, unique=True).database
    try:
        question: Any = sql(text).bind(database)
    except TulleError:
        return None
    parts = [question] if hasattr(question, "rewrite") else list(question.parts())
    after = getattr(question, "chosen", None)
    done = [] if after is None else [after.limit, after.offset, after.order, after.columns]
    done += [] if after is None else [after.having, after.qualify]
    return str([*(part.rewrite(database.schema).text for part in parts), *done])


def left_out(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """Plant something in each part that a statement lacks; yield what makes no difference."""
    read, planted = sqlglot.parse, {}
    monkeypatch.setattr(
        sqlglot, "parse", lambda text, **more: planted.pop(text, None) or read(text, **more)
    )
    tried = set()
    for text in STATEMENTS:
        plain = outcome(text)
        assert plain is not None, text
        (tree,) = read(text, dialect="duckdb")
        for place, node in enumerate(list(tree.walk())):
            for name in [one for one in node.arg_types if not node.args.get(one)]:
                here = type(node).__name__, name
                if (*here, type(node.parent)) in tried or here in SAME:
                    continue
                tried.add((*here, type(node.parent)))
                for value in (exp.Literal.number(7), True):
                    made = tree.copy()
                    list(made.walk())[place].set(name, value)
                    planted[text] = [made]
                    # What no parser makes may be refused in any way.
                    with suppress(ValueError, TypeError, AttributeError, LookupError):
                        if outcome(text) == plain:
                            yield here
                    planted.clear()


def test_a_part_at_which_nobody_looks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [text for text in UNHEARD if outcome(text) is not None] == []
    with monkeypatch.context() as patch:
        assert set(left_out(patch)) == set()
    monkeypatch.setattr(arguments, "_KNOWN", {})
    assert ("Max", "count") in set(left_out(monkeypatch))
