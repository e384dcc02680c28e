"""Ways to Spark: a master to start a session on, or a session at hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tulle.core import registry
from tulle.core.errors import InputError
from tulle.sql.engines.connector import Connector

if TYPE_CHECKING:
    from tulle.sql.engines.base import Engine, Size


@registry.register("engine", "url", "spark://")
@registry.register("engine", "url", "local")
@registry.register("engine", "url", "local-cluster")
@registry.register("engine", "connection", "pyspark")
class SparkConnector(Connector):
    """How Spark is reached."""

    extra = "spark"
    urls = ("spark://", "local[...]")
    suffixes = ()
    handed_over = "Spark sessions"
    holds_tables = True
    remote = True

    def open(
        self, url: str, tables: Mapping[str, Any], types: Mapping[str, str], memory: Size | None
    ) -> Engine:
        from tulle.sql.engines.frames import is_path
        from tulle.sql.engines.spark.engine import Spark

        frames = sorted(name for name, source in tables.items() if not is_path(source))
        if frames:
            raise InputError(
                f"tables[{frames[0]!r}] is a frame; frames go with Database.from_tables."
            )
        return Spark.open(url, tables, types, memory)

    def take(self, connection: Any) -> Engine:
        from tulle.sql.engines.spark.engine import Spark

        return Spark(connection, owned=False)

    def beside(self, url: str, folder: Path) -> str:
        return url
