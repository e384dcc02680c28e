"""Declared ranges of columns, and what follows from them for expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import product
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from tulle.core.errors import InputError
from tulle.sql.expressions.kinds import DATE, TIMESTAMP, kind_of_column, kind_of_type, named_type
from tulle.sql.schema.catalogue import Catalogue, spelled
from tulle.sql.schema.declarations import flat, read_ends
from tulle.sql.schema.owners import Owner

Known = Mapping[tuple[str, str], "Range"]
"""The ranges of columns, by source and name."""


FIRST_DAY = date(1970, 1, 1)

UNITS = {DATE: "day", TIMESTAMP: "second"}
"""What the ends of ranges of dates and timestamps are counted in, from the first day on."""


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included; either may be infinite.

    Of dates the ends are days since 1970, of timestamps seconds; those are no numbers that a
    question can compute with, so whatever is made of such ranges is any number, but for
    differences.

    Example:
        >>> Range(0.0, 2.0) * (Range(1.0, 1.0) - Range(0.0, 0.5))
        Range(low=0.0, high=2.0, kind='')
    """

    low: float = -math.inf
    high: float = math.inf
    kind: str = ""
    """Empty for numbers and truths; else the kind of values: dates, or timestamps."""

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def __neg__(self) -> Range:
        return Range(-self.high, -self.low)

    def __sub__(self, other: Range) -> Range:
        return self + -other

    def __mul__(self, other: Range) -> Range:
        ends = [
            0.0 if a == 0 or b == 0 else a * b
            for a, b in product((self.low, self.high), (other.low, other.high))
        ]
        return Range(min(ends), max(ends))

    def __or__(self, other: Range) -> Range:
        """Return the least range that holds both."""
        if self.low > self.high or other.low > other.high:
            return other if self.low > self.high else self
        if self.kind != other.kind:
            return ANY
        return Range(min(self.low, other.low), max(self.high, other.high), self.kind)

    @property
    def numbers(self) -> Range:
        """The range, where it is one of numbers; otherwise any."""
        return ANY if self.kind else self

    def to_json(self) -> list[float | str | None]:
        """Return both ends, days as texts; None where there is none."""
        return [self._written(end) if math.isfinite(end) else None for end in (self.low, self.high)]

    def _written(self, end: float) -> float | str:
        return str(moment_of(end, self.kind)) if self.kind else end

    def cut(self, value: Any) -> Any:
        """Return an SQL expression for a value cut to the range; NULL stays NULL.

        What lies outside is moved to the nearer end, never refused: whether a question fails
        must not depend on a row. Engines order NaN after all numbers, so it becomes the upper
        end, if there is one.
        """
        ifs = []
        for end, beyond in ((self.low, exp.LT), (self.high, exp.GT)):
            if math.isfinite(end):
                number = _constant(end, self.kind)
                condition = beyond(this=value.copy(), expression=number)
                ifs.append(exp.If(this=condition, true=number.copy()))
        return exp.Case(ifs=ifs, default=value) if ifs else value


ANY = Range()
POSITIVE = Range(0.0)


def read_ranges(
    given: Mapping[str, Any], catalogue: Catalogue, dialect: str
) -> dict[str, dict[str, Range]]:
    """Read ``{"table.column": (low, high)}``, with names as the catalogue spells them.

    Raises:
        InputError: when a name is unknown or two ends are no range.
    """
    found: dict[str, dict[str, Range]] = {}
    for name, ends in flat(given).items():
        table_name, dot, column_name = str(name).rpartition(".")
        table = spelled(table_name, catalogue)
        column = None if table is None else spelled(column_name, catalogue[table])
        if not dot or table is None or column is None:
            raise InputError(
                f"ranges[{name!r}]: write table.column, of a table that is owned or public. "
                f"Tables: {', '.join(sorted(catalogue)) or 'none'}."
            )
        kind = kind_of_column(catalogue[table][column], dialect).name
        if kind not in UNITS and not _is_numeric(catalogue[table][column], dialect):
            raise InputError(
                f"ranges[{name!r}]: the column has type {catalogue[table][column]}; ranges are "
                "for numbers, dates and timestamps without a time zone."
            )
        found.setdefault(table, {})[column] = _read_ends(name, ends, kind)
    return found


def check_ranges(
    ranges: Mapping[str, Mapping[str, Range]],
    owners: Mapping[str, tuple[Owner, ...]],
    times: Mapping[str, str],
) -> None:
    """Refuse ranges of columns that say whose a row is; ``times`` are those that say of when.

    Owners are told apart by the values as they are, conditions of a question compare the values
    that were cut. Were a column both, a condition could hold for two different owners where it
    says that they are one, and the second would not be protected. With neither an owner's column
    nor either side of a key on a path cut, columns that decide about owners are compared as they
    are, and equality of theirs is equality of owners.

    Raises:
        InputError: naming the column and the owner that it identifies.
    """
    for table, column in times.items():
        if column in ranges.get(table, {}):
            raise InputError(
                f"ranges['{table}.{column}']: this column says when a record is from "
                f"(times[{table!r}]), and records beyond the range would be from one day. Declare "
                "ranges of other columns."
            )
    for table, listed in owners.items():
        for owner in listed:
            here = table
            used = []
            for step in owner.steps:
                used += [(here, column) for column in step.columns]
                used += [(step.table, column) for column in step.key or ()]
                here = step.table
            used += [(here, column) for column in owner.columns]
            for place, column in used:
                if column in ranges.get(place, {}):
                    raise InputError(
                        f"ranges['{place}.{column}']: this column says whose rows they are "
                        f"(owners[{table!r}] = '{owner}'), and people beyond the range would "
                        "become one. Declare ranges of other columns; to leave people out, put a "
                        "condition into the question."
                    )


def _is_numeric(written: str, dialect: str) -> bool:
    try:
        kind = exp.DataType.build(written, dialect=dialect)
    except (SqlglotError, ValueError):
        return False
    return kind.this in exp.DataType.NUMERIC_TYPES


def _read_ends(name: str, ends: Any, kind: str) -> Range:
    if kind in UNITS:
        found = read_ends(ends, lambda end: _read_moment(end, kind))
        if found is None:
            raise InputError(
                f"ranges[{name!r}] must be two days, the first and the last, such as "
                f"('2020-01-01', '2024-12-31'), also as a text; got {ends!r}."
            )
        return Range(*found, kind)
    found = read_ends(ends)
    if found is None:
        raise InputError(
            f"ranges[{name!r}] must be two numbers, the least and the most, such as (0, 1) or "
            f"(0, math.inf), also as a text '0, 1'; got {ends!r}."
        )
    return Range(*found)


def _read_moment(given: Any, kind: str) -> float:
    """Return a day or a moment as a number of days or seconds.

    Raises:
        ValueError: when it is neither, has a time zone, or is finer than that.
    """
    read = datetime.fromisoformat(str(given).strip())
    past = read - datetime.combine(FIRST_DAY, datetime.min.time())
    unit = timedelta(**{f"{UNITS[kind]}s": 1})
    if past % unit:
        raise ValueError
    return float(past // unit)


def moment_of(number: float, kind: str) -> date:
    """Return the day, or the moment, that so many days or seconds after 1970 are.

    Example:
        >>> moment_of(19000, DATE), moment_of(90, TIMESTAMP)
        (datetime.date(2022, 1, 8), datetime.datetime(1970, 1, 1, 0, 1, 30))
    """
    first = FIRST_DAY if kind == DATE else datetime.combine(FIRST_DAY, datetime.min.time())
    return first + timedelta(**{f"{UNITS[kind]}s": int(number)})


def _constant(end: float, kind: str) -> Any:
    """Return an end of a range as SQL."""
    if not kind:
        return written_number(end)
    text = exp.Literal.string(str(moment_of(end, kind)))
    return exp.cast(text, named_type("DATE" if kind == DATE else "TIMESTAMP"))


def range_of(expression: Any, known: Known) -> Range:
    """Return numbers between which an expression over one row lies, if it is a number at all.

    Rounding keeps signs, so this holds for decimals, whole numbers and floats. What an engine
    does on overflow is not looked at; whoever relies on a sign leaves out what has another one.

    Example:
        >>> import sqlglot
        >>> tree = sqlglot.parse_one("t.price * (1 - t.discount)")
        >>> range_of(tree, {("t", "price"): POSITIVE, ("t", "discount"): Range(0, 1)})
        Range(low=0.0, high=inf, kind='')
    """
    rule = _RULES.get(type(expression))
    return ANY if rule is None else rule(expression, known)


def _column(node: Any, known: Known) -> Range:
    return known.get((node.table, node.name), ANY)


def _literal(node: Any, known: Known) -> Range:
    return Range(float(node.name), float(node.name)) if node.is_number else ANY


def _within(node: Any, known: Known) -> Range:
    return range_of(node.this, known)


def _null(node: Any, known: Known) -> Range:
    # NULL is no number, so it is in every range; the least that says so is none at all.
    return Range(math.inf, -math.inf)


def _numbers(expression: Any, known: Known) -> Range:
    return range_of(expression, known).numbers


def _truth(node: Any, known: Known) -> Range:
    # A condition that holds counts 1 where numbers are added.
    return Range(0.0, 1.0)


def _sum(node: Any, known: Known) -> Range:
    return _numbers(node.left, known) + _numbers(node.right, known)


def _difference(node: Any, known: Known) -> Range:
    left, right = range_of(node.left, known), range_of(node.right, known)
    if left.kind == right.kind == DATE:
        return left - right
    return left.numbers - right.numbers


def _days_between(node: Any, known: Known) -> Range:
    """Return how far apart two dates are, in days; two timestamps, in seconds."""
    unit = (node.text("unit") or "day").lower()
    later, earlier = range_of(node.this, known), range_of(node.expression, known)
    same = later.kind == earlier.kind and UNITS.get(later.kind) == unit
    return later - earlier if same else ANY


def _absolute(node: Any, known: Known) -> Range:
    inner = _numbers(node.this, known)
    return Range(0.0, max(abs(inner.low), abs(inner.high)))


def _quotient(node: Any, known: Known) -> Range:
    above, below = _numbers(node.this, known), _numbers(node.expression, known)
    if below.low > 0 or below.high < 0:
        # Whole numbers are divided to a whole one on the way to zero, or with // downwards.
        found = above * Range(1 / below.high, 1 / below.low)
        low, high = min(found.low, 0.0), max(found.high, 0.0)
        if isinstance(node, exp.IntDiv) and math.isfinite(low):
            low = float(math.floor(low))
        return Range(
            math.nextafter(low, -math.inf) if low else 0.0,
            math.nextafter(high, math.inf) if high else 0.0,
        )
    # Divisors are never zero: they were made NULL. Only the sign is of use.
    same = above.low >= 0 and below.low >= 0
    return POSITIVE if same else ANY


def _monotone(node: Any, known: Known) -> Range:
    """Return what rounding to whole numbers, or to another type, makes of a range."""
    inner = _numbers(node.this, known)
    return Range(
        math.floor(inner.low) if math.isfinite(inner.low) else inner.low,
        math.ceil(inner.high) if math.isfinite(inner.high) else inner.high,
    )


def _rounded(node: Any, known: Known) -> Range:
    if node.args.get("decimals") is None:
        return _monotone(node, known)
    # Rounding to hundreds can move a number far, but not past zero.
    return POSITIVE if _numbers(node.this, known).low >= 0 else ANY


def _choice(node: Any, known: Known) -> Range:
    results = [branch.args["true"] for branch in node.args["ifs"]]
    default = node.args.get("default")
    return _any_of([*results, *([default] if default is not None else [])], known)


def _first(node: Any, known: Known) -> Range:
    return _any_of([node.this, *node.expressions], known)


def _greatest(node: Any, known: Known) -> Range:
    parts = [node.this, *node.expressions]
    found = _any_of(parts, known)
    # A number that is written down is never NULL, so the greatest is at least that.
    written = _written(parts)
    return Range(max([found.low, *written]), found.high, found.kind)


def _least(node: Any, known: Known) -> Range:
    parts = [node.this, *node.expressions]
    found = _any_of(parts, known)
    written = _written(parts)
    return Range(found.low, min([found.high, *written]), found.kind)


def _written(parts: list[Any]) -> list[float]:
    """Return those of some expressions that are numbers, written down."""
    found = []
    for part in parts:
        negative = isinstance(part, exp.Neg)
        inner = part.this if negative else part
        if isinstance(inner, exp.Literal) and inner.is_number:
            found.append(-float(inner.name) if negative else float(inner.name))
    return found


def _any_of(parts: list[Any], known: Known) -> Range:
    found = _null(None, known)
    for part in parts:
        found = found | range_of(part, known)
    return found


def _converted(node: Any, known: Known) -> Range:
    kind = kind_of_type(node.args["to"]).name
    if kind in UNITS and isinstance(node.this, exp.Literal) and node.this.is_string:
        try:
            moment = _read_moment(node.this.name, kind)
        except ValueError:
            return ANY
        return Range(moment, moment, kind)
    if node.args["to"].this == exp.DataType.Type.DOUBLE:
        # Rounding to doubles keeps the order, and ends of ranges are doubles themselves.
        return _numbers(node.this, known)
    numeric = node.args["to"].this in exp.DataType.NUMERIC_TYPES
    return _monotone(node, known) if numeric else ANY


_CONDITIONS = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.And, exp.Or, exp.Not, exp.Is, exp.Between, exp.In, exp.Like, exp.ILike, exp.Boolean),
)

_RULES: dict[type[Any], Callable[[Any, Known], Range]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Null: _null,
    exp.Paren: _within,
    exp.Nullif: _within,
    exp.Neg: lambda node, known: -_numbers(node.this, known),
    exp.Add: _sum,
    exp.Sub: _difference,
    exp.Mul: lambda node, known: _numbers(node.left, known) * _numbers(node.right, known),
    exp.DateDiff: _days_between,
    exp.Div: _quotient,
    exp.IntDiv: _quotient,
    exp.Abs: _absolute,
    exp.Round: _rounded,
    exp.Floor: _monotone,
    exp.Ceil: _monotone,
    exp.Case: _choice,
    exp.Coalesce: _first,
    exp.Least: _least,
    exp.Greatest: _greatest,
    exp.Cast: _converted,
    exp.TryCast: _converted,
    **dict.fromkeys(_CONDITIONS, _truth),
}


def written_number(value: float) -> Any:
    """Return a number as SQL; whole ones below 1e18 as whole numbers."""
    written = int(value) if value == int(value) and abs(value) < 1e18 else value
    literal = exp.Literal.number(repr(abs(written)))
    return exp.Neg(this=literal) if value < 0 else literal
