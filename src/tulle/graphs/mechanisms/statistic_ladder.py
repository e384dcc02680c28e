"""Noise on a statistic itself: a ladder of real numbers on a fine grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.arrays import Floats
from tulle.core.dataset import Dataset
from tulle.core.error_law import ErrorLaw, check_level
from tulle.core.errors import InputError
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.source import Source
from tulle.core.validate import widen_up
from tulle.graphs.data import Graph
from tulle.graphs.mechanisms.ladder import (
    best_middle,
    draw_ladder,
    ladder_half_width,
    smooth_widths,
)
from tulle.graphs.queries.counts import node_count
from tulle.graphs.queries.statistics import Statistic
from tulle.graphs.sensitivity.counts import Profile, SpreadBudget, SpreadSettings, printed_note
from tulle.noise.charge import LadderCharge, charge

THOUSANDTH = 7
"""Minus the logarithm of about a thousandth: what the whole range weighs where profiles end."""

_BLOCKS = 500
"""Into how many pieces either side of the level's noise is cut; each counts as its worst end."""

_IGNORED = 1e-6
"""The part of the failure probability at which the level's noise is cut off, and charged."""

_LARGEST, _ROUNDING = 300.0, 1e-9
"""An exponent beyond which numbers might overflow, and what covers rounding."""


@registry.register("law", "graph", "statistic ladder")
@dataclass(frozen=True)
class StatisticLadderLaw(ErrorLaw):
    """The error when the first width is known through its private level only.

    The released level is ℓ + Z: K_0 <= exp(slope·ℓ) bounds the widths, of which that at distance
    t is at most K_0·exp(slope·t), and Z is discrete Laplace noise. The half-width is
    exp(slope·(ℓ + Z)) times the least factor c for which

        Σ_z P(Z = z)·T(c·exp(slope·z)) <= 1 - level,

    where T(y) bounds the probability of an error above y·exp(slope·ℓ). Answer and level have
    independent noise, so this is the probability that the interval misses; keeping a part of it
    for a level that is too low would take wider ones. Where the widths that are drawn from may
    grow faster than K, they can overtake it far out; that far is charged as a miss.
    """

    decay: Fraction
    smoothing: Fraction
    slope: Fraction
    units: int
    most: int
    spread: int
    spread_scale: Fraction
    middle: Fraction
    name: ClassVar[str] = "statistic ladder"

    def half_width(self, level: float) -> float:
        """Return the half-width at the level, at most the whole range."""
        factor = self.factor(1 - check_level(level))
        # Widths are at least one, so the true level is never below nought.
        reach = float(self.slope) * max(self.spread, 0) + math.log(factor)
        # One step for the place of a number in its rung, one for rounding the statistic.
        steps = math.exp(reach) + 2 if reach < math.log(self.most) else self.most
        return widen_up(min(steps, self.most) / self.units)

    @property
    def wider(self) -> float:
        """How much of the interval is there because the level is known with noise only."""
        known = replace(self, spread_scale=Fraction(0)).half_width(0.95)
        return self.half_width(0.95) / known if known > 0 else math.inf

    def factor(self, failure: float) -> float:
        """Return c: how many first widths the interval reaches, or all when that is too few."""
        ends, chances, ignored = self._level_noise(failure)
        shifts = np.exp(np.minimum(float(self.slope) * ends, _LARGEST))

        if self.slope < self.smoothing:
            ignored += math.exp(-THOUSANDTH * max(float(self.decay / self.smoothing) - 1, 0.0))

        def missed(factor: float) -> float:
            return ignored + float(chances @ self.tail(factor * shifts))

        low, high = 0.0, 1.0
        while missed(high) > failure:
            high *= 2
            if high >= self.most:
                return float(self.most)
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if missed(middle) > failure else (low, middle)
        return high * (1 + _ROUNDING)

    def tail(self, reach: Floats) -> Floats:
        """Bound the probability of an error above ``reach``, in units of exp(slope·ℓ).

        Rung t ends at most b_t = 1 + exp(slope) + ... + exp(slope·(t-1)) + middle·exp(slope·t) of
        these units away. What is on a rung is equally likely, so an error beyond a share s of the
        way from b_{t-1} to b_t needs rung t or a later one, and if it is t, more than that share
        of it.
        """
        slope, middle = min(float(self.slope), _LARGEST), float(self.middle)
        growth = math.expm1(slope)

        def end(rung: Floats) -> Floats:
            wide = np.exp(np.minimum(slope * rung, 2 * _LARGEST))
            return np.where(rung < 0, 0.0, (wide - 1) / growth + middle * wide)

        logs = np.log1p(reach * growth) - math.log1p(middle * growth)
        before = np.maximum(np.floor(logs / slope), -1.0)
        inner = end(before)
        share = np.clip((reach - inner) / (end(before + 1) - inner), 0.0, 1.0)
        return np.asarray((1 - share) * self._from(before + 1) + share * self._from(before + 2))

    def _from(self, rung: Floats) -> Floats:
        """Bound the probability of this rung or a later one.

        Widths grow by at most exp(smoothing) from rung to rung, so all from one rung on weigh at
        most exp(smoothing - decay) times what all from the one before weigh. The middle weighs at
        least 2·middle·J_0, and rung 1 at most 2·(1 - middle + middle·exp(smoothing))·J_0, times
        exp(-decay).
        """
        rate = float(self.decay - self.smoothing)
        if rate <= 0 or not self.middle:
            return np.asarray(np.exp(-max(rate, 0.0) * np.maximum(rung - 1, 0.0)))
        middle = float(self.middle)
        first = math.exp(-float(self.decay)) * (1 - middle) + middle * math.exp(-rate)
        others = first / (middle * -math.expm1(-rate))
        chance = others / (1 + others)
        return np.where(rung > 0, chance * np.exp(-rate * (rung - 1)), 1.0)

    def _level_noise(self, failure: float) -> tuple[Floats, Floats, float]:
        """Return pieces of the level's noise: lower end, probability; and what is left out."""
        if self.spread_scale == 0:
            return np.zeros(1), np.ones(1), 0.0
        rate = 1 / float(self.spread_scale)
        farthest = math.ceil(-math.log(failure * _IGNORED) / rate)
        step = -(-farthest // _BLOCKS)
        ends = np.arange(-farthest, farthest + 1, step, dtype=np.float64)
        # P(Z >= z), from the tails of the discrete Laplace law.
        above = np.exp(-rate * np.abs(np.where(ends > 0, ends, ends - 1))) / (1 + math.exp(-rate))
        above = np.where(ends > 0, above, 1 - above)
        chances = above - np.append(above[1:], 0.0)
        return ends, chances, 1 - float(above[0])


@dataclass(frozen=True)
class KnownStatisticLadderLaw(ErrorLaw):
    """The error of a ladder whose widths are known, as those of a public stand-in are."""

    decay: Fraction
    units: int
    most: int
    widths: tuple[int, ...]
    middle: Fraction
    name: ClassVar[str] = "known statistic ladder"

    def half_width(self, level: float) -> float:
        """Return the half-width at the level."""
        failure = 1 - check_level(level)
        ladder = list(self.widths), self.most, self.decay
        return (ladder_half_width(*ladder, failure, self.middle) + 1) / self.units


UNITS = 2**40
"""How many steps one is divided into, unless the user says otherwise."""


@dataclass(frozen=True)
class Tuning:
    """What epsilon is divided into where nobody says otherwise.

    Shares for the widths were chosen so that none of thirteen networks loses much (polbooks,
    netscience, power, ca-GrQc, ca-HepTh, polblogs, email-Eu-core, p2p-Gnutella08, lastfm-asia,
    as20000102, wiki-Vote, brightkite, email-Enron): at most 1.29 times the error of the best share
    for that network at epsilon = 1; ``benchmarks/ladders.py`` has the table.
    """

    smoothing_share: Fraction = Fraction(1, 8)
    """At epsilon = 1, of the statistics that are not listed next."""
    smoothing_by_name: tuple[tuple[str, Fraction], ...] = (
        ("clustering", Fraction(3, 16)),
        ("assortativity", Fraction(15, 64)),
    )
    never_grows: tuple[str, ...] = ("modularity",)
    """Statistics whose widths hardly grow: they need the least share at any epsilon."""
    grain: int = 64
    """Shares are multiples of one in so many, at least two of them and at most a quarter."""
    smoothing_shares: tuple[Fraction, ...] = tuple(Fraction(1, part) for part in (32, 16, 8, 4))
    """Parts of epsilon that may go to the widths; the best of them on a stand-in is taken."""
    level_share: Fraction = Fraction(1, 32)
    level_shares: tuple[Fraction, ...] = tuple(Fraction(1, part) for part in (32, 16, 8, 4))
    """How slowly the widths that the interval is computed from change, as a part of epsilon.

    Slow change makes these widths larger than those drawn from, fast change makes noise on their
    level matter more; the best of them on a stand-in is taken."""
    spread_share: Fraction = Fraction(1, 6)


_TUNING = Tuning()


def usual_share(query: Statistic, epsilon: Fraction) -> Fraction:
    """Return the part of epsilon that smooths the widths when nothing like the graph is known.

    Too small a share costs many times the error on graphs with few edges, too large a one a third
    on any. The smaller epsilon, the more rungs a draw goes, and the slower widths may grow.

    Example:
        >>> from tulle.graphs.queries.statistics import modularity, transitivity
        >>> [str(usual_share(transitivity(), Fraction(epsilon))) for epsilon in ("1/4", "1", "4")]
        ['1/4', '1/8', '1/16']
        >>> usual_share(modularity([0, 1]), Fraction(1))
        Fraction(1, 32)
    """
    grain = _TUNING.grain
    if query.name in _TUNING.never_grows:
        return Fraction(2, grain)
    base = dict(_TUNING.smoothing_by_name).get(query.name, _TUNING.smoothing_share)
    parts = round(grain * float(base) / math.sqrt(max(float(epsilon), 1e-6)))
    return Fraction(min(max(parts, 2), grain // 4), grain)


_LONGEST = 100_000
"""Profiles are never followed further than this many edges away."""

_MARGIN = Fraction(1, 10**12)
"""Part of the smoothing that pays for computing a logarithm; see :func:`width_level`."""


@dataclass(frozen=True, eq=False)
class StatisticLadderSettings(SpreadSettings):
    """The public settings of one run: how epsilon is divided, and how far profiles are followed."""

    decay: Fraction
    smoothing: Fraction
    slope: Fraction
    middle: Fraction
    units: int
    length: int
    level_length: int
    """How far the widths are followed that the interval is computed from; 0 without one."""


@registry.mechanism("graph", "statistic_ladder", answers=(Statistic,), units=("edge",))
class StatisticLadder(Mechanism):
    """Release a statistic from a ladder whose widths follow the graph at hand.

    The statistic is rounded down to a multiple of 1/units, 2^40 unless said otherwise. Then it is
    as :class:`tulle.graphs.mechanisms.ladder.SmoothedLadder`: whole numbers around the true one on
    rungs, rung t as wide as the profile of ``statistics_profiles`` at distance t, raised so that
    widths grow by at most exp(smoothing) from rung to rung, and a middle.

    Guarantee:
        Pure epsilon per edge, by the argument of
        :class:`tulle.graphs.mechanisms.ladder.SmoothedLadder`. A sixth of epsilon, unless
        ``spread_share`` says otherwise, buys the interval: widths K that were raised to grow by
        exp(slope) only have K_0(G') <= K_1(G) <= exp(slope)·K_0(G), so the whole number
        ln(K_0)/slope, rounded up, has sensitivity 1 and gets discrete Laplace noise.

    Error:
        As of :class:`tulle.graphs.mechanisms.ladder.SmoothedLadder`, J the widths. The law in the
        release bounds them by K, and K by its private level, so that its interval is 1.1 to 3.5
        times as wide as one that knew J.

    Reference:
        After Zhang et al., SIGMOD 2015, and Nissim et al., STOC 2007. The bounds for clustering
        correct those of Wang, Wu, Zhu & Xiang, which look at removed edges only.

    Example:
        >>> import tulle
        >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> r = tulle.release(
        ...     square, tulle.transitivity(), unit="edge", epsilon=2.0, mechanism="statistic_ladder"
        ... )
        >>> r.guarantee.measure, 0 <= r.value <= 1
        ('pure', True)
    """

    title: ClassVar[str] = "a ladder of the statistic's own local sensitivities"
    reference: ClassVar[str] = "after Zhang et al., SIGMOD 2015"
    options: ClassVar[tuple[str, ...]] = ("spread_share", "smoothing_share", "level_share", "units")

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes = node_count(terms)
        share = {"spread_share": options.get("spread_share", _TUNING.spread_share)}
        budget = SpreadBudget.of(terms.epsilon, share)
        smooth = validate.share(
            smoothing_share=options.get(
                "smoothing_share", usual_share(statistic(terms), terms.epsilon)
            )
        )
        units = validate.whole(units=options.get("units", UNITS), at_least=1)
        if units > 2**60:
            raise InputError(f"units must be at most 2^60; got {units!r}.")
        level = validate.share(level_share=options.get("level_share", _TUNING.level_share))
        smoothing, slope = budget.answer * smooth, budget.answer * min(smooth, level)
        decay = budget.answer - smoothing
        return StatisticLadderSettings(
            nodes,
            budget.answer,
            budget.spread,
            decay,
            smoothing,
            slope,
            best_middle(decay),
            units,
            _length(units, nodes, smoothing),
            _length(units, nodes, slope) if budget.spread else 0,
        )

    def usual(self, terms: Terms, options: Parameters) -> Parameters:
        """Take the usual share for the widths: what is best for a stand-in may be bad elsewhere."""
        share = usual_share(statistic(terms), terms.epsilon)
        return {"smoothing_share": share, **options}

    def tune(self, terms: Terms, options: Parameters, like: Dataset) -> Parameters:
        """Choose how fast widths may grow by the error, and the interval, on the stand-in."""
        if not isinstance(like, Graph) or like.node_count < 2:
            return options
        query = statistic(terms)
        row = _profile_of(query, like)

        def error(chosen: StatisticLadderSettings) -> float:
            return _known_law(query, row(chosen.units, chosen.length), chosen).half_width(0.5)

        def interval(chosen: StatisticLadderSettings) -> float:
            if not chosen.epsilon_spread:
                return 0.0
            longer = max(chosen.length, chosen.level_length)
            _, level = raise_widths(query, row(chosen.units, longer), chosen)
            return _law(query, chosen, level, 1 / chosen.epsilon_spread).half_width(0.95)

        options = self._best(terms, options, "smoothing_share", _TUNING.smoothing_shares, error)
        return self._best(terms, options, "level_share", _TUNING.level_shares, interval)

    def _best(
        self,
        terms: Terms,
        options: Parameters,
        name: str,
        shares: tuple[Fraction, ...],
        badness: Callable[[StatisticLadderSettings], float],
    ) -> Parameters:
        """Return the options with the best share under this name, unless it was named."""
        if name in options:
            return options
        tried = [{**options, name: share} for share in shares]
        read = StatisticLadderSettings.read
        return min(tried, key=lambda choice: badness(read(self.settings(terms, choice))))

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        query = statistic(terms)
        chosen = StatisticLadderSettings.read(settings)
        worst = _known_law(query, [query.cap(chosen.units)], chosen)
        if not isinstance(like, Graph) or like.node_count < 2:
            return Prediction(worst, None)
        row = query.profile(like, chosen.units, max(chosen.length, chosen.level_length))
        known = _known_law(query, row[: chosen.length], chosen)
        if not chosen.epsilon_spread:
            return Prediction(worst, known)
        _, level = raise_widths(query, row, chosen)
        printed = _law(query, chosen, level, 1 / chosen.epsilon_spread)
        return Prediction(worst, known, notes=printed_note(printed, known))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        query = statistic(terms)
        chosen = StatisticLadderSettings.read(settings)
        units = chosen.units
        found, level = measure_widths(query, dataset, chosen)
        with charge(LadderCharge(chosen.smoothing, chosen.middle)):
            noise = draw_ladder(found, query.cap(units), chosen.decay, source, chosen.middle)
        low, high = query.limits()
        value = min(max((query.position(dataset, units) + noise) / units, low), high)
        private = chosen.budget.draw(level, source)
        law = None if private is None else _law(query, chosen, *private)
        return Outcome(value, law, {"range": [low, high]})


def statistic(terms: Terms) -> Statistic:
    """Return the question as one about a statistic."""
    assert isinstance(terms.query, Statistic)
    return terms.query


def measure_widths(query: Statistic, graph: Graph, settings: Parameters) -> tuple[Profile, int]:
    """Return the widths of a graph's rungs, and the level for the interval. Custodian side."""
    chosen = StatisticLadderSettings.read(settings)
    length = max(chosen.length, chosen.level_length)
    return raise_widths(query, query.profile(graph, chosen.units, length), chosen)


def raise_widths(query: Statistic, row: Profile, settings: Parameters) -> tuple[Profile, int]:
    """Return the widths of rungs that a profile leads to, and the level."""
    chosen = StatisticLadderSettings.read(settings)
    largest = query.cap(chosen.units)
    widths = smooth_widths(row[: chosen.length], largest, chosen.smoothing)
    if not chosen.level_length:
        return widths, 0
    # Slightly slower growth than is paid for, so that the level is exact.
    slow = smooth_widths(row[: chosen.level_length], largest, chosen.slope * (1 - _MARGIN))
    return widths, width_level(slow[0], chosen.slope)


def _length(units: int, nodes: int, smoothing: Fraction) -> int:
    """Return the public place where the whole range, smoothed, weighs a thousandth of a unit."""
    enough = math.ceil((math.log(2 * units) + THOUSANDTH) / float(smoothing))
    return min(enough, nodes * (nodes - 1) // 2 + 1, _LONGEST)


def _profile_of(query: Statistic, graph: Graph) -> Callable[..., Profile]:
    """Return how to get a profile as long as settings say; it is computed anew when too short."""
    known: Profile = []

    def row(units: int, length: int) -> Profile:
        nonlocal known
        if len(known) < length:
            known = query.profile(graph, units, length)
        return known[:length]

    return row


def _law(
    query: Statistic, chosen: StatisticLadderSettings, level: int, scale: Fraction
) -> StatisticLadderLaw:
    rates = chosen.decay, chosen.smoothing, chosen.slope
    most = query.cap(chosen.units)
    return StatisticLadderLaw(*rates, chosen.units, most, level, scale, chosen.middle)


def _known_law(
    query: Statistic, row: Profile, chosen: StatisticLadderSettings
) -> KnownStatisticLadderLaw:
    known = replace(chosen, level_length=0, length=len(row))
    widths, _ = raise_widths(query, row, known)
    most = query.cap(chosen.units)
    return KnownStatisticLadderLaw(chosen.decay, chosen.units, most, tuple(widths), chosen.middle)


def width_level(width: int, slope: Fraction) -> int:
    """Return ln(width)/slope rounded up: between neighbours it differs by at most one.

    Widths of neighbours have a ratio of at most exp(slope·(1 - 10^-12)), so the logarithms,
    computed to fifty digits, differ by less than one.

    Example:
        >>> width_level(8, Fraction(1))
        3
    """
    with localcontext() as context:
        context.prec = 50
        exact = Decimal(width).ln() * slope.denominator / slope.numerator
        return math.ceil(exact)
