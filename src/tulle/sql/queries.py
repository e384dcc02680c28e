"""Questions in SQL."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from tulle.core import registry
from tulle.core.dataset import Facts
from tulle.core.errors import InputError, QueryError
from tulle.core.query import Axis, Query, Shape
from tulle.relations.data import Relation
from tulle.sql.data import Database
from tulle.sql.question.parse import parse_statement

if TYPE_CHECKING:
    from tulle.sql.compile.gather import Gathered
    from tulle.sql.compile.rewrite import Rewritten
    from tulle.sql.schema.schema import Schema

Groups = tuple[tuple[str, tuple[Any, ...]], ...]

DIALECTS = ("duckdb", "postgres", "spark")
"""Dialects that a question can be written in."""


@dataclass(frozen=True)
class SqlQuery(Query):
    """A count or a sum in SQL. Build with :func:`sql`."""

    text: str
    dialect: str
    groups: Groups
    functions: tuple[str, ...]
    term: float = math.inf
    """The most that one row adds, as far as declared ranges say; see :meth:`bound_to`."""
    linked: int = 0
    """How many links between participants of one kind make up a row; see :meth:`bound_to`."""
    alone: bool = False
    """Whether each row is about one participant alone; see :meth:`bound_to`."""
    resolved: str = ""
    """The statement with every name resolved and one spelling; see :meth:`bound_to`."""
    name: ClassVar[str] = "sql"
    kind: ClassVar[str] = "database"

    @cached_property
    def tree(self) -> Any:
        """The parsed statement; it is not to be changed."""
        return parse_statement(self.text, self.dialect)

    @cached_property
    def line(self) -> str:
        """The statement on one line, without comments, for reading."""
        # Only for reading: writing SQL can change it (COUNT(DISTINCT a, b) becomes a CASE), so
        # what runs is always parsed from the text that was checked.
        return str(self.tree.sql(dialect=self.dialect, comments=False))

    def rewrite(self, schema: Schema, gone: tuple[str, Any] | None = None) -> Rewritten:
        """Return the statement that gives this question's tuples with their owners.

        Only the public schema is needed, so this can refuse a question before anything is spent.

        Raises:
            QueryError: when the question does not fit the schema.
        """
        from tulle.sql.compile.rewrite import rewrite

        return rewrite(self.tree, self.groups, schema, gone, self.functions)

    def bound_to(self, facts: Facts) -> SqlQuery:
        """Return the question with what a database's public facts say about it.

        Raises:
            QueryError: when it does not fit them, naming the table, column or clause.
        """
        from tulle.sql.compile.normal import normal_text
        from tulle.sql.schema.schema import Schema

        schema = Schema.from_json(facts)
        found = self.rewrite(schema)
        bound = replace(
            self,
            term=found.term,
            linked=found.linked,
            alone=found.alone,
            resolved=normal_text(self.tree, self.dialect, schema),
        )
        return replace(bound, positive=not found.signed) if isinstance(bound, SqlSum) else bound

    def objection(self, dataset: Any) -> str | None:
        """Return why the schema, or the engine by its schema, does not accept the statement."""
        if not isinstance(dataset, Database):
            return None
        try:
            dataset.check(self.rewrite(dataset._schema, dataset._gone).text)
        except QueryError as error:
            return str(error)
        return None

    def truth(self, dataset: Database) -> Any:
        """Return the exact answer. Custodian side: this value is not private."""
        from tulle.sql.compile.truth import true_answer

        return true_answer(
            dataset._engine,
            self.tree,
            self.groups,
            dataset._schema,
            dataset._gone,
            self.functions,
        )

    def canonical(self) -> dict[str, Any]:
        """Return a form that is equal for equivalent spellings.

        A question that is not bound to a schema has what can be said without one: which table a
        column is from, and whether the engine tells "P" from "p", is then not known.
        """
        from tulle.sql.compile.normal import normal_text

        text = self.resolved or normal_text(self.tree, self.dialect)
        form: dict[str, Any] = {"query": self.name, "text": text, "dialect": self.dialect}
        if self.groups:
            form["groups"] = [[name, [repr(v) for v in values]] for name, values in self.groups]
        return form | ({"functions": list(self.functions)} if self.functions else {})

    def in_words(self) -> str:
        return f"In SQL: {self.line}"

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        return tuple(Axis(name, list(values)) for name, values in self.groups)

    def __str__(self) -> str:
        groups = f", groups={_shown(self.groups)}" if self.groups else ""
        return f"sql({self.line!r}{groups})"


@dataclass(frozen=True)
class SqlCount(SqlQuery):
    """COUNT of something: a whole number."""

    integral: ClassVar[bool] = True


@dataclass(frozen=True)
class SqlSum(SqlQuery):
    """SUM of something: any number, also below zero unless ``positive``."""

    positive: bool = False
    """Whether declared ranges say that no term is below zero; see :meth:`SqlQuery.bound_to`."""
    integral: ClassVar[bool] = False


@dataclass(frozen=True)
class GroupedSqlCount(SqlCount):
    """COUNT for each of some public groups."""

    shape: ClassVar[Shape] = "vector"


@dataclass(frozen=True)
class GroupedSqlSum(SqlSum):
    """SUM for each of some public groups."""

    shape: ClassVar[Shape] = "vector"


@registry.register("query", "database", "sql")
def sql(
    text: str,
    *,
    groups: Mapping[str, Sequence[Any]] | None = None,
    dialect: str = "duckdb",
    functions: Iterable[str] = (),
) -> SqlQuery:
    """Ask for a COUNT or a SUM in SQL.

    Inner joins of any kind (self-joins, conditions other than equality), WHERE with any condition
    on the joined row, EXISTS and IN (SELECT ...), DISTINCT, UNION, UNION ALL, INTERSECT,
    sub-selects and WITH are supported. What could make a row appear when somebody leaves is
    refused.

    ``groups`` lists, for each column of GROUP BY, the values that everyone may know: the answer
    has one number for each of them (for each combination, the last column running fastest), 0
    where there are no rows. ``dialect`` is the SQL that the text is written in (``duckdb``,
    ``postgres`` or ``spark``); it can be asked of any engine. ``functions`` allows functions by
    name whose value follows from their arguments alone; on DuckDB only, which can be kept from
    failing on them.

    No value of a row makes a question fail: what would fail gives NULL, and what cannot be kept
    from failing is refused when the question meets the schema.

    Raises:
        QueryError: naming the clause that is not supported, and why.

    Example:
        >>> print(sql("select count(*) from edge x join edge y on x.b = y.a"))
        sql('SELECT COUNT(*) FROM edge AS x JOIN edge AS y ON x.b = y.a')
    """
    if dialect not in DIALECTS:
        raise InputError(f"dialect must be one of {', '.join(DIALECTS)}; got {dialect!r}.")
    if isinstance(functions, str):
        raise InputError(f"functions must be a list of names, such as [{functions!r}].")
    tree = parse_statement(text, dialect)
    allowed = tuple(sorted({name.lower() for name in functions}))
    public = _check_groups(groups)

    from tulle.sql.question.aggregate import check_aggregate, find_aggregate
    from tulle.sql.question.check import check_statement

    check_statement(tree, grouped=bool(public), functions=allowed)
    check_aggregate(tree, public, allowed)
    summed = find_aggregate(tree).kind == "sum"
    if public:
        kind: type[SqlQuery] = GroupedSqlSum if summed else GroupedSqlCount
    else:
        kind = SqlSum if summed else SqlCount
    return kind(text.strip().rstrip("; \n\t"), dialect, public, allowed)


def relation_of(database: Database, query: SqlQuery) -> Relation:
    """Return the tuples of a single-number question, each with the participants it needs.

    Custodian side: mechanisms call it after the price has been paid.

    Raises:
        QueryError: for a question with groups; use :func:`relations_of`.
    """
    if query.groups:
        raise QueryError(f"{query} has groups; each of them has a relation of its own.")
    return relations_of(database, query)[0]


def relations_of(database: Database, query: SqlQuery) -> tuple[Relation, ...]:
    """Return one relation for each group; all number the same participants."""
    return gather_tuples(database, query).relations


def gather_tuples(database: Database, query: SqlQuery) -> Gathered:
    """Return the relations together with who the participants are. Custodian side."""
    from tulle.sql.compile.gather import gather

    rewritten = query.rewrite(database._schema, database._gone)
    database.check(rewritten.text)
    return gather(rewritten, database._engine.fetch(rewritten.text))


def _check_groups(groups: Mapping[str, Sequence[Any]] | None) -> Groups:
    if groups is None:
        return ()
    if not isinstance(groups, Mapping) or not groups:
        raise InputError("groups must map each column of GROUP BY to a list of public values.")
    public = []
    for name, values in groups.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InputError(f"groups[{name!r}] must be a list of public values.")
        listed = tuple(values)
        plain = all(v is None or isinstance(v, str | int | float | date | Decimal) for v in listed)
        if not listed or not plain or len(set(listed)) != len(listed):
            raise InputError(
                f"groups[{name!r}] must be distinct numbers, texts, dates or None, at least one."
            )
        public.append((str(name), listed))
    return tuple(public)


def _shown(groups: Groups) -> str:
    return "{" + ", ".join(f"{name!r}: {list(values)!r}" for name, values in groups) + "}"
