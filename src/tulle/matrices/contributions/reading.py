"""Columns of any make turned into numbered individuals, cells and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tulle.core import cells, validate
from tulle.core.arrays import Floats, Wholes
from tulle.core.errors import InputError

Names = Sequence[Any] | int


class LongTable(NamedTuple):
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
        return range(validate.whole(at_least=1, at_most=2**31, **{what: names}))
    if isinstance(names, str | bytes) or not hasattr(names, "__iter__"):
        raise InputError(f"{what} must be a list of names, or how many there are.")
    listed = list(names.tolist() if hasattr(names, "tolist") else names)
    if not listed:
        raise InputError(f"{what} must name at least one.")
    written = cells.texts(listed, what)
    if len(set(listed)) != len(listed) or len(written.unique()) != len(listed):
        raise InputError(f"{what} must not name anything twice.")
    if written.null_count:
        raise InputError(f"{what} must not have a name that is missing or empty.")
    return listed


def encode(
    given: LongTable, rows: Sequence[Any], columns: Sequence[Any], drop: bool
) -> tuple[Wholes, Wholes, Floats]:
    """Return individuals and cells by number, and weights.

    Each record is judged by itself: it counts when its individual, row and column are there, the
    latter two in the grid, and its weight is a finite number. With ``drop`` all others are left
    out, whatever is wrong with them, so that no record makes this fail.

    Individuals are numbered in order of appearance. Nothing that is computed depends on that
    order: everybody is cut down alone, and totals are sums of whole numbers.

    Raises:
        InputError: when lengths differ or, without ``drop``, a record does not count.
    """
    individual = cells.codes(given.individual, "individual")
    row = cells.places(given.row, rows, "row")
    column = cells.places(given.column, columns, "column")
    weight: Floats = np.ones(len(individual))
    if given.weight is not None:
        weight = cells.numbers(given.weight, "weight")
    if len({len(individual), len(row), len(column), len(weight)}) > 1:
        raise InputError("individual, row, column and weight must be equally long.")
    finite = np.isfinite(weight)
    good = (individual >= 0) & (row >= 0) & (column >= 0) & finite
    if not good.all():
        if not drop:
            raise InputError(_what_is_wrong(individual, row, column, finite))
        individual, row, column = individual[good], row[good], column[good]
        weight = weight[good]
    return individual, row * len(columns) + column, weight


def _what_is_wrong(individual: Wholes, row: Wholes, column: Wholes, finite: Any) -> str:
    """Say what is wrong with the first record that does not count; nothing of it is quoted."""
    instead = "leave such records out with outside='drop'."
    for name, found in (("row", row), ("column", column)):
        if (found < 0).any():
            return (
                f"The {name} of record {np.argmax(found < 0):,} is missing or not in the declared "
                f"grid. Declare it, or {instead}"
            )
    if (individual < 0).any():
        return (
            f"The individual of record {np.argmax(individual < 0):,} is missing. Say whose it is, "
            f"or {instead}"
        )
    return (
        f"The weight of record {np.argmax(~finite):,} is not finite or not a number. Mend it, or "
        f"{instead}"
    )


def number_values(values: Any) -> Wholes:
    """Number the individuals in order of appearance."""
    return cells.codes(values, "individual")


def read_matrix(matrix: Any) -> tuple[Wholes, Wholes, Floats, tuple[int, int]]:
    """Return row, column and weight of the entries that are not zero, and the shape.

    Raises:
        InputError: when it is not a matrix of finite numbers.
    """
    sparse = hasattr(matrix, "tocoo")
    refusal = "A matrix of numbers is needed, with at least one cell."
    held: Any = matrix.tocoo() if sparse else cells.grid(matrix, refusal)
    if held.dtype.kind not in "biuf" or held.ndim != 2 or not (sparse or held.size):
        raise InputError(refusal)
    row, column = (held.row, held.col) if sparse else np.nonzero(held)
    weight = cells.doubles(held.data if sparse else held[row, column])
    shape = held.shape
    if not np.isfinite(weight).all():
        raise InputError("Every weight of the matrix must be finite.")
    size = int(shape[0]), int(shape[1])
    return np.asarray(row, dtype=np.int64), np.asarray(column, dtype=np.int64), weight, size
