"""Participants and tuples that look alike are solved as one.

Colour refinement: every row starts with the colour of its capacity, every column with that of its
weight, and both are refined by the multiset of the colours they touch until nothing splits. The
resulting partition is equitable, and averaging any solution over its classes keeps it feasible and
its value the same, for the primal and for the dual (Grohe, Kersting, Mladenov and Selman,
"Dimension reduction via colour refinement", 2014). So one row per class with the capacity of all
its members, and one column per class with the weight of all its members, have the same optimum.
A column keeps one entry per member row, so a class may be named several times.

Colours are 64-bit hashes. A collision would merge what differs; the bounds would still be true,
being worked out on the unreduced problem, and the solver then starts again without this step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.compiled import compiled

Array = npt.NDArray[Any]

_ROUNDS = 60


@compiled
def _mix(word: np.uint64) -> np.uint64:
    """Scramble 64 bits (the finaliser of splitmix64)."""
    word ^= word >> np.uint64(30)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    word ^= word >> np.uint64(27)
    word *= np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    return word


@compiled
def _refine(
    offsets: Array, rows: Array, weight_bits: Array, row_colours: Array, column_colours: Array
) -> None:
    """Refine both colourings once, in place."""
    touched = np.zeros(len(row_colours), np.uint64)
    for column in range(len(weight_bits)):
        colour = np.uint64(0)
        for place in range(offsets[column], offsets[column + 1]):
            colour += _mix(row_colours[rows[place]])
        colour = _mix(colour ^ _mix(weight_bits[column] + np.uint64(1)))
        column_colours[column] = colour
        seen = _mix(colour + np.uint64(2))
        for place in range(offsets[column], offsets[column + 1]):
            touched[rows[place]] += seen
    for row in range(len(row_colours)):
        row_colours[row] = _mix(touched[row] ^ _mix(row_colours[row] + np.uint64(3)))


def refine(offsets: Array, rows: Array, weights: Array, marks: Array) -> tuple[Array, Array] | None:
    """Return the class of every row and column, numbered from zero; None if nothing merges.

    ``marks`` tells rows apart from the start: their capacities, for one.
    """
    # Adding zero turns -0.0 into 0.0, which has other bits and the same meaning.
    row_colours = (marks + 0.0).view(np.uint64).copy()
    weight_bits = (weights + 0.0).view(np.uint64)
    column_colours = np.zeros(len(weights), np.uint64)
    classes = len(np.unique(row_colours))
    for _ in range(_ROUNDS):
        _refine(offsets, rows, weight_bits, row_colours, column_colours)
        refined = len(np.unique(row_colours))
        if refined == classes:
            break
        classes = refined
    else:
        # Not yet stable: an unfinished partition is not equitable, so nothing may merge.
        return None
    if classes == len(marks):
        return None
    # The columns were coloured by the rows before the last round, which split nothing.
    row_class = np.unique(row_colours, return_inverse=True)[1]
    column_class = np.unique(column_colours, return_inverse=True)[1]
    return row_class.astype(np.int32), column_class.astype(np.int32)


@compiled
def collapse(
    offsets: Array, rows: Array, weights: Array, row_class: Array, column_class: Array, columns: int
) -> tuple[Array, Array, Array]:
    """Return one column per class, with the weight of all: (offsets, rows, weights)."""
    first = np.full(columns, -1, np.int64)
    totals = np.zeros(columns)
    for column in range(len(weights)):
        group = column_class[column]
        totals[group] += weights[column]
        if first[group] < 0:
            first[group] = column
    starts = np.zeros(columns + 1, np.int64)
    for group in range(columns):
        starts[group + 1] = starts[group] + offsets[first[group] + 1] - offsets[first[group]]
    entries = np.empty(starts[columns], np.int32)
    for group in range(columns):
        shift = offsets[first[group]] - starts[group]
        for place in range(starts[group], starts[group + 1]):
            entries[place] = row_class[rows[place + shift]]
    return starts, entries, totals
