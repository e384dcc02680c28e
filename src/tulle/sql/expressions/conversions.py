"""Conversions between kinds that give a value or NULL, never an error, whatever the value.

DuckDB and Spark have TRY_CAST. PostgreSQL has not. There a number is moved to the nearest of two
bounds and is NULL if it has become one of them (each operand is written once, so that nested
conversions do not grow), and of a text only what a pattern lets through is converted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from tulle.core.errors import QueryError
from tulle.sql.expressions import kinds
from tulle.sql.expressions.kinds import Kind

WRITTEN = "written"
"""A note on an expression: what it was in the statement."""

ENGINES = {"duckdb": "DuckDB", "postgres": "PostgreSQL", "spark": "Spark"}


class Written:
    """An expression as it was; a note that is not copied with what it is on."""

    def __init__(self, node: Any) -> None:
        self.node = node

    def __deepcopy__(self, memo: Any) -> Written:
        return self


@dataclass(frozen=True)
class Typed:
    """An expression that gives a value or NULL for every row, with the kind of the value."""

    node: Any
    kind: Kind
    aggregate: bool = False


class Impossible(Exception):  # noqa: N818 - always turned into a QueryError that names the part
    """A conversion or form that an engine cannot be kept from failing on; says what would do."""


def shown(node: Any) -> str:
    """Return an expression as a user would write it, shortened."""
    # What was put together from columns under other names says what it was.
    written = node.meta.get(WRITTEN)
    plain = node.copy() if written is None else written.node.copy()
    for column in plain.find_all(exp.Column):
        column.set("table", None)
        column.this.set("quoted", False)
    text = str(plain.sql())
    return text if len(text) <= 60 else text[:57] + "..."


def refused(node: Any, reason: str) -> QueryError:
    """Return the error for a part of a statement that may fail on some rows."""
    return QueryError(f"{shown(node)} is not supported: {reason}.")


def call(name: str, *arguments: Any) -> Any:
    """Return the call of a function of an engine."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def number(value: int | str) -> Any:
    """Return a number as it is written in SQL."""
    literal = exp.Literal.number(str(value).lstrip("-"))
    return exp.Paren(this=exp.Neg(this=literal)) if str(value).startswith("-") else literal


def text(value: str) -> Any:
    """Return a text constant."""
    return exp.Literal.string(value)


def as_type(node: Any, written: str, dialect: str) -> Any:
    """Return a plain cast."""
    return exp.Cast(this=node, to=exp.DataType.build(written, dialect=dialect))


def within(node: Any, low: Any, high: Any) -> Any:
    """Return a value if it is strictly between two bounds, and NULL otherwise; NaN is above all."""
    lowest = call("GREATEST", node, low)
    moved = call("LEAST", lowest, high)
    return call("NULLIF", call("NULLIF", moved, low.copy()), high.copy())


def double_constant(value: str) -> Any:
    """Return a constant of double precision, as PostgreSQL writes it."""
    return as_type(text(value), "DOUBLE PRECISION", "postgres")


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

_SQL = {
    kinds.WHOLE: "BIGINT",
    kinds.DOUBLE: "DOUBLE",
    kinds.TEXT: "TEXT",
    kinds.BOOLEAN: "BOOLEAN",
    kinds.DATE: "DATE",
    kinds.TIME: "TIME",
    kinds.TIMESTAMP: "TIMESTAMPNTZ",
    kinds.ZONED: "TIMESTAMPTZ",
    kinds.UUID: "UUID",
}
_CALENDAR = {
    "postgres": ("0001-12-31 BC", "200000-01-01"),
    "spark": ("0000-12-31", "+10000-01-01"),
}
"""Between these PostgreSQL can add or take away four thousand years, and both can convert."""

POSTGRES_WIDTH = 1000
"""So many digits are far from the 131072 that end in an error, however numbers are combined."""


def type_of(kind: Kind) -> Any:
    """Return a type for values of a kind."""
    if kind.name == kinds.DECIMAL and kind.digits is not None:
        return exp.DataType.build(f"DECIMAL({kind.width}, {kind.scale})")
    if kind.name == kinds.DECIMAL:
        return exp.DataType.build("DECIMAL")
    return exp.DataType.build(_SQL[kind.name])


def convert(given: Typed, kind: Kind, dialect: str, to: Any = None) -> Typed:
    """Return an expression as a value of another kind, or NULL where it has none.

    Raises:
        Impossible: when the engine may fail on it.
    """
    if given.kind.name == kinds.INTERVAL or kind.name not in {*_SQL, kinds.DECIMAL}:
        raise Impossible("convert numbers, texts, booleans, dates and times only")
    target = to.copy() if to is not None else type_of(kind)
    if given.kind.name == kinds.NULL:
        return Typed(exp.Cast(this=given.node, to=target), kind)
    if not _is_meant(given.kind.name, kind.name):
        raise Impossible(
            f"no {given.kind.name} is a {kind.name}. Convert to text, between numbers, between "
            "dates and times, or from text"
        )
    return _BY_ENGINE[dialect](given, kind, target)


def _is_meant(given: str, kind: str) -> bool:
    """Say whether a conversion means anything; engines stop at some of the others."""
    clocks = {kinds.TIMESTAMP, kinds.ZONED}
    return (
        kind in {kinds.TEXT, given}
        or given in {kinds.TEXT, kinds.ANY}
        or {given, kind} <= {kinds.BOOLEAN, *kinds.NUMBERS}
        or {given, kind} <= kinds.DAYS
        or (given in clocks and kind == kinds.TIME)
    )


_HARMLESS = {
    (kinds.WHOLE, kinds.DOUBLE),
    (kinds.DECIMAL, kinds.DOUBLE),
    (kinds.BOOLEAN, kinds.WHOLE),
    (kinds.TEXT, kinds.TEXT),
    (kinds.DATE, kinds.DATE),
    (kinds.UUID, kinds.TEXT),
    (kinds.WHOLE, kinds.TEXT),
    (kinds.DECIMAL, kinds.TEXT),
    (kinds.DATE, kinds.TEXT),
    (kinds.BOOLEAN, kinds.TEXT),
    (kinds.DOUBLE, kinds.DOUBLE),
}
"""Conversions that neither DuckDB nor Spark fails on; so is a whole number to a wider one."""


def _harmless(given: Kind, kind: Kind) -> bool:
    wider = given.digits is not None and kind.digits is not None and given.digits <= kind.digits
    # Unsigned numbers of as many digits do not fit: only signed ones are taken for granted.
    signed = not given.stored.startswith("u")
    if given.name == kind.name == kinds.WHOLE:
        return wider and bool(given.stored) and signed
    if (given.name, kind.name) == (kinds.DOUBLE, kinds.DOUBLE):
        return given.stored in {"", "float", "double", "real"}
    return (given.name, kind.name) in _HARMLESS


def _tried(given: Typed, kind: Kind, target: Any) -> Typed:
    if _harmless(given.kind, kind) and target.this != exp.DataType.Type.FLOAT:
        return Typed(exp.Cast(this=given.node, to=target), kind)
    return Typed(exp.TryCast(this=given.node, to=target, safe=True), kind)


def _in_spark(given: Typed, kind: Kind, target: Any) -> Typed:
    if kind.name in {kinds.TIME, kinds.UUID}:
        raise Impossible("Spark has no such type")
    if given.kind.name in kinds.DAYS and kind.name in kinds.DAYS and given.kind.name != kind.name:
        given = replace(given, node=usual_days(given, "spark"))
    return _tried(given, kind, target)


def _in_postgres(given: Typed, kind: Kind, target: Any) -> Typed:
    step = _POSTGRES.get((given.kind.name, kind.name))
    if step is None and kind.name == kinds.TEXT:
        step = _plain
    if step is None:
        raise Impossible(
            f"PostgreSQL fails when a {given.kind.name} has no value as a {kind.name}, and whether "
            "it does would show. Convert to text, between numbers, or between dates and times"
        )
    return step(given, kind, target)


def _plain(given: Typed, kind: Kind, target: Any) -> Typed:
    return Typed(exp.Cast(this=given.node, to=target), kind)


def as_numeric(given: Typed) -> Typed:
    """Return a number as PostgreSQL's numeric, of bounded length; NULL if it is not finite."""
    kind = given.kind
    if kind.name == kinds.DOUBLE:
        limit = "1e60"
        node = within(given.node, double_constant("-" + limit), double_constant(limit))
        rounded = call("ROUND", as_type(node, "NUMERIC", "postgres"), number(60))
        return Typed(rounded, Kind(kinds.DECIMAL, 61, 60))
    if kind.digits is None:
        limit = "1" + 60 * "0"
        node = within(given.node, number("-" + limit), number(limit))
        return Typed(call("ROUND", node, number(60)), Kind(kinds.DECIMAL, 61, 60))
    if kind.name == kinds.WHOLE:
        return Typed(as_type(given.node, "NUMERIC", "postgres"), replace(kind, stored=""))
    return given


def _to_whole(given: Typed, kind: Kind, target: Any) -> Typed:
    assert kind.digits is not None
    if given.kind.name == kinds.WHOLE and given.kind.stored and given.kind.width <= kind.digits:
        return _plain(given, kind, target)
    bits = {3: 15, 5: 15, 10: 31}.get(kind.digits, 63)
    name = {15: "SMALLINT", 31: "INTEGER", 63: "BIGINT"}[bits]
    if given.kind.name == kinds.DOUBLE:
        # Rounded as a double first: halves go to the even number, as they do in DuckDB.
        given = replace(given, node=call("ROUND", as_type(given.node, "DOUBLE", "duckdb")))
    whole = call("ROUND", as_numeric(given).node)
    fitting = within(whole, number(str(-(2**bits) - 1)), number(2**bits))
    return Typed(as_type(fitting, name, "postgres"), Kind(kinds.WHOLE, kind.digits, 0, name))


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
    return Typed(as_type(node, "DOUBLE PRECISION", "postgres"), Kind(kinds.DOUBLE))


def _same_double(given: Typed, kind: Kind, target: Any) -> Typed:
    node = given.node
    if given.kind.stored not in {"", "double precision"}:
        node = as_type(node, "DOUBLE PRECISION", "postgres")
    return Typed(node, Kind(kinds.DOUBLE))


def _whole_to_boolean(given: Typed, kind: Kind, target: Any) -> Typed:
    return Typed(exp.Paren(this=exp.NEQ(this=given.node, expression=number(0))), kind)


def _boolean_to_whole(given: Typed, kind: Kind, target: Any) -> Typed:
    return Typed(as_type(given.node, "INTEGER", "postgres"), Kind(kinds.WHOLE, 10, 0, "integer"))


def _days(given: Typed, kind: Kind, target: Any) -> Typed:
    if given.kind.name == kind.name:
        return replace(given, kind=kind)
    return Typed(exp.Cast(this=usual_days(given, "postgres"), to=target), kind)


def usual_days(given: Typed, dialect: str) -> Any:
    """Return a date or timestamp if it is far from the ends of the calendar, and NULL if not."""
    kind = _SQL[given.kind.name]
    low, high = (as_type(text(day), kind, "duckdb") for day in _CALENDAR[dialect])
    return within(given.node, low, high)


def _matching(name: str) -> Callable[[Typed, Kind, Any], Typed]:
    def read(given: Typed, kind: Kind, target: Any) -> Typed:
        pattern = text(rf"^\s*({_PATTERNS[name]})\s*$")
        found = call("SUBSTRING", as_type(given.node, "TEXT", "postgres"), pattern)
        if name == kinds.DECIMAL:
            value = Typed(as_type(found, "NUMERIC", "postgres"), Kind(kinds.DECIMAL, 140, 140))
            return _POSTGRES[kinds.DECIMAL, kind.name](value, kind, target)
        return Typed(exp.Cast(this=found, to=target), kind)

    return read


_POSTGRES: dict[tuple[str, str], Callable[[Typed, Kind, Any], Typed]] = {
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

_BY_ENGINE: dict[str, Callable[[Typed, Kind, Any], Typed]] = {
    "duckdb": _tried,
    "spark": _in_spark,
    "postgres": _in_postgres,
}
