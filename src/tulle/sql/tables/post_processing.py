"""What a statement does with its aggregates after the noise: arithmetic, CASE, windows, HAVING."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from tulle.core.arrays import Floats
from tulle.core.errors import QueryError
from tulle.sql.question.check import refuse
from tulle.sql.tables.columns import Arithmetic, Column, mixed
from tulle.sql.tables.moments import UNKNOWN, moments
from tulle.sql.tables.select_list import aggregates_in, shown
from tulle.sql.tables.windows import window_column

_REASON = (
    "after the noise, numbers are computed with + - * /, ABS, ROUND, FLOOR, CEIL, SQRT, EXP, LN, "
    "POWER with a constant, COALESCE, NULLIF, GREATEST, LEAST, CASE and windows; a text is not "
    "computed there"
)

Leaf = Callable[[Any], Column]
Values = list[Any]


class PostProcessing:
    """Works out what a statement does with its aggregates, row by row of the noisy table.

    ``keys`` are the public keys of the rows: what each stands for in the statement, its name, and
    its values. ``leaf`` returns the column of an aggregate. Windows look at the rows that are
    ``left``, and of them at those of one sheet: there are several where draws are tried out.
    """

    def __init__(
        self,
        arithmetic: Arithmetic,
        keys: Sequence[tuple[str, Any, Values]],
        leaf: Leaf,
        size: int,
        *,
        left: Sequence[int] | None = None,
        sheets: Sequence[int] | None = None,
    ) -> None:
        self._arithmetic, self._keys, self._leaf, self.size = arithmetic, keys, leaf, size
        self.left: Sequence[int] = range(size) if left is None else left
        self.sheets: Sequence[int] = [0] * size if sheets is None else sheets

    def column(self, node: Any) -> Column:
        """Return the numbers of an expression.

        Raises:
            QueryError: naming what is not supported after the noise.
        """
        with np.errstate(all="ignore"):
            return self._column(node)

    def _column(self, node: Any) -> Column:
        if any(found is node for found in aggregates_in(node)):
            return self._leaf(node)
        listed = self._key(node)
        if listed is not None:
            numbers = [np.nan if value is None else value for value in listed]
            if not all(isinstance(v, int | float | Decimal) for v in numbers):
                refuse(shown(node), "a group that is not a number cannot be computed with")
            return Column.exact([float(v) for v in numbers], self.size)
        if isinstance(node, exp.Paren):
            return self.column(node.this)
        if isinstance(node, exp.Window):
            return window_column(self, node)
        if isinstance(node, exp.Literal) and node.is_number:
            return Column.exact(float(node.name), self.size)
        if isinstance(node, exp.Null):
            return Column.exact(np.nan, self.size)
        rule = _RULES.get(type(node))
        if rule is None:
            if isinstance(node, exp.Query | exp.Subquery):
                refuse(
                    f"The sub-select {shown(node)}",
                    "ask for it in a question of its own and compare the two answers",
                )
            refuse(shown(node), _REASON)
        return rule(self, node)

    def condition(self, node: Any) -> list[bool | None]:
        """Return for each row whether a condition holds; None is SQL's unknown."""
        if isinstance(node, exp.Paren):
            return self.condition(node.this)
        if isinstance(node, exp.And | exp.Or):
            sides = zip(self.condition(node.left), self.condition(node.right), strict=True)
            decisive = isinstance(node, exp.Or)
            return [
                decisive if decisive in pair else (None if None in pair else not decisive)
                for pair in sides
            ]
        if isinstance(node, exp.Not):
            return [None if found is None else not found for found in self.condition(node.this)]
        if isinstance(node, exp.Boolean):
            return [bool(node.this)] * self.size
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return [value is None for value in self.values(node.this)]
        if isinstance(node, exp.Between):
            inside = exp.and_(
                exp.GTE(this=node.this.copy(), expression=node.args["low"].copy()),
                exp.LTE(this=node.this.copy(), expression=node.args["high"].copy()),
            )
            return self.condition(inside)
        if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
            either = [exp.EQ(this=node.this.copy(), expression=e.copy()) for e in node.expressions]
            return self.condition(exp.or_(*either))
        compare = _COMPARISONS.get(type(node))
        if compare is None:
            refuse(
                shown(node),
                "after the noise, rows are chosen with comparisons, BETWEEN, IN (...), IS NULL, "
                "AND, OR and NOT",
            )
        left, right = self.values(node.this), self.values(node.expression)
        for side, values in ((node.this, left), (node.expression, right)):
            if self._is_dated(side) and not any(values):
                # No date is known in any row; of what is not yet known to be one, neither.
                return [None] * self.size
        left, right = _alike(left, right, node)
        return [
            None if one is None or other is None else compare(one, other)
            for one, other in zip(left, right, strict=True)
        ]

    def values(self, node: Any) -> Values:
        """Return any expression as plain values: numbers, or keys of any kind."""
        inner = node.unnest()
        listed = self._key(inner)
        if listed is not None:
            return listed
        if isinstance(inner, exp.Literal) and inner.is_string:
            return [inner.name] * self.size
        if isinstance(inner, exp.Cast) and inner.this.is_string:
            return [inner.this.name] * self.size
        column = self.column(inner)
        if column.kind == UNKNOWN:
            return [None] * self.size
        if column.kind:
            return moments(column.value, column.kind)
        return [None if np.isnan(v) else v for v in column.value.tolist()]

    def _is_dated(self, node: Any) -> bool:
        inner = node.unnest()
        return any(found is inner for found in aggregates_in(inner)) and bool(
            self._leaf(inner).kind
        )

    def _key(self, node: Any) -> Values | None:
        for name, meant, values in self._keys:
            named = isinstance(node, exp.Column) and node.name.lower() == name.lower()
            if node == meant or (named and not node.table):
                return values
        if isinstance(node, exp.Column):
            raise QueryError(
                f"{shown(node)} is neither a column of GROUP BY nor inside an aggregate. Add it to "
                "GROUP BY with its groups, or aggregate it."
            )
        return None

    def chosen_where(self, first: npt.NDArray[np.bool_], one: Column, other: Column) -> Column:
        """Return one where ``first`` says so, else the other; the rows as shown decide which."""
        ends = ((one.low, other.low), (one.high, other.high))
        low, high = (np.where(first, mine, theirs) for mine, theirs in ends)
        slopes = mixed(one.slopes, first, other.slopes, ~first)
        return Column(np.where(first, one.value, other.value), low, high, slopes)

    # What stands between aggregates

    def _add(self, node: Any) -> Column:
        sign = 1.0 if isinstance(node, exp.Add) else -1.0
        return self._arithmetic.add(self.column(node.left), self.column(node.right), sign)

    def _multiply(self, node: Any) -> Column:
        left, right = self.column(node.left), self.column(node.right)
        if node.left.unnest() == node.right.unnest():
            return self._arithmetic.square(left)
        return self._arithmetic.multiply(left, right)

    def _divide(self, node: Any) -> Column:
        return self._arithmetic.divide(self.column(node.left), self.column(node.right))

    def _negative(self, node: Any) -> Column:
        return self._arithmetic.add(Column.exact(0.0, self.size), self.column(node.this), -1.0)

    def _root(self, node: Any) -> Column:
        return self._arithmetic.root(self.column(node.this))

    def _exponential(self, node: Any) -> Column:
        made = self._stepwise(node, np.exp)
        return replace(made, slopes={name: s * made.value for name, s in made.slopes.items()})

    def _logarithm(self, node: Any) -> Column:
        inner = self.column(node.this)
        there = inner.value > 0
        slope = np.where(there, 1.0 / np.where(there, inner.value, 1.0), 0.0)
        return Column(
            np.log(np.where(there, inner.value, np.nan)),
            np.log(np.maximum(inner.low, 0.0)),
            np.log(np.maximum(inner.high, 0.0)),
            {name: one * slope for name, one in inner.slopes.items()},
        )

    def _power(self, node: Any) -> Column:
        written = node.expression.unnest()
        sign = -1.0 if isinstance(written, exp.Neg) else 1.0
        written = written.this if isinstance(written, exp.Neg) else written
        if not (isinstance(written, exp.Literal) and written.is_number):
            refuse(shown(node), "write the exponent as a number")
        power, inner = sign * float(written.name), self.column(node.this)
        value = np.power(inner.value, power)
        ends = np.stack([np.power(inner.low, power), np.power(inner.high, power)])
        # Above zero it rises or falls throughout; elsewhere nothing is said of it.
        sure = (inner.low >= 0) & ~np.isnan(ends).any(axis=0)
        slope = np.nan_to_num(power * np.power(inner.value, power - 1))
        return Column(
            np.where(np.isfinite(value), value, np.nan),
            np.where(sure, ends.min(axis=0), -np.inf),
            np.where(sure, ends.max(axis=0), np.inf),
            {name: one * slope for name, one in inner.slopes.items()},
        )

    def _absolute(self, node: Any) -> Column:
        inner = self.column(node.this)
        sizes = np.abs(np.stack([inner.low, inner.high]))
        low = np.where((inner.low <= 0) & (inner.high >= 0), 0.0, sizes.min(axis=0))
        slopes = {name: slope * np.sign(inner.value) for name, slope in inner.slopes.items()}
        return Column(np.abs(inner.value), low, sizes.max(axis=0), slopes)

    def _rounded(self, node: Any) -> Column:
        written = node.args.get("decimals")
        places = 0
        if written is not None:
            inner = written.this if isinstance(written, exp.Neg) else written
            if not (isinstance(inner, exp.Literal) and inner.is_int):
                refuse(shown(node), "write the number of decimals")
            places = int(inner.name) * (-1 if isinstance(written, exp.Neg) else 1)
        return self._stepwise(node, lambda ends: np.round(ends, places))

    def _stepwise(self, node: Any, step: Callable[[Floats], Floats]) -> Column:
        """Return something that never falls where its argument rises."""
        inner = self.column(node.this)
        with np.errstate(invalid="ignore"):
            return Column(step(inner.value), step(inner.low), step(inner.high), inner.slopes)

    def _first_known(self, node: Any) -> Column:
        parts = [self.column(part) for part in (node.this, *node.expressions)]
        found = parts[0]
        for part in parts[1:]:
            found = found if found.known else _chosen(~np.isnan(found.value), found, part)
        return found

    def _null_if(self, node: Any) -> Column:
        inner, other = self.column(node.this), self.column(node.expression)
        return inner.where(inner.value != other.value)

    def _extreme(self, node: Any) -> Column:
        parts = [self.column(part) for part in (node.this, *node.expressions)]
        pick = np.fmax if isinstance(node, exp.Greatest) else np.fmin
        bound = np.maximum if isinstance(node, exp.Greatest) else np.minimum
        found = parts[0]
        for part in parts[1:]:
            value = pick(found.value, part.value)
            slopes = mixed(found.slopes, value == found.value, part.slopes, value != found.value)
            low, high = bound(found.low, part.low), bound(found.high, part.high)
            found = Column(value, low, high, slopes)
        return found

    def _case(self, node: Any) -> Column:
        if node.this is not None:
            refuse(shown(node), "write CASE WHEN ... THEN ... ELSE ... END")
        default = node.args.get("default")
        found = self.column(default if default is not None else exp.null())
        for branch in reversed(node.args["ifs"]):
            holds = np.array([value is True for value in self.condition(branch.this)], dtype=bool)
            found = _chosen(holds, self.column(branch.args["true"]), found)
        return found

    def _converted(self, node: Any) -> Column:
        if node.args["to"].this not in exp.DataType.NUMERIC_TYPES:
            refuse(shown(node), _REASON)
        if node.args["to"].this in exp.DataType.INTEGER_TYPES:
            return self._stepwise(node, np.round)
        return self.column(node.this)


def _chosen(first: npt.NDArray[np.bool_], one: Column, other: Column) -> Column:
    """Return one where ``first`` says so; which it is depends on noise, so the ends hold both."""
    slopes = mixed(one.slopes, first, other.slopes, ~first)
    value = np.where(first, one.value, other.value)
    # The ends of NULL are none: they leave those of the other side.
    return Column(value, np.fmin(one.low, other.low), np.fmax(one.high, other.high), slopes)


def _alike(left: Values, right: Values, node: Any) -> tuple[Values, Values]:
    """Return two lists that can be compared: texts beside dates are read as dates.

    Of what kind values are follows from the statement and the schema, so what is refused is
    refused before anything is paid.
    """
    kinds = [{_kind(value) for value in side if value is not None} for side in (left, right)]
    moments = next((v for side in (left, right) for v in side if isinstance(v, date)), None)
    if moments is not None and kinds[0] | kinds[1] <= {"date", "text"}:
        return tuple(  # type: ignore[return-value]
            [_moment(v, moments, node) if isinstance(v, str) else v for v in side]
            for side in (left, right)
        )
    found = [one or {"number"} for one in kinds]
    if found[0] != found[1] or len(found[0]) != 1:
        refuse(shown(node), "it compares values of two kinds: numbers, texts or dates")
    return left, right


def _kind(value: Any) -> str:
    if isinstance(value, date):
        return "date"
    return "text" if isinstance(value, str) else "number"


def _moment(text: str, like: date, node: Any) -> Any:
    try:
        return (datetime if isinstance(like, datetime) else date).fromisoformat(text)
    except ValueError:
        refuse(shown(node), f"{text!r} is not a date")


_COMPARISONS: dict[type[Any], Callable[[Any, Any], bool]] = {
    exp.EQ: lambda one, other: one == other,
    exp.NEQ: lambda one, other: one != other,
    exp.GT: lambda one, other: one > other,
    exp.GTE: lambda one, other: one >= other,
    exp.LT: lambda one, other: one < other,
    exp.LTE: lambda one, other: one <= other,
}

_RULES: dict[type[Any], Callable[[PostProcessing, Any], Column]] = {
    exp.Add: PostProcessing._add,
    exp.Sub: PostProcessing._add,
    exp.Mul: PostProcessing._multiply,
    exp.Div: PostProcessing._divide,
    exp.Neg: PostProcessing._negative,
    exp.Sqrt: PostProcessing._root,
    exp.Exp: PostProcessing._exponential,
    exp.Ln: PostProcessing._logarithm,
    exp.Pow: PostProcessing._power,
    exp.Abs: PostProcessing._absolute,
    exp.Round: PostProcessing._rounded,
    exp.Floor: lambda self, node: self._stepwise(node, np.floor),
    exp.Ceil: lambda self, node: self._stepwise(node, np.ceil),
    exp.Coalesce: PostProcessing._first_known,
    exp.Nullif: PostProcessing._null_if,
    exp.Greatest: PostProcessing._extreme,
    exp.Least: PostProcessing._extreme,
    exp.Case: PostProcessing._case,
    exp.Cast: PostProcessing._converted,
    exp.TryCast: PostProcessing._converted,
}
