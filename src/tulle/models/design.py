"""From a question and public facts to whole-number rows and exact sums of their products.

Every column is scaled to [-1, 1] by its declared bounds, clipped, and rounded to a multiple of
2**-bits. From then on a row is a vector of whole numbers, and so are the sums: what one person
moves is bounded exactly, whatever floating point does elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.core.dataset import Facts
from tulle.core.errors import QueryError
from tulle.models.data import Table

if TYPE_CHECKING:
    from tulle.models.queries import Regression


MOST_BITS = 16
_CHUNK = 2**18
_MOST_FEATURES = 2000


@dataclass(frozen=True)
class Frame:
    """The public shape of a regression: which columns, how they are scaled, what a row may be."""

    features: tuple[str, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    target: str
    target_low: float
    target_high: float
    sensitive: tuple[bool, ...]
    """For each feature, whether it is sensitive."""
    gamma: Fraction
    intercept: bool
    norm: float | None
    logistic: bool
    unit: str
    rows: int | None
    """The number of rows, or a guess at it; None when nothing is known."""

    @property
    def count(self) -> int:
        """The number of features."""
        return len(self.features)

    @property
    def size(self) -> int:
        """The number of coefficients, the intercept included."""
        return self.count + self.intercept

    @property
    def length_squared(self) -> Fraction:
        """The largest squared length of a scaled row, the intercept left out."""
        box = Fraction(self.count)
        return box if self.norm is None else min(box, Fraction(self.norm) ** 2)

    def transform(self) -> Floats:
        """Return the matrix from scaled coefficients to intercept and coefficients in own units.

        Logistic models keep the log-odds; linear ones scale the target back too, but for its
        middle, which :meth:`offset` adds.
        """
        halves = np.array(self.highs) / 2 - np.array(self.lows) / 2
        middles = np.array(self.highs) / 2 + np.array(self.lows) / 2
        matrix = np.zeros((self.count + 1, self.size))
        matrix[1:, self.intercept :] = np.diag(1 / halves)
        matrix[0, self.intercept :] = -middles / halves
        if self.intercept:
            matrix[0, 0] = 1.0
        if self.logistic:
            return matrix
        return np.asarray(matrix * (self.target_high / 2 - self.target_low / 2))

    def offset(self) -> Floats:
        """Return what is added after :meth:`transform`."""
        found = np.zeros(self.count + 1)
        if not self.logistic:
            found[0] = self.target_high / 2 + self.target_low / 2
        return found


def frame_of(query: Regression, facts: Facts, unit: str) -> Frame:
    """Return the public shape of a question.

    Raises:
        QueryError: when a column is not in the table, or a logistic target has not two classes.
    """
    bounds: dict[str, Any] = facts["bounds"]
    classes: dict[str, Any] = facts["classes"]
    target = query.target
    if target not in bounds:
        raise QueryError(f"The table has no column {target!r} to predict.{_listed(bounds)}")
    if query.of_classes and len(classes.get(target, ())) != 2:
        raise QueryError(
            f"A logistic model needs a target with two declared classes; {target!r} has none. "
            "Declare them in the table's classes=."
        )
    spread = {
        name: [f"{name}={value}" for value in listed[1:]] if len(listed) > 2 else [name]
        for name, listed in classes.items()
    }
    names = [name for name in bounds if name != target]
    if query.features is not None:
        names = [made for name in query.features for made in spread.get(name, [name])]
    hidden = {made for name in query.sensitive for made in spread.get(name, [name])}
    for name in (*names, *hidden):
        if name not in bounds or name == target:
            raise QueryError(f"The table has no feature {name!r}.{_listed(bounds)}")
    if not names:
        raise QueryError("A model needs at least one feature.")
    if len(names) > _MOST_FEATURES:
        raise QueryError(f"A model may have at most {_MOST_FEATURES:,} features.")
    if not hidden <= set(names):
        raise QueryError("A sensitive column is not among the features.")
    return Frame(
        tuple(names),
        tuple(float(bounds[name][0]) for name in names),
        tuple(float(bounds[name][1]) for name in names),
        target,
        float(bounds[target][0]),
        float(bounds[target][1]),
        tuple(name in hidden for name in names),
        query.ratio,
        query.intercept,
        query.norm,
        query.of_classes,
        unit,
        facts["rows"],
    )


def _listed(bounds: dict[str, Any]) -> str:
    return f" It has: {', '.join(bounds)}." if len(bounds) <= 40 else ""


def scale_column(values: Floats, low: float, high: float, grid: int) -> Floats:
    """Return whole numbers from -grid to grid: clipped, scaled and rounded, one value at a time."""
    half, middle = high / 2 - low / 2, high / 2 + low / 2
    scaled = (np.clip(values, low, high) - middle) / half
    rounded: Floats = np.rint(np.clip(scaled, -1.0, 1.0) * grid)
    return rounded


def whole_rows(frame: Frame, table: Table, bits: int) -> tuple[Floats, Floats]:
    """Return features (with the intercept's column first) and targets, in steps of 2**-bits.

    The numbers are whole, held as floats so that products of matrices are fast; they are exact as
    long as they stay below 2**53. Each row depends on that person's values alone. Within the norm
    holds exactly: lengths are compared as whole numbers, and entries are cut towards zero.
    """
    grid = 1 << bits
    found = np.empty((table.rows(), frame.size), dtype=np.float64)
    if frame.intercept:
        found[:, 0] = grid
    places = zip(frame.features, frame.lows, frame.highs, strict=True)
    for place, (name, low, high) in enumerate(places, start=int(frame.intercept)):
        found[:, place] = scale_column(table.column(name), low, high, grid)
    if frame.norm is not None:
        features = found[:, int(frame.intercept) :]
        # At most 2000 squares of at most 2**32: exact.
        squares = np.einsum("ij,ij->i", features, features)
        limit = isqrt(int(Fraction(frame.norm) ** 2 * grid**2))
        over = squares > float(limit) ** 2
        factor = limit / np.sqrt(squares[over]) * (1 - 2.0**-40)
        features[over] = np.trunc(features[over] * factor[:, None])
    target = scale_column(table.column(frame.target), frame.target_low, frame.target_high, grid)
    return found, target


def moments(frame: Frame, table: Table, bits: int) -> tuple[Wholes, Wholes]:
    """Return the sums of products of features, and of features with the target; exactly.

    In units of 2**(-2·bits). Parts of 2**18 rows have sums below 2**53, so that floats hold them
    exactly whatever the order of summation; parts are added as 64-bit whole numbers.
    """
    features, target = whole_rows(frame, table, bits)
    products: Wholes = np.zeros((frame.size, frame.size), dtype=np.int64)
    crossed: Wholes = np.zeros(frame.size, dtype=np.int64)
    for start in range(0, len(target), _CHUNK):
        part = features[start : start + _CHUNK]
        products += (part.T @ part).astype(np.int64)
        crossed += (part.T @ target[start : start + _CHUNK]).astype(np.int64)
    return products, crossed
