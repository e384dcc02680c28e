"""The rows of a table that take part: those that have owners, all of whom are still there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from tulle.core.errors import QueryError
from tulle.sql.compile.common_kinds import widest
from tulle.sql.compile.derivations import alias, column, owner_type
from tulle.sql.dialect import dialect_of
from tulle.sql.expressions.conversions import collation_name
from tulle.sql.expressions.kinds import (
    DECIMAL,
    DOUBLE,
    OPAQUE,
    WHOLE,
    ZONED,
    kind_of_column,
    named_type,
)
from tulle.sql.schema.ranges import Range
from tulle.sql.schema.schema import HERE, TEXT, Schema, Tie

Gone = tuple[str, Any] | None
"""A participant who has left: kind and identifier; None when nobody has."""

TAKING_PART = "taking_part"
"""Marks a table in FROM of which the rows that take part are chosen, with their owners."""


def owned_rows(schema: Schema, table: str, gone: Gone = None) -> tuple[list[Any], list[Any]]:
    """Return what to select from, and under which conditions, to get a table's rows.

    The table itself is called ``t``. A row is left out when an owner is NULL or a path to an
    owner leads nowhere: it would be protected for nobody. SQL's equality leaves out NULL too.
    """
    schema.check_table(table)
    ownership = schema.ownership(table)
    sources: list[Any] = [_called(schema, table, HERE)]
    conditions: list[Any] = []
    places = {HERE: table}
    for link in ownership.links:
        sources.append(_called(schema, link.table, link.name))
        start = places[link.start]
        for mine, theirs in zip(link.columns, link.key, strict=True):
            one, other = column(mine, link.start), column(theirs, link.name)
            if not _is_same(schema, (start, mine), (link.table, theirs)):
                # Written out they are equal or not, whatever a text holds.
                _check_text(schema, link.table, theirs)
                one, other = exp.cast(one, named_type("TEXT")), exp.cast(other, named_type("TEXT"))
            conditions.append(exp.EQ(this=one, expression=other))
        places[link.name] = link.table
    for tie in ownership.ties:
        conditions.extend(
            exp.Not(this=exp.Is(this=column(name, tie.place), expression=exp.null()))
            for name in tie.columns
        )
        if gone is not None and gone[0] == tie.entity:
            other = exp.convert(gone[1])
            conditions.append(exp.NEQ(this=identifier(schema, tie), expression=other))
        conditions.extend(_within_days(schema, tie))
    return sources, conditions


def _is_same(schema: Schema, one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Say whether two columns are of one kind, so that they are compared without converting.

    Numbers that only doubles hold are not: two keys could be one double, and one person's row would
    be another's too.
    """
    kinds = [
        kind_of_column(schema.tables[table][name], schema.dialect) for table, name in (one, other)
    ]
    if kinds[0].name != kinds[1].name:
        return False
    exact = kinds[0].name in {WHOLE, DECIMAL}
    return not exact or widest(kinds, dialect_of(schema.dialect).exact).name != DOUBLE


def _check_text(schema: Schema, table: str, name: str) -> None:
    """Refuse a key of which two values may be one text, to which a row could lead at once."""
    written = schema.tables[table][name]
    kind = kind_of_column(written, schema.dialect).name
    if kind == OPAQUE or (kind == ZONED and not dialect_of(schema.dialect).writes_offsets):
        raise QueryError(
            f"{table}.{name} has type {written}, of which two values may be written alike, and a "
            "path to owners compares it with a column of another type: a row could lead to two "
            "owners. Lead there from a column of the same type, or over another key."
        )


def values_of(names: Sequence[str], ranges: Mapping[str, Range]) -> list[Any]:
    """Return columns of a table under their own names, each cut to its range if it has one."""
    return [
        alias(ranges[name].cut(column(name, HERE)) if name in ranges else column(name, HERE), name)
        for name in names
    ]


def identifier(schema: Schema, tie: Tie) -> Any:
    """Return the expression for one owner, equal for equal owners of a kind and for no others."""
    kind = owner_type(schema, tie.entity)
    parts: list[Any] = [exp.cast(column(name, tie.place), kind) for name in tie.columns]
    binary = dialect_of(schema.dialect).owner_collation
    if schema.entity_class(tie.entity) == TEXT and binary is not None:
        # A column may be declared to take "Ann" for "ann"; they are two participants all the same.
        collation = collation_name(binary)
        parts = [exp.Collate(this=part, expression=collation.copy()) for part in parts]
    if not schema.has_composites(tie.entity):
        return parts[0]
    if schema.period is not None:
        parts.append(_period(schema, tie))
    # Lengths in front keep ("a", "bc") and ("ab", "c") apart, and both from a plain "1:a2:bc".
    pieces: list[Any] = []
    for part in parts:
        length = exp.cast(exp.Length(this=part.copy()), named_type("TEXT"))
        pieces += [length, exp.Literal.string(":"), part]
    joined = pieces[0]
    for piece in pieces[1:]:
        joined = exp.DPipe(this=joined, expression=piece, safe=True)
    return joined


def _within_days(schema: Schema, tie: Tie) -> list[Any]:
    """Return the conditions that a record is of the days that take part; no time is no day."""
    if schema.days is None:
        return []
    if tie.time is None:
        raise QueryError(f"A record of {tie.entity} has no time, so it is of no day.")
    place, name = tie.time
    day = exp.cast(column(name, place), named_type("DATE"))
    first, last = (exp.cast(exp.Literal.string(end), named_type("DATE")) for end in schema.days)
    return [exp.GTE(this=day, expression=first), exp.LTE(this=day.copy(), expression=last)]


def _period(schema: Schema, tie: Tie) -> Any:
    """Return the expression for the period of a record: a text, equal within a period alone.

    Every value has one, and from the year 2 to 9999 it is the same on every engine. What is NULL,
    and what has no day that the engine computes with, has a period of its own. Weeks begin on
    Monday, like the second week of the year 1 from which days are counted.
    """
    if tie.time is None:
        raise QueryError(f"A record of {tie.entity} has no time, so it has no {schema.period}.")
    place, name = tie.time
    day = exp.cast(column(name, place), named_type("DATE"))
    if schema.period in ("day", "week"):
        monday = exp.cast(exp.Literal.string("0001-01-08"), named_type("DATE"))
        number: Any = exp.Paren(this=exp.Sub(this=day, expression=monday))
        if schema.period == "week":
            past = exp.Mod(this=number.copy(), expression=exp.Literal.number(7))
            number = exp.Sub(this=number, expression=past)
        joined: Any = exp.cast(exp.paren(number, copy=False), named_type("TEXT"))
    else:
        fields = ("YEAR",) if schema.period == "year" else ("YEAR", "MONTH")
        parts = [exp.Extract(this=exp.Var(this=f), expression=day.copy()) for f in fields]
        texts = [exp.cast(exp.cast(part, "BIGINT"), named_type("TEXT")) for part in parts]
        joined = texts[0]
        for text in texts[1:]:
            joined = exp.DPipe(this=joined, expression=exp.Literal.string("-"), safe=True)
            joined = exp.DPipe(this=joined, expression=text, safe=True)
    return exp.Coalesce(this=joined, expressions=[exp.Literal.string("none")])


def _called(schema: Schema, table: str, name: str) -> Any:
    """Return a table by its full name: a short one means whatever is found first when it runs."""
    place = [exp.to_identifier(part, quoted=True) for part in schema.places.get(table, ())]
    called = exp.Table(
        this=exp.to_identifier(table, quoted=True),
        db=place[-1] if place else None,
        catalog=place[0] if len(place) > 1 else None,
        alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)),
    )
    called.meta[TAKING_PART] = True
    return called
