"""Cells of values, ranges made of drawn cells, and what is cut to them."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pytest
import sqlglot

from tulle.noise import SeededSource
from tulle.sql.compile.value_rows import Values
from tulle.sql.question.parse import parse_statement
from tulle.sql.schema.ranges import Range, range_of
from tulle.sql.tables.value_cells import (
    CELLS,
    HIGHEST,
    LOWEST,
    WHOLE_CELLS,
    Missing,
    ValueCells,
    beyond_at_most,
    cut_to,
    draw_range,
)

ODD = [0.0, -0.0, 5e-324, 2.0**-30, 2.0**-31, 1.0, 1.5, 2.0, math.nextafter(2, 3), 3.0, 4.0]
ODD += [1e18, 2.0**59, 2.0**60, 2.0**100, 1e300, math.inf]


@pytest.mark.parametrize("cells", [CELLS, WHOLE_CELLS, ValueCells(0, 1)])
def test_a_value_is_in_the_one_cell_that_holds_it(cells: ValueCells) -> None:
    values = np.array([sign * value for value in ODD for sign in (1, -1)])
    top = cells.widest.high
    for value, cell in zip(values.tolist(), cells.places(values).tolist(), strict=True):
        within = min(max(value, -top), top)
        assert cells.low(cell) <= within <= cells.high(cell), value
        if within > 0:
            assert cells.low(cell) < within
        if within == 0:
            assert cells.low(cell) == 0 == cells.high(cell)
    assert cells.places(np.sort(values)).tolist() == sorted(cells.places(values).tolist())


def missing(whole: bool = False, low: float = -math.inf, high: float = math.inf) -> Missing:
    return Missing(sqlglot.parse_one("x"), "x", whole, Range(low, high))


@pytest.mark.parametrize("whole", [True, False])
def test_whatever_is_drawn_makes_a_range(whole: bool) -> None:
    some = [0, 1, 59, 60, 61, 62, 119, 120] if whole else [0, 1, 130, 131, 132, 200, 262]
    for low, high in product((-math.inf, -1e30, -7.0, 0.0, 5.0), (math.inf, -2.0, 0.0, 9.0, 1e17)):
        if low > high or (math.isfinite(low) and math.isfinite(high)):
            continue
        asked = missing(whole, low, high)
        for pair in product(some, repeat=2):
            found = asked.joined(dict(zip((LOWEST, HIGHEST), pair, strict=True)))
            assert math.isfinite(found.low)
            assert math.isfinite(found.high)
            assert found.low < found.high
            # What is declared stays.
            assert not math.isfinite(low) or found.low == low
            assert not math.isfinite(high) or found.high == high


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_cut_is_read_as_it_is_written_and_its_range_is_known(dialect: str, whole: bool) -> None:
    cells = missing(whole).cells
    edges = [(cells.edges[0], cells.edges[-1]), (-1.0, 0.0), (0.0, cells.edges[cells.side + 1])]
    edges += [(cells.edges[3], cells.edges[5]), (cells.edges[-3], cells.edges[-2])]
    value = parse_statement("SELECT SUM(x + 1) FROM t", dialect).expressions[0].this
    for low, high in edges:
        cut = cut_to(value, Range(float(low), float(high)), dialect, whole=whole)
        again = parse_statement(f"SELECT SUM({cut.sql(dialect=dialect)}) FROM t", dialect)
        assert again.expressions[0].this == cut
        assert range_of(cut, {}) == Range(float(low), float(high))


@pytest.mark.parametrize("kind", ["BIGINT", "DOUBLE", "DECIMAL(10, 2)"])
def test_a_cut_is_what_clipping_is(kind: str) -> None:
    listed: list[Any] = [-1000, -3, 0, 2, 5, 1000, None]
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (x {kind})")
    connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in listed])
    column = sqlglot.parse_one("x", dialect="duckdb")
    for low, high in ((-4.0, 4.0), (0.0, 2.0**30), (-(2.0**40), -0.5)):
        whole = kind == "BIGINT"
        if whole and low != int(low):
            continue
        cut = cut_to(column, Range(low, high), "duckdb", whole=whole and high == int(high))
        found = connection.sql(f"SELECT {cut.sql(dialect='duckdb')} FROM t").fetchall()
        expected = [None if v is None else min(max(v, low), high) for v in listed]
        assert [row[0] for row in found] == expected


def rows(count: int, each: int, seed: int) -> Values:
    random = np.random.default_rng(seed)
    zeros = np.zeros(count * each, dtype=np.int64)
    return Values.of(zeros, random.lognormal(3, 2, count * each), zeros + each, zeros + 1)


def beyond(values: Values, found: Range) -> tuple[float, float]:
    """How many people's rows lie below and above, each person one vote."""
    low, high = values.values < found.low, values.values > found.high
    return float((1 / values.loads[low]).sum()), float((1 / values.loads[high]).sum())


def test_no_more_is_clipped_than_is_said() -> None:
    epsilon = Fraction(1, 2)
    said = beyond_at_most(CELLS, epsilon)
    random = np.random.default_rng(1)
    values = rows(1000, 3, 0)
    found = [
        beyond(values, draw_range(missing(), values, epsilon, SeededSource(int(seed))))
        for seed in random.integers(2**30, size=60)
    ]
    # 95 % at each end; fewer than 50 of 60 happens less than once in a thousand.
    assert min(sum(one[end] <= said for one in found) for end in (0, 1)) >= 50
    # And it is not said of nothing: some are clipped, and a claim of a tenth would be false.
    assert sum(max(one) > said / 10 for one in found) > 20


def test_bounds_are_near_the_data() -> None:
    values = rows(2000, 2, 3)
    highest = float(values.values.max())
    drawn = [
        draw_range(missing(), values, Fraction(1, 2), SeededSource(seed)).high for seed in range(60)
    ]
    # All cells beyond the data together have less than exp(-5).
    assert sum(high > 4 * highest for high in drawn) <= 4


def test_an_empty_table_has_a_range() -> None:
    empty = rows(0, 1, 0)
    for seed in range(20):
        found = draw_range(missing(), empty, Fraction(1), SeededSource(seed))
        assert found.low < found.high
