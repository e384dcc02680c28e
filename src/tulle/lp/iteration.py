"""The first-order iteration on a reduced packing problem, with the best vectors so far.

All columns take part from beginning to end. Working sets of the cheapest columns were tried where
columns far outnumber rows: optimal prices are far from unique there, so prices that suit the set
are undercut by columns outside it until nearly all have been taken in, and nothing is gained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.lp import first_order, highs
from tulle.lp.reduce import ReducedProblem

Array = npt.NDArray[Any]

Progress = Callable[[float, float], None]
"""Called with the lower and the upper bound so far. They are private: show, never publish."""

_CHECK = 40
_PATIENCE = 20_000
_HIGHS_ENTRIES = 1_000_000


class Iteration:
    """Narrows the bounds of one reduced problem."""

    def __init__(self, reduced: ReducedProblem, settled: float) -> None:
        self.reduced = reduced
        self.shape = (reduced.offsets, reduced.rows, reduced.weights, reduced.capacities)
        self.best_levels = np.zeros(reduced.column_count)
        self.best_prices = np.zeros(reduced.row_count)
        self.lower, self.upper = 0.0, np.inf
        self.settled = settled
        self.patience = _PATIENCE
        self.memory = np.array([1.0, 0.0, 0.0, np.inf, np.inf])
        if reduced.column_count:
            self.column_step = first_order.column_steps(reduced.offsets, reduced.weights)
            self.row_step = first_order.row_steps(
                reduced.offsets, reduced.rows, reduced.weights, reduced.row_count
            )
            self.levels, self.anchor_levels, self.last_levels = np.zeros((3, reduced.column_count))
            self.prices, self.anchor_prices, self.last_prices = np.zeros((3, reduced.row_count))

    def narrow(self, wanted: float, progress: Progress | None) -> None:
        """Iterate until the best bounds of the reduced problem are at most ``wanted`` apart."""
        if not self.reduced.column_count:
            return
        while self.upper - self.lower > wanted:
            # What doubles resolve: a smaller gap is not to be had, and the caller decides.
            if self.upper - self.lower <= 1e-13 * self.upper < np.inf:
                return
            self._advance()
            if progress is not None:
                progress(self.settled + self.lower, self.settled + self.upper)
            if self.memory[2] > self.patience:
                self.patience *= 4
                if len(self.reduced.rows) <= _HIGHS_ENTRIES:
                    levels, prices = highs.packing_vectors(*self.shape)
                    self._offer(np.clip(levels, 0.0, self.reduced.weights), prices)

    def _advance(self) -> None:
        """Run some iterations and note what they gave."""
        first_order.advance(
            *self.shape,
            self.column_step,
            self.row_step,
            self.levels,
            self.prices,
            self.anchor_levels,
            self.anchor_prices,
            self.last_levels,
            self.last_prices,
            self.memory,
            _CHECK,
        )
        self._offer(self.last_levels, self.last_prices)

    def _offer(self, levels: Array, prices: Array) -> None:
        """Make both feasible, and keep whichever is better than before."""
        repaired = levels.copy()
        lower = first_order.repair(*self.shape, repaired, True)
        if lower > self.lower:
            self.lower, self.best_levels = lower, repaired
        capped = np.minimum(prices, 1.0)
        upper = first_order.upper_value(*self.shape, capped)
        if upper < self.upper:
            self.upper, self.best_prices = upper, capped
