"""Spark: a session at hand, or a master to start one on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from tulle.core.errors import InputError, MissingExtraError
from tulle.sql.catalogue import Catalogue, Keys
from tulle.sql.engines.base import Engine

if TYPE_CHECKING:
    import pyarrow


class Spark(Engine):
    """A Spark session; the tables and temporary views of its current database."""

    dialect: ClassVar[str] = "spark"

    def __init__(self, session: Any, *, owned: bool) -> None:
        self._session = session
        self._owned = owned

    @classmethod
    def open(cls, master: str, tables: Mapping[str, Any]) -> Spark:
        """Start a session on this master, with a view for each Parquet or CSV path in ``tables``.

        Raises:
            InputError: when the session cannot be started or a path cannot be read.
        """
        pyspark = _import()
        try:
            running = pyspark.sql.SparkSession.getActiveSession() is not None
            session = (
                pyspark.sql.SparkSession.builder.master(master)
                .appName("tulle")
                .config("spark.ui.enabled", "false")
                .getOrCreate()
            )
        except Exception as error:  # noqa: BLE001 - a missing Java shows in many ways
            raise InputError(
                f"Spark cannot be started on {master!r}: {type(error).__name__}. It needs Java 17."
            ) from None
        # A session that was running before is not ours to stop.
        engine = cls(session, owned=not running)
        for name, path in tables.items():
            engine._attach(name, str(path))
        return engine

    def _attach(self, name: str, path: str) -> None:
        reader = self._session.read
        try:
            if ".parquet" in path:
                frame = reader.parquet(path)
            else:
                frame = reader.csv(path, header=True, inferSchema=True)
            frame.createOrReplaceTempView(name)
        except self.errors as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"tables[{name!r}]: Spark cannot read {path!r}: {reason}") from None

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        _import()
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        return (PySparkException, Py4JError)

    def catalogue(self) -> Catalogue:
        names = [row["tableName"] for row in self._session.sql("SHOW TABLES").collect()]
        return {
            name: {
                field.name: field.dataType.simpleString()
                for field in self._session.table(_quote(name)).schema.fields
            }
            for name in names
        }

    def keys(self) -> Keys:
        return Keys({}, {})

    def read(self, statement: str) -> pyarrow.Table:
        return self._session.sql(statement).toArrow()

    def explain(self, statement: str) -> None:
        # A Spark frame is lazy: making it resolves names and types and reads nothing.
        _ = self._session.sql(statement).schema

    def close(self) -> None:
        if self._owned:
            self._session.stop()


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _import() -> Any:
    try:
        import pyspark.sql
    except ImportError:
        raise MissingExtraError("pyspark", "spark", "A Spark database") from None
    return pyspark
