"""Errors of SQL answers, predicted before anything is spent, beside those that are measured.

The data is TPC-H; the questions are those of ``benchmarks.tpch``, with and without conditions, and
all of the benchmark's own queries that are supported (``tests/sql/tpch_queries.py``), whole tables
with groups included. The prediction sees no row. What it assumes is the benchmark's public
specification: how many customers, suppliers and parts there are at this scale, how many orders and
lines a customer has on average, and which values the columns hold. It is printed a second time with
nothing said at all, and a third time with ``like=``, another database of the benchmark, of half the
scale.

Predicted is the median error that the plan shows, measured is the median, over draws and groups, of
the distance from the true answer; of several columns each counts. Run it with
``python -m benchmarks.sql_predictions [Q3 Q5 ...]``; TULLE_TPCH_SCALE sets the scale, 0.01 if it is
not set, and TULLE_RUNS the number of draws, 21 if it is not set.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import tpch
from benchmarks.common import print_table

EPSILON = 0.8

NATIONS = (  # All but those of two words.
    *("FRANCE", "GERMANY", "ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA"),
    *("INDIA", "INDONESIA", "IRAN", "IRAQ", "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    *("PERU", "CHINA", "ROMANIA", "RUSSIA", "VIETNAM"),
)


def specification(scale: float) -> dict[str, Any]:
    """Return what the benchmark's specification says of columns, in public."""
    days = ("1992-01-01", "1998-08-02")
    segments = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
    regions = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
    nations = [*NATIONS, "SAUDI ARABIA", "UNITED KINGDOM", "UNITED STATES"]
    return {
        "customer.c_mktsegment": segments,
        "customer.c_acctbal": (-999.99, 9999.99),
        "customer.c_phone": [f"{code}-555" for code in range(10, 35)],
        "orders.o_orderdate": days,
        "orders.o_orderstatus": ["F", "O"],
        "orders.o_orderpriority": ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"],
        "orders.o_comment": 50,
        "lineitem.l_shipdate": ("orders.o_orderdate", 1, 121),
        "lineitem.l_commitdate": ("orders.o_orderdate", 30, 90),
        "lineitem.l_receiptdate": ("lineitem.l_shipdate", 1, 30),
        "lineitem.l_returnflag": ["R", "A", "N", "N"],
        "lineitem.l_linestatus": ["F", "O"],
        "lineitem.l_quantity": (1, 50),
        "lineitem.l_extendedprice": (900, 75_000),
        "lineitem.l_discount": (0.0, 0.1),
        "lineitem.l_tax": (0.0, 0.08),
        "lineitem.l_shipmode": ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"],
        "lineitem.l_shipinstruct": 4,
        "partsupp.ps_availqty": (1, 9999),
        "partsupp.ps_supplycost": (1, 1000),
        "part.p_partkey": max(round(200_000 * scale), 1),
        "part.p_type": 150,
        "part.p_brand": 25,
        "part.p_container": 40,
        "part.p_name": 92 // 5,
        "part.p_size": (1, 50),
        "supplier.s_comment": 2000,
        "nation.n_name": nations,
        "region.r_name": regions,
    }


def assumed(schema: Any, scale: float) -> dict[str, Any]:
    """Return what is assumed about a database of the benchmark, by its specification."""
    people = {"customer": 150_000, "supplier": 10_000, "order": 1_500_000}
    per = {
        "customer": {"customer": 1, "orders": 10, "lineitem": 40},
        "supplier": {"supplier": 1, "partsupp": 80, "lineitem": 600},
        "order": {"orders": 1, "lineitem": 4},
    }
    kinds = schema.entities()
    rows = {}
    for table in schema.owners:
        first = schema.ownership(table).ties[0].entity
        rows[table] = per[first][table]
    values = {
        name: held
        for name, held in specification(scale).items()
        if name.split(".")[0] in schema.tables
    }
    return {
        "people": {kind: max(round(people[kind] * scale), 1) for kind in kinds},
        "rows_per_person": rows,
        "values": values,
    }


def predicted(plan: Any) -> dict[str, float]:
    """Return the median error of one number that a plan shows, for each column."""
    if plan.columns:
        return {
            name: np.inf if law is None else law.of_one().half_width(0.5)
            for name, law in plan.columns
        }
    law = plan.chosen.prediction.typical
    return {"": np.inf if law is None else law.of_one().half_width(0.5)}


def measured(database: Any, question: Any, runs: int) -> dict[str, float]:
    """Return the median distance of released numbers from the truth, for each column."""
    from tulle.core.table import Table
    from tulle.ledger.answer import draw, plan_for
    from tulle.sql.queries import SqlQuery, gather_tuples

    truth = question.truth(database)
    if isinstance(question, SqlQuery) and not question.groups:
        # The tuples are gathered once, and no program is solved twice.
        relation = gather_tuples(database, question).relations[0]
        errors = tpch.errors(database, question, relation, 1.0 * truth or 1.0)
        return {"": float(np.median(errors)) * abs(truth or 1.0)}
    plan = plan_for(database, question, unit="participant", epsilon=EPSILON)
    drawn: dict[str, list[Any]] = {}
    exact = _columns(truth, Table)
    for _ in range(runs):
        for name, column in _columns(draw(plan, database, None, debit=None).value, Table).items():
            true = np.asarray(exact[name], dtype=float)
            drawn.setdefault(name, []).append(np.abs(np.asarray(column, dtype=float) - true))
    return {name: float(np.nanmedian(np.concatenate(found))) for name, found in drawn.items()}


def _columns(value: Any, table: Any) -> dict[str, Any]:
    if not isinstance(value, table):
        return {"": np.ravel(value)}
    kept = [n for n in value.names if n not in value.keys and not n.endswith(("_low", "_high"))]
    return {name: np.ravel(value[name]) for name in kept}


def unsorted(text: str) -> str:
    """Return a statement without what chooses among its rows after the noise."""
    import sqlglot

    tree = sqlglot.parse_one(text, read="duckdb")
    for clause in ("having", "order", "limit"):
        tree.set(clause, None)
    return str(tree.sql(dialect="duckdb"))


def questions() -> dict[str, tuple[Any, str, Any]]:
    """Return all questions: whom they protect, their statement, their public groups."""
    from tests.sql.tpch_queries import QUERIES

    found: dict[str, tuple[Any, str, Any]] = {}
    for name, (owners, text) in tpch.PUBLISHED.items():
        found[f"{name} published"] = (owners, text, None)
    for name, text in tpch.QUESTIONS.items():
        found[f"{name} filtered"] = (tpch.OWNERS, text, None)
    for number, asked in QUERIES.items():
        if number != 2:  # Per customer it reads public tables only.
            found[f"Q{number} printed"] = (asked.owners, unsorted(asked.text), asked.groups)
    return found


def compare(
    paths: Any, others: Any, name: str, owners: Any, text: str, groups: Any, scale: float, runs: int
) -> list[dict[str, Any]]:
    """Return a row for each column of a question: measured, and predicted in three ways."""
    import tulle
    from tulle.core.table import Table

    database, like = tpch.connect(paths, owners), tpch.connect(others, owners)
    question = tulle.sql(text, groups=groups or None)
    terms = {"unit": "participant", "epsilon": EPSILON}
    began = time.perf_counter()
    bare = predicted(tulle.plan(database, question, **terms))
    middle = time.perf_counter()
    said = predicted(tulle.plan(database, question, **terms, **assumed(database.schema, scale)))
    seconds = (middle - began, time.perf_counter() - middle)
    similar = predicted(tulle.plan(database, question, **terms, like=like))
    found = measured(database, question, runs)
    exact = _columns(question.truth(database), Table)
    answers = {
        name: float(np.nanmedian(np.abs(np.asarray(column, dtype=float))))
        for name, column in exact.items()
    }
    database.close()
    like.close()
    return [
        {
            "question": name,
            "column": column,
            "answer": answers[column],
            "measured": error,
            "by the specification": said[column],
            "ratio": said[column] / error if error else np.inf,
            "by like=": similar[column],
            "like ratio": similar[column] / error if error else np.inf,
            "nothing said": bare[column],
            "bare ratio": bare[column] / error if error else np.inf,
            "s": round(seconds[1], 2),
            "s, nothing said": round(seconds[0], 2),
        }
        for column, error in found.items()
    ]


CHOSEN: tuple[str, ...] = ()
"""Beginnings of names of questions; all if there are none."""

MINUTE: dict[str, Any] = {"CHOSEN": ("Q6",)}
"""What is smaller in the minute's version."""


def main() -> None:
    """Compare the questions named on the command line, or all."""
    scale = float(os.environ.get("TULLE_TPCH_SCALE", "0.01"))
    runs = int(os.environ.get("TULLE_RUNS", "21"))
    folder = Path(tempfile.gettempdir())
    paths = tpch.generate(folder / f"tpch-{scale:g}", scale)
    others = tpch.generate(folder / f"tpch-{scale / 2:g}", scale / 2)
    chosen = sys.argv[1:] or CHOSEN
    rows: list[dict[str, Any]] = []
    for name, (owners, text, groups) in questions().items():
        if chosen and not any(name.startswith(one) for one in chosen):
            continue
        rows += compare(paths, others, name, owners, text, groups, scale, runs)
        last = rows[-1]
        print(
            name,
            last["column"],
            f"{last['ratio']:.3g}",
            f"{last['like ratio']:.3g}",
            f"{last['bare ratio']:.3g}",
            last["s"],
            file=sys.stderr,
            flush=True,
        )
    print_table(f"TPC-H at scale {scale:g}, epsilon = {EPSILON}, {runs} draws of a table", rows)
    for title, key in (
        ("the specification", "ratio"),
        ("like=", "like ratio"),
        ("nothing said", "bare ratio"),
    ):
        for which, kept in (
            ("all", rows),
            # What is below zero is shown as zero, so no answer that noise hides is off by more
            # than itself; the plan does not count on that.
            ("answers above the noise", [r for r in rows if r["answer"] >= r["measured"] * 1.5]),
        ):
            ratios = np.array([row[key] for row in kept])
            near = int(((ratios >= 0.5) & (ratios <= 2)).sum())
            print(f"Within a factor of two by {title}, {which}: {near} of {len(kept)} columns.")


if __name__ == "__main__":
    main()
