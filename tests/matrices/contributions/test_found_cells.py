"""Cells that nobody listed: what is found, what it costs, what one person moves."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest

import tulle
from tulle.audit.engine.cost import Case, watch_runs
from tulle.core import registry
from tulle.core.errors import InputError, QueryError
from tulle.core.mechanism import Terms
from tulle.ledger.answer import plan_for
from tulle.noise import SeededSource

ASKED: dict[str, Any] = {"unit": "participant", "epsilon": 2.0, "delta": 1e-6}
ROWS = ["home"] * 200 + ["hide-out"]
COLUMNS = ["work"] * 150 + ["sea"] * 51


@pytest.fixture(scope="module")
def trips() -> Any:
    return tulle.Contributions(range(201), ROWS, COLUMNS)


def release(data: Any, seed: int = 1, **options: Any) -> tulle.Release:
    return tulle.release(data, tulle.found_cells(**options), source=SeededSource(seed), **ASKED)


def test_cells_of_many_are_found_in_the_order_of_their_names(trips: Any) -> None:
    table = release(trips, cells_per_person=1, bound=1).value
    assert table["row"] == ("home", "home")
    assert table["column"] == ("sea", "work")
    assert table.keys == ("row", "column")
    order = np.random.default_rng(1).permutation(201)
    mixed = tulle.Contributions(order, [ROWS[at] for at in order], [COLUMNS[at] for at in order])
    assert release(mixed, cells_per_person=1, bound=1).value == table


def test_intervals_cover(trips: Any) -> None:
    truth = tulle.found_cells(cells_per_person=1, bound=1).truth(trips)
    known = {(r, c): (p, t) for r, c, p, t in truth.rows()}
    assert known["hide-out", "sea"] == (1, 1)
    missed, widths, away = 0, set(), []
    for seed in range(40):
        table = release(trips, seed, cells_per_person=1, bound=1).value
        assert all(width is None for width in table["people_high"])
        for row, column, _, least, _, total, low, high in table.rows():
            people, real = known[row, column]
            assert least <= people
            missed += not low <= real <= high
            widths.add(round(high - low, 2))
            away.append(total - real)
    assert missed <= 12
    # Two cells at once; the noise on them is that of half of epsilon.
    assert widths == {round(2 * np.log(2 / 0.05), 2)}
    assert 0.6 < np.std(away) < 3


def test_the_rest_the_first_and_the_least(trips: Any) -> None:
    table = release(trips, cells_per_person=1, bound=1, top=1, other="elsewhere").value
    assert table["row"] == ("home", "elsewhere")
    assert table["column"] == ("work", None)
    assert table["people"][1] is None
    assert abs(table["total"][1] - 51) < 30
    assert len(release(trips, cells_per_person=1, minimum=201).value) == 0
    alone = release(trips, cells_per_person=1)
    assert alone.value.names == ("row", "column", "people", "people_low", "people_high")
    assert alone.parameters["epsilon_totals"] == "0"


def test_everyone_counts_for_a_few_cells() -> None:
    # Everybody has all four cells; with two each, about half of the people are in every cell.
    who = np.repeat(np.arange(400), 4)
    data = tulle.Contributions(who, ["r"] * 1600, list("abcd") * 400, [9.0] * 1600)
    kept = data.keep(2, 0, 5, SeededSource(1))
    assert kept.people.sum() == 800
    assert np.all(np.abs(kept.people - 200) < 60)
    assert np.array_equal(kept.steps, 5 * kept.people)
    table = release(data, cells_per_person=2, bound=5).value
    assert table["column"] == tuple("abcd")
    assert all(
        high - low > 0 for low, high in zip(table["total_low"], table["total_high"], strict=True)
    )


def test_many_cells_want_gaussian_noise(trips: Any) -> None:
    few = plan_for(trips, tulle.found_cells(cells_per_person=1, bound=1), **ASKED).chosen
    many = plan_for(trips, tulle.found_cells(cells_per_person=100, bound=1), **ASKED).chosen
    rest = tulle.found_cells(cells_per_person=100, bound=1, other=True)
    assert few.settings["noise"] == "laplace"
    assert few.settings["delta_totals"] == "0"
    assert many.settings["noise"] == "gaussian"
    assert plan_for(trips, rest, **ASKED).chosen.settings["noise"] == "laplace"


def test_the_plan_says_from_which_size_on_cells_are_seen(trips: Any) -> None:
    plan = plan_for(trips, tulle.found_cells(cells_per_person=1, bound=1), **ASKED)
    assert "A cell is seen with 95 % chance from 17 people on" in str(plan)
    assert plan.chosen.settings["seen_from"] == 17


def test_a_grid_may_be_declared_as_well(trips: Any) -> None:
    grid = tulle.Contributions(
        range(201), ROWS, COLUMNS, rows=["hide-out", "home"], columns=["work", "sea"]
    )
    table = release(grid, cells_per_person=1, bound=1).value
    # In the order of the grid.
    assert table["column"] == ("work", "sea")


def test_records_in_a_database() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE trip AS SELECT CAST(range AS INTEGER) AS rider, CASE WHEN range < 200 THEN "
        "'home' ELSE 'hide-out' END AS a, CASE WHEN range < 150 THEN 'work' ELSE 'sea' END AS b, "
        "CASE WHEN range = 3 THEN 'NaN'::DOUBLE ELSE 1.0 END AS w FROM range(201)"
    )
    database = tulle.Database.connect(connection, owners={"trip": "rider"})
    data = tulle.Contributions.from_query(database, "SELECT a, b, w FROM trip")
    table = release(data, cells_per_person=1, bound=1).value
    assert table["column"] == ("sea", "work")
    truth = tulle.found_cells(cells_per_person=1, bound=1).truth(data)
    assert truth["people"].tolist() == [1, 50, 149]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cells_per_person": 0}, "cells_per_person"),
        ({"cells_per_person": 10**7}, "at most 1,000,000"),
        ({"cells_per_person": 1, "bound": 0}, "bound"),
        ({"cells_per_person": 1, "bound": 1e300}, "between"),
        ({"cells_per_person": 1, "minimum": 0}, "minimum"),
        ({"cells_per_person": 1, "top": 0}, "top"),
        ({"cells_per_person": 1, "bound": 1, "other": 3}, "other"),
        ({"cells_per_person": 1, "other": True}, "bound="),
    ],
)
def test_arguments_that_do_not_fit(options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tulle.found_cells(**options)


def test_what_a_grid_is_needed_for(trips: Any) -> None:
    questions = {
        "weights": tulle.weights(bound=1),
        "block_bounds": tulle.block_bounds(0.5, [1, 2]),
        "block_partition": tulle.block_partition(),
        "participants": tulle.participants(),
    }
    assert {*questions, "found_cells"} == set(registry.find("query", "contributions"))
    for question in questions.values():
        with pytest.raises(QueryError, match="found_cells"):
            plan_for(trips, question, **ASKED)
    with pytest.raises(QueryError, match="delta="):
        plan_for(trips, tulle.found_cells(cells_per_person=1), unit="participant", epsilon=1.0)
    with pytest.raises(InputError, match="both rows= and columns="):
        tulle.Contributions([1], ["a"], ["b"], rows=["a"])
    with pytest.raises(InputError, match="support= needs a grid"):
        tulle.Contributions([1], ["a"], ["b"], support=[[1]])
    with pytest.raises(InputError, match="no grid"):
        _ = trips.shape


def test_nobody_and_missing_names() -> None:
    nobody = tulle.Contributions([], [], [])
    assert len(release(nobody, cells_per_person=3, bound=1).value) == 0
    assert len(release(nobody, cells_per_person=3, bound=1, other=True).value) == 1
    with pytest.raises(InputError, match="missing"):
        tulle.Contributions([1, 2], ["a", None], ["b", "b"])
    kept = tulle.Contributions([1, 2], ["a", None], ["b", "b"], outside="drop")
    assert kept.individuals() == 1


def test_the_whole_price_is_spent(trips: Any) -> None:
    selection = registry.make_mechanism("contributions", "cell_selection")
    unit = trips.check_unit("participant")
    for options in (
        {"cells_per_person": 1},
        {"cells_per_person": 1, "bound": 1},
        {"cells_per_person": 2, "bound": 3, "other": True},
        {"cells_per_person": 40, "bound": 1},
    ):
        query = tulle.found_cells(**options)
        terms = Terms(query, unit, Fraction(60), Fraction(1, 10**6), trips.facts(unit))
        (run,) = watch_runs(selection, [Case(terms, {}, trips)])
        assert run.good, run.fault
        assert run.cost is not None
        assert run.cost.share > 0.99, options


@pytest.mark.parametrize("far", [1, 10**6, 3 * 10**9])
def test_entries_are_of_one_person_and_cell_however_many_there_could_be(monkeypatch, far):
    """Individuals times cells may be more than an integer holds: nobody is split or merged."""
    random = np.random.default_rng(5)
    made = tulle.Contributions.__new__(tulle.Contributions)
    made._labels = (range(far), range(far))
    individual = random.integers(0, 40, 600)
    cell = random.integers(0, far, 600) * far + random.integers(0, far, 600)
    # Far beyond 2**64 in all, and equal to one another there: as one number they would be merged.
    cell[::3] = (cell[::3] - individual[::3] * far * far) % (far * far) if far < 10**9 else 7
    weight = random.random(600)
    made._keep(individual, cell, weight)
    expected = {}
    for who, where, much in zip(individual.tolist(), cell.tolist(), weight.tolist(), strict=True):
        expected[who, where] = expected.get((who, where), 0.0) + much
    found = [part.tolist() for part in made.entries()]
    assert list(zip(*found[:2], strict=True)) == sorted(expected)
    assert found[2] == pytest.approx([expected[pair] for pair in sorted(expected)])


def test_a_grid_of_more_cells_than_are_rounded_for_is_refused():
    for shape in ((2**13, 2**14), (10**30, 1), (2**30, 2**30)):
        with pytest.raises(tulle.InputError, match="at most"):
            tulle.Contributions([1], [0], [0], rows=shape[0], columns=shape[1])
