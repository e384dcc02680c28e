"""What the guide says about SQL is so: every line of its tables is tried."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pytest

import tulle
from tulle.core.errors import QueryError
from tulle.sql.queries import sql

GUIDE = Path(__file__).parents[2] / "docs"


def rows_of(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the table that has this line above its rule, row by row."""
    lines = (GUIDE / page).read_text(encoding="utf-8").splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(heading))
    found = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return found


@pytest.fixture(scope="module")
def shop() -> Any:
    connection = duckdb.connect()
    connection.execute(
        """CREATE TABLE person (id INTEGER PRIMARY KEY, town VARCHAR, age INTEGER);
        CREATE TABLE orders (number INTEGER PRIMARY KEY, person INTEGER, price DOUBLE,
            kind VARCHAR, day DATE, sent TIMESTAMP);
        CREATE TABLE knows (a INTEGER, b INTEGER);
        CREATE TABLE town (name VARCHAR PRIMARY KEY, land VARCHAR)"""
    )
    return tulle.Database.connect(
        connection,
        owners={"person": "id", "orders": "person", "knows": ["a", "b"]},
        public=["town"],
        ranges={
            **{"person.age": (0, 120), "orders.price": (0, 100)},
            **{"orders.day": ("2020-01-01", "2029-12-31"), "orders.sent": "2020-01-01, 2030-01-01"},
        },
    )


KINDS = {"kind": ["food", "book"]}
SUPPORTED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "COUNT, COUNT(DISTINCT x, y)": (
        (
            "SELECT COUNT(*) AS n, COUNT(DISTINCT kind, day) AS p, COUNT_IF(price > 3) AS c, "
            "SUM(price) AS s, AVG(price) AS a, VAR_POP(price) AS v, VAR_SAMP(price) AS w, "
            "STDDEV_POP(price) AS d, SUM(price) FILTER (WHERE kind = 'food') AS f, "
            "APPROX_COUNT_DISTINCT(kind) AS k FROM orders",
        ),
        (
            "SELECT MODE(kind) FROM orders",
            "SELECT STRING_AGG(kind) FROM orders",
            "SELECT CORR(price, number) FROM orders",
            "SELECT AVG(day) FROM orders",
        ),
    ),
    "MIN, MAX, MEDIAN": (
        (
            "SELECT MIN(price) AS a, MAX(price) AS b, MEDIAN(price) AS c, "
            "QUANTILE_CONT(price, 0.9) AS d, "
            "PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY price) AS e FROM orders",
            "SELECT MIN(day) AS a, MEDIAN(sent) AS b, MAX(day) - MIN(day) AS c FROM orders",
        ),
        (
            "SELECT MAX(age) FROM knows JOIN person ON a = id",
            "SELECT MAX(kind) FROM orders",
        ),
    ),
    "arithmetic on aggregates": (
        (
            "SELECT kind, SUM(price) / COUNT(*) AS m, RANK() OVER (ORDER BY SUM(price)) AS r "
            "FROM orders GROUP BY kind HAVING COUNT(*) > 3 QUALIFY r < 3 ORDER BY m LIMIT 2",
            "SELECT kind, n / SUM(n) OVER () AS share FROM "
            "(SELECT kind, COUNT(*) AS n FROM orders GROUP BY kind) AS t",
        ),
        (
            "SELECT kind, COUNT(*) AS n FROM orders GROUP BY kind "
            "HAVING COUNT(*) > (SELECT COUNT(*) / 9 FROM orders)",
            "PIVOT orders ON kind USING COUNT(*)",
        ),
    ),
    "sub-selects inside aggregates": (
        (
            "SELECT COUNT(*) FILTER (WHERE EXISTS (SELECT 1 FROM orders o WHERE o.person = p.id)) "
            "AS n FROM person p",
            "SELECT COUNT_IF(town IN (SELECT name FROM town)) AS n FROM person",
        ),
        ("SELECT COUNT_IF(age > (SELECT AVG(age) FROM person)) AS n FROM person",),
    ),
    "inner, cross, semi and anti joins": (
        (
            "SELECT COUNT(*) FROM person x JOIN person y ON x.age < y.age",
            "SELECT COUNT(*) FROM person CROSS JOIN town",
            "SELECT COUNT(*) FROM person SEMI JOIN orders ON id = person",
            "SELECT COUNT(*) FROM person ANTI JOIN orders ON id = person",
        ),
        (
            "SELECT COUNT(*) FROM orders ASOF JOIN person ON person >= id",
            "SELECT COUNT(*) FROM person p, LATERAL (SELECT 1 FROM orders o WHERE o.person = p.id)",
            "SELECT COUNT(*) FROM person, UNNEST([1, 2]) AS t(x)",
        ),
    ),
    "WHERE with any condition": (
        (
            "SELECT COUNT(*) FROM person p JOIN knows ON a = id WHERE age > 3 AND EXISTS "
            "(SELECT 1 FROM orders WHERE price > age) AND b IN (SELECT person FROM orders)",
        ),
        (),
    ),
    "sub-selects in FROM, WITH": (
        (
            "WITH w AS (SELECT DISTINCT kind FROM orders UNION SELECT town FROM person) "
            "SELECT COUNT(*) FROM (SELECT kind FROM w INTERSECT SELECT name FROM town) AS t",
            "SELECT COUNT(*) FROM (SELECT a FROM knows UNION ALL SELECT id FROM person) AS t",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT id FROM person LIMIT 3) AS t",
            "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT COUNT(*) "
            "FROM r",
        ),
    ),
    "where the owners are compared": (
        (
            "SELECT COUNT(*) FROM person LEFT JOIN orders ON id = person",
            "SELECT COUNT(*) FROM person LEFT JOIN town ON town = name",
            "SELECT COUNT(*) FROM person WHERE age < 3 OR id NOT IN (SELECT person FROM orders)",
            "SELECT COUNT(*) FROM person p WHERE NOT EXISTS "
            "(SELECT 1 FROM orders o WHERE o.person = p.id)",
            "SELECT COUNT(*) FROM person p WHERE age > "
            "(SELECT COUNT(*) FROM orders o WHERE o.person = p.id)",
            "SELECT COUNT(*) FROM (SELECT id FROM person EXCEPT SELECT person FROM orders) AS t",
        ),
        (
            "SELECT COUNT(*) FROM person LEFT JOIN orders ON age = price",
            "SELECT COUNT(*) FROM person WHERE age NOT IN (SELECT price FROM orders)",
        ),
    ),
    "sub-selects with GROUP BY, HAVING": (
        (
            "SELECT COUNT(*) FROM (SELECT person, COUNT(*) AS n FROM orders GROUP BY person "
            "HAVING COUNT(*) > 2) AS t",
            "SELECT COUNT(*) FROM (SELECT person, LAG(day) OVER (PARTITION BY person ORDER BY day) "
            "AS d FROM orders) AS t WHERE d IS NULL",
            "SELECT kind, COUNT(*) AS n FROM (SELECT DISTINCT ON (person) person, kind FROM orders "
            "ORDER BY person, day) AS t GROUP BY kind",
        ),
        ("SELECT COUNT(*) FROM (SELECT kind, COUNT(*) AS n FROM orders GROUP BY kind) AS t",),
    ),
    "GROUP BY, also GROUP BY ALL": (
        ("SELECT kind, COUNT(*) AS n FROM orders GROUP BY ALL",),
        (
            "SELECT kind, COUNT(*) FROM orders GROUP BY ROLLUP (kind)",
            "SELECT kind, COUNT(*) FROM orders GROUP BY CUBE (kind)",
            "SELECT kind, COUNT(*) FROM orders GROUP BY GROUPING SETS ((kind), ())",
        ),
    ),
    "arithmetic, comparisons, CASE": (
        (
            "SELECT SUM(CASE WHEN UPPER(kind) LIKE 'F%' THEN price * 2 END) FROM orders "
            "WHERE YEAR(day) = 2024 AND DATE_DIFF('day', day, DATE '2024-03-01') > 3",
        ),
        (
            "SELECT COUNT(*) FROM person WHERE random() > age",
            "SELECT COUNT(*) FROM orders WHERE sent > now()",
            "SELECT COUNT(*) FROM person WHERE my_own(age) > 3",
        ),
    ),
}
"""For each line of the table, by its beginning: what is supported, and what is not."""


def ask(text: str, shop: Any) -> Any:
    return sql(text, groups=KINDS if text.startswith("SELECT kind") else None).bind(shop)


def test_what_is_supported_and_what_is_not(shop: Any) -> None:
    for supported, refused in rows_of("sql.md", "| supported | not supported |"):
        (mine,) = [found for start, found in SUPPORTED.items() if supported.startswith(start)]
        for text in mine[0]:
            assert ask(text, shop) is not None
        assert bool(refused) == bool(mine[1])
        for text in mine[1]:
            with pytest.raises(QueryError):
                ask(text, shop)


# --- coming from elsewhere ------------------------------------------------------------------------


@pytest.fixture
def there(tmp_path: Path) -> dict[str, Any]:
    """Return what the page's example has: a frame, a database, a question, a ledger."""
    orders = pyarrow.table(
        {
            "number": range(2000),
            "user": [i % 500 for i in range(2000)],
            "kind": [["food", "book"][i % 2] for i in range(2000)],
            "price": [float(i % 90) for i in range(2000)],
            "day": pyarrow.array([19_800] * 2000, pyarrow.date32()),
        }
    )
    line = pyarrow.table({"orders": range(2000)})
    database = tulle.Database.from_tables(
        {"orders": orders, "line": line},
        owners={"orders": "user", "line": "orders -> orders[number].user"},
        ranges={"orders.price": (0, 100)},
        keys={"orders": "number"},
    )
    text = "SELECT kind, COUNT(*) AS n FROM orders GROUP BY kind"
    ledger = tulle.Ledger(tmp_path / "study.ledger")
    study = ledger.open("study of its own", database, unit="participant", epsilon=9)
    return {
        **{"tulle": tulle, "frame": orders, "line": line, "database": database, "ledger": ledger},
        **{"question": tulle.sql(text, groups=KINDS), "session": study, "k": 2},
    }


def run(code: str, there: dict[str, Any]) -> None:
    """Run one piece of code of a table: a call, an option with or without its value, a column."""
    options = {*inspect.signature(sql).parameters}
    options |= {*inspect.signature(tulle.Database.from_tables).parameters}
    if code.endswith("="):
        assert code[:-1] in options
    elif re.match(r"\w+_(low|high)$", code):
        r = tulle.release(there["database"], there["question"], unit="participant", epsilon=1)
        assert code in r.value.names
    elif re.match(r"(owners|ranges|groups)=", code):
        name, _, value = code.partition("=")
        given = ast.literal_eval(value)
        if name == "groups":
            tulle.sql(there["question"].text, groups=given)
            return
        declared = {"owners": {"orders": "user"}, "keys": {"orders": "number"}, name: given}
        frames = {"orders": there["frame"], "line": there["line"]}
        used = {one: frames[one] for one in declared["owners"]}
        tulle.Database.from_tables(used, **declared)
    elif code.startswith("session = "):
        exec(code, dict(there))
    elif code == "release.value":
        return
    else:
        assert eval(code, dict(there)) is not None


TABLES = {
    "| BigQuery | tulle |": 5,
    "| Snowflake | tulle |": 7,
    "| Tumult | tulle |": 5,
    "| OpenDP | tulle |": 3,
    "| networkx | tulle |": 8,
}
"""The tables of the page, and how many pieces of code there are in each at least."""


@pytest.mark.parametrize("heading", TABLES)
def test_what_is_called_otherwise_runs(heading: str, there: dict[str, Any]) -> None:
    codes = [
        code
        for _, right in rows_of("how-to/coming-from.md", heading)
        for code in re.findall(r"`([^`]+)`", right)
    ]
    assert len(codes) >= TABLES[heading]
    for code in codes:
        run(code, there)
