"""Cells of contributions that nobody listed, counted and added up by the engine.

A cell is a key of two columns: it is told by the texts of both, and everyone keeps those with the
least salted digests, as :mod:`tulle.sql.keys.statements` says. What comes back is one row for each
cell that anybody keeps, never one for each person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tulle.core import cells, registry
from tulle.core.arrays import Wholes
from tulle.core.errors import QueryError
from tulle.sql.compile.engine_totals import SIGN, EngineTotals, owned_statement, read_steps
from tulle.sql.compile.fetched import readable
from tulle.sql.compile.owned_rows import Gone
from tulle.sql.expressions import kinds
from tulle.sql.expressions.kinds import Kind
from tulle.sql.keys.statements import (
    KEY,
    LONGEST,
    PEOPLE,
    can_be_key,
    rank_keys,
    read_key,
    whole_key,
    written_key,
)
from tulle.sql.schema.schema import Schema

if TYPE_CHECKING:
    from tulle.sql.engines.base import Engine

_CELL, _STEPS = f"{KEY}_cell", f"{KEY}_steps"


class CellSums(NamedTuple):
    """Cells in the order of their names. Custodian side."""

    rows: Any
    columns: Any
    """Names, as Arrow arrays of texts."""
    people: Wholes
    steps: Wholes


@registry.register("data", "database", "engine_totals")
class CellRows(EngineTotals):
    """Rows (row, column, weight) of a SELECT, whose cells nobody has to list. Custodian side."""

    def __init__(self, engine: Engine, schema: Schema, tree: Any, gone: Gone = None) -> None:
        self._named: tuple[str, tuple[Kind, ...]] | None = None
        self._parts = schema, tree.copy(), gone
        super().__init__(engine, schema, tree, gone)

    def name_cells(self) -> None:
        """Say that there is no grid: cells are told by the texts of their rows and columns.

        Raises:
            QueryError: when values of these types cannot be found.
        """
        known: list[Kind] = []

        def texts(expressions: list[Any], found: list[Kind]) -> list[tuple[Any, str]]:
            for what, kind in zip(("row", "column"), found, strict=True):
                if not can_be_key(kind):
                    raise QueryError(
                        f"The {what} of the SELECT is of the type {kind.stored or kind.name}, by "
                        "which cells cannot be found. Write CAST(... AS TEXT), or declare the "
                        "grid that everyone may know with rows= and columns=."
                    )
            known.extend(found)
            pairs = enumerate(zip(expressions, found, strict=True))
            written = [(written_key(e, k, self._dialect), f"{KEY}_{at}") for at, (e, k) in pairs]
            return [*written, (whole_key(expressions, found, self._dialect), _CELL)]

        schema, tree, gone = self._parts
        text, _ = owned_statement(schema, tree.copy(), gone, texts)
        self._named = text, tuple(known)
        self._engine.check(self.kept_statement(1, 0, 1, "0" * 32))

    def kept(self, most: int, exponent: int, bound: int, salt: str) -> CellSums:
        """Return the people and steps of each cell, everyone with at most so many of their cells.

        Which cells somebody keeps depends on their own rows and on the salt alone. Weights are cut
        to ``bound`` steps of two to the power ``exponent``.
        """
        assert self._named is not None
        found = self._engine.fetch(self.kept_statement(most, exponent, bound, salt))
        for place, kind in enumerate(self._named[1]):
            name = f"{KEY}_{place}"
            at = found.schema.get_field_index(name)
            found = found.set_column(at, name, _read(found.column(name), kind))
        # What cannot be read is no cell: whether it is depends on itself alone.
        found = found.drop_null().sort_by([(f"{KEY}_0", "ascending"), (f"{KEY}_1", "ascending")])
        return CellSums(
            found.column(f"{KEY}_0"),
            found.column(f"{KEY}_1"),
            np.asarray(found.column(PEOPLE), dtype=np.int64),
            read_steps(found.column(_STEPS)),
        )

    def kept_statement(self, most: int, exponent: int, bound: int, salt: str) -> str:
        """Return the statement that counts people and adds up steps by cell."""
        assert self._named is not None
        owned, known = self._named
        names = [f"{KEY}_{place}" for place in range(2)]
        weight, finite = self._weight()
        conditions = [finite, "o.i IS NOT NULL"]
        for name, kind in zip(names, known, strict=True):
            conditions += [f"o.{name} <> ''", f"LENGTH(o.{name}) <= {LONGEST}"]
            if kind.name == kinds.DOUBLE:
                conditions.append(f"LOWER(o.{name}) <> 'nan'")
        digest = f"md5('{salt}' || o.{_CELL})"
        inside = (
            f"SELECT o.i AS i, {digest} AS h, {', '.join(f'o.{name}' for name in names)}, "
            f"{weight} AS w FROM ({owned}) o WHERE {' AND '.join(conditions)}"
        )
        shown = ", ".join(f"MAX({name}) AS {name}" for name in names)
        # By digest and not by text: should two texts have one, a person counts once all the same.
        entries = f"SELECT i, h, {shown}, {self._summed} AS w FROM ({inside}) f GROUP BY i, h"
        size = self.in_steps(exponent, float(bound), f"CAST({float(bound)!r} AS {self._double})")
        sized = (
            f"SELECT e.h AS h, {', '.join(f'e.{name}' for name in names)}, {SIGN} AS z, "
            f"{size} AS s FROM ({rank_keys(entries, salt, self._dialect)}) e WHERE e.r <= {most}"
        )
        return (
            f"SELECT {shown}, COUNT(*) AS {PEOPLE}, {self.steps_added()} AS {_STEPS} "
            f"FROM ({sized}) t GROUP BY h"
        )


def _read(written: Any, kind: Kind) -> Any:
    """Return the names that texts of the engine say, written as names in memory are."""
    if kind.name == kinds.TEXT:
        return readable(written)
    return cells.texts([read_key(one, kind)[1] for one in written.to_pylist()], "cell")
