"""The values of an expression over the rows of a question, each with its owner."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
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
from tulle.sql.expressions.kinds import WHOLE
from tulle.sql.question.aggregate import (
    Groups,
    Number,
    find_aggregate,
    group_expressions,
    group_number,
)
from tulle.sql.schema.catalogue import RESERVED
from tulle.sql.schema.ranges import Range
from tulle.sql.schema.schema import Schema

if TYPE_CHECKING:
    import pyarrow

GROUP = f"{RESERVED}_group"
VALUE = f"{RESERVED}_weight"
COPIES = f"{RESERVED}_copies"
OWNER = f"{RESERVED}_owner"

NOBODY = -1


@dataclass(frozen=True)
class ValueRows:
    """A statement that gives owner, group, value and number of copies; and what is public."""

    text: str
    slots: tuple[Slot, ...]
    groups: int
    range: Range
    """Between which numbers the declared ranges say that values lie."""
    whole: bool
    """Whether values are whole numbers, by their type."""
    alone: bool
    """Whether each row needs one participant alone, but where a key on a path is not unique."""
    undeclared: tuple[str, ...]
    """Columns in the expression that have no range with two ends."""
    schema: Schema = field(compare=False, repr=False)
    """What it was written for."""


@dataclass(frozen=True)
class Values:
    """Values as arrays: whose (``NOBODY`` for public rows), in which group, how often."""

    people: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    copies: npt.NDArray[np.int64]


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
    alone = form.keys is None and (
        len(form.slots) == 1 or (bool(form.slots) and (form.alone or needs_one(named, schema)))
    )
    name = rewriter.namer.fresh()
    slots = tuple(Slot(slot.entity, f"{OWNER}_{i}") for i, slot in enumerate(form.slots))
    by = [
        *([column(GROUP, name)] if groups else []),
        column(VALUE, name),
        *(column(slot.name, name) for slot in form.slots),
    ]
    chosen = [
        *([column(GROUP, name)] if groups else []),
        alias(exp.cast(column(VALUE, name), "DOUBLE"), VALUE),
        alias(exp.cast(exp.Count(this=exp.Star(), big_int=True), "DOUBLE"), COPIES),
        *(
            alias(column(inner.name, name), outer.name)
            for inner, outer in zip(form.slots, slots, strict=True)
        ),
    ]
    query = select(chosen, [source_of(form.query, name)], group=by)
    compiler = Compiler(schema, functions, VALUE)
    inner = form.query.copy()
    kind = compiler.query(inner, Scope({}))[VALUE]
    Compiler(schema, functions, VALUE).query(query, Scope({}))
    return ValueRows(
        str(query.sql(dialect=schema.dialect, pretty=True)),
        slots,
        prod(len(values) for _, values in groups),
        form.range(VALUE),
        kind.name == WHOLE,
        alone,
        tuple(_undeclared(argument, named)),
        schema,
    )


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


def gather_values(rows: ValueRows, table: pyarrow.Table) -> Values:
    """Return what an engine's rows say; rows of two owners are left out, as they are cut whole."""
    import pyarrow as pa
    import pyarrow.compute as pc

    size = table.num_rows
    people = np.full(size, NOBODY, dtype=np.int64)
    kept = np.full(size, True)
    if rows.slots and size:
        columns = [table.column(slot.name).combine_chunks() for slot in rows.slots]
        listed = pa.concat_arrays(
            [one.chunk(0) if isinstance(one, pa.ChunkedArray) else one for one in columns]
        )
        codes = pc.fill_null(pc.dictionary_encode(listed).indices, NOBODY)
        owners = codes.to_numpy(zero_copy_only=False).astype(np.int64).reshape(len(columns), size)
        people = owners.max(axis=0)
        kept = ((owners == people) | (owners == NOBODY)).all(axis=0)
    values = _floats(table, VALUE)
    # NaN is no number; whether a row has one shows in that row alone.
    kept &= ~np.isnan(values)
    groups = (
        _floats(table, GROUP).astype(np.int64)
        if GROUP in table.column_names
        else np.zeros(size, dtype=np.int64)
    )
    copies = _floats(table, COPIES).astype(np.int64)
    return Values(people[kept], groups[kept], values[kept], copies[kept])


def _floats(table: pyarrow.Table, name: str) -> npt.NDArray[np.float64]:
    return np.asarray(table.column(name).to_numpy(), dtype=np.float64)
