"""What is assumed about a database where nothing public says it: how many people and rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from tulle.core import validate
from tulle.core.errors import InputError
from tulle.sql.dialect import DEFAULT
from tulle.sql.schema.catalogue import spelled
from tulle.sql.schema.declarations import flat, read_values
from tulle.sql.schema.schema import Schema

PEOPLE = 1_000
"""How many participants of each kind there are, where nobody says."""

ROWS = 4
"""In how many rows of a table a participant is, where neither the user nor a key says."""

_MOST = 10**9


@dataclass(frozen=True)
class Formula:
    """What a column is by others of its row: SQL of DuckDB, and the columns in it."""

    text: str
    columns: tuple[str, ...]

    @classmethod
    def read(cls, text: str, what: str, columns: Mapping[str, str]) -> Formula:
        """Check a formula against the columns of its table.

        Raises:
            InputError: when it is not one expression, or names another column.
        """
        import sqlglot
        from sqlglot import exp

        try:
            (tree,) = sqlglot.parse(f"SELECT {text}", read=DEFAULT)
        except (sqlglot.errors.SqlglotError, ValueError):
            tree = None
        plain = isinstance(tree, exp.Select) and {k for k, v in tree.args.items() if v}
        if tree is None or plain != {"expressions"} or len(tree.expressions) != 1:
            raise InputError(f"{what}: {text!r} is not one expression in SQL.")
        names = {one.name: spelled(one.name, columns) for one in tree.find_all(exp.Column)}
        for name, known in names.items():
            if known is None:
                raise InputError(
                    f"{what}: there is no column {name!r} beside it. Columns: {', '.join(columns)}."
                )
        return cls(text, tuple(name for name in names.values() if name is not None))


@dataclass(frozen=True)
class Assumption:
    """How large a made-up database is, and what the columns of its tables hold."""

    people: tuple[tuple[str, int], ...]
    """For each kind of participants, how many there are."""
    rows: tuple[tuple[str, tuple[float, float | None]], ...] = ()
    """For some tables the number of rows of one participant: the mean and, if said, the most."""
    usual: tuple[float, float | None] = (ROWS, None)
    """The same for all other tables."""
    values: tuple[tuple[str, Any], ...] = ()
    """For some columns, as "table.column": a number of different values, a list of them, the ends
    between which they lie, another column and how far from that they lie, or a formula."""
    stated: bool = False
    """Whether the user said any of it."""

    @classmethod
    def read(
        cls, schema: Schema, people: Any = None, rows_per_person: Any = None, values: Any = None
    ) -> Assumption:
        """Check what the user says against the public schema.

        Raises:
            InputError: naming what does not fit and what would.
        """
        kinds = schema.entities()
        counts = dict.fromkeys(kinds, PEOPLE)
        if isinstance(people, Mapping):
            for name, number in people.items():
                kind = spelled(name, kinds)
                if kind is None:
                    raise InputError(
                        f"people: there is no kind of participant {name!r}. Kinds: "
                        f"{', '.join(kinds)}."
                    )
                counts[kind] = _whole(number, f"people[{name!r}]")
        elif people is not None:
            counts = dict.fromkeys(kinds, _whole(people, "people"))
        usual: tuple[float, float | None] = (ROWS, None)
        rows = {}
        if isinstance(rows_per_person, Mapping):
            for name, number in rows_per_person.items():
                table = spelled(name, schema.owners)
                if table is None:
                    raise InputError(
                        f"rows_per_person: {name!r} is not a table with owners. Such tables: "
                        f"{', '.join(schema.owners)}."
                    )
                rows[table] = _rate(number, f"rows_per_person[{name!r}]")
        elif rows_per_person is not None:
            usual = _rate(rows_per_person, "rows_per_person")
        given = {} if values is None else _values(values, schema)
        stated = any(one is not None for one in (people, rows_per_person, values))
        return cls(tuple(counts.items()), tuple(rows.items()), usual, tuple(given.items()), stated)

    def words(self, tables: Mapping[str, float]) -> str:
        """Return the assumption in one line; ``tables`` are those made up, with rows a person."""
        kinds = [
            f"{count:,} {'people' if kind == 'participant' else kind + 's'}"
            for kind, count in self.people
        ]
        rows = ", ".join(f"{_figure(rate)} in {table}" for table, rate in tables.items())
        each = f", rows of each: {rows}" if rows else ""
        more = "" if self.stated else "; say people= and rows_per_person=, or pass like="
        return f"a made-up database of {' and '.join(kinds)}{each}{more}"


def _figure(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 or rate == round(rate) else f"{rate:.2g}"


def _whole(number: Any, what: str) -> int:
    if isinstance(number, str):
        number = number.replace("_", "").replace(",", "")
        number = int(number) if number.strip().isdecimal() else number
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= _MOST:
        raise InputError(f"{what} must be a whole number from 1 to {_MOST:,}; got {number!r}.")
    return number


def _rate(given: Any, what: str) -> tuple[float, float | None]:
    """Read a mean, or a mean and the most of anybody."""
    parts = read_values(given, what) if isinstance(given, str) else given
    if not isinstance(parts, list | tuple):
        parts = (parts,)
    fits = 1 <= len(parts) <= 2 and all(
        isinstance(one, int | float) and not isinstance(one, bool) and 0 < one <= _MOST
        for one in parts
    )
    if not fits or list(parts) != sorted(parts):
        raise InputError(
            f"{what} must be a number above 0, such as 4, or the mean and the most of anybody, "
            f"such as (4, 300); got {given!r}."
        )
    return float(parts[0]), float(parts[1]) if len(parts) == 2 else None


def _values(given: Any, schema: Schema) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError('values must map "table.column" to what the column holds.')
    found = {}
    for name, held in flat(given).items():
        if isinstance(held, tuple) and len(held) == 3:
            held = (_column(held[0], schema), *held[1:])
        place, what = _column(name, schema), f"values[{name!r}]"
        if isinstance(held, str) and held.lstrip().startswith("="):
            columns = schema.tables[place.rpartition(".")[0]]
            found[place] = Formula.read(held.lstrip()[1:], what, columns)
        else:
            found[place] = _held(held, what)
    return found


def _column(name: Any, schema: Schema) -> str:
    table, _, column = str(name).rpartition(".")
    known = spelled(table, schema.tables)
    real = None if known is None else spelled(column, schema.tables[known])
    if known is None or real is None:
        raise InputError(
            f"values: there is no column {name!r}. Write TABLE.COLUMN; tables: "
            f"{', '.join(schema.tables)}."
        )
    return f"{known}.{real}"


def _held(held: Any, what: str) -> Any:
    if isinstance(held, str):
        listed = read_values(held, what)
        held = listed[0] if len(listed) == 1 and isinstance(listed[0], int) else listed
    if isinstance(held, int) and not isinstance(held, bool):
        return validate.whole(at_least=1, **{"values": held})
    if isinstance(held, tuple) and len(held) == 2:
        ends = tuple(_end(one, what) for one in held)
        if type(ends[0]) is type(ends[1]) and ends[0] <= ends[1]:
            return ends
    if isinstance(held, tuple) and len(held) == 3:
        first, last = (_end(one, what) for one in held[1:])
        if isinstance(first, float) and isinstance(last, float) and first <= last:
            return held[0], first, last
    if isinstance(held, list | range) and len(held):
        plain = str, int, float, Decimal, date
        if all(one is None or isinstance(one, plain) for one in held):
            return list(held)
    raise InputError(
        f"{what} must be a number of different values, a list of them, a pair (low, high), "
        "another column and how far from it they lie, (column, least, most), or a formula of "
        f"other columns of the row, such as '= price * 2'; got {held!r}."
    )


def _end(given: Any, what: str) -> Any:
    if isinstance(given, date):
        return given
    if isinstance(given, str):
        try:
            return date.fromisoformat(given)
        except ValueError:
            pass
    elif isinstance(given, int | float) and math.isfinite(given):
        return float(given)
    raise InputError(f"{what}: ends are numbers or dates; got {given!r}.")
