"""Rows of an engine as arrays."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from tulle.sql.compile.fetched import numbers_in, readable, rows_at, texts_in

CHUNKS = ([[5, 1], [], [2**62]], [[]], [[1, 2, 3]])


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.float64()])
def test_numbers_are_those_of_arrow(chunks: list[list[int]], kind: pa.DataType) -> None:
    small = [[one % 1000 for one in chunk] for chunk in chunks]
    table = pa.table({"n": pa.chunked_array([pa.array(one, type=kind) for one in small])})
    for part in (table, table.slice(1), table.slice(0, 2), table.slice(1, 1)):
        found = numbers_in(part, "n")
        assert found.dtype == part.column("n").to_numpy().dtype
        assert found.tolist() == part.column("n").to_pylist()


def test_null_is_nan_among_doubles_and_stands_nowhere_else() -> None:
    table = pa.table({"f": [1.5, None, float("nan")], "n": [1, None, 3], "t": ["a", "b", "c"]})
    assert np.array_equal(numbers_in(table, "f"), [1.5, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(numbers_in(table.slice(1), "f"), [np.nan, np.nan], equal_nan=True)
    assert np.isnan(numbers_in(pa.table({"none": pa.nulls(2)}), "none")).tolist() == [True, True]
    for name in ("n", "t"):
        with pytest.raises(AssertionError):
            numbers_in(table, name)


def test_rows_are_taken_in_order() -> None:
    table = pa.table({"n": [7, 8, 9], "t": ["a", "b", "c"]})
    assert rows_at(table, np.array([2, 0])).to_pylist() == [{"n": 9, "t": "c"}, {"n": 7, "t": "a"}]
    assert rows_at(table, np.flatnonzero([False, False, False])).num_rows == 0


def test_texts_that_are_no_utf8_are_bytes_or_missing() -> None:
    held = [b"a", b"\xff", None, b"\xc3", "\u00e9".encode()]
    wrong = pa.array(held, pa.binary()).view(pa.string())
    for column in (wrong, pa.chunked_array([wrong.slice(0, 1), wrong.slice(1)])):
        assert texts_in(column) == ["a", b"\xff", None, b"\xc3", "\u00e9"]
        assert readable(column).to_pylist() == ["a", None, None, None, "\u00e9"]
        assert readable(column.slice(4)).to_pylist() == texts_in(column.slice(4)) == ["\u00e9"]


def test_pandas_is_not_loaded() -> None:
    program = (
        "import sys, duckdb, numpy; from tulle.sql.compile.fetched import numbers_in, rows_at; "
        "rows = duckdb.sql('SELECT 1 AS n, 2.5::DOUBLE AS f, NULL::DOUBLE AS e').to_arrow_table(); "
        "numbers_in(rows_at(rows, numpy.array([0])), 'n'); numbers_in(rows, 'f'); "
        "numbers_in(rows, 'e'); print('pandas' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert told.stdout.split() == ["False"], told.stderr
