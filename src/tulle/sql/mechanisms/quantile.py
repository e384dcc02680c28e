"""Quantiles by the exponential mechanism, each person's weight bounded by a private threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.error_law import ErrorLaw, check_level
from tulle.core.errors import NoIntervalError
from tulle.core.expression_error import SampledLaw, even_fractions
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.source import Source
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge
from tulle.relations.mechanisms.recursive import RecursiveSettings, RelationRecursive
from tulle.relations.truncation.totals import least_level
from tulle.sql.compile.value_rows import Values
from tulle.sql.stand_in.laws import StandInLaw, in_full_size
from tulle.sql.tables.quantiles import SqlQuantile
from tulle.sql.tables.rank_choice import (
    UNIT,
    EndRule,
    Options,
    Points,
    RankRule,
    draw_places,
    end_options,
    in_order,
    options_by_group,
    places_at,
    weights_of,
)

_HEAVIEST = 2**40
"""Nobody's rows weigh more than this many: a public rule."""

ENDS_LEVEL = 0.99
"""With which probability the ends drawn beside the quantiles of all groups hold, all at once."""

POINTS = 511
"""How many draws of a group, laid out evenly, stand for all of them in a prediction."""

_FARTHEST = 2**60
"""Ends that would have to be looked for further away than this are not drawn."""


@dataclass(frozen=True)
class Tuning:
    """How thresholds are found and epsilon is divided.

    The first two are those of counts of rows of one owner each
    (:mod:`tulle.sql.mechanisms.truncation`), and what they were chosen on; which data chose the
    third is not on record.
    """

    reach: float = 1.75
    """The threshold found is raised by this factor before anything is cut."""
    share: Fraction = Fraction(3, 10)
    """Part of epsilon that finds the threshold."""
    value_share: Fraction = Fraction(3, 5)
    """Part of the answer's epsilon that draws the quantile; its ends get the rest."""


_TUNING = Tuning()


@registry.register("law", "database", "quantile_ends")
@dataclass(frozen=True)
class EndsLaw(ErrorLaw):
    """What quantiles lie between: numbers that were drawn beside them, one pair for each group.

    They hold at one level and are the same at all lower ones. None is where no end is known.
    """

    lows: tuple[float | None, ...]
    highs: tuple[float | None, ...]
    most: float | None
    """What everyone's rows count for at most, or None where a key says that all have one row."""
    name: ClassVar[str] = "quantile_ends"

    def __post_init__(self) -> None:
        # JSON has lists.
        object.__setattr__(self, "lows", tuple(self.lows))
        object.__setattr__(self, "highs", tuple(self.highs))

    @property
    def leaves_out(self) -> str:
        """How rows count."""
        if self.most is None:
            return ""
        return (
            f"For quantiles the rows of one person count as {self.most:,.10g} at most; of whoever "
            "has more each counts less, and the interval is that of rows which count so."
        )

    def half_width(self, level: float) -> float:
        """Return the widest distance between two ends: a quantile and its ends are in between."""
        pairs = zip(self.lows, self.highs, strict=True)
        return max(math.inf if low is None or high is None else high - low for low, high in pairs)

    def interval(self, value: Any, level: float) -> tuple[Any, Any]:
        """Return the ends.

        Raises:
            NoIntervalError: at a level that they do not have.
        """
        if check_level(level) > ENDS_LEVEL:
            raise NoIntervalError(f"Quantiles have intervals up to a level of {ENDS_LEVEL}.")
        lows = np.array([-np.inf if low is None else low for low in self.lows])
        return lows, np.array([np.inf if high is None else high for high in self.highs])

    def variance(self) -> float:
        """Return zero: nothing is corrected for it."""
        return 0.0


class RowCounts:
    """How many rows each person has: what the threshold is chosen by. Custodian side."""

    def __init__(self, values: Values) -> None:
        self._sizes = values.sizes
        # Of how many people the row counts are at least each of these, and of nobody beyond.
        self._people = np.append(np.cumsum(values.people[::-1])[::-1], 0)

    def decide(self, tau: float, level: int) -> bool:
        """Say whether at most ``level`` people have more than tau rows.

        One who joins or leaves changes nobody else's number, so this count moves by at most one.
        """
        return self.above(tau) <= level

    def above(self, tau: float) -> int:
        """Return how many have more than tau rows."""
        return int(self._people[np.searchsorted(self._sizes, tau, side="right")])

    def estimate(self, tau: float) -> float | None:
        """Return the same, which costs nothing."""
        return float(self.above(tau))


@dataclass(frozen=True)
class _Groups:
    """The rows of each group: their points and weights, and the rule to draw by."""

    values: Values
    weights: Any
    size: int
    rule: RankRule

    def options(self) -> list[Options]:
        """Return the points to draw from."""
        places = self.rule.points.places(self.values.values)
        return options_by_group(self.values.groups, places, self.weights, self.size, self.rule)


@dataclass(frozen=True, eq=False)
class QuantileSettings(RecursiveSettings):
    """The public settings of one run: those that truncate, and the shares of value and ends."""

    quantile: Fraction
    values_between: tuple[float | None, ...]
    epsilon_value: Fraction
    epsilon_end: Fraction


@registry.mechanism("database", "quantile", answers=(SqlQuantile,), units=("participant",))
class Quantile(Mechanism):
    """The exponential mechanism on all numbers of the declared range, by the ranks of rows.

    A threshold tau on the number of rows of one person is found first, as for a count. The rows of
    whoever has more weigh less, so that nobody weighs more than tau rows over all groups. Then a
    number is drawn for each group, the likelier the nearer its rank is to the quantile.

    Guarantee:
        Pure epsilon per participant. The level of the threshold moves by at most one and has
        discrete Laplace noise of scale 1/epsilon_select. Given tau, the choices of all groups
        together cost epsilon_answer: :mod:`tulle.sql.tables.rank_choice` has the argument. The two
        compose.

    Error:
        The rank is off by about tau·ln(numbers in the range)/epsilon rows; how far that is in
        value depends on how dense the rows are there, which is private. So ends are drawn beside
        the quantile, for two fifths of the answer's epsilon: a number at a rank so far below that
        the quantile is above it with the stated probability, and one above. MIN has no lower end
        but that of the range, MAX no upper one. Where somebody has more than tau rows, the
        interval is that of rows which count less. MIN and MAX are looked for a few rows inside,
        about 8·tau/epsilon: beyond the last row nothing can be told from it. Of a group without
        rows the answer is any number of the range.

    Reference:
        Smith, Privacy-preserving statistical estimation with optimal convergence rates, STOC 2011.

    Example:
        >>> import duckdb, tulle
        >>> connection = duckdb.connect()
        >>> _ = connection.execute("CREATE TABLE pay AS SELECT range AS who, range AS x "
        ...     "FROM range(5000)")
        >>> staff = tulle.Database.connect(
        ...     connection, owners={"pay": "who"}, ranges={"pay.x": (0, 10000)})
        >>> median = tulle.sql("SELECT MEDIAN(x) AS middle FROM pay")
        >>> r = tulle.release(staff, median, unit="participant", epsilon=2.0)
        >>> 2300 < float(r.value["middle"][0]) < 2700
        True
    """

    title: ClassVar[str] = "exponential mechanism on ranks"
    reference: ClassVar[str] = "Smith, STOC 2011"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        query = _bound(terms)
        size = min(max(float(terms.epsilon), 1e-9), 1.0)
        chosen = {"theta": 1.0, "reach": _TUNING.reach * size**-0.125}
        chosen["selection_share"] = _TUNING.share
        found = RecursiveSettings.read(RelationRecursive().settings(terms, chosen))
        whole = found.epsilon_answer
        sides = sides_of(query.at)
        end = whole * (1 - _TUNING.value_share) / len(sides)
        return QuantileSettings(
            **found.typed(),
            quantile=query.at,
            values_between=(query.range.low, query.range.high),
            epsilon_value=whole - len(sides) * end,
            epsilon_end=end,
        )

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        query = _bound(terms)
        if like is None:
            return Prediction(None, None)
        values = query.values(like).times(like.stands_for)
        chosen = QuantileSettings.read(settings)
        counts = in_full_size(RowCounts(values), like)
        tau = chosen.threshold(least_level(counts, chosen.thresholds))
        groups = _prepare(query, values, tau, chosen.epsilon_value)
        points = groups.rule.points
        errors = np.array(
            [
                points.first
                + points.step * places_at(options, groups.rule, (np.arange(POINTS) + 0.5) / POINTS)
                - truth
                for options, truth in zip(groups.options(), query.truth(like), strict=True)
            ]
        )
        # Of a group without rows no error is known.
        known = np.abs(errors[~np.isnan(errors).any(axis=1)])
        if not len(known):
            return Prediction(None, None)
        # Of all groups the largest error, the groups being independent.
        spread = even_fractions(np.arange(1, POINTS + 1))
        places = [(next(spread) * POINTS).astype(np.int64) for _ in known]
        largest = np.max(np.take_along_axis(known, np.array(places), axis=1), axis=0)
        joint = SampledLaw(tuple(np.sort(largest).tolist()))
        return Prediction(None, StandInLaw(joint, errors))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        query = _bound(terms)
        values = query.values(dataset)
        chosen = QuantileSettings.read(settings)
        level = least_level(RowCounts(values), chosen.thresholds)
        with charge(LaplaceCharge(1)):
            level += discrete_laplace(scale=1 / chosen.epsilon_select, source=source)
        tau = chosen.threshold(max(level, 0))
        groups = _prepare(query, values, tau, chosen.epsilon_value)
        places = draw_places(groups.options(), groups.rule, source)
        drawn = np.array([groups.rule.points.value(place) for place in places])
        end = chosen.epsilon_end
        ends = {side: draw_ends(query, groups, side, end, source) for side in sides_of(query.at)}
        none: list[float | None] = [None] * groups.size
        # An end beyond the quantile itself is moved to it, which makes an interval wider.
        lows = [
            None if low is None else min(low, value)
            for low, value in zip(ends.get(-1, none), drawn.tolist(), strict=True)
        ]
        highs = [
            None if high is None else max(high, value)
            for high, value in zip(ends.get(1, none), drawn.tolist(), strict=True)
        ]
        assert query.bound is not None
        law = EndsLaw(tuple(lows), tuple(highs), None if query.bound.once else tau)
        return Outcome(drawn, law, {"thresholds": [tau]})


def sides_of(at: Fraction) -> tuple[int, ...]:
    """Return which ends of an interval are drawn: lower (-1), upper (1).

    How far below all others one person's value is, and so the least value, nobody may know.
    """
    return ((-1,) if at > 0 else ()) + ((1,) if at < 1 else ())


def draw_ends(
    query: SqlQuantile, groups: _Groups, side: int, epsilon: Fraction, source: Source | None
) -> list[float | None]:
    """Return a number for each group that the quantile is not below, or not above.

    Guarantee:
        Pure epsilon per participant for all groups together;
        :mod:`tulle.sql.tables.rank_choice` has the argument.
    """
    bound = query.bound
    assert bound is not None
    points = Points.coarse(query.range.low, query.range.high, whole=bound.whole)
    with_extra = replace(points, count=points.count + 1)
    beta = (1 - ENDS_LEVEL) / (len(sides_of(query.at)) * groups.size)
    rule = EndRule(query.at, groups.rule.most, epsilon, with_extra, side, beta)
    if rule.scale * rule.extra > _FARTHEST:
        return [None] * groups.size
    places = points.places(groups.values.values)
    options = end_options(groups.values.groups, places, groups.weights, groups.size, rule)
    exact = bound.whole and points.step == 1
    found: list[float | None] = []
    for place in draw_places(options, rule, source):
        inner = place - 1 if side < 0 else place
        if not 0 <= inner < points.count:
            found.append(None)
            continue
        # A point stands for all values that are nearest to it.
        end = points.value(inner) + (0.0 if exact else side * points.step / 2)
        found.append(min(max(end, query.range.low), query.range.high))
    return found


def _bound(terms: Terms) -> SqlQuantile:
    query = terms.query
    assert isinstance(query, SqlQuantile)
    return query if query.bound is not None else query.bound_to(terms.facts)


def _prepare(query: SqlQuantile, values: Values, tau: float, epsilon: Fraction) -> _Groups:
    most = int(UNIT * min(tau, _HEAVIEST))
    assert query.bound is not None
    points = Points.over(query.range.low, query.range.high, whole=query.bound.whole)
    rule = RankRule(query.at, most, epsilon, points)
    if not in_order(values.groups, values.values):
        order = np.lexsort((values.values, values.groups))
        values = values.ordered(order)
    weights = weights_of(values, most) * values.copies
    size = int(np.prod([len(listed) for _, listed in query.groups]))
    return _Groups(values, weights, size, rule)
