"""Iterations on the deletion LP at one threshold, and the best bounds they have come to.

The bounds are those of the reduced problem, within rounding: what decides is certified elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.lp import highs
from tulle.lp.deletion_first_order import (
    advance_deletion,
    deletion_steps,
    raise_deletions,
)
from tulle.lp.deletion_interior import Interior
from tulle.lp.deletion_reduce import ReducedDeletion
from tulle.lp.first_order import repair
from tulle.lp.problem import transpose

Array = npt.NDArray[Any]

_CHECK = 40
_PATIENCE = 2_000
_HIGHS_ENTRIES = 300_000
_TIE = 1e-8
_BALANCE = 8.0
"""Multipliers are of the order of 1 / tau where deletions are of the order of 1."""
_FINE_GRID = 2.0**50
_NEAR = 0.002
"""A bound may turn out better than the interior point says by this part."""
_SMALL, _PASSES = 2e8, 5e3
_LARGEST_SYSTEM = 4_000
_LARGEST_SQUARES = 300_000_000
_HEAVIEST = 1e12


class Run(ABC):
    """One reduced problem, with the best vectors and bounds so far."""

    def __init__(self, reduced: ReducedDeletion) -> None:
        self.reduced = reduced
        rows, columns = len(reduced.sizes), len(reduced.weights)
        self.shape = (reduced.offsets, reduced.rows, reduced.weights, reduced.capacities)
        # Without any multiplier the bound is 0; deleting all who bind is always enough.
        self.best_deletions = reduced.binding.astype(np.float64)
        self.best_pressures = np.zeros(rows)
        self.best_covers = np.zeros(columns)
        self.lower, self.upper = 0.0, float(reduced.sizes @ self.best_deletions)
        self.exhausted = not columns
        self.by_row = transpose(reduced.offsets, reduced.rows, rows)
        self.limits = np.where(reduced.deletable, reduced.sizes, np.inf)

    @abstractmethod
    def step(self) -> None:
        """Iterate for a while and keep whichever bound is better than before."""

    @abstractmethod
    def vectors(self) -> tuple[Array, Array, Array, Array]:
        """Return deletions, pressures, remainders and covers as they stand."""

    @property
    def started(self) -> bool:
        """Whether any step was made."""
        return True

    def state(self) -> tuple[Array, ...]:
        """Return where the iteration stands, by participant and by tuple."""
        deletions, pressures, remainders, covers = self.vectors()
        whole = self.reduced
        return (
            whole.everyone(deletions),
            whole.everyone(pressures),
            whole.same_in_column(remainders, 1.0),
            whole.every_tuple(covers),
        )

    def offer_deletions(self, deletions: Array) -> None:
        """Raise the deletions until they are enough; keep them if they are fewer than before."""
        raised = np.clip(deletions, 0.0, 1.0)
        raise_deletions(*self.shape, *self.by_row, self.reduced.binding, raised, _FINE_GRID)
        upper = float(self.reduced.sizes @ raised)
        if upper < self.upper:
            self.upper, self.best_deletions = upper, raised

    def offer_multipliers(self, pressures: Array, covers: Array) -> None:
        """Make the multipliers feasible, and keep them if their bound is better than before."""
        limits = self.reduced.weights * _gather(self.reduced.offsets, self.reduced.rows, pressures)
        repaired = np.minimum(covers, limits)
        lower = repair(
            self.reduced.offsets, self.reduced.rows, limits, self.limits, repaired, True
        ) - float(self.reduced.capacities @ pressures)
        if lower > self.lower:
            self.lower, self.best_pressures, self.best_covers = lower, pressures.copy(), repaired


class FirstOrder(Run):
    """The first-order iteration; HiGHS is asked where it takes long and the problem is small."""

    def __init__(self, reduced: ReducedDeletion, tau: float) -> None:
        super().__init__(reduced)
        rows, columns = len(reduced.sizes), len(reduced.weights)
        self.patience = _PATIENCE + len(reduced.rows) / 2.0
        self.steps = deletion_steps(*self.shape, reduced.deletable, reduced.binding)
        self.current, self.anchor, self.last = (
            (np.zeros(rows), np.zeros(rows), np.ones(columns), np.zeros(columns)) for _ in range(3)
        )
        self.memory = np.array([_BALANCE / (1.0 + tau), 0.0, 0.0, np.inf, np.inf])

    @property
    def started(self) -> bool:
        return bool(self.memory[2])

    def vectors(self) -> tuple[Array, Array, Array, Array]:
        return self.last

    def step(self) -> None:
        advance_deletion(
            *self.shape,
            self.reduced.sizes,
            self.steps,
            self.current,
            self.anchor,
            self.last,
            self.memory,
            _CHECK,
        )
        self.offer_deletions(self.last[0])
        self.offer_multipliers(self.last[1], self.last[3])
        if self.memory[2] > self.patience and len(self.reduced.rows) <= _HIGHS_ENTRIES:
            self.patience *= 4.0
            deletions, pressures, covers = highs.deletion_vectors(
                *self.shape, self.reduced.sizes, self.reduced.deletable, self.reduced.binding
            )
            self.offer_deletions(deletions)
            self.offer_multipliers(pressures, covers)
            # Vertices this good that do not decide leave a tie, or all but a tie.
            self.exhausted = self.upper - self.lower <= _TIE * self.upper

    def resume(self, state: tuple[Array, ...]) -> None:
        """Start from the state that a run at another threshold ended in."""
        whole = self.reduced
        rows, columns = len(whole.sizes), len(whole.weights)
        inside, chosen = whole.row_of >= 0, whole.column_of >= 0
        row_of, column_of = whole.row_of[inside], whole.column_of[chosen]
        deletions, pressures, remainders, covers = state
        start = (
            np.bincount(row_of, deletions[inside], rows) / whole.sizes * whole.deletable,
            np.bincount(row_of, pressures[inside], rows) / whole.sizes * whole.binding,
            np.bincount(column_of, (remainders * whole.shares)[chosen], columns),
            np.bincount(column_of, covers[chosen], columns),
        )
        for target in (self.current, self.anchor):
            for mine, given in zip(target, start, strict=True):
                mine[:] = given


class InteriorRun(Run):
    """The interior-point iteration, for a problem of which :func:`fits_interior` says yes."""

    def __init__(self, reduced: ReducedDeletion, tau: float, goal: float) -> None:
        super().__init__(reduced)
        self.interior = Interior(reduced, tau)
        self.goal = goal

    def vectors(self) -> tuple[Array, Array, Array, Array]:
        deletions, pressures, covers = self.interior.vectors()
        return deletions, pressures, np.minimum(self.interior.remainders, 1.0), covers

    def step(self) -> None:
        self.interior.advance()
        self.exhausted = self.interior.finished
        deletions, pressures, covers = self.interior.vectors()
        # Only bounds that might decide are worth working out.
        if float(self.reduced.sizes @ deletions) <= (1.0 + _NEAR) * self.goal:
            self.offer_deletions(deletions)
        reached = float(covers.sum()) - float(self.reduced.capacities @ pressures)
        if reached >= (1.0 - _NEAR) * self.goal:
            self.offer_multipliers(pressures, covers)

    def settle(self) -> None:
        """Work out both bounds of where the iteration stands."""
        deletions, pressures, covers = self.interior.vectors()
        self.offer_deletions(deletions)
        self.offer_multipliers(pressures, covers)


def fits_interior(reduced: ReducedDeletion, tau: float) -> bool:
    """Say whether the interior-point method applies, and is likely to be the faster one.

    Its dense matrix must cost no more than many passes over the entries would.
    """
    if not len(reduced.weights) or float(reduced.weights.max()) > _HEAVIEST * tau:
        return False
    size = float(len(reduced.sizes) + int(reduced.binding.sum()))
    squares = float((np.diff(reduced.offsets).astype(np.float64) ** 2).sum())
    cheap = size**3 <= _SMALL + _PASSES * len(reduced.rows)
    return cheap and size <= _LARGEST_SYSTEM and squares <= _LARGEST_SQUARES


def _gather(offsets: Array, rows: Array, values: Array) -> Array:
    """Return the sum of the values of each column's rows."""
    return np.add.reduceat(values[rows], offsets[:-1])
