"""The values of an expression over the rows of a question, each with its owner."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from math import isfinite, prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from tulle.sql.compile.derivations import Slot, alias, column, select, source_of
from tulle.sql.compile.names import Named
from tulle.sql.compile.owned_rows import Gone
from tulle.sql.compile.select_rewriter import Rewriter
from tulle.sql.compile.single_owner import needs_one
from tulle.sql.compile.statements import Compiler, Scope
from tulle.sql.expressions.kinds import BOOLEAN, DATE, WHOLE, named_type
from tulle.sql.question.aggregate import (
    Groups,
    Number,
    find_aggregate,
    group_expressions,
    group_number,
)
from tulle.sql.schema.catalogue import RESERVED
from tulle.sql.schema.ranges import UNITS, Range, moment_of
from tulle.sql.schema.schema import Schema

if TYPE_CHECKING:
    import pyarrow

GROUP = f"{RESERVED}_group"
VALUE = f"{RESERVED}_weight"
COPIES = f"{RESERVED}_copies"
LOAD = f"{RESERVED}_load"


@dataclass(frozen=True)
class ValueRows:
    """A statement that gives group, value, how many rows the owner has, and the number of copies.

    Equal rows of people with equally many rows are one: whose they are is not fetched.
    """

    text: str
    slots: tuple[Slot, ...]
    groups: int
    range: Range
    """Between which numbers the declared ranges say that values lie."""
    whole: bool
    """Whether values are whole numbers, by their type."""
    single_owner: bool
    """Whether each row needs one participant alone, but where a key on a path is not unique."""
    once: bool
    """Whether a primary key says that nobody has more than one row."""
    undeclared: tuple[str, ...]
    """Columns in the expression that have no range with two ends."""
    kind: str
    """Of dates and timestamps, which they are: their values are days or seconds since 1970."""
    schema: Schema = field(compare=False, repr=False)
    """What it was written for."""


@dataclass(frozen=True)
class Values:
    """Values as arrays: in which group, how many rows their owner has in all, how often.

    A row of nobody, from public tables, has a load of 0.
    """

    groups: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    loads: npt.NDArray[np.int64]
    copies: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    """Numbers of rows that people have, in rising order."""
    people: npt.NDArray[np.int64]
    """How many people have each of them."""

    @classmethod
    def of(cls, groups: Any, values: Any, loads: Any, copies: Any) -> Values:
        """Return the rows that are numbers; those that are not count as rows of their owner."""
        sizes, inverse = np.unique(loads, return_inverse=True)
        rows = np.zeros(len(sizes), dtype=np.int64)
        np.add.at(rows, inverse, copies)
        owned = sizes > 0
        # Whoever has so many rows is in so many of them.
        people = rows[owned] // sizes[owned]
        # NaN is no number; whether a row has one shows in that row alone.
        kept = ~np.isnan(values)
        return cls(groups[kept], values[kept], loads[kept], copies[kept], sizes[owned], people)

    def times(self, number: float) -> Values:
        """Return made-up rows of which each stands for so many; of real data, as they are."""
        return self if number == 1 else replace(self, copies=self.copies * max(round(number), 1))

    def ordered(self, order: npt.NDArray[np.int64]) -> Values:
        """Return the same rows in another order."""
        return replace(
            self,
            groups=self.groups[order],
            values=self.values[order],
            loads=self.loads[order],
            copies=self.copies[order],
        )


def value_rows(
    tree: exp.Select,
    groups: Groups,
    schema: Schema,
    gone: Gone = None,
    functions: Collection[str] = (),
    number: Number = group_number,
) -> ValueRows:
    """Rewrite a checked statement that sums an expression so that it lists the expression's values.

    ``number`` gives, from the columns of GROUP BY, what tells groups apart: their numbers.

    Raises:
        QueryError: when the statement does not fit the schema.
    """
    named = Named(tree, schema)
    rewriter = Rewriter(schema, named, gone)
    (argument,) = find_aggregate(named.tree).arguments
    numbered, conditions = number(group_expressions(named.tree, groups), groups)
    wanted = [*([(numbered, GROUP)] if groups else []), (argument, VALUE)]
    there = exp.Not(this=exp.Is(this=exp.paren(argument.copy()), expression=exp.null()))
    block = rewriter.block(named.tree, rewriter.views(named.tree, {}))
    form = rewriter.project(block, wanted, distinct=False, conditions=[*conditions, there])
    single_owner = form.keys is None and (
        len(form.slots) == 1
        or (bool(form.slots) and (form.single_owner or needs_one(named, schema)))
    )
    query = _merged(rewriter.namer, form, grouped=bool(groups))
    kind = Compiler(schema, functions).query(form.query.copy(), Scope({}))[VALUE].name
    if kind in UNITS:
        days = value_rows(_counted(tree, kind), groups, schema, gone, functions, number)
        return replace(days, undeclared=tuple(_undeclared(argument, named)), kind=kind)
    Compiler(schema, functions, VALUE).query(query, Scope({}))
    return ValueRows(
        str(query.sql(dialect=schema.dialect, pretty=True, copy=False)),
        form.slots,
        prod(len(values) for _, values in groups),
        form.range(VALUE),
        kind in (WHOLE, BOOLEAN),
        single_owner,
        form.once,
        tuple(_undeclared(argument, named)),
        "",
        schema,
    )


def _counted(tree: exp.Select, kind: str) -> exp.Select:
    """Return a statement that sums dates or timestamps, as one that sums days or seconds."""
    made = tree.copy()
    (inner,) = find_aggregate(made).arguments
    first = exp.cast(
        exp.Literal.string(str(moment_of(0, kind))),
        named_type("DATE" if kind == DATE else "TIMESTAMP"),
    )
    counted = exp.DateDiff(
        this=inner.copy(),
        expression=first,
        unit=exp.Var(this=UNITS[kind].upper()),
        date_part_boundary=True,
    )
    inner.replace(counted)
    return made


def _merged(namer: Any, form: Any, *, grouped: bool) -> Any:
    """Return the statement that counts equal values of people with equally many rows.

    Rows in which two owners meet, where a key is not unique, are left out whole.
    """
    inner, outer = namer.fresh(), namer.fresh()
    keys = [GROUP] if grouped else []
    owners = [column(slot.name, inner) for slot in form.slots]
    conditions: list[Any] = []
    load: Any = exp.Literal.number(0)
    if owners:
        owner = owners[0]
        if len(owners) > 1:
            owner = exp.Coalesce(this=owners[0], expressions=[one.copy() for one in owners[1:]])
            conditions = [
                exp.or_(
                    exp.Is(this=one.copy(), expression=exp.null()),
                    exp.EQ(this=one.copy(), expression=owner.copy()),
                )
                for one in owners
            ]
        nobody = exp.Is(this=owner.copy(), expression=exp.null())
        rows = exp.Window(
            this=exp.Count(this=exp.Star(), big_int=True), partition_by=[owner.copy()]
        )
        load = exp.Case(ifs=[exp.If(this=nobody, true=exp.Literal.number(0))], default=rows)
    listed = [*(column(key, inner) for key in keys), column(VALUE, inner), alias(load, LOAD)]
    marked = select(listed, [source_of(form.query, inner)], conditions)
    by = [column(name, outer) for name in (*keys, VALUE, LOAD)]
    chosen = [
        *(column(key, outer) for key in keys),
        alias(exp.cast(column(VALUE, outer), named_type("DOUBLE")), VALUE),
        alias(exp.cast(column(LOAD, outer), named_type("DOUBLE")), LOAD),
        alias(exp.cast(exp.Count(this=exp.Star(), big_int=True), named_type("DOUBLE")), COPIES),
    ]
    return select(chosen, [source_of(marked, outer)], group=by)


def _undeclared(argument: Any, named: Named) -> Iterator[str]:
    """Yield the columns of an expression whose values may be of any size, as table.column."""
    tables = {source.alias_or_name: source for source in named.tree.find_all(exp.Table)}
    views = {cte.alias for cte in named.tree.find_all(exp.CTE)}
    for found in argument.find_all(exp.Column):
        source = tables.get(found.table)
        if source is None or source.name in views:
            continue
        table = named.table(source)
        known = named.ranges(table).get(found.name)
        if known is None or not (isfinite(known.low) and isfinite(known.high)):
            yield f"{table}.{found.name}"


def gather_values(table: pyarrow.Table) -> Values:
    """Return what an engine's rows say."""
    size = table.num_rows
    groups = (
        _floats(table, GROUP).astype(np.int64)
        if GROUP in table.column_names
        else np.zeros(size, dtype=np.int64)
    )
    loads, copies = (_floats(table, name).astype(np.int64) for name in (LOAD, COPIES))
    return Values.of(groups, _floats(table, VALUE), loads, copies)


def _floats(table: pyarrow.Table, name: str) -> npt.NDArray[np.float64]:
    return np.asarray(table.column(name).to_numpy(), dtype=np.float64)
