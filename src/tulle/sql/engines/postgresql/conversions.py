"""Conversions in PostgreSQL, which has no TRY_CAST.

A number is moved to the nearest of two bounds and is NULL if it has become one of them, and of a
text only what a pattern lets through is converted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from tulle.sql.expressions import kinds
from tulle.sql.expressions.conversions import (
    Impossible,
    Typed,
    as_type,
    call,
    collated,
    double_constant,
    number,
    text,
    usual_days,
    within,
)
from tulle.sql.expressions.kinds import Kind

WIDTH = 1000
"""So many digits are far from the 131072 that end in an error, however numbers are combined."""

USUAL = '"default"'
"""The collation of the database, in which every text is read: functions of texts fail on a row
where the collations of two columns meet, or where one takes different texts for equal."""

_CALENDAR = ("0001-12-31 BC", "200000-01-01")
"""Between these PostgreSQL can add or take away four thousand years, and can convert."""

_DATE = (
    r"(?!0000)(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
    r"|(?:\d{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?"
_PATTERNS = {
    kinds.DECIMAL: r"[+-]?\d{1,40}(?:\.\d{0,40})?(?:[eE][+-]?\d{1,2})?",
    kinds.DATE: _DATE,
    kinds.TIMESTAMP: rf"{_DATE}(?:[ T]{_CLOCK})?",
    kinds.TIME: _CLOCK,
    kinds.UUID: r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
}
"""Texts that PostgreSQL converts without fail; tests try every day of four centuries."""


def converted(given: Typed, kind: Kind, target: Any) -> Typed:
    """Return a value of another kind; see :meth:`tulle.sql.dialect.Dialect.convert`."""
    step = _STEPS.get((given.kind.name, kind.name))
    if step is None and kind.name == kinds.TEXT:
        made = (_written_out if given.kind.own else _plain)(given, kind, target)
        # The text of an array, for one, has the collation of its column.
        return collated(made, USUAL) if given.kind.name == kinds.OPAQUE else made
    if step is None:
        raise Impossible(
            f"PostgreSQL fails when a {given.kind.name} has no value as a {kind.name}, and whether "
            "it does would show. Convert to text, between numbers, or between dates and times"
        )
    return step(given, kind, target)


def _plain(given: Typed, kind: Kind, target: Any) -> Typed:
    return Typed(exp.Cast(this=given.node, to=target), kind)


def _written_out(given: Typed, kind: Kind, target: Any) -> Typed:
    """Return the text of a value of a type of the database's own, whatever casts that has."""
    there = exp.EQ(this=call("num_nulls", given.node), expression=number(0))
    shown = call("format", text("%s"), given.node.copy())
    return Typed(exp.Case(ifs=[exp.If(this=there, true=shown)]), kind)


def as_numeric(given: Typed) -> Typed:
    """Return a number as numeric, of bounded length; NULL if it is not finite."""
    kind = given.kind
    if kind.name == kinds.DOUBLE:
        limit = "1e60"
        node = within(given.node, double_constant("-" + limit), double_constant(limit))
        rounded = call("ROUND", as_type(node, "NUMERIC"), number(60))
        return Typed(rounded, Kind(kinds.DECIMAL, 61, 60))
    if kind.digits is None:
        limit = "1" + 60 * "0"
        node = within(given.node, number("-" + limit), number(limit))
        return Typed(call("ROUND", node, number(60)), Kind(kinds.DECIMAL, 61, 60))
    if kind.name == kinds.WHOLE:
        return Typed(as_type(given.node, "NUMERIC"), replace(kind, stored=""))
    return given


def _to_whole(given: Typed, kind: Kind, target: Any) -> Typed:
    assert kind.digits is not None
    if given.kind.name == kinds.WHOLE and given.kind.stored and given.kind.width <= kind.digits:
        return _plain(given, kind, target)
    bits = {3: 15, 5: 15, 10: 31}.get(kind.digits, 63)
    name = {15: "SMALLINT", 31: "INTEGER", 63: "BIGINT"}[bits]
    if given.kind.name == kinds.DOUBLE:
        # Rounded as a double first: halves go to the even number, as they do in DuckDB.
        given = replace(given, node=call("ROUND", as_type(given.node, "DOUBLE")))
    whole = call("ROUND", as_numeric(given).node)
    fitting = within(whole, number(str(-(2**bits) - 1)), number(2**bits))
    return Typed(as_type(fitting, name), Kind(kinds.WHOLE, kind.digits, 0, name))


def _to_decimal(given: Typed, kind: Kind, target: Any) -> Typed:
    held = as_numeric(given)
    if kind.digits is None:
        return Typed(held.node, replace(held.kind, name=kinds.DECIMAL))
    rounded = call("ROUND", held.node, number(kind.scale))
    limit = "1" + kind.digits * "0"
    return Typed(within(rounded, number("-" + limit), number(limit)), kind)


def _to_double(given: Typed, kind: Kind, target: Any) -> Typed:
    held = given
    if given.kind.name == kinds.DECIMAL or not given.kind.stored:
        held = as_numeric(given)
    node = held.node
    if held.kind.digits is not None and held.kind.digits > 300:
        limit = "1" + 300 * "0"
        node = within(node, number("-" + limit), number(limit))
    if held.kind.scale > 300:
        # Smaller numbers are nothing: an underflow is an error, too.
        node = call("ROUND", node, number(300))
    return Typed(as_type(node, "DOUBLE PRECISION"), Kind(kinds.DOUBLE))


def _same_double(given: Typed, kind: Kind, target: Any) -> Typed:
    node = given.node
    if given.kind.stored not in {"", "double precision"}:
        node = as_type(node, "DOUBLE PRECISION")
    return Typed(node, Kind(kinds.DOUBLE))


def _whole_to_boolean(given: Typed, kind: Kind, target: Any) -> Typed:
    return Typed(exp.Paren(this=exp.NEQ(this=given.node, expression=number(0))), kind)


def _boolean_to_whole(given: Typed, kind: Kind, target: Any) -> Typed:
    return Typed(as_type(given.node, "INTEGER"), Kind(kinds.WHOLE, 10, 0, "integer"))


def _days(given: Typed, kind: Kind, target: Any) -> Typed:
    if given.kind.name == kind.name:
        return replace(given, kind=kind)
    return Typed(exp.Cast(this=near(given), to=target), kind)


def near(given: Typed) -> Any:
    """Return a date or timestamp if it is far from the ends of the calendar, and NULL if not."""
    return usual_days(given, _CALENDAR)


def _matching(name: str) -> Callable[[Typed, Kind, Any], Typed]:
    def read(given: Typed, kind: Kind, target: Any) -> Typed:
        pattern = text(rf"^\s*({_PATTERNS[name]})\s*$")
        # In a language's collation \d may be a digit of any script, which no number is read from.
        written = collated(replace(given, node=as_type(given.node, "TEXT")), '"C"').node
        found = call("SUBSTRING", written, pattern)
        if name == kinds.DECIMAL:
            value = Typed(as_type(found, "NUMERIC"), Kind(kinds.DECIMAL, 140, 140))
            return _STEPS[kinds.DECIMAL, kind.name](value, kind, target)
        return Typed(exp.Cast(this=found, to=target), kind)

    return read


_STEPS: dict[tuple[str, str], Callable[[Typed, Kind, Any], Typed]] = {
    **{(one, kinds.WHOLE): _to_whole for one in kinds.NUMBERS},
    **{(one, kinds.DECIMAL): _to_decimal for one in kinds.NUMBERS},
    **{(one, kinds.DOUBLE): _to_double for one in (kinds.WHOLE, kinds.DECIMAL)},
    **{(one, other): _days for one in kinds.DAYS for other in kinds.DAYS},
    **{(kinds.TEXT, one): _matching(kinds.DECIMAL) for one in kinds.NUMBERS},
    **{(kinds.TEXT, one): _matching(one) for one in _PATTERNS if one != kinds.DECIMAL},
    (kinds.TEXT, kinds.ZONED): _matching(kinds.TIMESTAMP),
    (kinds.DOUBLE, kinds.DOUBLE): _same_double,
    (kinds.WHOLE, kinds.BOOLEAN): _whole_to_boolean,
    (kinds.BOOLEAN, kinds.WHOLE): _boolean_to_whole,
    (kinds.BOOLEAN, kinds.BOOLEAN): _plain,
    (kinds.TIME, kinds.TIME): _plain,
    (kinds.UUID, kinds.UUID): _plain,
    (kinds.TIMESTAMP, kinds.TIME): _plain,
}
