"""Other ways to write what is supported, rewritten before anything else looks at a statement.

Everything here follows from the text alone: what a statement means does not change, so whatever is
decided about it afterwards holds for what the user wrote.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sqlglot import exp

from tulle.core.errors import QueryError
from tulle.core.validate import counted
from tulle.sql.dialect import dialect_of
from tulle.sql.question.aggregate import quantile_of
from tulle.sql.question.outer_select import merge_outer_selects
from tulle.sql.question.sub_selects import lift_sub_selects

MOST_ROWS = 1000
"""So many rows may be written into a statement with VALUES."""

DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday"
MONTHS = "January February March April May June July August September October November December"

_FIELDS = {"date_part", "datepart"}
_PERIODS = {
    f"to_{unit.lower()}s": unit
    for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
}


def plain_spelling(tree: Any, dialect: str) -> Any:
    """Return a statement with other spellings replaced by the plain ones; the tree is changed."""
    for node in list(tree.walk()):
        rule = _RULES.get(type(node))
        if rule is not None:
            made = rule(node, dialect)
            if made is not None and made is not node:
                if node is tree:
                    tree = made
                node.replace(made)
    for select in list(tree.find_all(exp.Select)):
        if select.args.get("joins") and select.args.get("from_") is None:
            raise QueryError("JOIN without FROM is not supported: name the first table, too.")
        _write_out_windows(select)
        _open_brackets(select)
        _look_up_matches(select)
        _group_by_all(select)
    # From the inside: what stands in FROM is copied.
    for select in reversed(list(tree.find_all(exp.Select))):
        _turn_right_join(select)
        _divide_full_join(select)
        lift_sub_selects(select)
    return merge_outer_selects(tree, dialect)


def _function(node: Any, dialect: str) -> Any:
    """Functions that stand for syntax: DuckDB stores views with them."""
    name, given = node.name.lower(), node.expressions
    if name == "count_star" and not given:
        return exp.Count(this=exp.Star(), big_int=True)
    if name in _PERIODS and len(given) == 1:
        return _interval(given[0], _PERIODS[name])
    if name == "row" and len(given) > 1:
        return exp.Tuple(expressions=list(given))
    if name in _FIELDS and len(given) == 2:
        return _field(*given)
    return None


def _interval(value: Any, unit: str) -> Any:
    """to_days(CAST(TRUNC(CAST(1 AS DOUBLE)) AS INTEGER)) is INTERVAL 1 DAY."""
    while isinstance(value, exp.Cast | exp.Trunc | exp.Paren):
        value = value.this
    if not (isinstance(value, exp.Literal) and value.name.removeprefix("-").isdigit()):
        return None
    return exp.Interval(this=exp.Literal.string(value.name), unit=exp.Var(this=unit))


def _field(unit: Any, value: Any) -> Any:
    """date_part('year', d) is EXTRACT(YEAR FROM d)."""
    if not (isinstance(unit, exp.Literal) and unit.is_string):
        return None
    return exp.Extract(this=exp.Var(this=unit.name.upper()), expression=value)


def _moved_date(node: Any, dialect: str) -> Any:
    """DATE_ADD(d, INTERVAL 1 MONTH) is d + INTERVAL 1 MONTH."""
    if not isinstance(node.expression, exp.Interval):
        return None
    moved = exp.Add if isinstance(node, exp.DateAdd) else exp.Sub
    return exp.Paren(this=moved(this=node.this, expression=node.expression))


def _named_field(node: Any, dialect: str) -> Any:
    """DAYNAME(d) and MONTHNAME(d) are the names of EXTRACT(DOW FROM d), EXTRACT(MONTH FROM d)."""
    days = isinstance(node, exp.Dayname)
    if node.args.get("abbreviated"):
        return None
    number = exp.Extract(this=exp.Var(this="DOW" if days else "MONTH"), expression=node.this.copy())
    names = DAYS if days else MONTHS
    return exp.Case(
        ifs=[
            exp.If(
                this=exp.EQ(this=number.copy(), expression=exp.Literal.number(place)),
                true=exp.Literal.string(name),
            )
            for place, name in enumerate(names.split(), start=0 if days else 1)
        ]
    )


def _safe_divide(node: Any, dialect: str) -> Any:
    """SAFE_DIVIDE(a, b) is a / NULLIF(b, 0)."""
    nonzero = exp.Nullif(this=node.expression, expression=exp.Literal.number(0))
    return exp.Paren(this=exp.Div(this=exp.Paren(this=node.this), expression=nonzero))


def _day_of_week(node: Any, dialect: str) -> Any:
    """Here Sunday is number 0; where it is 1, so many are added."""
    first = dialect_of(dialect).sunday
    if not first:
        return None
    if isinstance(node, exp.Extract):
        if node.name.upper() not in {"DOW", "DAYOFWEEK"}:
            return None
        inner = node.copy()
    else:
        inner = exp.Extract(this=exp.Var(this="DOW"), expression=node.this.copy())
    return exp.Paren(this=exp.Add(this=inner, expression=exp.Literal.number(first)))


def _symmetric(node: Any, dialect: str) -> Any:
    if not node.args.get("symmetric"):
        return None
    value, low, high = node.this, node.args["low"], node.args["high"]
    either = (
        exp.Between(this=value.copy(), low=one.copy(), high=other.copy())
        for one, other in ((low, high), (high, low))
    )
    return exp.Paren(this=exp.or_(*either, copy=False))


def _values(node: Any, dialect: str) -> Any:
    """VALUES is the union of its rows, each a SELECT of constants: a table that belongs to nobody.

    Raises:
        QueryError: when rows have different lengths, or hold anything but constants.
    """
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    alias = node.args.get("alias")
    listed = [name.name for name in alias.columns] if alias is not None else []
    width = len(rows[0])
    if not width or len(rows) > MOST_ROWS or any(len(row) != width for row in rows):
        raise QueryError(
            f"VALUES is not supported here: give at most {MOST_ROWS} rows, all of one length."
        )
    if any(cell.find(exp.Column, exp.Query) for row in rows for cell in row):
        raise QueryError("VALUES is not supported here: it holds constants only.")
    if any(part for name, part in node.args.items() if name not in {"expressions", "alias"}):
        raise QueryError("VALUES is not supported here: leave out what is done to its rows.")
    unnamed, first = dialect_of(dialect).value_names
    names = [unnamed.format(place + first) for place in range(width)]
    names[: len(listed)] = listed
    selects = [
        exp.select(
            *(
                exp.alias_(cell.copy(), name, quoted=True)
                for cell, name in zip(row, names, strict=True)
            )
        )
        for row in rows
    ]
    union = _union(selects)
    if isinstance(node.parent, exp.CTE | exp.SetOperation | exp.Subquery):
        return union
    named = None if alias is None or not alias.name else exp.TableAlias(this=alias.this.copy())
    return exp.Subquery(this=union, alias=named)


def _union(selects: list[Any]) -> Any:
    """Return the union, halved again and again: a chain would be too deep."""
    if len(selects) == 1:
        return selects[0]
    middle = len(selects) // 2
    return exp.Union(
        this=_union(selects[:middle]), expression=_union(selects[middle:]), distinct=False
    )


def _count(node: Any, dialect: str) -> Any:
    """COUNT(t.*) is COUNT(*) where every row has its part of t, which only outer joins change."""
    inner = node.this
    if inner is None and not node.expressions and node.find_ancestor(exp.Window):
        # So DuckDB stores COUNT(*) OVER (...).
        node.set("this", exp.Star())
    if not (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
        return None
    select = node.find_ancestor(exp.Select)
    joins = (select.args.get("joins") or []) if select is not None else []
    sources = {join.this.alias_or_name.lower() for join in joins}
    start = select.args.get("from_") if select is not None else None
    if start is not None:
        sources.add(start.this.alias_or_name.lower())
    if any(join.side for join in joins) or inner.table.lower() not in sources:
        return None
    node.set("this", exp.Star())
    return node


def _pairs_in(node: Any, dialect: str) -> Any:
    """(a, b) IN (SELECT x, y ...) is EXISTS: a condition that holds needs one row of it."""
    inner = node.args.get("query")
    if inner is None or not isinstance(node.this.unnest(), exp.Tuple):
        return None
    if isinstance(node.parent, exp.Not | exp.Or) or node.args.get("negate"):
        return None
    select = inner.unnest()
    values = node.this.unnest().expressions
    if not isinstance(select, exp.Select) or any(e.is_star for e in select.expressions):
        return None
    if len(values) != len(select.expressions):
        raise QueryError(
            f"(...) IN (SELECT ...) has {counted(len(values), 'value')} and "
            f"{counted(len(select.expressions), 'column')}."
        )
    named = select.copy()
    names = [f"in_column_{place}" for place in range(len(values))]
    named.set(
        "expressions",
        [exp.alias_(e.unalias(), name) for e, name in zip(named.expressions, names, strict=True)],
    )
    equal = [
        exp.EQ(this=exp.column(name, "in_rows"), expression=value.copy())
        for name, value in zip(names, values, strict=True)
    ]
    rows = exp.Subquery(this=named, alias=exp.TableAlias(this=exp.to_identifier("in_rows")))
    whole = exp.select(exp.Literal.number(1)).from_(rows).where(*equal)
    return exp.Exists(this=whole)


def _any_of(node: Any, dialect: str) -> Any:
    """x = ANY(['a', 'b']), with constants, is x IN ('a', 'b')."""
    listed = node.expression.this.unnest() if isinstance(node.expression, exp.Any) else None
    if not isinstance(listed, exp.Array | exp.Tuple) or not listed.expressions:
        return None
    if not all(isinstance(one, exp.Literal) for one in listed.expressions):
        return None
    return exp.In(this=node.this.copy(), expressions=[one.copy() for one in listed.expressions])


def _distinct(node: Any, dialect: str) -> Any:
    """APPROX_COUNT_DISTINCT(x) is COUNT(DISTINCT x): noise comes on top of the true number."""
    return exp.Count(this=exp.Distinct(expressions=[node.this.copy()]), big_int=True)


def _is_not(node: Any, dialect: str) -> Any:
    """x IS NOT NULL is NOT x IS NULL."""
    if not node.args.get("negate"):
        return None
    return exp.Paren(this=exp.Not(this=exp.Is(this=node.this, expression=node.expression)))


def _within_group(node: Any, dialect: str) -> Any:
    """PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x) is QUANTILE_CONT(x, q)."""
    asked = quantile_of(node) if type(node.this) is exp.PercentileCont else None
    if asked is None:
        return None
    value, at = asked
    written = str(Decimal(at.numerator) / Decimal(at.denominator))
    return exp.PercentileCont(this=value.copy(), expression=exp.Literal.number(written))


_RULES: dict[type[Any], Any] = {
    exp.WithinGroup: _within_group,
    exp.Anonymous: _function,
    exp.ToDays: lambda node, dialect: _interval(node.this, "DAY"),
    exp.Dayname: _named_field,
    exp.Monthname: _named_field,
    exp.DayOfWeek: _day_of_week,
    exp.Extract: _day_of_week,
    exp.Between: _symmetric,
    exp.Values: _values,
    exp.Count: _count,
    exp.In: _pairs_in,
    exp.EQ: _any_of,
    exp.Is: _is_not,
    exp.ApproxDistinct: _distinct,
    exp.DateAdd: _moved_date,
    exp.DateSub: _moved_date,
    exp.SafeDivide: _safe_divide,
}


def _group_by_all(select: Any) -> None:
    """GROUP BY ALL lists what is selected beside the aggregates."""
    group = select.args.get("group")
    if group is None or not group.args.get("all") or group.expressions:
        return
    plain = [
        one.unalias()
        for one in select.expressions
        if not any(found.parent_select is select for found in one.find_all(exp.AggFunc))
    ]
    # What an unknown function or a window does is not for the text to say.
    if any(one.is_star or one.find(exp.Anonymous) for one in plain) or any(
        one.find(exp.Window) for one in select.expressions
    ):
        return
    keys = [one.copy() for one in plain if not isinstance(one, exp.Literal)]
    select.set("group", exp.Group(expressions=keys) if keys else None)


def _write_out_windows(select: Any) -> None:
    """OVER w, with WINDOW w AS (...), is OVER (...)."""
    named = {one.name.lower(): one for one in select.args.get("windows") or []}
    if not named or any(one.args.get("alias") for one in named.values()):
        return
    for window in list(select.find_all(exp.Window)):
        base = named.get(str(window.alias).lower()) if window.args.get("alias") else None
        if base is None or window.parent_select is not select:
            continue
        window.set("alias", None)
        for part in ("partition_by", "order", "spec"):
            if not window.args.get(part) and base.args.get(part):
                found = base.args[part]
                listed = isinstance(found, list)
                window.set(part, [one.copy() for one in found] if listed else found.copy())
    select.set("windows", None)


def _look_up_matches(select: Any) -> None:
    """a SEMI JOIN b ON c is WHERE EXISTS (SELECT 1 FROM b WHERE c), and ANTI JOIN is NOT EXISTS."""
    joins = select.args.get("joins") or []
    if any(_side(join) in {"RIGHT", "FULL"} for join in joins):
        return
    left = []
    for join in joins:
        kind, on = str(join.kind or "").upper(), join.args.get("on")
        shared = join.args.get("using")
        if on is None and shared and join is joins[0]:
            first, second = select.args["from_"].this.alias_or_name, join.this.alias_or_name
            on = exp.and_(
                *(
                    exp.EQ(
                        this=exp.column(one.copy(), first),
                        expression=exp.column(one.copy(), second),
                    )
                    for one in shared
                )
            )
        if kind not in {"SEMI", "ANTI"} or on is None or join.method:
            left.append(join)
            continue
        match: Any = exp.select(exp.Literal.number(1)).from_(join.this.copy()).where(on.copy())
        match = exp.Exists(this=match)
        select.where(match if kind == "SEMI" else exp.Not(this=match), copy=False)
    select.set("joins", left or None)


def _open_brackets(select: Any) -> None:
    """Leave out brackets around joins where they change nothing.

    Those around the first joins never do; others do not when all joins are inner ones.
    """
    start = select.args.get("from_")
    if start is None:
        return
    joins: list[Any] = []
    first, inner = _opened(start.this)
    if first is not start.this:
        start.set("this", first)
        joins += inner
    for join in select.args.get("joins") or []:
        table, inner = _opened(join.this)
        if table is join.this:
            joins.append(join)
            continue
        plain = not join.side and str(join.kind or "").upper() in {"", "INNER", "CROSS"}
        if inner and (
            not plain
            or join.args.get("using")
            or join.method
            or any(one.side or one.method or one.args.get("using") for one in inner)
        ):
            joins.append(join)
            continue
        if not inner:
            join.set("this", table)
            joins.append(join)
            continue
        condition = join.args.get("on")
        joins.append(exp.Join(this=table, kind="CROSS"))
        joins += inner
        if condition is not None:
            last = joins[-1]
            own = last.args.get("on")
            last.set("on", condition if own is None else exp.and_(own, condition))
            last.set("kind", None if str(last.kind).upper() == "CROSS" else last.args.get("kind"))
    select.set("joins", joins or None)


def _opened(source: Any) -> tuple[Any, list[Any]]:
    """Return the table and joins that stand in brackets; the source itself if there are none."""
    if not isinstance(source, exp.Subquery) or source.alias or source.args.get("joins"):
        return source, []
    inner = source.this
    if isinstance(inner, exp.Subquery):
        table, joins = _opened(inner)
        return (source, []) if table is inner else (table, joins)
    if not isinstance(inner, exp.Table):
        return source, []
    joins = inner.args.get("joins") or []
    table = inner.copy()
    table.set("joins", None)
    nested = exp.Select(**{"from_": exp.From(this=table), "joins": [j.copy() for j in joins]})
    _open_brackets(nested)
    return nested.args["from_"].this, nested.args.get("joins") or []


def _turn_right_join(select: Any) -> None:
    """a RIGHT JOIN b is b LEFT JOIN a, but for the order of columns in SELECT *."""
    joins = select.args.get("joins") or []
    if not joins or _side(joins[0]) != "RIGHT" or _selects_all(select):
        return
    start, first = select.args["from_"], joins[0]
    left, right = start.this, first.this
    start.set("this", right.copy())
    first.set("this", left.copy())
    first.set("side", "LEFT")


def _divide_full_join(select: Any) -> None:
    """a FULL JOIN b is a LEFT JOIN b, and the rows of b that have no match, with NULL for a.

    The two are one sub-select of the columns that the statement uses, so these must say which side
    they are of, but for those of USING. NULL of the right type comes from a join without a match.
    """
    joins = select.args.get("joins") or []
    if len(joins) != 1 or _side(joins[0]) != "FULL" or _selects_all(select):
        return
    (join,) = joins
    left, right = select.args["from_"].this, join.this
    one, other = left.alias_or_name, right.alias_or_name
    shared = [name.name for name in join.args.get("using") or []]
    condition = join.args.get("on")
    if shared:
        condition = exp.and_(
            *(exp.EQ(this=exp.column(k, one), expression=exp.column(k, other)) for k in shared)
        )
    others = [part for name, part in select.args.items() if name not in ("from_", "joins", "with_")]
    listed = [part for one_or_all in others for part in _parts(one_or_all)]
    columns = [node for part in listed for node in part.find_all(exp.Column)]
    known = {one.lower(), other.lower()}
    unclear = [
        node
        for node in [*columns, *(condition.find_all(exp.Column) if condition else [])]
        if node.table.lower() not in known and (node.table or node.name not in shared)
    ]
    nested = any(part.find(exp.Query) for part in [*listed, *([condition] if condition else [])])
    if condition is None or unclear or nested or join.method or one.lower() == other.lower():
        return
    # Names are kept as they are written: what a column is called is for the engine to say.
    used = list(dict.fromkeys((node.table.lower(), node.name) for node in columns))
    names = {found: f"full_column_{place}" for place, found in enumerate(used)}

    def chosen(merged: str) -> list[Any]:
        listed = [
            exp.alias_(exp.column(name, table or merged), names[table, name])
            for table, name in used
        ]
        return listed or [exp.alias_(exp.Literal.number(1), "full_row")]

    def joined(first: Any, second: Any, on: Any) -> Any:
        return exp.Join(this=second.copy(), side="LEFT", on=on), exp.From(this=first.copy())

    never = exp.and_(
        condition.copy(), exp.EQ(this=exp.Literal.number(1), expression=exp.Literal.number(0))
    )
    matched_join, matched_from = joined(left, right, condition.copy())
    matched = exp.Select(expressions=chosen(one), from_=matched_from, joins=[matched_join])
    again = left.copy()
    again.set("alias", exp.TableAlias(this=exp.to_identifier("full_match")))
    same = condition.copy()
    for node in same.find_all(exp.Column):
        if node.table.lower() == one.lower():
            node.set("table", exp.to_identifier("full_match"))
    match = exp.select(exp.Literal.number(1)).from_(again).where(same)
    lonely_join, lonely_from = joined(right, left, never)
    lonely = exp.Select(
        expressions=chosen(other),
        from_=lonely_from,
        joins=[lonely_join],
        where=exp.Where(this=exp.Not(this=exp.Exists(this=match))),
    )
    for place, expression in enumerate(select.expressions):
        if isinstance(expression, exp.Column):
            select.expressions[place].replace(exp.alias_(expression.copy(), expression.name))
    for part in [p for one_or_all in others for p in _parts(one_or_all)]:
        _rename(part, names)
    for expression in list(select.expressions):
        _rename(expression, names)
    union = exp.Union(this=matched, expression=lonely, distinct=False)
    alias = exp.TableAlias(this=exp.to_identifier("full_rows"))
    select.set("from_", exp.From(this=exp.Subquery(this=union, alias=alias)))
    select.set("joins", None)


def _rename(part: Any, names: dict[tuple[str, str], str]) -> None:
    """Let the columns of two joined sources be those of the sub-select that joins them."""
    for node in list(part.find_all(exp.Column)):
        name = names.get((node.table.lower(), node.name))
        if name is not None:
            node.set("this", exp.to_identifier(name))
            node.set("table", exp.to_identifier("full_rows"))


def _parts(clause: Any) -> list[Any]:
    listed = clause if isinstance(clause, list) else [clause]
    return [one for one in listed if isinstance(one, exp.Expression)]


def _side(join: Any) -> str:
    return str(join.side or "").upper()


def _selects_all(select: Any) -> bool:
    """Say whether all columns are selected, in an order that the joins decide."""
    return any(isinstance(one, exp.Star) or one.is_star for one in select.expressions)
