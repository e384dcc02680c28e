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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from tulle.core import registry, validate
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError
from tulle.core.events import Event, Pure
from tulle.core.mechanism import Parameters, Settings, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.noise import geometric
from tulle.noise.charge import Draw, PricedCharge, charge
from tulle.relations.data import Relation
from tulle.relations.queries import Total
from tulle.relations.truncation.mechanism import (
    NoiseOnValue,
    Side,
    TruncationMechanism,
    predicted_value,
)
from tulle.relations.truncation.totals import GAP, LARGEST, Decider, Truncation

COUNT = 256
_FINE = 128
_LEAP = 2.0**6
"""How many thresholds there are; from the 129th on they grow by leaps, up to the largest number."""


@dataclass(frozen=True)
class Tuning:
    """Numbers that were set by hand, for counts of edges and of triangles per node.

    Chosen on the first eight networks of ``benchmarks/node_counts.py`` and on made-up ones; it
    compares them with the best that the data themselves allow, on four others too.
    """

    stopping: int = 6
    """The search stops where about this many participants over epsilon stick out."""
    limit_share: Fraction = Fraction(1, 5)
    stop_share: Fraction = Fraction(1, 5)
    """Parts of epsilon for the noise that all thresholds share, rho, and for that of each, nu."""
    start: float = 1.0
    step: float = 2.0 ** (1 / 3)
    """The first threshold, and how much larger each of the next is."""
    reach: float = 2.15
    least_reach: float = 1.4
    bend: float = 1 / 8
    """The threshold found is raised by this factor before anything is cut. It is divided by this
    power of epsilon: the fewer stick out, the less far they do."""
    raised: float = 0.25
    """By what part of the threshold over epsilon the median answer lies above the truncated
    value."""


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
        return NoiseOnValue.at(tau, self.epsilon_above)

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

    tuned: ClassVar[Mapping[type[Query], Tuning]] = {}
    """Questions whose usual settings differ from those of all others."""

    def tuning(self, query: Query) -> Tuning:
        """Return the numbers that settings follow where nobody names them, from the question."""
        return next((one for kind, one in self.tuned.items() if isinstance(query, kind)), Tuning())

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        usual = self.tuning(terms.query)
        epsilon = terms.epsilon / self.sides(terms.query)
        size = min(max(float(epsilon), 0.01), 1e9)
        near = max(usual.reach * size**-usual.bend, usual.least_reach)
        numbers = {
            name: float(validate.positive(**{name: options.get(name, default)}))
            for name, default in (("start", usual.start), ("step", usual.step), ("reach", near))
        }
        if not 1e-9 <= numbers["start"] <= 1e12 or not 1e-3 <= numbers["reach"] <= 1e6:
            raise InputError("start and reach must lie in [1e-9, 1e12] and [1e-3, 1e6].")
        if not 1.01 <= numbers["step"] <= 100:
            raise InputError("step is the ratio of neighbouring thresholds: from 1.01 to 100.")
        stop_at = round(usual.stopping / max(epsilon, Fraction(1, 10**12)))
        limit, stop = epsilon * usual.limit_share, epsilon * usual.stop_share
        return SparseVectorSettings(
            **numbers,
            stopping=validate.whole(at_least=0, stopping=options.get("stopping", stop_at)),
            raised=usual.raised,
            epsilon_limit=limit,
            epsilon_stop=stop,
            epsilon_above=epsilon - limit - stop,
            epsilon_below=epsilon - stop,
        )

    def expect_side(self, truncation: Truncation, settings: Parameters) -> Side:
        chosen = SparseVectorSettings.read(settings)
        tau = chosen.threshold(first_fit(truncation, chosen, [chosen.stopping] * COUNT))
        noise, raised = chosen.noise(tau), chosen.raise_by(tau)
        value = predicted_value(truncation, tau, float(noise.scale)) + raised
        return Side(value, tau, noise.scale, noise.slack, -raised)

    def release_side(
        self, truncation: Truncation, settings: Parameters, source: Source | None
    ) -> Side:
        chosen = SparseVectorSettings.read(settings)
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
            moves.append(noise.moved)
            point = noise.lattice.snap(truncation.value(tau, GAP * tau))
            point += geometric(scale=noise.steps(), source=source)
            ratio = chosen.epsilon_above / chosen.epsilon_below
            point -= geometric(scale=noise.steps() * ratio, source=source)
        value = noise.lattice.value(point) + chosen.shift(tau, noise)
        return Side(value, tau, noise.scale, noise.slack, -chosen.raise_by(tau))


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
