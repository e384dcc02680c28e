"""Whether few can be deleted so that nobody bears much, for tuples with several ways.

What D(tau) is, and why one participant moves it by at most one, is said in
:mod:`tulle.lp.alternatives`. As for conjunctions, a decision is made from certificates only,
and within rounding of a tie by exact arithmetic, so it never fails.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core import validate
from tulle.core.exact import Number
from tulle.core.progress import report
from tulle.lp import highs
from tulle.lp.alternatives import WaysProblem
from tulle.lp.alternatives_certificate import binding, enough, first_line, line_of
from tulle.lp.alternatives_first_order import State, advance_ways, ways_steps
from tulle.lp.deletion_record import DeletionRecord
from tulle.lp.exact import Row, climb
from tulle.lp.problem import check_threshold

Array = npt.NDArray[Any]

_CHECK = 40
_BALANCE = 8.0
_FINEST = 1e-10
"""Bounds this close to each other and to the target leave a tie, or all but a tie."""
_PATIENCE = 4_000
_HIGHS_ENTRIES = 100_000
_EXACT_ENTRIES = 2_000
_HEAVIEST = 1e6


class WaysOracle:
    """Decides D(tau) <= j + eta for one problem, and remembers every certificate.

    Example:
        >>> problem = WaysProblem([0, 1, 3], [0, 1, 2, 4], [0, 0, 1, 2], [1.0, 1.0], 3)
        >>> oracle = WaysOracle(problem, eta="1/3")
        >>> oracle.decide(1.0, 0), oracle.decide(1.0, 1)
        (False, True)
    """

    def __init__(self, problem: WaysProblem, *, eta: Number) -> None:
        self._problem = problem
        self._eta = validate.probability(eta=eta)
        self._record = DeletionRecord(problem.count)
        self._state: tuple[float, State] | None = None

    def estimate(self, tau: float) -> float | None:
        """Return a guess at D(tau), if enough is known for one; it decides nothing."""
        return self._record.estimate(tau)

    def decide(self, tau: float, j: int) -> bool:
        """Return whether D(tau) <= j + eta, from a certificate either way."""
        tau = check_threshold(tau)
        target = validate.whole(at_least=0, j=j) + self._eta
        decided = self._record.decide(tau, target)
        if decided is None:
            self._record.lines.append(first_line(self._problem, tau))
            nobody = np.zeros(self._problem.count)
            self._record.totals.append((tau, enough(self._problem, tau, nobody)))
            decided = self._record.decide(tau, target)
        if decided is None and tau > 0.0:
            decided = self._iterate(tau, target)
        if decided is None:
            # Within rounding of a tie: only exact arithmetic can tell.
            return climb(*_dual(self._problem, tau), target) <= target
        return decided

    def _iterate(self, tau: float, target: Fraction) -> bool | None:
        """Iterate until decided; None when the bounds meet at the target within rounding."""
        run = _Run(self._problem, tau)
        # From a threshold close by it is a head start, from afar a burden.
        if self._state is not None and 0.5 <= self._state[0] / tau <= 2.0:
            run.resume(self._state[1])
        patience = _PATIENCE
        decided, goal = None, float(target)
        lower, upper = 0.0, float(self._problem.count)
        while decided is None and upper - lower > _FINEST * goal:
            run.advance()
            self._offer(tau, run.last[0], run.last[1], run.last[3])
            if run.memory[2] > patience and run.entries <= _HIGHS_ENTRIES:
                if patience > 4 * _PATIENCE and run.entries <= _EXACT_ENTRIES:
                    break
                patience *= 4
                self._offer(tau, *run.vertex())
            decided = self._record.decide(tau, target)
            lower, upper = map(float, self._record.bounds(tau))
            report("choosing a threshold", lower, upper, abs(upper - goal))
        self._state = (tau, run.current)
        return decided

    def _offer(self, tau: float, deletions: Array, pressures: Array, covers: Array) -> None:
        """Certify both, and put on record what is better than before at this threshold."""
        record = self._record
        total = enough(self._problem, tau, deletions)
        if total < record.totals[-1][1]:
            record.totals[-1] = (tau, total)
        line = line_of(self._problem, pressures, covers)
        if line.at(tau) > record.lines[-1].at(tau):
            record.lines[-1] = line


class _Run:
    """The first-order iteration at one threshold."""

    def __init__(self, problem: WaysProblem, tau: float) -> None:
        self.problem, self.tau = problem, tau
        self.chosen = binding(problem, tau)
        # Whoever bears more than this is all but deleted anyway; certificates see the whole.
        self.heights = np.minimum(problem.heights, _HEAVIEST * tau)
        self.shape = (
            problem.burdens,
            problem.spans,
            problem.places,
            self.heights,
            problem.ways.offsets,
            problem.ways.participants,
            self.chosen,
        )
        mine = np.zeros(problem.count, np.bool_)
        mine[self.chosen] = True
        self.mine = np.repeat(mine, np.diff(problem.spans[problem.burdens]))
        self.entries = int(self.mine.sum())
        self.active = np.unique(problem.places[self.mine])
        self.steps = ways_steps(*self.shape, tau)
        self.current, self.anchor, self.last = (_start(problem) for _ in range(3))
        self.memory = np.array([_BALANCE / (1.0 + tau), 0.0, 0.0, np.inf, np.inf])

    def resume(self, state: State) -> None:
        """Start from the state that a run at another threshold ended in."""
        for given, step, *mine in zip(state, self.steps, self.current, self.anchor, strict=True):
            for values in mine:
                values[step > 0.0] = given[step > 0.0]

    def advance(self) -> None:
        """Iterate for a while."""
        advance_ways(
            *self.shape,
            self.active,
            self.tau,
            self.steps,
            self.current,
            self.anchor,
            self.last,
            self.memory,
            _CHECK,
        )

    def vertex(self) -> tuple[Array, Array, Array]:
        """Return deletions, multipliers of loads and covers from the simplex method.

        Variables: the deletions, then the remainders. Rows: the loads, then the covers.
        """
        from scipy.sparse import coo_array

        problem, ways = self.problem, self.problem.ways
        owner = np.repeat(np.arange(problem.count), np.diff(problem.burdens))
        burden = np.repeat(np.arange(len(problem.heights)), np.diff(problem.spans))
        entries = np.flatnonzero(self.mine & (problem.heights[burden] > 0.0))
        kept = np.unique(burden[entries])
        binds = len(self.chosen)
        sizes = np.diff(ways.offsets)[problem.places[entries]]
        firsts = ways.offsets[problem.places[entries]]
        members = np.arange(sizes.sum()) + np.repeat(firsts - np.cumsum(sizes) + sizes, sizes)
        people, deleted = np.unique(ways.participants[members], return_inverse=True)
        rows = [
            np.searchsorted(self.chosen, owner[kept]),
            binds + np.arange(len(entries)),
            binds + np.repeat(np.arange(len(entries)), sizes),
        ]
        columns = [
            len(people) + np.arange(len(kept)),
            len(people) + np.searchsorted(kept, burden[entries]),
            deleted,
        ]
        values = [self.heights[kept] / self.tau, np.ones(len(entries)), np.ones(len(members))]
        matrix = coo_array(
            (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
            shape=(binds + len(entries), len(people) + len(kept)),
        ).tocsc()
        vector, multipliers = highs.minimise(
            np.repeat([1.0, 0.0], [len(people), len(kept)]),
            np.ones(matrix.shape[1]),
            np.repeat([-np.inf, 1.0], [binds, len(entries)]),
            np.repeat([1.0, np.inf], [binds, len(entries)]),
            matrix.indptr,
            matrix.indices,
            matrix.data,
        )
        deletions, pressures = np.zeros((2, problem.count))
        covers = np.zeros(len(problem.places))
        deletions[people] = vector[: len(people)]
        pressures[self.chosen] = np.maximum(-multipliers[:binds], 0.0) / self.tau
        covers[entries] = np.maximum(multipliers[binds:], 0.0)
        return deletions, pressures, covers


def _start(problem: WaysProblem) -> State:
    """Return the state in which nobody is deleted."""
    deletions, pressures = np.zeros((2, problem.count))
    return deletions, pressures, np.ones(len(problem.heights)), np.zeros(len(problem.places))


def least_ways_deletion(problem: WaysProblem, tau: float) -> Fraction:
    """Return the least deletion at ``tau`` exactly. For small problems."""
    return climb(*_dual(problem, tau), None)


def _dual(problem: WaysProblem, tau: float) -> tuple[list[Row], list[Fraction], Row]:
    """Return (rows, right-hand sides, objective) of the dual in exact numbers, in <= form."""
    chosen = binding(problem, tau).tolist()
    rows: list[Row] = []
    objective: Row = {index: -Fraction(tau) for index in range(len(chosen))}
    covering: dict[int, Row] = {}
    offsets, members = problem.ways.offsets.tolist(), problem.ways.participants.tolist()
    places, spans = problem.places.tolist(), problem.spans.tolist()
    variable = len(chosen)
    for index, person in enumerate(chosen):
        for burden in range(problem.burdens[person], problem.burdens[person + 1]):
            row = {index: -Fraction(float(problem.heights[burden]))}
            for place in range(spans[burden], spans[burden + 1]):
                row[variable] = objective[variable] = Fraction(1)
                way = places[place]
                for member in members[offsets[way] : offsets[way + 1]]:
                    covering.setdefault(member, {})[variable] = Fraction(1)
                variable += 1
            rows.append(row)
    sides = [Fraction(0)] * len(rows) + [Fraction(1)] * len(covering)
    return [*rows, *covering.values()], sides, objective
