"""PostgreSQL through ADBC: rows come back as Arrow, without a detour through Python values."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar

from tulle.core.errors import InputError, MissingExtraError, raise_alone
from tulle.sql.engines.base import Engine
from tulle.sql.schema.catalogue import Catalogue, Keys

if TYPE_CHECKING:
    import pyarrow

_COLUMNS = """
SELECT c.relname AS t, a.attname AS c, format_type(a.atttypid, a.atttypmod) AS k
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = {schema} AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY c.relname, a.attnum
"""

_SCHEMA = "(SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = '{name}')"

_KEYS = """
SELECT k.contype::text AS kind, c.relname AS t, a.attname AS c, f.relname AS ft, fa.attname AS fc,
       k.oid::bigint AS id
FROM pg_catalog.pg_constraint k
JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
CROSS JOIN LATERAL unnest(k.conkey) WITH ORDINALITY AS n(column_number, place)
JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = n.column_number
LEFT JOIN pg_catalog.pg_class f
       ON f.oid = k.confrelid AND f.relnamespace = c.relnamespace
LEFT JOIN pg_catalog.pg_attribute fa ON fa.attrelid = k.confrelid AND fa.attnum = k.confkey[n.place]
WHERE k.contype IN ('p', 'f') AND c.relnamespace = {schema}
ORDER BY k.oid, n.place
"""


class PostgreSQL(Engine):
    """A PostgreSQL server; the tables of the connection's current schema."""

    dialect: ClassVar[str] = "postgres"
    loggers: ClassVar[tuple[str, ...]] = ("adbc_driver_manager", "adbc_driver_postgresql")

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        found = self.read("SELECT current_schema()::text AS name").to_pylist()[0]["name"]
        if found is None:
            raise InputError("PostgreSQL: the connection has no current schema; set search_path.")
        self._schema: str = found
        self._listed = _SCHEMA.format(name=found.replace("'", "''"))

    @classmethod
    def open(cls, url: str) -> PostgreSQL:
        """Connect for reading.

        Raises:
            InputError: when the server cannot be reached; the URL, which may hold a password,
                is not shown.
        """
        driver = _import()
        try:
            connection = driver.connect(url, autocommit=True)
            engine = cls(connection)
            with connection.cursor() as cursor:
                cursor.execute("SET default_transaction_read_only = on")
                # Notices go to standard error, and may be about a row.
                cursor.execute("SET client_min_messages = error")
                # Conditions stand apart from joins in what is run, so the planner must be free to
                # order many sources; by default it keeps the written order beyond eight.
                cursor.execute("SET join_collapse_limit = 24")
                cursor.execute("SET from_collapse_limit = 24")
        except driver.Error as error:
            # Nothing was read yet: its words are about the server, and the URL is taken out.
            reason = str(error).replace(url, "...").strip().splitlines()[0]
            raise_alone(InputError(f"PostgreSQL cannot be reached: {reason}"))
        return engine

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return (_import().Error,)

    def catalogue(self, only: Collection[str] | None = None) -> Catalogue:
        tables: dict[str, dict[str, str]] = {}
        for row in self.read(_COLUMNS.format(schema=self._listed)).to_pylist():
            if only is None or row["t"] in only:
                tables.setdefault(row["t"], {})[row["c"]] = row["k"]
        return tables

    def place(self, table: str) -> tuple[str, ...]:
        return (self._schema,)

    def keys(self) -> Keys:
        whole: dict[int, tuple[str, str, list[str], str | None, list[str]]] = {}
        for row in self.read(_KEYS.format(schema=self._listed)).to_pylist():
            entry = whole.setdefault(row["id"], (row["kind"], row["t"], [], row["ft"], []))
            entry[2].append(row["c"])
            entry[4].append(row["fc"])
        primary, foreign = {}, {}
        for kind, table, columns, target, target_columns in whole.values():
            if kind == "p":
                primary[table] = tuple(columns)
            elif target is not None:
                foreign[table, tuple(columns)] = (target, tuple(target_columns))
        return Keys(primary, foreign)

    def read(self, statement: str) -> pyarrow.Table:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetch_arrow_table()

    def explain(self, statement: str) -> None:
        # PREPARE resolves names and types, and looks at no row and no statistics.
        with self._connection.cursor() as cursor:
            cursor.executescript(f"PREPARE tulle_check AS {statement}")
            cursor.executescript("DEALLOCATE tulle_check")

    def close(self) -> None:
        self._connection.close()


def _import() -> Any:
    try:
        import adbc_driver_postgresql.dbapi as driver
    except ImportError:
        raise_alone(
            MissingExtraError("adbc-driver-postgresql", "postgres", "A PostgreSQL database")
        )
    return driver
