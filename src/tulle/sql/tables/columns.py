"""Columns of noisy numbers: what is computed with them, and how far off the result may be.

A column has a number for each row of the answer (NaN is NULL), the ends of an interval, and the
slope in each of the noisy numbers that it is made of. Products and quotients are corrected for what
noise does to them on average, as :mod:`tulle.core.expression_error` explains. Intervals are
computed by interval arithmetic: whatever lies in the intervals of the parts, the result lies in
that of the whole, so it holds whenever those of the parts hold together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Floats

OTHERS = ", in other rows"
"""Ends the name of a noisy number whose noise is that of other rows than the one it is used in."""


@dataclass(frozen=True)
class Column:
    """Noisy numbers, one for each row; see the module's text."""

    value: Floats
    low: Floats
    high: Floats
    slopes: Mapping[str, Floats] = field(default_factory=dict)
    known: bool = False
    """Whether the truth is a number in every row: a COUNT or a SUM, which is 0 without rows."""
    kind: str = ""
    """Of dates and timestamps, which they are; empty for numbers."""

    @classmethod
    def exact(cls, value: Any, size: int) -> Column:
        """Return public numbers, or one number for all rows."""
        numbers = np.broadcast_to(np.asarray(value, dtype=np.float64), (size,)).copy()
        return cls(numbers, numbers, numbers)

    def within(self, low: float, high: float) -> Column:
        """Return the column when the truth is known to lie between two public ends."""
        return replace(
            self,
            value=np.clip(self.value, low, high),
            low=np.clip(self.low, low, high),
            high=np.clip(self.high, low, high),
        )

    def where(self, known: npt.NDArray[np.bool_]) -> Column:
        """Return the column with NULL in all other rows."""
        return replace(self, value=np.where(known, self.value, np.nan))


class Arithmetic:
    """Computes with columns; ``variances`` are those of the noisy numbers, by name."""

    def __init__(self, variances: Mapping[str, float]) -> None:
        self._variances = variances

    def add(self, left: Column, right: Column, sign: float = 1.0) -> Column:
        """Return left plus sign times right."""
        low, high = (right.low, right.high) if sign > 0 else (-right.high, -right.low)
        return Column(
            left.value + sign * right.value,
            _known(left.low + low, -np.inf),
            _known(left.high + high, np.inf),
            mixed(left.slopes, 1.0, right.slopes, sign),
        )

    def multiply(self, left: Column, right: Column) -> Column:
        """Return the product, less what noise that both sides share adds to it."""
        ends = [_product(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
        return Column(
            left.value * right.value - self._shared(left, right),
            np.minimum.reduce(ends),
            np.maximum.reduce(ends),
            mixed(left.slopes, right.value, right.slopes, left.value),
        )

    def square(self, inner: Column) -> Column:
        """Return the square, which is not below zero."""
        product = self.multiply(inner, inner)
        straddles = (inner.low <= 0) & (inner.high >= 0)
        squares = np.stack([_product(end, end) for end in (inner.low, inner.high)])
        low = np.where(straddles, 0.0, squares.min(axis=0))
        return replace(product, low=low, high=squares.max(axis=0))

    def divide(self, left: Column, right: Column) -> Column:
        """Return l·r / (r² + v), v the variance of r; NULL where r is zero."""
        variance = np.zeros_like(right.value) + sum(
            slope * slope * self._variance(name) for name, slope in right.slopes.items()
        )
        square = right.value * right.value + variance
        safe = np.where(square > 0, square, 1.0)
        value = (left.value * right.value + self._shared(left, right)) / safe
        inverse = right.value / safe
        low, high = _quotient(left, right)
        return Column(
            np.where(right.value == 0, np.nan, value),
            low,
            high,
            mixed(left.slopes, inverse, right.slopes, -value * inverse),
        )

    def root(self, inner: Column) -> Column:
        """Return the square root; NULL below zero."""
        value = np.sqrt(np.where(inner.value >= 0, inner.value, np.nan))
        slope = np.where(value > 0, 0.5 / np.where(value > 0, value, 1.0), 0.0)
        return Column(
            value,
            np.sqrt(np.maximum(inner.low, 0.0)),
            np.sqrt(np.maximum(inner.high, 0.0)),
            {name: one * slope for name, one in inner.slopes.items()},
        )

    def _shared(self, left: Column, right: Column) -> Any:
        names = left.slopes.keys() & right.slopes.keys()
        return sum(left.slopes[name] * right.slopes[name] * self._variance(name) for name in names)

    def _variance(self, name: str) -> float:
        return self._variances.get(name.removesuffix(OTHERS), 0.0)


def _known(ends: Floats, unknown: float) -> Floats:
    return np.where(np.isnan(ends), unknown, ends)


def _product(one: Floats, other: Floats) -> Floats:
    with np.errstate(invalid="ignore", over="ignore"):
        # Zero times something without end: the corner next to it says how far it goes.
        found: Floats = np.where((one == 0) | (other == 0), 0.0, one * other)
    return found


def _quotient(left: Column, right: Column) -> tuple[Floats, Floats]:
    low, high = np.full_like(right.low, -np.inf), np.full_like(right.high, np.inf)
    apart = (right.low > 0) | (right.high < 0)
    with np.errstate(all="ignore"):
        corners = np.stack([a / b for a in (left.low, left.high) for b in (right.low, right.high)])
        sure = apart & ~np.isnan(corners).any(axis=0)
        low = np.where(sure, corners.min(axis=0), low)
        high = np.where(sure, corners.max(axis=0), high)
        # Two numbers of one sign have a quotient above zero, however small the divisor.
        touches = ~sure & (left.low >= 0) & (right.low >= 0)
        low = np.where(touches, np.where(np.isinf(right.high), 0.0, left.low / right.high), low)
    return _known(low, -np.inf), _known(high, np.inf)


def mixed(first: Mapping[str, Any], by: Any, second: Mapping[str, Any], and_by: Any) -> Any:
    """Return the slopes of a sum of two columns, each times something."""
    found = {name: slope * by for name, slope in first.items()}
    for name, slope in second.items():
        found[name] = found.get(name, 0.0) + slope * and_by
    return found
