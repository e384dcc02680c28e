"""Quantiles by the exponential mechanism, each person's weight bounded by a private threshold."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.exact import text
from tulle.core.expression_error import SampledLaw
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.source import Source
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge
from tulle.relations.mechanisms.recursive import RecursiveSettings, RelationRecursive
from tulle.relations.truncation.totals import least_level
from tulle.sql.compile.value_rows import Values
from tulle.sql.tables.quantiles import SqlQuantile
from tulle.sql.tables.rank_choice import (
    UNIT,
    Options,
    Points,
    Rule,
    chances,
    draw_places,
    options_by_group,
    weights_of,
)

REACH = 1.75
SHARE = Fraction(3, 10)
"""How far above the threshold found to cut, and the part of epsilon that finds it: as for counts of
rows that belong to one person each."""

_HEAVIEST = 2**40
"""Nobody's rows weigh more than this many: a public rule."""


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
    """The rows of each group as places and weights."""

    options: list[Options]
    rule: Rule


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
        value depends on how dense the rows are there, which is private, so there is no interval.
        MIN and MAX are looked for a few rows inside, about 8·tau/epsilon: beyond the last row
        nothing can be told from it. Of a group without rows the answer is any number of the range.

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
        chosen = {"theta": 1.0, "reach": REACH * size**-0.125, "selection_share": SHARE}
        found = RelationRecursive().settings(terms, chosen)
        return {**found, "quantile": text(query.at), "values_between": query.range.to_json()}

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        query = _bound(terms)
        if like is None or query.groups:
            return Prediction(None, None)
        values = query.values(like)
        chosen = RecursiveSettings.read(settings)
        tau = chosen.threshold(least_level(RowCounts(values), chosen.thresholds))
        groups = _prepare(query, values, tau, chosen.epsilon_answer)
        (options,) = groups.options
        points = groups.rule.points
        middles = points.first + points.step * (options.starts + (options.counts - 1) / 2)
        errors = np.abs(middles - query.truth(like)[0])
        order = np.argsort(errors)
        reached = np.cumsum(chances(options, groups.rule)[order])
        wanted = np.searchsorted(reached, (np.arange(1024) + 0.5) / 1024)
        sizes = errors[order][np.minimum(wanted, len(order) - 1)]
        law = SampledLaw(tuple(np.nan_to_num(sizes, nan=np.inf).tolist()))
        return Prediction(None, law)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        query = _bound(terms)
        values = query.values(dataset)
        chosen = RecursiveSettings.read(settings)
        level = least_level(RowCounts(values), chosen.thresholds)
        with charge(LaplaceCharge(1)):
            level += discrete_laplace(scale=1 / chosen.epsilon_select, source=source)
        tau = chosen.threshold(max(level, 0))
        groups = _prepare(query, values, tau, chosen.epsilon_answer)
        places = draw_places(groups.options, groups.rule, source)
        drawn = np.array([groups.rule.points.value(place) for place in places])
        return Outcome(drawn, None, {"thresholds": [tau]})


def _bound(terms: Terms) -> SqlQuantile:
    query = terms.query
    assert isinstance(query, SqlQuantile)
    return query if query.bound is not None else query.bound_to(terms.facts)


def _prepare(query: SqlQuantile, values: Values, tau: float, epsilon: Fraction) -> _Groups:
    most = int(UNIT * min(tau, _HEAVIEST))
    assert query.bound is not None
    points = Points.over(query.range.low, query.range.high, whole=query.bound.whole)
    rule = Rule(query.at, most, epsilon, points)
    weights: Any = weights_of(values, most) * values.copies
    places = points.places(values.values)
    size = int(np.prod([len(listed) for _, listed in query.groups]))
    return _Groups(options_by_group(values.groups, places, weights, size, rule), rule)
