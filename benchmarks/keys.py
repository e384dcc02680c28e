"""Keys of GROUP BY that nobody listed, beside a public list of all keys; and how long it takes.

Run with ``python -m benchmarks keys``. Check-ins at places by people (Gowalla, New York), counted
by place: how many of the places that so many people visited are found, and the error of their
counts, next to a release over all places as if they were a public list. Then a made-up table of a
million purchases of a hundred thousand items, next to the plain statement in DuckDB.
"""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import tulle
from benchmarks.common import print_table

DELTA = 1e-6
EPSILONS = (1.0, 4.0)
KEYS = (1, 4, 16)
ROWS, ITEMS, PEOPLE = 10**6, 10**5, 2 * 10**5


def checkins() -> duckdb.DuckDBPyConnection | None:
    """Return the check-ins as a table of person and place, or None without the data."""
    folder = Path(os.environ.get("TULLE_DATA", ""))
    path = folder / "gowalla-nyc-checkins" / "gowalla_nyc_checkins.csv.gz"
    if not path.is_file():
        return None
    connection = duckdb.connect()
    connection.execute(
        'CREATE TABLE checkin AS SELECT "user" AS person, venue AS place '
        f"FROM read_csv('{path}', header = true, auto_detect = true)"
    )
    return connection


def shares() -> list[dict[str, Any]]:
    """Return what is found, and how wrong its counts are."""
    connection = checkins()
    if connection is None:
        return []
    people = dict(
        connection.execute(
            "SELECT place, COUNT(DISTINCT person) FROM checkin GROUP BY place"
        ).fetchall()
    )
    counts = dict(
        connection.execute("SELECT place, COUNT(*) FROM checkin GROUP BY place").fetchall()
    )
    database = tulle.Database.connect(connection, owners={"checkin": "person"})
    text = "SELECT place, COUNT(*) AS n FROM checkin GROUP BY place"
    popular = [place for place, many in people.items() if many >= 50]
    found = []
    for epsilon in EPSILONS:
        listed = tulle.release(
            database,
            tulle.sql(text, groups={"place": sorted(popular)}),
            unit="participant",
            epsilon=epsilon,
        )
        truth = np.array([counts[place] for place in sorted(popular)])
        by_list = float(np.median(np.abs(np.asarray(listed.value) - truth) / truth))
        for keys in KEYS:
            answer = tulle.release(
                database,
                tulle.sql(text, keys_per_person=keys),
                unit="participant",
                epsilon=epsilon,
                delta=DELTA,
            )
            places = answer.value["place"]
            errors = [
                abs(n - counts[place]) / counts[place]
                for place, n in zip(places, answer.value["n"], strict=True)
                if people[place] >= 50
            ]
            found.append(
                {
                    "epsilon": epsilon,
                    "keys per person": keys,
                    "rule": answer.parameters["rule"],
                    "seen from": answer.parameters["seen_from"],
                    "places shown": len(places),
                    "of 50 people or more": f"{len(errors) / len(popular):.0%}",
                    "median relative error": float(np.median(errors)) if errors else float("nan"),
                    "with that public list": by_list,
                }
            )
    return found


def speed() -> list[dict[str, Any]]:
    """Return how long a release takes beside the plain statement."""
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.execute(
        f"CREATE TABLE purchase AS SELECT CAST(hash(i) % {PEOPLE} AS INTEGER) AS person, "
        f"'item ' || CAST(hash(i + 7) % {ITEMS} AS VARCHAR) AS item FROM range({ROWS}) t(i)"
    )
    database = tulle.Database.connect(connection, owners={"purchase": "person"})
    text = "SELECT item, COUNT(*) AS n FROM purchase GROUP BY item"
    start = time.perf_counter()
    connection.sql(text).to_arrow_table()
    plain = time.perf_counter() - start
    found = []
    for title, epsilon in (("few items found", 1.0), ("all items found", 400.0)):
        start = time.perf_counter()
        answer = tulle.release(
            database, tulle.sql(text), unit="participant", epsilon=epsilon, delta=DELTA
        )
        found.append(
            {
                "case": title,
                "items shown": len(answer.value),
                "seconds": time.perf_counter() - start,
                "plain DuckDB": plain,
                "memory so far": f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB",
            }
        )
    return found


MINUTE: dict[str, Any] = {
    "EPSILONS": (4.0,),
    "KEYS": (4,),
    "ROWS": 5_000,
    "ITEMS": 50,
    "PEOPLE": 500,
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print the tables."""
    print_table(f"Places found, delta {DELTA:g}", shares())
    print_table(f"{ROWS:,} rows, {ITEMS:,} keys", speed())


if __name__ == "__main__":
    main()
