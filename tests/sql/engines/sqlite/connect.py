"""Ways to SQLite: a file, or a connection at hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tulle.core import registry
from tulle.core.errors import InputError
from tulle.sql.engines.connector import Connector

if TYPE_CHECKING:
    from tulle.sql.engines.base import Engine, Size


@registry.register("engine", "url", "sqlite://")
@registry.register("engine", "connection", "sqlite3")
class SQLiteConnector(Connector):
    """How SQLite is reached."""

    extra = "sql"
    urls = ("sqlite://",)
    suffixes = (".sqlite",)
    handed_over = "SQLite connections"
    holds_tables = False
    remote = False

    def open(
        self, url: str, tables: Mapping[str, Any], types: Mapping[str, str], memory: Size | None
    ) -> Engine:
        if tables or memory is not None:
            raise InputError("SQLite is opened as it is: leave tables= and memory= out.")
        return self.take(
            sqlite3.connect(f"file:{url.removeprefix('sqlite:///')}?mode=ro", uri=True)
        )

    def take(self, connection: Any) -> Engine:
        from tests.sql.engines.sqlite.engine import SQLite

        return SQLite(connection)

    def beside(self, url: str, folder: Path) -> str:
        return f"sqlite:///{folder / url.removeprefix('sqlite:///')}"
