"""The deletion LP of tuples with several ways, by the restarted, reflected Halpern method.

As :mod:`tulle.lp.deletion_first_order`, with a remainder u for each burden (a tuple
and a participant of it), and a multiplier c for each way of each burden:

    min over g, 0 <= u <= 1; max over c, mu >= 0 of
    sum g + sum_{b, w in b} c_{b,w} (1 - u_b - g(w)) + sum_p mu_p (sum_{b of p} q_b u_b - tau).

Only burdens of those who may bear more than tau take part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.lp.compiled import compiled
from tulle.lp.deletion_first_order import LEAP, PATIENT, reset
from tulle.lp.first_order import is_due

Array = npt.NDArray[Any]
State = tuple[Array, Array, Array, Array]
"""Deletions and multipliers of loads by participant, remainders by burden, multipliers by way."""


@compiled
def ways_steps(
    burdens: Array,
    spans: Array,
    places: Array,
    heights: Array,
    offsets: Array,
    participants: Array,
    chosen: Array,
    tau: float,
) -> State:
    """Return the diagonal steps; they are zero where nothing is to move."""
    count = len(burdens) - 1
    sums = np.zeros(count)
    load_step = np.zeros(count)
    remainder_step = np.zeros(len(heights))
    cover_step = np.zeros(len(places))
    for row in chosen:
        load = 0.0
        for burden in range(burdens[row], burdens[row + 1]):
            height = heights[burden]
            if height == 0.0:
                continue
            load += height
            ways = spans[burden + 1] - spans[burden]
            remainder_step[burden] = 1.0 / (height * (ways + 1.0 / tau))
            for place in range(spans[burden], spans[burden + 1]):
                first, last = offsets[places[place]], offsets[places[place] + 1]
                cover_step[place] = height / (1.0 + last - first)
                for member in range(first, last):
                    sums[participants[member]] += height
        if load > 0.0:
            load_step[row] = 1.0 / (load * tau)
    deletion_step = np.zeros(count)
    for row in range(count):
        if sums[row] > 0.0:
            deletion_step[row] = 1.0 / sums[row]
    return deletion_step, load_step, remainder_step, cover_step


@compiled
def advance_ways(
    burdens: Array,
    spans: Array,
    places: Array,
    heights: Array,
    offsets: Array,
    participants: Array,
    chosen: Array,
    active: Array,
    tau: float,
    steps: State,
    current: State,
    anchor: State,
    last: State,
    memory: Array,
    iterations: int,
) -> None:
    """Run some iterations in place; ``last`` gets T of the last iterate.

    ``chosen`` are the participants who may bind, ``active`` the ways of their burdens, and
    ``memory`` is that of :func:`tulle.lp.first_order.advance`.
    """
    deletion_step, load_step, remainder_step, cover_step = steps
    deletions, pressures, remainders, covers = current
    count = len(deletions)
    covered = np.zeros(count)
    reflected_deletions = np.zeros(count)
    way_deleted = np.zeros(len(offsets) - 1)
    way_covered = np.zeros(len(offsets) - 1)
    for row in chosen:
        for place in range(spans[burdens[row]], spans[burdens[row + 1]]):
            way_covered[places[place]] += covers[place]
    for turn in range(iterations):
        balance = memory[0]
        age = memory[1]
        keep = (age + 1.0) / (age + 2.0)
        pull = 1.0 / (age + 2.0)
        final = turn == iterations - 1
        moved = 0.0
        covered[:] = 0.0
        for way in active:
            for place in range(offsets[way], offsets[way + 1]):
                covered[participants[place]] += way_covered[way]
            way_covered[way] = 0.0
        for row in range(count):
            if deletion_step[row] > 0.0:
                old = deletions[row]
                step = deletion_step[row] / balance
                new = max(old + step * (covered[row] - 1.0), 0.0)
                change = new - old
                moved += change * change / step
                reflected_deletions[row] = new + change
                deletions[row] = keep * (new + change) + pull * anchor[0][row]
                if final:
                    last[0][row] = new
        for way in active:
            deleted = 0.0
            for place in range(offsets[way], offsets[way + 1]):
                deleted += reflected_deletions[participants[place]]
            way_deleted[way] = deleted
        for row in chosen:
            if load_step[row] == 0.0:
                continue
            overload = -tau
            for burden in range(burdens[row], burdens[row + 1]):
                height = heights[burden]
                if height == 0.0:
                    continue
                cover = 0.0
                for place in range(spans[burden], spans[burden + 1]):
                    cover += covers[place]
                old = remainders[burden]
                step = remainder_step[burden] / balance
                new = min(max(old + step * (cover - height * pressures[row]), 0.0), 1.0)
                change = new - old
                moved += change * change / step
                reflected = new + change
                remainders[burden] = keep * reflected + pull * anchor[2][burden]
                if final:
                    last[2][burden] = new
                overload += height * reflected
                for place in range(spans[burden], spans[burden + 1]):
                    old = covers[place]
                    step = cover_step[place] * balance
                    new = max(old + step * (1.0 - reflected - way_deleted[places[place]]), 0.0)
                    change = new - old
                    moved += change * change / step
                    covers[place] = keep * (new + change) + pull * anchor[3][place]
                    way_covered[places[place]] += covers[place]
                    if final:
                        last[3][place] = new
            old = pressures[row]
            step = load_step[row] * balance
            new = max(old + step * overload, 0.0)
            change = new - old
            moved += change * change / step
            pressures[row] = keep * (new + change) + pull * anchor[1][row]
            if final:
                last[1][row] = new
        if is_due(np.sqrt(moved), memory):
            far_primal = reset(deletions, anchor[0], deletion_step)
            far_primal += reset(remainders, anchor[2], remainder_step)
            far_dual = reset(pressures, anchor[1], load_step)
            far_dual += reset(covers, anchor[3], cover_step)
            if age >= PATIENT and far_primal > 1e-30 and far_dual > 1e-30:
                change = np.sqrt(np.sqrt(far_dual / far_primal) / memory[0])
                memory[0] *= min(max(change, 1.0 / LEAP), LEAP)
            memory[1] = 0.0
            memory[4] = np.inf
