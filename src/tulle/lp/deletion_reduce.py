"""Exact reductions of the deletion problem at one threshold.

1. A participant whose load is at most tau never binds. A tuple without a binding participant may
   stay whole and is dropped.
2. If every tuple left of p is also a tuple of p', deleting p' instead of p does at least as much,
   so p need not be deletable (of two with the same tuples, the one numbered lower stays). The cap
   g <= 1 does not hinder: a deletion beyond 1 does no more than 1.
3. Participants that neither bind nor are deletable leave the tuples; tuples with the same
   participants merge; and what colour refinement cannot tell apart becomes one.

As in :mod:`tulle.lp.reduce`, no bound rests on these steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.compiled import compiled
from tulle.lp.problem import PackingProblem
from tulle.lp.reduce import merge, number
from tulle.lp.symmetry import collapse, refine

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class ReducedDeletion:
    """What is left to solve, and how to go back.

    Row ``r`` stands for ``sizes[r]`` participants with ``capacities[r]`` between them. ``shares``
    is each tuple's part of its column's weight.
    """

    offsets: Array
    rows: Array
    weights: Array
    capacities: Array
    sizes: Array
    deletable: Array
    binding: Array
    column_of: Array
    row_of: Array
    shares: Array

    def everyone(self, values: Array) -> Array:
        """Return the value of every participant, given that of every row; zero elsewhere."""
        if not len(values):
            return np.zeros(len(self.row_of))
        return np.where(self.row_of >= 0, values[self.row_of], 0.0)

    def same_in_column(self, values: Array, elsewhere: float) -> Array:
        """Return the value of every tuple's column."""
        if not len(values):
            return np.full(len(self.column_of), elsewhere)
        return np.where(self.column_of >= 0, values[self.column_of], elsewhere)

    def every_tuple(self, values: Array) -> Array:
        """Spread a value of every column over its tuples by weight; zero elsewhere."""
        return self.same_in_column(values, 0.0) * self.shares


def reduce_deletion(
    problem: PackingProblem, tau: float, *, symmetry: bool = True, also: Array | None = None
) -> ReducedDeletion:
    """Return the deletion problem at threshold ``tau`` after all reductions.

    With ``also``, a mask, only these and those who bind may be deleted: not the same problem, but
    one whose deletions are enough for this one too.
    """
    over = problem.loads > tau
    chosen = _relevant(problem.offsets, problem.participants, problem.weights, over)
    if also is None:
        dominated, present = _dominated(
            problem.offsets, problem.participants, chosen, problem.count
        )
        row_of, members = number(present & (over | ~dominated))
    else:
        dominated = np.zeros(problem.count, np.bool_)
        row_of, members = number(over | also)
    offsets, rows, weights, column_of = merge(
        problem.offsets, problem.participants, problem.weights, chosen, row_of
    )
    deletable, binding = ~dominated[members], over[members]
    sizes = np.ones(len(members))
    marks = 2.0 * deletable + binding
    classes = refine(offsets, rows, weights, marks) if symmetry and len(weights) else None
    if classes is not None:
        row_class, column_class = classes
        columns = int(column_class.max()) + 1
        offsets, rows, weights = collapse(offsets, rows, weights, row_class, column_class, columns)
        sizes = np.bincount(row_class).astype(np.float64)
        first = np.unique(row_class, return_index=True)[1]
        deletable, binding = deletable[first], binding[first]
        row_of = np.where(row_of >= 0, row_class[row_of], -1)
        column_of = np.where(column_of >= 0, column_class[column_of], -1)
    shares = problem.weights / weights[column_of] if len(weights) else problem.weights
    return ReducedDeletion(
        offsets,
        rows,
        weights,
        sizes * tau,
        sizes,
        deletable,
        binding,
        column_of,
        row_of,
        shares,
    )


@compiled
def _relevant(offsets: Array, participants: Array, weights: Array, over: Array) -> Array:
    chosen = np.empty(len(weights), np.int64)
    count = 0
    for item in range(len(weights)):
        wanted = False
        for place in range(offsets[item], offsets[item + 1]):
            wanted |= over[participants[place]]
        if wanted and weights[item] > 0.0:
            chosen[count] = item
            count += 1
    return chosen[:count].copy()


@compiled
def _dominated(
    offsets: Array, participants: Array, chosen: Array, count: int
) -> tuple[Array, Array]:
    """Mark whose tuples are all those of someone else, and who has tuples at all.

    The candidates for p are the other members of its first tuple (the first 64 of them), as bits;
    each further tuple of p strikes out those it lacks.
    """
    first = np.full(count, -1, np.int64)
    bits = np.zeros(count, np.uint64)
    tuples = np.zeros(count, np.int64)
    one = np.uint64(1)
    for item in chosen:
        for place in range(offsets[item], offsets[item + 1]):
            participant = participants[place]
            tuples[participant] += 1
            if first[participant] < 0:
                first[participant] = item
                for index in range(min(64, offsets[item + 1] - offsets[item])):
                    if participants[offsets[item] + index] != participant:
                        bits[participant] |= one << np.uint64(index)
            elif bits[participant] != 0:
                base = offsets[first[participant]]
                for index in range(min(64, offsets[first[participant] + 1] - base)):
                    if (bits[participant] >> np.uint64(index)) & one:
                        found = False
                        for other in range(offsets[item], offsets[item + 1]):
                            found |= participants[other] == participants[base + index]
                        if not found:
                            bits[participant] &= ~(one << np.uint64(index))
    dominated = np.zeros(count, np.bool_)
    for participant in range(count):
        if bits[participant] != 0:
            base = offsets[first[participant]]
            for index in range(min(64, offsets[first[participant] + 1] - base)):
                if (bits[participant] >> np.uint64(index)) & one:
                    other = participants[base + index]
                    if tuples[other] > tuples[participant] or other < participant:
                        dominated[participant] = True
    return dominated, tuples > 0
