"""Truncation at the first threshold that few enough stick out of, found by sparse vector.

Thresholds tau_0 < tau_1 < ... are looked at in turn. Let d_i be the least whole number with
D(tau_i) <= d_i + eta (:mod:`tulle.relations.truncation.totals`): so many participants must be
deleted, in part, for everyone left to be in at most tau_i. The search stops at the first i with

    d_i <= K - rho + nu_i,

where K is public, rho and all nu_i are independent geometric noise: rho = r with a probability
proportional to exp(-a·r), nu_i = v with one proportional to exp(-b·v), r and v >= 0. If it has not
stopped before, it stops at the last threshold. Then T = reach·tau_i, the certified value x of X(T)
on a lattice, and noise on it that is proportional to exp(-above·z/s) for z >= 0 and to
exp(-below·|z|/s) for z < 0, where s is the most that one participant moves x.

*Why it is private.* Let primes stand for the relation with one more participant. Joining never
lowers D, and raises it by at most one: d_i <= d'_i <= d_i + 1. Write F(k) for the chance that
nu < k, and S(k) = 1 - F(k). F never falls, S never rises, and S(k) <= exp(b)·S(k + 1). Stopping at
i has the probability

    P(i) = sum over r of P(rho = r) · prod over h < i of F(d_h - K + r) · S(d_i - K + r).

1. *Without, by with.* For each r, F(d_h - K + r) <= F(d'_h - K + r), and S(d_i - K + r)
   <= exp(b)·S(d_i + 1 - K + r) <= exp(b)·S(d'_i - K + r). So P(i) <= exp(b)·P'(i).
2. *With, by without.* Compare r with r + 1: F(d'_h - K + r) <= F(d_h - K + r + 1); S(d'_i - K + r)
   <= S(d_i - K + r) <= exp(b)·S(d_i - K + r + 1); P(rho = r) = exp(a)·P(rho = r + 1). So
   P'(i) <= exp(a + b)·P(i).

At the last threshold S is one, and both hold as well. How many thresholds were looked at is part of
the result and costs nothing more, because all the queries move the same way (as for counts in Lyu,
Su & Li, PVLDB 2017); that noise may be one-sided is what makes it half as wide as usual.

Given i, x' is at most s above x. Where it is above, the density of an answer under x is at most
exp(below) times that under x', on the left of both; and that under x' at most exp(above) times that
under x, on the right. Both steps together: 1. costs b + below, 2. costs a + b + above. So

    epsilon = b + below = a + b + above

pays for all: what the search does not spend in one direction, the answer may. (X never falls when
somebody joins, but its certified middle may, by the gap, and the lattice adds a step: about a
hundredth of s. For that hundredth the two rates change places, which is less than what is paid for,
since neither is fifty times the other.)

*Why it is accurate.* Noise of scale 1/epsilon on how many stick out, whatever the thresholds are:
the search ends where about K = 6/epsilon stick out, in place of as many as there are levels below.
What those few have beyond T is cut; a part of T/epsilon that is added to every answer makes up for
some of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from tulle.core import registry, validate
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError
from tulle.core.events import Event, Pure
from tulle.core.mechanism import Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.noise import Lattice, geometric
from tulle.noise.charge import Draw, PricedCharge, charge
from tulle.relations.data import Relation
from tulle.relations.mechanisms.recursive import (
    NoiseOnValue,
    TruncationMechanism,
    predicted_value,
    value_moves,
)
from tulle.relations.queries import Total
from tulle.relations.truncation.totals import GAP, LARGEST, Decider, Truncation, TruncationLaw

STOPPING = 6
"""The search stops where about this many participants over epsilon stick out."""

LIMIT_SHARE = STOP_SHARE = Fraction(1, 5)
"""Parts of epsilon for the noise that all thresholds share, rho, and for that of each, nu."""

START = 1.0
STEP = 2.0 ** (1 / 3)
"""The first threshold, and how much larger each of the next is."""

REACH = 2.15
LEAST_REACH = 1.4
BEND = 1 / 8
"""The threshold found is raised by this factor before anything is cut. It is divided by this power
of epsilon: the fewer stick out, the less far they do."""

RAISE = 0.25
"""By what part of the threshold over epsilon the median answer lies above the truncated value."""

COUNT = 256
_FINE = 128
_LEAP = 2.0**6
"""How many thresholds there are; from the 129th on they grow by leaps, up to the largest number."""


@dataclass(frozen=True, eq=False)
class SparseVectorSettings(Settings):
    """The public settings of one run."""

    start: float
    step: float
    reach: float
    stopping: int
    """K: about how many participants stick out of the threshold that is found."""
    raised: float
    epsilon_limit: Fraction
    epsilon_stop: Fraction
    epsilon_above: Fraction
    epsilon_below: Fraction

    def searched(self, place: int) -> float:
        """Return the threshold that is looked at in this place."""
        fine = self.step ** min(place, _FINE)
        return min(self.start * fine * _LEAP ** max(place - _FINE, 0), LARGEST)

    def threshold(self, place: int) -> float:
        """Return the threshold to truncate at when the search stops in this place."""
        return min(self.searched(place) * self.reach, LARGEST)

    def noise(self, tau: float) -> NoiseOnValue:
        """Return the noise above the value truncated at tau; its scale is the larger one."""
        sensitivity = value_moves(tau)
        lattice = Lattice.for_scale(sensitivity)
        scale = (sensitivity + lattice.step) / self.epsilon_above
        return NoiseOnValue(scale, lattice, float(lattice.step) + GAP * tau)

    def shift(self, tau: float, noise: NoiseOnValue) -> float:
        """Return what is added so that the median lies where it should."""
        above, below = self.epsilon_above, self.epsilon_below
        median = float(noise.scale) * math.log(2 * below / (above + below))
        return self.raise_by(tau) - median

    def raise_by(self, tau: float) -> float:
        """Return how far the median answer lies above the truncated value."""
        return self.raised * tau / float(self.epsilon_stop + self.epsilon_below)


class SparseVector(TruncationMechanism):
    """Find the first threshold that few enough stick out of; truncate there, add noise.

    Guarantee:
        Pure epsilon per unit, add-remove; the argument is in the module's text. With signed
        weights both parts are released at half of epsilon each.

    Error:
        Noise of about four times what the sixth largest participant contributes, over epsilon,
        and what the few above that contribute beyond it. Nobody can bound that privately, so
        intervals have a lower end only.

    Reference:
        Chen & Zhou, Recursive mechanism, SIGMOD 2013, for what is counted and truncated; Dwork &
        Roth, Algorithmic foundations, section 3.6, for the search.
    """

    name: ClassVar[str] = "sparse_vector"
    title: ClassVar[str] = "truncation at the first threshold that few stick out of"
    reference: ClassVar[str] = "Chen & Zhou, SIGMOD 2013; Dwork & Roth, section 3.6"
    options: ClassVar[tuple[str, ...]] = ("start", "step", "reach", "stopping")

    def usual_reach(self, query: Query) -> float:
        """Return the reach at epsilon = 1 when nobody names one; it follows from the question."""
        return REACH

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        epsilon = terms.epsilon / (2 if self.signed(terms.query) else 1)
        size = min(max(float(epsilon), 0.01), 1e9)
        near = max(self.usual_reach(terms.query) * size**-BEND, LEAST_REACH)
        numbers = {
            name: float(validate.positive(**{name: options.get(name, usual)}))
            for name, usual in (("start", START), ("step", STEP), ("reach", near))
        }
        if not 1e-9 <= numbers["start"] <= 1e12 or not 1e-3 <= numbers["reach"] <= 1e6:
            raise InputError("start and reach must lie in [1e-9, 1e12] and [1e-3, 1e6].")
        if not 1.01 <= numbers["step"] <= 100:
            raise InputError("step is the ratio of neighbouring thresholds: from 1.01 to 100.")
        stopping = options.get("stopping", round(STOPPING / max(epsilon, Fraction(1, 10**12))))
        limit, stop = epsilon * LIMIT_SHARE, epsilon * STOP_SHARE
        return SparseVectorSettings(
            **numbers,
            stopping=validate.whole(at_least=0, stopping=stopping),
            raised=RAISE,
            epsilon_limit=limit,
            epsilon_stop=stop,
            epsilon_above=epsilon - limit - stop,
            epsilon_below=epsilon - stop,
        )

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        if like is None:
            return Prediction(None, None)
        chosen = SparseVectorSettings.read(settings)
        scale, slack, cut = Fraction(0), 0.0, 0.0
        for sign, truncation in self.parts(terms, like):
            tau = chosen.threshold(first_fit(truncation, chosen, [chosen.stopping] * COUNT))
            noise = chosen.noise(tau)
            scale, slack = scale + noise.scale, slack + noise.slack
            value = predicted_value(truncation, tau, float(noise.scale))
            cut += sign * (value + chosen.raise_by(tau))
        shortfall = abs(float(terms.query.truth(like)) - cut)
        return Prediction(None, TruncationLaw(scale, slack, shortfall))

    def run_parts(
        self,
        query: Query,
        settings: Parameters,
        parts: list[tuple[int, Truncation]],
        source: Source | None,
    ) -> Outcome:
        chosen = SparseVectorSettings.read(settings)
        value, scale, slack, raised = 0.0, Fraction(0), 0.0, 0.0
        thresholds = []
        for sign, truncation in parts:
            answer, tau = release_side(truncation, chosen, source)
            noise = chosen.noise(tau)
            value += sign * answer
            scale, slack = scale + noise.scale, slack + noise.slack
            raised += chosen.raise_by(tau)
            thresholds.append(tau)
        if not self.signed(query):
            value = max(value, 0.0)
        shown: Any = round(value) if query.integral else value
        # The difference of two numbers that may each fall short is bounded on neither side.
        law = None if self.signed(query) else TruncationLaw(scale, slack + 0.5, penalty=-raised)
        return Outcome(shown, law, {"thresholds": thresholds})


def release_side(
    truncation: Truncation, chosen: SparseVectorSettings, source: Source | None
) -> tuple[float, float]:
    """Return the noisy total of one side, and the threshold it was truncated at."""
    moves: list[Fraction] = []

    def priced(draws: Sequence[Draw]) -> Event:
        limit, *stops, above, below = (1 / draw.exact("scale") for draw in draws)
        (moved,) = moves
        with_by_without = limit + max(stops) + moved * above
        return Pure(max(with_by_without, max(stops) + moved * below))

    with charge(PricedCharge(priced, ("geometric",))):
        limit = chosen.stopping - geometric(scale=1 / chosen.epsilon_limit, source=source)
        levels = [limit + extra for extra in _draw_stops(1 / chosen.epsilon_stop, source)]
        tau = chosen.threshold(first_fit(truncation, chosen, levels))
        noise = chosen.noise(tau)
        step = noise.lattice.step
        moves.append(value_moves(tau) / step + 1)
        point = noise.lattice.snap(truncation.value(tau, GAP * tau))
        scale = noise.scale / step
        point += geometric(scale=scale, source=source)
        ratio = chosen.epsilon_above / chosen.epsilon_below
        point -= geometric(scale=scale * ratio, source=source)
    return noise.lattice.value(point) + chosen.shift(tau, noise), tau


def _draw_stops(scale: Fraction, source: Source | None) -> list[int]:
    """Draw the noise of each threshold; one by one where it is too large for an array."""
    if scale <= 2**40:
        drawn: list[int] = geometric(scale=scale, size=COUNT, source=source).tolist()
        return drawn
    return [geometric(scale=scale, source=source) for _ in range(COUNT)]


def first_fit(truncation: Decider, chosen: SparseVectorSettings, levels: Sequence[int]) -> int:
    """Return the first place whose level allows for the deletion there; else the last.

    D falls from place to place, so against the largest level so far a bisection finds where to
    set out; before that no level is enough.
    """

    def fits(place: int, level: int) -> bool:
        return level >= 0 and truncation.decide(chosen.searched(place), level)

    most, largest = [], -1
    for level in levels:
        largest = max(largest, level)
        most.append(largest)
    low, high = -1, len(levels) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle, most[middle]) else (middle, high)
    while high < len(levels) - 1 and not fits(high, levels[high]):
        high += 1
    return high


@registry.mechanism("relation", "sparse_vector", answers=(Total,), units=("participant",))
class RelationSparseVector(SparseVector):
    """The search by sparse vector on a relation itself.

    Guarantee:
        As :class:`SparseVector`, per participant.

    Example:
        >>> import tulle
        >>> chain = [person for pair in range(20) for person in (pair, pair + 1)]
        >>> pairs = Relation.conjunctive(range(0, 41, 2), chain)
        >>> terms = {"unit": "participant", "epsilon": 1.0, "mechanism": "sparse_vector"}
        >>> tulle.release(pairs, Total(), **terms).error.interval(0, 0.9)[1]
        inf
    """

    def relation(self, terms: Terms, dataset: Dataset) -> Relation:
        assert isinstance(dataset, Relation)
        return dataset
