"""Race to the top: many thresholds at once, the largest answer wins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from tulle.core import registry, validate
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError
from tulle.core.mechanism import Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.noise import Lattice, discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge
from tulle.relations.data import Relation
from tulle.relations.mechanisms.recursive import TruncationMechanism
from tulle.relations.queries import Total
from tulle.relations.truncation.totals import GAP, Truncation, TruncationLaw

_UP = 1.0 + 2.0**-40
"""Covers the rounding of a few products."""

FAILURE = 0.1
"""The chance, in all, that some threshold's noise carries it above the truth."""


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
        sides = 2 if self.signed(terms.query) else 1
        return RaceSettings(bound, count, terms.epsilon / sides)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        if like is None:
            return Prediction(None, None)
        lanes = lanes_of(RaceSettings.read(settings))
        best, scale = 0.0, Fraction(0)
        for sign, truncation in self.parts(terms, like):
            value, winner = find_winner(lanes, truncation, [0] * len(lanes))
            best += sign * value
            scale += lanes[0].scale if winner is None else winner.scale
        shortfall = abs(float(terms.query.truth(like)) - best)
        return Prediction(None, TruncationLaw(scale, 0.0, shortfall))

    def run_parts(
        self,
        query: Query,
        settings: Parameters,
        parts: list[tuple[int, Truncation]],
        source: Source | None,
    ) -> Outcome:
        lanes = lanes_of(RaceSettings.read(settings))
        value = 0.0
        winner: Lane | None = None
        for sign, truncation in parts:
            best, winner = run_race(lanes, truncation, source)
            value += sign * best
        answer: Any = round(value) if query.integral else value
        if self.signed(query) or winner is None:
            # A difference is bounded on neither side; without a winner zero is all that is known.
            return Outcome(answer, None, {})
        law = TruncationLaw(
            winner.scale,
            float(winner.lattice.step) + winner.gap + 0.5,
            lanes=len(lanes),
            penalty=winner.penalty,
        )
        return Outcome(answer, law, {"threshold": winner.tau})


class Lane:
    """One threshold of the race, with its noise and its penalty; all of it public."""

    def __init__(self, index: int, count: int, epsilon: Fraction) -> None:
        share = epsilon / count
        self.tau = 2.0**index
        self.gap = GAP * self.tau
        sensitivity = Fraction(self.tau) * (1 + Fraction(GAP) * Fraction(101, 100))
        self.lattice = Lattice.for_scale(sensitivity)
        self.scale = (sensitivity + self.lattice.step) / share
        self.moved = sensitivity / self.lattice.step + 1
        self.penalty = float(self.scale) * math.log(count / FAILURE)

    def draw(self, source: Source | None) -> int:
        """Draw the noise, in steps of the lattice."""
        with charge(LaplaceCharge(self.moved)):
            return discrete_laplace(scale=self.scale / self.lattice.step, source=source)


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
