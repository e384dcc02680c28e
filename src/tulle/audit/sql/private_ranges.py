"""Bounds that are bought: the exact law of both ends on all small tables, and what a run spends.

Each end is a cell, drawn by itself. The log-ratio of the cells' probabilities, added up over the
two ends, must be at most the price of both, and for each end at most its own. Rows have values in
all cells, NaN and infinities among them, and people have up to three rows. Besides, whole runs are
watched: what they draw must not cost more than the price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

from tulle.audit.engine.findings import Finding
from tulle.core.events import Composed, price
from tulle.core.mechanism import Parameters, Terms
from tulle.core.query import Query
from tulle.core.unit import Unit
from tulle.core.validate import text
from tulle.noise.watch import watch
from tulle.sql.compile.value_rows import Values
from tulle.sql.data import Database
from tulle.sql.mechanisms.private_ranges import PrivateRanges
from tulle.sql.queries import sql
from tulle.sql.tables.rank_choice import Options, RankRule, options_of, weights_of
from tulle.sql.tables.value_cells import (
    HIGHEST,
    LOWEST,
    VOTE,
    ValueCells,
    end_rule,
)

Person = tuple[float, ...]
"""The values of somebody's rows."""
People = tuple[Person, ...]

SMALL = ValueCells(0, 1)
EPSILONS = (Fraction(1, 2), Fraction(8), Fraction(40))
NUMBERS = (-np.inf, -1.0, 0.0, 1.5, 100.0)
CHECK = "exact, bounds of values"


def _weigh(values: Values) -> Any:
    return weights_of(values, VOTE, unit=VOTE)


@dataclass(frozen=True)
class BoundDraw:
    """How the cells of bounds are drawn; broken versions change one of these."""

    weigh: Callable[[Values], Any] = _weigh
    options: Callable[[Any, Any, RankRule], Options] = options_of
    rate: Callable[[RankRule], float] = lambda rule: float(rule.rate)
    paid: int = 2
    """How many ends are paid for."""


HONEST = BoundDraw()


def table(people: People) -> Values:
    """Return the rows of made-up people as arrays; as the engine's are, without NaN."""
    rows = [(len(person), value) for person in people for value in person]
    values = np.array([value for _, value in rows], dtype=np.float64)
    loads = np.array([load for load, _ in rows], dtype=np.int64)
    return Values.of(np.zeros_like(loads), values, loads, np.ones_like(loads))


def law_of(values: Values, rule: RankRule, way: BoundDraw = HONEST) -> Any:
    """Return the logarithm of the probability of each cell."""
    weights = way.weigh(values) * values.copies
    found = way.options(SMALL.places(values.values), weights, rule)
    logs = np.full(SMALL.count, -np.inf)
    for start, count, badness in zip(found.starts, found.counts, found.badness, strict=True):
        logs[start : start + count] = -float(badness) * way.rate(rule)
    return logs - np.logaddexp.reduce(logs)


def neighbours(*, few: bool = False) -> Iterator[tuple[People, People]]:
    """Yield people with up to three rows each, with and without one of them."""
    everyone: list[Person] = [
        person for size in (1, 2, 3) for person in combinations_with_replacement(NUMBERS, size)
    ]
    everyone.append((np.nan,))
    some = everyone[:: 6 if few else 3]
    heavy: list[Person] = [(-1.0,), (1.5,), (100.0, 100.0, 100.0), (0.0, 0.0)]
    sizes: list[tuple[int, list[Person]]] = [(1, everyone), (2, some), (3, heavy), (4, heavy)]
    for size, listed in sizes:
        for people in combinations_with_replacement(listed, size):
            for gone in range(size):
                yield people, people[:gone] + people[gone + 1 :]


def check_bounds(way: BoundDraw = HONEST, *, few: bool = False) -> Finding:
    """Compare losses of both ends together with their price on all small tables."""
    known: dict[People, list[Any]] = {}
    rules = [end_rule(SMALL, at, e) for e in EPSILONS for at in (LOWEST, HIGHEST)]

    def laws(people: People) -> list[Any]:
        if people not in known:
            values = table(people)
            known[people] = [law_of(values, rule, way) for rule in rules]
        return known[people]

    cases, worst, witness = 0, 0.0, ""
    for people, others in neighbours(few=few):
        with np.errstate(invalid="ignore"):
            ratios = [a - b for a, b in zip(laws(people), laws(others), strict=True)]
        for place, epsilon in enumerate(EPSILONS):
            pair = ratios[2 * place : 2 * place + 2]
            ends = [[float(np.nanmax(sign * one)) for one in pair] for sign in (1, -1)]
            both = max(map(sum, ends)) / float(way.paid * epsilon)
            lost = max(both, *(max(one) / float(epsilon) for one in ends))
            cases += 2
            if lost > worst:
                worst = lost
                witness = f"{people} and {others}"
    return Finding(
        "private_ranges",
        "bounds of values",
        CHECK,
        cases,
        worst,
        worst <= 1 + 1e-9,
        f"{worst:.6g} of the price",
        witness,
    )


def read_off(places: Any, weights: Any, rule: RankRule) -> Options:
    """Take the least or the greatest cell that occurs: a broken version."""
    if not len(places):
        return options_of(places, weights, rule)
    cell = int(places.min() if rule.at == LOWEST else places.max())
    return Options(np.array([cell]), np.array([1]), np.array([0]))


def cells_that_occur(places: Any, weights: Any, rule: RankRule) -> Options:
    """Draw among cells that somebody is in: a broken version, since others are then impossible."""
    found = options_of(places, weights, rule)
    kept = np.isin(found.starts, places) if len(places) else np.full(len(found.starts), True)
    return Options(found.starts[kept], found.counts[kept], found.badness[kept])


BROKEN: dict[str, BoundDraw] = {
    "bounds read off the data": BoundDraw(options=read_off),
    "only cells that occur": BoundDraw(options=cells_that_occur),
    "a vote for each row": BoundDraw(weigh=lambda values: np.full(len(values.loads), VOTE)),
    "twice the rate": BoundDraw(rate=lambda rule: 2 * float(rule.rate)),
    "the price of one end for both": BoundDraw(paid=1),
}


# --- what a run spends ----------------------------------------------------------------------------

STATEMENTS = (
    "SELECT AVG(cost) AS mean, COUNT(*) AS n FROM visit",
    "SELECT MEDIAN(cost) AS middle, SUM(cost + place) AS total FROM visit",
    "SELECT place, MAX(cost) AS most FROM visit GROUP BY place",
)


def private_questions() -> list[Query]:
    """Return questions whose bounds are bought: plain, of two expressions, by listed keys."""
    return [
        sql(one, groups={"place": [0, 1, 2]} if "GROUP" in one else None, ranges="private")
        for one in STATEMENTS
    ]


@lru_cache(maxsize=1)
def private_databases() -> tuple[Database, ...]:
    """Return a few people's rows without declared ranges, and nobody's."""
    import duckdb

    made = []
    for rows in ("range(9)", "range(0)"):
        connection = duckdb.connect(config={"threads": 1})
        connection.execute(
            "CREATE TABLE visit AS SELECT range % 4 AS person, range % 3 AS place, CASE WHEN "
            f"range % 5 > 0 THEN (range - 2) * 100 END AS cost FROM {rows}"
        )
        made.append(Database.connect(connection, owners={"visit": "person"}))
    return tuple(made)


class NotCharged(PrivateRanges):
    """Buys answers with all of epsilon after the bounds: a broken version."""

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        return {**super().settings(terms, options), "epsilon_answers": text(terms.epsilon)}


def check_price(run: PrivateRanges, *, few: bool = False) -> Finding:
    """Watch whole runs and compare what they drew with what was stated."""
    unit = Unit.of("participant")
    cases, worst = 0, 0.0
    questions = list(product(private_questions(), private_databases()))
    for query, database in questions[:1] if few else questions:
        bound = query.bind(database, {})
        terms = Terms(bound, unit, Fraction(2), Fraction(0), database.facts(unit))
        settings = run.settings(terms, {})
        with watch() as events:
            run.run(terms, settings, database, None)
        spent, _ = price(Composed(tuple(events)))
        cases += 1
        worst = max(worst, float(spent / terms.epsilon))
    return Finding(
        "private_ranges",
        "tables within bounds",
        "price of what is drawn",
        cases,
        worst,
        worst <= 1,
        f"{worst:.6g} of the price",
        "",
    )


def range_findings() -> list[Finding]:
    """Return what is found on small tables, and on broken versions that must be caught."""
    found = [check_bounds(), check_price(PrivateRanges())]
    found += [check_bounds(way, few=True).of_broken(name) for name, way in BROKEN.items()]
    found.append(check_price(NotCharged(), few=True).of_broken("bounds are not charged"))
    return found
