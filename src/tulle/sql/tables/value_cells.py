"""Bounds of an expression's values, drawn privately from powers of two.

All numbers are divided into a public list of cells: zero, and on each side of it the numbers up to
a small power of two, then those from each power of two to the next, and at last whatever is beyond.
An end of the range is the outer edge of a cell that is drawn by the exponential mechanism of
:mod:`tulle.sql.tables.rank_choice`: MIN for the lower end, MAX for the upper one, with cells in the
place of points.

*Weights.* Everyone has one vote of ``VOTE`` units, divided evenly among their rows and rounded
down: w = VOTE // (number of their rows), in whole numbers. So nobody's rows weigh more than VOTE,
whatever they have, and no threshold has to be bought first. A row's cell follows from its own
value: NaN has none and the row weighs nothing, infinities are in the outermost cells.

*Privacy.* When somebody leaves, their rows leave and nobody else's rows, weights or cells change.
With T = VOTE the argument of ``rank_choice`` holds as it stands: each end costs its epsilon, and
the ends of all expressions together their sum. Nothing but the drawn cells is looked at afterwards;
an empty table, and one with NULL alone, have all cells equally likely.

*Target.* R0 is a public number of people, whatever the weight of all rows is: so many that all
cells beyond the data together have at most exp(-FAR) of the probability. A bound far beyond would
drown the answers in noise. As R0 does not move, the target moves with the weight by no more than it
does.

*Error.* With probability 1 - beta, rows that amount to at most

    R0 + 2·ln(cells/beta)/epsilon = 2·(2·ln(cells) + FAR + ln(1/beta))/epsilon        people

lie beyond an end and are moved to it. How many it really are is not known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Wholes
from tulle.core.source import Source
from tulle.sql.compile.value_rows import Values
from tulle.sql.question.parse import parse_statement
from tulle.sql.schema.ranges import Range, written_number
from tulle.sql.tables.rank_choice import (
    Options,
    Points,
    RankRule,
    draw_places,
    options_of,
    places_at,
    weights_of,
)

VOTE = 2**24
"""What one person weighs; their rows share it, so nobody with more rows than this counts."""

LOWEST, HIGHEST = Fraction(0), Fraction(1)
"""The quantiles that are looked for, for the two ends."""

FAR = 5.0
"""What all cells beyond the data have of the probability together, as a negative logarithm."""

UNSURE = 0.05
"""With which probability more may lie beyond an end than is said."""


@dataclass(frozen=True)
class ValueCells:
    """The cells: powers of two from 2**least to 2**most on each side of zero. Public."""

    least: int
    most: int

    @property
    def side(self) -> int:
        """How many cells there are on each side of zero."""
        return self.most - self.least + 1

    @property
    def count(self) -> int:
        """How many cells there are."""
        return 2 * self.side + 1

    @cached_property
    def edges(self) -> npt.NDArray[np.float64]:
        """The ends of cells, from the lowest: that of a cell below zero is ``edges[cell]``."""
        above = np.ldexp(1.0, np.arange(self.least, self.most + 1))
        return np.concatenate([-above[::-1], [0.0], above])

    def places(self, values: npt.NDArray[np.float64]) -> Wholes:
        """Return the cell of each value; each row is looked at by itself."""
        fraction, exponent = np.frexp(np.where(np.isfinite(values), values, 1.0))
        # The least power of two that a size is not above.
        power = exponent.astype(np.int64) - (np.abs(fraction) == 0.5)
        size = np.clip(power - self.least, 0, self.side - 1) + 1
        size = np.where(np.isinf(values), self.side, size)
        found: Wholes = (self.side + np.sign(values) * np.where(values == 0, 0, size)).astype(
            np.int64
        )
        return found

    def low(self, cell: int) -> float:
        """Return the lower end of a cell; of the lowest, that of all ranges that are drawn."""
        return float(self.edges[cell if cell <= self.side else cell - 1])

    def high(self, cell: int) -> float:
        """Return the upper end of a cell."""
        return float(self.edges[cell if cell >= self.side else cell + 1])

    def above(self, end: float) -> float:
        """Return the least edge above a number."""
        place = int(np.searchsorted(self.edges, end, "right"))
        return float(self.edges[min(place, self.count - 1)])

    def below(self, end: float) -> float:
        """Return the greatest edge below a number."""
        place = int(np.searchsorted(self.edges, end, "left"))
        return float(self.edges[max(place - 1, 0)])

    @property
    def widest(self) -> Range:
        """The widest range that can be drawn."""
        return Range(float(self.edges[0]), float(self.edges[-1]))


WHOLE_CELLS = ValueCells(0, 59)
"""Of whole numbers: their literals are whole on every engine."""

CELLS = ValueCells(-30, 100)
"""Of all other numbers."""


@dataclass(frozen=True)
class Missing:
    """An expression whose range has to be bought, and what is declared of it."""

    value: Any
    """The expression, parsed."""
    name: str
    """The same as text."""
    whole: bool
    known: Range
    """The declared range, of which at least one end is missing."""

    @property
    def cells(self) -> ValueCells:
        """The cells that its values are in."""
        return WHOLE_CELLS if self.whole else CELLS

    @property
    def ends(self) -> tuple[Fraction, ...]:
        """Which ends are bought."""
        bought = ((self.known.low, LOWEST), (self.known.high, HIGHEST))
        return tuple(at for end, at in bought if not math.isfinite(end))

    @property
    def widest(self) -> Range:
        """The range with ends that hold whatever is drawn."""
        return self.joined({LOWEST: 0, HIGHEST: self.cells.count - 1})

    def joined(self, drawn: dict[Fraction, int]) -> Range:
        """Return the range of declared ends and drawn cells, never empty and never a point."""
        cells, known = self.cells, self.known
        if len(self.ends) == 2:
            low, high = sorted((drawn[LOWEST], drawn[HIGHEST]))
            found = Range(cells.low(low), cells.high(high))
            return found if found.low < found.high else Range(found.low, cells.above(found.high))
        if math.isfinite(known.low):
            high_end = cells.high(drawn[HIGHEST])
            above = max(cells.above(known.low), math.nextafter(known.low, math.inf))
            return Range(known.low, high_end if high_end > known.low else above)
        low_end = cells.low(drawn[LOWEST])
        below = min(cells.below(known.high), math.nextafter(known.high, -math.inf))
        return Range(low_end if low_end < known.high else below, known.high)


class BoundRule(RankRule):
    """The public numbers of the draw of one end."""

    def inside(self, weight: int) -> int:
        """Return R0, in units: the same for every weight."""
        return math.ceil(2 * (math.log(self.points.count) + FAR) * self.most / self.epsilon)


def end_rule(cells: ValueCells, at: Fraction, epsilon: Fraction) -> RankRule:
    """Return the public numbers of the draw of one end."""
    return BoundRule(at, VOTE, epsilon, Points(0.0, 1.0, cells.count))


def beyond_at_most(cells: ValueCells, epsilon: Fraction) -> int:
    """Return how many people's rows lie beyond an end at most, but for ``UNSURE``."""
    rule = end_rule(cells, HIGHEST, epsilon)
    inside = rule.inside(0) / VOTE
    return math.ceil(inside + 2 * math.log(cells.count / UNSURE) / float(epsilon))


def draw_range(missing: Missing, values: Values, epsilon: Fraction, source: Source | None) -> Range:
    """Return a private range of values, each end for ``epsilon``.

    Guarantee:
        Pure epsilon per participant for each end that is bought; see the module's text.
    """
    drawn = {}
    for at, options, rule in _ends(missing, values, epsilon):
        (drawn[at],) = draw_places([options], rule, source)
    return missing.joined(drawn)


def likely_range(missing: Missing, values: Values, epsilon: Fraction) -> Range:
    """Return the range that is drawn in the middle, on public data. For predictions."""
    return missing.joined(
        {
            at: int(places_at(options, rule, 0.5))
            for at, options, rule in _ends(missing, values, epsilon)
        }
    )


def _ends(
    missing: Missing, values: Values, epsilon: Fraction
) -> Iterator[tuple[Fraction, Options, RankRule]]:
    """Yield for each end that is bought the cells to draw from, and the rule to draw by."""
    weights = weights_of(values, VOTE, unit=VOTE) * values.copies
    places = missing.cells.places(values.values)
    for at in missing.ends:
        rule = end_rule(missing.cells, at, epsilon)
        yield at, options_of(places, weights, rule), rule


def cut_to(value: Any, found: Range, dialect: str, *, whole: bool) -> Any:
    """Return an expression cut to a range with two ends; NULL stays NULL."""
    inner = value.sql(dialect=dialect)
    number = f"({inner})" if whole else f"CAST({inner} AS DOUBLE)"
    low, high = (written_number(end).sql(dialect=dialect) for end in (found.low, found.high))
    within = f"LEAST(GREATEST({number}, {low}), {high})"
    text = f"SELECT SUM(CASE WHEN NOT ({inner}) IS NULL THEN {within} END) FROM t"
    # Read like a user's statement, so that it is written and read again unchanged.
    return parse_statement(text, dialect).expressions[0].this
