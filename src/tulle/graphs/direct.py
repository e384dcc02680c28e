"""Noise on a statistic itself: a ladder of real numbers on a fine grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

from tulle.core import registry, validate
from tulle.core.dataset import Dataset
from tulle.core.error_law import ErrorLaw, check_level
from tulle.core.errors import InputError
from tulle.core.exact import rational, text, widen_up
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.graphs.data import Graph
from tulle.graphs.ladder import draw_ladder, ladder_half_width, steepen
from tulle.graphs.sensitivity import Profile
from tulle.graphs.settings import SpreadBudget, node_count, upper_spread
from tulle.graphs.statistics import Statistic
from tulle.graphs.statistics_profiles import most, position, profile

UNITS = 2**40
"""How many steps one is divided into, unless the user says otherwise."""

SMOOTHING_SHARE = Fraction(1, 8)
SMOOTHING_SHARES = (Fraction(1, 32), Fraction(1, 16), Fraction(1, 8), Fraction(1, 4))
"""Parts of epsilon that may go to the widths; the best of them on a stand-in is taken."""

LEVEL_SHARE = Fraction(1, 32)
"""How slowly the widths that the interval is computed from change, as a part of epsilon."""

SPREAD_SHARE = Fraction(1, 6)

_LONGEST = 100_000
"""Profiles are never followed further than this many edges away."""

_MARGIN = Fraction(1, 10**12)
"""Part of the smoothing that pays for computing a logarithm; see :func:`width_level`."""


@registry.register("mechanism", "graph", "direct")
class Direct(Mechanism):
    """Release a statistic from a ladder whose widths follow the graph at hand.

    The statistic is rounded down to a multiple of 1/units, 2^40 unless said otherwise. Then it is
    as :class:`tulle.graphs.ladder.Steep`: whole numbers around the true one on rungs, rung t as
    wide as the profile of ``statistics_profiles`` at distance t, raised so that widths grow by at
    most exp(smoothing) from rung to rung.

    Guarantee:
        Pure epsilon per edge, by the argument of :class:`tulle.graphs.ladder.Steep`. A sixth of
        epsilon, unless ``spread_share`` says otherwise, buys the interval: widths K that were
        raised to grow by exp(slope) only have K_0(G') <= K_1(G) <= exp(slope)·K_0(G), so the whole
        number ln(K_0)/slope, rounded up, has sensitivity 1 and gets discrete Laplace noise.

    Error:
        About J_0/epsilon in spread, J the widths. The law in the release bounds them by K, and K
        by its private level.

    Reference:
        After Zhang et al., SIGMOD 2015, and Nissim et al., STOC 2007. The bounds for clustering
        correct those of Wang, Wu, Zhu & Xiang, which look at removed edges only.

    Example:
        >>> import tulle
        >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> r = tulle.release(
        ...     square, tulle.transitivity(), unit="edge", epsilon=2.0, mechanism="direct"
        ... )
        >>> r.guarantee.measure, 0 <= r.value <= 1
        ('pure', True)
    """

    name: ClassVar[str] = "direct"
    kind: ClassVar[str] = "graph"
    title: ClassVar[str] = "a ladder of the statistic's own local sensitivities"
    reference: ClassVar[str] = "after Zhang et al., SIGMOD 2015"
    options: ClassVar[tuple[str, ...]] = ("spread_share", "smoothing_share", "units")

    def supports(self, query: Query, unit: Unit) -> bool:
        return isinstance(query, Statistic) and unit.name == "edge"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes = node_count(terms)
        share = {"spread_share": options.get("spread_share", SPREAD_SHARE)}
        budget = SpreadBudget.of(terms.epsilon, share)
        smooth = validate.probability(
            smoothing_share=options.get("smoothing_share", SMOOTHING_SHARE)
        )
        units = validate.whole(units=options.get("units", UNITS), at_least=1)
        if units > 2**60:
            raise InputError(f"units must be at most 2^60; got {units!r}.")
        smoothing, slope = budget.answer * smooth, budget.answer * min(smooth, LEVEL_SHARE)
        return {
            "nodes": nodes,
            **budget.to_settings(),
            "decay": text(budget.answer - smoothing),
            "smoothing": text(smoothing),
            "slope": text(slope),
            "units": units,
            "length": _length(units, nodes, smoothing),
            "level_length": _length(units, nodes, slope) if budget.spread else 0,
        }

    def tune(self, terms: Terms, options: Parameters, like: Dataset) -> Parameters:
        """Choose the part of epsilon that goes to the widths by the error on the stand-in."""
        if "smoothing_share" in options or not isinstance(like, Graph) or like.node_count < 2:
            return options
        tried = [{**options, "smoothing_share": share} for share in SMOOTHING_SHARES]
        settings = [self.settings(terms, choice) for choice in tried]
        length = max(int(found["length"]) for found in settings)
        row = profile(statistic(terms), like, int(settings[0]["units"]), length)
        errors = [
            _known_law(statistic(terms), row[: int(found["length"])], found).half_width(0.5)
            for found in settings
        ]
        return tried[errors.index(min(errors))]

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        query = statistic(terms)
        units = int(settings["units"])
        worst = _known_law(query, [most(query, units)], settings)
        if not isinstance(like, Graph) or like.node_count < 2:
            return Prediction(worst, None)
        row = profile(query, like, units, int(settings["length"]))
        return Prediction(worst, _known_law(query, row, settings))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        query = statistic(terms)
        units = int(settings["units"])
        found, level = measure_widths(query, dataset, settings)
        largest = most(query, units)
        decay, smoothing, slope = (rational(settings[n]) for n in ("decay", "smoothing", "slope"))
        noise = draw_ladder(found, largest, decay, source)
        low, high = query.limits()
        value = min(max((position(query, dataset, units) + noise) / units, low), high)
        private = SpreadBudget.from_settings(settings).draw(level, source)
        law = None
        if private is not None:
            law = DirectLaw(decay, smoothing, slope, units, largest, *private)
        return Outcome(value, law, {"range": [low, high]})


def statistic(terms: Terms) -> Statistic:
    """Return the question as one about a statistic."""
    assert isinstance(terms.query, Statistic)
    return terms.query


def measure_widths(query: Statistic, graph: Graph, settings: Parameters) -> tuple[Profile, int]:
    """Return the widths of a graph's rungs, and the level for the interval. Custodian side."""
    length = max(int(settings["length"]), int(settings["level_length"]))
    return raise_widths(query, profile(query, graph, int(settings["units"]), length), settings)


def raise_widths(query: Statistic, row: Profile, settings: Parameters) -> tuple[Profile, int]:
    """Return the widths that a profile leads to, and the level for the interval."""
    largest = most(query, int(settings["units"]))
    length, further = int(settings["length"]), int(settings["level_length"])
    steep = steepen(row[:length], largest, rational(settings["smoothing"]))
    if not further:
        return steep, 0
    slope = rational(settings["slope"])
    # Slightly slower growth than is paid for, so that the level is exact.
    slow = steepen(row[:further], largest, slope * (1 - _MARGIN))
    return steep, width_level(slow[0], slope)


def _length(units: int, nodes: int, smoothing: Fraction) -> int:
    """Return the public place where the whole range, smoothed, weighs a thousandth of a unit."""
    enough = math.ceil((math.log(2 * units) + 7) / float(smoothing))
    return min(enough, nodes * (nodes - 1) // 2 + 1, _LONGEST)


def _known_law(query: Statistic, row: Profile, settings: Parameters) -> KnownDirectLaw:
    units = int(settings["units"])
    largest = most(query, units)
    steep = steepen(row, largest, rational(settings["smoothing"]))
    return KnownDirectLaw(rational(settings["decay"]), units, largest, tuple(steep))


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


@registry.register("law", "graph", "direct")
@dataclass(frozen=True)
class DirectLaw(ErrorLaw):
    """The error when the first width is bounded through its private level.

    A quarter of the failure probability is kept for the level being too low. With widths that
    grow by at most exp(smoothing), the rung exceeds r with probability at most
    exp(-(decay - smoothing)·r); the widths of r rungs are at most K_0·exp(slope·t) each.
    """

    decay: Fraction
    smoothing: Fraction
    slope: Fraction
    units: int
    most: int
    spread: int
    spread_scale: Fraction
    name: ClassVar[str] = "direct"

    def half_width(self, level: float) -> float:
        """Return the reach of the rungs that hold the level's mass, at the widest."""
        failure = 1 - check_level(level)
        slope = float(self.slope)
        known = upper_spread(self.spread, float(self.spread_scale), failure / 4)
        rate = float(self.decay) - float(self.smoothing)
        rungs = math.ceil(-math.log(3 * failure / 4) / rate)
        first = min(slope * known, math.log(self.most))
        # Rungs past the place where the bound reaches the whole range are as wide as that.
        rising = min(rungs, math.floor((math.log(self.most) - first) / slope))
        reach = math.exp(first) * math.expm1(slope * rising) / math.expm1(slope)
        reach += self.most * (rungs - rising)
        return widen_up((reach + 1) / self.units)


@dataclass(frozen=True)
class KnownDirectLaw(ErrorLaw):
    """The error of a ladder whose widths are known, as those of a public stand-in are."""

    decay: Fraction
    units: int
    most: int
    widths: tuple[int, ...]
    name: ClassVar[str] = "known direct"

    def half_width(self, level: float) -> float:
        """Return the half-width at the level."""
        failure = 1 - check_level(level)
        steps = ladder_half_width(list(self.widths), self.most, self.decay, failure)
        return (steps + 1) / self.units
