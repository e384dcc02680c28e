"""Contributions that stay in a database: the engine clips as arrays are clipped."""

from __future__ import annotations

import math
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.matrices.contributions.clipping import Limits, clip
from tulle.sql.compile import engine_totals
from tulle.sql.data import Database
from tulle.sql.engines.base import EngineError

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")
pa = pytest.importorskip("pyarrow")

PLACES = ["it's", "b", "c"]
SELECT = "SELECT origin, goal, weight FROM trip"
QUESTIONS = {
    "bound and total": tulle.weights(bound=3, total=7),
    "one total": tulle.weights(total=2.5),
    "blocks": tulle.weights(
        labels=[[0, 1, 1], [1, 0, 1], [-1, 1, 0]], block_total=[2.0, 4.0], bound=2
    ),
    "lengths": tulle.weights(bound=2, length=2.5),
    "many bounds": tulle.weights(bound=[[1, 2, 3], [0.5, 1, 2], [3, 3, 3]], total=4),
}


FEW = ("one total", "blocks")
"""Enough for the larger engines: uniform bounds, and bounds by cell and block."""


def records(seed: int, count: int = 300) -> dict[str, list[Any]]:
    generator = np.random.default_rng(seed)
    return {
        "rider": generator.integers(0, 12, count).tolist(),
        "origin": [PLACES[p] for p in generator.integers(0, 3, count)],
        "goal": generator.integers(0, 3, count).tolist(),
        "weight": (generator.integers(-8, 9, count) / 4).tolist(),
    }


def in_memory(table: dict[str, list[Any]]) -> Any:
    return tulle.Contributions.from_table(
        table,
        individual="rider",
        row="origin",
        column="goal",
        weight="weight",
        rows=PLACES,
        columns=3,
    )


def in_database(database: Any, **more: Any) -> Any:
    return tulle.Contributions.from_query(database, SELECT, rows=PLACES, columns=3, **more)


def in_duckdb(table: dict[str, list[Any]]) -> Any:
    connection = duckdb.connect()
    given = pa.table(table)  # noqa: F841 - DuckDB finds it by its name
    connection.execute("CREATE TABLE trip AS SELECT * FROM given")
    return Database.connect(connection, owners={"trip": "rider"})


def limits_of(query: Any, data: Any, mechanism: str, delta: float) -> Any:
    from tulle.core import registry
    from tulle.core.mechanism import Terms
    from tulle.core.validate import rational
    from tulle.matrices.contributions.block_mechanism import limits_from

    unit = data.check_unit("participant")
    terms = Terms(query, unit, rational(1), rational(delta), data.facts(unit))
    return limits_from(terms, registry.mechanisms("contributions")[mechanism].settings(terms, {}))


def same(stored: Any, held: Any, names: Iterable[str] = QUESTIONS) -> None:
    """Check that both have the same entries, totals and clipped totals, to the last step."""
    np.testing.assert_array_equal(stored.entries()[1], held.entries()[1])
    np.testing.assert_array_equal(stored.entries()[2], held.entries()[2])
    np.testing.assert_allclose(stored.totals(), held.totals())
    assert stored.individuals() == held.individuals()
    for name in names:
        query = QUESTIONS[name]
        for mechanism, delta in (("block_laplace", 0.0), ("block_gaussian", 1e-6)):
            limits = limits_of(query, held, mechanism, delta)
            here, there = clip(held, limits), clip(stored, limits)
            np.testing.assert_array_equal(there, here, err_msg=name)
            assert there.any()


def sorted_by_rider(table: dict[str, list[Any]]) -> dict[str, list[Any]]:
    order = np.argsort(table["rider"], kind="stable")
    return {name: [values[k] for k in order] for name, values in table.items()}


@pytest.mark.parametrize("seed", [1, 2])
def test_duckdb_clips_as_arrays_do(seed: int) -> None:
    table = sorted_by_rider(records(seed))
    stored, held = in_database(in_duckdb(table)), in_memory(table)
    same(stored, held)
    assert repr(stored) == "<QueryContributions: sealed>"
    assert stored.facts("participant") == held.facts("participant")
    smaller = [one.totals().tolist() for one in stored.neighbours("participant")]
    assert smaller == [one.totals().tolist() for one in held.neighbours("participant")]


def test_someone_who_left_the_database_left_the_contributions() -> None:
    table = sorted_by_rider(records(3))
    database = in_duckdb(table)
    left = in_database(database.without("participant", 5))
    kept = [k for k, who in enumerate(table["rider"]) if who != 5]
    rest = {name: [values[k] for k in kept] for name, values in table.items()}
    same(left, in_memory(rest))


def test_postgresql_clips_as_arrays_do(postgres_url: str) -> None:
    import adbc_driver_postgresql.dbapi as driver

    table = sorted_by_rider(records(1))
    listed = ", ".join(
        f"({who}, '{a.replace(chr(39), chr(39) * 2)}', {b}, {w})"
        for who, a, b, w in zip(*table.values(), strict=True)
    )
    with driver.connect(postgres_url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS trip")
        cursor.execute("CREATE TABLE trip (rider int, origin text, goal int, weight float8)")
        cursor.execute(f"INSERT INTO trip VALUES {listed}")
    database = Database.connect(postgres_url, owners={"trip": "rider"})
    same(in_database(database), in_memory(table), FEW)
    database.close()


@pytest.mark.filterwarnings("ignore")
def test_spark_clips_as_arrays_do(spark_session: Any) -> None:
    table = sorted_by_rider(records(1, count=5_000))
    spark_session.createDataFrame(pa.table(table)).createOrReplaceTempView("trip")
    database = Database.connect(spark_session, owners={"trip": "rider"})
    same(in_database(database), in_memory(table), FEW)


NAMES = ("a\\b", "it's", "\\", '"', "x\\', 0), ('", "`", "\u00e9\n", "${a}", "--", "''")
"""Names of a grid in which engines have marks of their own."""


def named_totals(database: Database) -> list[float]:
    text = "SELECT place, 'r' FROM named"
    found = tulle.Contributions.from_query(database, text, rows=NAMES, columns=["r"])
    return [float(total) for total in found.totals().reshape(-1)]


@pytest.mark.filterwarnings("ignore")
def test_names_of_a_grid_are_those_of_the_rows(
    spark_session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"who": range(len(NAMES)), "place": NAMES})
    embedded = Database.from_tables({"named": rows}, owners={"named": "who"})
    assert named_totals(embedded) == [1.0] * len(NAMES)
    spark_session.createDataFrame(rows).createOrReplaceTempView("named")
    database = Database.connect(spark_session, owners={"named": "who"})
    assert named_totals(database) == [1.0] * len(NAMES)
    # A broken version writes them as DuckDB's constants.
    true = engine_totals._placed
    monkeypatch.setattr(engine_totals, "_placed", lambda *given: true(*given[:3], "duckdb"))
    with pytest.raises(EngineError):
        named_totals(database)
    spark_session.catalog.dropTempView("named")


def test_release_and_plan_go_through_the_engine() -> None:
    table = records(4)
    stored = in_database(in_duckdb(table))
    r = tulle.release(stored, QUESTIONS["bound and total"], unit="participant", epsilon=1.0)
    assert r.value.shape == (3, 3)
    assert stored._held is None  # no record was fetched
    counted = tulle.Contributions.from_query(
        in_duckdb(table), "SELECT origin, goal FROM trip WHERE weight > 0", rows=PLACES, columns=3
    )
    assert counted.totals().sum() == sum(w > 0 for w in table["weight"])


def test_rows_outside_the_grid_are_dropped_and_never_counted_aloud() -> None:
    table = records(5)
    table["origin"][7] = "elsewhere"
    table["weight"][9] = math.nan
    table["weight"][11] = math.inf
    for rows in (table, records(5)):  # the refusal of a refusal does not depend on the rows
        with pytest.raises(InputError, match="would tell whether there is such a row"):
            in_database(in_duckdb(rows), outside="refuse")
    dropped = in_database(in_duckdb(table))
    kept = [k for k in range(300) if k not in (7, 9, 11)]
    rest = {name: [values[k] for k in kept] for name, values in table.items()}
    np.testing.assert_allclose(dropped.totals(), in_memory(rest).totals())
    huge = dict(table, origin=["b"] * 300, goal=[1] * 300, weight=[1e308] * 300)
    top = in_database(in_duckdb(huge))
    tulle.release(top, QUESTIONS["one total"], unit="participant", epsilon=1.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT origin FROM trip", "Select the row, the column"),
        ("SELECT DISTINCT origin, goal FROM trip", "without DISTINCT"),
        ("SELECT origin, COUNT(*) FROM trip GROUP BY origin", "aggregate"),
        ("SELECT origin, goal FROM trip LIMIT 3", "LIMIT"),
        ("SELECT a.origin, b.goal FROM trip a, trip b", "2 participants"),
        ("SELECT name, 1 FROM place", "no participant"),
        (
            "SELECT a.origin, a.goal FROM trip a WHERE EXISTS (SELECT 1 FROM trip b"
            " WHERE a.goal = b.goal)",
            "one owner",
        ),
        ("SELECT origin, nope FROM trip", "could not be resolved"),
        ("SELECT origin, goal, origin FROM trip", "not known to be a number"),
    ],
)
def test_rows_without_one_owner_are_refused(text: str, words: str) -> None:
    connection = duckdb.connect()
    given = pa.table(records(1))  # noqa: F841 - DuckDB finds it by its name
    connection.execute("CREATE TABLE trip AS SELECT * FROM given")
    connection.execute("CREATE TABLE place AS SELECT 'b' AS name")
    database = Database.connect(connection, owners={"trip": "rider"}, public=["place"])
    with pytest.raises(QueryError, match=words):
        tulle.Contributions.from_query(database, text, rows=PLACES, columns=3)


def test_bad_grids_and_sources_are_refused() -> None:
    database = in_duckdb(records(1))
    with pytest.raises(InputError, match="of the same type"):
        tulle.Contributions.from_query(database, SELECT, rows=3, columns=3)
    with pytest.raises(InputError, match=r"reads from a tulle\.Database"):
        tulle.Contributions.from_query(object(), SELECT, rows=PLACES, columns=3)
    with pytest.raises(InputError, match="are left out"):
        in_database(database, outside="maybe")


def test_a_forgotten_total_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin cuts cells and blocks, but not the sum over all of them."""
    from tulle.sql.compile import engine_totals

    table = sorted_by_rider(records(1))
    stored, held = in_database(in_duckdb(table)), in_memory(table)
    limits = limits_of(QUESTIONS["bound and total"], held, "block_laplace", 0.0)
    true = engine_totals.EngineTotals.statement

    def forget(self: Any, given: Limits) -> str:
        return true(self, SimpleNamespace(**{**vars(given), "total": 10**9, "totals": (10**9,)}))

    def worst(data: Any) -> float:
        """Return the most that one individual moves the clipped totals, of what they may."""
        alone = [
            np.abs(clip(in_database(in_duckdb(one_rider(table, who))), limits)).sum()
            for who in sorted(set(table["rider"]))
        ]
        return max(alone) / limits.total

    assert worst(stored) <= 1
    monkeypatch.setattr(engine_totals.EngineTotals, "statement", forget)
    assert worst(stored) > 1


def one_rider(table: dict[str, list[Any]], who: int) -> dict[str, list[Any]]:
    kept = [k for k, rider in enumerate(table["rider"]) if rider == who]
    return {name: [values[k] for k in kept] for name, values in table.items()}
