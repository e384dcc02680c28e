"""Aggregates of expressions without declared ranges: their bounds are bought first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from sqlglot import exp

from tulle.core.dataset import Facts
from tulle.core.errors import QueryError
from tulle.core.query import Query
from tulle.sql.compile.value_rows import ValueRows, Values, gather_values, value_rows
from tulle.sql.keys.question import DiscoveredTable
from tulle.sql.question.aggregate import Groups
from tulle.sql.question.parse import not_too_deep, parse_statement
from tulle.sql.schema.ranges import Range
from tulle.sql.schema.schema import Schema
from tulle.sql.tables.purchases import needs_range
from tulle.sql.tables.question import SqlTable
from tulle.sql.tables.select_list import SelectList, TableQuestion, shown
from tulle.sql.tables.value_cells import Missing, cut_to

PRIVATE = "private"
"""What ``ranges=`` of a question is, where bounds are to be bought."""


@dataclass(frozen=True)
class Unranged:
    """What a public schema says: which bounds are bought, and that the rest can be answered."""

    missing: tuple[tuple[Missing, ValueRows], ...]
    blank: SqlTable | DiscoveredTable
    """The question within the widest bounds that can be drawn, bound to the schema."""
    schema: Schema = field(compare=False, repr=False)

    @property
    def ends(self) -> int:
        """How many ends are bought."""
        return sum(len(one.ends) for one, _ in self.missing)


@dataclass(frozen=True)
class UnrangedTable(TableQuestion):
    """A table whose aggregates need ranges that nobody declared. Build with :func:`sql`.

    Bounds of what is summed, averaged or ranked are drawn privately; then the statement is
    answered with values beyond them moved to the nearer one.
    """

    inner: SqlTable | DiscoveredTable
    bound: Unranged | None = field(default=None, compare=False, repr=False)
    """What the public schema says; None before the question is bound."""

    @property
    def text(self) -> str:
        """The statement."""
        return self.inner.text

    @property
    def dialect(self) -> str:
        """The SQL that it is written in."""
        return self.inner.dialect

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that it may use."""
        return self.inner.functions

    @property
    def tree(self) -> Any:
        """The parsed statement; it is not to be changed."""
        return self.inner.tree

    @property
    def _bound_as(self) -> Unranged | None:
        """What the public schema says; None before the question is bound."""
        return self.bound

    @property
    def groups(self) -> Groups:
        """The public lists of its groups."""
        return getattr(self.inner, "groups", ())

    @cached_property
    def chosen(self) -> SelectList:
        """The statement taken apart."""
        return self.inner.chosen

    def in_words(self) -> str:
        """Return the question, and that ranges are bought."""
        return f"{self.inner.in_words()} Ranges are found privately."

    def counted(self) -> Query:
        """Return the question how many rows there are, for showing whose they are."""
        return self.inner.counted()

    def _bind(self, public: Any) -> Self:
        found = self._missing(public.schema)
        for _, rows in found:
            public.check(rows.text)
        return self._bound(found, public.schema, lambda query: query.bind(public))

    def bound_to(self, facts: Facts) -> Self:
        """Return the question bound to a database's public facts alone.

        Raises:
            QueryError: when it does not fit them.
        """
        schema = Schema.from_json(facts)
        return self._bound(self._missing(schema), schema, lambda query: query.bound_to(facts))

    def _bound(self, found: Any, schema: Schema, bind: Any) -> Self:
        widest = {one.name: one.widest for one, _ in found}
        blank = bind(self.within(widest, [one for one, _ in found]))
        return replace(self, bound=Unranged(found, blank, schema))

    def within(self, ranges: Mapping[str, Range], missing: Any) -> SqlTable | DiscoveredTable:
        """Return the question with values held within some ranges."""
        cuts = tuple(
            (one.value, cut_to(one.value, ranges[one.name], self.dialect, whole=one.whole))
            for one in missing
        )
        return replace(self.inner, cuts=cuts)

    def _missing(self, schema: Schema) -> tuple[tuple[Missing, ValueRows], ...]:
        """Return what has no range with two ends, and the statement that gives its values."""
        values = {
            call.arguments[0]: None for call in self.chosen.calls().values() if needs_range(call)
        }
        found = []
        for value in values:
            rows = self.rows_of(value, schema)
            missing = Missing(value, shown(value, self.dialect), rows.whole, rows.range)
            if not missing.ends:
                continue
            if rows.kind:
                raise QueryError(
                    f'ranges="{PRIVATE}" cannot buy bounds of {missing.name}: it is a {rows.kind}, '
                    "and bounds are powers of two. Declare ranges= of the columns "
                    "(--ranges TABLE.COLUMN=FIRST,LAST), such as 2020-01-01, 2029-12-31."
                )
            if rows.slots and not rows.single_owner:
                raise QueryError(
                    f'ranges="{PRIVATE}" cannot buy bounds of {missing.name} here: the rows need '
                    "several people, or are there because of other rows (joins of several owners, "
                    "DISTINCT, EXISTS, IN), so how far one person moves the values of others is "
                    "not bounded. Declare ranges= of the columns (--ranges TABLE.COLUMN=LOW,HIGH), "
                    "or ask about a table whose rows belong to one person each."
                )
            found.append((missing, rows))
        names = [one.name for one, _ in found]
        if len(set(names)) < len(names):
            # Long expressions are shown cut off.
            found = [
                (replace(one, name=one.value.sql(dialect=self.dialect)), rows)
                for one, rows in found
            ]
        if not found:
            raise QueryError(
                f'ranges="{PRIVATE}" has nothing to buy: the statement aggregates nothing whose '
                "range is not declared or known. Leave it out."
            )
        return tuple(found)

    def rows_of(self, value: Any, schema: Schema, gone: Any = None) -> ValueRows:
        """Return the statement that gives the values of an expression with their owners.

        Of keys that are still to be found, those of all rows.
        """
        tree = self.chosen.rows.copy()
        groups: Groups = ()
        if isinstance(self.inner, SqlTable):
            groups = self.inner.groups
        else:
            tree.set("group", None)
            tree.set("expressions", [])
        tree.append("expressions", exp.Sum(this=value.copy()))
        with not_too_deep():
            read = parse_statement(tree.sql(dialect=self.dialect), self.dialect)
            return value_rows(read, groups, schema, gone, self.inner.functions)

    def values(self, missing: Missing, dataset: Any) -> Values:
        """Return the values of an expression with their owners. Custodian side."""
        rows = self.rows_of(missing.value, dataset._schema, dataset._gone)
        dataset.check(rows.text)
        return gather_values(dataset._engine.fetch(rows.text))

    def rewrite(self, schema: Schema) -> ValueRows:
        """Return the statements that list the values of which bounds are bought: ``text``."""
        found = [rows for _, rows in self._missing(schema)]
        return replace(found[0], text=";\n\n".join(rows.text for rows in found))

    def truth(self, dataset: Any) -> Any:
        """Return the exact table, values within the widest bounds there are. Custodian side."""
        bound = self.bind(dataset).bound
        assert bound is not None
        return bound.blank.truth(dataset)

    def canonical(self) -> dict[str, Any]:
        """Return a form that is equal for equivalent spellings of the same columns."""
        blank = self.inner if self.bound is None else self.bound.blank
        return {**blank.canonical(), "ranges": PRIVATE}

    def __str__(self) -> str:
        return f"{str(self.inner)[:-1]}, ranges={PRIVATE!r})"
