"""A SELECT with GROUP BY and no public list: its keys are found by partition selection."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from sqlglot import exp

from tulle.core import registry, validate
from tulle.core.dataset import Facts
from tulle.core.errors import InputError, QueryError
from tulle.core.query import Query
from tulle.core.table import LabelledTable
from tulle.noise.keys_per_person import TUNING
from tulle.noise.partition_selection import selection_options
from tulle.sql.keys.statements import (
    KeyRows,
    blank_groups,
    key_rows,
    keys_of_one_table,
)
from tulle.sql.question.aggregate import find_aggregate
from tulle.sql.question.check import check_group, refuse
from tulle.sql.question.parse import Statement, not_too_deep
from tulle.sql.schema.schema import HERE, Schema
from tulle.sql.tables.purchases import Cuts
from tulle.sql.tables.question import SqlTable
from tulle.sql.tables.select_list import SelectList, TableQuestion, key_names

USUAL_KEYS = 4
"""How many keys one person counts for, where neither the user nor the schema says so."""

WEIGHTED_KEYS = 64
"""The same where nobody asks how many people have a key, so that they may be weighted.

Few have more keys than that in networks and check-ins; twice as many cost a fiftieth of the
threshold at epsilon 1 (computed from the rule).
"""

MOST_KEYS = 10**6

PRIVATE = "private"
"""In place of a number of keys per person: it is chosen privately."""

COUNTED, OF_TABLE, PUBLIC = "rows", "table", "public table"
"""Where keys are found: in the rows of the statement, in one table of it, in a public table."""


@dataclass(frozen=True)
class KeyOptions:
    """What the user says about keys that are to be found."""

    keys_per_person: int | str | None = None
    """A number, or "private": it is chosen with a part of the budget."""
    minimum: int = 1
    other: str | None = None
    top: int | None = None

    @classmethod
    def read(cls, keys_per_person: Any, minimum: Any, other: Any, top: Any) -> KeyOptions:
        """Check the options.

        Raises:
            InputError: naming the one that does not fit.
        """
        if keys_per_person not in (None, PRIVATE):
            if isinstance(keys_per_person, str):
                raise InputError(
                    f"keys_per_person must be a whole number or {PRIVATE!r}; "
                    f"got {keys_per_person!r}."
                )
            keys_per_person = validate.whole(keys_per_person=keys_per_person, at_least=1)
            if keys_per_person > MOST_KEYS:
                raise InputError(f"keys_per_person must be at most {MOST_KEYS:,}.")
        given, rest, best = selection_options(minimum, other, top)
        return cls(keys_per_person, given, rest, best)

    def given(self) -> dict[str, Any]:
        """Return those that differ from their defaults."""
        blank = KeyOptions()
        return {name: value for name, value in vars(self).items() if value != getattr(blank, name)}


@dataclass(frozen=True)
class Discovery:
    """Where keys are found, and what is asked about them, by a public schema."""

    rows: KeyRows
    where: str
    table: str
    """The one table that keys are found in; empty where it is all rows of the statement."""
    statement: str
    dialect: str
    blank: SqlTable
    """The question with unknown keys, bound to the schema: what is bought for each key."""
    shared: tuple[str, ...]
    """Of what is bought, the numbers of people that are known from finding the keys."""
    keys_per_person: int
    chosen: bool
    """Whether it is the most of those from which it is chosen privately."""
    numbers: bool
    """Whether somebody asks how many people have a key: without, they may be weighted."""
    schema: Schema = field(compare=False, repr=False)

    def rewritten(
        self, schema: Schema, gone: Any, names: tuple[str, ...], functions: Any
    ) -> KeyRows:
        """Return the rows in another database, such as one that somebody has left."""
        if schema is self.schema and gone is None:
            return self.rows
        return key_rows(self.statement, self.dialect, names, schema, gone, functions)


@dataclass(frozen=True)
class DiscoveredTable(TableQuestion):
    """Aggregates by keys that nobody listed. Build with :func:`sql`.

    The keys are found privately by the people who have them (partition selection); then what the
    statement selects is bought for these keys as if the list were public.
    """

    text: str
    dialect: str
    functions: tuple[str, ...]
    options: KeyOptions
    bound: Discovery | None = field(default=None, compare=False, repr=False)
    """What the public schema says; None before the question is bound."""
    cuts: Cuts = field(default=(), repr=False, kw_only=True)
    """Expressions that are held within bounds that were bought, and how that is written."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of GROUP BY."""
        return key_names(self.tree)

    @cached_property
    def blank(self) -> SqlTable:
        """The question as if its keys were known."""
        return SqlTable(
            self.text,
            self.dialect,
            blank_groups(self.names),
            self.functions,
            cuts=self.cuts,
            statement=Statement(self.tree, self.line),
        )

    @property
    def chosen(self) -> SelectList:
        """The statement taken apart."""
        return self.blank.chosen

    def in_words(self) -> str:
        """Return the names of the columns, and that keys are found."""
        keys = ", ".join(self.names)
        return f"A table of {self.listed} by {keys}, for keys that are found privately."

    @property
    def _bound_as(self) -> Discovery | None:
        """What the public schema says; None before the question is bound."""
        return self.bound

    def check(self) -> None:
        """Refuse whatever can be refused without a schema.

        Raises:
            QueryError: naming the part that is not supported.
        """
        group = self.tree.args["group"]
        check_group(group)
        if not group.expressions:
            refuse("GROUP BY without columns", "list the columns, or leave it out")
        self.blank.check()
        if self.options.other is None:
            return
        chosen = self.chosen
        if any(_mentions_key(part, chosen) for part in chosen.expressions()):
            raise QueryError(
                "other= is not supported together with ORDER BY, HAVING or arithmetic that uses a "
                "key: the row of the rest has none. Leave other= out, or sort the released table."
            )
        if any(call.distinct or call.kind == "quantile" for call in chosen.calls().values()):
            raise QueryError(
                "other= is not supported together with DISTINCT aggregates and quantiles: what "
                "several keys share would count more than once. Leave other= out, or ask for "
                "COUNT, SUM, AVG or VAR_POP."
            )

    def counted(self) -> Query:
        """Return the question how many rows there are, for showing whose they are."""
        return self.blank.counted()

    def _bind(self, public: Any) -> Self:
        bound = self._bound(public.schema, self.blank.bind(public))
        assert bound.bound is not None
        rows = bound.bound.rows
        salt = "0" * 32
        public.check(rows.listed(salt) if bound.bound.where == PUBLIC else rows.counted(salt, 1))
        if bound.bound.chosen:
            public.check(rows.having(salt, 1))
        return bound

    def bound_to(self, facts: Facts) -> Self:
        """Return the question bound to a database's public facts alone.

        Raises:
            QueryError: when it does not fit them.
        """
        blank = self.blank.bound_to(facts)
        assert blank.bought is not None
        return self._bound(blank.bought.schema, blank)

    def _bound(self, schema: Schema, blank: SqlTable) -> Self:
        text = self.chosen.statement(exp.Count(this=exp.Star(), big_int=True), self.dialect)
        dialect, where, table = self.dialect, COUNTED, ""
        with not_too_deep():
            rows = key_rows(text, dialect, self.names, schema, None, self.functions)
            if not rows.single_owner:
                text, rows, where, table = self._route(rows, schema)
                dialect = schema.dialect
        counting = {*self.options.given()} - {"other"}
        if where == PUBLIC and counting:
            raise QueryError(
                f"{', '.join(sorted(counting))} is about numbers of people; the keys of the public "
                f"table {table} are shown without counting anybody. Leave it out, or write LIMIT."
            )
        shared: tuple[str, ...] = ()
        if where == COUNTED and self.options.other is None:
            shared = self._shared(blank, schema)
        numbers = bool(shared) or self.options.minimum > 1 or self.options.top is not None
        usual = 1 if rows.once else USUAL_KEYS if numbers else WEIGHTED_KEYS
        given = self.options.keys_per_person
        # Where everyone has one key there is nothing to choose.
        chosen = given == PRIVATE and usual > 1
        given = None if given == PRIVATE else given
        found = Discovery(
            rows,
            where,
            table,
            text,
            dialect,
            blank,
            shared,
            TUNING.candidates[-1] if chosen else int(given or usual),
            chosen,
            numbers,
            schema,
        )
        return replace(self, bound=found)

    def _route(self, rows: KeyRows, schema: Schema) -> tuple[str, KeyRows, str, str]:
        """Return the keys of one table, where the rows of the statement are of several people.

        Raises:
            QueryError: when keys do not come from one table whose rows have one owner or none.
        """
        found = keys_of_one_table(rows.named, self.names)
        if found is not None:
            text, table = found
            inner = key_rows(text, schema.dialect, self.names, schema, None, self.functions)
            if inner.single_owner:
                return text, inner, OF_TABLE, table
            if not inner.slots:
                return text, inner, PUBLIC, table
        keys = ", ".join(self.names)
        raise QueryError(
            f"GROUP BY {keys} needs a list of keys here: the rows need several people, or are "
            "there because of other rows (EXISTS, IN, DISTINCT), so one person can bring any "
            f"number of keys to any number of others. List the keys that everyone may know: "
            f"groups={{'{self.names[0]}': [...]}} (--groups {self.names[0]}=A,B). Or group by "
            "columns of one table whose rows belong to one person each, or of a public table: "
            "their keys are found there first, and used as the list."
        )

    def _shared(self, blank: SqlTable, schema: Schema) -> tuple[str, ...]:
        """Return the bought questions that count the owners of rows: finding keys counts them."""
        assert blank.bought is not None
        return tuple(
            leaf.name for leaf in blank.bought.leaves if _counts_owners(leaf.query, schema)
        )

    def rewrite(self, schema: Schema) -> KeyRows:
        """Return the statement that counts the people of each key, for reading: its ``text``."""
        found = self.bound or self._bound(schema, self.blank.bound_to(schema.to_json())).bound
        assert found is not None
        salt = "0" * 32
        public = found.where == PUBLIC
        text = (
            found.rows.listed(salt) if public else found.rows.counted(salt, found.keys_per_person)
        )
        return replace(found.rows, text=text)

    def truth(self, dataset: Any) -> LabelledTable:
        """Return the exact table of all keys. Custodian side: its values are not private."""
        selection: Any = registry.make_mechanism(self.kind, "partition_selection")
        found: LabelledTable = selection.true_table(self, dataset)
        return found

    def canonical(self) -> dict[str, Any]:
        """Return a form that is equal for equivalent spellings of the same columns."""
        from tulle.sql.compile.normal import normal_text

        text = self.bound.blank.resolved if self.bound is not None else ""
        return self._form(
            text or normal_text(self.tree, self.dialect),
            columns=[name for name, _ in self.chosen.columns],
            keys=self.options.given() | {"found": True},
        )

    def __str__(self) -> str:
        return self._called(**self.options.given())


def _mentions_key(part: Any, chosen: SelectList) -> bool:
    keys = [meant for _, meant in chosen.keys]
    names = {name.lower() for name, _ in chosen.keys}
    for node in part.walk(prune=_is_aggregate):
        if node in keys or (isinstance(node, exp.Column) and node.name.lower() in names):
            return True
    return False


def _is_aggregate(node: Any) -> bool:
    """Say whether a node is itself an aggregate: what is inside it is no key."""
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup)


def _counts_owners(query: Any, schema: Schema) -> bool:
    """Say whether a question is COUNT(DISTINCT x), x the one owner of the rows."""
    bound = getattr(query, "bound", None)
    named = getattr(bound, "named", None)
    if named is None or not query.integral:
        return False
    if named.resolved.find(exp.CTE, exp.Subquery, exp.SetOperation):
        return False
    aggregate = find_aggregate(named.resolved)
    if not aggregate.distinct or len(aggregate.arguments) != 1:
        return False
    (counted,) = aggregate.arguments
    if not isinstance(counted, exp.Column):
        return False
    for source in named.resolved.find_all(exp.Table):
        if source.alias_or_name == counted.table:
            ties = schema.ownership(named.table(source)).ties
            own = [tie for tie in ties if tie.place == HERE]
            return len(ties) == 1 == len(own) and own[0].columns == (counted.name,)
    return False
