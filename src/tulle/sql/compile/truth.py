"""Exact answers, for the custodian: the statement as it was written, over rows that take part."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from tulle.sql.compile.derivations import alias, column, select, source_of
from tulle.sql.compile.names import Named
from tulle.sql.compile.owned_rows import Gone, identifier, owned_rows, values_of
from tulle.sql.compile.statements import total_statement
from tulle.sql.expressions.kinds import named_type
from tulle.sql.question.aggregate import Groups, find_aggregate, group_expressions, group_number
from tulle.sql.question.with_names import body_of
from tulle.sql.schema.catalogue import RESERVED
from tulle.sql.schema.schema import Schema

if TYPE_CHECKING:
    from tulle.relations.data import Relation
    from tulle.sql.engines.base import Engine


def true_answer(
    engine: Engine,
    tree: exp.Select,
    groups: Groups,
    schema: Schema,
    gone: Gone = None,
    functions: Collection[str] = (),
) -> int | float | npt.NDArray[Any]:
    """Return the exact answer: one number, or one for each group."""
    whole = true_statement(tree, groups, schema, gone)
    written = total_statement(whole, schema, functions=functions)
    statement = written.sql(dialect=schema.dialect)
    engine.check(statement)
    found = engine.fetch(statement).to_pydict()
    size = 1
    for _, values in groups:
        size *= len(values)
    answers = np.zeros(size)
    numbers = found.get("g", [0] * len(found["n"]))
    for number, value in zip(numbers, found["n"], strict=True):
        answers[int(number)] = 0 if value is None else float(value)
    counted = find_aggregate(tree).kind == "count"
    if groups:
        return answers.astype(np.int64) if counted else answers
    return int(answers[0]) if counted else float(answers[0])


def total_of(
    relations: Sequence[Relation], groups: Groups, *, whole: bool
) -> int | float | npt.NDArray[Any]:
    """Return the answer that relations add up to: one number, or one for each group."""
    answers = np.array([relation.total for relation in relations], dtype=np.float64)
    if groups:
        return np.rint(answers).astype(np.int64) if whole else answers
    return round(float(answers[0])) if whole else float(answers[0])


def true_statement(tree: exp.Select, groups: Groups, schema: Schema, gone: Gone = None) -> Any:
    """Return the statement with every table cut down to the rows that take part."""
    named = Named(tree, schema)
    whole = named.tree
    # First: a view must not be taken for the table of that name that a path to owners leads to.
    _name_views_apart(whole, schema.dialect)
    for table in list(whole.find_all(exp.Table)):
        if body_of(table, schema.dialect) is None:
            real = named.table(table)
            sources, conditions = owned_rows(schema, real, gone)
            columns = values_of(named.used(table.alias_or_name), named.ranges(real))
            table.replace(source_of(select(columns, sources, conditions), table.alias_or_name))
    aggregate = find_aggregate(whole)
    number, conditions = group_number(group_expressions(whole, groups), groups)
    whole.set("group", None)
    for condition in conditions:
        whole.where(condition, copy=False)
    if aggregate.distinct and len(aggregate.arguments) > 1:
        # Not every engine counts distinct pairs; all count the rows of a SELECT DISTINCT.
        there = [
            exp.Not(this=exp.Is(this=a.copy(), expression=exp.null())) for a in aggregate.arguments
        ]
        for condition in there:
            whole.where(condition, copy=False)
        wanted = [alias(a.copy(), f"v{i}") for i, a in enumerate(aggregate.arguments)]
        inner = whole.select(*wanted, *([alias(number, "g")] if groups else []), append=False)
        views = inner.args.pop("with_", None)
        name = f"{RESERVED}_pairs"
        outer = select([exp.Count(this=exp.Star())], [source_of(inner.distinct(), name)])
        outer.set("with_", views)
        whole, number = outer, column("g", name)
        total: Any = exp.Count(this=exp.Star())
    else:
        total = next(e.unalias() for e in whole.expressions if e.find(exp.AggFunc))
    chosen = [alias(exp.cast(total, named_type("DOUBLE")), "n")]
    if groups:
        chosen.append(alias(number, "g"))
        # Grouped by the number itself: by place, which all engines take.
        return whole.select(*chosen, append=False).group_by(exp.Literal.number(2))
    return whole.select(*chosen, append=False)


def participants(engine: Engine, schema: Schema, gone: Gone = None) -> list[tuple[str, Any]]:
    """Return everyone who owns a row, as kind and identifier, in order."""
    found: set[tuple[str, Any]] = set()
    for table in filter(schema.is_divided, schema.owners):
        sources, conditions = owned_rows(schema, table, gone)
        for tie in schema.ownership(table).ties:
            chosen = alias(identifier(schema, tie), "p")
            statement = select([chosen], sources, conditions, distinct=True)
            written = total_statement(statement, schema)
            rows = engine.fetch(written.sql(dialect=schema.dialect))
            found |= {(tie.entity, value) for value in rows.column("p").to_pylist()}
    return sorted(found)


def _name_views_apart(tree: Any, dialect: str) -> None:
    """Give every body of WITH a name of its own: some dialects move them all to the top."""
    references = [(table, body_of(table, dialect)) for table in tree.find_all(exp.Table)]
    for place, cte in enumerate(tree.find_all(exp.CTE)):
        cte.args["alias"].set("this", exp.to_identifier(f"{RESERVED}_view_{place}", quoted=True))
    for table, view in references:
        if view is not None:
            table.set("this", exp.to_identifier(view.alias, quoted=True))
