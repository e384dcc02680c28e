"""Keys of GROUP BY that nobody listed, beside a public list of all keys; and how long it takes.

Run with ``python -m benchmarks keys``. Check-ins at places by people (Gowalla, New York), counted
by place: how many of the places that so many people visited are found, and the error of their
counts, next to a release over all places as if they were a public list. Then how many keys are
found with people counted for four keys, by weights, and by adaptive weighting (a baseline, with
less noise than it would need), on check-ins and on graphs, whose nodes have their neighbours for
keys. Then a made-up table of a million purchases of a hundred thousand items in a file of DuckDB,
next to the plain statement, and the most memory of a fresh process that asks, as in ``sql_speed``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from baselines.adaptive_degree import adaptive_sums

import tulle
from benchmarks.common import find_data, print_table
from benchmarks.sql_speed import DISK, LIMIT, most_memory
from tulle.noise.partition_selection import Rule, WeightedGaussian, best_rule

DELTA = 1e-6
EPSILONS = (1.0, 4.0)
KEYS = (1, 4, 16)
RUNS = 3
DATA = ("check-ins", "ca-AstroPh", "wiki-Vote", "email-Enron", "brightkite")
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
        by_list = float(np.median(np.abs(np.asarray(listed.value["n"]) - truth) / truth))
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


def pairs(name: str) -> tuple[Any, Any] | None:
    """Return who has which key, numbered, or None without the data."""
    if name == "check-ins":
        connection = checkins()
        if connection is None:
            return None
        found = connection.sql(
            "SELECT DISTINCT dense_rank() OVER (ORDER BY person) - 1 AS person, "
            "dense_rank() OVER (ORDER BY place) - 1 AS place FROM checkin"
        ).fetchnumpy()
        return found["person"], found["place"]
    path = find_data(name)
    if path is None:
        return None
    edges = np.loadtxt(path, dtype=np.int64, comments="#", usecols=(0, 1))
    return edges.reshape(-1), edges[:, ::-1].reshape(-1)


def kept(person: Any, key: Any, most: int) -> tuple[Any, Any, Any]:
    """Return at most so many keys of everyone, chosen evenly, and how many they keep."""
    order = np.lexsort((np.random.default_rng().random(len(person)), person))
    person, key = person[order], key[order]
    starts = np.flatnonzero(np.concatenate(([True], person[1:] != person[:-1])))
    sizes = np.diff(np.append(starts, len(person)))
    chosen = np.arange(len(person)) - np.repeat(starts, sizes) < most
    return person[chosen], key[chosen], np.minimum(np.repeat(sizes, sizes), most)[chosen]


def found_by(rule: Rule, person: Any, key: Any, degree: int | None = None) -> int:
    """Return how many keys a rule shows, with ``degree`` after adaptive weighting."""
    person, key, keys = kept(person, key, rule.keys)
    numbers, weights = (np.array(column) for column in zip(*rule.levels, strict=True))
    sums = np.bincount(key, weights=weights[np.searchsorted(numbers, keys)])
    if degree is not None:
        assert isinstance(rule, WeightedGaussian)
        enough = (rule.threshold + 2 * float(rule.variance) ** 0.5) / rule.steps
        sums = adaptive_sums(person, key, degree, enough) * rule.steps
    return int(rule.show(np.rint(sums[sums > 0]).astype(np.int64), None)[0].sum())


def weighted() -> list[dict[str, Any]]:
    """Return how many keys are found by each rule, for finding them alone."""
    price = Fraction(1), Fraction(DELTA)
    counts, weights = best_rule(*price, 4), best_rule(*price, 64, numbers=False)
    rows = []
    for name in DATA:
        held = pairs(name)
        if held is not None:
            rules = {"counted": (counts, None), "weighted": (weights, None)}
            for title, (rule, degree) in (rules | {"adaptive": (weights, 64)}).items():
                shown = [found_by(rule, *held, degree) for _ in range(RUNS)]
                rows.append({"data": name, "rule": title, "keys found": float(np.mean(shown))})
    return rows


ITEMS_SHOWN = "SELECT item, COUNT(*) AS n FROM purchase GROUP BY item"


def speed() -> list[dict[str, Any]]:
    """Return how long a release takes beside the plain statement, and how much memory."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/purchases.duckdb"
        with duckdb.connect(path) as connection:
            connection.execute("SET threads = 2")
            connection.execute(
                f"CREATE TABLE purchase AS SELECT CAST(hash(i) % {PEOPLE} AS INTEGER) AS person, "
                f"'item ' || CAST(hash(i + 7) % {ITEMS} AS VARCHAR) AS item FROM range({ROWS}) t(i)"
            )
            start = time.perf_counter()
            connection.sql(ITEMS_SHOWN).to_arrow_table()
            plain = time.perf_counter() - start
        for title, epsilon in (("few items found", "1"), ("all items found", "400")):
            call = [sys.executable, "-m", "benchmarks.keys", "child", path, epsilon]
            told = subprocess.run(call, check=True, capture_output=True, text=True, timeout=3600)
            shown, seconds, busy, most = told.stdout.split()[-4:]
            found.append(
                {
                    "case": title,
                    "items shown": shown,
                    "seconds": seconds,
                    "CPU s": busy,
                    "plain DuckDB": plain,
                    "MB": most,
                }
            )
    return found


def child(path: str, epsilon: str) -> None:
    """Ask once; print the keys shown, seconds, processor time and the most memory there was."""
    database = tulle.Database.connect(
        f"duckdb:///{path}", owners={"purchase": "person"}, memory=f"{LIMIT} + {DISK}"
    )
    start, busy = time.perf_counter(), time.process_time()
    answer = tulle.release(
        database, tulle.sql(ITEMS_SHOWN), unit="participant", epsilon=float(epsilon), delta=DELTA
    )
    took = f"{time.perf_counter() - start:.2f} {time.process_time() - busy:.2f}"
    print(len(answer.value), took, most_memory())


MINUTE: dict[str, Any] = {
    "EPSILONS": (4.0,),
    "KEYS": (4,),
    "RUNS": 1,
    "DATA": ("wiki-Vote",),
    "ROWS": 5_000,
    "ITEMS": 50,
    "PEOPLE": 500,
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print the tables."""
    if sys.argv[1:2] == ["child"]:
        child(*sys.argv[2:4])
        return
    print_table(f"Places found, delta {DELTA:g}", shares())
    print_table(f"Keys found, epsilon 1, delta {DELTA:g}, mean of {RUNS} runs", weighted())
    print_table(f"{ROWS:,} rows, {ITEMS:,} keys", speed())


if __name__ == "__main__":
    main()
