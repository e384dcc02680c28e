"""Truncated totals of relations: two numbers that one participant moves by a known amount.

For a threshold tau, the *truncated value* X(tau) is the most that all tuples can add up to when
each may count in part and no participant is in more than tau in all; and the *deletion* D(tau) is
the least fractional number of participants to delete so that everyone left is in at most tau.
When a participant joins or leaves, X(tau) moves by at most tau and D(tau) by at most one.

For conjunctions these are the packing LP and the deletion LP of :mod:`tulle.lp`, for and/or trees
those of :mod:`tulle.lp.alternatives`, which also proves the above; their size is that of the
expressions as written. Both give the same numbers where both apply,
so which is taken is no part of what is released. X(tau) equals the quantity X of the recursive
mechanism (Chen & Zhou 2013, equation 12) at the threshold tau: with g = 1 - f,

    min over real i in [0, |P|] of H_i + (|P| - i)·tau = min over g in [0, 1]^P of
        sum_t q(t)·max(0, 1 - sum of g_p over p in t) + tau·sum_p g_p,

whose linear programming dual is the packing LP: maximise the sum of y_t with 0 <= y_t <= q(t)
and, for each participant, a sum of at most tau. (The bound g_p <= 1 never binds: lowering a g_p
above one to one changes no tuple.) The paper takes the minimum over whole i. Over real i it is
smaller by at most tau and just as private: the argument for lemma 7 needs only that a participant
who joins can be given f = 0, which adds tau, or struck out, which lowers the sum, and it never
uses that i is whole.

The deletion is not the paper's, whose G moves by more than it should where a tuple comes about in
several ways: see :mod:`tulle.lp.alternatives`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tulle.core.arrays import Array
from tulle.core.progress import WATCHER, Progress
from tulle.core.validate import Number
from tulle.relations.data import Relation

if TYPE_CHECKING:
    # Many totals need no program: the solvers are imported where one is set up.
    from tulle.lp import (
        AlternativesOracle,
        AlternativesProblem,
        DeletionOracle,
        PackingProblem,
    )


GAP = 0.01
"""Truncated values are certified to this part of the threshold; fixed, never chosen by data."""

LARGEST = 1e240
"""Thresholds and weights are cut here: a public rule, so that no data can make a solver refuse."""

SMALLEST = 1e-240
"""Weights below this count as nothing, for the same reason."""

_UP = 1.0 + 2.0**-40
"""Covers the rounding of a sum and a product."""

_CLIMB = 10.0
"""After how many levels thresholds are near their geometric course."""

ETA = "0.3183"
"""D(tau) is compared with j + eta: a fixed place between whole numbers, where ties are rare."""


class Decider(Protocol):
    """A number D(tau) that one participant moves by at most one, compared with levels."""

    def decide(self, tau: float, level: int) -> bool:
        """Say whether D(tau) is at most level + eta."""

    def estimate(self, tau: float) -> float | None:
        """Return a guess at D(tau) from what is known so far, if there is one."""


class Truncation(Decider, Protocol):
    """Both numbers of one relation with weights of at least zero."""

    def value(self, tau: float, gap: float) -> float | Fraction:
        """Return a number within gap of X(tau); a fraction where a float would be too coarse."""

    def ceiling(self, tau: float) -> float:
        """Return a number that X(tau) is certainly not above, at the cost of one look."""


@dataclass
class _Packing:
    problem: PackingProblem | AlternativesProblem
    oracle: DeletionOracle | AlternativesOracle

    def decide(self, tau: float, level: int) -> bool:
        return self.oracle.decide(tau, level)

    def value(self, tau: float, gap: float) -> float:
        from tulle.lp import PackingProblem, solve, solve_alternatives

        def tell(lower: float, upper: float) -> None:
            if (watcher := WATCHER.get()) is not None:
                watcher(Progress("truncating", lower, upper, gap))

        if isinstance(self.problem, PackingProblem):
            return solve(self.problem, tau, gap=gap, progress=tell).middle
        return solve_alternatives(self.problem, tau, gap=gap, progress=tell).middle

    def estimate(self, tau: float) -> float | None:
        return self.oracle.estimate(tau)

    def ceiling(self, tau: float) -> float:
        from tulle.lp import PackingProblem
        from tulle.lp.alternatives_certificate import upper_value
        from tulle.lp.certificate import upper_bound
        from tulle.lp.problem import check_threshold

        tau = check_threshold(tau)
        problem = self.problem
        # Who is above tau pays the same share in every tuple; of k in a tuple, each a k-th.
        share = 1.0 / max(int(np.diff(problem.offsets).min(initial=1)), 1)
        prices = share * (problem.loads > tau)
        if isinstance(problem, PackingProblem):
            return upper_bound(problem, tau, prices)
        return upper_value(problem, tau, prices)


@dataclass
class _Raised:
    """A truncation, and beside it what needs nobody: that is never cut, and the same for all."""

    inner: Truncation
    fixed: float

    def decide(self, tau: float, level: int) -> bool:
        return self.inner.decide(tau, level)

    def value(self, tau: float, gap: float) -> Fraction:
        # Exactly: next to a large number a float would be rounded by more than the gap.
        return Fraction(self.fixed) + Fraction(self.inner.value(tau, gap))

    def estimate(self, tau: float) -> float | None:
        return self.inner.estimate(tau)

    def ceiling(self, tau: float) -> float:
        return (self.fixed + self.inner.ceiling(tau)) * _UP


def truncate(relation: Relation, *, eta: Number = ETA) -> Truncation:
    """Return the two numbers of a relation whose weights are not negative. Custodian side."""
    weights = within_reach(relation.weights)
    public = np.diff(relation.offsets) == 0
    if bool(weights[public].any()):
        fixed = math.fsum(weights[public])
        owned = Relation(
            relation.offsets,
            relation.participants,
            np.where(public, 0.0, weights),
            relation.count,
            relation.notes,
            relation.alternatives,
        )
        return _Raised(truncate(owned, eta=eta), fixed)
    from tulle.lp import AlternativesOracle, DeletionOracle, PackingProblem

    if relation.is_conjunctive:
        # Only those who have tuples here: of many groups, each may have a few of all participants.
        present, members = np.unique(relation.participants, return_inverse=True)
        problem = PackingProblem(relation.offsets, members, weights, len(present))
        return _Packing(problem, DeletionOracle(problem, eta=eta))
    alternatives = _alternatives(relation, weights)
    return _Packing(alternatives, AlternativesOracle(alternatives, eta=eta))


def within_reach(weights: Array) -> Array:
    """Return weights cut at LARGEST, and zero below SMALLEST."""
    cut = np.minimum(weights, LARGEST)
    return np.where(cut < SMALLEST, 0.0, cut)


def _alternatives(relation: Relation, weights: Array) -> AlternativesProblem:
    """Return all tuples with their alternatives."""
    from tulle.lp import AlternativesProblem

    starts, offsets, members = relation.trees()
    return AlternativesProblem(
        starts,
        offsets,
        members,
        np.concatenate([weights, within_reach(relation.heights)]),
        relation.count,
    )


def least_level(truncation: Decider, thresholds: Thresholds) -> int:
    """Return the least j >= 0 with D(threshold of j) <= j + eta.

    One participant moves it by at most one: joining raises D by at most one, which the next j
    allows, and lowers it never. D falls and j grows, so a doubling search and a bisection find
    it; it exists because D is zero at thresholds above every participant's load. The bisection
    looks first where estimates cross, in turn with the middle.
    """
    low, high = _bracket(truncation, thresholds)
    hopeful = True
    while high - low > 1:
        width = high - low
        place = _crossing(truncation, thresholds, low, high) if hopeful else (low + high) // 2
        if truncation.decide(thresholds.at(place), place):
            high = place
        else:
            low = place
        hopeful = 2 * (high - low) <= width + 1 or not hopeful
    return high


def _bracket(truncation: Decider, thresholds: Thresholds) -> tuple[int, int]:
    """Return levels between which the least one is: above the first, at most the second."""
    if truncation.decide(thresholds.at(0), 0):
        return -1, 0
    low, high = 0, 1
    while not truncation.decide(thresholds.at(high), high):
        low, high = high, 2 * high
    return low, high


def predicted_level(truncation: Truncation, thresholds: Thresholds) -> int:
    """Return where the least level is, or a little above where that makes no difference.

    At most as many participants need be deleted as have loads above a threshold. Where the grid
    rises so slowly that the level found from this leads to nearly the first threshold, the exact
    one does so, too. Elsewhere a bisection ends where the thresholds left are alike: the decisions
    that a small epsilon adds are the closest ones, and take nearly all the time. For predictions on
    public data only: one participant may move it by more than one.
    """
    from tulle.lp import PackingProblem

    if isinstance(truncation, _Packing) and isinstance(truncation.problem, PackingProblem):
        loads = np.sort(truncation.problem.loads)
        low, high = -1, len(loads)
        while high - low > 1:
            middle = (low + high) // 2
            above = len(loads) - int(np.searchsorted(loads, thresholds.at(middle), side="right"))
            low, high = (low, middle) if above <= middle else (middle, high)
        if thresholds.at(high) <= _NEARLY * thresholds.at(0):
            return high
    low, high = _bracket(truncation, thresholds)
    while high - low > 1 and thresholds.at(high) > _ALIKE * thresholds.at(low + 1):
        middle = (low + high) // 2
        low, high = (
            (low, middle) if truncation.decide(thresholds.at(middle), middle) else (middle, high)
        )
    return high


def _crossing(truncation: Decider, thresholds: Thresholds, low: int, high: int) -> int:
    """Return where in (low, high) the estimate of D meets j, or the middle without estimates."""
    while high - low > 2:
        middle = (low + high) // 2
        guess = truncation.estimate(thresholds.at(middle))
        if guess is None:
            return middle
        if guess <= middle + float(Fraction(ETA)):
            high = middle + 1
        else:
            low = middle
    return low + 1


_NEARLY = 1.5
"""Thresholds with a smaller ratio to the first are alike as far as a prediction goes."""

_ALIKE = 1.1
"""So are any two thresholds with a smaller ratio."""


@dataclass(frozen=True)
class Thresholds:
    """The public grid of thresholds: theta·exp(beta·j), with longer steps at the beginning.

    The first is start·theta, and the way up to theta·exp(beta·j) is halved every seven levels. Any
    grid that does not decrease gives the same privacy.
    """

    theta: float
    beta: float
    start: float = 1.0

    def at(self, j: float) -> float:
        """Return the threshold of level j, at most LARGEST."""
        climb = math.log(self.start) * math.exp(-j / _CLIMB)
        return min(self.theta * math.exp(min(self.beta * j + climb, 600.0)), LARGEST)
