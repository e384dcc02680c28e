"""What has to be bought for each aggregate, and how the aggregate is made of it.

*Averages.* AVG(x) = c + SUM(x - c) / COUNT(x) for every c. Where each row is about one participant,
terms of both signs cost no more than terms of one, and c is the middle of the declared range: terms
are then at most half as large. Where rows need several participants, signs are paid for one by one,
and c is an end of the range. Where the statement selects SUM(x) as well, that sum is used, c = 0.

*Spread.* With S = SUM(x - c)/COUNT(x) and m the middle, VAR_POP(x) = SUM((x - m)²)/COUNT(x) -
(c - m + S)², and VAR_SAMP is COUNT/(COUNT - 1) times that.

Whatever two aggregates need alike is bought once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlglot import exp

from tulle.core.query import Query
from tulle.sql.compile.value_rows import ValueRows, value_rows
from tulle.sql.question.aggregate import Groups
from tulle.sql.question.check import refuse
from tulle.sql.schema.ranges import ANY, Range
from tulle.sql.schema.schema import Schema
from tulle.sql.tables.columns import Arithmetic, Column
from tulle.sql.tables.quantiles import SqlQuantile
from tulle.sql.tables.select_list import Call, SelectList, shown

Ask = Callable[[Any], Query]
Cuts = tuple[tuple[Any, Any], ...]
"""Expressions that are aggregated, and what is aggregated in their place: the same within bounds
that were bought."""
Bind = Callable[[Query], Query]

LIKELY = 0.3
"""Where values are thought to lie on average, without any stand-in: this part of the way from the
middle of their range to its end."""

ROWS = 1000.0
"""How many rows there are thought to be. All errors fall with their number alike."""


@dataclass(frozen=True)
class Leaf:
    """A question that is bought, and what public facts let expect of it."""

    query: Query
    likely: float
    """Its answer, if there were ``ROWS`` rows."""
    move: float
    """The most that one row adds to it."""

    @property
    def is_quantile(self) -> bool:
        """Whether it is NULL, and not 0, where there are no rows."""
        return isinstance(self.query, SqlQuantile)

    @property
    def least(self) -> float:
        """What its true answer is not below, by public facts."""
        positive = getattr(self.query, "positive", False) or self.query.integral
        return 0.0 if positive else -math.inf

    @property
    def name(self) -> str:
        """The question as text."""
        return str(self.query)


@dataclass(frozen=True)
class Recipe:
    """How an aggregate is made of what is bought."""

    call: Call
    leaves: tuple[str, ...]
    """A single number; or count and total; or count, total and squares."""
    centre: float = 0.0
    middle: float = 0.0
    range: Range = ANY
    kind: str = ""
    """Of a quantile of dates or timestamps, which they are."""

    def column(self, arithmetic: Arithmetic, bought: Callable[[str], Column]) -> Column:
        """Return the aggregate's column."""
        if self.call.kind in ("count", "sum", "quantile"):
            return replace(bought(self.leaves[0]), kind=self.kind)
        count, total = bought(self.leaves[0]), bought(self.leaves[1])
        size = len(count.value)
        share = arithmetic.divide(total, count)
        mean = arithmetic.add(Column.exact(self.centre, size), share)
        there = np.rint(count.value) >= 1
        lowest, highest = self.ends()
        if self.call.kind == "average":
            return mean.within(lowest, highest).where(there)
        offset = arithmetic.add(Column.exact(self.centre - self.middle, size), share)
        squares = arithmetic.divide(bought(self.leaves[2]), count)
        spread = arithmetic.add(squares, arithmetic.square(offset), -1.0)
        if self.call.sample:
            less = arithmetic.add(count, Column.exact(1.0, size), -1.0)
            spread = arithmetic.multiply(spread, arithmetic.divide(count, less))
            there = np.rint(count.value) >= 2
        spread = spread.within(0.0, highest**2 if self.call.root else highest).where(there)
        return arithmetic.root(spread) if self.call.root else spread

    def ends(self) -> tuple[float, float]:
        """Return public numbers between which the aggregate lies, by the declared range."""
        if self.call.kind in ("average", "quantile"):
            return self.range.low, self.range.high
        if self.call.kind != "variance":
            return -math.inf, math.inf
        # The most when half of the values lie at each end; of a sample of two, twice that.
        half = (self.range.high - self.range.low) / 2
        most = half * half * (2 if self.call.sample else 1) if math.isfinite(half) else math.inf
        return 0.0, math.sqrt(most) if self.call.root else most


@dataclass(frozen=True)
class Purchases:
    """All that a statement needs, each once, and a recipe for each aggregate."""

    leaves: tuple[Leaf, ...]
    recipes: tuple[tuple[Any, Recipe], ...]
    schema: Schema
    """What they were planned for."""


def plan_purchases(
    chosen: SelectList,
    ask: Ask,
    bind: Bind,
    schema: Schema,
    groups: Groups,
    dialect: str,
    functions: Collection[str],
    cuts: Cuts = (),
) -> Purchases:
    """Return what a statement needs when it is asked of a database with this schema.

    ``ask`` makes a question of an aggregate, ``bind`` binds a question to the database. Of ``cuts``
    the second is summed, averaged and ranked where the statement has the first.

    Raises:
        QueryError: when the statement does not fit.
    """
    return _Buyer(chosen, ask, bind, schema, groups, dialect, functions, cuts).all()


class _Buyer:
    def __init__(
        self,
        chosen: SelectList,
        ask: Ask,
        bind: Bind,
        schema: Schema,
        groups: Groups,
        dialect: str,
        functions: Collection[str],
        cuts: Cuts,
    ) -> None:
        self._cuts = dict(cuts)
        self._chosen, self._ask, self._bind = chosen, ask, bind
        self._groups, self._dialect, self._functions = groups, dialect, tuple(functions)
        self._schema = schema
        self._leaves: dict[str, Leaf] = {}
        self._rows: dict[Any, ValueRows] = {}
        self._single = False

    def all(self) -> Purchases:
        calls = self._chosen.calls()
        self._single = len(calls) == 1
        summed = {
            call.arguments[0] for call in calls.values() if call.kind == "sum" and not call.distinct
        }
        recipes = tuple((node, self._recipe(call, summed)) for node, call in calls.items())
        return Purchases(tuple(self._leaves.values()), recipes, self._schema)

    def _recipe(self, call: Call, summed: Collection[Any]) -> Recipe:
        if call.kind == "count":
            return Recipe(call, (self._count(call),))
        (written,) = call.arguments
        value = written if call.distinct else self._cuts.get(written, written)
        if call.kind == "sum":
            return Recipe(call, (self._total(value, 0.0, distinct=call.distinct),))
        if call.kind == "quantile":
            rows = self._values(value)
            return Recipe(call, (self._quantile(value, call),), kind=rows.kind)
        rows = self._values(value)
        if rows.kind:
            refuse(
                f"The average or spread of {shown(written)}",
                f"it is a {rows.kind}. Ask for MEDIAN({shown(written)}), or for the average of "
                f"days: AVG(DATE_DIFF('day', DATE '2020-01-01', {shown(written)}))",
            )
        count = self._count(Call("count", call.arguments, call.distinct))
        if call.distinct:
            total = self._total(value, 0.0, distinct=True)
            return Recipe(call, (count, total), range=rows.range)
        centre = _centre(rows, known=written in summed)
        total = self._total(value, centre)
        if call.kind == "average":
            return Recipe(call, (count, total), centre, range=rows.range)
        middle = _middle(rows.range)
        squares = self._squares(value, middle)
        return Recipe(call, (count, total, squares), centre, middle, rows.range)

    def _values(self, value: Any) -> ValueRows:
        """Return the public side of an expression: its range, and whose its rows are."""
        if value not in self._rows:
            _, tree = self._chosen.parsed(exp.Sum(this=value.copy()), self._dialect)
            self._rows[value] = value_rows(
                tree, self._groups, self._schema, functions=self._functions
            )
        return self._rows[value]

    def _buy(self, query: Query, likely: float, move: float) -> str:
        name = str(query)
        if name not in self._leaves:
            self._leaves[name] = Leaf(self._bind(query), likely, move)
        return name

    def _count(self, call: Call) -> str:
        arguments = [argument.copy() for argument in call.arguments]
        inner: Any = exp.Star()
        if call.distinct:
            inner = exp.Distinct(expressions=arguments)
        elif arguments:
            (inner,) = arguments
        return self._buy(self._ask(exp.Count(this=inner, big_int=True)), ROWS, 1.0)

    def _total(self, value: Any, centre: float, *, distinct: bool = False) -> str:
        inner: Any = value.copy()
        if distinct:
            inner = exp.Distinct(expressions=[inner])
        elif centre:
            inner = _around(value, centre, self._dialect)
        # What to expect of a single number divides no budget.
        unknown = distinct or (self._single and not centre)
        terms = ANY if unknown else self._values(value).range - Range(centre, centre)
        return self._buy(self._ask(exp.Sum(this=inner)), *_likely(terms))

    def _squares(self, value: Any, middle: float) -> str:
        term = _around(value, middle, self._dialect)
        # A square is not below zero; ABS lets that be known from the ranges alone.
        square = exp.Abs(
            this=exp.Mul(this=exp.paren(term.copy()), expression=exp.paren(term.copy()))
        )
        offsets = self._values(value).range - Range(middle, middle)
        most = max(offsets.low**2, offsets.high**2)
        return self._buy(self._ask(exp.Sum(this=square)), *_likely(Range(0.0, most)))

    def _quantile(self, value: Any, call: Call) -> str:
        text = self._chosen.statement(exp.Sum(this=value.copy()), self._dialect)
        query = SqlQuantile(text, self._dialect, self._groups, self._functions, call.at)
        likely, move = _likely(self._values(value).range)
        return self._buy(query, likely / ROWS, move / ROWS)


def _likely(terms: Range) -> tuple[float, float]:
    """Return a likely sum of terms in a range, and the most that one of them adds."""
    most = max(abs(terms.low), abs(terms.high))
    if not math.isfinite(most) or most == 0:
        return ROWS, 1.0
    half = (terms.high - terms.low) / 2
    return ROWS * (terms.low + half * (1 + LIKELY)), most


def _middle(found: Range) -> float:
    ends = [end for end in (found.low, found.high) if math.isfinite(end)]
    return sum(ends) / len(ends) if ends else 0.0


def _centre(rows: ValueRows, *, known: bool) -> float:
    """Return what averages are taken around; ``known`` says that the plain sum is bought anyway."""
    found = rows.range
    if known and (rows.single_owner or found.low >= 0):
        return 0.0
    if rows.single_owner:
        return _middle(found)
    if math.isfinite(found.low):
        return found.low
    return found.high if math.isfinite(found.high) else 0.0


def _around(value: Any, centre: float, dialect: str) -> Any:
    """Return an expression less a constant, as a double: no whole number can overflow."""
    wide = exp.cast(value.copy(), "DOUBLE", dialect=dialect)
    if not centre:
        return wide
    written = exp.Literal.number(repr(abs(centre)))
    return (exp.Sub if centre > 0 else exp.Add)(this=wide, expression=written)


def needs_range(call: Call) -> bool:
    """Say whether an aggregate is better, or only possible, with a range of what it aggregates."""
    return call.kind != "count" and not call.distinct


def leaves_of(recipes: Mapping[Any, Recipe], nodes: Iterable[Any]) -> tuple[str, ...]:
    """Return everything that some aggregates are made of, each once."""
    return tuple(dict.fromkeys(name for node in nodes for name in recipes[node].leaves))
