"""Whether each joined row is about one participant, as far as the public schema can say.

The rows of a customer's orders, joined with the orders' lines, belong to that customer: the lines'
owner is found over the very key that the join compares. This is worked out on the names alone. If
a key on a path is not unique, two owners may meet in a row all the same; whoever relies on this
must be private then too (:mod:`tulle.relations.mechanisms.single_owner` is: it cuts such rows).
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from tulle.sql.compile.names import Named
from tulle.sql.question.check import conjuncts
from tulle.sql.schema.owners import Columns
from tulle.sql.schema.schema import HERE, Link, Ownership, Schema, Tie

Place = tuple[str, str]
"""A source in FROM, and a column of it."""


def needs_one(named: Named, schema: Schema) -> bool:
    """Say whether all owners of a joined row are one; False for anything but a plain join."""
    tree = named.tree
    if tree.find(exp.Subquery, exp.CTE, exp.SetOperation, exp.Exists) or _asks_within(tree):
        return False
    tables = {source.alias_or_name: named.table(source) for source in tree.find_all(exp.Table)}
    equal = _Equal(tree)
    reader = _Owners(named, tables, equal)
    found = {
        (tie.entity, *(reader.owner(source, *place) for place in _places(schema, table, tie)))
        for source, table in tables.items()
        for tie in schema.ownership(table).ties
    }
    return len(found) == 1


def _asks_within(tree: Any) -> bool:
    return any(found.args.get("query") is not None for found in tree.find_all(exp.In))


def _places(schema: Schema, table: str, tie: Tie) -> list[tuple[tuple[Link, ...], Columns]]:
    """Return the ways to what identifies an owner, each with its columns: also to the time."""
    ownership = schema.ownership(table)
    found = [(_way(ownership, tie.place), tie.columns)]
    if schema.period is not None and tie.time is not None:
        found.append((_way(ownership, tie.time[0]), (tie.time[1],)))
    return found


def _way(ownership: Ownership, place: str) -> tuple[Link, ...]:
    """Return the joins that lead from a row to the one of this name, in order."""
    links = {link.name: link for link in ownership.links}
    way: list[Link] = []
    while place != HERE:
        way.insert(0, links[place])
        place = links[place].start
    return tuple(way)


class _Equal:
    """Columns that conditions joined by AND say are equal."""

    def __init__(self, tree: Any) -> None:
        self._parent: dict[Place, Place] = {}
        where = tree.args.get("where")
        conditions = [where.this] if where else []
        conditions += [
            join.args["on"] for join in tree.args.get("joins") or [] if "on" in join.args
        ]
        for condition in (part for whole in conditions for part in conjuncts(whole)):
            left, right = condition.args.get("this"), condition.args.get("expression")
            if (
                isinstance(condition, exp.EQ)
                and isinstance(left, exp.Column)
                and isinstance(right, exp.Column)
            ):
                one, other = self.root((left.table, left.name)), (right.table, right.name)
                self._parent[one] = self.root(other)

    def root(self, place: Place) -> Place:
        """Return the column that stands for all that are equal to this one."""
        while self._parent.get(place, place) != place:
            place = self._parent[place]
        return place


class _Owners:
    """Writes an owner of a source's rows so that equal owners are written alike."""

    def __init__(self, named: Named, tables: dict[str, str], equal: _Equal) -> None:
        self._named, self._tables, self._equal = named, tables, equal

    def owner(self, source: str, way: tuple[Link, ...], columns: tuple[str, ...]) -> Any:
        """Follow the way through sources that are joined anyway, as far as it goes."""
        if not way:
            return self._places(source, columns)
        first, rest = way[0], way[1:]
        start = self._places(source, first.columns)
        for other, table in self._tables.items():
            if table == first.table and self._places(other, first.key) == start:
                return self.owner(other, rest, columns)
        steps = tuple((link.columns, link.table, link.key) for link in rest)
        return start, first.table, first.key, steps, columns

    def _places(self, source: str, columns: tuple[str, ...]) -> tuple[Place, ...]:
        return tuple(self._equal.root((source, self._named.normal(name))) for name in columns)
