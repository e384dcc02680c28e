"""The packing and the deletion LP by a restarted, reflected Halpern primal-dual gradient method.

*Packing.* With ``A`` the incidence of rows and columns, the saddle point is

    min over prices >= 0, max over 0 <= level <= weight of
    sum(level) - prices (A level - capacity).

One step ``T`` moves the levels along ``1 - A' prices`` and the prices along the overload at the
extrapolated levels. The iteration is ``z <- (k+1)/(k+2) (2 T(z) - z) + 1/(k+2) anchor``; the anchor
is reset when the fixed-point residual has fallen enough, and the balance between primal and dual
steps is then set anew from how far each side has moved.

Steps are diagonal (Pock and Chambolle, 2011): ``weight / size`` for a column and
``1 / (sum of the weights of its columns)`` for a row, so that the scaled incidence has norm at most
1 and merging columns changes nothing.

References: Lu and Yang, "Restarted Halpern PDHG for linear programming" (2024); Applegate et al.,
"Practical large-scale linear programming using primal-dual hybrid gradient" (2021).

*Deletion.* With sizes ``m`` (how many participants a row stands for), capacities ``b = m tau`` and
columns of weight ``Q``, the saddle point is, over deletions g >= 0, remainders 0 <= z <= 1, and
multipliers w >= 0 (remainder at least 1 - g(t)) and mu >= 0 (load at most the capacity):

    min over g, z; max over w, mu of
    m g + sum_t w_t (1 - z_t - g(t)) + sum_p mu_p (sum_{t with p} Q_t z_t - b_p).

Here g(t) is the sum of g over the rows of column t. A row whose ``deletion_step`` is zero is never
deleted, one whose ``multiplier_step`` is zero never binds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tulle.core.arrays import Array
from tulle.core.compiled import compiled

SUFFICIENT = 0.2
NECESSARY = 0.8
ARTIFICIAL = 0.36
LEAP = 2.0
SETTLED = 20
"""The balance changes at most by this factor, and not after fewer steps than this: the first short
rounds say little about it, and a balance far off takes long to come back."""
EXACT_ENTRIES = 2_000
"""Programs of so many entries are small enough for exact arithmetic at once."""
_LAST, _LAST_OF_SMALL = 2**24, 2**17


def most_steps(entries: int) -> int:
    """Return how many steps of a first-order method are made before exact arithmetic takes over."""
    return _LAST_OF_SMALL if entries <= EXACT_ENTRIES else _LAST


@compiled
def column_steps(offsets: Array, weights: Array) -> Array:
    """Return the diagonal step of every column."""
    steps = np.empty(len(weights))
    for column in range(len(weights)):
        steps[column] = weights[column] / (offsets[column + 1] - offsets[column])
    return steps


@compiled
def row_steps(offsets: Array, rows: Array, weights: Array, count: int) -> Array:
    """Return the diagonal step of every row."""
    sums = np.zeros(count)
    for column in range(len(weights)):
        for place in range(offsets[column], offsets[column + 1]):
            sums[rows[place]] += weights[column]
    return 1.0 / sums


@compiled
def is_due(residual: Any, memory: Any) -> Any:
    """Count one more step and say whether the anchor is to be reset.

    ``memory`` holds, after the balance: the steps since the last reset, all steps, the residual
    right after that reset, and the last one.
    """
    first = memory[1] == 0.0
    memory[1] += 1.0
    memory[2] += 1.0
    if first:
        memory[3] = residual
    due = (
        residual <= SUFFICIENT * memory[3]
        or (residual <= NECESSARY * memory[3] and residual > memory[4])
        or memory[1] >= ARTIFICIAL * memory[2]
    )
    memory[4] = residual
    return due and not first


@compiled
def reset(current: Array, anchor: Array, steps: Array) -> float:
    """Move the anchor to the current point; return the squared distance in the steps' norm."""
    far = 0.0
    for index in range(len(current)):
        if steps[index] > 0.0:
            change = current[index] - anchor[index]
            far += change * change / steps[index]
        anchor[index] = current[index]
    return far


@compiled
def rebalance(far_primal: Any, far_dual: Any, age: Any, memory: Any) -> None:
    """Set the balance anew from how far each side has moved since the anchor was set."""
    if age >= SETTLED and far_primal > 1e-30 and far_dual > 1e-30:
        change = np.sqrt(np.sqrt(far_dual / far_primal) / memory[0])
        memory[0] *= min(max(change, 1.0 / LEAP), LEAP)
    memory[1] = 0.0
    memory[4] = np.inf


@compiled
def advance(
    offsets: Array,
    rows: Array,
    weights: Array,
    capacities: Array,
    column_step: Array,
    row_step: Array,
    levels: Array,
    prices: Array,
    anchor_levels: Array,
    anchor_prices: Array,
    best_levels: Array,
    best_prices: Array,
    memory: Array,
    iterations: int,
) -> None:
    """Run some iterations in place; ``best_*`` get T of the last iterate.

    ``memory`` carries over calls: balance, steps since restart, steps in all, residual at the
    restart, previous residual.
    """
    row_count = len(prices)
    overload = np.empty(row_count)
    for turn in range(iterations):
        balance = memory[0]
        age = memory[1]
        keep = (age + 1.0) / (age + 2.0)
        pull = 1.0 / (age + 2.0)
        for row in range(row_count):
            overload[row] = -capacities[row]
        moved = 0.0
        last = turn == iterations - 1
        for column in range(len(weights)):
            price = 0.0
            for place in range(offsets[column], offsets[column + 1]):
                price += prices[rows[place]]
            old = levels[column]
            step = column_step[column] / balance
            new = old + step * (1.0 - price)
            new = min(max(new, 0.0), weights[column])
            change = new - old
            moved += change * change / step
            reflected = new + change
            for place in range(offsets[column], offsets[column + 1]):
                overload[rows[place]] += reflected
            levels[column] = keep * reflected + pull * anchor_levels[column]
            if last:
                best_levels[column] = new
        for row in range(row_count):
            old = prices[row]
            step = row_step[row] * balance
            new = max(old + step * overload[row], 0.0)
            change = new - old
            moved += change * change / step
            prices[row] = keep * (new + change) + pull * anchor_prices[row]
            if last:
                best_prices[row] = new
        if is_due(np.sqrt(moved), memory):
            far_levels = 0.0
            far_prices = 0.0
            for column in range(len(weights)):
                change = levels[column] - anchor_levels[column]
                far_levels += change * change / column_step[column]
                anchor_levels[column] = levels[column]
            for row in range(row_count):
                change = prices[row] - anchor_prices[row]
                far_prices += change * change / row_step[row]
                anchor_prices[row] = prices[row]
            if far_levels > 1e-30 and far_prices > 1e-30:
                memory[0] = np.sqrt(memory[0] * np.sqrt(far_prices / far_levels))
            memory[1] = 0.0
            memory[4] = np.inf


@compiled
def upper_value(
    offsets: Array, rows: Array, weights: Array, capacities: Array, prices: Array
) -> float:
    """Return the dual value of the prices (a bound from above, within rounding)."""
    total = 0.0
    for row in range(len(capacities)):
        total += capacities[row] * prices[row]
    for column in range(len(weights)):
        spare = 1.0
        for place in range(offsets[column], offsets[column + 1]):
            spare -= prices[rows[place]]
        if spare > 0.0:
            total += spare * weights[column]
    return total


@compiled
def repair(
    offsets: Array, rows: Array, weights: Array, capacities: Array, levels: Array, fill: bool
) -> float:
    """Make the levels feasible in place and return their sum.

    Every column shrinks by the worst overload among its rows. With ``fill``, columns then grow in
    turn as far as their rows still allow.
    """
    loads = np.zeros(len(capacities))
    for column in range(len(weights)):
        for place in range(offsets[column], offsets[column + 1]):
            loads[rows[place]] += levels[column]
    shrink = np.ones(len(capacities))
    for row in range(len(capacities)):
        if loads[row] > capacities[row]:
            shrink[row] = capacities[row] / loads[row]
    room = capacities.copy()
    total = 0.0
    for column in range(len(weights)):
        least = 1.0
        for place in range(offsets[column], offsets[column + 1]):
            least = min(least, shrink[rows[place]])
        levels[column] *= least
        total += levels[column]
        for place in range(offsets[column], offsets[column + 1]):
            room[rows[place]] -= levels[column]
    if not fill:
        return total
    for column in range(len(weights)):
        most = weights[column] - levels[column]
        # A row may be named several times by one column.
        for place in range(offsets[column], offsets[column + 1]):
            times = 0
            for other in range(offsets[column], offsets[column + 1]):
                times += rows[other] == rows[place]
            most = min(most, room[rows[place]] / times)
        if most > 0.0:
            levels[column] += most
            total += most
            for place in range(offsets[column], offsets[column + 1]):
                room[rows[place]] -= most
    return total


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
    is that of :func:`advance`.
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
