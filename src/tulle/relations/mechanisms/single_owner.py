"""Contributions of which each belongs to one participant: everyone is cut by themselves.

Where public facts say that a tuple needs one participant, truncation needs no linear program. What
a participant adds to each of some groups is a vector, and *all of it* is scaled down to a sum of
absolute values of at most tau. For add-remove neighbours:

*Level.* N(tau) is the number of participants whose sum is above tau. One who leaves takes their own
contributions along and changes nobody else's, so N falls by at most one and never rises. The least
j with N(tau_j) <= j therefore moves by at most one, as in
:func:`tulle.relations.truncation.totals.least_level`. (N is at least the deletion D, which counts
those above tau in part; where only whole participants stick out it says so more sharply.)

*Values.* The sums over all participants, one for each group, move by the one participant's scaled
vector: by at most tau in all groups together, however many groups there are and whatever their
signs. So one noise scale, tau over epsilon, serves every group, and no group has to be paid for by
itself.

Tuples that need several participants all the same (where a key on a path to owners is not unique)
count for nothing: they are cut whole, and leave with either. Tuples that need nobody are public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from tulle.core.arrays import Array
from tulle.core.source import Source
from tulle.noise import Lattice, discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge
from tulle.relations.data import Relation
from tulle.relations.mechanisms.recursive import RecursiveSettings
from tulle.relations.truncation.totals import Decider, least_level, within_reach

_UP = 1.0 + 2.0**-30
"""Covers the rounding of the sum of one participant's contributions."""

MANY = 1024
"""More groups than this get their noise in one array."""

SUMMED = Fraction(1, 2**20)
"""Part of tau by which rounding, of all groups' sums together, may move them besides."""


class Clipped(Decider, Protocol):
    """Contributions of one participant each, which can be cut to a threshold and added up.

    D(tau) is N(tau), the number of participants above it, by the norm that is cut.
    """

    groups: int

    @property
    def fixed(self) -> Array:
        """What needs nobody, for each group: public."""

    def clipped(self, tau: float) -> Array:
        """Return the sum for each group when nobody's contributions are above tau."""


class ByNorm:
    """It decides with N(tau), how many participants are above tau, for D(tau). Custodian side."""

    sorted: Array
    """The norms of all participants that are cut, ascending."""

    def above(self, tau: float) -> int:
        """Return N(tau), how many have a norm above tau."""
        return int(len(self.sorted) - np.searchsorted(self.sorted, tau, side="right"))

    def decide(self, tau: float, level: int) -> bool:
        """Say whether N(tau) is at most the level."""
        return self.above(tau) <= level

    def estimate(self, tau: float) -> float | None:
        """Return N(tau), which costs nothing."""
        return float(self.above(tau))


class SingleOwnerRows(ByNorm):
    """What each participant contributes to each group. Custodian side.

    It decides as :class:`tulle.relations.truncation.totals.Truncation` does, with N(tau) for
    D(tau).

    Example:
        >>> visits = Relation.conjunctive([0, 1, 2, 3], [0, 0, 1], [3.0, 2.0, 1.0])
        >>> SingleOwnerRows([visits], signed=False).clipped(4.0)
        array([5.])
    """

    def __init__(self, relations: Sequence[Relation], *, signed: bool) -> None:
        people, places, amounts = [], [], []
        for group, relation in enumerate(relations):
            sizes = np.diff(relation.offsets)
            for size in (0, 1):
                of_size = sizes == size
                starts = relation.offsets[:-1][of_size]
                people.append(relation.participants[starts] if size else np.full(len(starts), -1))
                places.append(np.full(len(starts), group))
                amounts.append(relation.weights[of_size])
        keys = np.concatenate(people) * len(relations) + np.concatenate(places)
        weights = _cut(np.concatenate(amounts), signed=signed)
        # The weights are the last key to sort by: the order of addition is always the same.
        order = np.lexsort((weights, keys))
        keys, starts = np.unique(keys[order], return_index=True)
        merged = np.add.reduceat(weights[order], starts) if len(starts) else weights
        self._hold(keys // len(relations), keys % len(relations), merged, len(relations))

    @classmethod
    def of_rows(
        cls, people: Array, places: Array, amounts: Array, groups: int, *, signed: bool
    ) -> SingleOwnerRows:
        """Return what rows say: each has a participant, or -1 for nobody, and a group.

        Nobody may occur twice in a group: then there is one order in which sums are rounded,
        whatever the order of the rows.
        """
        totals = cls.__new__(cls)
        totals._hold(people, places, _cut(amounts, signed=signed), groups)
        return totals

    def _hold(self, people: Array, places: Array, amounts: Array, groups: int) -> None:
        kept = amounts != 0
        if not bool(kept.all()):
            people, places, amounts = people[kept], places[kept], amounts[kept]
        # Short whole numbers are sorted in time that grows with their number only.
        order = np.argsort(places.astype(np.min_scalar_type(groups)), kind="stable")
        people, places, amounts = people[order], places[order], amounts[order]
        self.groups = groups
        self.fixed = np.zeros(groups)
        """What needs nobody, for each group: public."""
        nobody = people < 0
        if bool(nobody.any()):
            self.fixed = _sums(places[nobody], amounts[nobody], groups)
            people, places, amounts = people[~nobody], places[~nobody], amounts[~nobody]
        self.people, self.places, self.amounts = people, places, amounts
        count = int(people.max(initial=-1)) + 1
        self.loads = np.bincount(people, np.abs(amounts), count) * _UP
        """Of each participant the sum of absolute contributions, rounded up."""
        self.sorted = np.sort(self.loads)

    def clipped(self, tau: float) -> Array:
        """Return the sum for each group when nobody contributes more than tau in all."""
        return self.scaled(np.minimum(1.0, tau / np.maximum(self.loads, tau)))

    def scaled(self, factors: Array) -> Array:
        """Return the sum for each group when everyone's contributions are scaled by a factor."""
        return _sums(self.places, self.amounts * factors[self.people], self.groups)


def _cut(amounts: Array, *, signed: bool) -> Array:
    """Return amounts within public ends; without signs, zero for those below zero."""
    return np.sign(amounts) * within_reach(np.abs(amounts)) if signed else within_reach(amounts)


def _sums(places: Array, amounts: Array, groups: int) -> Array:
    """Return the sum for each group, rounded once; the groups are in order."""
    ends = np.cumsum(np.bincount(places, minlength=groups))[:-1]
    return np.array([math.fsum(part.tolist()) for part in np.split(amounts, ends)])


@dataclass(frozen=True)
class NoiseOnGroups:
    """The noise on the sums of all groups at one threshold."""

    scale: Fraction
    lattice: Lattice

    @classmethod
    def at(cls, tau: float, groups: int, epsilon: Fraction) -> NoiseOnGroups:
        """Return the noise for sums that one participant moves by tau in all.

        Snapping adds at most a step for each group; the steps together are a thousandth of tau.
        """
        sensitivity = Fraction(tau) * (1 + SUMMED)
        lattice = Lattice.for_scale(sensitivity / groups)
        return cls((sensitivity + groups * lattice.step) / epsilon, lattice)


def release_totals(
    totals: Clipped, chosen: RecursiveSettings, source: Source | None
) -> tuple[Array, float, NoiseOnGroups]:
    """Return a noisy sum for each group, the threshold found, and the noise.

    Guarantee:
        Pure epsilon_select + epsilon_answer per participant, add-remove: the level moves by at most
        one and has discrete Laplace noise of scale 1/epsilon_select; given its threshold, the sums
        of all groups move by at most tau together, and each has discrete Laplace noise of scale
        tau/epsilon_answer (with what rounding and snapping add). The two compose. See the module's
        text.
    """
    level = least_level(totals, chosen.thresholds)
    with charge(LaplaceCharge(1)):
        level += discrete_laplace(scale=1 / chosen.epsilon_select, source=source)
    tau = chosen.threshold(max(level, 0))
    noise = NoiseOnGroups.at(tau, totals.groups, chosen.epsilon_answer)
    scale = noise.scale / noise.lattice.step
    moved = Fraction(tau) * (1 + SUMMED) / noise.lattice.step + totals.groups
    if totals.groups > MANY and scale <= 2**47:
        snapped = noise.lattice.snap(totals.clipped(tau))
        with charge(LaplaceCharge(moved)):
            points = snapped + discrete_laplace(scale=scale, size=totals.groups, source=source)
        return noise.lattice.value(points) + totals.fixed, tau, noise
    values = np.empty(totals.groups)
    with charge(LaplaceCharge(moved, calls=totals.groups)):
        for group, value in enumerate(totals.clipped(tau).tolist()):
            point = noise.lattice.snap(value) + discrete_laplace(scale=scale, source=source)
            values[group] = noise.lattice.value(point) + totals.fixed[group]
    return values, tau, noise
