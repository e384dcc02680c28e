"""Conversions between kinds that give a value or NULL, never an error, whatever the value.

Which conversions mean something is said here; how an engine does one, in the engine's folder. Some
have TRY_CAST (:func:`tried`). Elsewhere a number is moved to the nearest of two bounds and is NULL
if it has become one of them (:func:`within`; each operand is written once, so that nested
conversions do not grow).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from tulle.core.errors import QueryError
from tulle.sql.dialect import Dialect
from tulle.sql.expressions import kinds
from tulle.sql.expressions.kinds import Kind, named_type

WRITTEN = "written"
"""A note on an expression: what it was in the statement."""


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


def as_type(node: Any, written: str) -> Any:
    """Return a plain cast."""
    return exp.Cast(this=node, to=named_type(written))


def within(node: Any, low: Any, high: Any) -> Any:
    """Return a value if it is strictly between two bounds, and NULL otherwise; NaN is above all."""
    lowest = call("GREATEST", node, low)
    moved = call("LEAST", lowest, high)
    return call("NULLIF", call("NULLIF", moved, low.copy()), high.copy())


def double_constant(value: str) -> Any:
    """Return a constant of double precision, also one that is infinite or no number."""
    return as_type(text(value), "DOUBLE")


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


def type_of(kind: Kind) -> Any:
    """Return a type for values of a kind."""
    if kind.name == kinds.DECIMAL and kind.digits is not None:
        return named_type(f"DECIMAL({kind.width}, {kind.scale})")
    return named_type("DECIMAL" if kind.name == kinds.DECIMAL else _SQL[kind.name])


def convert(given: Typed, kind: Kind, dialect: Dialect, to: Any = None) -> Typed:
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
    return dialect.convert(given, kind, target)


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
"""Conversions that no engine with TRY_CAST fails on; so is a whole number to a wider one."""


def _harmless(given: Kind, kind: Kind) -> bool:
    wider = given.digits is not None and kind.digits is not None and given.digits <= kind.digits
    # Unsigned numbers of as many digits do not fit: only signed ones are taken for granted.
    signed = not given.stored.startswith("u")
    if given.name == kind.name == kinds.WHOLE:
        return wider and bool(given.stored) and signed
    if (given.name, kind.name) == (kinds.DOUBLE, kinds.DOUBLE):
        return given.stored in {"", "float", "double", "real"}
    return (given.name, kind.name) in _HARMLESS


def tried(given: Typed, kind: Kind, target: Any) -> Typed:
    """Return a conversion by TRY_CAST, or by CAST where nothing can fail."""
    if _harmless(given.kind, kind) and target.this != exp.DataType.Type.FLOAT:
        return Typed(exp.Cast(this=given.node, to=target), kind)
    return Typed(exp.TryCast(this=given.node, to=target, safe=True), kind)


def usual_days(given: Typed, ends: tuple[str, str]) -> Any:
    """Return a date or timestamp if it lies between two far ends, and NULL otherwise."""
    kind = _SQL[given.kind.name]
    low, high = (as_type(text(day), kind) for day in ends)
    return within(given.node, low, high)


def without_sign(node: Any) -> Any:
    """Return a double in which zero, which has two signs, has one."""
    return exp.Paren(this=exp.Add(this=node, expression=as_type(number("0e0"), "DOUBLE")))


def collation_name(written: str) -> Any:
    """Return the name of a collation that is written as in SQL, such as ``"C"``.

    Example:
        >>> collation_name('"C"').sql(), collation_name("BINARY").sql()
        ('"C"', 'BINARY')
    """
    return exp.to_identifier(written.strip('"'), quoted=written.startswith('"'))


def collated(given: Typed, collation: str) -> Typed:
    """Return a text that is compared in a collation, which is written as in SQL."""
    made = exp.Collate(this=exp.paren(given.node), expression=collation_name(collation))
    # In brackets: BETWEEN has none of it without, and other operators bind more tightly.
    return Typed(exp.Paren(this=made), Kind(kinds.TEXT, joined=given.kind.joined), given.aggregate)
