"""Many groups at one price: one threshold for all of them, and Gaussian noise on each.

*Rows of several participants.* Group g has a relation of its own, and X_g(tau) is its truncated
value (:mod:`tulle.relations.truncation.totals`): the optimum of a program that no other group takes
part in. A participant who leaves moves X_g(tau) by at most tau, and not at all where they have no
tuple. So the *vector* of the X_g(tau) moves by at most tau in each of the groups that a participant
can be in: with k such groups by at most tau·sqrt(k) in L2. (The group totals of *one* optimal
solution over all groups together have no such bound: optimal solutions jump along alternating
paths. They are never used.) The certified middles move by tau + gap each, and snapping to a lattice
adds a step to each.

*One threshold for all groups.* Let l_g be the least level of group g
(:func:`tulle.relations.truncation.totals.least_level`). One participant moves each l_g by at most
one, so the largest of them moves by at most one, whatever the number of groups. It gets discrete
Gaussian noise of variance 1/(2·rho_select), as the level of a single group would: the search is
paid for once. The largest, and not the mean: groups without tuples have level zero, and in a table
with many empty cells a mean would cut nearly everything. What follows from the noisy level is
public, and so is by how much the threshold is raised (:meth:`GroupedSettings.reached`).

*Rows of one participant each.* A participant's contributions to all groups are a vector, which is
scaled down to an L2 norm of at most tau. The sums over all participants then move by at most tau in
L2. N(tau), how many have a norm above tau, falls by at most one when somebody leaves and never
rises, so the least j with N(tau_j) <= j moves by at most one.

*Price.* Discrete Gaussian noise of variance D²/(2·rho) on a vector of whole numbers that moves by
at most D in L2 is rho-zero-concentrated (Canonne, Kamath & Steinke 2020, theorem 4), and rho adds
up over draws that are chosen in view of those before: rho_select + rho_answer in all, however many
groups there are.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress
from typing import TypeVar

import numpy as np

from tulle.core.arrays import Array
from tulle.core.mechanism import Settings
from tulle.core.source import Source
from tulle.noise import Lattice, discrete_gaussian
from tulle.noise.charge import GaussianCharge, charge
from tulle.relations.mechanisms.single_owner import SUMMED, ByNorm, Clipped, SingleOwnerRows
from tulle.relations.truncation.mechanism import value_moves
from tulle.relations.truncation.totals import (
    GAP,
    LARGEST,
    Thresholds,
    Truncation,
    least_level,
)

_Found = TypeVar("_Found")

USUAL_LEVEL = 5.0
"""At which level, over the deviation of the noise, a threshold is raised by all of ``reach``.

Chosen on made-up rows of pairs, even and skewed, and on edges of four graphs, over 10 and 100
groups at epsilon 1 and 4: 1.35 times the error of the best factor in the geometric mean, 2.2 at
worst; with all of ``reach`` always it was 1.9 and 7.2. With 4 it is 1.37 and 2.4, with 7 1.32 and
2.2, but a group of few people, who all have much, loses more of them.
"""


@dataclass(frozen=True, eq=False)
class GroupedSettings(Settings):
    """The public settings of one run; ``rho_select`` and ``rho_answer`` are those of one sign."""

    theta: float
    beta: float
    start: float
    reach: float
    rho_select: Fraction
    rho_answer: Fraction
    groups: int
    groups_per_person: int
    """In how many of the groups one participant can be."""
    single_owner: bool
    """Whether the schema says that each row is about one participant."""

    @property
    def thresholds(self) -> Thresholds:
        """The grid of thresholds."""
        return Thresholds(self.theta, self.beta, self.start)

    def threshold(self, level: int) -> float:
        """Return the threshold to truncate at, given the (noisy) level."""
        return min(self.thresholds.at(level) * self.reached(level), LARGEST)

    def reached(self, level: int) -> float:
        """Return by how much the threshold found is raised, given the (noisy) level.

        Of each participant who sticks out of a group one unit more of the threshold brings one unit
        more; it costs as much noise as the deviation of a group at a threshold of one. About as
        many stick out as the level says. So where that is fewer than the deviation, cutting them
        costs less than noise for them would; where it is more, the threshold is raised by a power
        of how many times more, up to ``reach``, which suits USUAL_LEVEL times as many.
        """
        if self.single_owner or self.reach <= 1:
            return self.reach
        deviation = math.sqrt(self.groups_per_person / (2 * float(self.rho_answer)))
        part = math.log(max(level, 1) / deviation) / math.log(USUAL_LEVEL)
        return float(self.reach ** min(max(part, 0.0), 1.0))


@dataclass(frozen=True)
class GaussianNoise:
    """The noise on the values of all groups at one threshold."""

    lattice: Lattice
    squared: Fraction
    """The square of the most that one participant moves all snapped values in L2, in steps."""
    variance: Fraction
    """Of the noise on each value, in steps of the lattice."""
    slack: float
    """What snapping and the certified gap add to the noise."""

    @classmethod
    def at(cls, tau: float, chosen: GroupedSettings) -> GaussianNoise:
        """Return the noise that fits values truncated at tau."""
        if chosen.single_owner:
            # Snapping adds a step to each group: in L2, the root of their number.
            moves = Fraction(tau) * (1 + SUMMED)
            roots = math.isqrt(chosen.groups - 1) + 1
            lattice = Lattice.for_scale(moves / roots)
            squared, slack = (moves / lattice.step + roots) ** 2, 0.0
        else:
            moves = value_moves(tau)
            lattice = Lattice.for_scale(moves)
            squared, slack = chosen.groups_per_person * (moves / lattice.step + 1) ** 2, GAP * tau
        variance = squared / (2 * chosen.rho_answer)
        return cls(lattice, squared, variance, float(lattice.step) + slack)

    @property
    def sigma(self) -> Fraction:
        """The standard deviation of the noise, rounded up."""
        steps = Fraction(math.isqrt(math.ceil(self.variance * 2**20)) + 1, 2**10)
        return steps * self.lattice.step

    def on(self, values: Sequence[float | Fraction], source: Source | None) -> list[float]:
        """Return the values with noise."""
        points = [self.lattice.snap(value) for value in values]
        with charge(GaussianCharge(self.squared)):
            drawn = discrete_gaussian(variance=self.variance, size=len(points), source=source)
        return [
            self.lattice.value(point + noise)
            for point, noise in zip(points, drawn.tolist(), strict=True)
        ]


def noisy_level(level: int, chosen: GroupedSettings, source: Source | None) -> int:
    """Return a level that one participant moves by at most one, with noise; at least zero."""
    with charge(GaussianCharge(1)):
        noise = discrete_gaussian(variance=1 / (2 * chosen.rho_select), source=source)
    return max(level + noise, 0)


def largest_level(groups: Sequence[Truncation], thresholds: Thresholds) -> int:
    """Return the largest of the least levels of all groups.

    A group for which the largest so far is enough needs no search of its own.
    """
    if not groups:
        return 0
    found = least_level(groups[0], thresholds)
    first, tau = found, thresholds.at(found)
    enough = _each(groups, lambda group: group.decide(tau, first))
    for group in compress(groups, (not one for one in enough)):
        if not group.decide(thresholds.at(found), found):
            found = least_level(group, thresholds)
    return found


def truncated_values(groups: Sequence[Truncation], tau: float) -> list[float | Fraction]:
    """Return the certified value of each group at one threshold."""
    return _each(groups, lambda group: group.value(tau, GAP * tau))


def _each(groups: Sequence[Truncation], work: Callable[[Truncation], _Found]) -> list[_Found]:
    """Do the same for each group, on all processors: the solvers' kernels run side by side."""
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        # Whoever watches the progress of this run watches it in every thread.
        waiting = [pool.submit(copy_context().run, work, group) for group in groups]
        return [one.result() for one in waiting]
    finally:
        pool.shutdown(cancel_futures=True)


def release_groups(
    groups: Sequence[Truncation], chosen: GroupedSettings, source: Source | None
) -> tuple[Array, float, GaussianNoise]:
    """Return a noisy total for each group, the threshold found, and the noise.

    Guarantee:
        rho_select + rho_answer, zero-concentrated, per participant, add-remove, where a participant
        can be in at most ``groups_per_person`` of the groups: see the module's text.
    """
    level = noisy_level(largest_level(groups, chosen.thresholds), chosen, source)
    tau = chosen.threshold(level)
    noise = GaussianNoise.at(tau, chosen)
    return np.array(noise.on(truncated_values(groups, tau), source)), tau, noise


class InBall(ByNorm):
    """Contributions of one participant each, by their L2 norms over all groups. Custodian side.

    It decides as :class:`tulle.relations.truncation.totals.Decider` does, with N(tau) for D(tau).

    Example:
        >>> people, places = np.array([0, 0, 1]), np.array([0, 1, 1])
        >>> amounts = np.array([3.0, 4.0, 1.0])
        >>> totals = SingleOwnerRows.of_rows(people, places, amounts, 2, signed=False)
        >>> InBall(totals).clipped(2.5).round(3)
        array([1.5, 3. ])
    """

    def __init__(self, totals: SingleOwnerRows) -> None:
        self.totals = totals
        people, sizes = totals.people, np.abs(totals.amounts)
        count = len(totals.loads)
        largest = np.zeros(count)
        np.maximum.at(largest, people, sizes)
        # Parts of the largest: squares of the amounts themselves might overflow.
        parts = sizes / largest[people]
        squares = np.bincount(people, parts * parts, count)
        self.norms = largest * np.sqrt(squares) * (1.0 + 2.0**-30)
        """Of each participant the L2 norm of all contributions, rounded up."""
        self.sorted = np.sort(self.norms)
        self.groups, self.fixed = totals.groups, totals.fixed

    def clipped(self, tau: float) -> Array:
        """Return the sum for each group when nobody's contributions have a norm above tau."""
        return self.totals.scaled(np.minimum(1.0, tau / np.maximum(self.norms, tau)))


def release_in_ball(
    ball: Clipped, chosen: GroupedSettings, source: Source | None
) -> tuple[Array, float, GaussianNoise]:
    """Return a noisy sum for each group, the threshold found, and the noise.

    Guarantee:
        rho_select + rho_answer, zero-concentrated, per participant, add-remove: see the module's
        text.
    """
    level = noisy_level(least_level(ball, chosen.thresholds), chosen, source)
    tau = chosen.threshold(level)
    noise = GaussianNoise.at(tau, chosen)
    return np.array(noise.on(ball.clipped(tau).tolist(), source)) + ball.fixed, tau, noise
