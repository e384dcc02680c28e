"""From a checked statement to forms: every sub-select with the participants that its rows need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from tulle.core.errors import QueryError
from tulle.sql.compile.derivations import (
    Form,
    Namer,
    Slot,
    alias,
    column,
    identify,
    intersect,
    select,
    source_of,
    union,
)
from tulle.sql.compile.names import Named
from tulle.sql.compile.owned_rows import Gone, identifier, owned_rows, values_of
from tulle.sql.question.check import conjuncts, is_semi_join
from tulle.sql.schema.ranges import range_of
from tulle.sql.schema.schema import HERE, INTEGER, Schema

Views = Mapping[str, tuple[Any, Any]]
"""What WITH has named so far: each body, with the names that it sees itself."""


@dataclass
class Block:
    """Sources and conditions of one SELECT, before anything is chosen from them."""

    items: list[tuple[str, Form]] = field(default_factory=list)
    """What every tuple is made of."""

    witnesses: list[tuple[str, Form]] = field(default_factory=list)
    """What only has to exist: rows of EXISTS and IN. They give ways, not tuples."""

    conditions: list[Any] = field(default_factory=list)

    @property
    def keyed(self) -> bool:
        """Whether a tuple can come about in several ways."""
        return bool(self.witnesses) or any(form.keys is not None for _, form in self.items)


class Rewriter:
    """Turns parts of one statement, in which every source has a name of its own, into forms."""

    def __init__(self, schema: Schema, named: Named, gone: Gone = None) -> None:
        self.schema = schema
        self.named = named
        self.gone = gone
        self.namer = Namer()

    def rows(self, tree: Any, views: Views) -> Form:
        """Return the form of anything that gives rows."""
        views = self.views(tree, views)
        if isinstance(tree, exp.Subquery):
            return self.rows(tree.this, views)
        if isinstance(tree, exp.Union):
            sides = [self.rows(tree.this, views), self.rows(tree.expression, views)]
            self._check_widths(sides)
            distinct = bool(tree.args.get("distinct"))
            return union(sides, self.schema, self.namer, distinct=distinct)
        if isinstance(tree, exp.Intersect):
            left, right = self.rows(tree.this, views), self.rows(tree.expression, views)
            self._check_widths([left, right])
            return intersect(left, right, self.namer)
        if not isinstance(tree, exp.Select):
            raise QueryError(
                f"{tree.key.upper()} is not supported: rows come from SELECT and UNION."
            )
        wanted = [(e.unalias(), e.alias_or_name) for e in tree.expressions]
        return self.project(
            self.block(tree, views), wanted, distinct=tree.args.get("distinct") is not None
        )

    def views(self, tree: Any, views: Views) -> Views:
        """Return the views with those that this tree's WITH adds."""
        with_clause = tree.args.get("with_")
        if with_clause is None:
            return views
        known = dict(views)
        for cte in with_clause.expressions:
            # A body sees the names before it, not its own: WITH t AS (SELECT ... FROM t) is fine.
            known[cte.alias] = (cte.this, dict(known))
        return known

    def block(self, tree: exp.Select, views: Views) -> Block:
        """Return the sources and conditions of a SELECT, with EXISTS and IN as witnesses."""
        block = Block()
        self._gather(tree, views, block, block.items)
        return block

    def _gather(
        self, tree: exp.Select, views: Views, block: Block, place: list[tuple[str, Form]]
    ) -> None:
        start = tree.args.get("from_")
        joins = tree.args.get("joins") or []
        for source in [*([start.this] if start else []), *(join.this for join in joins)]:
            place.append((source.alias_or_name, self._source(source, views)))
        for join in joins:
            block.conditions.extend(conjuncts(join.args.get("on")))
        where = tree.args.get("where")
        for condition in conjuncts(where.this if where else None):
            if is_semi_join(condition):
                self._witness(condition, views, block)
            else:
                block.conditions.append(condition)

    def _source(self, source: Any, views: Views) -> Form:
        if isinstance(source, exp.Subquery):
            return self.rows(source, views)
        if source.name in views:
            body, seen = views[source.name]
            return self.rows(body.copy(), seen)
        return self.table(source)

    def _witness(self, condition: Any, views: Views, block: Block) -> None:
        """Add EXISTS (...) or ... IN (...): its rows are ways in which the outer tuple is there."""
        inner = condition.args["query"] if isinstance(condition, exp.In) else condition.this
        while isinstance(inner, exp.Subquery):
            inner = inner.this
        if isinstance(inner, exp.Select):
            views = self.views(inner, views)
            self._gather(inner, views, block, block.witnesses)
            found = inner.expressions[0].unalias()
            width = len(inner.expressions)
        else:
            form = self.rows(inner, views)
            name = self.namer.fresh()
            block.witnesses.append((name, form))
            found, width = column(form.values[0], name), len(form.values)
        if isinstance(condition, exp.In):
            if width != 1:
                raise QueryError("IN (SELECT ...) must select one column.")
            block.conditions.append(exp.EQ(this=condition.this, expression=found))

    def table(self, source: exp.Table) -> Form:
        """Return the rows of a table with their owners; rows without an owner are left out."""
        table = self.named.table(source)
        name = source.alias_or_name
        values = self.named.used(name)
        sources, conditions = owned_rows(self.schema, table, self.gone)
        slots, owners, origins = [], [], []
        for tie in self.schema.ownership(table).ties:
            slots.append(Slot(tie.entity, self.namer.fresh()))
            owners.append(alias(identifier(self.schema, tie), slots[-1].name))
            copied = tie.place == HERE and self.schema.entity_class(tie.entity) == INTEGER
            origins.append((name, self.named.normal(tie.columns[0])) if copied else None)
        ranges = self.named.ranges(table)
        query = select([*values_of(values, ranges), *owners], sources, conditions)
        return Form(query, tuple(values), tuple(slots), origins=tuple(origins), ranges=ranges)

    def project(
        self,
        block: Block,
        wanted: Sequence[tuple[Any, str]],
        *,
        distinct: bool,
        conditions: Sequence[Any] = (),
    ) -> Form:
        """Return the wanted expressions of a block's tuples, with their owners."""
        items = block.items
        if block.keyed and not distinct:
            items = [(n, identify(f, self.named.used(n), self.namer)) for n, f in items]
        everything = [*items, *block.witnesses]
        kept = _Repetitions(block.conditions, [f.origins for _, f in everything])
        slots, owners = [], []
        for name, form in everything:
            origins = form.origins or (None,) * len(form.slots)
            for slot, origin in zip(form.slots, origins, strict=True):
                if kept.is_new(slot.entity, origin):
                    slots.append(Slot(slot.entity, self.namer.fresh()))
                    owners.append(alias(column(slot.name, name), slots[-1].name))
        values = tuple(name for _, name in wanted)
        keys: list[str] = []
        chosen = [*(alias(e, name) for e, name in wanted), *owners]
        times = None
        if block.keyed and not distinct:
            for name, form in items:
                for key in form.keys or ():
                    keys.append(self.namer.fresh())
                    chosen.append(alias(column(key, name), keys[-1]))
            copies = [column(form.times, name) for name, form in items if form.times]
            if copies:
                times = self.namer.fresh()
                # As doubles: a product of many counts may not fit a whole number.
                copies = [exp.cast(copy, "DOUBLE") for copy in copies]
                product = copies[0]
                for factor in copies[1:]:
                    product = exp.Mul(this=product, expression=factor)
                chosen.append(alias(product, times))
        query = select(
            chosen,
            [source_of(form.query, name) for name, form in everything],
            [*block.conditions, *conditions],
            distinct=distinct,
        )
        known = {(n, value): r for n, form in everything for value, r in form.ranges.items()}
        ranges = {name: range_of(expression, known) for expression, name in wanted}
        if distinct:
            return Form(query, values, tuple(slots), values, ranges=ranges)
        named = tuple(keys) if block.keyed else None
        return Form(query, values, tuple(slots), named, times, ranges=ranges)

    def _check_widths(self, sides: Sequence[Form]) -> None:
        if len({len(side.values) for side in sides}) != 1:
            widths = " and ".join(str(len(side.values)) for side in sides)
            raise QueryError(f"The sides of a UNION or INTERSECT have {widths} columns.")


class _Repetitions:
    """Knows which owner columns are equal because a condition says so; each is needed once.

    Only conditions between two whole-number owner columns count: equality with anything else (a
    float, a text) can hold for two different owners.
    """

    def __init__(self, conditions: Sequence[Any], origins: Sequence[Sequence[Any]]) -> None:
        known = {origin for listed in origins for origin in listed if origin is not None}
        self._parent: dict[tuple[str, str], tuple[str, str]] = {}
        self._seen: set[tuple[str, tuple[str, str]]] = set()
        for condition in conditions:
            if not isinstance(condition, exp.EQ):
                continue
            left, right = condition.this, condition.expression
            if isinstance(left, exp.Column) and isinstance(right, exp.Column):
                one, other = (left.table, left.name), (right.table, right.name)
                if one in known and other in known:
                    self._parent[self._root(one)] = self._root(other)

    def _root(self, place: tuple[str, str]) -> tuple[str, str]:
        while place in self._parent and self._parent[place] != place:
            place = self._parent[place]
        return place

    def is_new(self, entity: str, origin: tuple[str, str] | None) -> bool:
        if origin is None:
            return True
        found = (entity, self._root(origin))
        if found in self._seen:
            return False
        self._seen.add(found)
        return True
