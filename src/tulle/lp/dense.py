"""A factorisation of dense symmetric matrices of our own.

The matrices are small, and the threads of the usual library wait for each other whenever the
machine has something else to do (seen to take a hundred times as long).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.compiled import compiled

Array = npt.NDArray[Any]


@compiled
def factorise(matrix: Array, signs: Array) -> None:
    """Put L of the factors L·diag(signs)·L' into the lower half, eight columns at a time.

    ``signs`` holds 1 and -1: where they are all 1 this is Cholesky's factorisation. A matrix whose
    part with sign 1 is positive and whose part with sign -1 is negative definite has such factors
    in any order (Vanderbei, "Symmetric quasidefinite matrices", 1995). A pivot that rounding has
    made too small is set to a huge number: that variable then stays where it is.
    """
    count = len(matrix)
    panel = np.zeros((8, count))
    least = np.empty(count)
    for row in range(count):
        least[row] = 1e-15 * abs(matrix[row, row])
    for first in range(0, count, 8):
        width = min(8, count - first)
        for step in range(width):
            column = first + step
            for row in range(column, count):
                value = matrix[row, column]
                for back in range(first, column):
                    value -= signs[back] * matrix[row, back] * matrix[column, back]
                matrix[row, column] = value
            pivot = signs[column] * matrix[column, column]
            root = np.sqrt(pivot) if pivot > least[column] else 1e100
            matrix[column, column] = root
            for row in range(column + 1, count):
                matrix[row, column] *= signs[column] / root
        for step in range(8):
            for row in range(first + width, count):
                panel[step, row] = matrix[row, first + step] if step < width else 0.0
        sign = np.ones(8)
        sign[:width] = signs[first : first + width]
        for row in range(first + width, count):
            a, b = sign[0] * panel[0, row], sign[1] * panel[1, row]
            c, d = sign[2] * panel[2, row], sign[3] * panel[3, row]
            e, f = sign[4] * panel[4, row], sign[5] * panel[5, row]
            g, h = sign[6] * panel[6, row], sign[7] * panel[7, row]
            for other in range(first + width, row + 1):
                matrix[row, other] -= (
                    (a * panel[0, other] + b * panel[1, other])
                    + (c * panel[2, other] + d * panel[3, other])
                    + (e * panel[4, other] + f * panel[5, other])
                    + (g * panel[6, other] + h * panel[7, other])
                )


@compiled
def solve_factor(factor: Array, signs: Array, vector: Array) -> None:
    """Solve with the factors in place."""
    count = len(factor)
    for row in range(count):
        value = vector[row]
        for column in range(row):
            value -= factor[row, column] * vector[column]
        vector[row] = value / factor[row, row]
    for row in range(count):
        vector[row] *= signs[row]
    for row in range(count - 1, -1, -1):
        vector[row] /= factor[row, row]
        for column in range(row):
            vector[column] -= factor[row, column] * vector[row]
