"""What a statement says about the columns of tables: what they equal and are compared with.

A statement is public, and so is what it compares columns with: a made-up database in which nothing
is called 'north' would say little about the error of a question about the north.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from tulle.sql.compile.names import Named
from tulle.sql.dialect import DEFAULT
from tulle.sql.schema.schema import Schema

Place = tuple[str, str]
"""A column of a table: both names as the catalogue has them."""

_ORDERED = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_EQUAL = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)
_PATTERN = (exp.Like, exp.ILike)

EQUAL, ORDERED, LIKE, YEAR, LISTED = "equal", "ordered", "like", "year", "listed"


@dataclass
class Mentions:
    """Tables that a statement reads, and what it says about their columns."""

    tables: dict[str, None] = field(default_factory=dict)
    used: set[Place] = field(default_factory=set)
    """Columns that occur anywhere."""
    alike: list[tuple[Place, Place]] = field(default_factory=list)
    """Columns that are compared for equality."""
    compared: list[tuple[Place, str, str]] = field(default_factory=list)
    """Columns, how they are compared, and with which constant, as SQL of DuckDB."""
    listed: dict[Place, tuple[Any, ...]] = field(default_factory=dict)
    """Columns of GROUP BY with their public lists."""
    years: dict[Place, tuple[Any, ...]] = field(default_factory=dict)
    """The same for columns whose years are listed."""

    def read(self, tree: Any, schema: Schema, groups: Iterable[tuple[str, Any]] = ()) -> None:
        """Add what a statement says."""
        named = Named(tree, schema)
        for source in named.resolved.find_all(exp.Table):
            table = named._tables.get(source.name)
            if table is not None:
                self.tables[table] = None
        reader = _Reader(named, self)
        scopes = list(traverse_scope(named.resolved))
        for scope in scopes:
            reader.scope(scope)
        if scopes and isinstance(scopes[-1].expression, exp.Select):
            reader.groups(scopes[-1], dict(groups))


class _Reader:
    def __init__(self, named: Named, found: Mentions) -> None:
        self.named, self.found = named, found

    def scope(self, scope: Scope) -> None:
        for node in scope.walk():
            if isinstance(node, exp.Column):
                found = self.meant(node, scope)
                if found is not None and isinstance(found[0], str):
                    self.found.used.add(found)
            elif isinstance(node, (*_EQUAL, *_ORDERED, *_PATTERN)):
                self.compare(node, node.this, [node.expression], scope)
            elif isinstance(node, exp.Between):
                self.compare(node, node.this, [node.args["low"], node.args["high"]], scope)
            elif isinstance(node, exp.In):
                inner = node.args.get("query")
                if inner is None:
                    self.compare(node, node.this, node.expressions, scope)
                else:
                    self.inside(node, inner, scope)

    def inside(self, node: Any, query: Any, scope: Scope) -> None:
        """Note that a column is looked for among those of a sub-select."""
        select = query.this if isinstance(query, exp.Subquery) else query
        if not isinstance(select, exp.Select) or len(select.expressions) != 1:
            return
        for part in scope.subquery_scopes:
            if part.expression is select:
                mine = self.plain(node.this, scope)
                other = self.plain(select.expressions[0].unalias(), part)
                if mine and other:
                    self.found.alike.append((mine, other))

    def compare(self, node: Any, left: Any, others: list[Any], scope: Scope) -> None:
        for right in others:
            one, other = self.plain(left, scope), self.plain(right, scope)
            if one and other:
                if isinstance(node, exp.EQ) and one != other:
                    self.found.alike.append((one, other))
                continue
            for side, constant in ((left, right), (right, left)):
                if constant.find(exp.Column, exp.Query, exp.AggFunc, exp.Window):
                    continue
                place = self.single(side, scope)
                if place is not None:
                    how = _how(node)
                    if side.find(exp.Year) or _extracts_year(side):
                        how = YEAR
                    self.found.compared.append((place, how, constant.sql(dialect=DEFAULT)))

    def groups(self, scope: Scope, lists: Mapping[str, Any]) -> None:
        """Note the public lists of the columns of GROUP BY."""
        select = scope.expression
        group = select.args.get("group")
        keys = list(group.expressions) if group is not None else []
        for key, (_, values) in zip(keys, lists.items(), strict=False):
            meant = key
            if isinstance(key, exp.Literal) and key.is_int:
                meant = select.expressions[int(key.name) - 1].unalias()
            place = self.single(meant, scope)
            if place is None:
                continue
            inner = self.source_expression(meant, scope)
            if inner.find(exp.Year) or _extracts_year(inner):
                self.found.years[place] = tuple(values)
            else:
                self.found.listed[place] = tuple(values)

    def plain(self, node: Any, scope: Scope) -> Place | None:
        """Return the column of a table that an expression is, if it is just that."""
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Column):
            return None
        found = self.meant(node, scope)
        if found is None or isinstance(found[0], str):
            return None if found is None else (found[0], found[1])
        return self.plain(*found)

    def single(self, node: Any, scope: Scope, depth: int = 8) -> Place | None:
        """Return the one column of a table that an expression is made of, if there is one."""
        if depth == 0 or node.find(exp.AggFunc, exp.Window, exp.Query):
            return None
        places = set()
        for column in node.find_all(exp.Column):
            found = self.meant(column, scope)
            if found is not None and not isinstance(found[0], str):
                found = self.single(found[0], found[1], depth - 1)
            places.add(found)
        return places.pop() if len(places) == 1 else None

    def source_expression(self, node: Any, scope: Scope) -> Any:
        """Return what a column of a sub-select stands for, at the bottom."""
        for _ in range(8):
            if not isinstance(node, exp.Column):
                return node
            found = self.meant(node, scope)
            if found is None or isinstance(found[0], str):
                return node
            node, scope = found
        return node

    def meant(self, column: Any, scope: Scope | None) -> Any:
        """Return a column of a table, or the expression of a sub-select with its scope."""
        while scope is not None:
            source = scope.sources.get(column.table)
            if isinstance(source, exp.Table):
                table = self.named._tables.get(source.name)
                return None if table is None else self.real(table, column.name)
            if isinstance(source, Scope):
                return self.selected(source, column.name)
            scope = scope.parent
        return None

    def real(self, table: str, name: str) -> Place | None:
        for column in self.named.schema.tables[table]:
            if self.named.normal(column) == name:
                return table, column
        return None

    def selected(self, scope: Scope, name: str) -> Any:
        for part in _sides(scope):
            listed = part.expression.expressions
            # A source may rename its columns: t (a, b).
            for expression in listed:
                if expression.alias_or_name == name:
                    return expression.unalias(), part
        return None


def _sides(scope: Scope) -> Iterator[Scope]:
    if isinstance(scope.expression, exp.Select):
        yield scope
    for part in scope.set_operation_scopes:
        yield from _sides(part)


def _how(node: Any) -> str:
    if isinstance(node, (*_ORDERED, exp.Between)):
        return ORDERED
    return LIKE if isinstance(node, _PATTERN) else EQUAL


def _extracts_year(node: Any) -> bool:
    return any(
        isinstance(one, exp.Extract) and one.name.lower() == "year"
        for one in node.find_all(exp.Extract)
    )
