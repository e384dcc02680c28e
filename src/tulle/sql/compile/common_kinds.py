"""Values of several kinds brought to one, in the open, so that no engine converts by itself.

The kinds are those of the columns in the public schema, and constants are read here: what cannot
be brought together is refused whatever the records are.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

from tulle.core.errors import raise_alone
from tulle.sql.dialect import Dialect
from tulle.sql.expressions import kinds
from tulle.sql.expressions.conversions import (
    Impossible,
    Typed,
    as_type,
    convert,
    number,
    refused,
    text,
)
from tulle.sql.expressions.kinds import (
    ANY,
    BOOLEAN,
    DATE,
    DAYS,
    DECIMAL,
    DOUBLE,
    NULL,
    NUMBERS,
    OPAQUE,
    TEXT,
    UUID,
    WHOLE,
    Kind,
)


def converted(dialect: Dialect, given: Typed, kind: Kind, node: Any, to: Any = None) -> Typed:
    """Return a value of another kind, or refuse what does not convert."""
    if given.kind.name in {OPAQUE, kinds.BYTES} and kind.name != TEXT:
        raise refused(node, f"a {given.kind.name} ({given.kind.stored}) converts to text only")
    try:
        return convert(given, kind, dialect, to)
    except Impossible as error:
        raise_alone(refused(node, str(error)))


def alike(dialect: Dialect, given: Sequence[Typed], node: Any) -> tuple[list[Typed], Kind]:
    """Return expressions as values of one kind, which engines compare without converting."""
    made = list(given)
    known = [one for one in made if one.kind.name != NULL]
    names = {one.kind.name for one in known}
    if ANY in names and len(names) > 1:
        names.discard(ANY)
    constants = [one for one in known if is_text_constant(one.node)]
    if (
        TEXT in names
        and len(names) > 1
        and OPAQUE not in names
        and all(is_text_constant(one.node) for one in known if one.kind.name == TEXT)
    ):
        return alike(
            dialect,
            [_read(dialect, one, names, node) if one in constants else one for one in made],
            node,
        )
    kind = _shared(dialect, known, names, node)
    return [_brought(dialect, one, kind, node) for one in made], kind


def _brought(dialect: Dialect, given: Typed, kind: Kind, node: Any) -> Typed:
    if given.kind.name == NULL:
        return given
    if given.kind.name == kind.name or (given.kind.name, kind.name) == (WHOLE, DECIMAL):
        return given
    return converted(dialect, given, kind, node)


def _shared(dialect: Dialect, known: list[Typed], names: set[str], node: Any) -> Kind:
    shapes = [one.kind for one in known if one.kind.name in names]
    if not shapes:
        return Kind(NULL)
    if kinds.INTERVAL in names or (names == {OPAQUE} and len(known) > 1):
        raise refused(node, "values of these types are not compared; CAST them AS TEXT")
    if names == {ANY}:
        return Kind(TEXT) if len(known) > 1 else shapes[0]
    if OPAQUE in names and len(names) > 1:
        names = {TEXT if name == OPAQUE else name for name in names}
    if UUID in names and TEXT in names:
        names.discard(UUID)
    if len(names) == 1:
        (name,) = names
        return (
            widest(shapes, dialect.exact)
            if name in NUMBERS
            else Kind(name, joined=any(one.joined for one in shapes))
        )
    if BOOLEAN in names and names <= {BOOLEAN, *NUMBERS}:
        shapes = [Kind(WHOLE, 10) if one.name == BOOLEAN else one for one in shapes]
        names = {one.name for one in shapes}
        return widest(shapes, dialect.exact)
    if names <= NUMBERS:
        return widest(shapes, dialect.exact)
    if names <= {TEXT, *NUMBERS}:
        return Kind(DOUBLE)
    for target in (kinds.ZONED, kinds.TIMESTAMP, DATE):
        if target in names and names <= {TEXT, *DAYS}:
            return Kind(target)
    if TEXT in names and len(names) == 2:
        (other,) = names - {TEXT}
        return Kind(other)
    listed = " and ".join(sorted(names))
    raise refused(node, f"it puts {listed} side by side; CAST one of them")


def _read(dialect: Dialect, given: Typed, names: set[str], node: Any) -> Typed:
    """Return a text constant as the constant of the kind that it stands next to."""
    written = given.node.name.strip()
    others = names - {TEXT}
    try:
        if others <= NUMBERS:
            value = Decimal(written)
            if not value.is_finite() or len(value.as_tuple().digits) > 38:
                raise ValueError
            return literal(
                dialect,
                number(format(value, "f")) if abs(value.adjusted()) < 38 else number(written),
            )
        if others == {BOOLEAN} and written.lower() in {"true", "false"}:
            return Typed(exp.Boolean(this=written.lower() == "true"), Kind(BOOLEAN))
        if others == {UUID}:
            return converted(
                dialect, Typed(text(str(uuid.UUID(written))), Kind(TEXT)), Kind(UUID), node
            )
        if others <= DAYS:
            return moment(written, others)
    except (ValueError, InvalidOperation):
        pass
    if others <= {kinds.BYTES, kinds.TIME}:
        return converted(dialect, given, Kind(next(iter(others))), node)
    listed = " or ".join(sorted(others))
    raise refused(node, f"'{written}' is compared with a {listed} and cannot be read as one")


def moment(written: str, others: Collection[str]) -> Typed:
    """Return a day or time as a constant.

    Raises:
        ValueError: when it is not written as one.
    """
    if others == {DATE} and len(written) == 10:
        day = date.fromisoformat(written)
        return Typed(as_type(text(day.isoformat()), "DATE"), Kind(DATE))
    found = datetime.fromisoformat(written)
    zoned = found.tzinfo is not None or kinds.ZONED in others
    kind = "TIMESTAMPTZ" if zoned else "TIMESTAMPNTZ"
    constant = as_type(text(found.isoformat(sep=" ")), kind)
    return Typed(constant, Kind(kinds.ZONED if zoned else kinds.TIMESTAMP))


def literal(dialect: Dialect, node: Any) -> Typed:
    """Return a constant with its kind."""
    if isinstance(node, exp.Paren | exp.Neg):
        inner = literal(dialect, node.this)
        return replace(inner, node=type(node)(this=inner.node))
    if node.is_string:
        return Typed(node.copy(), Kind(TEXT))
    written = node.name
    if "e" in written.lower():
        value = float(written)
        if value in (float("inf"), 0.0) and any(
            c in "123456789" for c in written.lower().split("e")[0]
        ):
            raise refused(node, "it is beyond the range of doubles")
        return Typed(as_type(node.copy(), "DOUBLE"), Kind(DOUBLE))
    before, _, after = written.partition(".")
    before = before.lstrip("0")
    if len(before) + len(after) > 38:
        raise refused(node, "numbers have at most 38 digits; write 1e40 for a double")
    if "." not in written:
        return Typed(node.copy(), dialect.whole_constant(len(before)))
    return Typed(node.copy(), Kind(DECIMAL, len(before), len(after)))


def is_alike(one: Kind, other: Kind) -> bool:
    """Say whether values of two kinds are stored alike."""
    same_name = one.name == other.name
    return same_name and (
        one.name != DECIMAL or (one.digits, one.scale) == (other.digits, other.scale)
    )


def widest(shapes: Sequence[Kind], exact: bool) -> Kind:
    """Return a kind that holds numbers of all of these; doubles, where decimals would not fit."""
    if any(one.name == DOUBLE for one in shapes):
        return Kind(DOUBLE)
    name = DECIMAL if any(one.name == DECIMAL for one in shapes) else WHOLE
    if any(one.digits is None for one in shapes):
        return Kind(name) if exact else Kind(DOUBLE)
    digits = max(one.digits or 0 for one in shapes)
    scale = max(one.scale for one in shapes)
    stored = shapes[0].stored if len({one.stored for one in shapes}) == 1 else ""
    if exact:
        return Kind(name, digits, scale, stored)
    if name == WHOLE:
        mixed = digits > 19 and len({one.stored for one in shapes}) > 1
        return Kind(DOUBLE) if mixed else Kind(WHOLE, digits, 0, stored)
    return Kind(DOUBLE) if digits + scale > 38 else Kind(DECIMAL, digits, scale)


def is_text_constant(node: Any) -> bool:
    """Say whether an expression is a text written in the statement."""
    inner = node.unnest()
    return isinstance(inner, exp.Literal) and bool(inner.is_string)
