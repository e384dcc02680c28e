"""Ways to DuckDB: a file, files and frames held in memory, a connection at hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tulle.core import registry
from tulle.sql.engines.connector import Connector

if TYPE_CHECKING:
    from tulle.sql.engines.base import Engine, Size


@registry.register("engine", "url", "duckdb://")
@registry.register("engine", "connection", "duckdb")
@registry.register("engine", "connection", "_duckdb")
class DuckDBConnector(Connector):
    """How DuckDB is reached."""

    extra = "sql"
    urls = ("duckdb://",)
    suffixes = (".duckdb", ".ddb", ".db")
    handed_over = "DuckDB connections"
    holds_tables = True
    remote = False

    def open(
        self, url: str, tables: Mapping[str, Any], types: Mapping[str, str], memory: Size | None
    ) -> Engine:
        from tulle.sql.engines.duckdb.engine import DuckDB

        rest = url.removeprefix("duckdb://")
        return DuckDB.open(rest.removeprefix("/") if rest else "", tables, types, memory)

    def take(self, connection: Any) -> Engine:
        from tulle.sql.engines.duckdb.engine import DuckDB

        return DuckDB(connection, owned=False)

    def beside(self, url: str, folder: Path) -> str:
        name = url.removeprefix("duckdb:///")
        return f"duckdb:///{folder / name}" if name != url else url
