"""The noise families: which laws they use, and the public numbers they follow from."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from tulle.core.errors import InputError, QueryError, raise_alone
from tulle.core.mechanism import Terms
from tulle.core.validate import counted, number, rational, text
from tulle.noise.xor.general import Couplings

Family = Literal["optimal", "general"]

LARGEST_PI = 4_096
"""A dense pi may have so many rows; a larger one has to be sparse."""


def read_entries(pi: Any) -> tuple[int, tuple[tuple[int, int, str], ...]]:
    """Return the size of Π and its entries on and above the diagonal, as exact text.

    Raises:
        InputError: when it is not square, not symmetric, or holds anything but finite numbers.
    """
    if hasattr(pi, "tocoo"):
        sparse = pi.tocoo(copy=True)
        sparse.sum_duplicates()
        _check_square(sparse.shape)
        cells = {
            (int(i), int(j)): value
            for i, j, value in zip(sparse.row, sparse.col, sparse.data, strict=True)
        }
        size = int(sparse.shape[0])
    else:
        try:
            dense = np.asarray(pi, dtype=object)
        except ValueError:
            raise_alone(InputError("pi must be a square matrix of finite numbers."))
        _check_square(dense.shape)
        size = len(dense)
        if size > LARGEST_PI:
            raise InputError(
                f"A dense pi may have at most {LARGEST_PI} rows; got {size}. Give it as a sparse "
                "matrix, or as one matrix for a single row."
            )
        cells = {(i, j): dense[i, j] for i in range(size) for j in range(size)}
    read = {(i, j): number(**{f"pi[{i}, {j}]": value}) for (i, j), value in cells.items()}
    exact = {place: value for place, value in read.items() if value != 0}
    if not exact:
        raise InputError("pi must have an entry other than zero: else nothing is released.")
    # Rounding may tear two halves apart that were meant to be equal; their mean has the same law.
    allowed = max(map(abs, exact.values())) / 10**9
    merged = {}
    for (i, j), value in exact.items():
        mirrored = exact.get((j, i), Fraction(0))
        if abs(value - mirrored) > allowed:
            raise InputError("pi must be symmetric. Use (pi + pi.T) / 2, which has the same law.")
        merged[min(i, j), max(i, j)] = (value + mirrored) / 2
    return size, tuple((i, j, text(value)) for (i, j), value in sorted(merged.items()))


def _check_square(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise InputError(f"pi must be a square matrix; its shape is {tuple(shape)}.")


def couplings_for(terms: Terms, entries: Any, size: int) -> tuple[Couplings, bool]:
    """Return Π in whole numbers, and whether it describes a single row.

    Raises:
        QueryError: when its size fits neither a row nor the matrix.
    """
    rows, columns = int(terms.facts["rows"]), int(terms.facts["columns"])
    if size not in (columns, rows * columns):
        raise QueryError(
            f"pi has {counted(size, 'row')}; for a matrix of {rows} x {columns} it must have "
            f"{columns} (the cells of a row) or {rows * columns} (all cells, row by row)."
        )
    return _couplings(size, entries), size == columns


@lru_cache(maxsize=8)
def _couplings(size: int, entries: tuple[tuple[int, int, str], ...]) -> Couplings:
    return Couplings.of(size, [(i, j, rational(value)) for i, j, value in entries])
