"""The minute's version of a benchmark: small, on made-up records, without a word to the guide.

It shows that a benchmark still runs, not what it measures. Each module says in ``MINUTE`` what of
it is smaller.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tulle.graphs.generators import social_network

GRAPHS = (
    *("ca-GrQc", "facebook_combined", "polbooks", "netscience", "email-Eu-core"),
    *("ca-HepPh", "ca-AstroPh", "enron-core-igraph"),
)
NODES, PEOPLE = 100, 300


def run(name: str, folder: Path) -> None:
    """Run one benchmark in its minute's version; whatever it writes stays in the folder.

    Raises:
        AttributeError: when ``MINUTE`` names something that the module does not have.
    """
    module = importlib.import_module(f"benchmarks.{name}")
    smaller: dict[str, Any] = dict(module.MINUTE)
    if hasattr(module, "RESULTS"):
        smaller["RESULTS"] = folder / f"{name}.json"
    with ExitStack() as stack:
        for size, value in smaller.items():
            stack.enter_context(mock.patch.object(module, size, value))
        stack.enter_context(made_up(folder))
        stack.enter_context(mock.patch("sys.argv", [name]))
        module.main()


@contextmanager
def made_up(folder: Path) -> Iterator[None]:
    """Let benchmarks find made-up records instead of those below ``TULLE_DATA``."""
    data = folder / "data"
    if not data.exists():
        write(data)
    settings = {"TULLE_DATA": str(data), "TULLE_TPCH_SCALE": "0.01", "TULLE_RUNS": "1"}
    chosen = (
        "TULLE_FIGURES",
        "SYNTHETIC_",
        "RATIOS_",
        "PLANTED_",
        "CHANCE_",
        "STATISTICS_",
        "DISSERTATION_",
    )
    kept = {name: text for name, text in os.environ.items() if not name.startswith(chosen)}
    with mock.patch.dict(os.environ, kept | settings, clear=True):
        yield


def write(data: Path) -> None:
    """Write small records in the form of the real ones."""
    random = np.random.default_rng(1)
    for name in GRAPHS:
        (data / name).mkdir(parents=True)
        edges = social_network(NODES, mean_degree=8, seed=1).edges()
        # A node without an edge would not be read.
        ring = np.column_stack([np.arange(NODES), np.arange(1, NODES + 1) % NODES])
        pairs = np.unique(np.sort(np.concatenate([edges, ring]), axis=1), axis=0)
        np.savetxt(data / name / f"{name}.edges.txt", pairs, fmt="%d")
    departments = ((node, node % 4) for node in range(NODES))
    table(data / "email-Eu-core" / "email-Eu-core.labels.csv", ("node", "label"), departments)
    egos = ((node, node // 10) for node in range(NODES))
    table(data / "facebook_combined" / "facebook.ego_membership.csv", ("node", "ego"), egos)

    users = np.repeat(np.arange(PEOPLE), 4)
    places = np.column_stack([random.uniform(40.5, 41, 8), random.uniform(-74.25, -73.65, 8)])
    # Some are visited far more often: bounds must differ for blocks to mean anything.
    venues = np.minimum(random.geometric(0.4, len(users)), len(places)) - 1
    table(
        data / "gowalla-nyc-checkins" / "gowalla_nyc_checkins.csv.gz",
        ("user", "venue", "lat", "lon", "time"),
        (
            (user, venue, *places[venue], f"2010-01-0{1 + venue % 7}T{user % 24:02}:00:00")
            for user, venue in zip(users, venues, strict=True)
        ),
    )
    trips = zip(users, venues, np.roll(venues, 1), strict=True)
    bicycles = data / "valleybike-trips"
    table(bicycles / "valleybike_trips.csv", ("user", "start_station", "end_station"), trips)
    stations = ((place,) for place in range(len(places)))
    table(bicycles / "valleybike_stations.csv", ("serial_num",), stations)

    votes = random.integers(0, 2, (435, 17))
    cells = [
        ["republican" if row[0] else "democrat", *np.where(row[1:], "y", "n")] for row in votes
    ]
    named = ("party", *(f"vote {place}" for place in range(16)))
    table(data / "house-votes-84" / "house-votes-84.csv", named, cells)
    write_adult(data / "adult" / "adult.csv.gz", random)


def write_adult(path: Path, random: np.random.Generator) -> None:
    """Write people with the columns of Adult."""
    from benchmarks.regression import BOUNDS, CODED

    columns = {
        name: random.integers(int(low), int(high) + 1, PEOPLE)
        for name, (low, high) in BOUNDS.items()
    }
    columns |= {name: random.choice(listed, PEOPLE) for name, listed in CODED.items()}
    columns |= {
        "marital_status": random.choice(["Married-civ-spouse", "Divorced"], PEOPLE),
        "sex": random.choice(["Male", "Female"], PEOPLE),
        "native_country": random.choice(["United-States", "Mexico"], PEOPLE),
        "income": random.choice([">50K", "<=50K"], PEOPLE),
    }
    table(path, tuple(columns), zip(*columns.values(), strict=True))


def table(path: Path, names: tuple[str, ...], rows: Iterable[Any]) -> None:
    """Write a table with its column names, compressed where the name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)


def run_all(names: Iterable[str], folder: Path) -> None:
    """Run benchmarks in their minute's version; one that needs a library we lack is left out."""
    for name in names:
        try:
            run(name, folder)
        except ModuleNotFoundError as missing:
            if (missing.name or "").split(".")[0] in ("tulle", "benchmarks", "baselines"):
                raise
            print(f"{name}: left out, since {missing.name} is not installed", file=sys.stderr)
