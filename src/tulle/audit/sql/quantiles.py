"""Quantiles: all small tables of rows with one owner each, and the exact law of a draw from them.

A release is a level with noise, and at its threshold one point of a lattice for each group. The
level must move by at most one; the log-ratio of the points' probabilities, added up over groups,
must be at most what is paid for them, at every threshold. The ends of intervals are points of such
draws too: besides their loss, the exact probability that they miss the quantile must be at most the
stated one on every table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

from tulle.audit.engine.findings import Finding
from tulle.core.arrays import Floats
from tulle.relations.truncation.totals import Thresholds, least_level
from tulle.sql.compile.value_rows import Values
from tulle.sql.mechanisms.quantile import RowCounts
from tulle.sql.tables.rank_choice import (
    UNIT,
    EndRule,
    Options,
    Points,
    RankRule,
    end_options,
    options_by_group,
    options_of,
    weights_of,
)

Row = tuple[int, int]
"""A group and a point."""
Person = tuple[Row, ...]
People = tuple[Person, ...]
Law = list[Floats]
"""For each group the logarithm of the probability of each point."""

GROUPS = 2
POINTS = Points(0.0, 1.0, 4)
TAUS = (1.0, 1.75)
QUANTILES = (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1))
EPSILONS = (Fraction(1, 2), Fraction(8))
THRESHOLDS = Thresholds(1.0, 0.35)
CHECK = "exact, quantiles"


@dataclass(frozen=True)
class PointDraw:
    """How points are drawn; broken versions change one of these."""

    weigh: Callable[[Values, int], Any] = weights_of
    options: Callable[[Any, Any, RankRule], Options] = options_of
    rate: Callable[[RankRule], float] = lambda rule: float(rule.rate)
    level: Callable[[Values], int] = lambda values: least_level(RowCounts(values), THRESHOLDS)


HONEST = PointDraw()


@dataclass(frozen=True)
class OwnedValues(Values):
    """Rows of which it is known whose they are."""

    owners: Any = None


def table(people: People) -> OwnedValues:
    """Return the rows of made-up people as arrays."""
    rows = [(who, len(person), *row) for who, person in enumerate(people) for row in person]
    owners, loads, groups, points = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    found = Values.of(groups, points.astype(np.float64), loads, np.ones_like(loads))
    return OwnedValues(**vars(found), owners=owners)


def law_of(values: Values, rule: RankRule, way: PointDraw = HONEST) -> Law:
    """Return the probabilities of all points in all groups."""
    weights = way.weigh(values, rule.most) * values.copies
    places = POINTS.places(values.values)
    law = []
    for group in range(GROUPS):
        here = values.groups == group
        found = way.options(places[here], weights[here], rule)
        logs = np.full(POINTS.count, -np.inf)
        for start, count, badness in zip(found.starts, found.counts, found.badness, strict=True):
            logs[start : start + count] = -float(badness) * way.rate(rule)
        law.append(logs - np.logaddexp.reduce(logs))
    return law


def loss(one: Law, other: Law) -> float:
    """Return the largest log-ratio over all outcomes: groups are drawn independently."""
    with np.errstate(invalid="ignore"):
        ratios = [a - b for a, b in zip(one, other, strict=True)]
    return sum(float(np.nanmax(ratio)) for ratio in ratios)


def neighbours(*, few: bool = False) -> Iterator[tuple[People, People]]:
    """Yield people with at most two rows each, with and without one of them.

    A few kinds of people are enough to see what is wrong with a broken version; but three of them
    are needed, for targets do not move with what two people weigh.
    """
    rows = list(product(range(GROUPS), (0, 2, 3)))
    persons = [*((row,) for row in rows), *combinations_with_replacement(rows, 2)]
    pairs = persons[::4] if few else persons
    heavy = [((0, 0), (0, 0)), ((0, 2), (0, 2)), ((0, 3), (0, 3)), *([] if few else persons[::6])]
    sizes: list[tuple[int, list[Person]]] = [(1, persons), (2, pairs), (3, heavy)]
    for size, everyone in sizes:
        for people in combinations_with_replacement(everyone, size):
            for gone in range(size):
                yield people, people[:gone] + people[gone + 1 :]


def check_quantiles(
    way: PointDraw = HONEST,
    quantiles: Sequence[Fraction] = QUANTILES,
    pairs: Sequence[tuple[People, People]] | None = None,
) -> Finding:
    """Compare losses with what is paid on all small tables, at every threshold."""
    rules = [
        RankRule(at, int(UNIT * tau), epsilon, POINTS)
        for at, tau, epsilon in product(quantiles, TAUS, EPSILONS)
    ]
    known: dict[People, tuple[int, list[Law]]] = {}

    def described(people: People) -> tuple[int, list[Law]]:
        if people not in known:
            values = table(people)
            known[people] = way.level(values), [law_of(values, rule, way) for rule in rules]
        return known[people]

    cases, worst, witness = 0, 0.0, ""
    for people, others in pairs if pairs is not None else neighbours():
        (level, laws), (other_level, other_laws) = described(people), described(others)
        found = float(abs(level - other_level))
        for rule, one, other in zip(rules, laws, other_laws, strict=True):
            paid = float(rule.epsilon)
            found = max(found, loss(one, other) / paid, loss(other, one) / paid)
        cases += 2 * len(rules)
        if found > worst:
            worst, witness = found, f"{people} and {others}"
    return Finding(
        "quantile",
        "quantiles of two groups",
        CHECK,
        cases,
        worst,
        worst <= 1 + 1e-9,
        f"{worst:.6g} of the price",
        witness,
    )


def weigh_nobody(values: Values, most: int) -> Any:
    """Let every row count in full: a broken version."""
    return np.full(len(values.loads), UNIT, dtype=np.int64)


def weigh_each_group(values: Values, most: int) -> Any:
    """Bound what somebody weighs in each group by itself: a broken version."""
    assert isinstance(values, OwnedValues)
    both = values.owners * GROUPS + values.groups
    return weights_of(replace(values, loads=np.bincount(both)[both]), most)


def values_only(places: Any, weights: Any, rule: RankRule) -> Options:
    """Draw among values that occur: a broken version, since others are then impossible."""
    found = options_of(places, weights, rule)
    kept = np.isin(found.starts, places) if len(places) else np.full(len(found.starts), True)
    return Options(found.starts[kept], found.counts[kept], found.badness[kept])


def level_of_rows(values: Values) -> int:
    """Let the threshold follow the number of all rows: a broken version."""
    return int(values.copies.sum())


BROKEN: dict[str, PointDraw] = {
    "nobody's weight bounded": PointDraw(weigh=weigh_nobody),
    "each group bounded by itself": PointDraw(weigh=weigh_each_group),
    "twice the rate": PointDraw(rate=lambda rule: 2 * float(rule.rate)),
    "the median's rate for all": PointDraw(
        rate=lambda rule: float(rule.epsilon) / (rule.scale * rule.most)
    ),
    "only values that occur": PointDraw(options=values_only),
    "a level of all rows": PointDraw(level=level_of_rows),
}


# --- ends of intervals ----------------------------------------------------------------------------

BETA = 0.2
"""With which probability an end may miss, here: so large that it is seen where one does."""

SIDES = (-1, 1)


@dataclass(frozen=True)
class EndWay:
    """How ends are drawn; broken versions change one of these."""

    rule: type[EndRule] = EndRule
    options: Callable[[Any, Any, Any, int, EndRule], list[Options]] = end_options


def end_laws(values: Values, rule: EndRule, way: EndWay) -> Law:
    """Return the probabilities of all points and the extra one, in all groups."""
    values = values.ordered(np.argsort(values.groups, kind="stable"))
    weights = weights_of(values, rule.most) * values.copies
    places = POINTS.places(values.values)
    law = []
    for found in way.options(values.groups, places, weights, GROUPS, rule):
        logs = np.full(rule.points.count, -np.inf)
        for start, count, badness in zip(found.starts, found.counts, found.badness, strict=True):
            logs[start : start + count] = -float(badness) * float(rule.rate)
        law.append(logs - np.logaddexp.reduce(logs))
    return law


def missed(values: Values, law: Law, rule: EndRule) -> float:
    """Return the largest probability, over groups, that an end is beyond the true quantile."""
    worst = 0.0
    for group, logs in enumerate(law):
        rows = values.values[values.groups == group]
        if not len(rows):
            continue
        true = float(np.quantile(rows, float(rule.at)))
        # The extra point is the first or the last: no end at all.
        points = np.arange(rule.points.count) - (1 if rule.side < 0 else 0)
        beyond = points > true if rule.side < 0 else points < true
        extra = 0 if rule.side < 0 else rule.points.count - 1
        beyond[extra] = False
        worst = max(worst, float(np.exp(logs)[beyond].sum()))
    return worst


def check_ends(
    way: EndWay | None = None, pairs: Sequence[tuple[People, People]] | None = None
) -> Finding:
    """Compare losses with what is paid, and misses with what is stated, on all small tables."""
    way = way or EndWay()
    with_extra = replace(POINTS, count=POINTS.count + 1)
    # Thresholds that cut nobody are those at which the interval is that of the plain quantile.
    rules = [
        way.rule(at, int(UNIT * tau), epsilon, with_extra, side, BETA)
        for at, tau, epsilon, side in product(
            QUANTILES, (1.0, 2.0), (Fraction(1, 2), Fraction(8), Fraction(200)), SIDES
        )
    ]
    known: dict[People, list[Law]] = {}
    cases, worst, witness = 0, 0.0, ""

    def laws(people: People) -> list[Law]:
        nonlocal worst, witness
        if people not in known:
            values = table(people)
            known[people] = [end_laws(values, rule, way) for rule in rules]
            for rule, law in zip(rules, known[people], strict=True):
                if (values.loads * UNIT <= rule.most).all():
                    found = missed(values, law, rule) / BETA
                    if found > worst:
                        worst, witness = found, f"{people} misses {rule.at}"
        return known[people]

    for people, others in pairs if pairs is not None else neighbours(few=True):
        for rule, one, other in zip(rules, laws(people), laws(others), strict=True):
            found = max(loss(one, other), loss(other, one)) / float(rule.epsilon)
            cases += 2
            if found > worst:
                worst, witness = found, f"{people} and {others}"
    return Finding(
        "quantile",
        "ends beside quantiles",
        "exact, ends of intervals",
        cases,
        worst,
        worst <= 1 + 1e-9,
        f"{worst:.6g} of the price or of the stated misses",
        witness,
    )


class NoShift(EndRule):
    """Look for an end at the rank of the quantile itself: a broken version."""

    @property
    def extra(self) -> int:
        """The least weight of the extra point."""
        return 1


class OneRowLess(EndRule):
    """Forget that interpolation takes one of two rows: a broken version at a large epsilon."""

    @property
    def extra(self) -> int:
        """The weight of the extra point without that of a row, and less of the rest."""
        return (super().extra - UNIT) // 2


class HalfMoves(EndRule):
    """Count on half of what one person moves: a broken version."""

    @property
    def moves(self) -> int:
        """Half of D."""
        return super().moves // 2


def without_extra(groups: Any, places: Any, weights: Any, size: int, rule: EndRule) -> Any:
    """Leave the extra point without its weight: broken, blind to extreme quantiles."""
    shifted = places + (1 if rule.side < 0 else 0)
    return options_by_group(
        np.append(groups, np.arange(size)),
        np.append(shifted, np.full(size, 0 if rule.side < 0 else rule.points.count - 1)),
        np.append(weights, np.zeros(size, dtype=np.int64)),
        size,
        rule,
    )


BROKEN_ENDS: dict[str, EndWay] = {
    "ends at the rank of the quantile": EndWay(rule=NoShift),
    "ends half as far away": EndWay(rule=OneRowLess),
    "half of what one person moves": EndWay(rule=HalfMoves),
    "no weight where no end is known": EndWay(options=without_extra),
}


def quantile_findings() -> list[Finding]:
    """Return what is found on small tables, and on broken versions that must be caught."""
    few = list(neighbours(few=True))
    found = [check_quantiles(), check_ends()]
    found += [check_quantiles(way, pairs=few).of_broken(name) for name, way in BROKEN.items()]
    found += [check_ends(way, few[::2]).of_broken(name) for name, way in BROKEN_ENDS.items()]
    return found
