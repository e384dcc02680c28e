"""Both numbers of tuples with alternatives, from certificates only.

What X(tau) and D(tau) are, and why one participant moves them by at most tau and by at most one, is
said in :mod:`tulle.lp.alternatives`. Within rounding of a tie exact arithmetic decides, so it
depends on the data how long an answer takes, and not whether there is one.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tulle.core import validate
from tulle.core.progress import report
from tulle.core.validate import Number
from tulle.lp.alternatives import AlternativesProblem, Deletions
from tulle.lp.alternatives_certificate import (
    binding,
    enough,
    first_line,
    line_of,
    lower_value,
    upper_value,
)
from tulle.lp.deletion import DeletionRecord
from tulle.lp.problem import check_threshold
from tulle.lp.solver import Bracket, Progress, check_gap, solve

_BALANCE = 8.0
_FINEST = 1e-10
"""Bounds this close to each other and to the target leave a tie, or all but a tie."""


class AlternativesOracle:
    """Decides D(tau) <= j + eta for one problem, and remembers every certificate.

    Example:
        >>> problem = AlternativesProblem([0, 1, 3], [0, 1, 2, 4], [0, 0, 1, 2], [1.0, 1.0], 3)
        >>> oracle = AlternativesOracle(problem, eta="1/3")
        >>> oracle.decide(1.0, 0), oracle.decide(1.0, 1)
        (False, True)
    """

    def __init__(self, problem: AlternativesProblem, *, eta: Number) -> None:
        self._problem = problem
        self._eta = validate.probability(eta=eta)
        self._record = DeletionRecord(problem.count)

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
            return exact_deletion(self._problem, tau, target) <= target
        return decided

    def _iterate(self, tau: float, target: Fraction) -> bool | None:
        """Iterate until decided; None when the bounds meet at the target within rounding."""
        deletions = self._problem.deletion_program(tau, binding(self._problem, tau))
        goal = float(target)
        for vectors in deletions.program.attempts(balance=_BALANCE):
            self._offer(deletions, *vectors)
            decided = self._record.decide(tau, target)
            lower, upper = map(float, self._record.bounds(tau))
            report("choosing a threshold", lower, upper, abs(upper - goal))
            if decided is not None or upper - lower <= _FINEST * goal:
                return decided
        return None

    def _offer(self, deletions: Deletions, x: np.ndarray, multipliers: np.ndarray) -> None:
        """Certify both, and put on record what is better than before at this threshold."""
        record, tau = self._record, deletions.tau
        deleted, *dual = deletions.read(x, multipliers)
        total = enough(self._problem, tau, deleted)
        if total < record.totals[-1][1]:
            record.totals[-1] = (tau, total)
        line = line_of(self._problem, *dual)
        if line.at(tau) > record.lines[-1].at(tau):
            record.lines[-1] = line


def exact_deletion(
    problem: AlternativesProblem, tau: float, target: Fraction | None = None
) -> Fraction:
    """Return D(tau) exactly, or some number above ``target``. For small problems."""
    program = problem.deletion_program(tau, binding(problem, tau), exact=True).program
    return program.least(target)


def solve_alternatives(
    problem: AlternativesProblem, tau: float, *, gap: float, progress: Progress | None = None
) -> Bracket:
    """Return bounds on X(tau) that are at most ``gap`` apart, as :func:`tulle.lp.solve` does.

    Example:
        >>> offsets, members = [0, 2, 3, 4, 5, 6], [4, 5, 0, 1, 2, 3]
        >>> both = AlternativesProblem([0, 1, 3, 5], offsets, members, [9.0], 4)
        >>> bracket = solve_alternatives(both, 2.0, gap=0.01)
        >>> bracket.lower <= 4.0 <= bracket.upper
        True
    """
    tau, gap = check_gap(tau, gap)
    packing = problem.packing(tau)
    if packing is not None:
        return solve(packing, tau, gap=gap, progress=progress)
    if tau == 0.0:
        value = upper_value(problem, tau, np.ones(problem.count))
        return Bracket(0.0, value) if value <= gap else _exactly(problem, tau)
    scale = problem.value_scale(tau)[problem.root] * tau
    nobody, everyone = np.zeros(problem.count), np.ones(problem.count)
    lower, upper = 0.0, min(upper_value(problem, tau, each) for each in (nobody, everyone))
    if upper <= gap:
        return Bracket(lower, upper)
    for x, levels in problem.value_program(tau).attempts():
        upper = min(upper, upper_value(problem, tau, x[: problem.count]))
        lower = max(lower, lower_value(problem, tau, levels * scale))
        if progress is not None:
            progress(lower, upper)
        if upper - lower <= gap:
            return Bracket(lower, upper)
    return _exactly(problem, tau)


def exact_value(problem: AlternativesProblem, tau: float) -> Fraction:
    """Return X(tau) exactly. For small problems."""
    return problem.value_program(tau, exact=True).least()


def _exactly(problem: AlternativesProblem, tau: float) -> Bracket:
    value = float(exact_value(problem, tau))
    return Bracket(value, value)
