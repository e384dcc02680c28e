"""From a released matrix to unbiased sums and means, with their errors. Costs no privacy.

Noise pulls every share of ones towards one half. What is released has the expectation
flip + (1 - 2·flip)·truth in each cell, so the way back is a subtraction and a division.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Floats
from tulle.core.errors import InputError
from tulle.core.release import Release
from tulle.noise.xor.limits import FlipEstimate

Axis = Literal["rows", "columns", "all"]


def debias(release: Release) -> Floats:
    """Return the matrix with unbiased cells: no longer 0 and 1, but right on average.

    Example:
        >>> import tulle
        >>> r = tulle.release(
        ...     tulle.BinaryMatrix([[0, 1]] * 50), tulle.xor(), unit="cell", epsilon=30.0)
        >>> debias(r).mean(axis=0).round().astype(int).tolist()
        [0, 1]
    """
    value = _matrix(release)
    flips = _cell_flips(release)
    cells: Floats = (value - flips) / (1 - 2 * flips)
    return cells


def sums(release: Release, axis: Axis = "columns") -> FlipEstimate:
    """Estimate how many ones each column, each row or the whole matrix has.

    *Error.* Flips of different lines are independent. Within a line (a row, or a column where its
    flips attract each other) two flips have a known covariance c; a sum over a line of n cells then
    has the variance n·f·(1 - f) + c·((n - 2·ones)² - n), divided by (1 - 2·f)², where f is the flip
    probability. It is stated for the worst number of ones.

    Raises:
        InputError: when it is not an XOR release, or its noise has no law for this sum.

    Example:
        >>> import tulle
        >>> r = tulle.release(
        ...     tulle.BinaryMatrix([[0, 1]] * 50), tulle.xor(), unit="row", epsilon=30.0)
        >>> sums(r).value.round().astype(int).tolist()
        [0, 50]
    """
    if axis not in ("rows", "columns", "all"):
        raise InputError(f"axis must be 'rows', 'columns' or 'all'; got {axis!r}.")
    cells = debias(release)
    error = _deviation(release, axis)
    if axis == "all":
        return FlipEstimate(float(cells.sum()), error)
    return FlipEstimate(cells.sum(axis=0 if axis == "columns" else 1), error)


def means(release: Release, axis: Axis = "columns") -> FlipEstimate:
    """Estimate the share of ones in each column, each row or the whole matrix.

    The estimate may leave [0, 1]; cutting it there makes it closer but no longer unbiased.
    """
    found = sums(release, axis)
    rows, columns = release.parameters["rows"], release.parameters["columns"]
    size = {"columns": rows, "rows": columns, "all": rows * columns}[axis]
    return FlipEstimate(found.value / size, found.error / size)


def _deviation(release: Release, axis: Axis) -> Any:
    known = release.parameters
    rows, columns, lines = int(known["rows"]), int(known["columns"]), known["lines"]
    if "covariance" not in known:
        if axis != "columns" or lines != "rows":
            raise InputError(
                "Of chosen couplings only the law of column sums is worked out, and only when "
                "rows get independent noise (pi for a single row)."
            )
        flips = _cell_flips(release)
        return np.sqrt(rows * flips * (1 - flips)) / np.abs(1 - 2 * flips)
    flip, covariance = float(known["flip"]), float(known["covariance"])
    spread = flip * (1 - flip)
    size = {"columns": rows, "rows": columns, "all": rows * columns}[axis]
    length = {"cells": 1, "rows": columns, "columns": rows}[lines]
    variance = size * spread
    if axis in (lines, "all"):
        # The square (n - 2·ones)² is n² for lines of equal cells, and at least 0.
        worst = max(covariance * (length * length - length), -covariance * length)
        variance += max(worst, 0.0) * (size // length)
    return math.sqrt(variance) / (1 - 2 * flip)


def _cell_flips(release: Release) -> Any:
    """Return the flip probability: one number, or one for each column or cell."""
    known = release.parameters
    if "flips" not in known:
        return float(known["flip"])
    if known["flips"] is None:
        raise InputError(
            "The flip probabilities of this noise were measured, not computed: there is no "
            "unbiased estimate from it."
        )
    flips = np.array(known["flips"], dtype=np.float64)
    if known["lines"] == "matrix":
        flips = flips.reshape(int(known["rows"]), int(known["columns"]))
    if bool((np.abs(1 - 2 * flips) < 1e-12).any()):
        raise InputError("A place is flipped half of the time: the release says nothing of it.")
    return flips


def _matrix(release: Release) -> npt.NDArray[np.uint8]:
    if not isinstance(release, Release) or "flip" not in release.parameters:
        raise InputError("This needs a release of tulle.xor(...).")
    value: npt.NDArray[np.uint8] = np.asarray(release.value)
    if value.shape != (release.parameters.get("rows"), release.parameters.get("columns")):
        raise InputError("This needs a release of a matrix; its value has another shape.")
    return value
