"""Cells that nobody listed, in a database: the engine keeps and adds up as arrays do."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import tulle
from tulle.core.errors import QueryError
from tulle.noise import SeededSource
from tulle.sql.keys import cells
from tulle.sql.keys.cells import CellRows

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

ALL = 10**6
SALT = "0" * 32
TRIPS = """
    SELECT CAST(i % 50 AS INTEGER) AS rider, 'place ' || CAST(i % 7 AS VARCHAR) AS a,
    CAST(i % 5 AS DOUBLE PRECISION) / 2 AS b, DATE '2024-02-28' + CAST(i % 3 AS INTEGER) AS day,
    CAST(i % 3 = 0 AS BOOLEAN) AS yes, CAST(i % 11 - 4 AS DOUBLE PRECISION) / 8 AS w
"""
ODD = """
    (NULL, 'x', 1, DATE '2024-02-28', true, 1), (1, NULL, 1, DATE '2024-02-28', true, 1),
    (1, '', 1, DATE '2024-02-28', true, 1), (1, 'x', 'NaN', DATE '2024-02-28', true, 1),
    (1, 'x', -0.0, DATE '2024-02-28', true, 1), (2, 'x', 0.0, DATE '2024-02-28', true, 2),
    (1, 'y', 1e300, DATE '2024-02-28', true, 'NaN'), (1, 'y', 'inf', DATE '2024-02-28', true, 1e308)
"""
"""People, names and weights that are missing or odd, two zeros, and an infinite name."""

COLUMNS = "rider, a, b, day, yes, w"
CHOSEN = ("a, b, w", "day, yes, w", "yes, a", "rider, day")


def in_duckdb(statement: str) -> Any:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE trip AS {statement}")
    return tulle.Database.connect(connection, owners={"trip": "rider"})


@pytest.fixture(scope="module")
def trips() -> Any:
    listed = f"SELECT * FROM (VALUES {ODD}) t({COLUMNS})"
    return in_duckdb(f"{TRIPS} FROM range(900) t(i) UNION ALL {listed}")


def check_alike(database: Any, chosen: str) -> None:
    """Check that engine and arrays have the same cells, people and steps, where nobody is cut."""
    there = tulle.Contributions.from_query(database, f"SELECT {chosen} FROM trip")
    here = tulle.Contributions(*there._source.records(), outside="drop")
    found, held = (data.keep(ALL, -4, 9, SeededSource(1)) for data in (there, here))
    every = np.arange(len(held.people))
    assert found.names(every) == held.names(every)
    assert len(every) >= 3
    np.testing.assert_array_equal(found.people, held.people)
    np.testing.assert_array_equal(found.steps, held.steps)


@pytest.mark.parametrize("chosen", CHOSEN)
def test_duckdb_keeps_what_arrays_keep(trips: Any, chosen: str) -> None:
    check_alike(trips, chosen)


def test_postgresql_keeps_what_arrays_keep(postgres_url: str) -> None:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(postgres_url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE trip AS {TRIPS} FROM generate_series(0, 899) t(i)")
        cursor.execute(f"INSERT INTO trip VALUES {ODD}")
    database = tulle.Database.connect(postgres_url, owners={"trip": "rider"})
    for chosen in CHOSEN:
        check_alike(database, chosen)
    database.close()


@pytest.mark.slow
def test_spark_keeps_what_arrays_keep(spark_session: Any) -> None:
    made = duckdb.sql(f"{TRIPS} FROM range(900) t(i)").to_arrow_table()
    spark_session.createDataFrame(made).createOrReplaceTempView("trip")
    database = tulle.Database.connect(spark_session, owners={"trip": "rider"})
    for chosen in CHOSEN:
        check_alike(database, chosen)


class Trips:
    """A table of contributions whose rows change, and what the engine keeps of them."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("CREATE TABLE trip (rider INTEGER, a TEXT, v DOUBLE)")
        database = tulle.Database.connect(self.connection, owners={"trip": "rider"})
        self.source = database.engine_totals("SELECT a, a, v FROM trip")
        self.source.name_cells()

    def kept(self, rows: list[tuple[int, str, float]]) -> dict[Any, tuple[int, int]]:
        """Return people and steps of each cell, everyone with one of them."""
        self.connection.execute("DELETE FROM trip")
        if rows:
            listed = ", ".join(map(str, rows))
            self.connection.execute(f"INSERT INTO trip VALUES {listed}")
        found = self.source.kept(1, 0, 2, SALT)
        numbers = zip(found.people.tolist(), found.steps.tolist(), strict=True)
        return dict(zip(found.rows.to_pylist(), numbers, strict=True))


WEIGHTS: list[tuple[float, ...]] = [(), (1.0,), (9.0, -3.0)]
EVERY = list(product(product(WEIGHTS, repeat=3), repeat=2))
"""All tables of two people and three cells with no, one or two weights in each."""


def most_moved(tables: Any) -> tuple[int, int, int]:
    """Return what one person moves at most: how many cells, people in a cell, steps in a cell."""
    trips, moved = Trips(), [0, 0, 0]
    for table in tables:
        rows = [
            (who, cell, weight)
            for who, held in enumerate(table)
            for cell, given in zip("xyz", held, strict=True)
            for weight in given
        ]
        both = trips.kept(rows)
        for gone in (0, 1):
            alone = trips.kept([row for row in rows if row[0] != gone])
            differ = [
                (abs(p - q), abs(s - t))
                for cell in {*both, *alone}
                for (p, s), (q, t) in [(both.get(cell, (0, 0)), alone.get(cell, (0, 0)))]
                if (p, s) != (q, t)
            ]
            sizes = [len(differ), *(max((one[k] for one in differ), default=0) for k in (0, 1))]
            moved = [max(pair) for pair in zip(moved, sizes, strict=True)]
    return moved[0], moved[1], moved[2]


def test_one_person_moves_their_own_cells_only() -> None:
    assert most_moved(EVERY[8::48]) == (1, 1, 2)


@pytest.mark.slow
def test_one_person_moves_their_own_cells_only_in_every_table() -> None:
    assert most_moved(EVERY) == (1, 1, 2)


def _one_too_many(text: str) -> str:
    return text.replace("AS r FROM", "- 1 AS r FROM")


def _ranked_among_all(text: str) -> str:
    return text.replace("PARTITION BY d.i ", "")


@pytest.mark.parametrize("broken", [_one_too_many, _ranked_among_all])
def test_broken_choices_of_cells_are_noticed(
    monkeypatch: pytest.MonkeyPatch, broken: Callable[[str], str]
) -> None:
    true = cells.rank_keys
    monkeypatch.setattr(cells, "rank_keys", lambda *given: broken(true(*given)))
    assert most_moved(EVERY[-3:])[0] > 1


def test_a_bound_that_is_forgotten_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    true = CellRows.in_steps
    monkeypatch.setattr(CellRows, "in_steps", lambda self, e, _, __: true(self, e, 99.0, "99"))
    assert most_moved(EVERY[-3:])[2] > 2


def test_a_release_from_a_database(trips: Any) -> None:
    data = tulle.Contributions.from_query(trips, "SELECT yes, yes FROM trip")
    asked = tulle.found_cells(cells_per_person=2, bound=3)
    table = tulle.release(data, asked, unit="participant", epsilon=4.0, delta=1e-6).value
    assert table["row"] == ("false", "true")
    assert np.all(np.abs(np.array(table["people"]) - 50) < 25)


def test_types_that_have_no_text_are_refused() -> None:
    database = in_duckdb("SELECT 1 AS rider, BLOB 'ab' AS a, 1 AS b")
    with pytest.raises(QueryError, match=r"The row of the SELECT .* CAST\(\.\.\. AS TEXT\)"):
        tulle.Contributions.from_query(database, "SELECT a, b FROM trip")
