"""Questions in SQL."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.dataset import Facts
from tulle.core.errors import InputError, QueryError
from tulle.core.labels import Axis
from tulle.core.query import Shape
from tulle.relations.data import Relation
from tulle.sql.data import Database
from tulle.sql.dialect import DEFAULT
from tulle.sql.question.parse import SqlQuestion, Statement, not_too_deep

if TYPE_CHECKING:
    import pyarrow

    from tulle.relations.mechanisms.single_owner import SingleOwnerRows
    from tulle.sql.compile.gather import Gathered
    from tulle.sql.compile.owned_rows import Gone
    from tulle.sql.compile.person_totals import PersonTotals
    from tulle.sql.compile.rewrite import Rewritten
    from tulle.sql.keys.question import DiscoveredTable
    from tulle.sql.schema.schema import Schema
    from tulle.sql.tables.question import SqlTable
    from tulle.sql.unranged import UnrangedTable

Groups = tuple[tuple[str, tuple[Any, ...]], ...]


@dataclass(frozen=True)
class SqlQuery(SqlQuestion):
    """A count or a sum in SQL. Build with :func:`sql`.

    Its text is parsed when it is built. Binding it to a database (:meth:`bind`) rewrites it for
    that schema; what the schema says about it, and the statement to run, are then read off
    ``bound``.
    """

    text: str
    dialect: str
    groups: Groups
    functions: tuple[str, ...]
    statement: Statement | None = field(default=None, compare=False, repr=False)
    """The text, parsed; every form of one question has the same."""
    bound: Rewritten | None = field(default=None, compare=False, repr=False)
    """The question as a public schema lets it be answered; None before it is bound."""
    resolved: str = field(default="", compare=False, repr=False)
    """The statement with every name resolved and one spelling; empty before it is bound."""

    bounds: ClassVar[tuple[str, ...]] = ("_rewrite",)
    """What one participant moves follows from the tuples of the rewritten statement alone."""

    def __post_init__(self) -> None:
        if self.statement is None:
            object.__setattr__(self, "statement", Statement.read(self.text, self.dialect))

    @property
    def tree(self) -> Any:
        """The parsed statement; it is not to be changed."""
        assert self.statement is not None
        return self.statement.tree

    @property
    def line(self) -> str:
        """The statement on one line, without comments, for reading."""
        assert self.statement is not None
        return self.statement.line

    @property
    def term(self) -> float:
        """The most that one row adds, as far as the schema's declared ranges say."""
        return math.inf if self.bound is None else self.bound.term

    @property
    def linked(self) -> int:
        """How many links between participants of one kind make up a row."""
        return 0 if self.bound is None else self.bound.linked

    @property
    def single_owner(self) -> bool:
        """Whether the schema says that each row is about one participant alone."""
        return self.bound is not None and self.bound.single_owner

    def rewrite(self, schema: Schema, gone: Gone = None) -> Rewritten:
        """Return the statement that gives this question's tuples with their owners.

        Only the public schema is needed, so this can refuse a question before anything is spent.
        For the schema that the question is bound to, it is the bound statement.

        Raises:
            QueryError: when the question does not fit the schema.
        """
        bound = self.bound
        if bound is None:
            return self._rewrite(schema, gone)
        if bound.schema is schema and gone is None:
            return bound
        return bound.written_for(schema, gone, self._rewrite)

    def _rewrite(self, schema: Schema, gone: Gone = None) -> Rewritten:
        from tulle.sql.compile.rewrite import rewrite

        with not_too_deep():
            return rewrite(self.tree, self.groups, schema, gone, self.functions)

    def bind(self, public: Any, facts: Facts | None = None) -> SqlQuery:
        """Return the question bound to a database, whose engine accepts its statement.

        Nothing about it is parsed, rewritten or looked up again after this. The schema is the
        database's own; its facts say the same and are not read.

        Raises:
            QueryError: when the schema, or the engine by its schema, does not accept it.
        """
        if not isinstance(public, Database):
            return self
        schema = public.schema
        known = self.bound is not None and self.bound.schema is schema
        bound = self if known else self._bound(schema)
        public.check(bound.rewrite(schema).text)
        return bound

    def bound_to(self, facts: Facts) -> SqlQuery:
        """Return the question bound to a database's public facts alone.

        Raises:
            QueryError: when it does not fit them, naming the table, column or clause.
        """
        from tulle.sql.schema.schema import Schema

        return self._bound(Schema.from_json(facts))

    def _bound(self, schema: Schema) -> SqlQuery:
        from tulle.sql.compile.normal import resolved_text

        found = self._rewrite(schema)
        with not_too_deep():
            resolved = resolved_text(found.named.resolved, self.dialect)
        return replace(self, bound=found, resolved=resolved)

    def truth(self, dataset: Database) -> Any:
        """Return the exact answer. Custodian side: this value is not private."""
        from tulle.sql.compile.truth import total_of, true_answer

        if self.rewrite(dataset._schema).per_person:
            # Where a key is not unique, rows of two people do not meet, as in every release.
            return total_of(relations_of(dataset, self), self.groups, whole=self.integral)
        return true_answer(
            dataset._engine,
            self.tree,
            self.groups,
            dataset._schema,
            dataset._gone,
            self.functions,
        )

    def expected(self, stand_in: Any) -> Any:
        """Return the answer in full size: counts and sums grow with the number of people."""
        return np.asarray(self.truth(stand_in)) * stand_in.stands_for

    def canonical(self) -> dict[str, Any]:
        """Return a form that is equal for equivalent spellings.

        A question that is not bound to a schema has what can be said without one: which table a
        column is from, and whether the engine tells "P" from "p", is then not known.
        """
        text = self.resolved
        if not text:
            from tulle.sql.compile.normal import normal_text

            text = normal_text(self.tree, self.dialect)
        return self._form(text)

    def in_words(self) -> str:
        return f"In SQL: {self.line}"

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        return tuple(Axis(name, list(values)) for name, values in self.groups)


@dataclass(frozen=True)
class SqlCount(SqlQuery):
    """COUNT of something: a whole number."""

    integral: ClassVar[bool] = True


@dataclass(frozen=True)
class SqlSum(SqlQuery):
    """SUM of something: any number, also below zero unless ``positive``."""

    integral: ClassVar[bool] = False

    @property
    def positive(self) -> bool:
        """Whether the schema's declared ranges say that no term is below zero."""
        return self.bound is not None and not self.bound.signed


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
    dialect: str = DEFAULT,
    functions: Iterable[str] = (),
    keys_per_person: int | str | None = None,
    minimum: int | None = None,
    other: bool | str | None = None,
    top: int | None = None,
    ranges: str | None = None,
) -> SqlQuery | SqlTable | DiscoveredTable | UnrangedTable:
    """Ask for aggregates in SQL.

    One COUNT or SUM is a number. Anything else, and whatever has GROUP BY, is a table with a row
    for each group: any number of COUNT, COUNT_IF, SUM, AVG, VAR_POP, VAR_SAMP, STDDEV_POP,
    STDDEV_SAMP, and over rows of one person each MIN, MAX, MEDIAN and QUANTILE_CONT (of columns
    with declared ranges), each with FILTER (WHERE ...) if need be, and whatever is computed with
    them. What they share is paid for once. HAVING, ORDER BY and LIMIT are worked out after the
    noise.

    Inner joins of any kind (self-joins, conditions other than equality), WHERE with any condition
    on the joined row, EXISTS and IN (SELECT ...), DISTINCT, UNION, UNION ALL, INTERSECT,
    sub-selects, VALUES and WITH are supported, NATURAL joins, joins in brackets and names with the
    schema in front of them as well. What could make a row appear when somebody leaves is refused.

    Of functions there are arithmetic, SQRT, LN, LOG10, LOG2, EXP, POWER with a constant exponent,
    operators on bits; EXTRACT, DATE_PART, DATE_TRUNC, DATE_DIFF, STRFTIME and the functions of the
    fields; LEFT, RIGHT, SUBSTRING, REPLACE, LPAD, SPLIT_PART, STRPOS, CONTAINS, LIKE, and regular
    expressions with a constant pattern. They have one value on all engines, and NULL outside of
    their domain.

    Inside one person's rows anything goes, because it leaves with that person: sub-selects with
    GROUP BY and HAVING, windows, QUALIFY and DISTINCT ON whose columns say whose a row is (the
    owner, or a key that leads to it); LEFT JOIN, NOT EXISTS, NOT IN, EXCEPT and sub-selects that
    stand for one value, where the owners are compared; and all of these with public tables. Where
    a key is not unique, rows of two people do not meet there.

    ``groups`` lists, for each column of GROUP BY, the values that everyone may know, also as a text
    (``{"region": "north, south"}``): the answer has one number for each of them (for each
    combination, the last column running fastest), 0 where there are no rows. Without ``groups``
    the keys of GROUP BY are found privately (partition selection), which needs a delta: everyone
    counts for ``keys_per_person`` keys at most (1 where a primary key says that everyone has one
    row, else 64, or 4 where numbers of people are asked for; ``"private"`` chooses it with a tenth
    of epsilon), a key of fewer than ``minimum``
    people is never shown, ``other`` adds a row of that name for all keys that are not shown, and
    ``top`` keeps the keys with the most people.

    ``ranges="private"`` buys bounds of what is summed, averaged or ranked, where no range is
    declared; a part of epsilon pays for it, values beyond are clipped, and the answer is a table.

    ``dialect`` is the SQL that the text is written in (``duckdb``, ``postgres`` or ``spark``); it
    can be asked of any engine. ``functions`` allows functions by name whose value follows from
    their arguments alone; on DuckDB only, which can be kept from failing on them.

    No value of a row makes a question fail: what would fail gives NULL, and what cannot be kept
    from failing is refused when the question meets the schema.

    Raises:
        QueryError: naming the clause that is not supported, and why.

    Example:
        >>> print(sql("select count(*) from edge x join edge y on x.b = y.a"))
        sql('SELECT COUNT(*) FROM edge AS x JOIN edge AS y ON x.b = y.a')
    """
    known = registry.find("dialect", "database")
    if dialect not in known:
        raise InputError(f"dialect must be one of {', '.join(known)}; got {dialect!r}.")
    if isinstance(functions, str):
        raise InputError(f"functions must be a list of names, such as [{functions!r}].")
    statement = Statement.read(text, dialect)
    tree = statement.tree

    from sqlglot import exp

    from tulle.sql.keys.question import DiscoveredTable, KeyOptions
    from tulle.sql.tables.select_list import is_plain

    allowed = tuple(sorted({name.lower() for name in functions}))
    public = _check_groups(groups)
    if ranges not in (None, "private"):
        raise InputError(
            f"ranges of a question can only be 'private', which buys bounds; got {ranges!r}. "
            "Ranges that everyone may know are declared with the database: "
            "tulle.Database.connect(..., ranges={'table.column': (least, most)})."
        )
    if ranges is not None:
        from tulle.sql.unranged import UnrangedTable
    options = KeyOptions.read(keys_per_person, minimum, other, top)
    if groups is None and isinstance(tree, exp.Select) and tree.args.get("group") is not None:
        found = DiscoveredTable(text.strip().rstrip("; \n\t"), dialect, allowed, options)
        with not_too_deep():
            found.check()
        return found if ranges is None else UnrangedTable(found)
    if options.given():
        raise InputError(
            f"{', '.join(options.given())} is for GROUP BY without a public list of keys; "
            + ("leave groups= out." if public else "the statement has no GROUP BY.")
        )

    by_groups = bool(public) and isinstance(tree, exp.Select)
    if ranges is not None or by_groups or not is_plain(tree):
        from tulle.sql.tables.question import SqlTable

        written = text.strip().rstrip("; \n\t")
        table = SqlTable(written, dialect, public, allowed, statement=statement)
        table.check()
        return table if ranges is None else UnrangedTable(table)
    return one_aggregate(text, dialect=dialect, functions=allowed, statement=statement)


@registry.register("part", "database", "aggregate")
def one_aggregate(
    text: str,
    *,
    groups: Mapping[str, Sequence[Any]] | None = None,
    dialect: str = DEFAULT,
    functions: Iterable[str] = (),
    statement: Statement | None = None,
) -> SqlQuery:
    """Return one COUNT or SUM as mechanisms answer it: a number, or with groups an array of them.

    Tables are put together from these. ``statement`` is the text, if it was parsed already.

    Raises:
        QueryError: when the statement is anything else.
    """
    allowed = tuple(sorted({name.lower() for name in functions}))
    public = _check_groups(groups)
    statement = statement or Statement.read(text, dialect)
    from tulle.sql.question.aggregate import check_aggregate, find_aggregate
    from tulle.sql.question.check import check_statement

    tree = statement.tree
    with not_too_deep():
        check_statement(tree, grouped=bool(public), functions=allowed)
        check_aggregate(tree, public, allowed)
    summed = find_aggregate(tree).kind == "sum"
    if public:
        kind: type[SqlQuery] = GroupedSqlSum if summed else GroupedSqlCount
    else:
        kind = SqlSum if summed else SqlCount
    return kind(text.strip().rstrip("; \n\t"), dialect, public, allowed, statement)


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

    return gather(*_fetch(database, query))


def person_totals_of(database: Database, query: SqlQuery, *, power: int = 1) -> PersonTotals:
    """Return what people add to each group, where the question is bound to a schema by which each
    row is about one participant: counted, clipped and added up in the engine. Custodian side.

    ``power`` is 1 to clip sums of absolute amounts, 2 to clip L2 norms.
    """
    from tulle.sql.compile.person_totals import PersonTotals

    rewritten = query.rewrite(database._schema, database._gone)
    # Again: tables may have changed since the question was bound.
    database.check(rewritten.text)
    signed = isinstance(query, SqlSum) and not query.positive
    return PersonTotals(database._engine, rewritten, signed=signed, power=power)


def owned_rows_of(database: Database, query: SqlQuery, *, signed: bool) -> SingleOwnerRows:
    """Return what each participant adds to each group, where the question is bound to a schema
    by which each row is about one participant. Custodian side.
    """
    from tulle.sql.compile.gather import gather_owned

    return gather_owned(*_fetch(database, query), signed=signed)


def _fetch(database: Database, query: SqlQuery) -> tuple[Rewritten, pyarrow.Table]:
    rewritten = query.rewrite(database._schema, database._gone)
    # Again: tables may have changed since the question was bound.
    database.check(rewritten.text)
    return rewritten, database._engine.fetch(rewritten.text)


def _check_groups(groups: Mapping[str, Sequence[Any]] | None) -> Groups:
    if groups is None:
        return ()
    from tulle.sql.schema.declarations import read_values

    if not isinstance(groups, Mapping) or not groups:
        raise InputError("groups must map each column of GROUP BY to a list of public values.")
    public = []
    for name, values in groups.items():
        if not isinstance(values, Iterable):
            raise InputError(f"groups[{name!r}] must be a list of public values.")
        listed = tuple(read_values(values, f"groups[{name!r}]"))
        plain = all(v is None or isinstance(v, str | int | float | date | Decimal) for v in listed)
        # NaN differs from itself in Python, and is one group.
        different = {"NaN" if isinstance(v, float) and math.isnan(v) else v for v in listed}
        if not listed or not plain or len(different) != len(listed):
            raise InputError(
                f"groups[{name!r}] must be distinct numbers, texts, dates or None, at least one."
            )
        public.append((str(name), listed))
    return tuple(public)
