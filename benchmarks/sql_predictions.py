"""Errors of SQL answers, predicted before anything is spent, beside those that are measured.

The data is TPC-H; the questions are those of ``benchmarks.tpch``, with and without conditions, and
all of the benchmark's own queries that are supported (``tests/sql/tpch_queries.py``), whole tables
with groups included. The prediction sees no row. What it assumes is the benchmark's public
specification: how many customers, suppliers and parts there are at this scale, how many orders and
lines a customer has on average, and which values the columns hold. It is printed a second time with
nothing said at all, and a third time with ``like=``, another database of the benchmark, of half the
scale.

Predicted is the median error that the plan shows, measured is the median, over draws and groups, of
the distance from the true answer; of several columns each counts. A median of n draws of Laplace
noise is itself off by 1.4 / sqrt(n) of it: with 11 draws a perfect prediction misses a factor of
two one time in eight, with 101 never. Answers that noise takes below zero are shown as zero. Where
that befalls about half of them, as in groups that nobody is in, half of the errors are one number,
the answer itself, and the median of draws is that or something far above by the toss of a coin. So
the measured median is printed with the ends between which the true one lies with 95 % chance.
Where half of the answers are shown as zero, up to what 95 % of draws stray, or the lower end is 0,
and the upper end is more than twice the lower one, no median is known: the upper quartile that was
predicted is held against the measured one, by the same factor of two. Both counts are printed: by
medians alone, and with quartiles there.

Run it with ``python -m benchmarks.sql_predictions [Q3 Q5 ...]``; TULLE_TPCH_SCALE sets the scale,
0.01 if it is not set, and TULLE_RUNS the number of draws, 101 if it is not set.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks import tpch
from benchmarks.common import print_table

EPSILON = 0.8

NATIONS = {
    **{"ALGERIA": 0, "ARGENTINA": 1, "BRAZIL": 1, "CANADA": 1, "EGYPT": 4, "ETHIOPIA": 0},
    **{"FRANCE": 3, "GERMANY": 3, "INDIA": 2, "INDONESIA": 2, "IRAN": 4, "IRAQ": 4, "JAPAN": 2},
    **{"JORDAN": 4, "KENYA": 0, "MOROCCO": 0, "MOZAMBIQUE": 0, "PERU": 1, "CHINA": 2},
    **{"ROMANIA": 3, "SAUDI ARABIA": 4, "VIETNAM": 2, "RUSSIA": 3, "UNITED KINGDOM": 3},
    "UNITED STATES": 1,
}
"""The nations, and the number of the region of each."""

REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]

COLOURS = [
    "almond",
    "antique",
    "aquamarine",
    "azure",
    "beige",
    "bisque",
    "black",
    "blanched",
    "blue",
    "blush",
    "brown",
    "burlywood",
    "burnished",
    "chartreuse",
    "chiffon",
    "chocolate",
    "coral",
    "cornflower",
    "cornsilk",
    "cream",
    "cyan",
    "dark",
    "deep",
    "dim",
    "dodger",
    "drab",
    "firebrick",
    "floral",
    "forest",
    "frosted",
    "gainsboro",
    "ghost",
    "goldenrod",
    "green",
    "grey",
    "honeydew",
    "hot",
    "indian",
    "ivory",
    "khaki",
    "lace",
    "lavender",
    "lawn",
    "lemon",
    "light",
    "lime",
    "linen",
    "magenta",
    "maroon",
    "medium",
    "metallic",
    "midnight",
    "mint",
    "misty",
    "moccasin",
    "navajo",
    "navy",
    "olive",
    "orange",
    "orchid",
    "pale",
    "papaya",
    "peach",
    "peru",
    "pink",
    "plum",
    "powder",
    "puff",
    "purple",
    "red",
    "rose",
    "rosy",
    "royal",
    "saddle",
    "salmon",
    "sandy",
    "seashell",
    "sienna",
    "sky",
    "slate",
    "smoke",
    "snow",
    "spring",
    "steel",
    "tan",
    "thistle",
    "tomato",
    "turquoise",
    "violet",
    "wheat",
    "white",
    "yellow",
]
"""Five of these words are the name of a part."""

TYPES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
CONTAINERS = (
    ("SM", "LG", "MED", "JUMBO", "WRAP"),
    ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"),
)
CURRENT = "DATE '1995-06-17'"
"""The day on which orders are filled or open, and goods were or were not returned."""


def specification(scale: float) -> dict[str, Any]:
    """Return what the benchmark's specification says of columns, in public (clause 4.2.3).

    A third of all customers have no orders. What a line costs follows from its part and quantity,
    and whether it was shipped or returned from its days.
    """
    parts, suppliers = (max(round(number * scale), 1) for number in (200_000, 10_000))
    rng = np.random.default_rng(1)
    named = [" ".join(rng.permutation(COLOURS)[:5]) for _ in range(min(parts, 20_000))]
    retail = "(90000 + l_partkey // 10 % 20001 + 100 * (l_partkey % 1000)) / 100"
    return {
        "customer.c_mktsegment": ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"],
        "customer.c_acctbal": (-999.99, 9999.99),
        "customer.c_phone": [f"{code}-555" for code in range(10, 35)],
        "customer.c_nationkey": list(range(25)),
        "customer.c_name": "= printf('Customer#%09d', c_custkey)",
        "customer.c_address": max(round(150_000 * scale), 1),
        "customer.c_comment": max(round(150_000 * scale), 1),
        "orders.o_custkey": max(round(100_000 * scale), 1),
        "orders.o_totalprice": (800, 600_000),
        "orders.o_orderdate": ("1992-01-01", "1998-08-02"),
        "orders.o_orderstatus": f"= CASE WHEN o_orderdate < {CURRENT} - 60 THEN 'F' ELSE 'O' END",
        "orders.o_orderpriority": ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"],
        "orders.o_comment": 50,
        "lineitem.l_shipdate": ("orders.o_orderdate", 1, 121),
        "lineitem.l_commitdate": ("orders.o_orderdate", 30, 90),
        "lineitem.l_receiptdate": ("lineitem.l_shipdate", 1, 30),
        "lineitem.l_returnflag": f"= CASE WHEN l_receiptdate > {CURRENT} THEN 'N' "
        "WHEN hash(l_receiptdate, l_quantity) % 2 = 0 THEN 'R' ELSE 'A' END",
        "lineitem.l_linestatus": f"= CASE WHEN l_shipdate > {CURRENT} THEN 'O' ELSE 'F' END",
        "lineitem.l_partkey": parts,
        "lineitem.l_suppkey": suppliers,
        "lineitem.l_quantity": (1, 50),
        "lineitem.l_extendedprice": f"= l_quantity * {retail}",
        "lineitem.l_discount": (0.0, 0.1),
        "lineitem.l_tax": (0.0, 0.08),
        "lineitem.l_shipmode": ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"],
        "lineitem.l_shipinstruct": [
            *("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"),
        ],
        "partsupp.ps_partkey": parts,
        "partsupp.ps_availqty": (1, 9999),
        "partsupp.ps_supplycost": (1, 1000),
        "part.p_partkey": parts,
        "part.p_type": [" ".join(words) for words in product(*TYPES)],
        "part.p_brand": [f"Brand#{one}{two}" for one in range(1, 6) for two in range(1, 6)],
        "part.p_container": [" ".join(words) for words in product(*CONTAINERS)],
        "part.p_name": named,
        "part.p_size": (1, 50),
        "supplier.s_suppkey": suppliers,
        "supplier.s_name": "= printf('Supplier#%09d', s_suppkey)",
        "supplier.s_nationkey": list(range(25)),
        "supplier.s_comment": "= CASE WHEN s_suppkey % 2000 = 7 THEN 'Customer Complaints' END",
        "nation.n_nationkey": list(range(25)),
        "nation.n_name": list(NATIONS),
        "nation.n_regionkey": list(NATIONS.values()),
        "region.r_regionkey": list(range(5)),
        "region.r_name": REGIONS,
    }


def assumed(schema: Any, scale: float) -> dict[str, Any]:
    """Return what is assumed about a database of the benchmark, by its specification."""
    people = {"customer": 150_000, "supplier": 10_000, "order": 1_500_000}
    per: dict[str, dict[str, Any]] = {
        "customer": {"customer": 1, "orders": 10, "lineitem": 40},
        # Each part has four suppliers, in turn; an order has one to seven lines.
        "supplier": {"supplier": 1, "partsupp": (80, 80), "lineitem": 600},
        "order": {"orders": 1, "lineitem": (4, 7)},
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


def predicted(plan: Any) -> dict[str, tuple[float, float]]:
    """Return the median and the upper quartile of one number's error, for each column."""
    laws = dict(plan.columns) or {"": plan.chosen.prediction.typical}
    return {
        name: (np.inf, np.inf)
        if law is None
        else (law.of_one().half_width(0.5), law.of_one().half_width(0.75))
        for name, law in laws.items()
    }


def measured(database: Any, question: Any, runs: int) -> dict[str, tuple[float, ...]]:
    """Return the median distance of released numbers from the truth, for each column.

    With it come the ends between which that of all draws lies with 95 % chance, by ranks, the upper
    quartile, and which part of the answers is shown as zero.
    """
    from tulle.core.table import LabelledTable
    from tulle.ledger.answer import draw, plan_for

    plan = plan_for(database, question, unit="participant", epsilon=EPSILON)
    drawn: dict[str, list[Any]] = {}
    zeros: dict[str, list[float]] = {}
    exact = _columns(question.truth(database), LabelledTable)
    with rows_kept():
        for _ in range(runs):
            value = draw(plan, database, None, debit=None).value
            for name, column in _columns(value, LabelledTable).items():
                true = np.asarray(exact[name], dtype=float)
                error = np.abs(np.asarray(column, dtype=float) - true)[~np.isnan(true)]
                # NULL in the place of a number is no answer at all.
                drawn.setdefault(name, []).append(np.nan_to_num(error, nan=np.inf))
                zeros.setdefault(name, []).append(float(np.mean(np.asarray(column, float) == 0)))
    found = {}
    for name, errors in drawn.items():
        every = np.sort(np.concatenate(errors))
        # Of one draw all groups may be near each other: draws are counted, not numbers.
        ranks = np.clip(np.array([0.5, 0.5 - strays(runs), 0.5 + strays(runs), 0.75]), 0, 1)
        found[name] = (*np.quantile(every, ranks).tolist(), float(np.mean(zeros[name])))
    return found


def strays(runs: int) -> float:
    """Return how far the part of so many draws that lie below the median is from a half."""
    return float(0.98 / np.sqrt(runs))


@contextmanager
def rows_kept() -> Iterator[None]:
    """Let many draws gather what people add once, and solve no program twice."""
    from tulle.sql.mechanisms import truncation
    from tulle.sql.queries import owned_rows_of

    truncations = truncation.OnDatabase.truncations

    @cache
    def person_totals_of(database: Any, query: Any, power: int = 1) -> Any:
        assert power == 1
        return owned_rows_of(database, query, signed=truncation.is_signed(query))

    @cache
    def remembered(self: Any, query: Any, relation: Any) -> Any:
        return [(sign, tpch.Remembered(t)) for sign, t in truncations(self, query, relation)]

    kept = {
        "person_totals_of": person_totals_of,
        "relations_of": lru_cache(maxsize=None)(truncation.relations_of),
    }
    with (
        patch.multiple(truncation, **kept),
        patch.object(truncation.OnDatabase, "truncations", remembered),
    ):
        yield


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
    from tulle.core.table import LabelledTable

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
    exact = _columns(question.truth(database), LabelledTable)
    answers = {
        name: float(np.nanmedian(np.abs(np.asarray(column, dtype=float))))
        for name, column in exact.items()
    }
    database.close()
    like.close()
    rows = []
    for column, (error, low, high, quartile, zero) in found.items():
        coin = high > 2 * low and (low == 0 or abs(zero - 0.5) <= strays(runs))
        row = {
            **{"question": name, "column": column, "answer": answers[column]},
            **{"measured": error, "from": low, "to": high, "quartile": quartile, "zero": zero},
        }
        for title, plans in ((SPECIFICATION, said), (LIKE, similar), (NOTHING, bare)):
            median, upper = plans[column]
            row[title] = median
            row[f"{title}: ratio"] = ratio(median, error)
            row[f"{title}: judged"] = ratio(upper, quartile) if coin else ratio(median, error)
        rows.append({**row, "s": round(seconds[1], 2), "s, nothing said": round(seconds[0], 2)})
    return rows


SPECIFICATION, LIKE, NOTHING = "by the specification", "by like=", "nothing said"


def ratio(said: float, error: float) -> float:
    """Return how many times as large the predicted error is; where both are 0, it is right."""
    return 1.0 if said == error else said / error if error else np.inf


CHOSEN: tuple[str, ...] = ()
"""Beginnings of names of questions; all if there are none."""

MINUTE: dict[str, Any] = {"CHOSEN": ("Q6",)}
"""What is smaller in the minute's version."""


def main() -> None:
    """Compare the questions named on the command line, or all."""
    scale = float(os.environ.get("TULLE_TPCH_SCALE", "0.01"))
    runs = int(os.environ.get("TULLE_RUNS", "101"))
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
            *(f"{last[f'{title}: judged']:.3g}" for title in (SPECIFICATION, LIKE, NOTHING)),
            last["s"],
            file=sys.stderr,
            flush=True,
        )
    for row in rows:
        print(*(f"{one:.4g}" if isinstance(one, float) else one for one in row.values()), sep=" | ")
    print_table(f"TPC-H at scale {scale:g}, epsilon = {EPSILON}, {runs} draws of a table", rows)
    for title in (SPECIFICATION, LIKE, NOTHING):
        for which, kept in (
            ("all", rows),
            ("answers above the noise", [r for r in rows if r["answer"] >= r["measured"] * 1.5]),
        ):
            near, judged = (
                sum(0.5 <= row[f"{title}: {key}"] <= 2 for row in kept)
                for key in ("ratio", "judged")
            )
            print(
                f"Within a factor of two, {title}, {which}: {near} of {len(kept)} columns by "
                f"medians; {judged} with quartiles where half of the answers are shown as zero."
            )


if __name__ == "__main__":
    main()
