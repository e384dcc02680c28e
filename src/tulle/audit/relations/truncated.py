"""Truncated totals with noise, in closed form: at one threshold that is drawn, or many that race.

What is seen of a run is binned: lattices are fine, and thousands of cells would leave none of them
enough draws. The bins follow from what a release shows anyway, never from the data behind it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.laws import Claim, Law, ratio
from tulle.core.arrays import Floats, Wholes
from tulle.noise import Lattice

_SELDOM = 2e-4
"""Pairs of thresholds that come up less often than this are left out of a difference."""


@dataclass(frozen=True, eq=False)
class Grid:
    """The public side of a run: thresholds, with the lattice and the noise at each of them.

    Grids are told apart by identity; whoever makes them makes each only once.
    """

    levels: tuple[int, ...]
    taus: tuple[float, ...]
    lattices: tuple[Lattice, ...]
    scales: tuple[Fraction, ...]
    """Of the noise, in steps of the lattice."""
    allowed: tuple[Fraction, ...]
    """How many steps one participant may move the snapped value, as claimed."""
    penalties: tuple[float, ...] = ()
    below: tuple[Fraction, ...] = ()
    """Of the noise below zero, where its scale is another."""

    @cached_property
    def scale_array(self) -> Floats:
        """The scales as floats."""
        return np.array([float(scale) for scale in self.scales])

    @cached_property
    def allowed_array(self) -> Floats:
        """What is allowed, as floats."""
        return np.array([float(allowed) for allowed in self.allowed])


Atoms = tuple[float, Floats, Floats]
"""A threshold that a release shows (zero: none), evenly spaced values, and their masses."""


class PureTruncation(Law):
    """A law whose guarantee has no delta: its largest log-ratio is all that is ever asked of it."""

    def losses(self, other: Any) -> tuple[Floats, Floats]:
        # As if the largest log-ratio were everywhere: what follows from that is on the safe side.
        return np.array([1.0]), np.array([self.loss(other)])


@dataclass(frozen=True)
class TruncatedSide(PureTruncation):
    """The truncated values of one relation with weights of at least zero, and noise on them."""

    grid: Grid
    centres: tuple[Any, ...]
    """The snapped value at each threshold of the grid; for groups cut together, one for each."""
    above: float
    """How far a value lies above the truth at worst, as a part of the certified gap."""
    signed: bool = field(default=False, kw_only=True)
    """Whether an answer may be below zero."""
    integral: bool = field(default=False, kw_only=True)
    """Whether an answer is rounded to a whole number."""
    shown: ClassVar[bool]
    """Whether a release of two sides shows the threshold of each."""

    @cached_property
    def _centre_array(self) -> Wholes:
        return np.array(self.centres, dtype=np.int64).reshape(len(self.grid.taus), -1)

    def _moved(self, other: TruncatedSide) -> Floats:
        """Return by how many steps the values differ, of all groups together, at each threshold."""
        moved = np.abs(self._centre_array - other._centre_array).sum(axis=1)
        return np.asarray(moved, dtype=np.float64)

    def claims(self, other: TruncatedSide) -> Iterator[Claim]:
        moved = self._moved(other)
        parts = moved / self.grid.allowed_array
        worst = int(np.argmax(parts))
        yield Claim(
            "value moves by tau",
            float(parts[worst]),
            f"moves {moved[worst]:.0f} of {self.grid.allowed_array[worst]:.6g} steps "
            f"at tau = {self.grid.taus[worst]:.4g}",
        )
        # Rounding may put a value above the truth where nothing is cut; the gap covers that too.
        yield Claim(
            "value below truth",
            max(self.above, 0.0),
            f"{max(self.above, 0.0):.3g} of the gap above",
        )

    @abstractmethod
    def atoms(self, left_out: float) -> Iterator[Atoms]:
        """Yield what one side gives before it is binned, by the threshold that is shown."""

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        cells: dict[Hashable, float] = defaultdict(float)
        for tau, values, masses in self.atoms(left_out):
            shown = (tau,) if tau else ()
            # An answer that cannot be negative is published as zero when noise makes it so.
            answers = values if self.signed else np.maximum(values, 0.0)
            places = place(shown, np.rint(answers) if self.integral else answers)
            for cell in np.unique(places).tolist():
                cells[shown, cell] += float(masses[places == cell].sum())
        return list(cells), np.array(list(cells.values()))


@dataclass(frozen=True)
class Truncated(TruncatedSide):
    """A level with discrete Laplace noise, at least zero; at its threshold, a value with noise.

    The grid lists all levels up to one whose threshold is above every participant's load, and one
    far beyond.
    """

    level: int
    select: Fraction
    """The level's noise has scale 1 / select."""
    shown: ClassVar[bool] = True

    @cached_property
    def level_logs(self) -> Floats:
        """Log-probabilities of the levels of the grid; all noise below zero counts for zero."""
        rate = float(self.select)
        distance = np.abs(np.array(self.grid.levels) - self.level)
        logs = math.log(math.tanh(rate / 2)) - distance * rate
        logs[0] = -self.level * rate - math.log1p(math.exp(-rate))
        return np.asarray(logs, dtype=np.float64)

    def claims(self, other: TruncatedSide) -> Iterator[Claim]:
        assert isinstance(other, Truncated)
        moved = abs(self.level - other.level)
        yield Claim("level moves by one", ratio(moved, 1), f"{self.level} and {other.level}")
        yield from super().claims(other)

    def loss(self, other: Truncated) -> float:
        # Given the level, the log-ratio of the values is largest beyond either centre, and there
        # it is the distance of the centres over the scale. Levels beyond the last that is listed
        # lose no more: the levels' own log-ratio stays what it is; both values are their totals,
        # certified to a fixed part of tau, and stay as far apart while the noise grows with tau.
        given = self._moved(other) / self.grid.scale_array
        return float(np.max(self.level_logs - other.level_logs + given))

    def atoms(self, left_out: float) -> Iterator[Atoms]:
        """Yield values by threshold; what lies beyond the listed levels has no atoms."""
        for at, log in enumerate(self.level_logs.tolist()):
            if log > math.log(left_out):
                steps, masses = laplace_masses(self.grid.scales[at], left_out)
                values = self.grid.lattices[at].value(self.centres[at] + steps)
                yield self.grid.taus[at], values, masses * math.exp(log)


@dataclass(frozen=True)
class FirstFit(TruncatedSide):
    """The first place whose noisy level allows for the deletion there; then a value with noise.

    The grid lists all places up to one whose threshold is above every participant's load, and one
    far beyond; nobody need be deleted from there on.
    """

    needed: tuple[int, ...]
    """The least level that allows for the deletion, at each place up to the first with none."""
    stopping: int
    limit: Fraction
    stop: Fraction
    """The noise that all places share has scale 1 / limit, that of each 1 / stop."""
    shown: ClassVar[bool] = True

    @cached_property
    def level_logs(self) -> Floats:
        """Log-probabilities of stopping at the places of the grid."""
        return _stop_logs(self.grid.levels, self.needed, self.stopping, self.limit, self.stop)

    def claims(self, other: TruncatedSide) -> Iterator[Claim]:
        assert isinstance(other, FirstFit)
        moved = np.array([0, *self.needed]) - np.array([0, *other.needed])
        spread = int(moved.max() - moved.min())
        yield Claim("deletions move one way by one", ratio(spread, 1), f"{spread} apart")
        yield from super().claims(other)

    def loss(self, other: FirstFit) -> float:
        # As of Truncated, but that noise above a centre has another scale than below.
        moved = (self._centre_array - other._centre_array)[:, 0]
        below = np.array([float(scale) for scale in self.grid.below])
        given = np.where(moved > 0, moved / self.grid.scale_array, -moved / below)
        return float(np.max(self.level_logs - other.level_logs + given))

    def atoms(self, left_out: float) -> Iterator[Atoms]:
        """Yield values by threshold; what lies beyond the listed places has no atoms."""
        for at, log in enumerate(self.level_logs.tolist()):
            if log > math.log(left_out):
                steps, masses = skewed_masses(self.grid.scales[at], self.grid.below[at], left_out)
                values = self.grid.lattices[at].value(self.centres[at] + steps)
                yield self.grid.taus[at], values - self.grid.penalties[at], masses * math.exp(log)


@lru_cache(maxsize=4096)
def _stop_logs(
    places: tuple[int, ...],
    needed: tuple[int, ...],
    stopping: int,
    limit: Fraction,
    stop: Fraction,
) -> Floats:
    """Return the log-probabilities of stopping at these places, summed over the shared noise."""
    shared, each = float(limit), float(stop)
    drawn = np.arange(stopping + math.ceil(60 / shared) + 1)
    before = math.log(-math.expm1(-shared)) - shared * drawn
    known = dict(zip(places, needed, strict=False))
    logs = []
    for at in range(places[-1] + 1):
        short = np.maximum(known.get(at, 0) - stopping + drawn, 0)
        if at in places:
            logs.append(float(np.logaddexp.reduce(before - each * short)))
        with np.errstate(divide="ignore"):
            before = before + np.log(-np.expm1(-each * short))
    return np.array(logs)


@dataclass(frozen=True)
class Lanes(TruncatedSide):
    """A value with noise at every threshold; the largest, less its penalty, leaves if above zero.

    All of the noisy values are compared: which is the largest is post-processing.
    """

    shown: ClassVar[bool] = False

    def loss(self, other: Lanes) -> float:
        return math.fsum(self._moved(other) / self.grid.scale_array)

    def atoms(self, left_out: float) -> Iterator[Atoms]:
        """Yield the winning values by lane, and zero for the case that no lane is above it."""
        lanes = []
        for at, centre in enumerate(self.centres):
            steps, masses = laplace_masses(self.grid.scales[at], left_out)
            values = self.grid.lattices[at].value(centre + steps) - self.grid.penalties[at]
            lanes.append((values, masses, np.concatenate([[0.0], np.cumsum(masses)])))

        def others_below(level: Floats, lane: int | None) -> Floats:
            """Return the probability that no lane but this one is above the level."""
            below = np.ones(len(level))
            for at, (values, _, sums) in enumerate(lanes):
                if at != lane:
                    below *= sums[np.searchsorted(values, level, side="right")]
            return below

        zero = np.zeros(1)
        yield 0.0, zero, others_below(zero, None)
        for at, (values, masses, _) in enumerate(lanes):
            won = values > 0
            mass = masses[won] * others_below(values[won], at)
            yield self.grid.taus[at], values[won], mass


@dataclass(frozen=True)
class Difference(PureTruncation):
    """The released total of signed weights: two independent sides, one less the other."""

    positive: TruncatedSide
    negative: TruncatedSide

    def claims(self, other: Difference) -> Iterator[Claim]:
        # A participant may be in tuples of both signs: each side has its own budget.
        yield from self.positive.claims(other.positive)
        yield from self.negative.claims(other.negative)

    def loss(self, other: Difference) -> float:
        positive: float = self.positive.loss(other.positive)
        return positive + float(self.negative.loss(other.negative))

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        cells = _difference_cells(self, left_out)
        return list(cells), np.array(list(cells.values()))


def laplace_masses(scale: Fraction, left_out: float) -> tuple[Wholes, Floats]:
    """Return whole numbers and their discrete Laplace masses, all but ``left_out`` in all."""
    reach = math.ceil(float(scale) * math.log(2 / left_out))
    steps = np.arange(-reach, reach + 1)
    rate = 1 / float(scale)
    return steps, np.asarray(math.tanh(rate / 2) * np.exp(-np.abs(steps) * rate))


def skewed_masses(above: Fraction, below: Fraction, left_out: float) -> tuple[Wholes, Floats]:
    """Return the masses of the difference of two geometric draws, all but ``left_out`` in all."""
    reach = math.ceil(float(max(above, below)) * math.log(2 / left_out))
    steps = np.arange(-reach, reach + 1)
    rates = np.where(steps > 0, 1 / float(above), 1 / float(below))
    masses = np.exp(-np.abs(steps) * rates)
    return steps, np.asarray(masses / masses.sum())


def bins(shown: tuple[float, ...]) -> tuple[float, int]:
    """Return the width of a bin and how many there are on either side of zero.

    Differences get few bins, since there is one set of them for each pair of thresholds.
    """
    if not shown:
        return 4.0, 8
    return (shown[0] / 4, 1000) if len(shown) == 1 else (sum(shown) / 2, 3)


def place(shown: tuple[float, ...], values: Floats) -> Wholes:
    """Return the bin of each value, given the thresholds that a release shows."""
    width, most = bins(shown)
    return np.asarray(np.clip(np.floor(values / width), -most, most - 1), dtype=np.int64)


@lru_cache(maxsize=32)
def _difference_cells(law: Difference, left_out: float) -> dict[Hashable, float]:
    """Return the mass of each bin for each pair of thresholds that is shown."""
    cells: dict[Hashable, float] = defaultdict(float)
    negative = list(law.negative.atoms(left_out))
    for high, ours, weights in law.positive.atoms(left_out):
        for low, theirs, others in negative:
            if weights.sum() * others.sum() < _SELDOM:
                continue
            shown = (high, low) if law.positive.shown else ()
            found = _difference_masses(shown, (ours, weights), (theirs, others))
            for cell, mass in found.items():
                cells[shown, cell] += mass
    return dict(cells)


def _how_many(values: Floats, most: Floats) -> Wholes:
    """Return how many of the values are at most each number; values are evenly spaced."""
    if len(values) < 2:
        return np.asarray(np.searchsorted(values, most, side="right"), dtype=np.int64)
    # Much faster than a search, and exact on lattices, whose steps are powers of two.
    before = np.floor((most - values[0]) / (values[1] - values[0])) + 1
    return np.asarray(np.clip(before, 0, len(values)), dtype=np.int64)


def _difference_masses(
    shown: tuple[float, ...], positive: tuple[Floats, Floats], negative: tuple[Floats, Floats]
) -> dict[int, float]:
    """Return the mass of each bin of the difference of two independent values."""
    width, most = bins(shown)
    (ours, weights), (theirs, others) = positive, negative
    sums = np.concatenate([[0.0], np.cumsum(others)])
    at_least = [float(weights.sum() * others.sum())]
    for cell in range(1 - most, most):
        # ours - theirs >= edge exactly when theirs <= ours - edge.
        below = sums[_how_many(theirs, ours - cell * width)]
        at_least.append(float(np.sum(weights * below)))
    at_least.append(0.0)
    return {cell: at_least[cell + most] - at_least[cell + most + 1] for cell in range(-most, most)}
