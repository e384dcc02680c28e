"""SQLite, as small as it can be: tables whose columns hold what they say, and no views."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Any, ClassVar

import pyarrow

from tulle.sql.engines.base import Engine
from tulle.sql.schema.catalogue import Catalogue, Definition, Keys

_TYPES = {"INTEGER": "BIGINT", "INT": "BIGINT", "REAL": "DOUBLE", "TEXT": "TEXT"}


class ExactSum:
    """A sum that neither overflows, as SQLite's own, nor depends on the order of rows."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def step(self, value: Any) -> None:
        if value is not None:
            self.values.append(value)

    def finalize(self) -> Any:
        if not self.values:
            return None
        found = sum(sorted(self.values))
        return found if not isinstance(found, int) or abs(found) < 2**63 else float(found)


class SQLite(Engine):
    """A connection to SQLite."""

    dialect: ClassVar[str] = "sqlite"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.create_aggregate("SUM", 1, ExactSum)  # type: ignore[arg-type]
        for name, choose in (("GREATEST", max), ("LEAST", min)):
            connection.create_function(
                name, -1, lambda *v, c=choose: None if None in v else c(v), deterministic=True
            )
        connection.create_function("FLOOR", 1, lambda v: None if v is None else v // 1)

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return (sqlite3.Error,)

    def catalogue(self, only: Collection[str] | None = None) -> Catalogue:
        tables: dict[str, dict[str, str]] = {}
        for table in self._names("strict"):
            if only is None or table in only:
                listed = self._connection.execute(f"PRAGMA table_info('{table}')").fetchall()
                tables[table] = {name: _TYPES.get(kind, kind) for _, name, kind, *_ in listed}
        return tables

    def definitions(self) -> dict[str, Definition]:
        reason = "is not a STRICT table: its columns may hold values of any type."
        return {name: Definition(reason=reason) for name in self._names("NOT strict")}

    def _names(self, which: str) -> list[str]:
        listed = f"SELECT name FROM pragma_table_list WHERE schema = 'main' AND {which}"
        rows = self._connection.execute(f"{listed} AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
        return [name for (name,) in rows.fetchall()]

    def place(self, table: str) -> tuple[str, ...]:
        return ("main",)

    def keys(self) -> Keys:
        return Keys({}, {})

    def read(self, statement: str) -> pyarrow.Table:
        cursor = self._connection.execute(statement)
        rows = cursor.fetchall()
        names = [name for name, *_ in cursor.description]
        return pyarrow.table({n: [row[i] for row in rows] for i, n in enumerate(names)})

    def explain(self, statement: str) -> None:
        # Preparing a statement resolves its names; this looks at no row.
        self._connection.execute(f"EXPLAIN {statement}").fetchall()

    def close(self) -> None:
        self._connection.close()
