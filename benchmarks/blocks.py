"""Block noise on movements: check-ins between squares of a map, bicycle trips between stations.

Run it with ``python -m benchmarks.blocks``; the records are read from ``TULLE_DATA``. One person in
five is taken as the public reference and left out of the data, so that bounds, blocks and scales
rest on nothing private. Errors are against the true totals of the others, clipping included; the
predicted ones are those of the noise alone. "all zeros" is the error of releasing nothing: where it
is below that of low rank, epsilon is too small for the grid.

Reference: Brunet et al., *Novel differentially private mechanisms for graphs*, 2016, section V.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

import tulle
from benchmarks.common import print_table
from tulle.core.release import Release
from tulle.matrices.low_rank import then_low_rank, then_positive

Array = Any
SIDES = (20, 6)
"""The map of New York is cut into so many squares along each side."""
REPEATS = 3
_STATIONS = "valleybike_stations.csv"
SHARE = 5
"""One person in so many is in the reference."""


def find(name: str) -> Path | None:
    folder = os.environ.get("TULLE_DATA")
    path = Path(folder or "", name)
    return path if folder and path.exists() else None


def checkins(side: int) -> tuple[Array, Array, Array, int] | None:
    """Return user, square before and square after, for consecutive check-ins of a user."""
    path = find("gowalla-nyc-checkins/gowalla_nyc_checkins.csv.gz")
    if path is None:
        return None
    # Sorted by user and time, as it is distributed.
    table = csv.read_csv(path)
    user = np.asarray(table["user"])
    # A public map, not the extent of the records.
    north = np.floor((np.asarray(table["lat"]) - 40.5) / 0.5 * side).clip(0, side - 1)
    east = np.floor((np.asarray(table["lon"]) + 74.25) / 0.6 * side).clip(0, side - 1)
    square = (north * side + east).astype(np.int64)
    same = user[1:] == user[:-1]
    return user[1:][same], square[:-1][same], square[1:][same], side * side


def trips() -> tuple[Array, Array, Array, int] | None:
    """Return user, start and end of bicycle trips, and the number of stations."""
    path = find("valleybike-trips/valleybike_trips.csv")
    if path is None:
        return None
    table = csv.read_csv(path)
    stations = np.sort(np.asarray(csv.read_csv(path.with_name(_STATIONS))["serial_num"]))
    columns = (table[name].cast(pa.int64()) for name in ("user", "start_station", "end_station"))
    user, start, end = (np.asarray(column) for column in columns)
    known = np.isin(start, stations) & np.isin(end, stations)
    start, end = (np.searchsorted(stations, side[known]) for side in (start, end))
    return user[known], start, end, len(stations)


def split(records: tuple[Array, Array, Array, int]) -> tuple[Any, Any]:
    """Return data and reference, of different people."""
    user, start, end, places = records
    people = np.random.default_rng(1).permutation(int(user.max()) + 1)
    public = people[user] % SHARE == 0
    made = (
        tulle.Contributions(user[c], start[c], end[c], rows=places, columns=places)
        for c in (~public, public)
    )
    return tuple(made)  # type: ignore[return-value]


def distance_unit(records: tuple[Array, Array, Array, int], pairs: int = 10) -> float:
    """Return d_l of the paper: how far apart random halves of the people are, in L1."""
    user, start, end, places = records
    generator = np.random.default_rng(2)
    found = []
    for _ in range(pairs):
        side = generator.permutation(int(user.max()) + 1)[user] % 2
        cell = start * places + end
        halves = [np.bincount(cell[side == s], minlength=places**2) for s in (0, 1)]
        found.append(np.abs(halves[0] - halves[1]).sum())
    return float(np.mean(found))


def error(releases: list[Release], truth: Array) -> float:
    return float(np.mean([np.abs(r.value - truth).mean() for r in releases]))


def compare(name: str, records: tuple[Array, Array, Array, int] | None) -> list[dict[str, Any]]:
    """Return errors of plain and block noise, as they are and after post-processing."""
    if records is None:
        return []
    data, public = split(records)
    truth, unit = data.totals(), distance_unit(records)
    rows = []
    queries = {k: tulle.weights(reference=public, blocks=k) for k in (1, 2, 3, 5, "auto")}
    for epsilon in (0.1, 0.5, 1.0, 5.0):
        plain: float | None = None
        for mechanism, delta in (("block_laplace", 0.0), ("block_gaussian", 1e-6)):
            for blocks, query in queries.items():
                terms: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
                drawn = [
                    tulle.release(data, query, unit="participant", mechanism=mechanism, **terms)
                    for _ in range(REPEATS)
                ]
                found = error(drawn, truth)
                plain = found if plain is None else plain
                low = [then_low_rank(r, "auto") for r in drawn]
                law = drawn[0].error
                rows.append(
                    {
                        "data": name,
                        "epsilon": epsilon,
                        "noise": mechanism.removeprefix("block_"),
                        "K": f"{blocks} ({drawn[0].parameters['blocks']})",
                        "predicted": law.mean_error(),  # type: ignore[union-attr]
                        "mean error": found,
                        "of plain": found / plain,
                        "d(A, A~)": found * truth.size / unit,
                        "low rank, of that": error(low, truth) / found,
                        "rank": low[0].parameters["post_processing"][-1].split()[-1],
                        "and positive": error([then_positive(r) for r in low], truth) / found,
                        "all zeros": float(np.abs(truth).mean()) / found,
                    }
                )
    return rows


def ranks(name: str, records: tuple[Array, Array, Array, int] | None) -> list[dict[str, Any]]:
    """Return the error after keeping k singular values, and without noise."""
    if records is None:
        return []
    data, public = split(records)
    truth = data.totals()
    query = tulle.weights(reference=public, blocks=3)
    u, singular, v = np.linalg.svd(truth)
    rows = []
    for epsilon in (0.1, 1.0):
        r = tulle.release(
            data, query, unit="participant", epsilon=epsilon, mechanism="block_laplace"
        )
        for k in (k for k in (0, 1, 2, 5, 10, 20, 50) if k <= len(truth)):
            kept = (u[:, :k] * singular[:k]) @ v[:k]
            rows.append(
                {
                    "data": name,
                    "epsilon": epsilon,
                    "k": k,
                    "block Laplace": error([r], truth),
                    "then rank k": error([then_low_rank(r, k)], truth),
                    "rank k, no noise": float(np.abs(kept - truth).mean()),
                }
            )
    return rows


def speed(count: int = 10_000_000) -> list[dict[str, Any]]:
    """Return the time for 10^7 made-up rows on one core; the SQL engines are not used here."""
    generator = np.random.default_rng(3)
    who = generator.integers(0, count // 50, count)
    start, end = (generator.integers(0, 300, count) for _ in range(2))
    began = time.perf_counter()
    data = tulle.Contributions(who, start, end, rows=300, columns=300)
    loaded = time.perf_counter()
    query = tulle.weights(bound=3, total=40)
    tulle.release(data, query, unit="participant", epsilon=1.0)
    done = time.perf_counter()
    return [{"rows": count, "read, s": loaded - began, "release, s": done - loaded}]


def main() -> None:
    maps = [(f"check-ins {side} x {side}", checkins(side)) for side in SIDES]
    for name, records in (*maps, ("bicycles", trips())):
        print_table(f"Plain and block noise, {name}", compare(name, records))
        print_table(f"Low rank, {name}", ranks(name, records))
    print_table("Ten million rows, arrays in memory", speed())


if __name__ == "__main__":
    main()
