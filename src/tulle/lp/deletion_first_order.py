"""The deletion LP by the same restarted, reflected Halpern primal-dual method.

With sizes ``m`` (how many participants a row stands for), capacities ``b = m tau`` and columns of
weight ``Q``, the saddle point is, over deletions g >= 0, remainders 0 <= z <= 1, and multipliers
w >= 0 (remainder at least 1 - g(t)) and mu >= 0 (load at most the capacity):

    min over g, z; max over w, mu of
    m g + sum_t w_t (1 - z_t - g(t)) + sum_p mu_p (sum_{t with p} Q_t z_t - b_p).

Here g(t) is the sum of g over the rows of column t. A row whose ``deletion_step`` is zero is never
deleted, one whose ``multiplier_step`` is zero never binds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.compiled import compiled
from tulle.lp.first_order import is_due, rebalance, reset

Array = npt.NDArray[Any]


@compiled
def deletion_steps(
    offsets: Array, rows: Array, weights: Array, capacities: Array, deletable: Array, binding: Array
) -> tuple[Array, Array, Array, Array]:
    """Return the diagonal steps of deletions, multipliers of loads, remainders, multipliers."""
    loads = np.zeros(len(capacities))
    remainder_step = np.empty(len(weights))
    cover_step = np.empty(len(weights))
    for column in range(len(weights)):
        entries = 1.0
        shares = 1.0
        for place in range(offsets[column], offsets[column + 1]):
            row = rows[place]
            loads[row] += weights[column]
            entries += deletable[row]
            if binding[row]:
                shares += 1.0 / capacities[row]
        cover_step[column] = weights[column] / entries
        remainder_step[column] = 1.0 / (weights[column] * shares)
    deletion_step = np.zeros(len(capacities))
    load_step = np.zeros(len(capacities))
    for row in range(len(capacities)):
        if deletable[row] and loads[row] > 0.0:
            deletion_step[row] = 1.0 / loads[row]
        if binding[row] and loads[row] > 0.0:
            load_step[row] = 1.0 / (loads[row] * capacities[row])
    return deletion_step, load_step, remainder_step, cover_step


@compiled
def advance_deletion(
    offsets: Array,
    rows: Array,
    weights: Array,
    capacities: Array,
    sizes: Array,
    steps: tuple[Array, Array, Array, Array],
    current: tuple[Array, Array, Array, Array],
    anchor: tuple[Array, Array, Array, Array],
    best: tuple[Array, Array, Array, Array],
    memory: Array,
    iterations: int,
) -> None:
    """Run some iterations in place; ``best`` gets T of the last iterate.

    Each state is (deletions, multipliers of loads, remainders, multipliers of covers). ``memory``
    is that of :func:`tulle.lp.first_order.advance`.
    """
    deletion_step, load_step, remainder_step, cover_step = steps
    deletions, pressures, remainders, covers = current
    anchor_deletions, anchor_pressures, anchor_remainders, anchor_covers = anchor
    best_deletions, best_pressures, best_remainders, best_covers = best
    row_count = len(capacities)
    covered = np.zeros(row_count)
    overload = np.empty(row_count)
    reflected_deletions = np.empty(row_count)
    for column in range(len(weights)):
        for place in range(offsets[column], offsets[column + 1]):
            covered[rows[place]] += covers[column]
    for turn in range(iterations):
        balance = memory[0]
        age = memory[1]
        keep = (age + 1.0) / (age + 2.0)
        pull = 1.0 / (age + 2.0)
        last = turn == iterations - 1
        moved = 0.0
        for row in range(row_count):
            overload[row] = -capacities[row]
            reflected_deletions[row] = 0.0
            if deletion_step[row] > 0.0:
                old = deletions[row]
                step = deletion_step[row] / balance
                new = max(old + step * (covered[row] - sizes[row]), 0.0)
                change = new - old
                moved += change * change / step
                reflected_deletions[row] = new + change
                deletions[row] = keep * (new + change) + pull * anchor_deletions[row]
                if last:
                    best_deletions[row] = new
            covered[row] = 0.0
        for column in range(len(weights)):
            pressure = 0.0
            deleted = 0.0
            for place in range(offsets[column], offsets[column + 1]):
                pressure += pressures[rows[place]]
                deleted += reflected_deletions[rows[place]]
            old_cover = covers[column]
            old = remainders[column]
            step = remainder_step[column] / balance
            new = old + step * (old_cover - weights[column] * pressure)
            new = min(max(new, 0.0), 1.0)
            change = new - old
            moved += change * change / step
            reflected = new + change
            remainders[column] = keep * reflected + pull * anchor_remainders[column]
            step = cover_step[column] * balance
            new_cover = max(old_cover + step * (1.0 - reflected - deleted), 0.0)
            change = new_cover - old_cover
            moved += change * change / step
            next_cover = keep * (new_cover + change) + pull * anchor_covers[column]
            covers[column] = next_cover
            amount = weights[column] * reflected
            for place in range(offsets[column], offsets[column + 1]):
                overload[rows[place]] += amount
                covered[rows[place]] += next_cover
            if last:
                best_remainders[column] = new
                best_covers[column] = new_cover
        for row in range(row_count):
            if load_step[row] > 0.0:
                old = pressures[row]
                step = load_step[row] * balance
                new = max(old + step * overload[row], 0.0)
                change = new - old
                moved += change * change / step
                pressures[row] = keep * (new + change) + pull * anchor_pressures[row]
                if last:
                    best_pressures[row] = new
        if is_due(np.sqrt(moved), memory):
            far_primal = reset(deletions, anchor_deletions, deletion_step)
            far_primal += reset(remainders, anchor_remainders, remainder_step)
            far_dual = reset(pressures, anchor_pressures, load_step)
            far_dual += reset(covers, anchor_covers, cover_step)
            rebalance(far_primal, far_dual, age, memory)


@compiled
def raise_deletions(
    offsets: Array,
    rows: Array,
    weights: Array,
    capacities: Array,
    row_offsets: Array,
    row_columns: Array,
    binding: Array,
    deletions: Array,
    grid: float,
) -> None:
    """Raise deletions in place until every binding load fits its capacity.

    Rows are visited in turn, each raised as far as its own load asks for, to a multiple of 1/grid.
    The load falls, convex and piecewise linear, while the deletion grows, so Newton's method from
    the left never overshoots and ends after few steps.
    """
    remaining = np.empty(len(weights))
    first_loads = np.zeros(len(capacities))
    for column in range(len(weights)):
        left = 1.0
        for place in range(offsets[column], offsets[column + 1]):
            left -= deletions[rows[place]]
        remaining[column] = left
        if left > 0.0:
            for place in range(offsets[column], offsets[column + 1]):
                first_loads[rows[place]] += weights[column] * left
    for row in range(len(capacities)):
        # Loads only fall from here on, so who fits now will fit.
        if not binding[row] or first_loads[row] <= capacities[row]:
            continue
        while deletions[row] < 1.0:
            load = 0.0
            slope = 0.0
            for place in range(row_offsets[row], row_offsets[row + 1]):
                column = row_columns[place]
                if remaining[column] > 0.0:
                    load += weights[column] * remaining[column]
                    for member in range(offsets[column], offsets[column + 1]):
                        if rows[member] == row:
                            slope += weights[column]
            if load <= capacities[row]:
                break
            grow = np.ceil((load - capacities[row]) / slope * grid) / grid
            grow = min(grow, 1.0 - deletions[row])
            deletions[row] += grow
            for place in range(row_offsets[row], row_offsets[row + 1]):
                remaining[row_columns[place]] -= grow
