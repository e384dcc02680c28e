"""Whose a row is, in words that can be compared: which columns say it, and over which keys.

A *term* is a way to name an owner: columns of a source, and the way that leads on from them. An
order says whose it is by its customer's number; a line of it by the order's number, looked up in
the orders. Where a key is looked up, a row with that key is the same term by its own number. Two
rows are of one person, as far as the public schema can say, when conditions make a term of one
equal to a term of the other.

Nothing that is promised rests on this. It decides whether a part of a statement is *meant* to be
about one person's rows; the statement that runs compares the owners themselves besides, so that
where a key is not unique, or a comparison takes two people for one, their rows do not meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from sqlglot import exp

from tulle.sql.schema.schema import HERE, Schema, Tie

Term = tuple[tuple[str, ...], tuple[Any, ...]]
"""Columns of a source, and the keys to follow from there; none where they identify the owner."""

Whose = frozenset[Term]
Place = tuple[str, str]
"""A source, and a column of it."""


def whose(schema: Schema, table: str, tie: Tie, normal: Callable[[str], str]) -> Whose:
    """Return the terms by which rows of a table say that one of their owners is this one."""
    links = {link.name: link for link in schema.ownership(table).links}
    columns, place = tie.columns, tie.place
    way: tuple[Any, ...] = ()
    while place != HERE:
        link = links[place]
        way = ((link.table, link.key), columns, *way)
        columns, place = link.columns, link.start
    found: set[Term] = {(columns, way)}
    for key in _keys(schema, table):
        found.add((key, ((table, key), columns, *way)))
    return frozenset((tuple(map(normal, columns)), way) for columns, way in found)


def _keys(schema: Schema, table: str) -> set[tuple[str, ...]]:
    """Return the columns by which rows of a table are looked up: its key, and ends of paths."""
    keys = {schema.keys[table]} if schema.keys.get(table) else set()
    for listed in schema.owners.values():
        keys |= {s.key for owner in listed for s in owner.steps if s.table == table and s.key}
    return keys


class Equal:
    """Columns that conditions say are equal."""

    def __init__(self, conditions: Iterable[Any] = ()) -> None:
        self._parent: dict[Place, Place] = {}
        self.add(conditions)

    def add(self, conditions: Iterable[Any]) -> None:
        """Take more conditions, which hold together with the others."""
        for condition in conditions:
            if isinstance(condition, exp.EQ):
                one, other = condition.this.unnest(), condition.expression.unnest()
                if isinstance(one, exp.Column) and isinstance(other, exp.Column):
                    first, second = (self.root((side.table, side.name)) for side in (one, other))
                    if first != second:
                        self._parent[first] = second

    def root(self, place: Place) -> Place:
        """Return the column that stands for all that are equal to this one."""
        while place in self._parent:
            place = self._parent[place]
        return place

    def terms(self, source: str, found: Whose) -> frozenset[Any]:
        """Return the terms of a source's rows, written alike where columns are equal."""
        return frozenset(
            (tuple(self.root((source, name)) for name in columns), way) for columns, way in found
        )


def merged(terms: Sequence[tuple[str, frozenset[Any]]]) -> list[tuple[int, frozenset[Any]]]:
    """Return, for each (kind, terms), the number of its person and all that is known of them."""
    numbers = list(range(len(terms)))
    for place, (kind, mine) in enumerate(terms):
        for before, (other, theirs) in enumerate(terms[:place]):
            if kind == other and mine & theirs and numbers[place] != numbers[before]:
                old, new = numbers[place], numbers[before]
                numbers = [new if number == old else number for number in numbers]
    return [
        (
            number,
            frozenset().union(
                *(t for n, (_, t) in zip(numbers, terms, strict=True) if n == number)
            ),
        )
        for number in numbers
    ]


def renamed(terms: Iterable[Any], names: Mapping[Place, Sequence[str]]) -> Whose:
    """Return the terms all of whose columns are selected, under the names they have then."""
    return frozenset(
        (columns, way)
        for places, way in terms
        for columns in product(*(names.get(place, ())[:4] for place in places))
    )


def says_whose(found: Iterable[Whose], columns: Iterable[str]) -> bool:
    """Say whether some of these columns are enough to know each of the owners."""
    given = set(columns)
    return all(any(given >= set(names) for names, _ in terms) for terms in found)
