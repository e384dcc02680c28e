"""A count or sum in SQL over time: what each person adds to each step and group, by the engine.

The question is asked with one more column of GROUP BY, the step in which a row's time lies, whose
values are public: the calendar is declared. So it goes the way of every question with public groups
(:mod:`tulle.sql`): it is checked, compiled to SQL that cannot fail, and each row comes with its
owner. What everyone adds to a step and a group is summed up by the engine, put on a lattice here
and cut to the bound (:mod:`tulle.streams.clipping`).

Sensitivity:
    A row must be about one person alone (one owned table, tables joined over the keys that lead to
    one owner, and public ones). A unit is what the engine says the owner of a row is: a person, or
    under a unit with a period a person and the day, week, month or year of the row's own time. In
    the second case a unit's rows lie in the steps that this period has days in, whatever the
    records are: ``periods`` is the most that a period can have, one where steps and periods are
    alike. Under ``participant`` it is declared, and people count in the first so many steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core import validate
from tulle.core.errors import InputError, QueryError
from tulle.core.labels import Axis
from tulle.core.period import Calendar, Day
from tulle.core.query import Composite, Query
from tulle.core.validate import Number, counted
from tulle.sql.data import Database
from tulle.sql.queries import (
    GroupedSqlCount,
    GroupedSqlSum,
    SqlQuery,
    SqlSum,
    one_aggregate,
    owned_rows_of,
)
from tulle.sql.schema.schema import HERE
from tulle.streams.clipping import LARGEST_BOUND, LARGEST_SUM, clipped_totals
from tulle.streams.declaration import Declaration, check_steps

MOST_STEPS = 2048
"""Steps are listed in the statement that the engine runs."""

MOST_TOTALS = 2**20
"""Steps times groups."""

STEP = "stream_step"
"""The column of GROUP BY that is added."""


@dataclass(frozen=True)
class Asked:
    """A question of a database, divided into steps. Custodian side."""

    database: Database
    question: SqlQuery
    declaration: Declaration
    time: str

    @classmethod
    def of(
        cls,
        database: Database,
        question: Query,
        *,
        every: str,
        first: Day,
        steps: int,
        bound: Number,
        time: str | None = None,
    ) -> Asked:
        """Check a question against the public schema, and divide it into steps.

        Raises:
            QueryError: when it cannot be summed up over time; nothing depends on records.
        """
        if isinstance(question, Composite):
            question = question.single() or question
        if not isinstance(question, SqlQuery):
            raise QueryError(
                "A stream sums up one COUNT or SUM, alone or for public groups: "
                "tulle.sql('SELECT COUNT(*) FROM ...'). Tables of several aggregates, and keys "
                "that nobody listed, are not supported."
            )
        calendar = Calendar.of(every)
        start = calendar.number(calendar.day(first))
        count = check_steps(calendar, start, steps, MOST_STEPS)
        size = math.prod(len(values) for _, values in question.groups)
        if count * size > MOST_TOTALS:
            raise InputError(
                f"A stream of a database has at most {MOST_TOTALS:,} totals in all; got "
                f"{counted(count, 'step')} of {counted(size, 'group')}."
            )
        lattice, most = _lattice(question, bound)
        column, asked = _check(question, database, time)
        axes = tuple(Axis(name, tuple(values)) for name, values in question.groups)
        declared = Declaration(calendar, start, count, most, lattice, axes, asked)
        made = cls(database, question, declared, column)
        made.divided(1).bind(database)
        return made

    @classmethod
    def again(cls, database: Database, declared: Declaration) -> Asked:
        """Return the question that a ledger says was summed up, asked of this database."""
        asked = declared.asked
        assert asked is not None
        groups = {axis.name: list(axis.labels or ()) for axis in declared.axes}
        question = one_aggregate(
            str(asked["text"]),
            groups=groups or None,
            dialect=str(asked["dialect"]),
            functions=[str(name) for name in asked["functions"]],
        )
        column, present = _check(question, database, str(asked["time"]))
        return cls(database, question, replace(declared, asked=present), column)

    def divided(self, until: int) -> SqlQuery:
        """Return the question with the first steps as one more column of groups."""
        return _divided(self.question, self.time, self.declaration, until)

    def totals(self, until: int, periods: int) -> npt.NDArray[np.int64]:
        """Return the sum of every step before ``until`` and group, of units cut to the bound."""
        declared = self.declaration
        question = self.divided(until).bind(self.database)
        signed = isinstance(question, SqlSum) and not question.positive
        owned = owned_rows_of(self.database, question, signed=signed)
        sums = np.rint(owned.amounts / float(declared.scale))
        return clipped_totals(
            owned.people.astype(np.int64),
            owned.places.astype(np.int64) // declared.size,
            owned.places.astype(np.int64) % declared.size,
            np.clip(sums, -LARGEST_SUM, LARGEST_SUM).astype(np.int64),
            shape=(until, declared.size),
            bound=declared.bound,
            periods=periods,
        )


def _lattice(question: SqlQuery, bound: Number) -> tuple[Fraction, int]:
    """Return what a step of the lattice is worth, and the bound in such steps.

    A count is whole. Sums, and counts for groups among which somebody's share of the bound is
    divided, are on a lattice of a power of two, about a millionth of the bound.
    """
    most = validate.positive(bound=bound)
    if not isinstance(question, SqlSum):
        if most.denominator != 1 or most > LARGEST_BOUND:
            raise InputError(
                f"bound must be a whole number of rows, at most {LARGEST_BOUND:,}; got {bound}."
            )
        if not question.groups:
            return Fraction(1), int(most)
    if not Fraction(1, 2**60) <= most <= 2**60:
        raise InputError(f"bound must be between 2^-60 and 2^60; got {bound}.")
    exponent = math.frexp(float(most))[1] - LARGEST_BOUND.bit_length() + 1
    worth = Fraction(2) ** exponent
    return worth, min(int(most / worth), LARGEST_BOUND)


def _check(question: SqlQuery, database: Database, time: str | None) -> tuple[str, dict[str, Any]]:
    """Return the time of a question's rows, and what is noted about how it was asked.

    Raises:
        QueryError: when its rows are not about one person each, or have no time.
    """
    bare = question.bind(database)
    assert bare.bound is not None
    if not bare.single_owner or bare.bound.keyed or _is_nested(bare):
        raise QueryError(
            f"A stream sums up rows that are about one person each; {question} joins rows of "
            "several, or has DISTINCT, a sub-select or a view. Ask it of one owned table, "
            "joined with others over the keys that lead to the same owner, or with public ones."
        )
    column, said = _time_of(bare, database, time)
    facts = database.schema.to_json()
    return column, {
        # As it was written: whatever a parser makes of it may change with the parser.
        "text": question.text,
        "dialect": question.dialect,
        "functions": list(question.functions),
        "time": said,
        "declared": {
            name: facts[name] for name in ("owners", "times", "ranges", "period") if name in facts
        },
    }


def _is_nested(question: SqlQuery) -> bool:
    """Say whether a question has more than one SELECT: then the time of its rows is not plain."""
    from sqlglot import exp

    assert question.bound is not None
    return len(list(question.bound.named.resolved.find_all(exp.Query))) > 1


def _time_of(question: SqlQuery, database: Database, time: str | None) -> tuple[str, str]:
    """Return the source and column that say in which step a row is, and how a user names them.

    Under a unit with a period it is the time that says of which period a row's owner is. So all of
    a unit's rows are in the steps of that period.
    """
    from sqlglot import exp

    assert question.bound is not None
    named, schema = question.bound.named, database.schema
    found: dict[str, str] = {}
    for source in named.resolved.find_all(exp.Table):
        table = named.table(source)
        own = schema.times.get(table)
        if own is None:
            continue
        ties = schema.ownership(table).ties
        if schema.period is None or any(tie.time == (HERE, own) for tie in ties):
            place = f"{source.alias_or_name}.{named.normal(own)}"
            # Sources without a name of their own are numbered; they are named like the table.
            found[place] = f"{table}.{own}" if place.startswith("_") else place
    if not found:
        raise QueryError(
            "Nothing says in which step a row is: no table of the question has a time. Say which "
            "column is the time when connecting: times={'trips': 'started_on'}."
        )
    if time is None:
        if len(found) > 1 and schema.period is None:
            listed = ", ".join(found.values())
            raise QueryError(f"Say which time decides the step: time= one of {listed}.")
        return next(iter(found.items()))
    meant = time.lower()
    wanted = [(one, full) for one, full in found.items() if meant == full.lower()]
    if len(wanted) != 1:
        raise QueryError(
            f"time={time!r} is not the time of one table. Times here: {', '.join(found.values())}."
        )
    return wanted[0]


def _divided(question: SqlQuery, time: str, declared: Declaration, until: int) -> SqlQuery:
    """Return a question with a group for each of the first steps, before its own groups."""
    from sqlglot import exp

    if any(name.lower() == STEP for name, _ in question.groups):
        raise QueryError(f"The name {STEP} is used for the steps; give the column another one.")
    source, _, name = time.partition(".")
    column = exp.column(
        exp.to_identifier(name, quoted=True), exp.to_identifier(source, quoted=True)
    )
    day: Any = exp.cast(column, "DATE")
    every = declared.calendar.every
    step = day
    if every != "day":
        unit = exp.Literal.string(every.upper())
        step = exp.DateTrunc(this=day, unit=unit)  # type: ignore[no-untyped-call]
    tree = question.tree.copy()
    tree.select(exp.alias_(step, STEP), copy=False)
    tree.group_by(step.copy(), copy=False)
    days = tuple(declared.calendar.first_day(declared.first + n) for n in range(until))
    kind = GroupedSqlSum if isinstance(question, SqlSum) else GroupedSqlCount
    assert question.statement is not None
    return kind(
        question.text,
        question.dialect,
        ((STEP, days), *question.groups),
        question.functions,
        replace(question.statement, tree=tree),
    )
