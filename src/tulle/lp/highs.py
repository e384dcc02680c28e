"""The simplex method of HiGHS, for what is small or stubborn.

Nothing it reports is believed: the caller gets vectors, and certifies them. Presolve stays off
because vectors mapped back from a presolved model were seen to be percents off.
"""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np

from tulle.core.arrays import Array


def minimise(
    cost: Array,
    upper: Array,
    row_lower: Array,
    row_upper: Array,
    starts: Array,
    indices: Array,
    values: Array,
) -> tuple[Array, Array]:
    """Minimise cost·x, 0 <= x <= upper, row_lower <= A x <= row_upper (A by columns).

    Returns (x, row multipliers), whatever HiGHS thinks of them.
    """
    model = highspy.HighsLp()
    model.num_col_ = len(cost)
    model.num_row_ = len(row_lower)
    model.col_cost_ = cost
    model.col_lower_ = np.zeros(len(cost))
    model.col_upper_ = upper
    model.row_lower_ = row_lower
    model.row_upper_ = row_upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = starts.astype(np.int32)
    model.a_matrix_.index_ = indices.astype(np.int32)
    model.a_matrix_.value_ = values
    create: Any = highspy.Highs
    solver = create()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("presolve", "off")
    solver.setOptionValue("solver", "simplex")
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("primal_feasibility_tolerance", 1e-10)
    solver.setOptionValue("dual_feasibility_tolerance", 1e-10)
    solver.passModel(model)
    solver.run()
    solution = solver.getSolution()
    return np.array(solution.col_value), np.array(solution.row_dual)


def packing_vectors(
    offsets: Array, rows: Array, weights: Array, capacities: Array
) -> tuple[Array, Array]:
    """Return (levels, prices) of the packing problem with these columns."""
    levels, multipliers = minimise(
        np.full(len(weights), -1.0),
        weights,
        np.full(len(capacities), -highspy.kHighsInf),
        capacities,
        *_counted(offsets, rows, len(capacities)),
    )
    return levels, np.maximum(-multipliers, 0.0)


def deletion_vectors(
    offsets: Array,
    rows: Array,
    weights: Array,
    capacities: Array,
    sizes: Array,
    deletable: Array,
    binding: Array,
) -> tuple[Array, Array, Array]:
    """Return (deletions, multipliers of loads, multipliers of covers) of the deletion problem.

    Variables: the deletions, then the remainders. Rows: the loads, then the covers.
    """
    row_count, columns = len(capacities), len(weights)
    starts, indices, times = _counted(offsets, rows, row_count)
    owner = np.repeat(np.arange(columns), np.diff(starts))
    by_row = np.argsort(indices, kind="stable")
    deletion_starts = np.concatenate([[0], np.cumsum(np.bincount(indices, minlength=row_count))])
    remainder_lengths = np.diff(starts) + 1
    remainder_starts = np.concatenate([[0], np.cumsum(remainder_lengths)])
    remainder_rows = np.insert(indices, starts[1:], row_count + np.arange(columns))
    remainder_values = np.insert(times * weights[owner], starts[1:], 1.0)
    infinity = highspy.kHighsInf
    vector, multipliers = minimise(
        np.concatenate([sizes, np.zeros(columns)]),
        np.concatenate([np.where(deletable, 1.0, 0.0), np.ones(columns)]),
        np.concatenate([np.full(row_count, -infinity), np.ones(columns)]),
        np.concatenate([np.where(binding, capacities, infinity), np.full(columns, infinity)]),
        np.concatenate([deletion_starts, deletion_starts[-1] + remainder_starts[1:]]),
        np.concatenate([row_count + owner[by_row], remainder_rows]),
        np.concatenate([times[by_row], remainder_values]),
    )
    return (
        vector[:row_count],
        np.maximum(-multipliers[:row_count], 0.0),
        np.maximum(multipliers[row_count:], 0.0),
    )


def _counted(offsets: Array, rows: Array, count: int) -> tuple[Array, Array, Array]:
    """Turn entries named several times by one column into one entry with that value."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    keys, times = np.unique(owner * count + rows, return_counts=True)
    starts = np.searchsorted(keys, np.arange(len(offsets)) * count)
    return starts.astype(np.int64), keys % count, times.astype(np.float64)
