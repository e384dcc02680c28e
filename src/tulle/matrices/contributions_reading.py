"""Columns of any make turned into numbered individuals, cells and weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tulle.core import validate
from tulle.core.errors import InputError, raise_alone

Names = Sequence[Any] | int
Wholes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Columns(NamedTuple):
    """The columns of a long table, as they were given."""

    individual: Any
    row: Any
    column: Any
    weight: Any


def read_names(names: Any, what: str) -> Sequence[Any]:
    """Return the public names of one side of the grid.

    Raises:
        InputError: when there are none or one occurs twice.
    """
    if hasattr(names, "__index__"):
        return range(validate.whole(at_least=1, **{what: names}))
    if isinstance(names, str | bytes) or not hasattr(names, "__iter__"):
        raise InputError(f"{what} must be a list of names, or how many there are.")
    listed = list(names.tolist() if hasattr(names, "tolist") else names)
    if not listed:
        raise InputError(f"{what} must name at least one.")
    if len(set(listed)) != len(listed):
        raise InputError(f"{what} must not name anything twice.")
    return listed


def encode(
    given: Columns, rows: Sequence[Any], columns: Sequence[Any], drop: bool
) -> tuple[Wholes, Wholes, Floats]:
    """Return individuals and cells by number, and weights.

    Raises:
        InputError: when lengths differ, something is missing, or a record is outside the grid.
    """
    individual = number_values(given.individual)
    row = _place(given.row, rows, "row", drop)
    column = _place(given.column, columns, "column", drop)
    weight = _weights(given.weight, len(individual))
    lengths = {len(individual), len(row), len(column), len(weight)}
    if len(lengths) > 1:
        raise InputError(
            "individual, row, column and weight must be equally long; they have "
            f"{len(individual):,}, {len(row):,}, {len(column):,} and {len(weight):,} entries."
        )
    inside = (row >= 0) & (column >= 0)
    cell = row * len(columns) + column
    if inside.all():
        return individual, cell, weight
    return individual[inside], cell[inside], weight[inside]


def _arrow(values: Any, what: str) -> Any:
    import pyarrow as pa

    try:
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if not isinstance(values, pa.Array):
            values = pa.array(values)
    except (pa.ArrowException, TypeError, ValueError):
        raise_alone(InputError(f"The column {what} must be a list or array of one type."))
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if values.null_count:
        raise InputError(f"The column {what} has {values.null_count:,} missing values.")
    return values


def number_values(values: Any) -> Wholes:
    """Number the individuals in order of appearance."""
    coded = _arrow(values, "individual").dictionary_encode()
    return np.asarray(coded.indices).astype(np.int64)


def _place(values: Any, names: Sequence[Any], what: str, drop: bool) -> Wholes:
    """Return the place of each value among the names; -1 where it is none of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _arrow(values, what)
    if isinstance(names, range) and pa.types.is_integer(column.type):
        found = np.asarray(column).astype(np.int64)
        found = np.where((found >= 0) & (found < len(names)), found, -1)
    else:
        if pa.types.is_null(column.type):
            return np.zeros(0, dtype=np.int64)
        try:
            known = pa.array(list(names)).cast(column.type)
        except (pa.ArrowException, TypeError, ValueError):
            raise_alone(
                InputError(f"The column {what} and the names of the grid are of different types.")
            )
        found = np.asarray(pc.fill_null(pc.index_in(column, value_set=known), -1))
        found = found.astype(np.int64)
    strange = np.flatnonzero(found < 0)
    if len(strange) and not drop:
        raise InputError(
            f"The {what} of record {strange[0]:,} (and of {len(strange) - 1:,} others) is not in "
            f"the declared grid. Declare it, or leave such records out with outside='drop'."
        )
    return found


def _weights(values: Any, count: int) -> Floats:
    if values is None:
        return np.ones(count)
    column = _arrow(values, "weight")
    try:
        weight = np.asarray(column).astype(np.float64)
    except (TypeError, ValueError):
        raise_alone(InputError("The column weight must hold numbers."))
    wrong = np.flatnonzero(~np.isfinite(weight))
    if len(wrong):
        raise InputError(
            f"The weight of record {wrong[0]:,} (and of {len(wrong) - 1:,} others) is not finite."
        )
    return weight


def read_matrix(matrix: Any) -> tuple[Wholes, Wholes, Floats, tuple[int, int]]:
    """Return row, column and weight of the entries that are not zero, and the shape.

    Raises:
        InputError: when it is not a matrix of finite numbers.
    """
    try:
        if hasattr(matrix, "tocoo"):
            sparse = matrix.tocoo()
            row, column, weight, shape = sparse.row, sparse.col, sparse.data, sparse.shape
        else:
            dense = np.asarray(matrix, dtype=np.float64)
            if dense.ndim != 2 or not dense.size:
                raise ValueError
            row, column = np.nonzero(dense)
            weight, shape = dense[row, column], dense.shape
        weight = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise_alone(InputError("A matrix of numbers is needed, with at least one cell."))
    if not np.isfinite(weight).all():
        raise InputError("Every weight of the matrix must be finite.")
    size = int(shape[0]), int(shape[1])
    return np.asarray(row, dtype=np.int64), np.asarray(column, dtype=np.int64), weight, size


def open_file(path: str | Path) -> Any:
    """Read a CSV or Parquet file as an Arrow table.

    Raises:
        InputError: when it cannot be read.
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    name = str(path)
    try:
        if name.endswith((".parquet", ".pq")):
            return parquet.read_table(name)
        return csv.read_csv(name)
    except OSError as error:
        raise_alone(InputError(f"{name} cannot be read: {error.strerror or 'input error'}."))
    except pa.ArrowException:
        # Its message quotes the row that it failed on.
        raise_alone(InputError(f"{name} cannot be read as a table of CSV or Parquet."))
