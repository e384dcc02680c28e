"""Ladders: pure epsilon, and the most accurate known for subgraph counts per edge."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
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


@dataclass(frozen=True)
class Tuning:
    """What epsilon is divided into where nobody says otherwise.

    Looked at on polbooks, netscience, ca-GrQc, email-Eu-core, polblogs and lastfm-asia at
    epsilon = 1: triangles and pairs of triangles on one edge err at most 1.15 times as much as with
    the best of 1/32, 1/16, 1/8, 3/16 and 1/4 for that network; with a half of it, up to 90 times.
    """

    smoothing_share: Fraction = Fraction(1, 8)
    """Part of epsilon that :class:`SmoothedLadder` spends on the widths."""


TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class LadderSettings(SpreadSettings):
    """The public settings of one run of a ladder."""

    length: int
    smoothing: Fraction
    decay: Fraction
    middle: Fraction
    """How far the rung of the truth itself reaches, in widths of the next."""


class _Ladder(Mechanism):
    """What the two ladders share: draw a rung, then a number on it."""

    kind: ClassVar[str] = "graph"
    has_middle: ClassVar[bool]
    """Whether the rung of the truth holds more than the truth."""

    @abstractmethod
    def rates(self, epsilon: Fraction, options: Parameters) -> tuple[Fraction, Fraction]:
        """Return the decay per rung and the smoothing of the widths (zero for none)."""

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes = node_count(terms)
        budget = SpreadBudget.of(terms.epsilon, options)
        decay, smoothing = self.rates(budget.answer, options)
        length = public_length(profiled_count(terms), nodes, decay)
        middle = best_middle(decay) if self.has_middle else Fraction(0)
        return LadderSettings(nodes, budget.answer, budget.spread, length, smoothing, decay, middle)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        query = profiled_count(terms)
        chosen = LadderSettings.read(settings)
        worst = _law(query, chosen, query.largest_spread(chosen.nodes), Fraction(0))
        if not isinstance(like, Graph):
            return Prediction(worst, None)
        widths = ladder_widths(query, like, chosen)
        most = query.cap(chosen.nodes)
        law = KnownLadderLaw(chosen.decay, most, tuple(widths.profile), chosen.middle)
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
        ladder = widths.profile, query.cap(chosen.nodes), chosen.decay
        with charge(LadderCharge(chosen.smoothing, chosen.middle)):
            noise = draw_ladder(*ladder, source, chosen.middle)
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

    The rung of the truth holds a middle as well, as in the staircase mechanism: with a share m,
    rung t reaches r_t = J_0 + ... + J_{t-1} + max(m·J_t - 1/2, 0) from the truth. Where an end is
    not a whole number, the number that it cuts has its parts on both rungs: x, at distance a >= 1,
    stands for distances from a - 1 to a. Without a middle most draws at a large epsilon would be
    on rung 1, anywhere up to J_0 away.

    Guarantee:
        Pure epsilon per edge. J keeps the ladder's conditions (J is monotone in I, and
        J_t(G') <= J_{t+1}(G) follows from the same for I). So for a neighbour G' and every t,
        |f(G) - f(G')| + r_t(G') <= J_0(G) + J_1(G) + ... + J_t(G) + max(m·J_{t+1}(G) - 1/2, 0),
        which is r_{t+1}(G).
        Let u(y) = y + 1, held to 0..1, which rises: the part of x within distance r is
        u(r - |x - f|). The weight of x is (1 - q)·sum of q^t·u(r_t - |x - f|) with
        q = exp(-decay), and u(r_t(G') - |x - f(G')|) <= u(r_{t+1}(G) - |x - f(G)|) makes that of
        G' at most exp(decay) times that of G. The sum of all weights is
        Z(G) = (1 - q)·sum of q^t·(1 + 2·r_t(G)), where 1 + 2·r_t is
        2·(J_0 + ... + J_{t-1}) + max(2·m·J_t, 1), and J_t(G') <= J_{t+1}(G) <=
        exp(smoothing)·J_t(G) gives Z(G') <= exp(smoothing)·Z(G). Together: epsilon.
        A tenth of epsilon, unless ``spread_share`` says otherwise, buys a private spread for the
        interval; the two compose.

    Error:
        About J_0/decay in spread at a small epsilon and J_0·exp(-decay/2) at a large one, where
        J_0 is I_0 unless I_0 is below 1/smoothing. The law in the release bounds the widths by
        the private spread.

    Reference:
        The ladder of Zhang et al., SIGMOD 2015, with the smoothing of Nissim et al., STOC 2007,
        applied to its widths, and the middle of Geng & Viswanath, The optimal mechanism in
        differential privacy, ISIT 2014.

    Example:
        >>> import tulle
        >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> r = tulle.release(
        ...     square, tulle.triangles(), unit="edge", epsilon=2.0, mechanism="smoothed_ladder"
        ... )
        >>> r.guarantee.measure
        'pure'
    """

    has_middle: ClassVar[bool] = True
    title: ClassVar[str] = "ladder with smoothed widths and steeper steps"
    reference: ClassVar[str] = "after Zhang et al., SIGMOD 2015"
    options: ClassVar[tuple[str, ...]] = ("spread_share", "smoothing_share")

    def rates(self, epsilon: Fraction, options: Parameters) -> tuple[Fraction, Fraction]:
        share = validate.share(
            smoothing_share=options.get("smoothing_share", TUNING.smoothing_share)
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

    has_middle: ClassVar[bool] = False
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


_GRID = 2**20
"""Shares of a middle are multiples of one in so many."""


def best_middle(decay: Fraction) -> Fraction:
    """Return the share of a width that the middle reaches for the least mean error.

    That is 1/(1 + exp(decay/2)) where all rungs are equally wide (Geng & Viswanath). Any public
    number up to a half will do.

    Example:
        >>> float(best_middle(Fraction(1, 10**6))), round(float(best_middle(Fraction(4))), 3)
        (0.5, 0.119)
    """
    return Fraction(round(_GRID / (1 + math.exp(min(float(decay) / 2, 50)))), _GRID)


def middle_reach(width: int, middle: Fraction) -> tuple[int, int]:
    """Return how far a middle of this share reaches beside a rung of this width: a fraction.

    It is max(middle·width - 1/2, 0), so that with the truth's own half there are middle·width
    numbers on a side. The denominator depends on the share alone.

    Example:
        >>> middle_reach(8, Fraction(1, 4)), middle_reach(8, Fraction(0))
        ((12, 8), (0, 1))
    """
    if not middle:
        return 0, 1
    return max(2 * middle.numerator * width - middle.denominator, 0), 2 * middle.denominator


def rung_counts(profile: Profile, most: int, middle: Fraction = Fraction(0)) -> list[int]:
    """Return how much lies on rung 0, 1, ...; after the last it stays the same.

    One number counts as the denominator of :func:`middle_reach`.

    Example:
        >>> rung_counts([2, 4], 6), rung_counts([2, 4], 6, Fraction(1, 2))
        ([1, 4, 8, 12], [8, 24, 40, 48])
    """
    row = [*profile, most]
    whole = middle_reach(most, middle)[1]
    reach = [middle_reach(width, middle)[0] for width in row]
    steps = [b - a for a, b in pairwise([*reach, reach[-1]])]
    rungs = [2 * (whole * width + step) for width, step in zip(row, steps, strict=True)]
    return [whole + 2 * reach[0], *rungs]


def draw_ladder(
    profile: Profile,
    most: int,
    decay: Fraction,
    source: Source | None,
    middle: Fraction = Fraction(0),
) -> int:
    """Draw the distance from the true count, exactly.

    Rung t has m_t numbers (never fewer than the rung before) and weight m_t·q^t with
    q = exp(-decay). As m_t·q^t·(1 - q) is the sum over j <= t of (m_j - m_{j-1})·q^j times the
    geometric weight (1 - q)·q^(t-j), the rung is the sum of a j drawn from the finitely many
    weights (m_j - m_{j-1})·q^j and an independent geometric variable. With a ``middle`` of at most
    a half no rung has fewer numbers than the one before.
    """
    counts = rung_counts(profile, most, middle)
    steps = [after - before for before, after in zip([0, *counts], counts, strict=False)]
    # Where widths do not grow, nothing starts: such places have no weight, and are left out.
    places = [place for place, step in enumerate(steps) if step]
    exponents = [place * decay for place in places]
    growth = [steps[place] for place in places]
    start = places[choose_log_weights(exponents, multiplicities=growth, source=source)]
    rung = start + geometric(scale=1 / decay, source=source)
    size = counts[min(rung, len(counts) - 1)]
    # Rung t >= 1 lies beyond the widths of the rungs before it and its share of the next. Every
    # rung takes the same steps and bits, so that the work of a draw does not tell it.
    before = max(rung - 1, 0)
    width = profile[before] if before < len(profile) else most
    reach, whole = middle_reach(width, middle)
    widths = [0, *accumulate(profile)][min(before, len(profile))]
    inner = whole * (widths + most * max(before - len(profile), 0)) + reach
    place = uniform_below(size, source=source)
    # The lowest is the truth itself, or further on in the middle.
    lowest = rung == 0
    place -= whole * lowest
    distance = (inner * (not lowest) + place // 2) // whole + 1
    signed = distance if place % 2 else -distance
    return signed * (not lowest or place >= 0)


def _law(
    query: ProfiledCount, settings: LadderSettings, spread: int, spread_scale: Fraction
) -> LadderLaw:
    rates = settings.decay, settings.smoothing, settings.middle
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
    middle: Fraction = Fraction(0)
    name: ClassVar[str] = "ladder"

    def width_at(self, spread: int, failure: float) -> float:
        """Return the half-width of the envelope's ladder, one rung added."""
        most = self.question().cap(self.nodes)
        covered = failure * math.exp(-float(self.decay))
        rows = _envelope_widths(replace(self, spread=spread, spread_scale=Fraction(0)))
        return max(ladder_half_width(row, most, self.decay, covered, self.middle) for row in rows)


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
    middle: Fraction = Fraction(0)
    name: ClassVar[str] = "known ladder"

    def half_width(self, level: float) -> float:
        """Return the half-width at the level."""
        alpha = 1 - check_level(level)
        return ladder_half_width(list(self.widths), self.most, self.decay, alpha, self.middle)


def ladder_half_width(
    widths: Profile, most: int, decay: Fraction, alpha: float, middle: Fraction = Fraction(0)
) -> float:
    """Return the distance that a ladder's draw exceeds with probability at most alpha."""
    step = float(decay)
    # Rungs as wide as the global bound are like all that follow.
    widths = widths[: rising_part(widths, most)]
    counts = rung_counts(widths, most, middle)
    logs = np.array([math.log(count) for count in counts]) - step * np.arange(len(counts))
    # The last entry stands for itself and every later rung, all equally wide.
    logs[-1] -= math.log(-math.expm1(-step))
    shares = np.exp(logs - np.logaddexp.reduce(logs))
    tails = np.concatenate([np.cumsum(shares[::-1])[::-1], [0.0]])
    rung = max(int(np.searchsorted(-tails, -alpha, side="left")) - 1, 0)
    lengths = [_as_float(width) for width in (*widths, most)]
    # How far each rung reaches, the middle first.
    reach = np.cumsum([0.0, *lengths[:-1]])
    if middle:
        reach += np.maximum(float(middle) * np.array(lengths) - 0.5, 0.0)
    if rung == len(counts) - 1:
        more = math.ceil(math.log(tails[rung] / alpha) / step)
        far = reach[-1] + lengths[-1] * max(more, 1)
        return float(np.ceil(far))
    outside = min(max((alpha - tails[rung + 1]) / shares[rung], 0.0), 1.0)
    if rung == 0:
        # The truth itself has the share of one number.
        return float(max(math.ceil(reach[0] - outside * (reach[0] + 0.5)), 0))
    inner = reach[rung - 1]
    return float(math.ceil(inner + (reach[rung] - inner) * (1 - outside)))


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
