"""DuckDB: a file, a connection at hand, or CSV and Parquet files read in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tulle.core.errors import InputError, MissingExtraError
from tulle.sql.catalogue import Catalogue, Keys
from tulle.sql.engines.base import Engine

if TYPE_CHECKING:
    import pyarrow


class DuckDB(Engine):
    """An embedded DuckDB."""

    dialect: ClassVar[str] = "duckdb"

    def __init__(self, connection: Any, *, owned: bool) -> None:
        self._connection = connection
        self._owned = owned

    @classmethod
    def open(cls, path: str, tables: Mapping[str, Any]) -> DuckDB:
        """Open a file for reading, or without a path an empty database over these files.

        Raises:
            InputError: when the file cannot be opened.
        """
        duckdb = _import()
        if path and not Path(path).is_file():
            raise InputError(f"There is no DuckDB file {path!r}.")
        if path and tables:
            raise InputError("tables= goes with 'duckdb://', not with a DuckDB file.")
        try:
            connection = duckdb.connect(path or ":memory:", read_only=bool(path))
        except duckdb.Error as error:
            raise InputError(f"DuckDB cannot open {path!r}: {error}") from None
        engine = cls(connection, owned=True)
        for name, source in tables.items():
            engine._attach(name, Path(source))
        return engine

    def _attach(self, name: str, path: Path) -> None:
        pattern = str(path)
        if not path.exists() and "*" not in pattern:
            raise InputError(f"tables[{name!r}]: there is no file {pattern!r}.")
        quoted = '"' + name.replace('"', '""') + '"'
        literal = "'" + pattern.replace("'", "''") + "'"
        if ".parquet" in pattern:
            statement = f"CREATE VIEW {quoted} AS SELECT * FROM read_parquet({literal})"
        else:
            # Read once: parsing text again for every question would be slow.
            statement = f"CREATE TABLE {quoted} AS SELECT * FROM read_csv({literal})"
        try:
            self._connection.execute(statement)
        except self.errors as error:
            raise InputError(f"DuckDB cannot read {pattern!r}: {error}") from None

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return (_import().Error,)

    def catalogue(self) -> Catalogue:
        rows = self._connection.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = current_schema() AND table_catalog = current_database() "
            "ORDER BY table_name, ordinal_position"
        ).fetchall()
        tables: dict[str, dict[str, str]] = {}
        for table, column, kind in rows:
            tables.setdefault(table, {})[column] = kind
        return tables

    def keys(self) -> Keys:
        rows = self._connection.execute(
            "SELECT table_name, constraint_type, constraint_column_names, referenced_table, "
            "referenced_column_names FROM duckdb_constraints() "
            "WHERE schema_name = current_schema() AND database_name = current_database()"
        ).fetchall()
        primary, foreign = {}, {}
        for table, kind, columns, target, target_columns in rows:
            if kind == "PRIMARY KEY":
                primary[table] = tuple(columns)
            elif kind == "FOREIGN KEY":
                foreign[table, tuple(columns)] = (target, tuple(target_columns))
        return Keys(primary, foreign)

    def read(self, statement: str) -> pyarrow.Table:
        # A cursor of its own keeps concurrent questions apart.
        cursor = self._connection.cursor()
        try:
            return cursor.sql(statement).to_arrow_table()
        finally:
            cursor.close()

    def explain(self, statement: str) -> None:
        cursor = self._connection.cursor()
        try:
            cursor.execute(f"EXPLAIN {statement}")
        finally:
            cursor.close()

    def close(self) -> None:
        if self._owned:
            self._connection.close()


def _import() -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("duckdb", "sql", "A DuckDB database") from None
    return duckdb
