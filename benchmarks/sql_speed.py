"""Releases over rows of one person each, next to plain DuckDB, warm, in one run.

Run with ``python -m benchmarks.sql_speed [rows]``. The table is made up: visits of persons on 90
days, with a price. *plain* is the same statement in DuckDB; *by owner* is that statement grouped by
owner as well, which any clipping per person needs. The bar is four times *by owner* and 0.2 s. Each
time is the least of five, after one that is not counted.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import duckdb

import tulle
from benchmarks.common import print_table

ROWS = 2_000_000
PERSONS = 200_000
DAYS = 90
RUNS = 5

QUESTIONS = {
    "COUNT(*)": ("SELECT COUNT(*) FROM visit", None),
    "SUM(price)": ("SELECT SUM(price) FROM visit", None),
    "SUM(price) by 90 days": ("SELECT day, SUM(price) FROM visit GROUP BY day", "day"),
    "COUNT(*) by 90 days": ("SELECT day, COUNT(*) FROM visit GROUP BY day", "day"),
}


def timed(act: Callable[[], Any]) -> float:
    """Return the least time in seconds."""
    act()
    found = []
    for _ in range(RUNS):
        start = time.perf_counter()
        act()
        found.append(time.perf_counter() - start)
    return min(found)


MINUTE: dict[str, Any] = {
    "ROWS": 2_000,
    "PERSONS": 200,
    "RUNS": 1,
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print the table."""
    rows = next((int(given) for given in sys.argv[1:] if given.isdigit()), ROWS)
    connection = duckdb.connect()
    connection.execute("SET threads = 2").fetchall()
    connection.execute(
        f"CREATE TABLE visit AS SELECT CAST(hash(i) % {PERSONS} AS INTEGER) AS person, "
        f"CAST(hash(i + 7) % {DAYS} AS INTEGER) AS day, "
        f"CAST(hash(i + 13) % 10000 AS DOUBLE) / 100 AS price FROM range({rows}) t(i)"
    ).fetchall()
    database = tulle.Database.connect(
        connection, owners={"visit": "person"}, ranges={"visit.price": (0, 100)}
    )
    table = []
    for title, (text, column) in QUESTIONS.items():
        question = tulle.sql(text, groups={column: range(DAYS)} if column else None)
        by_owner = (
            text.partition(" GROUP BY ")[0] + " GROUP BY person" + (", day" if column else "")
        )
        plain = timed(lambda text=text: connection.sql(text).to_arrow_table())
        owner = timed(lambda text=by_owner: connection.sql(text).to_arrow_table())
        ours = timed(
            lambda question=question: tulle.release(
                database, question, unit="participant", epsilon=1.0
            )
        )
        table.append(
            {
                "question": title,
                "plain s": f"{plain:.4f}",
                "by owner s": f"{owner:.3f}",
                "release s": f"{ours:.3f}",
                "bar s": f"{4 * owner + 0.2:.3f}",
                "release / bar": f"{ours / (4 * owner + 0.2):.2f}",
            }
        )
    print_table("Releases next to plain DuckDB", table)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{rows:,} rows; memory of the whole process, DuckDB's tables included: {used:,.0f} MB")


if __name__ == "__main__":
    main()
