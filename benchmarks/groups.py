"""Many groups over rows of several people: TPC-H at epsilon = 4, delta = 1e-7, on DuckDB.

The queries are those with which PMSJA was measured (Dong, Chen, Yi, Machanavajjhala & Tao, *Better
than composition: how to answer multiple relational queries under differential privacy*, SIGMOD
2023; medians of 20 runs from its published result files stand beside ours). "pure" is what a
question gets without a delta: every group pays for itself. The error is the relative L2 error of
all groups together. The times are those of a whole release, by the clock and of the processors.

Run it with ``python -m benchmarks.groups [Q3 Q5 ...]``; TULLE_TPCH_SCALE sets the scale, 1 if it is
not set, and TULLE_RUNS how often each is released, 3 times if it is not set.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import print_table
from benchmarks.tpch import OWNERS, connect, generate

EPSILON, DELTA = 4, 1e-7

Owners = dict[str, str | list[str]]

CUSTOMERS_AND_OFFERS: Owners = {
    "customer": "customer: c_custkey",
    "orders": "customer: o_custkey",
    "lineitem": ["l_orderkey -> orders[o_orderkey]", "offer: (l_partkey, l_suppkey)"],
    "partsupp": "offer: (ps_partkey, ps_suppkey)",
}
"""Customers, and pairs of a part and a supplier."""

ORDERS_AND_OFFERS: Owners = {
    "orders": "order: o_orderkey",
    "lineitem": ["order: l_orderkey", "offer: (l_partkey, l_suppkey)"],
    "partsupp": "offer: (ps_partkey, ps_suppkey)",
}

REVENUE = "SUM(l_extendedprice * (1 - l_discount) / 1000)"

Question = tuple[Owners, str, str, int]
"""Who is protected, the statement, the column of the groups, and how many days, if it is one."""

QUESTIONS: dict[str, Question] = {
    "Q3": (
        OWNERS,
        f"""SELECT n_name, {REVENUE} FROM supplier, lineitem, orders, customer, nation, region
        WHERE s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
          AND c_nationkey = n_nationkey AND n_nationkey = s_nationkey
          AND r_regionkey = n_regionkey GROUP BY n_name""",
        "n_name",
        0,
    ),
    "Q5": (
        OWNERS,
        f"""SELECT l_shipdate, {REVENUE} FROM supplier, lineitem, orders, customer
        WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
        GROUP BY l_shipdate""",
        "l_shipdate",
        100,
    ),
    "Q6": (
        CUSTOMERS_AND_OFFERS,
        """SELECT n_name, COUNT(*) FROM partsupp, lineitem, orders, customer, nation
        WHERE ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND o_orderkey = l_orderkey
          AND c_custkey = o_custkey AND c_nationkey = n_nationkey
          AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1995-02-28' GROUP BY n_name""",
        "n_name",
        0,
    ),
    **{
        name: (
            ORDERS_AND_OFFERS,
            f"""SELECT l_shipdate, {REVENUE} FROM partsupp, lineitem, orders
            WHERE ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND o_orderkey = l_orderkey
            GROUP BY l_shipdate""",
            "l_shipdate",
            days,
        )
        for name, days in (("Q8", 100), ("Q8, 400 days", 400))
    },
}

PMSJA = {
    "Q3": (0.244, 780.0),
    "Q5": (0.201, 3113.0),
    "Q6": (0.116, 36.0),
    "Q8": (0.10, 59.0),
    "Q8, 400 days": (0.107, 236.0),
}
"""Published error and time in seconds, at scale 1."""


def measure(paths: dict[str, Path], name: str, runs: int) -> dict[str, Any]:
    """Release one question again and again, with and without a delta."""
    import duckdb

    import tulle
    from tulle.sql.queries import one_aggregate

    owners, text, column, days = QUESTIONS[name]
    first = date(1995, 1, 1)
    groups: list[Any] = [first + timedelta(days=day) for day in range(days)]
    if not days:
        found = duckdb.sql(f"SELECT n_name FROM '{paths['nation']}' ORDER BY 1").fetchall()
        groups = [row[0] for row in found]
    database = connect(paths, owners)
    question = one_aggregate(text, groups={column: groups})
    truth = np.asarray(question.truth(database), dtype=float)
    row: dict[str, Any] = {"query": name, "groups": len(groups)}
    for title, delta in (("pure", 0.0), ("now", DELTA)):
        errors, clocks, processors = [], [], []
        for _ in range(runs):
            began, busy = time.perf_counter(), time.process_time()
            release = tulle.release(
                database, question, unit="participant", epsilon=EPSILON, delta=delta
            )
            clocks.append(time.perf_counter() - began)
            processors.append(time.process_time() - busy)
            value = np.asarray(release.value, dtype=float)
            errors.append(float(np.linalg.norm(value - truth) / np.linalg.norm(truth)))
        row |= {
            title: float(np.median(errors)),
            f"{title}, s": min(clocks),
            f"{title}, CPU s": min(processors),
        }
    database.close()
    error, seconds = PMSJA[name]
    return row | {"PMSJA": error, "PMSJA, s": seconds}


MINUTE: dict[str, Any] = {
    "QUESTIONS": {"Q6": QUESTIONS["Q6"]},
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Measure the questions named on the command line, or all."""
    scale = float(os.environ.get("TULLE_TPCH_SCALE", "1"))
    runs = int(os.environ.get("TULLE_RUNS", "3"))
    paths = generate(Path(tempfile.gettempdir()) / f"tpch-{scale:g}", scale)
    chosen = [name for name in QUESTIONS if name in sys.argv[1:]] or list(QUESTIONS)
    rows = []
    for name in chosen:
        rows.append(measure(paths, name, runs))
        print(".", end="", flush=True, file=sys.stderr)
    title = f"Groups of TPC-H at scale {scale:g}, epsilon = {EPSILON}, delta = {DELTA:g}"
    print_table(f"{title}, DuckDB, medians of {runs} runs", rows)


if __name__ == "__main__":
    main()
