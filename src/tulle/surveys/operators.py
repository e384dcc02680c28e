"""Design matrices as linear maps along one axis of a table: Kronecker products never formed.

A table over several attributes is a tensor with one axis each. The law of its reports is the
Kronecker product of the designs, which acts axis by axis; so do its inverse, its transpose and
the matrix of its squared entries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tulle.core.arrays import Floats
from tulle.surveys.designs import MatrixDesign, RandomizedResponse

Designs = Sequence[MatrixDesign]


def matrix_of(design: MatrixDesign) -> Floats:
    """Return P[report, answer] as floats."""
    return _kept(design, "_matrix", _make_matrix)


def inverse_of(design: MatrixDesign) -> Floats:
    """Return the inverse of P as floats."""
    return _kept(
        design,
        "_inverse",
        lambda each: np.asarray(np.linalg.inv(matrix_of(each)), dtype=np.float64),
    )


def _kept(design: MatrixDesign, name: str, make: Callable[[MatrixDesign], Floats]) -> Floats:
    # A frozen design is hashable, but hashing its fractions would cost more than the lookup.
    store: dict[str, Any] = design.__dict__
    if name not in store:
        store[name] = make(design)
    found: Floats = store[name]
    return found


def _make_matrix(design: MatrixDesign) -> Floats:
    size = range(design.categories)
    return np.array([[float(design.probability(u, v)) for v in size] for u in size])


def _equal(tensor: Floats, axis: int, diagonal: float, other: float) -> Floats:
    """Apply the matrix with one value on its diagonal and another elsewhere."""
    total = tensor.sum(axis=axis, keepdims=True)
    result: Floats = (diagonal - other) * tensor + other * total
    return result


def _dense(tensor: Floats, axis: int, matrix: Floats) -> Floats:
    return np.moveaxis(np.tensordot(matrix, tensor, axes=(1, axis)), 0, axis)


def _inverse_entries(design: RandomizedResponse) -> tuple[float, float]:
    # P = (p - q)·I + q·J with columns that sum to one has the inverse (I - q·J) / (p - q).
    gap = design.same - design.other
    return float((1 - design.other) / gap), float(-design.other / gap)


def _entries(design: RandomizedResponse) -> tuple[float, float]:
    return float(design.same), float(design.other)


def _along_each_axis(
    designs: Designs,
    tensor: Floats,
    entries: Callable[[RandomizedResponse], tuple[float, float]],
    matrix: Callable[[MatrixDesign], Floats],
) -> Floats:
    """Multiply each axis by its design's matrix; of randomized response, two numbers say it all."""
    for axis, design in enumerate(designs):
        if isinstance(design, RandomizedResponse):
            tensor = _equal(tensor, axis, *entries(design))
        else:
            tensor = _dense(tensor, axis, matrix(design))
    return tensor


def apply(designs: Designs, tensor: Floats) -> Floats:
    """Return P·tensor: expected shares of reports from shares of answers."""
    return _along_each_axis(designs, tensor, _entries, matrix_of)


def apply_transposed(designs: Designs, tensor: Floats) -> Floats:
    """Return Pᵀ·tensor."""
    return _along_each_axis(designs, tensor, _entries, lambda design: matrix_of(design).T)


def solve(designs: Designs, tensor: Floats) -> Floats:
    """Return P⁻¹·tensor: unbiased shares of answers from shares of reports."""
    return _along_each_axis(designs, tensor, _inverse_entries, inverse_of)


def solve_transposed(designs: Designs, tensor: Floats) -> Floats:
    """Return P⁻ᵀ·tensor."""
    return _along_each_axis(designs, tensor, _inverse_entries, lambda design: inverse_of(design).T)


def solve_squared(designs: Designs, tensor: Floats) -> Floats:
    """Return (P⁻¹ with squared entries)·tensor; the square of a Kronecker product is one too."""

    def squares(design: RandomizedResponse) -> tuple[float, float]:
        diagonal, other = _inverse_entries(design)
        return diagonal**2, other**2

    return _along_each_axis(designs, tensor, squares, lambda design: inverse_of(design) ** 2)


def solve_ranges(designs: Designs) -> Floats:
    """Return, for each entry of the table, the range of that row of P⁻¹: largest less smallest.

    It is what one report, changed at will, can move the entry of :func:`solve` by, times the
    number of reports.
    """
    low = high = np.ones(())
    for design in designs:
        if isinstance(design, RandomizedResponse):
            diagonal, other = _inverse_entries(design)
            ends = np.full(design.categories, other), np.full(design.categories, diagonal)
        else:
            inverse = inverse_of(design)
            ends = inverse.min(axis=1), inverse.max(axis=1)
        # Products over a box are extreme at its corners.
        corners = [np.multiply.outer(a, b) for a in (low, high) for b in ends]
        low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
    return high - low
