"""Releases over rows of one person each, next to plain DuckDB, warm, in one run; and memory.

Run with ``python -m benchmarks.sql_speed [rows]``: a table is made up, of visits of persons on 90
days, with a price. ``python -m benchmarks.sql_speed tpch`` asks TPC-H instead, where the rows of
customers' orders are theirs; TULLE_TPCH_SCALE sets the scale. *plain* is the same statement in
DuckDB; *by owner* is that statement grouped by owner as well, which any clipping per person needs.
The bar is four times *by owner* and 0.2 s. Each time is the least of five, after one that is not
counted, and the two are taken in turn: on a machine with other work both wait alike.

The same ratio in processor time says more where others use the machine.

Memory is the most that a fresh process had (``VmHWM``; ``ru_maxrss`` begins with the size of the
process that started it) which connects to the data in a file, asks one question and ends. DuckDB
works in the same process: it is kept to LIMIT, and spills to disk what needs more (at scale 10 more
than the usual ten times as much). The same process that imports all and runs the statement by owner
in DuckDB alone, under the same limit and counting its rows instead of fetching them, is printed
beside it; what is above that, is ours.

``python -m benchmarks.sql_speed spark [rows]`` asks the same of Spark on two cores (``local[2]``),
of a Parquet file with ten visits a person, once each, and prints the memory of this process and of
Spark's, and the processor time of Spark's. ``python -m benchmarks.sql_speed postgresql [rows]``
asks a PostgreSQL server that is started for it, in turn with the statement by owner, and prints the
bar; its processor time is counted with this process's.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

import tulle
from benchmarks import tpch
from benchmarks.common import print_table

ROWS = 2_000_000
PERSONS = 200_000
DAYS = 90
RUNS = 5
SPARK_MEMORY = "3g"
LIMIT, DISK = "200MB", "40GB"
"""Of DuckDB's memory and disk, where memory is measured."""

QUESTIONS = {
    "COUNT(*)": ("SELECT COUNT(*) FROM visit", None),
    "SUM(price)": ("SELECT SUM(price) FROM visit", None),
    "SUM(price) by 90 days": ("SELECT day, SUM(price) FROM visit GROUP BY day", "day"),
    "COUNT(*) by 90 days": ("SELECT day, COUNT(*) FROM visit GROUP BY day", "day"),
}


LINES = "FROM orders, lineitem WHERE l_orderkey = o_orderkey"
REVENUE = "SUM(l_extendedprice * (1 - l_discount) / 1000)"
TPCH = {
    "lines": (f"SELECT COUNT(*) {LINES}", None),
    "revenue": (f"SELECT {REVENUE} {LINES}", None),
    "revenue by 100 days": (
        f"SELECT o_orderdate, {REVENUE} {LINES} GROUP BY o_orderdate",
        "o_orderdate",
    ),
    "orders by 100 days": (
        "SELECT o_orderdate, COUNT(*) FROM orders GROUP BY o_orderdate",
        "o_orderdate",
    ),
}
PUBLIC = {
    "day": range(DAYS),
    "o_orderdate": [date(1995, 1, 1) + timedelta(days=place) for place in range(100)],
}


def in_turn(
    *acts: Callable[[], Any], clock: Callable[[], float] = time.process_time
) -> list[tuple[float, float]]:
    """Return the least time of each act, in seconds, and the least processor time."""
    for act in acts:
        act()
    found: list[list[tuple[float, float]]] = [[] for _ in acts]
    for _ in range(RUNS):
        for times, act in zip(found, acts, strict=True):
            start, used = time.perf_counter(), clock()
            act()
            times.append((time.perf_counter() - start, clock() - used))
    return [(min(t for t, _ in times), min(t for _, t in times)) for times in found]


def made_up(path: Path, rows: int) -> None:
    """Write the visits to a file of DuckDB."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"CREATE TABLE visit AS SELECT CAST(hash(i) % {PERSONS} AS INTEGER) AS person, "
            f"CAST(hash(i + 7) % {DAYS} AS INTEGER) AS day, "
            f"CAST(hash(i + 13) % 10000 AS DOUBLE) / 100 AS price FROM range({rows}) t(i)"
        )


def of_tpch(path: Path) -> None:
    """Write the tables of TPC-H to a file of DuckDB."""
    scale = float(os.environ.get("TULLE_TPCH_SCALE", "1"))
    paths = tpch.generate(Path(tempfile.gettempdir()) / f"tpch-{scale:g}", scale)
    with duckdb.connect(str(path)) as connection:
        for table, file in paths.items():
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM '{file}'")


def open_database(path: str, memory: str | None = None) -> Any:
    """Return the sealed database, by what is in the file."""
    with duckdb.connect(path, read_only=True) as connection:
        names = [name for (name,) in connection.execute("SHOW TABLES").fetchall()]
    if names == ["visit"]:
        owners: Any = {"visit": "person"}
        ranges: Any = {"visit.price": (0, 100)}
    else:
        owners, ranges = tpch.CUSTOMERS, tpch.RANGES
    others = [name for name in names if name not in owners]
    found = {key: value for key, value in ranges.items() if key.split(".")[0] in names}
    return tulle.Database.connect(
        f"duckdb:///{path}", owners=owners, public=others, ranges=found, memory=memory
    )


def by_owner(text: str, column: str | None) -> str:
    """Return a statement grouped by owner as well."""
    owner = "person" if "visit" in text else "o_custkey"
    chosen, _, _ = text.partition(" GROUP BY ")
    if column:
        start = PUBLIC[column]
        inside = f"{column} BETWEEN {_literal(start[0])} AND {_literal(start[-1])}"
        chosen += (" AND " if " WHERE " in chosen else " WHERE ") + inside
    return f"{chosen} GROUP BY {owner}{f', {column}' if column else ''}"


def _literal(value: Any) -> str:
    return f"DATE '{value}'" if isinstance(value, date) else str(value)


def question_of(text: str, column: str | None) -> Any:
    """Return the question with its public groups."""
    return tulle.sql(text, groups={column: PUBLIC[column]} if column else None)


def memory(path: str, title: str, who: str) -> str:
    """Return the most memory of a fresh process, in megabytes."""
    call = [sys.executable, "-m", "benchmarks.sql_speed", "child", path, title, who]
    found = subprocess.run(call, check=True, capture_output=True, text=True, timeout=3600)
    return found.stdout.split()[-1]


def child(path: str, title: str, who: str) -> None:
    """Ask one question, and print the most memory that this process had."""
    text, column = {**QUESTIONS, **TPCH}[title]
    if who == "plain":
        open_database(path, f"{LIMIT} + {DISK}").close()
        with duckdb.connect(path, read_only=True) as connection:
            connection.execute(f"SET memory_limit = '{LIMIT}'")
            connection.execute("SET threads = 2")
            connection.execute(f"SELECT COUNT(*) FROM ({by_owner(text, column)}) t").fetchall()
    else:
        tulle.release(
            open_database(path, f"{LIMIT} + {DISK}"),
            question_of(text, column),
            unit="participant",
            epsilon=1.0,
        )
    print(most_memory())


def most_memory(process: Path = Path("/proc/self")) -> int:
    """Return the most memory that a process had, in megabytes."""
    status = process / "status"
    if status.exists():
        lines = status.read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


MINUTE: dict[str, Any] = {
    "ROWS": 2_000,
    "PERSONS": 200,
    "RUNS": 1,
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print the table."""
    if sys.argv[1:2] == ["child"]:
        child(*sys.argv[2:5])
        return
    rows = next((int(given) for given in sys.argv[1:] if given.isdigit()), ROWS)
    for name, ask in (("spark", on_spark), ("postgresql", on_postgresql)):
        if name in sys.argv:
            print_table(f"{rows:,} rows on {name}", ask(rows))
            return
    asked = TPCH if "tpch" in sys.argv else QUESTIONS
    table = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.duckdb"
        if asked is TPCH:
            of_tpch(path)
        else:
            made_up(path, rows)
        for title, (text, column) in asked.items():
            table.append(measure(str(path), title, text, column))
            print(".", end="", flush=True, file=sys.stderr)
    print_table("Releases next to plain DuckDB", table)


def on_spark(rows: int) -> list[dict[str, Any]]:
    """Return how long each question takes on Spark, and how much memory."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.memory", SPARK_MEMORY).getOrCreate()
    assert session._jvm is not None
    process = Path(f"/proc/{session._jvm.java.lang.ProcessHandle.current().pid()}")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        session.range(rows).selectExpr(
            f"CAST(pmod(xxhash64(id), {max(rows // 10, 1)}) AS INT) AS person",
            f"CAST(pmod(xxhash64(id + 7), {DAYS}) AS INT) AS day",
            "CAST(pmod(xxhash64(id + 13), 10000) AS DOUBLE) / 100 AS price",
        ).write.parquet(f"{folder}/visit.parquet")
        session.read.parquet(f"{folder}/visit.parquet").createOrReplaceTempView("visit")
        database = tulle.Database.connect(
            session, owners={"visit": "person"}, ranges={"visit.price": (0, 100)}
        )
        for title, (text, column) in QUESTIONS.items():
            row: dict[str, Any] = {"question": title}
            grouped = session.sql(owners_added(text, column))
            asked = partial(tulle.release, database, question_of(text, column))
            acts: dict[str, Callable[[], Any]] = {
                "by owner": grouped.toArrow,
                "release": partial(asked, unit="participant", epsilon=1.0),
            }
            for name, act in acts.items():
                start, used = time.perf_counter(), processor_time(process)
                act()
                row[f"{name} s"] = time.perf_counter() - start
                row[f"{name} CPU s"] = processor_time(process) - used
            found.append(row | {"MB": most_memory(), "Spark MB": most_memory(process)})
        database.close()
    session.stop()
    return found


def owners_added(text: str, column: str | None) -> str:
    """Return the statement by owner, of which only one row is fetched."""
    inner = by_owner(text, column).replace("SELECT day, ", "SELECT ")
    inner = inner.replace(" FROM visit", " AS n FROM visit")
    return f"SELECT COUNT(*), SUM(n) FROM ({inner}) t"


def on_postgresql(rows: int) -> list[dict[str, Any]]:
    """Return how long each question takes on PostgreSQL, beside the bar."""
    import adbc_driver_postgresql.dbapi as driver
    import pgserver

    found = []
    with tempfile.TemporaryDirectory() as folder:
        # The server runs as another user where this runs as root: it has to reach the folder.
        Path(folder).chmod(0o755)
        server = pgserver.get_server(f"{folder}/data")
        with driver.connect(server.get_uri(), autocommit=True) as connection:
            cursor = connection.cursor()
            cursor.execute(
                "CREATE TABLE visit AS SELECT CAST(i * 7919 % 1000003 % "
                f"{max(rows // 10, 1)} AS INTEGER) AS person, CAST(i * 104729 % 10007 % {DAYS} AS "
                "INTEGER) AS day, CAST(i * 611953 % 10000 AS DOUBLE PRECISION) / 100 AS price "
                f"FROM generate_series(1, CAST({rows} AS BIGINT)) t(i)"
            )
            cursor.execute("ANALYZE visit")
            database = tulle.Database.connect(
                server.get_uri(), owners={"visit": "person"}, ranges={"visit.price": (0, 100)}
            )
            cursor.execute("SELECT pg_backend_pid()")
            pids = [cursor.fetchall()[0][0]]
            pids += [database._engine.read("SELECT pg_backend_pid() AS pid")["pid"][0].as_py()]

            def used() -> float:
                servers = sum(processor_time(Path(f"/proc/{pid}")) for pid in pids)
                return time.process_time() + servers

            for title, (text, column) in QUESTIONS.items():
                grouped, question = owners_added(text, column), question_of(text, column)

                def plain(statement: str = grouped) -> None:
                    cursor.execute(statement)
                    cursor.fetchall()

                owner, ours = in_turn(
                    plain,
                    partial(tulle.release, database, question, unit="participant", epsilon=1.0),
                    clock=used,
                )
                bars = [4 * seconds + 0.2 for seconds in owner]
                found.append(
                    {
                        "question": title,
                        "by owner s": owner[0],
                        "release s": ours[0],
                        "bar s": bars[0],
                        "release / bar": ours[0] / bars[0],
                        "in processor time": ours[1] / bars[1],
                        "MB": most_memory(),
                    }
                )
            cursor.close()
            database.close()
        server.cleanup()
    return found


def processor_time(process: Path) -> float:
    """Return the processor time of another process, in seconds."""
    fields = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(path: str, title: str, text: str, column: str | None) -> dict[str, Any]:
    """Return one row of the table."""
    question = question_of(text, column)
    grouped = by_owner(text, column)
    database = open_database(path)
    with duckdb.connect(path, read_only=True) as connection:
        connection.execute("SET threads = 2")
        plain, owner, ours = in_turn(
            lambda: connection.sql(text).to_arrow_table(),
            lambda: connection.sql(grouped).to_arrow_table(),
            lambda: tulle.release(database, question, unit="participant", epsilon=1.0),
        )
    database.close()
    bars = [4 * seconds + 0.2 for seconds in owner]
    return {
        "question": title,
        "plain s": f"{plain[0]:.4f}",
        "by owner s": f"{owner[0]:.3f}",
        "release s": f"{ours[0]:.3f}",
        "bar s": f"{bars[0]:.3f}",
        "release / bar": f"{ours[0] / bars[0]:.2f}",
        "in processor time": f"{ours[1] / bars[1]:.2f}",
        "MB": memory(path, title, "release"),
        "plain MB": memory(path, title, "plain"),
    }


if __name__ == "__main__":
    main()
