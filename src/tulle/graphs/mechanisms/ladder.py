"""Ladders: pure epsilon, and the most accurate known for subgraph counts per edge."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.dataset import Dataset
from tulle.core.error_law import ErrorLaw, check_level
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import ProfiledCount, node_count, profiled_count
from tulle.graphs.sensitivity.counts import (
    LocalSensitivity,
    Profile,
    SpreadBudget,
    SpreadLaw,
    SpreadSettings,
    printed_note,
    public_length,
)
from tulle.noise import choose_log_weights, geometric, uniform_below
from tulle.noise.charge import LadderCharge, charge

SMOOTHING_SHARE = Fraction(1, 8)
"""Part of epsilon that :class:`SmoothedLadder` spends on the widths, unless said otherwise."""


@dataclass(frozen=True, eq=False)
class LadderSettings(SpreadSettings):
    """The public settings of one run of a ladder."""

    length: int
    smoothing: Fraction
    decay: Fraction


class _Ladder(Mechanism):
    """What the two ladders share: draw a rung, then a number on it."""

    kind: ClassVar[str] = "graph"

    @abstractmethod
    def rates(self, epsilon: Fraction, options: Parameters) -> tuple[Fraction, Fraction]:
        """Return the decay per rung and the smoothing of the widths (zero for none)."""

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes = node_count(terms)
        budget = SpreadBudget.of(terms.epsilon, options)
        decay, smoothing = self.rates(budget.answer, options)
        length = public_length(profiled_count(terms), nodes, decay)
        return LadderSettings(nodes, budget.answer, budget.spread, length, smoothing, decay)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        query = profiled_count(terms)
        chosen = LadderSettings.read(settings)
        worst = _law(query, chosen, query.largest_spread(chosen.nodes), Fraction(0))
        if not isinstance(like, Graph):
            return Prediction(worst, None)
        widths = ladder_widths(query, like, chosen)
        law = KnownLadderLaw(chosen.decay, query.cap(chosen.nodes), tuple(widths.profile))
        if not chosen.epsilon_spread:
            return Prediction(worst, law)
        printed = _law(query, chosen, widths.spread, 1 / chosen.epsilon_spread)
        return Prediction(worst, law, notes=printed_note(printed, law))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        query = profiled_count(terms)
        chosen = LadderSettings.read(settings)
        widths = ladder_widths(query, dataset, chosen)
        with charge(LadderCharge(chosen.smoothing)):
            noise = draw_ladder(widths.profile, query.cap(chosen.nodes), chosen.decay, source)
        most = query.maximum(chosen.nodes)
        value = min(max(query.truth(dataset) + noise, 0), most)
        private = chosen.budget.draw(widths.spread, source)
        law = None if private is None else _law(query, chosen, *private)
        return Outcome(value, law, {"range": [0, most]})


@registry.mechanism("graph", "smoothed_ladder", answers=(ProfiledCount,), units=("edge",))
class SmoothedLadder(_Ladder):
    """Release a subgraph count from a ladder whose widths change slowly, with steeper steps.

    The plain ladder pays half of epsilon for the sum of all weights, although that sum hardly
    changes when the widths do not. Here the widths I_t are first raised to the least row of
    whole numbers J_t >= I_t with J_{t+1} <= exp(smoothing)·J_t. A number on rung t then has
    weight exp(-decay·t) with decay = epsilon - smoothing, almost twice as steep.

    Guarantee:
        Pure epsilon per edge. J keeps the ladder's conditions (J is monotone in I, and
        J_t(G') <= J_{t+1}(G) follows from the same for I), so the rung of any number moves by at
        most one between neighbours: a factor of at most exp(decay). The sum of all weights is
        Z(G) = 1 + 2·sum of J_t·exp(-decay·(t+1)), and J_t(G') <= J_{t+1}(G) <=
        exp(smoothing)·J_t(G) gives Z(G') <= exp(smoothing)·Z(G). Together: epsilon.
        A tenth of epsilon, unless ``spread_share`` says otherwise, buys a private spread for the
        interval; the two compose.

    Error:
        About J_0/decay in spread, where J_0 is I_0 unless I_0 is below 1/smoothing. The law in
        the release bounds the widths by the private spread.

    Reference:
        The ladder of Zhang et al., SIGMOD 2015, with the smoothing of Nissim et al., STOC 2007,
        applied to its widths.

    Example:
        >>> import tulle
        >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> r = tulle.release(
        ...     square, tulle.triangles(), unit="edge", epsilon=2.0, mechanism="smoothed_ladder"
        ... )
        >>> r.guarantee.measure
        'pure'
    """

    title: ClassVar[str] = "ladder with smoothed widths and steeper steps"
    reference: ClassVar[str] = "after Zhang et al., SIGMOD 2015"
    options: ClassVar[tuple[str, ...]] = ("spread_share", "smoothing_share")

    def rates(self, epsilon: Fraction, options: Parameters) -> tuple[Fraction, Fraction]:
        share = validate.probability(
            smoothing_share=options.get("smoothing_share", SMOOTHING_SHARE)
        )
        return epsilon * (1 - share), epsilon * share


@registry.mechanism("graph", "ladder", answers=(ProfiledCount,), units=("edge",))
class Ladder(_Ladder):
    """Release a subgraph count by the exponential mechanism on a ladder around it.

    The whole numbers around the true count f(G) are arranged in rungs: rung 0 is f(G) itself,
    and rung t >= 1 the next I_{t-1}(G) numbers on either side, where I is the profile of
    ``sensitivity.py``. A number on rung t is drawn with weight exp(-epsilon·t/2).

    Guarantee:
        Pure epsilon per edge. Between neighbours the rung of any number moves by at most one:
        f moves by at most I_0, and I_t(G') <= I_{t+1}(G). So each weight, and the sum of all
        weights, changes by a factor of at most exp(epsilon/2) each. (theorem 4.2 of the paper)
        A tenth of epsilon, unless ``spread_share`` says otherwise, buys a private spread for the
        interval; the two compose.

    Error:
        About 2·I_0/epsilon in spread. The law in the release bounds the profile by the private
        spread.

    Reference:
        Zhang, Cormode, Procopiuc, Srivastava & Xiao, Private release of graph statistics using
        ladder functions, SIGMOD 2015.

    Example:
        >>> import tulle
        >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> r = tulle.release(
        ...     square, tulle.triangles(), unit="edge", epsilon=2.0, mechanism="ladder"
        ... )
        >>> r.guarantee.measure
        'pure'
    """

    title: ClassVar[str] = "exponential mechanism on a ladder of local sensitivities"
    reference: ClassVar[str] = "Zhang et al., SIGMOD 2015"
    options: ClassVar[tuple[str, ...]] = ("spread_share",)

    def rates(self, epsilon: Fraction, options: Parameters) -> tuple[Fraction, Fraction]:
        return epsilon / 2, Fraction(0)


def ladder_widths(query: ProfiledCount, graph: Graph, settings: LadderSettings) -> LocalSensitivity:
    """Return the widths of a graph's rungs and its spread. Custodian side."""
    measured = query.measure(graph, settings.length)
    most = query.cap(settings.nodes)
    return measured._replace(profile=smooth_widths(measured.profile, most, settings.smoothing))


def smooth_widths(profile: Profile, most: int, smoothing: Fraction) -> Profile:
    """Return the least whole numbers above the profile that grow by at most exp(smoothing).

    Example:
        >>> smooth_widths([1, 10], 10, Fraction(1))
        [4, 10]
    """
    if smoothing == 0:
        return profile
    with localcontext() as context:
        context.prec = 40
        context.rounding = ROUND_CEILING
        exponent = Decimal(smoothing.numerator) / Decimal(smoothing.denominator)
        # Too large a factor only widens; the margin covers the exponential's own rounding.
        factor = Fraction((-exponent).exp() * (1 + Decimal("1e-30")))
    rising = rising_part(profile, most)
    widths = [most] * (len(profile) - rising)
    after = most
    for width in reversed(profile[:rising]):
        after = max(width, -((-after * factor.numerator) // factor.denominator))
        widths.append(min(after, most))
    return widths[::-1]


def rising_part(profile: Profile, most: int) -> int:
    """Return how many entries there are before the profile is the global bound for good."""
    rising = len(profile)
    while rising and profile[rising - 1] == most:
        rising -= 1
    return rising


def rung_counts(profile: Profile, most: int) -> list[int]:
    """Return how many numbers lie on rung 0, 1, ...; after the last it stays 2·most."""
    return [1, *(2 * width for width in profile), 2 * most]


def draw_ladder(profile: Profile, most: int, decay: Fraction, source: Source | None) -> int:
    """Draw the distance from the true count, exactly.

    Rung t has m_t numbers (never fewer than the rung before) and weight m_t·q^t with
    q = exp(-decay). As m_t·q^t·(1 - q) is the sum over j <= t of (m_j - m_{j-1})·q^j times the
    geometric weight (1 - q)·q^(t-j), the rung is the sum of a j drawn from the finitely many
    weights (m_j - m_{j-1})·q^j and an independent geometric variable.
    """
    counts = rung_counts(profile, most)
    steps = [after - before for before, after in zip([0, *counts], counts, strict=False)]
    # Where widths do not grow, nothing starts: such places have no weight, and are left out.
    places = [place for place, step in enumerate(steps) if step]
    exponents = [place * decay for place in places]
    growth = [steps[place] for place in places]
    start = places[choose_log_weights(exponents, multiplicities=growth, source=source)]
    rung = start + geometric(scale=1 / decay, source=source)
    if rung == 0:
        return 0
    # Rung t >= 1 lies beyond the widths of the rungs before it.
    before = rung - 1
    inner = sum(profile[:before]) + most * max(before - len(profile), 0)
    width = profile[before] if before < len(profile) else most
    place = uniform_below(2 * width, source=source)
    distance = inner + 1 + place // 2
    return distance if place % 2 else -distance


def _law(
    query: ProfiledCount, settings: LadderSettings, spread: int, spread_scale: Fraction
) -> LadderLaw:
    rates = settings.decay, settings.smoothing
    return LadderLaw(*query.law_key(), settings.nodes, spread, spread_scale, *rates)


@registry.register("law", "graph", "ladder")
@dataclass(frozen=True)
class LadderLaw(SpreadLaw):
    """The error of a ladder whose widths are bounded through the private spread.

    A profile with a smaller spread starts narrower and, at equal distance from the truth, is
    hardly ever wider than the widest or the fastest growing one; the factor exp(decay) on the
    tail, the weight of one rung, covers what is left. The tests compare with profiles of every
    local sensitivity and spread on a grid.
    """

    decay: Fraction
    smoothing: Fraction
    name: ClassVar[str] = "ladder"

    def width_at(self, spread: int, failure: float) -> float:
        """Return the half-width of the envelope's ladder, one rung added."""
        most = self.question().cap(self.nodes)
        covered = failure * math.exp(-float(self.decay))
        rows = _envelope_widths(replace(self, spread=spread, spread_scale=Fraction(0)))
        return max(ladder_half_width(row, most, self.decay, covered) for row in rows)


@lru_cache(maxsize=128)
def _envelope_widths(law: LadderLaw) -> list[Profile]:
    """Return the widths of rungs of the extreme graphs with the spread of a law."""
    query = law.question()
    most, length = query.cap(law.nodes), public_length(query, law.nodes, law.decay)
    rows = query.envelope_profiles(law.nodes, law.spread, length)
    return [smooth_widths(row, most, law.smoothing) for row in rows]


@registry.register("law", "graph", "known ladder")
@dataclass(frozen=True)
class KnownLadderLaw(ErrorLaw):
    """The error of a ladder whose widths are known, as those of a public stand-in are."""

    decay: Fraction
    most: int
    widths: tuple[int, ...]
    name: ClassVar[str] = "known ladder"

    def half_width(self, level: float) -> float:
        """Return the half-width at the level."""
        alpha = 1 - check_level(level)
        return ladder_half_width(list(self.widths), self.most, self.decay, alpha)


def ladder_half_width(widths: Profile, most: int, decay: Fraction, alpha: float) -> float:
    """Return the distance that a ladder's draw exceeds with probability at most alpha."""
    step = float(decay)
    # Rungs as wide as the global bound are like all that follow.
    widths = widths[: rising_part(widths, most)]
    counts = rung_counts(widths, most)
    logs = np.array([math.log(count) for count in counts]) - step * np.arange(len(counts))
    # The last entry stands for itself and every later rung, all equally wide.
    logs[-1] -= math.log(-math.expm1(-step))
    shares = np.exp(logs - np.logaddexp.reduce(logs))
    tails = np.concatenate([np.cumsum(shares[::-1])[::-1], [0.0]])
    rung = int(np.searchsorted(-tails, -alpha, side="left")) - 1
    if rung <= 0:
        return 0.0
    reach = [0.0, *np.cumsum([_as_float(width) for width in widths])]
    if rung < len(counts) - 1:
        width = _as_float(widths[rung - 1])
        outside = (alpha - tails[rung + 1]) / shares[rung]
        return float(reach[rung - 1] + math.ceil(width * min(max(1 - outside, 0.0), 1.0)))
    more = math.ceil(math.log(tails[rung] / alpha) / step)
    return float(reach[-1] + _as_float(most) * max(more, 1))


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
