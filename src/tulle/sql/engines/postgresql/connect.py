"""The way to PostgreSQL: its URL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tulle.core import registry
from tulle.core.errors import InputError
from tulle.sql.engines.connector import Connector

if TYPE_CHECKING:
    from tulle.sql.engines.base import Engine, Size


@registry.register("engine", "url", "postgresql://")
@registry.register("engine", "url", "postgres://")
class PostgreSQLConnector(Connector):
    """How PostgreSQL is reached."""

    extra = "postgres"
    urls = ("postgresql://",)
    suffixes = ()
    handed_over = ""
    holds_tables = False
    remote = True

    def open(
        self, url: str, tables: Mapping[str, Any], types: Mapping[str, str], memory: Size | None
    ) -> Engine:
        from tulle.sql.engines.postgresql.engine import PostgreSQL

        return PostgreSQL.open(url, memory)

    def take(self, connection: Any) -> Engine:
        raise InputError("A PostgreSQL database is connected to by its URL.")

    def beside(self, url: str, folder: Path) -> str:
        return url
