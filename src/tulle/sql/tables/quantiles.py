"""Quantiles, MIN, MAX and MEDIAN of an expression over rows that belong to one person each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.core.dataset import Facts
from tulle.core.errors import QueryError
from tulle.core.labels import Axis
from tulle.core.query import Shape
from tulle.core.validate import text as as_text
from tulle.sql.compile.value_rows import ValueRows, Values, gather_values, value_rows
from tulle.sql.question.aggregate import Groups, find_aggregate
from tulle.sql.question.parse import SqlQuestion
from tulle.sql.schema.ranges import ANY, Range
from tulle.sql.schema.schema import Schema

FINEST = 10**4
"""Quantiles are written with at most four decimals."""


@dataclass(frozen=True)
class SqlQuantile(SqlQuestion):
    """A quantile of the expression that a statement sums, for each group.

    ``at`` is between 0 (the least) and 1 (the greatest). A range must be declared for the columns
    in the expression, and every row must belong to one participant.
    """

    text: str
    """The statement, with SUM in the place of the quantile."""
    dialect: str
    groups: Groups
    functions: tuple[str, ...]
    at: Fraction
    bound: ValueRows | None = field(default=None, compare=False, repr=False)
    """The statement that a public schema lets be run; None before it is bound."""
    name: ClassVar[str] = "sql_quantile"
    shape: ClassVar[Shape] = "vector"
    integral: ClassVar[bool] = False

    @property
    def value(self) -> str:
        """The expression whose quantile is asked for, as text."""
        return str(find_aggregate(self.tree).arguments[0].sql(dialect=self.dialect))

    @property
    def range(self) -> Range:
        """Between which numbers the values lie, by the schema's declared ranges."""
        return ANY if self.bound is None else self.bound.range

    def rewrite(self, schema: Schema, gone: Any = None) -> ValueRows:
        """Return the statement that gives the values with their owners."""
        if self.bound is not None and self.bound.schema is schema and gone is None:
            return self.bound
        return value_rows(self.tree, self.groups, schema, gone, self.functions)

    def bind(self, public: Any, facts: Facts | None = None) -> SqlQuantile:
        """Return the question bound to a database, whose engine accepts its statement.

        Raises:
            QueryError: when rows belong to several people, or a range is not declared.
        """
        if public.kind != self.kind:
            return self
        bound = self.on_schema(public.schema)
        public.check(bound.rewrite(public.schema).text)
        return bound

    def bound_to(self, facts: Facts) -> SqlQuantile:
        """Return the question bound to a database's public facts alone."""
        return self.on_schema(Schema.from_json(facts))

    def on_schema(self, schema: Schema) -> SqlQuantile:
        """Return the question bound to a schema.

        Raises:
            QueryError: when rows belong to several people, or a range is not declared.
        """
        rows = self.rewrite(schema)
        if FINEST % self.at.denominator:
            raise QueryError(
                f"The quantile {float(self.at)} of {self.value} is too fine: write at most four "
                "decimals."
            )
        if not rows.single_owner:
            raise QueryError(
                f"A quantile, MEDIAN, MIN or MAX of {self.value} is not supported over rows that "
                "need several people, or that are there because of other rows (joins of several "
                "owners, DISTINCT, EXISTS, IN): how far one person moves ranks is then not "
                "bounded. Ask it of a table whose rows belong to one person each; over these rows "
                "COUNT, SUM, AVG and VAR_POP are supported."
            )
        found = rows.range
        if not (math.isfinite(found.low) and math.isfinite(found.high)):
            named = rows.undeclared or (f"table.column, for each column in {self.value}",)
            python = ", ".join(f"'{name}': (least, most)" for name in named)
            options = ", ".join(f"{name}=LEAST,MOST" for name in named)
            raise QueryError(
                f"A quantile, MEDIAN, MIN or MAX of {self.value} needs to know between which "
                f"numbers it lies, and no range of {' and '.join(named)} says so. Declare it with "
                f"ranges=, as {{{python}}} in Python and {options} on the command line; or buy "
                'bounds privately, for a part of epsilon, with ranges="private".'
            )
        return replace(self, bound=rows)

    def values(self, dataset: Any) -> Values:
        """Return the values with their owners, cut to the range. Custodian side."""
        rows = self.rewrite(dataset._schema, dataset._gone)
        dataset.check(rows.text)
        found = gather_values(dataset._engine.fetch(rows.text))
        return replace(found, values=np.clip(found.values, rows.range.low, rows.range.high))

    def truth(self, dataset: Any) -> Any:
        """Return the quantile of each group, between two rows by interpolation; NaN for none.

        Custodian side: these values are not private.
        """
        found = self.values(dataset)
        size = math.prod(len(values) for _, values in self.groups)
        answers = np.full(size, np.nan)
        for group in range(size):
            here = found.groups == group
            listed = np.repeat(found.values[here], found.copies[here])
            if len(listed):
                answers[group] = np.quantile(listed, float(self.at))
        return answers

    def canonical(self) -> dict[str, Any]:
        """Return a JSON-able form; equal questions have equal forms."""
        return self._form(self.text, at=as_text(self.at))

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        return tuple(Axis(name, list(values)) for name, values in self.groups)

    def __str__(self) -> str:
        return f"quantile {as_text(self.at)} of {self.text}"
