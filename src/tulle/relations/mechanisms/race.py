"""Race to the top: many thresholds at once, the largest answer wins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from tulle.core import registry, validate
from tulle.core.dataset import Dataset
from tulle.core.error_law import ErrorLaw
from tulle.core.errors import InputError
from tulle.core.mechanism import Parameters, Settings, Terms
from tulle.core.source import Source
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge
from tulle.relations.data import Relation
from tulle.relations.queries import Total
from tulle.relations.truncation.mechanism import NoiseOnValue, Side, TruncationMechanism
from tulle.relations.truncation.totals import GAP, Truncation

_UP = 1.0 + 2.0**-40
"""Covers the rounding of a few products."""


@dataclass(frozen=True)
class Tuning:
    """Not chosen on any data: a threshold that misleads once in ten is rare enough, and the penalty
    grows with the logarithm only."""

    failure: float = 0.1
    """The chance, in all, that some threshold's noise carries it above the truth."""


_TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class RaceSettings(Settings):
    """The public settings of one race."""

    bound: Fraction
    thresholds: int
    epsilon: Fraction


class Race(TruncationMechanism):
    """Release the largest of the truncated totals at thresholds 2, 4, 8, ... each with noise.

    Every threshold's value gets Laplace noise and a penalty that keeps it below the truth with
    high probability; then the largest is the answer. All noise is drawn first, so thresholds that
    cannot win any more are not solved: that changes no answer.

    Guarantee:
        Pure epsilon per unit, add-remove. At threshold tau one participant moves the certified
        value by at most tau + gap; each of the L thresholds is released at epsilon/L, and the
        largest is post-processing. ``bound`` only says how many thresholds there are; if it is
        below the true largest contribution, accuracy suffers and privacy does not.

    Error:
        With probability 0.9 at most 4·L·ln(L/0.1)·tau*/epsilon below the truth, where tau* is the
        largest contribution of a participant.

    Reference:
        Dong, Fang, Yi, Tao & Machanavajjhala, R2T: instance-optimal truncation, SIGMOD 2022.
    """

    name: ClassVar[str] = "race"
    title: ClassVar[str] = "the best of many thresholds"
    reference: ClassVar[str] = "Dong et al., SIGMOD 2022"
    options: ClassVar[tuple[str, ...]] = ("bound",)
    needs_options: ClassVar[tuple[str, ...]] = ("bound",)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        if "bound" not in options:
            raise InputError(
                "Mechanism 'race' needs bound=, the most that one unit could contribute to the "
                "answer. Without such a bound use mechanism 'recursive', which needs none."
            )
        bound = validate.positive(bound=options["bound"])
        if bound > 2**60:
            raise InputError("bound must be at most 2^60.")
        count = max(math.ceil(math.log2(float(bound))), 1)
        return RaceSettings(bound, count, terms.epsilon / self.sides(terms.query))

    def expect_side(self, truncation: Truncation, settings: Parameters) -> Side:
        lanes = lanes_of(RaceSettings.read(settings))
        value, winner = find_winner(lanes, truncation, [0] * len(lanes))
        return Side(value, None, (winner or lanes[0]).scale, 0.0)

    def release_side(
        self, truncation: Truncation, settings: Parameters, source: Source | None
    ) -> Side:
        lanes = lanes_of(RaceSettings.read(settings))
        value, winner = run_race(lanes, truncation, source)
        if winner is None:
            # Nothing was above zero. That the truth is at least zero is an interval all the same:
            # one stated only where noise carried a threshold up would miss far too often. No
            # threshold's penalty is in this zero, so none may raise the lower end.
            last = lanes[-1]
            return Side(value, None, last.scale, last.noise.slack, lanes=len(lanes))
        return Side(value, winner.tau, winner.scale, winner.noise.slack, winner.penalty, len(lanes))

    def details(self, sides: Sequence[Side], law: ErrorLaw | None) -> Mapping[str, Any]:
        threshold = sides[0].threshold
        return {} if law is None or threshold is None else {"threshold": threshold}


class Lane:
    """One threshold of the race, with its noise and its penalty; all of it public."""

    def __init__(self, index: int, count: int, epsilon: Fraction) -> None:
        share = epsilon / count
        self.tau = 2.0**index
        self.gap = GAP * self.tau
        self.noise = NoiseOnValue.at(self.tau, share)
        self.lattice, self.scale = self.noise.lattice, self.noise.scale
        self.penalty = float(self.scale) * math.log(count / _TUNING.failure)

    def draw(self, source: Source | None) -> int:
        """Draw the noise, in steps of the lattice."""
        with charge(LaplaceCharge(self.noise.moved)):
            return discrete_laplace(scale=self.noise.steps(), source=source)


def lanes_of(settings: RaceSettings) -> list[Lane]:
    """Return all thresholds of a race."""
    count = settings.thresholds
    return [Lane(index, count, settings.epsilon) for index in range(1, count + 1)]


def run_race(
    lanes: list[Lane], truncation: Truncation, source: Source | None
) -> tuple[float, Lane | None]:
    """Draw all noise, then find the winner."""
    return find_winner(lanes, truncation, [lane.draw(source) for lane in lanes])


def find_winner(
    lanes: list[Lane], truncation: Truncation, noises: list[int]
) -> tuple[float, Lane | None]:
    """Return the largest noisy, penalised value and its lane; zero and None if none is above zero.

    A lane whose value cannot reach the best so far, by a certain bound from above, is not solved:
    the answer is the one that solving all lanes would give. Among equal values the lane of the
    least threshold wins.
    """
    outlook = Outlook(truncation)

    def bid(place: int, value: float | Fraction) -> float:
        lane = lanes[place]
        return lane.lattice.value(lane.lattice.snap(value) + noises[place]) - lane.penalty

    left = {place: bid(place, outlook.ceiling(lane)) for place, lane in enumerate(lanes)}
    best, winner = 0.0, None
    while left:
        place = max(left, key=lambda k: left[k])
        hope = bid(place, outlook.ceiling(lanes[place]))
        if hope < left[place]:
            # Something learned since has lowered it: look again who leads.
            left[place] = hope
            continue
        del left[place]
        if hope <= 0.0 or hope < best:
            break
        value = bid(place, outlook.solve(lanes[place]))
        if value > best or (value == best and winner is not None and place < winner):
            best, winner = value, place
    return best, None if winner is None else lanes[winner]


class Outlook:
    """Bounds from above on the values of all lanes, from those solved so far.

    X grows with tau and is concave in it, so one value bounds all others: X(tau) is at most X(tau')
    below tau', and at most tau/tau' times as much above.
    """

    def __init__(self, truncation: Truncation) -> None:
        self.truncation = truncation
        self.cheap: dict[float, float] = {}
        self.solved: list[tuple[float, float]] = []

    def ceiling(self, lane: Lane) -> float:
        """Return a number that the lane's certified value is certainly not above."""
        if lane.tau not in self.cheap:
            self.cheap[lane.tau] = self.truncation.ceiling(lane.tau)
        known = [bound * max(1.0, lane.tau / tau) for tau, bound in self.solved]
        return min([self.cheap[lane.tau], *known]) * _UP + lane.gap

    def solve(self, lane: Lane) -> float | Fraction:
        """Return the certified value of a lane, and remember it."""
        value = self.truncation.value(lane.tau, lane.gap)
        self.solved.append((lane.tau, float(value) + lane.gap))
        return value


@registry.mechanism("relation", "race", answers=(Total,), units=("participant",))
class RelationRace(Race):
    """The race on a relation itself.

    Guarantee:
        As :class:`Race`, per participant.
    """

    def relation(self, terms: Terms, dataset: Dataset) -> Relation:
        assert isinstance(dataset, Relation)
        return dataset
