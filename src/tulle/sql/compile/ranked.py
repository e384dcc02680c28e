"""Aggregates that look for a row of a group: MEDIAN, quantiles, ARG_MAX and ARG_MIN.

Rows of a group are numbered first, by what decides; those that are looked for keep their value and
the others have NULL, so that MAX finds it. Equal values are one, and of rows that tie for ARG_MAX
the one with the least value is taken: the order in which an engine finds rows decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sqlglot import exp

from tulle.sql.compile.derivations import alias, column
from tulle.sql.expressions.kinds import named_type

Fresh = Callable[[], str]
Computed = Callable[[Any], Any]

EXTREMES = {exp.ArgMax: True, exp.ArgMin: False}
"""Whether the greatest value decides, or the least."""


@dataclass
class Ranked:
    """What numbers rows of a group, and what is kept of those that are looked for."""

    stage: str
    numbers: list[tuple[Any, list[Any], str]] = field(default_factory=list)
    """A window's function, its order, and what it is called."""
    picked: list[tuple[Any, str, str]] = field(default_factory=list)
    """What a row keeps, what that is called, and the column that it is made of."""

    def quantile(self, value: Any, at: Fraction, fresh: Fresh) -> tuple[list[Any], Any]:
        """Return what is aggregated for a quantile of a column, and what is made of it."""
        number, count = fresh(), fresh()
        self.numbers.append((exp.RowNumber(), [_ordered(value)], number))
        self.numbers.append((exp.Count(this=value.copy(), big_int=True), [], count))
        below, above = fresh(), fresh()
        rank = column(number, self.stage)
        for name, more in ((below, 1), (above, 2)):
            place = exp.Add(
                this=_place(column(count, self.stage), at, floor=True), expression=_whole(more)
            )
            self._pick(exp.EQ(this=rank.copy(), expression=place), value, name)
        self.picked.append((column(count, self.stage), fresh(), count))
        last = self.picked[-1][1]

        def made(names: list[Any]) -> Any:
            low, high, size = (_double(name) for name in names)
            share = exp.Sub(
                this=_place(size, at, floor=False), expression=_place(size, at, floor=True)
            )
            high = exp.Coalesce(this=high, expressions=[low.copy()])
            step = exp.Paren(this=exp.Sub(this=high, expression=low.copy()))
            more = exp.Mul(this=exp.Paren(this=share), expression=step)
            return exp.Paren(this=exp.Add(this=low, expression=more))

        return [exp.Max(this=column(name, self.stage)) for name in (below, above, last)], made

    def extreme(
        self, value: Any, by: Any, fresh: Fresh, *, greatest: bool
    ) -> tuple[list[Any], Any]:
        """Return what is aggregated for the value of the row where another is greatest or least."""
        number, found = fresh(), fresh()
        order = [_ordered(by, descending=greatest), _ordered(value)]
        self.numbers.append((exp.RowNumber(), order, number))
        first = exp.EQ(this=column(number, self.stage), expression=_whole(1))
        self._pick(first, value, found)
        return [exp.Max(this=column(found, self.stage))], lambda names: names[0]

    def windows(self, by: list[Any]) -> list[Any]:
        """Return the windows that number rows, within groups."""
        return [
            alias(
                exp.Window(
                    this=function,
                    partition_by=[one.copy() for one in by],
                    order=exp.Order(expressions=order) if order else None,
                    over="OVER",
                ),
                name,
            )
            for function, order, name in self.numbers
        ]

    def _pick(self, condition: Any, value: Any, name: str) -> None:
        kept = exp.Case(ifs=[exp.If(this=condition, true=value.copy())])
        self.picked.append((kept, name, value.name))


def _ordered(value: Any, *, descending: bool = False) -> Any:
    return exp.Ordered(this=value.copy(), desc=descending, nulls_first=False)


def _place(count: Any, at: Fraction, *, floor: bool) -> Any:
    """Return how many values of so many lie below a quantile: a whole number, or with its rest."""
    less = exp.Paren(this=exp.Sub(this=_double(count), expression=_whole(1)))
    product = exp.Mul(this=less, expression=_double(_whole(at.numerator)))
    place = exp.Div(
        this=product, expression=_double(_whole(at.denominator)), typed=False, safe=False
    )
    return exp.Floor(this=place) if floor else place


def _double(value: Any) -> Any:
    return exp.cast(value.copy(), named_type("DOUBLE"))


def _whole(number: int) -> Any:
    return exp.Literal.number(number)
