"""Two attributes counted together when at least one of them reports by support.

For each report there is a vector z, one entry for each category, whose expectation is 1 at the true
answer and 0 elsewhere: for categories as reports the report's column of P⁻¹; for unary encoding
and hashing (support - q) / (p - q). Attributes are perturbed independently, so the mean of the
products z·z' over all clients is an unbiased table. Both z and its square are linear in what is
counted: the reports themselves, or which categories they support and how many there are. So are
the table and, entry by entry, its variance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Floats
from tulle.core.errors import InputError
from tulle.surveys import operators
from tulle.surveys.designs import Design, MatrixDesign
from tulle.surveys.error_law import NormalLaw
from tulle.surveys.frequencies import Target
from tulle.surveys.large import LocalHashing, SupportDesign, UnaryEncoding

Marks = npt.NDArray[np.float32]

_CHUNK_CELLS = 1 << 22


class PairCounts:
    """How often two things were reported together: one axis for each attribute.

    An axis has an entry for each category and, for support designs, a last one for all reports.
    """

    def __init__(self, first: Design, second: Design) -> None:
        self.designs = first, second
        self.counts = np.zeros((_length(first), _length(second)), dtype=np.int64)

    def add(self, first: npt.NDArray[Any], second: npt.NDArray[Any]) -> None:
        """Count two columns of reports of the same clients."""
        step = max(1, _CHUNK_CELLS // sum(self.counts.shape))
        for start in range(0, len(first), step):
            ours = _marks(self.designs[0], first[start : start + step])
            theirs = _marks(self.designs[1], second[start : start + step])
            # Sums of at most 2**22 ones are exact in single precision.
            self.counts += np.rint(ours.T @ theirs).astype(np.int64)

    def turned(self) -> PairCounts:
        """Return the same counts with the attributes in the other order."""
        other = PairCounts(self.designs[1], self.designs[0])
        other.counts += self.counts.T
        return other

    def shares(self, responses: int) -> Floats:
        """Return the unbiased shares of all combinations."""
        return self._transform(_unbias) / responses

    def law(self, responses: int, target: Target) -> NormalLaw:
        """Return the law of the errors of :meth:`shares`.

        Raises:
            InputError: for the population, when there is only one response.
        """
        shares = self.shares(responses)
        squares = self._transform(_unbias_squared) / responses
        if target == "population":
            if responses < 2:
                raise InputError("A population needs at least two responses to show its spread.")
            variances = np.maximum(squares - shares**2, 0.0) / (responses - 1)
        else:
            variances = np.maximum(squares - shares, 0.0) / responses
        first, second = (_largest(design) for design in self.designs)
        return NormalLaw.of(np.sqrt(variances), 2 * first * second / responses)

    def _transform(self, along: Any) -> Floats:
        left, right = (along(design) for design in self.designs)
        return np.asarray(left @ self.counts.astype(np.float64) @ right.T, dtype=np.float64)


def _length(design: Design) -> int:
    return design.categories + isinstance(design, SupportDesign)


def _marks(design: Design, column: npt.NDArray[Any]) -> Marks:
    """Return which entries of an axis each report counts for, as zeros and ones."""
    marks = np.zeros((len(column), _length(design)), dtype=np.float32)
    if isinstance(design, UnaryEncoding):
        marks[:, :-1] = np.unpackbits(column, axis=1, count=design.categories)
        marks[:, -1] = 1
    elif isinstance(design, LocalHashing):
        marks[:, :-1] = _hashed(design, column)
        marks[:, -1] = 1
    else:
        marks[np.arange(len(column)), column] = 1
    return marks


def _hashed(design: LocalHashing, column: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which categories each pair of hash function and bucket supports."""
    rows, buckets = np.divmod(column.astype(np.int64), design.buckets)
    categories = np.arange(design.categories)
    totals = np.zeros((len(column), design.categories), dtype=np.int64)
    for _ in range(design.digits):
        totals += np.outer(rows % design.buckets, categories % design.buckets)
        rows, categories = rows // design.buckets, categories // design.buckets
    return np.asarray(totals % design.buckets == buckets[:, None])


def _unbias(design: Design) -> Floats:
    """Return the matrix that takes counts along an axis to sums of z."""
    if isinstance(design, MatrixDesign):
        return operators.inverse_of(design)
    other, gap = _chances(design)
    size = design.categories
    return np.hstack([np.eye(size) / gap, np.full((size, 1), -other / gap)])


def _unbias_squared(design: Design) -> Floats:
    """Return the matrix that takes counts along an axis to sums of z²."""
    if isinstance(design, MatrixDesign):
        return np.asarray(operators.inverse_of(design) ** 2, dtype=np.float64)
    other, gap = _chances(design)
    size = design.categories
    # (s - q)² = (1 - 2q)·s + q² for s of 0 or 1.
    return np.hstack([np.eye(size) * (1 - 2 * other), np.full((size, 1), other**2)]) / gap**2


def _largest(design: Design) -> float:
    """Return the largest size of an entry of z."""
    if isinstance(design, MatrixDesign):
        return float(np.abs(operators.inverse_of(design)).max())
    other, gap = _chances(design)
    return max(other, 1 - other) / gap


def _chances(design: Design) -> tuple[float, float]:
    assert isinstance(design, SupportDesign)
    return float(design.support_other), float(design.support_true - design.support_other)
