"""Questions about keys that were found: each is asked of its groups as if the list were public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tulle.core.query import Query
from tulle.core.table import LabelledTable
from tulle.sql.compile.gather import gather
from tulle.sql.compile.owned_rows import Gone
from tulle.sql.compile.rewrite import Rewritten, rewrite
from tulle.sql.compile.value_rows import ValueRows, value_rows
from tulle.sql.data import Database
from tulle.sql.expressions.kinds import Kind
from tulle.sql.keys.question import DiscoveredTable, Discovery
from tulle.sql.keys.statements import blank_groups, key_number, numbered, order_of, read_key
from tulle.sql.queries import GroupedSqlCount, GroupedSqlSum, SqlQuery
from tulle.sql.question.parse import not_too_deep
from tulle.sql.schema.schema import Schema
from tulle.sql.tables.purchases import Purchases
from tulle.sql.tables.quantiles import SqlQuantile
from tulle.sql.tables.question import SqlTable
from tulle.sql.tables.select_list import SelectList, read_select_list


@dataclass(frozen=True)
class FoundKeys:
    """Keys in the order of their own values, and how the engine tells them."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    salt: str
    digests: tuple[str, ...]
    columns: tuple[tuple[Any, ...], ...]
    """The values of each key column."""
    other: str | None
    """What the row of all other keys is called, or None where there is none."""

    @classmethod
    def of(
        cls,
        names: tuple[str, ...],
        kinds: tuple[Kind, ...],
        salt: str,
        digests: Sequence[str],
        texts: Sequence[Sequence[str | bytes | None]],
        other: str | None,
    ) -> tuple[FoundKeys, list[int]]:
        """Return the keys in canonical order, and which of those given each of them is.

        What cannot be read, or is called like the row of the rest, is not a key: whether a key is
        depends on itself alone.
        """
        fine = np.ones(len(digests), dtype=np.bool_)
        read: list[list[Any]] = []
        for column, kind in zip(texts, kinds, strict=True):
            read.append([])
            for place, written in enumerate(column):
                good, value = read_key(written, kind)
                read[-1].append(value)
                fine[place] &= good and not (len(read) == 1 and value == other is not None)
        kept: list[int] = np.flatnonzero(fine).tolist()
        kept.sort(key=lambda place: (order_of([part[place] for part in read]), digests[place]))
        columns = tuple(tuple(part[place] for place in kept) for part in read)
        ordered = tuple(digests[place] for place in kept)
        return cls(names, kinds, salt, ordered, columns, other), kept

    @property
    def size(self) -> int:
        """How many groups there are."""
        return len(self.digests) + (self.other is not None)

    @property
    def shown(self) -> tuple[tuple[Any, ...], ...]:
        """The values of each key column with the row of the rest, which has a name in the first."""
        if self.other is None:
            return self.columns
        rest = (self.other, *(None for _ in self.columns[1:]))
        return tuple((*column, last) for column, last in zip(self.columns, rest, strict=True))

    def written(self, text: str, dialect: str) -> str:
        """Return a statement with the numbers of these groups in place of the keys' texts."""
        return numbered(text, dialect, self.salt, self.digests, other=self.other is not None)


class _Keyed(SqlQuery):
    """A question about found keys; its groups are their numbers."""

    keys: FoundKeys
    label: str

    def _rewrite(self, schema: Schema, gone: Gone = None) -> Rewritten:
        with not_too_deep():
            found = rewrite(
                self.tree,
                blank_groups(self.keys.names),
                schema,
                gone,
                self.functions,
                key_number(self.keys.kinds, schema.dialect),
            )
        text = self.keys.written(found.text, schema.dialect)
        return replace(found, text=text, groups=self.keys.size, others=[])

    def _bound(self, schema: Schema) -> Any:
        return replace(self, bound=self._rewrite(schema), resolved=self.label)

    def truth(self, dataset: Database) -> Any:
        """Return the exact answer for each key. Custodian side."""
        rewritten = self.rewrite(dataset._schema, dataset._gone)
        found = gather(rewritten, dataset._engine.fetch(rewritten.text)).relations
        totals = [one.total for one in found]
        return np.rint(totals).astype(np.int64) if self.integral else np.array(totals)

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True)
class KeyedCount(_Keyed, GroupedSqlCount):
    """COUNT for each of some found keys."""

    keys: FoundKeys = field(default=None, compare=False, repr=False)  # type: ignore[assignment]
    label: str = ""

    __str__ = _Keyed.__str__


@dataclass(frozen=True)
class KeyedSum(_Keyed, GroupedSqlSum):
    """SUM for each of some found keys."""

    keys: FoundKeys = field(default=None, compare=False, repr=False)  # type: ignore[assignment]
    label: str = ""

    __str__ = _Keyed.__str__


@dataclass(frozen=True)
class KeyedQuantile(SqlQuantile):
    """A quantile for each of some found keys."""

    keys: FoundKeys = field(default=None, compare=False, repr=False)  # type: ignore[assignment]
    label: str = ""

    def rewrite(self, schema: Schema, gone: Any = None) -> ValueRows:
        """Return the statement that gives the values with their owners and the numbers of keys."""
        if self.bound is not None and self.bound.schema is schema and gone is None:
            return self.bound
        found = value_rows(
            self.tree,
            blank_groups(self.keys.names),
            schema,
            gone,
            self.functions,
            key_number(self.keys.kinds, schema.dialect),
        )
        text = self.keys.written(found.text, schema.dialect)
        return replace(found, text=text, groups=self.keys.size)

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True)
class FoundTable(SqlTable):
    """A table of keys that were found."""

    keys: FoundKeys = field(default=None, compare=False, repr=False)  # type: ignore[assignment]
    known: tuple[str, ...] = ()
    """What of it is known from finding the keys, and is not bought again."""

    @cached_property
    def chosen(self) -> SelectList:
        """The statement taken apart."""
        return read_select_list(
            self.tree, blank_groups(self.keys.names), self.functions, self.dialect
        )

    def _keys(self, kept: Sequence[int] | None = None) -> list[tuple[str, Any, list[Any]]]:
        columns = [list(column) for column in self.keys.shown]
        if kept is not None:
            columns = [[column[row] for row in kept] for column in columns]
        return [
            (name, meant, values)
            for (name, meant), values in zip(self.chosen.keys, columns, strict=True)
        ]

    def parts(self) -> tuple[Query, ...]:
        """Return what is bought."""
        return tuple(leaf.query for leaf in self._leaves().values() if leaf.name not in self.known)

    def spreads(self, values: Any, deviations: Any) -> list[float]:
        """Return what one deviation of each part does to the columns, by public facts."""
        found = zip(self._leaves(), super().spreads(None, None), strict=True)
        return [spread for name, spread in found if name not in self.known]

    def empty(self) -> LabelledTable:
        """Return the table without rows, where no key was found."""
        names = [name for name, _ in self.chosen.columns]
        columns = [*(name for name in self.keys.names)]
        columns += [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
        return LabelledTable({name: [] for name in columns}, keys=self.keys.names)


def table_of(query: DiscoveredTable, found: Discovery, keys: FoundKeys) -> FoundTable:
    """Return the table to buy for keys that were found; what is shared is in it as well."""
    blank = found.blank
    assert blank.bought is not None
    groups = (("key", tuple(range(keys.size))),)
    leaves = tuple(
        replace(leaf, query=_keyed(leaf.query, groups, keys, leaf.name))
        for leaf in blank.bought.leaves
    )
    bought = Purchases(leaves, blank.bought.recipes, blank.bought.schema)
    return FoundTable(
        query.text,
        query.dialect,
        groups,
        query.functions,
        bought,
        blank.resolved,
        keys,
        found.shared,
    )


def _keyed(query: Query, groups: Any, keys: FoundKeys, label: str) -> Query:
    if isinstance(query, SqlQuantile):
        assert query.bound is not None
        schema = query.bound.schema
        made = KeyedQuantile(
            query.text, query.dialect, groups, query.functions, query.at, None, keys, label
        )
        return made.on_schema(schema)
    assert isinstance(query, SqlQuery)
    assert query.bound is not None
    kind = KeyedCount if query.integral else KeyedSum
    asked = kind(
        query.text,
        query.dialect,
        groups,
        query.functions,
        query.statement,
        keys=keys,
        label=label,
    )
    bound: Query = asked._bound(query.bound.schema)
    return bound
