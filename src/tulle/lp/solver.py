"""The packing value at a threshold, between two certain bounds.

    X(tau) = max sum_t y_t,  0 <= y_t <= q(t),  sum_{t with p} y_t <= tau for every participant p.

*Sensitivity.* When participant p leaves, with all their tuples, X falls by at most tau and never
rises: any y for the larger problem, with the tuples of p left out, is feasible for the smaller one,
and those tuples carry at most tau. A value reported within ``gap`` of X therefore moves by at most
tau + 2 gap, whichever value in the bracket is reported, and the middle of the bracket by at most
tau + gap; ``gap`` must be fixed in advance. Limits of their own change none of this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tulle.core.arrays import Array
from tulle.core.errors import InputError
from tulle.lp import certificate, first_order, highs
from tulle.lp.problem import PackingProblem, check_threshold
from tulle.lp.reduce import ReducedProblem, reduce

Progress = Callable[[float, float], None]
"""Called with the lower and the upper bound so far. They are private: show, never publish."""

_CHECK = 40
_PATIENCE = 20_000
_HIGHS_ENTRIES = 1_000_000
_FINEST = 10_000
_SHARE = 0.95
"""Part of the gap that the reduced problem may use; the rest covers rounding on the way back."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """Two floats with the value certainly between them. Private, like the value."""

    lower: float
    upper: float

    @property
    def middle(self) -> float:
        """The float halfway, at most half the gap from the value (and a rounding)."""
        return self.lower + (self.upper - self.lower) / 2.0


def solve(
    problem: PackingProblem,
    tau: float,
    *,
    gap: float,
    progress: Progress | None = None,
) -> Bracket:
    """Return bounds on the packing value at ``tau`` that are at most ``gap`` apart.

    It goes on until both bounds are certified: how long that takes depends on the data, what is
    returned does not depend on how long it took. ``gap`` is absolute; a hundredth of ``tau`` is
    usual and less than tau / 10,000 is refused.

    Raises:
        InputError: when ``tau`` or ``gap`` is out of range.

    Example:
        >>> square = PackingProblem([0, 2, 4, 6, 8], [0, 1, 1, 2, 2, 3, 3, 0], [1, 1, 1, 1], 4)
        >>> bracket = solve(square, 1.0, gap=0.01)
        >>> bracket.lower <= 2.0 <= bracket.upper
        True
    """
    tau, gap = check_gap(tau, gap)
    for symmetry in (True, False):
        reduced = reduce(problem, tau, symmetry=symmetry)
        bracket = _solve_reduced(problem, tau, gap, reduced, progress)
        if bracket is not None:
            return bracket
    # Weights so far apart that sums in doubles show nothing of the gap.
    from tulle.lp.program import packing_program

    whole = problem.offsets, problem.participants, problem.weights, problem.capacities(tau)
    value = packing_program(*whole).least()
    near = float(value)
    bracket = Bracket(
        near if near <= value else float(np.nextafter(near, -np.inf)),
        near if near >= value else float(np.nextafter(near, np.inf)),
    )
    if bracket.upper - bracket.lower > gap:
        # Participants carry tau each, so this much is carried by tuples that need nobody.
        raise InputError(
            "the gap is below what double precision can certify for values of this size; "
            "use a larger gap."
        )
    return bracket


def check_gap(tau: float, gap: float) -> tuple[float, float]:
    """Return both as floats that the certificates can work with."""
    tau, gap = check_threshold(tau), float(gap)
    if not (gap > 0.0 and gap >= tau / _FINEST and gap < np.inf):
        raise InputError(f"gap must be above 0 and at least tau / {_FINEST}; got {gap!r}.")
    return tau, gap


def _solve_reduced(
    problem: PackingProblem,
    tau: float,
    gap: float,
    reduced: ReducedProblem,
    progress: Progress | None,
) -> Bracket | None:
    """Solve and certify; None when the gap on the reduced problem does not carry over."""
    wanted = _SHARE * gap
    run = Iteration(reduced, float(reduced.settled @ problem.weights))
    lower, upper = 0.0, np.inf
    for _ in range(4):
        run.narrow(wanted, progress)
        fractions = reduced.fractions(run.best_levels)
        lower = max(lower, certificate.lower_bound(problem, tau, fractions))
        prices = reduced.everyone(run.best_prices)
        upper = min(upper, certificate.upper_bound(problem, tau, prices))
        if progress is not None:
            progress(lower, upper)
        if upper - lower <= gap:
            return Bracket(lower, upper)
        wanted *= 0.25
    return None


class Iteration:
    """Narrows the bounds of one reduced problem, and keeps the best vectors so far.

    All columns take part from beginning to end. Working sets of the cheapest columns were tried
    where columns far outnumber rows: optimal prices are far from unique there, so prices that suit
    the set are undercut by columns outside it until nearly all have been taken in, and nothing is
    gained.
    """

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
            if self.memory[2] > first_order.most_steps(len(self.reduced.rows)):
                from tulle.lp.program import packing_program

                prices, levels = packing_program(*self.shape).exact()
                self._offer(levels, prices[: self.reduced.row_count])
                return

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
