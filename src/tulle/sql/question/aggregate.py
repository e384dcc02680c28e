"""The one aggregate of a statement, and the public groups that it is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any, Literal

from sqlglot import exp

from tulle.core.errors import QueryError
from tulle.sql.expressions.kinds import named_type
from tulle.sql.question.check import refuse
from tulle.sql.question.scalars import as_written, check_scalar

Groups = tuple[tuple[str, tuple[Any, ...]], ...]
"""For each column of GROUP BY the values that everyone may know, in order."""

Number = Callable[[list[Any], Groups], tuple[Any, list[Any]]]
"""From the columns of GROUP BY, and their values, to what tells a row's group, and conditions that
it has one."""


SPREADS: dict[type[Any], tuple[bool, bool]] = {
    exp.Variance: (True, False),
    exp.VariancePop: (False, False),
    exp.Stddev: (True, True),
    exp.StddevSamp: (True, True),
    exp.StddevPop: (False, True),
}
"""For each measure of spread: whether it is a sample's, and whether the root is taken."""

_QUANTILES = (exp.Quantile, exp.PercentileCont, exp.PercentileDisc)
_NAMED_QUANTILES = {"quantile_cont", "quantile_disc", "percentile"}


@dataclass(frozen=True)
class Aggregate:
    """COUNT or SUM: of all rows (no arguments), of values, or of distinct values."""

    kind: Literal["count", "sum"]
    arguments: tuple[Any, ...]
    distinct: bool


def find_aggregate(tree: exp.Select) -> Aggregate:
    """Return the aggregate that a statement selects.

    Raises:
        QueryError: when there is not exactly one, or it is of another kind.
    """
    found = [e.unalias() for e in tree.expressions if e.find(exp.AggFunc, exp.Window, exp.Filter)]
    if len(found) != 1:
        raise QueryError(
            f"A query asks for one COUNT or SUM; this one selects {len(found)}. Ask several "
            "questions, and combine them with + - * / outside: tulle.sql(...) / tulle.sql(...)."
        )
    node = found[0]
    if isinstance(node, exp.Avg):
        refuse(
            "AVG",
            "divide a SUM by a COUNT: tulle.sql('SELECT SUM...') / tulle.sql('SELECT COUNT...')",
        )
    if isinstance(node, exp.Filter):
        refuse(
            "FILTER", "put the condition into WHERE, or use SUM(CASE WHEN ... THEN 1 ELSE 0 END)"
        )
    if isinstance(node, exp.Window):
        refuse("A window", "windows rank rows against each other")
    if not isinstance(node, exp.AggFunc):
        refuse(
            f"The expression {_short(node)}",
            "select the plain COUNT or SUM and compute with the question: 2 * tulle.sql(...)",
        )
    if type(node) not in {exp.Count, exp.Sum}:
        refuse(_short(node), "only COUNT and SUM are linear in the rows")
    inner = node.this
    if inner is None:
        refuse(f"{_short(node)} without an argument", "write COUNT(*), or SUM(column)")
    distinct = isinstance(inner, exp.Distinct)
    if distinct and inner.args.get("on"):
        refuse("DISTINCT ON", "another row is chosen when somebody leaves")
    arguments = inner.expressions if distinct else [inner, *node.expressions]
    kind: Literal["count", "sum"] = "count" if isinstance(node, exp.Count) else "sum"
    if kind == "count" and not distinct and isinstance(inner, exp.Star):
        return Aggregate("count", (), False)
    if len(arguments) != 1 and not (kind == "count" and distinct):
        refuse(_short(node), "it takes one argument")
    if any(isinstance(a, exp.Star | exp.Tuple) or a.is_star for a in arguments):
        refuse(
            _short(node),
            "name the columns: COUNT(DISTINCT a, b), or count the rows of a SELECT DISTINCT",
        )
    return Aggregate(kind, tuple(arguments), distinct)


def is_named_quantile(node: Any) -> bool:
    """Say whether a function that the parser does not know is a quantile."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in _NAMED_QUANTILES


def quantile_of(node: Any) -> tuple[Any, Fraction] | None:
    """Return of what a quantile is, and which, if it is one; 0 is the least and 1 the greatest.

    Raises:
        QueryError: when it is written in a way that is not supported.
    """
    if isinstance(node, exp.Median):
        if isinstance(node.this, exp.Distinct):
            refuse(_short(node), "a median of distinct values depends on who shares a value")
        return node.this, Fraction(1, 2)
    if isinstance(node, exp.WithinGroup):
        ordered = node.expression.expressions
        if type(node.this) not in _QUANTILES or len(ordered) != 1:
            refuse(_short(node), "WITHIN GROUP is for PERCENTILE_CONT(q) and one column")
        at = _share(node.this.this, node)
        return ordered[0].this, 1 - at if ordered[0].args.get("desc") else at
    if is_named_quantile(node):
        if len(node.expressions) != 2:
            refuse(_short(node), "write QUANTILE_CONT(x, 0.9)")
        return node.expressions[0], _share(node.expressions[1], node)
    if isinstance(node, _QUANTILES):
        written = node.args.get("quantile") or node.args.get("expression")
        if written is None or isinstance(node.this, exp.Distinct):
            refuse(_short(node), "write QUANTILE_CONT(x, 0.9)")
        return node.this, _share(written, node)
    return None


def _share(written: Any, node: Any) -> Fraction:
    if isinstance(written, exp.Array | exp.Tuple):
        refuse(_short(node), "write each quantile as a column of its own: QUANTILE_CONT(x, 0.9)")
    if not isinstance(written, exp.Literal) or not written.is_number:
        refuse(_short(node), "write the quantile as a number, such as 0.9")
    at = Fraction(written.name)
    if not 0 <= at <= 1:
        refuse(_short(node), "a quantile lies between 0 and 1")
    return at


def check_aggregate(tree: exp.Select, groups: Groups, functions: Collection[str]) -> None:
    """Check what a statement selects, and that its groups are those of GROUP BY.

    Raises:
        QueryError: naming what does not fit.
    """
    for argument in find_aggregate(tree).arguments:
        check_scalar(argument, "the aggregate", functions)
    for expression in group_expressions(tree, groups):
        check_scalar(expression, "GROUP BY", functions)


def group_expressions(tree: exp.Select, groups: Groups) -> list[Any]:
    """Return what each column of ``groups`` stands for in the statement.

    Raises:
        QueryError: when GROUP BY and groups= do not name the same columns.
    """
    group = tree.args.get("group")
    listed = list(group.expressions) if group is not None else []
    names: dict[str, Any] = {}
    for expression in listed:
        meant = _meant(tree, expression)
        names[_group_name(tree, expression, meant)] = meant
    wanted = {name.lower() for name, _ in groups}
    if set(names) != wanted or len(names) != len(listed):
        raise QueryError(
            f"GROUP BY has {', '.join(names) or 'no columns'}; groups= has "
            f"{', '.join(name for name, _ in groups) or 'none'}. Give public values for each "
            "column of GROUP BY, by its name or alias."
        )
    others = [e for e in tree.expressions if not e.find(exp.AggFunc, exp.Window, exp.Filter)]
    for expression in others:
        if expression.unalias() not in names.values():
            raise QueryError(
                f"{_short(expression)} is selected but is not in GROUP BY. Select the columns of "
                "GROUP BY and one COUNT or SUM."
            )
    return [names[name.lower()] for name, _ in groups]


def _meant(tree: exp.Select, expression: Any) -> Any:
    """Return what GROUP BY 1 or GROUP BY alias stands for."""
    if isinstance(expression, exp.Literal) and expression.is_int:
        place = int(expression.name)
        if not 1 <= place <= len(tree.expressions):
            raise QueryError(f"GROUP BY {place}: there is no such column.")
        return tree.expressions[place - 1].unalias()
    if isinstance(expression, exp.Column) and not expression.table:
        for selected in tree.expressions:
            if (
                isinstance(selected, exp.Alias)
                and selected.alias.lower() == expression.name.lower()
            ):
                return selected.this
    return expression


def _group_name(tree: exp.Select, expression: Any, meant: Any) -> str:
    for selected in tree.expressions:
        if isinstance(selected, exp.Alias) and selected.this == meant:
            return str(selected.alias).lower()
    if isinstance(meant, exp.Column):
        return str(meant.name).lower()
    raise QueryError(
        f"GROUP BY {_short(expression)}: give it a name: SELECT {_short(meant)} AS ..."
    )


def group_number(expressions: list[Any], groups: Groups) -> tuple[Any, list[Any]]:
    """Return an expression for the number of a row's group, and conditions that it has one."""
    places, conditions = [], []
    for expression, (name, values) in zip(expressions, groups, strict=True):
        if is_ordered(values):
            places.append(_place(expression, values, name))
            inside: Any = exp.In(this=expression.copy(), expressions=[*map(literal, values)])
            inside.meta["groups"] = name
            # Engines leave out whole blocks of rows by their ends.
            for side, end in ((exp.GTE, min(values)), (exp.LTE, max(values))):
                beyond = side(this=expression.copy(), expression=literal(end))
                beyond.meta["groups"] = name
                conditions.append(beyond)
        else:
            matches = [_equals(expression, value, name) for value in values]
            places.append(_case(matches))
            inside = exp.Paren(this=_any_of([match.copy() for match in matches]))
        conditions.append(inside)
    return number_of(places, groups), conditions


def number_of(places: list[Any], groups: Groups) -> Any:
    """Return the number of a group, from the place of each of its values among those listed."""
    total: Any = None
    for place, (_, values) in zip(places, groups, strict=True):
        if total is None:
            total = place
        else:
            size = exp.Literal.number(len(values))
            shifted = exp.Mul(this=exp.Paren(this=total), expression=size)
            total = exp.Add(this=shifted, expression=place)
    return total


_FEW = 8
"""Among more values than this, the place of one is found by halving."""


def is_ordered(values: tuple[Any, ...]) -> bool:
    """Say whether values have one order on all engines: whole numbers, or days."""
    kinds = {type(value) for value in values}
    return len(values) > _FEW and kinds in ({int}, {date})


def _case(matches: list[Any]) -> Any:
    return exp.Case(
        ifs=[
            exp.If(this=match, true=exp.Literal.number(place))
            for place, match in enumerate(matches)
        ]
    )


def _place(expression: Any, values: tuple[Any, ...], name: str) -> Any:
    """Return the place of a value among ordered ones, with as many comparisons as halvings.

    One that is not among them has none: the last comparison is for equality.
    """
    order = sorted(range(len(values)), key=values.__getitem__)

    def among(low: int, high: int) -> Any:
        if high - low <= 2:
            return exp.Case(
                ifs=[
                    exp.If(
                        this=_equals(expression, values[place], name),
                        true=exp.Literal.number(place),
                    )
                    for place in order[low:high]
                ]
            )
        middle = (low + high) // 2
        before = exp.LT(this=expression.copy(), expression=literal(values[order[middle]]))
        before.meta["groups"] = name
        return exp.Case(
            ifs=[exp.If(this=before, true=among(low, middle))], default=among(middle, high)
        )

    return among(0, len(order))


def _any_of(conditions: list[Any]) -> Any:
    """Return the conditions joined by OR, halved again and again: a chain would be too deep."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    first, second = _any_of(conditions[:middle]), _any_of(conditions[middle:])
    return exp.Or(this=first, expression=second)


def _equals(expression: Any, value: Any, name: str) -> Any:
    if value is None:
        return exp.Is(this=expression.copy(), expression=exp.null())
    if isinstance(value, float) and math.isnan(value):
        return exp.IsNan(this=expression.copy())
    if isinstance(value, float) and math.isinf(value):
        side = exp.GT if value > 0 else exp.LT
        sign = side(this=expression.copy(), expression=exp.Literal.number(0))
        return exp.and_(exp.IsInf(this=expression.copy()), sign)
    equal = exp.EQ(this=expression.copy(), expression=literal(value))
    # What is compared must be of one kind: this says whose value it is if it is not.
    equal.meta["groups"] = name
    return equal


def literal(value: Any) -> Any:
    """Return a public value as SQL; a date as the cast that DATE '...' stands for."""
    if isinstance(value, datetime):
        return exp.cast(exp.Literal.string(value.isoformat(" ")), named_type("TIMESTAMP"))
    if isinstance(value, date):
        return exp.cast(exp.Literal.string(value.isoformat()), named_type("DATE"))
    return exp.convert(value)


def _short(node: Any) -> str:
    text = as_written(node)
    return text if len(text) <= 60 else text[:57] + "..."
