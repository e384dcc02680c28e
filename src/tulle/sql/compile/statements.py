"""The last step before a statement runs: every expression in it in a form that cannot fail.

The whole statement is gone through, what the library wrote into it included (owners, ranges,
groups, weights), with the kinds of all columns from the public schema. Tables are read only where
the library chose the rows that take part. What is not listed here or in
:mod:`tulle.sql.expressions.total`, or is used with kinds that are not, is refused; so whether a
statement is supported never depends on a record.

Whatever engines convert by themselves is converted in the open: sides of comparisons, branches of
CASE, sides of UNION, conditions. So a comparison itself cannot fail, and joins on equality stay
what they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from tulle.core.errors import QueryError, raise_alone
from tulle.core.validate import counted
from tulle.sql.compile.common_kinds import (
    alike,
    converted,
    is_alike,
    is_text_constant,
    literal,
    moment,
)
from tulle.sql.compile.derivations import alias, column, select, source_of
from tulle.sql.compile.inside import ELSEWHERE, EXACTLY, SameValue
from tulle.sql.compile.owned_rows import TAKING_PART
from tulle.sql.compile.size import check_size
from tulle.sql.compile.sums import BOUND, addable, exact_terms, sum_of_doubles, summable, whole_sum
from tulle.sql.dialect import dialect_of, guarding
from tulle.sql.expressions import kinds
from tulle.sql.expressions.conversions import (
    Impossible,
    Typed,
    as_type,
    call,
    collated,
    convert,
    number,
    refused,
    shown,
)
from tulle.sql.expressions.dates import check_interval
from tulle.sql.expressions.entry import Entry
from tulle.sql.expressions.kinds import (
    ANY,
    BOOLEAN,
    DATE,
    DAYS,
    DECIMAL,
    DOUBLE,
    NULL,
    NUMBERS,
    OPAQUE,
    TEXT,
    UUID,
    WHOLE,
    Kind,
    kind_of_column,
    kind_of_type,
    named_type,
)
from tulle.sql.expressions.total import apply, entries_of, expansion
from tulle.sql.question.check import check_clauses, conjuncts, is_semi_join, refuse
from tulle.sql.schema.schema import Schema

Columns = dict[str, Kind]

_CLAUSES = {"with_", "expressions", "from_", "joins", "where", "having", "group", "distinct"}
"""Clauses that the library writes, each of which is gone through."""

LONGEST_TEXT = 65536
"""Texts that were put together are cut to this before they are put together again."""


_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)


@dataclass
class Scope:
    """What names stand for in one SELECT; outer ones are seen from sub-selects in conditions."""

    views: dict[str, Columns]
    sources: dict[str, Columns] = field(default_factory=dict)
    outer: Scope | None = None


def total_statement(
    tree: Any, schema: Schema, *, functions: Collection[str] = (), summed: str = ""
) -> Any:
    """Return the statement in a form that gives no error on any row.

    ``summed`` is the name of a column that must be a number. ``functions`` are those that the user
    vouches for; only DuckDB can be kept from failing on them.

    Raises:
        QueryError: naming the part that cannot be brought into such a form, and what can.
    """
    compiler = Compiler(schema, functions, summed)
    made = tree.copy()
    compiler.query(made, Scope({}))
    return made


class Compiler:
    """Goes through one statement; see the module's text."""

    def __init__(self, schema: Schema, functions: Collection[str] = (), summed: str = "") -> None:
        self.dialect = dialect_of(schema.dialect)
        self.functions = set(functions)
        self.summed = summed
        self._tables = {
            table: {name: kind_of_column(kind, schema.dialect) for name, kind in columns.items()}
            for table, columns in schema.tables.items()
        }
        self._last = 0
        self._depth = 0
        self._rules: dict[type[Any], Callable[[Any, Scope], Typed]] = {
            exp.Column: self._column,
            exp.Literal: lambda node, scope: literal(self.dialect, node),
            exp.Null: lambda node, scope: Typed(node.copy(), Kind(NULL)),
            exp.Boolean: lambda node, scope: Typed(node.copy(), Kind(BOOLEAN)),
            exp.Paren: self._paren,
            exp.Collate: self._collate,
            exp.And: self._connective,
            exp.Or: self._connective,
            exp.Not: self._connective,
            exp.Is: self._is,
            exp.Between: self._between,
            exp.In: self._in,
            exp.Case: self._case,
            exp.If: self._if,
            exp.Coalesce: self._alike_arguments,
            exp.Greatest: self._alike_arguments,
            exp.Least: self._alike_arguments,
            exp.Nullif: self._nullif,
            exp.Concat: self._concat,
            exp.DPipe: self._concat,
            exp.Cast: self._cast,
            exp.TryCast: self._cast,
            exp.Interval: self._interval,
            exp.Anonymous: self._function,
            exp.Count: self._count,
            exp.Sum: self._sum,
            exp.Min: self._extreme,
            exp.Max: self._extreme,
            exp.Window: self._window,
            exp.Exists: self._nested_rows,
            exp.Subquery: self._one_value,
            SameValue: self._same_value,
            **dict.fromkeys(_COMPARISONS, self._comparison),
        }

    # Statements

    def query(self, tree: Any, scope: Scope) -> Columns:
        """Rewrite something that gives rows, in place, and return its columns.

        Raises:
            QueryError: also when the whole statement is larger than ``MOST_PARTS``.
        """
        self._depth += 1
        columns = self._query(tree, scope)
        self._depth -= 1
        if not self._depth:
            _check_tables(tree)
            check_size(tree)
        return columns

    def _query(self, tree: Any, scope: Scope) -> Columns:
        if isinstance(tree, exp.Subquery):
            scope = self._with(tree, scope)
            return self.query(tree.this, scope)
        if isinstance(tree, exp.SetOperation):
            return self._set_operation(tree, self._with(tree, scope))
        if not isinstance(tree, exp.Select):
            raise QueryError(f"{tree.key.upper()} is not supported: rows come from SELECT.")
        return self._select(tree, scope)

    def _with(self, tree: Any, scope: Scope) -> Scope:
        with_clause = tree.args.get("with_")
        views = dict(scope.views)
        for cte in with_clause.expressions if with_clause is not None else ():
            found = self.query(cte.this, Scope(dict(views)))
            names = cte.args["alias"].columns
            if names:
                renamed = [name.name for name in names]
                found = dict(zip(renamed, found.values(), strict=True))
            views[cte.alias] = found
        return Scope(views, outer=scope.outer)

    def _select(self, tree: Any, scope: Scope) -> Columns:
        check_clauses(tree, _CLAUSES)
        scope = Scope(self._with(tree, scope).views, outer=scope.outer)
        start, joins = tree.args.get("from_"), tree.args.get("joins") or []
        for source in [*([start.this] if start else []), *(join.this for join in joins)]:
            scope.sources[source.alias_or_name] = self._source(source, scope)
        for join in joins:
            if join.args.get("on") is not None:
                join.set("on", self._conditions(join.args["on"], scope))
        for clause in ("where", "having"):
            if tree.args.get(clause) is not None:
                found = tree.args[clause]
                found.set("this", self._conditions(found.this, scope))
        group = tree.args.get("group")
        if group is not None:
            group.set(
                "expressions",
                [
                    e if isinstance(e, exp.Literal) else self.value(e, scope).node
                    for e in group.expressions
                ],
            )
        columns: Columns = {}
        chosen = []
        for place, projection in enumerate(tree.expressions):
            made = self.value(projection.unalias(), scope)
            if _is_exact_sum(projection.unalias()):
                made = replace(made, node=whole_sum(self.dialect, made.node, made.kind))
            name = projection.alias_or_name or f"column_{place}"
            if self.summed and name == self.summed:
                made = summable(self.dialect, made, projection.unalias())
            columns[name] = made.kind
            named = isinstance(projection, exp.Alias) or (
                isinstance(projection, exp.Column) and not isinstance(made.node, exp.Column)
            )
            chosen.append(alias(made.node, name) if named else made.node)
        tree.set("expressions", chosen)
        return columns

    def _source(self, source: Any, scope: Scope) -> Columns:
        if isinstance(source, exp.Values):
            return self._values(source, scope)
        if isinstance(source, exp.Subquery):
            return self.query(source, Scope(scope.views, outer=scope.outer))
        if source.name in scope.views:
            return scope.views[source.name]
        _check_tables(source)
        for table, columns in self._tables.items():
            if table == source.name:
                return columns
        alike = [c for t, c in self._tables.items() if t.lower() == source.name.lower()]
        if len(alike) != 1:
            raise QueryError(f"There is no table {source.name}.")
        return alike[0]

    def _values(self, source: Any, scope: Scope) -> Columns:
        """Rewrite rows of constants: each column has one kind."""
        names = [name.name for name in source.args["alias"].columns]
        columns = {}
        for place, name in enumerate(names):
            given = [self.value(row.expressions[place], scope) for row in source.expressions]
            made, columns[name] = alike(self.dialect, given, source)
            for row, one in zip(source.expressions, made, strict=True):
                row.expressions[place].replace(one.node)
        return columns

    def _set_operation(self, tree: Any, scope: Scope) -> Columns:
        check_clauses(tree, {"this", "expression", "distinct", "with_"})
        sides = [
            self.query(side, Scope(scope.views, outer=scope.outer))
            for side in (tree.this, tree.expression)
        ]
        left, right = ([*side.values()] for side in sides)
        if len(left) != len(right):
            raise QueryError(
                f"The sides of a UNION or INTERSECT have {len(left)} and "
                f"{counted(len(right), 'column')}."
            )
        shared = []
        for name, one, other in zip(sides[0], left, right, strict=True):
            pair = [Typed(column(name), one), Typed(column(name), other)]
            shared.append(alike(self.dialect, pair, column(name))[1])
        for key, listed, names in (("this", left, sides[0]), ("expression", right, sides[1])):
            self._convert_columns(tree, key, [*names], listed, shared)
        return dict(zip(sides[0], shared, strict=True))

    def _convert_columns(
        self, tree: Any, key: str, names: list[str], given: list[Kind], wanted: list[Kind]
    ) -> None:
        """Put a SELECT that converts around rows whose columns are of other kinds than wanted."""
        if all(is_alike(one, other) for one, other in zip(given, wanted, strict=True)):
            return
        self._last += 1
        source = f"__tulle_side_{self._last}"
        chosen = []
        for name, one, other in zip(names, given, wanted, strict=True):
            value = Typed(exp.null() if one.name == NULL else column(name, source), one)
            if not is_alike(one, other):
                value = converted(self.dialect, value, other, column(name))
            chosen.append(alias(value.node, name))
        inner = tree.args[key]
        rows = inner if not isinstance(inner, exp.Subquery) else inner.this
        tree.set(key, select(chosen, [source_of(rows, source)]))

    # Conditions

    def _conditions(self, condition: Any, scope: Scope) -> Any:
        made = []
        for part in conjuncts(condition):
            if is_semi_join(part):
                made.append(self._semi_join(part, scope))
            else:
                found = self._boolean(self.value(part, scope), part)
                made.append(exp.paren(found.node) if isinstance(found.node, exp.Or) else found.node)
        return exp.and_(*made)

    def _semi_join(self, condition: Any, scope: Scope) -> Any:
        made = condition.copy()
        if isinstance(made, exp.Exists):
            self.query(made.this, Scope(scope.views, outer=scope))
            return made
        this = self.value(condition.this, scope)
        found = self.query(made.args["query"], Scope(scope.views, outer=scope))
        if len(found) != 1:
            raise QueryError("IN (SELECT ...) must select one column.")
        ((name, kind),) = found.items()
        sides, shared = alike(self.dialect, [this, Typed(column(name), kind)], condition)
        made.set("this", sides[0].node)
        self._convert_columns(made.args["query"], "this", [name], [kind], [shared])
        return made

    def _boolean(self, given: Typed, node: Any) -> Typed:
        """Return an expression as a condition."""
        name = given.kind.name
        if name in {BOOLEAN, NULL}:
            return given
        if name in NUMBERS:
            different = exp.NEQ(this=given.node, expression=number(0))
            return Typed(exp.Paren(this=different), Kind(BOOLEAN))
        if name in {TEXT, ANY}:
            return converted(self.dialect, given, Kind(BOOLEAN), node)
        raise refused(node, f"a condition must be a boolean, and this is a {name}; compare it")

    # Expressions

    def value(self, node: Any, scope: Scope) -> Typed:
        """Return an expression in total form."""
        rule = self._rules.get(type(node))
        if rule is not None:
            return rule(node, scope)
        entries = entries_of(node)
        if not entries:
            raise refused(node, "it is not among the expressions that are known to be safe")
        try:
            meant = expansion(entries[0], node)
        except Impossible as error:
            raise_alone(refused(node, str(error)))
        if meant is not None:
            return self.value(meant, scope)
        parts = [name for name in entries[0].parts if node.args.get(name) is not None]
        given = [self.value(node.args[name], scope) for name in parts]
        given = [self._usable(one, place, entries) for place, one in enumerate(given)]
        for entry in entries:
            if all(_takes(k, one.kind) for k, one in zip(entry.takes, given, strict=False)):
                try:
                    return apply(entry, node, given, self.dialect)
                except Impossible as error:
                    raise_alone(refused(node, str(error)))
        allowed = " or ".join(
            dict.fromkeys(
                "(" + ", ".join("/".join(sorted(k)) for k in e.takes) + ")" for e in entries
            )
        )
        has = ", ".join(one.kind.name for one in given)
        raise refused(
            node, f"it has arguments of kind ({has}) and takes {allowed}; CAST them explicitly"
        )

    def _usable(self, given: Typed, place: int, entries: Sequence[Entry]) -> Typed:
        """Return the result of a user's function as a value of a kind that is supported here."""
        if given.kind.name != ANY:
            return given
        allowed = {name for e in entries for taken in e.takes[place : place + 1] for name in taken}
        for name in (DOUBLE, TEXT, kinds.TIMESTAMP, DATE, WHOLE):
            if name in allowed:
                return convert(given, Kind(name, 19 if name == WHOLE else None), self.dialect)
        return given

    # One rule for each kind of expression

    def _column(self, node: Any, scope: Scope) -> Typed:
        place: Scope | None = scope
        while place is not None:
            columns = place.sources.get(node.table)
            if columns is not None:
                kind = _named(columns, node.name)
                if kind is not None:
                    if kind.own:
                        # Comparisons and casts of the database's own types may fail on a value.
                        return convert(Typed(node.copy(), kind), Kind(TEXT), self.dialect)
                    return self._read(_plain_column(node, kind))
            place = place.outer
        raise QueryError(f"The query does not fit the schema: there is no column {node.name}.")

    def _read(self, given: Typed) -> Typed:
        """Return a column as it is computed with: texts of a table in one collation."""
        collation = self.dialect.text_collation
        of_table = given.kind.name == TEXT and given.kind.stored
        return collated(given, collation) if of_table and collation is not None else given

    def _paren(self, node: Any, scope: Scope) -> Typed:
        inner = self.value(node.this, scope)
        return replace(inner, node=exp.Paren(this=inner.node))

    def _collate(self, node: Any, scope: Scope) -> Typed:
        # Written by the library alone, around texts that identify owners.
        inner = self.value(node.this, scope)
        made = exp.Collate(this=inner.node, expression=node.expression.copy())
        return replace(inner, node=made)

    def _connective(self, node: Any, scope: Scope) -> Typed:
        # Made anew: copying what is replaced anyway takes quadratic time in a long chain.
        made = type(node)()
        for name in ("this", "expression"):
            if node.args.get(name) is not None:
                part = node.args[name]
                found = self._boolean(self.value(part, scope), part).node
                made.set(name, found)
        return Typed(made, Kind(BOOLEAN))

    def _operand(self, node: Any, scope: Scope) -> Typed:
        """Return what is compared, in brackets where it is a condition itself.

        A tree needs none, and people write them; what the library compares with TRUE has none.
        """
        found = self.value(node, scope)
        if isinstance(found.node, exp.Predicate | exp.Connector | exp.Not):
            return replace(found, node=exp.Paren(this=found.node))
        return found

    def _is(self, node: Any, scope: Scope) -> Typed:
        made, right = node.copy(), node.expression
        given = self._operand(node.this, scope)
        inner = right.this if isinstance(right, exp.Not) else right
        if isinstance(inner, exp.Boolean):
            given = self._boolean(given, node.this)
        elif not isinstance(inner, exp.Null):
            raise refused(node, "write IS NULL, IS TRUE or IS FALSE")
        made.set("this", given.node)
        return Typed(made, Kind(BOOLEAN))

    def _comparison(self, node: Any, scope: Scope) -> Typed:
        one, other = node.this.unnest(), node.expression.unnest()
        if isinstance(one, exp.Tuple) or isinstance(other, exp.Tuple):
            return self._row_comparison(node, one, other, scope)
        sides = [self._operand(side, scope) for side in (node.this, node.expression)]
        if node.meta.get("groups"):
            self._check_group(node, *sides)
        (left, right), _ = alike(self.dialect, sides, node)
        made = type(node)(this=left.node, expression=right.node)
        return Typed(made, Kind(BOOLEAN))

    def _check_group(self, node: Any, value: Typed, constant: Typed) -> None:
        """Refuse a group's public value that is not of the kind of what is grouped by."""
        same = value.kind.name == constant.kind.name or value.kind.name == ANY
        numbers = {value.kind.name, constant.kind.name} <= NUMBERS
        days = value.kind.name in DAYS and constant.kind.name in {*DAYS, TEXT}
        texts = constant.kind.name == TEXT and value.kind.name in {UUID, OPAQUE}
        if not (same or numbers or days or texts):
            raise QueryError(
                f"groups[{node.meta['groups']!r}] has the value {constant.node.name}, a "
                f"{constant.kind.name}, but {shown(node.this)} is a {value.kind.name}. Give values "
                "of the same kind."
            )

    def _row_comparison(self, node: Any, one: Any, other: Any, scope: Scope) -> Typed:
        """(a, b) = (c, d) is a = c AND b = d; rows have no other comparison."""
        if not isinstance(node, exp.EQ) or not (
            isinstance(one, exp.Tuple)
            and isinstance(other, exp.Tuple)
            and len(one.expressions) == len(other.expressions)
        ):
            raise refused(node, "rows are compared with = and IN only; compare their parts")
        pairs = zip(one.expressions, other.expressions, strict=True)
        whole = exp.and_(*(exp.EQ(this=a.copy(), expression=b.copy()) for a, b in pairs))
        found = self.value(whole, scope)
        return replace(found, node=exp.Paren(this=found.node))

    def _between(self, node: Any, scope: Scope) -> Typed:
        names = ("this", "low", "high")
        given = [self._operand(node.args[name], scope) for name in names]
        made = node.copy()
        for name, one in zip(names, alike(self.dialect, given, node)[0], strict=True):
            made.set(name, one.node)
        return Typed(made, Kind(BOOLEAN))

    def _nested_rows(self, node: Any, scope: Scope) -> Typed:
        return Typed(self._semi_join(node, scope), Kind(BOOLEAN))

    def _one_value(self, node: Any, scope: Scope) -> Typed:
        """Return a sub-select that stands for one value; it has one row whatever there is."""
        made = node.copy()
        ((_, kind),) = self.query(made, Scope(scope.views, outer=scope)).items()
        return Typed(made, replace(kind, stored=""))

    def _in(self, node: Any, scope: Scope) -> Typed:
        if node.args.get("query") is not None:
            return self._nested_rows(node, scope)
        if isinstance(node.this.unnest(), exp.Tuple):
            pairs = [exp.EQ(this=node.this.copy(), expression=e.copy()) for e in node.expressions]
            whole: Any = exp.paren(exp.or_(*pairs))
            if node.args.get("negate"):
                whole = exp.Not(this=whole)
            return self.value(whole, scope)
        given = [self._operand(part, scope) for part in (node.this, *node.expressions)]
        if node.meta.get("groups"):
            for constant in given[1:]:
                self._check_group(node, given[0], constant)
        first, *rest = (one.node for one in alike(self.dialect, given, node)[0])
        made = node.copy()
        made.set("this", first)
        made.set("expressions", rest)
        return Typed(made, Kind(BOOLEAN))

    def _case(self, node: Any, scope: Scope) -> Typed:
        branches = node.args["ifs"]
        made = exp.Case()
        if node.this is not None:
            given = [self.value(p, scope) for p in (node.this, *(b.this for b in branches))]
            first, *conditions = (one.node for one in alike(self.dialect, given, node)[0])
            made.set("this", first)
        else:
            conditions = [self._boolean(self.value(b.this, scope), b.this).node for b in branches]
        default = node.args.get("default")
        results = [b.args["true"] for b in branches] + ([default] if default is not None else [])
        values, kind = alike(self.dialect, [self.value(r, scope) for r in results], node)
        chosen = [one.node for one in values]
        made.set("ifs", [exp.If(this=c, true=v) for c, v in zip(conditions, chosen, strict=False)])
        if default is not None:
            made.set("default", chosen[-1])
        return Typed(made, kind)

    def _if(self, node: Any, scope: Scope) -> Typed:
        branch = exp.If(this=node.this.copy(), true=node.args["true"].copy())
        false = node.args.get("false")
        return self._case(exp.Case(ifs=[branch], default=false and false.copy()), scope)

    def _alike_arguments(self, node: Any, scope: Scope) -> Typed:
        given = [self.value(part, scope) for part in (node.this, *node.expressions)]
        values, kind = alike(self.dialect, given, node)
        made = node.copy()
        first, *rest = (one.node for one in values)
        made.set("this", first)
        made.set("expressions", rest)
        return Typed(made, kind)

    def _nullif(self, node: Any, scope: Scope) -> Typed:
        given = [self.value(part, scope) for part in (node.this, node.expression)]
        (one, other), kind = alike(self.dialect, given, node)
        return Typed(call("NULLIF", one.node, other.node), kind)

    def _concat(self, node: Any, scope: Scope) -> Typed:
        made = node.copy()
        if isinstance(node, exp.DPipe):
            made.set("this", self._piece(node.this, scope))
            made.set("expression", self._piece(node.expression, scope))
        else:
            made.set("expressions", [self._piece(part, scope) for part in node.expressions])
        return Typed(made, Kind(TEXT, joined=True))

    def _piece(self, node: Any, scope: Scope) -> Any:
        given = self.value(node, scope)
        if given.kind.name != TEXT:
            given = converted(self.dialect, given, Kind(TEXT), node)
        if given.kind.joined and node.find(exp.Column) and not node.find(exp.DPipe, exp.Concat):
            # Sub-selects could double it again and again, until memory ends for some rows only.
            return call("SUBSTRING", given.node, number(1), number(LONGEST_TEXT))
        return given.node

    def _cast(self, node: Any, scope: Scope) -> Typed:
        given, to = self.value(node.this, scope), node.args["to"]
        if not isinstance(to, exp.DataType):
            raise refused(node, "name a type of numbers, texts, booleans, dates or times")
        sizes = [
            part.this if isinstance(part, exp.DataTypeParam) else part for part in to.expressions
        ]
        if not all(isinstance(size, exp.Literal) and size.is_int for size in sizes):
            raise refused(node, "name a type without sizes, or with whole numbers as sizes")
        to = self.dialect.cast_target(to)
        if given.aggregate:
            return Typed(exp.Cast(this=given.node, to=to.copy()), kind_of_type(to), aggregate=True)
        kind = kind_of_type(to)
        if is_text_constant(given.node) and kind.name in DAYS:
            try:
                return moment(given.node.name.strip(), {kind.name})
            except ValueError:
                pass
        if kind.digits is not None and kind.width > 39:
            raise refused(node, "decimals have at most 38 digits")
        if kind.name == OPAQUE or (kind.name == TEXT and to.this == exp.DataType.Type.ENUM):
            raise refused(node, "name a type of numbers, texts, booleans, dates or times")
        return converted(self.dialect, given, kind, node, to)

    def _interval(self, node: Any, scope: Scope) -> Typed:
        try:
            check_interval(node, self.dialect)
        except Impossible as error:
            raise_alone(refused(node, str(error)))
        return Typed(node.copy(), Kind(kinds.INTERVAL))

    def _function(self, node: Any, scope: Scope) -> Typed:
        if node.name.lower() not in self.functions:
            raise refused(node, "nothing is known about this function")
        if not self.dialect.guards_functions:
            raise refused(
                node,
                f"{self.dialect.title} may fail on a function of one's own, and whether it does "
                f"would show; only {guarding()} can be kept from that. Use the functions that are "
                "listed",
            )
        made = node.copy()
        made.set("expressions", [self.value(part, scope).node for part in node.expressions])
        from_row = [part for part in made.expressions if part.find(exp.Column)]
        if not from_row:
            raise refused(node, "it does not depend on the row; write its value instead")
        return Typed(self.dialect.function(made, from_row[0]), Kind(ANY))

    # What the library itself writes

    def _count(self, node: Any, scope: Scope) -> Typed:
        made = node.copy()
        inner = node.this
        if isinstance(inner, exp.Distinct):
            listed = [self.value(part, scope).node for part in inner.expressions]
            made.set("this", exp.Distinct(expressions=listed))
        elif not isinstance(inner, exp.Star):
            made.set("this", self.value(inner, scope).node)
        return Typed(made, Kind(WHOLE, 19, stored="bigint"), aggregate=True)

    def _sum(self, node: Any, scope: Scope) -> Typed:
        distinct = isinstance(node.this, exp.Distinct)
        inner = node.this.expressions[0] if distinct else node.this
        given = summable(self.dialect, self.value(inner, scope), inner)
        exactly = EXACTLY in node.meta
        most = node.meta.get(EXACTLY, math.inf)
        added = (
            exact_terms(self.dialect, given, inner, most)
            if exactly
            else addable(self.dialect, given, inner)
        )
        if not exactly and BOUND in node.meta and added.kind.name == DOUBLE:
            ordered = sum_of_doubles(self.dialect, added.node, node.meta[BOUND], given.kind)
            return Typed(ordered, Kind(DECIMAL), aggregate=True)
        made = exp.Distinct(expressions=[added.node]) if distinct else added.node
        total = exp.Sum(this=made)
        if not exactly:
            return Typed(total, Kind(DECIMAL), aggregate=True)
        if given.kind.name == DOUBLE:
            return Typed(total, Kind(DOUBLE), aggregate=True)
        return Typed(total, Kind(DECIMAL, 38 - added.kind.scale, added.kind.scale), aggregate=True)

    def _extreme(self, node: Any, scope: Scope) -> Typed:
        given = self.value(node.this, scope)
        return Typed(type(node)(this=given.node), replace(given.kind, stored=""), aggregate=True)

    def _same_value(self, node: Any, scope: Scope) -> Typed:
        """Return a value in the one form of all that are equal to it."""
        given = self.value(node.this, scope)
        name = given.kind.name
        if name in {OPAQUE, ANY, kinds.INTERVAL}:
            raise refused(
                node.this,
                "values of its type can be equal and yet differ, so that which of them stands for "
                "a group depends on other people's rows; CAST it AS TEXT, a number or a date",
            )
        return self.dialect.same_value(given)

    def _window(self, node: Any, scope: Scope) -> Typed:
        made = node.copy()
        listed = node.args.get("partition_by") or []
        made.set("partition_by", [self.value(part, scope).node for part in listed])
        if node.args.get("order") is not None:
            for part in made.args["order"].expressions:
                part.set("this", self.value(part.this, scope).node)
        function = node.this
        if isinstance(function, exp.RowNumber | exp.Rank | exp.DenseRank):
            return Typed(made, Kind(WHOLE, 19, stored="bigint"), aggregate=True)
        if isinstance(function, exp.Lag | exp.Lead | exp.FirstValue):
            given = self.value(function.this, scope)
            made.this.set("this", given.node)
            return Typed(made, replace(given.kind, stored=""), aggregate=True)
        if not isinstance(function, exp.Sum | exp.Count | exp.Min | exp.Max):
            raise refused(node, "windows rank rows against each other")
        found = self.value(function, scope)
        made.set("this", found.node)
        return replace(found, node=made)


def _check_tables(tree: Any) -> None:
    """Refuse tables in a statement, wherever they stand, of which the library chose no rows.

    A part that came here as it was written reads everybody's.
    """
    views = {cte.alias for cte in tree.find_all(exp.CTE)}
    for source in tree.find_all(exp.Table):
        if TAKING_PART not in source.meta and source.name not in views:
            refuse(f"A sub-select of {source.name} here", ELSEWHERE)


def _is_exact_sum(node: Any) -> bool:
    inner = node.this if isinstance(node, exp.Window) else node
    return isinstance(inner, exp.Sum) and EXACTLY in inner.meta


def _takes(allowed: Collection[str], kind: Kind) -> bool:
    if kind.name in {NULL, ANY}:
        return kinds.INTERVAL not in allowed
    return kind.name in allowed


def _named(columns: Mapping[str, Kind], name: str) -> Kind | None:
    if name in columns:
        return columns[name]
    alike = [kind for other, kind in columns.items() if other.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def _plain_column(node: Any, kind: Kind) -> Typed:
    """Return a column; enumerations as texts, and timestamps of other precisions as usual ones."""
    if kind.name == NULL:
        # Engines give a column of NULLs a type of their own choice, and convert others to it.
        return Typed(exp.null(), kind)
    if kind.name == TEXT and kind.stored.startswith("enum"):
        return Typed(as_type(node.copy(), "TEXT"), Kind(TEXT))
    if (
        kind.name == kinds.TIMESTAMP
        and kind.stored.startswith("timestamp_")
        and "ntz" not in kind.stored
    ):
        to = named_type("TIMESTAMPNTZ")
        return Typed(exp.TryCast(this=node.copy(), to=to, safe=True), Kind(kinds.TIMESTAMP))
    return Typed(node.copy(), kind)
