"""The largest singular values and vectors of a large matrix, dense or with few cells that count."""

from __future__ import annotations

from typing import Any

import numpy as np

from tulle.core.arrays import Floats

Parts = tuple[Floats, Floats, Floats]
"""Left vectors as columns, singular values, right vectors as rows."""

SMALL = 256
"""Matrices whose shorter side is at most this are decomposed in full."""

_SPARE = 10
"""So many directions more than wanted are followed."""

_PASSES = 8
"""How often the matrix is applied: noise makes for a flat spectrum, which needs many."""

_FEW = 0.15
"""With a smaller share of cells that are not zero a matrix is taken as sparse."""


def largest_parts(matrix: Floats, count: int) -> Parts:
    """Return the ``count`` largest parts; for large matrices nearly, by a randomised range finder.

    Post-processing: the directions to start from are signs that follow from a fixed rule, so that
    one release gives one result.

    Reference:
        Halko, Martinsson & Tropp, Finding structure with randomness, 2011, algorithm 4.4.

    Example:
        >>> u, s, v = largest_parts(np.diag([9.0, 4.0, *[1.0] * 400]), 2)
        >>> s.round(6).tolist()
        [9.0, 4.0]
    """
    shorter = min(matrix.shape)
    if shorter <= SMALL or 4 * (count + _SPARE) > shorter:
        u, s, v = np.linalg.svd(matrix, full_matrices=False)
        return u[:, :count], s[:count], v[:count]
    held = _light(matrix)
    basis = held @ _signs(matrix.shape[1], count + _SPARE)
    for _ in range(_PASSES):
        basis, _upper = np.linalg.qr(basis)
        other, _upper = np.linalg.qr(held.T @ basis)
        basis = held @ other
    basis, _upper = np.linalg.qr(basis)
    small, s, v = np.linalg.svd((held.T @ basis).T, full_matrices=False)
    return basis @ small[:, :count], s[:count], v[:count]


def parts_above(matrix: Floats, level: float) -> Parts:
    """Return all parts whose singular value is above a level.

    Example:
        >>> parts_above(np.diag([5.0, 3.0, 1.0]), 2.0)[1].tolist()
        [5.0, 3.0]
    """
    shorter, count = min(matrix.shape), 16
    while True:
        u, s, v = largest_parts(matrix, min(count, shorter))
        if len(s) == shorter or s[-1] <= level:
            kept = int(np.sum(s > level))
            return u[:, :kept], s[:kept], v[:kept]
        count *= 2


def _light(matrix: Floats) -> Any:
    if np.count_nonzero(matrix) > _FEW * matrix.size:
        return matrix
    from scipy.sparse import csr_array

    return csr_array(matrix)


def _signs(rows: int, columns: int) -> Floats:
    """Return signs without any pattern: the top bit of a mixed counter (splitmix64)."""
    mixed = np.arange(1, rows * columns + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    top = (mixed >> np.uint64(63)).astype(np.float64)
    return (2.0 * top - 1.0).reshape(rows, columns)
