"""Whether few participants can be deleted so that nobody is left in many tuples.

*Where it comes from.* The efficient recursive mechanism (Chen and Zhou, "Recursive mechanism:
towards node differential privacy and unrestricted joins", SIGMOD 2013, section 5). For an
assignment f of participants to [0, 1], a conjunction t has the value
phi_t(f) = max(0, sum_{p in t} f_p - (|t| - 1)), and its phi-sensitivity S_{t,p} is 1 for the
participants of t and 0 for others. Equation 19 reads

    G_{|P|-j} = 2 min { max_p sum_{t with p} q(t) phi_t(f) : f in [0, 1]^P, |f| = |P| - j }.

With g = 1 - f this is phi_t = max(0, 1 - g(t)), g(t) = sum_{p in t} g_p, and |g| = j. Raising g
only lowers loads, so |g| = j may be read as |g| <= j for 0 <= j <= |P|, and

    G_{|P|-j} <= theta e^{j beta}   if and only if   D(tau_j) <= j,   tau_j = theta e^{j beta} / 2,

    D(tau) = min sum_p g_p,  0 <= g_p <= 1,
             sum_{t with p} q(t) max(0, 1 - g(t)) <= tau for *every* participant p.

As an LP: a remainder z_t >= 0 with z_t + g(t) >= 1, and sum_{t with p} q(t) z_t <= tau. The factor
2 of equation 19 sits in tau_j: the caller passes half the threshold on G.

*Sensitivity.* When a participant joins, with their tuples, D(tau) rises by at most 1 (delete them
wholly) and never falls (drop their entry from g; the remaining loads do not grow). So for a fixed
real eta and thresholds tau_0 <= tau_1 <= ..., the least j with D(tau_j) <= j + eta moves by at most
1: if j is enough without them, then D'(tau_{j+1}) <= D(tau_j) + 1 <= j + 1 + eta; and what is
enough with them is enough without. This needs the decision to be exact at the fixed eta, which is
why it is made from certificates only; eta keeps the comparison away from the integers where ties
are common.

*Dual.* D(tau) = max sum_t w_t - tau sum_p mu_p over mu >= 0 and 0 <= w_t <= q(t) mu(t) with
sum_{t with p} w_t <= 1. Every such pair bounds D from below at all thresholds at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.errors import InputError
from tulle.core.progress import WATCHER, Progress
from tulle.core.validate import Number
from tulle.lp import highs
from tulle.lp.certificate import Line, cover_sums, dual_line, feasible_total, heaviest
from tulle.lp.exact import exceeds
from tulle.lp.first_order import (
    advance_deletion,
    deletion_steps,
    most_steps,
    raise_deletions,
    repair,
)
from tulle.lp.interior import Interior
from tulle.lp.problem import PackingProblem, check_threshold, transpose
from tulle.lp.reduce import ReducedDeletion, reduce_deletion

_FINEST = 1e-11
_REFUSALS = 20
_ROUNDS = 4


class DeletionOracle:
    """Decides D(tau) <= j + eta for one problem, and remembers every certificate.

    One decision often settles the next. Custodian side.

    Example:
        >>> star = PackingProblem([0, 2, 4, 6], [0, 1, 0, 2, 0, 3], [1, 1, 1], 4)
        >>> oracle = DeletionOracle(star, eta="1/3")
        >>> oracle.decide(1.0, 0), oracle.decide(1.0, 1)
        (False, True)
    """

    def __init__(self, problem: PackingProblem, *, eta: Number) -> None:
        if len(problem.limits):
            raise InputError("the deletion problem knows participants only, and no limits.")
        self._problem = problem
        self._eta = validate.probability(eta=eta)
        self._record = DeletionRecord(problem.count)
        self._heaviest: tuple[Array, Array] | None = None
        self._state: tuple[float, tuple[Array, ...]] | None = None

    def decide(self, tau: float, j: int) -> bool:
        """Return whether D(tau) <= j + eta, from a certificate either way."""
        tau = check_threshold(tau)
        target = validate.whole(at_least=0, j=j) + self._eta
        known = self._record.decide(tau, target)
        if known is not None:
            return known
        decided = self._guess(tau, target)
        if decided is None:
            decided = self._press(tau, target)
        if decided is None:
            decided = self._search(tau, target, symmetry=True)
        if decided is None:
            decided = self._search(tau, target, symmetry=False)
        if decided is None:
            # Within rounding of a tie: only exact arithmetic can tell.
            return not exceeds(self._problem, tau, target)
        return decided

    def bounds(self, tau: float) -> tuple[Fraction, Fraction]:
        """Return what is known so far about D(tau): a lower and an upper bound."""
        return self._record.bounds(tau)

    def estimate(self, tau: float) -> float | None:
        """Return a guess at D(tau), if enough is known for one; it decides nothing."""
        return self._record.estimate(tau)

    def least(self, thresholds: npt.ArrayLike) -> int | None:
        """Return the least j with D(thresholds[j]) <= j + eta, by bisection; None if there is none.

        The thresholds must not decrease: then D(thresholds[j]) - j does not increase.
        """
        taus = np.asarray(thresholds, dtype=np.float64)
        if taus.ndim != 1 or np.any(np.diff(taus) < 0):
            raise InputError("thresholds must be a list of numbers that does not decrease.")
        low, high = 0, len(taus)
        while low < high:
            middle = (low + high) // 2
            if self.decide(float(taus[middle]), middle):
                high = middle
            else:
                low = middle + 1
        return low if low < len(taus) else None

    def _certify(self, tau: float, target: Fraction, run: Run) -> bool | None:
        """Put the best vectors of a run on record, if they decide."""
        goal = float(target)
        self._keep(
            tau, run, upper=run.upper <= goal * (1.0 + 1e-9), lower=run.lower >= goal * (1.0 - 1e-9)
        )
        return self._record.decide(tau, target)

    def _keep(self, tau: float, run: Run, *, upper: bool, lower: bool) -> None:
        """Certify the best vectors of a run."""
        if upper:
            total = feasible_total(self._problem, tau, run.reduced.everyone(run.best_deletions))
            self._record.totals.append((tau, total))
        if lower:
            pressures = run.reduced.everyone(run.best_pressures)
            covers = run.reduced.every_tuple(run.best_covers)
            self._record.lines.append(dual_line(self._problem, pressures, covers))

    def _guess(self, tau: float, target: Fraction) -> bool | None:
        """Try the closed-form bound of :func:`heaviest`; it settles small thresholds at once."""
        if self._heaviest is None:
            self._heaviest = heaviest(self._problem)
        owner, owned = self._heaviest
        loads = self._problem.loads
        useful = owned > tau
        rates = np.divide(useful, loads, out=np.zeros(len(loads)), where=useful)
        if float((owned - tau) @ rates) <= float(target):
            return None
        covers = np.where(owner >= 0, rates[owner], 0.0) * self._problem.weights
        self._record.lines.append(dual_line(self._problem, rates, covers))
        return self._record.decide(tau, target)

    def _press(self, tau: float, target: Fraction) -> bool | None:
        """Let only those who bind be deleted, by the interior-point method.

        What is enough deletion there is enough. For a bound from below everyone's covers must sum
        to at most one; who breaks that is taken in, and the iteration begins anew. None when the
        method does not apply, or comes to its end undecided.
        """
        extra = np.zeros(self._problem.count, np.bool_)
        for _ in range(_ROUNDS):
            reduced = reduce_deletion(self._problem, tau, also=extra)
            if not fits_interior(reduced, tau):
                return None
            run = InteriorRun(reduced, tau, float(target))
            decided = self._iterate(tau, target, run, 1)
            if decided is not None:
                # Both bounds together say where to look next.
                run.settle()
                self._keep(tau, run, upper=True, lower=True)
                return decided
            covered = cover_sums(self._problem, reduced.every_tuple(run.best_covers))
            breaking = (covered > 1.0) & (reduced.row_of < 0)
            if run.lower <= float(target) or not breaking.any():
                return None
            extra |= breaking
        return None

    def _search(self, tau: float, target: Fraction, *, symmetry: bool) -> bool | None:
        """Iterate on the whole problem; None when only exact arithmetic can tell.

        None too when the reduced problem claims a decision that the problem itself keeps refusing:
        so it would be if colours had collided.
        """
        run = FirstOrderDeletion(reduce_deletion(self._problem, tau, symmetry=symmetry), tau)
        # From a threshold close by it is a head start, from afar a burden.
        if self._state is not None and 0.5 <= self._state[0] / max(tau, 1e-300) <= 2.0:
            run.resume(self._state[1])
        decided = self._certify(tau, target, run)
        return self._iterate(tau, target, run, _REFUSALS) if decided is None else decided

    def _iterate(self, tau: float, target: Fraction, run: Run, refusals: int) -> bool | None:
        """Iterate until decided; None when the bounds meet at the target within rounding."""
        goal = float(target)
        decided, refused = None, 0
        while decided is None and refused < refusals:
            if run.exhausted or run.upper - run.lower <= _FINEST * goal:
                break
            run.step()
            # A decision needs no more than to know on which side of the goal the value lies.
            if (watcher := WATCHER.get()) is not None:
                wanted = abs(run.upper - goal)
                watcher(Progress("choosing a threshold", run.lower, run.upper, wanted))
            if run.upper <= goal or run.lower > goal:
                decided = self._certify(tau, target, run)
                refused += 1
        if run.started:
            self._state = (tau, run.state())
        return decided


def decide_deletion(problem: PackingProblem, tau: float, j: int, *, eta: Number) -> bool:
    """Return whether the least deletion at ``tau`` is at most ``j + eta``, with certainty.

    Several questions about one problem are cheaper through :class:`DeletionOracle`.

    Example:
        >>> path = PackingProblem([0, 2, 4], [0, 1, 1, 2], [1, 1], 3)
        >>> decide_deletion(path, 1.0, 0, eta="1/3"), decide_deletion(path, 1.0, 0, eta="2/3")
        (False, True)
    """
    return DeletionOracle(problem, eta=eta).decide(tau, j)


_KNOWN = 1.5
"""How far apart bounds may be for a guess between them."""


class DeletionRecord:
    """Certificates so far: dual lines, and totals of deletions that are enough at a threshold.

    Deletions that are enough at one threshold are enough at all larger ones, and a dual bound is a
    line that holds at all thresholds, so one decision often settles the next. Custodian side.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.lines: list[Line] = []
        self.totals: list[tuple[float, Fraction]] = []

    def bounds(self, tau: float) -> tuple[Fraction, Fraction]:
        """Return what is known so far about D(tau): a lower and an upper bound."""
        lower = max((line.at(tau) for line in self.lines), default=Fraction(0))
        return max(lower, Fraction(0)), self._mixed(tau)

    def _mixed(self, tau: float) -> Fraction:
        """Return the least total of mixing two deletions on record, one for a larger threshold.

        Loads are convex in the deletions, so a mixture is feasible at the mixed threshold.
        """
        known = [(0.0, Fraction(self.count)), *self.totals]
        reached, totals = np.array(known, dtype=np.float64).T
        below, above = np.flatnonzero(reached <= tau), np.flatnonzero(reached > tau)
        # Floats choose a deletion, or two; whatever they choose holds, and is summed exactly.
        best: Fraction = known[below[totals[below].argmin()]][1]
        if len(above):
            parts = (reached[above] - tau) / (reached[above] - reached[below, None])
            mixed = parts * totals[below, None] + (1 - parts) * totals[above]
            one, other = np.unravel_index(mixed.argmin(), mixed.shape)
            (low, more), (high, less) = known[below[one]], known[above[other]]
            part = (Fraction(high) - Fraction(tau)) / (Fraction(high) - Fraction(low))
            best = min(best, part * more + (1 - part) * less)
        return best

    def decide(self, tau: float, target: Fraction) -> bool | None:
        """Say whether D(tau) <= target, if what is known tells."""
        lower, upper = self.bounds(tau)
        if upper <= target:
            return True
        return False if lower > target else None

    def estimate(self, tau: float) -> float | None:
        """Return a guess at D(tau), if enough is known for one; it decides nothing."""
        lower, upper = self.bounds(tau)
        return float(lower + upper) / 2 if upper <= _KNOWN * lower + 1 else None


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


class FirstOrderDeletion(Run):
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
        # Then it is for exact arithmetic, as where nobody but that can tell.
        self.exhausted = bool(self.memory[2] > most_steps(len(self.reduced.rows)))
        if self.memory[2] > self.patience and len(self.reduced.rows) <= _HIGHS_ENTRIES:
            self.patience *= 4.0
            deletions, pressures, covers = highs.deletion_vectors(
                *self.shape, self.reduced.sizes, self.reduced.deletable, self.reduced.binding
            )
            self.offer_deletions(deletions)
            self.offer_multipliers(pressures, covers)
            # Vertices this good that do not decide leave a tie, or all but a tie.
            self.exhausted |= self.upper - self.lower <= _TIE * self.upper

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
