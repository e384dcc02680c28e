"""TPC-H with customers and suppliers as participants: from SQL to relation, on DuckDB.

The questions are the count or sum versions of the benchmark's queries. What is not monotone is
left out (Q21's NOT EXISTS, Q18's HAVING, the sums inside Q11 and Q20); Q10 counts the customers,
a projection.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import print_table

TABLES = ("customer", "orders", "lineitem", "supplier", "partsupp", "part", "nation", "region")

OWNERS: dict[str, str | list[str]] = {
    "customer": "customer: c_custkey",
    "orders": "customer: o_custkey",
    "lineitem": ["l_orderkey -> orders[o_orderkey]", "supplier: l_suppkey"],
    "supplier": "supplier: s_suppkey",
    "partsupp": "supplier: ps_suppkey",
}

PUBLIC = ("part", "nation", "region")

QUESTIONS = {
    "Q3": """
        SELECT COUNT(*) FROM customer, orders, lineitem
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
          AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'""",
    "Q5": """
        SELECT COUNT(*) FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
          AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey
          AND n_regionkey = r_regionkey AND r_name = 'ASIA'
          AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'""",
    "Q7": """
        SELECT SUM(l_extendedprice * (1 - l_discount))
        FROM supplier, lineitem, orders, customer, nation n1, nation n2
        WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
          AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey
          AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY')
            OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
          AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'""",
    "Q8": """
        SELECT COUNT(*)
        FROM part, supplier, lineitem, orders, customer, nation, region
        WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey
          AND o_custkey = c_custkey AND c_nationkey = n_nationkey
          AND n_regionkey = r_regionkey AND r_name = 'AMERICA'
          AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
          AND p_type = 'ECONOMY ANODIZED STEEL'""",
    "Q10": """
        SELECT COUNT(DISTINCT c_custkey) FROM customer, orders, lineitem
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_returnflag = 'R'
          AND o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01'""",
    "Q11": """
        SELECT SUM(ps_supplycost * ps_availqty) FROM partsupp, supplier, nation
        WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'""",
    "Q12": """
        SELECT COUNT(*) FROM orders, lineitem
        WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP')
          AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
          AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'""",
    "Q18": """
        SELECT SUM(l_quantity) FROM customer, orders, lineitem
        WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey""",
    "Q20": """
        SELECT COUNT(*) FROM supplier, nation
        WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp
                            WHERE ps_partkey IN (SELECT p_partkey FROM part
                                                 WHERE p_name LIKE 'forest%'))
          AND s_nationkey = n_nationkey AND n_name = 'CANADA'""",
    "Q21": """
        SELECT COUNT(*) FROM supplier, lineitem l1, orders, nation
        WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
          AND l1.l_receiptdate > l1.l_commitdate
          AND EXISTS (SELECT 1 FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey
                      AND l2.l_suppkey <> l1.l_suppkey)
          AND s_nationkey = n_nationkey AND n_name = 'SAUDI ARABIA'""",
}


def generate(folder: Path, scale: float) -> dict[str, Path]:
    """Make the tables as Parquet files, if they are not there; return their paths.

    Raises:
        FileNotFoundError: when ``tpchgen-cli`` is not installed.
    """
    paths = {table: folder / f"{table}.parquet" for table in TABLES}
    if not all(path.is_file() for path in paths.values()):
        beside = Path(sys.executable).with_name("tpchgen-cli")
        program = str(beside) if beside.is_file() else shutil.which("tpchgen-cli")
        if program is None:
            raise FileNotFoundError("tpchgen-cli is not installed: pip install tpchgen-cli")
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [program, "parquet", "-s", str(scale), f"--output-dir={folder}"],
            check=True,
            capture_output=True,
            timeout=600,
        )
    return paths


def connect(paths: dict[str, Path]) -> Any:
    """Return a sealed database over the files."""
    import tulle

    return tulle.Database.connect("duckdb://", tables=paths, owners=OWNERS, public=PUBLIC)


def measure(database: Any, name: str) -> dict[str, Any]:
    """Time one question from its text to its relation, and say how large the relation is."""
    from tulle.sql.queries import gather_tuples, sql

    start = time.perf_counter()
    question = sql(QUESTIONS[name])
    gathered = gather_tuples(database, question)
    seconds = time.perf_counter() - start
    relation = gathered.relations[0]
    start = time.perf_counter()
    truth = question.truth(database)
    plain = time.perf_counter() - start
    return {
        "query": name,
        "answer": f"{truth:,.0f}",
        "SQL to relation, s": seconds,
        "the answer alone, s": plain,
        "tuples": f"{len(relation.weights) + len(relation.general):,}",
        "of them in several ways": f"{len(relation.general):,}",
        "participants": f"{relation.count:,}",
        "agrees": abs(relation.total - truth) <= 1e-9 * max(abs(truth), 1.0),
    }


def main() -> None:
    """Measure every question at the scale named by TULLE_TPCH_SCALE, 1 if it is not set."""
    scale = float(os.environ.get("TULLE_TPCH_SCALE", "1"))
    kept = os.environ.get("TULLE_DATA")
    folder = Path(kept) if kept else Path(tempfile.gettempdir())
    paths = generate(folder / f"tpch-{scale:g}", scale)
    database = connect(paths)
    rows = [measure(database, name) for name in QUESTIONS]
    print_table(f"TPC-H at scale {scale:g}, customers and suppliers protected, DuckDB", rows)


if __name__ == "__main__":
    main()
