"""PostgreSQL through ADBC: rows come back as Arrow, without a detour through Python values."""

from __future__ import annotations

import re
import uuid
import weakref
from collections.abc import Collection
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from tulle.core.errors import InputError, MissingExtraError, raise_alone
from tulle.sql.engines.base import Engine, EngineError, Size, Workspace
from tulle.sql.schema.catalogue import RESERVED, Catalogue, Definition, Keys
from tulle.sql.schema.computed import with_computed

if TYPE_CHECKING:
    import pyarrow

# PostgreSQL fails on functions of texts whose collation takes different texts for equal, and there
# one owner can be written in several ways: the type of such a column is none that is known. Types
# of the database's own are in quotes: one may be called like a type that others have. A domain over
# a type of PostgreSQL's, also over such a domain, is that type.
_COLUMNS = """
WITH RECURSIVE domain(id, base, modifier) AS (
  SELECT y.oid, y.typbasetype, y.typtypmod FROM pg_catalog.pg_type y WHERE y.typtype = 'd'
  UNION ALL SELECT domain.id, y.typbasetype, y.typtypmod
  FROM domain JOIN pg_catalog.pg_type y ON y.oid = domain.base WHERE y.typtype = 'd'
)
SELECT c.relname AS t, a.attname AS c,
       CASE WHEN y.typnamespace = 'pg_catalog'::regnamespace
            THEN format_type(a.atttypid, a.atttypmod)
            WHEN b.typnamespace = 'pg_catalog'::regnamespace
            THEN format_type(b.oid, b.modifier)
            ELSE '"' || n.nspname || '"."' || y.typname || '"' END
         || CASE WHEN o.collisdeterministic IS FALSE THEN ' COLLATE ' || quote_ident(o.collname)
            ELSE '' END AS k,
       CASE WHEN a.attgenerated = 'v' THEN pg_get_expr(d.adbin, d.adrelid) END AS computed
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
JOIN pg_catalog.pg_type y ON y.oid = a.atttypid
JOIN pg_catalog.pg_namespace n ON n.oid = y.typnamespace
LEFT JOIN (
  SELECT domain.id, domain.modifier, y.oid, y.typnamespace
  FROM domain JOIN pg_catalog.pg_type y ON y.oid = domain.base WHERE y.typtype <> 'd'
) b ON b.id = y.oid
LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
LEFT JOIN pg_catalog.pg_collation o ON o.oid = a.attcollation
WHERE c.relnamespace = {schema} AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND a.attnum > 0 AND NOT a.attisdropped AND {only}
  AND has_column_privilege(c.oid, a.attnum, 'SELECT')
ORDER BY c.relname, a.attnum
"""

_KINDS = """
WITH RECURSIVE part(top, oid) AS (
  SELECT c.oid, c.oid FROM pg_catalog.pg_class c WHERE c.relnamespace = {schema} AND {only}
  UNION SELECT part.top, i.inhrelid
  FROM part JOIN pg_catalog.pg_inherits i ON i.inhparent = part.oid
)
SELECT c.relname AS t,
       CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END AS view,
       CASE
         WHEN row_security_active(c.oid) THEN 'policies'
         WHEN NOT c.relispopulated THEN 'empty'
         WHEN EXISTS (
           SELECT 1 FROM part JOIN pg_catalog.pg_class k ON k.oid = part.oid
           WHERE part.top = c.oid AND k.relkind = 'f'
         ) THEN 'foreign'
         WHEN EXISTS (
           SELECT 1 FROM pg_catalog.pg_rewrite r
           JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::regclass
            AND d.objid = r.oid AND d.refclassid = 'pg_catalog.pg_class'::regclass
           JOIN pg_catalog.pg_class k ON k.oid = d.refobjid
           WHERE c.relkind = 'v' AND r.ev_class = c.oid AND k.relnamespace <> c.relnamespace
         ) THEN 'elsewhere'
       END AS reason
FROM pg_catalog.pg_class c
WHERE c.relnamespace = {schema} AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {only}
"""

_PARTS_OF = """
WITH RECURSIVE part(top, oid) AS (
  SELECT c.oid, c.oid FROM pg_catalog.pg_class c WHERE c.relnamespace = {schema}
  UNION SELECT part.top, i.inhrelid
  FROM part JOIN pg_catalog.pg_inherits i ON i.inhparent = part.oid
)
SELECT DISTINCT w.relname AS whole, p.relname AS part
FROM part one JOIN part other ON other.oid = one.oid AND other.top <> one.top
JOIN pg_catalog.pg_class w ON w.oid = one.top
JOIN pg_catalog.pg_class p ON p.oid = other.top
WHERE NOT EXISTS (SELECT 1 FROM part WHERE part.top = p.oid AND part.oid = w.oid)
ORDER BY 1, 2
"""
"""Tables that share rows: one is a part of the other, or both have a part, which may be of another
schema and need not be declared."""

_REASONS = {
    "policies": "has row-level policies for this role. Their conditions are computed on every row, "
    "may fail on one and may look at others. Connect with a role that they do not hold for, or "
    "make a table: CREATE TABLE ... AS SELECT * FROM it.",
    "empty": "is a materialized view without rows. Run REFRESH MATERIALIZED VIEW first.",
    "foreign": "is, or has a part that is, a foreign table: whether it can be read may depend on a "
    "row. Make a table or a materialized view of it: CREATE TABLE ... AS SELECT * FROM it.",
    "elsewhere": "is a view over tables of another schema. Ask about its tables, or make it a "
    "table: CREATE TABLE ... AS SELECT * FROM it.",
}

_SHADOWED = """
SELECT p.proname::text AS name FROM pg_catalog.pg_proc p
WHERE p.oid >= 16384 AND p.pronamespace = 'pg_catalog'::regnamespace AND EXISTS (
  SELECT 1 FROM pg_catalog.pg_proc b
  WHERE b.oid < 16384 AND b.proname = p.proname AND b.pronamespace = p.pronamespace
)
UNION
SELECT o.oprname::text FROM pg_catalog.pg_operator o
WHERE o.oid >= 16384 AND o.oprnamespace = 'pg_catalog'::regnamespace
UNION
SELECT 'CAST(' || c.castsource::regtype || ' AS ' || c.casttarget::regtype || ')'
FROM pg_catalog.pg_cast c
JOIN pg_catalog.pg_type s ON s.oid = c.castsource
JOIN pg_catalog.pg_type t ON t.oid = c.casttarget
WHERE c.oid >= 16384 AND s.typnamespace = 'pg_catalog'::regnamespace
  AND t.typnamespace = 'pg_catalog'::regnamespace
ORDER BY 1
"""
"""What of the database's own a statement could call although only pg_catalog is searched.

Somebody may put functions and operators there, and casts are in no schema: those between types of
PostgreSQL's count. What comes with the server has a number below 16384.
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
  AND NOT (k.contype = 'p' AND c.relkind = 'r' AND EXISTS (
    SELECT 1 FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid
  ))
ORDER BY k.oid, n.place
"""
"""A primary key does not hold for the rows of tables that inherit from its own."""


_MAY_KEEP = """
SELECT NOT pg_is_in_recovery() AND has_database_privilege(current_database(), 'TEMPORARY')
  AND current_setting('temp_file_limit') = '-1' AS yes
"""
"""Temporary tables need a server that is no copy of another, and the right to make them. They do
not count for a limit of temporary files, so where there is one nothing is kept."""

_SETTINGS = {
    "default_transaction_read_only": "on",
    # Notices go to standard error, and may be about a row.
    "client_min_messages": "error",
    # Conditions stand apart from joins in what is run, so the planner must be free to
    # order many sources; by default it keeps the written order beyond eight.
    "join_collapse_limit": "24",
    "from_collapse_limit": "24",
    # Of what is kept for a question, a small sample tells the planner enough.
    "default_statistics_target": "1",
    # The rest decides what a statement means, and how values are written.
    "client_encoding": "'UTF8'",
    "standard_conforming_strings": "on",
    "backslash_quote": "safe_encoding",
    "transform_null_equals": "off",
    "array_nulls": "on",
    "datestyle": "'ISO, YMD'",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "xmloption": "content",
    "lc_monetary": "'C'",
    "lc_numeric": "'C'",
    "lc_time": "'C'",
    "timezone_abbreviations": "'Default'",
}
"""How the session is set, whatever is set for the server, the database or the role."""

_PARTS = 16
"""So many sorts and hash tables of a statement may be in memory at once."""


class PostgreSQL(Engine):
    """A PostgreSQL server; the tables of the connection's current schema."""

    dialect: ClassVar[str] = "postgres"
    loggers: ClassVar[tuple[str, ...]] = ("adbc_driver_manager", "adbc_driver_postgresql")

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        found = self.read("SELECT current_schema()::text AS name").to_pylist()[0]["name"]
        if found is None:
            raise InputError("PostgreSQL: the connection has no current schema; set search_path.")
        encoding = self.read("SELECT current_setting('server_encoding') AS name").to_pylist()
        if encoding[0]["name"] != "UTF8":
            raise InputError(
                f"PostgreSQL: the database is in {encoding[0]['name']}, and whether a text can be "
                "read from it depends on the text. Copy it into one that is made with ENCODING "
                "'UTF8'."
            )
        self._schema: str = found
        self._finished: list[str] = []
        self._listed = _SCHEMA.format(name=found.replace("'", "''"))

    @classmethod
    def open(cls, url: str, memory: Size | None = None) -> PostgreSQL:
        """Connect for reading.

        Raises:
            InputError: when the server cannot be reached; nothing of the URL, which may hold a
                password, is shown.
        """
        driver = _import()
        with ExitStack() as undo:
            try:
                connection = driver.connect(url, autocommit=True)
                undo.callback(connection.close)
                engine = cls(connection)
                engine._settle()
            except driver.Error as error:
                # Nothing was read yet: its words are about the server, and quote parts of the URL.
                quoted = r'".*"' if '"' in url else r'"[^"]*"'
                said = str(error).replace(url, "...").strip().splitlines()[0]
                reason = re.sub(quoted, '"..."', said)
                raise_alone(InputError(f"PostgreSQL cannot be reached: {reason}"))
            if memory is not None:
                engine._limit(memory)
            undo.pop_all()
        # A database that nobody has any more leaves no connection behind.
        weakref.finalize(engine, connection.close).atexit = False
        return engine

    def _settle(self) -> None:
        """Set whatever decides what a statement means."""
        with self._connection.cursor() as cursor:
            for name, value in _SETTINGS.items():
                cursor.execute(f"SET {name} = {value}")
            # Tables are read by their full names, and whatever has none is PostgreSQL's own: a
            # function of the database's could fit the arguments better.
            cursor.execute("SET search_path = pg_catalog, pg_temp")

    def _limit(self, memory: Size) -> None:
        """Keep to a public limit of memory and of temporary files.

        Each sort and each hash table of a statement may use work_mem, so that is a part of it.
        """
        refusal = InputError(
            "PostgreSQL does not let this role limit its temporary files (temp_file_limit). Grant "
            "it: GRANT SET ON PARAMETER temp_file_limit TO the role; or leave memory= out, and the "
            "server's own limits hold."
        )
        share = max(64, memory.kilobytes // _PARTS)
        settings = ("work_mem", share), ("hash_mem_multiplier", 1)
        for name, value in (*settings, ("temp_file_limit", memory.on_disk)):
            self.attempt(partial(self._set, name, value), refusal)

    def _set(self, name: str, value: int) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(f"SET {name} = {min(value, 2**31 - 1)}")

    def catalogue(self, only: Collection[str] | None = None) -> Catalogue:
        return self._everything(only)[0]

    def definitions(self) -> dict[str, Definition]:
        return self._everything(None)[1]

    def _everything(
        self, only: Collection[str] | None
    ) -> tuple[dict[str, dict[str, str]], dict[str, Definition]]:
        """Return the columns of what is stored, and the rest of what there is."""
        chosen = "true"
        if only is not None:
            names = ", ".join("'" + name.replace("'", "''") + "'" for name in only)
            chosen = f"c.relname IN ({names})" if names else "false"
        scope = {"schema": self._listed, "only": chosen}
        tables: dict[str, dict[str, str]] = {}
        computed: dict[str, dict[str, str]] = {}
        for row in self.read(_COLUMNS.format(**scope)).to_pylist():
            tables.setdefault(row["t"], {})[row["c"]] = row["k"]
            if row["computed"] is not None:
                computed.setdefault(row["t"], {})[row["c"]] = row["computed"]
        definitions: dict[str, Definition] = {}
        for row in self.read(_KINDS.format(**scope)).to_pylist():
            name, reason = row["t"], row["reason"]
            if reason is not None:
                tables.pop(name, None)
                definitions[name] = Definition(reason=_REASONS[reason])
            elif row["view"] is not None:
                columns = tuple(tables.pop(name, ()))
                definitions[name] = Definition(row["view"], columns)
            elif name in computed:
                columns_here, found = tables[name], computed[name]
                definitions[name] = with_computed(name, columns_here, found, self.dialect)
                tables[name] = {c: k for c, k in columns_here.items() if c not in found}
        return tables, definitions

    def shadowed(self) -> list[str]:
        return [row["name"] for row in self.read(_SHADOWED).to_pylist()]

    def place(self, table: str) -> tuple[str, ...]:
        return (self._schema,)

    def parts(self) -> list[tuple[str, str]]:
        rows = self.read(_PARTS_OF.format(schema=self._listed)).to_pylist()
        return [(row["whole"], row["part"]) for row in rows]

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

    def workspace(self) -> Workspace:
        may = self.attempt(partial(self.read, _MAY_KEEP), EngineError()).to_pylist()[0]["yes"]
        return TemporaryTables(self) if may else super().workspace()

    def _write(self, *statements: str) -> None:
        """Run statements about temporary tables; other tables stay as they are."""
        with self._connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = off")
            try:
                for statement in statements:
                    cursor.execute(statement)
            finally:
                cursor.execute("SET default_transaction_read_only = on")

    def explain(self, statement: str) -> None:
        # PREPARE resolves names and types, and looks at no row and no statistics.
        with self._connection.cursor() as cursor:
            cursor.executescript(f"PREPARE tulle_check AS {statement}")
            cursor.executescript("DEALLOCATE tulle_check")

    def close(self) -> None:
        self._connection.close()


class TemporaryTables(Workspace):
    """Temporary tables of the connection; those that nobody reads any more go before the next."""

    keeps: ClassVar[bool] = True

    def __init__(self, engine: PostgreSQL) -> None:
        super().__init__(engine)
        self._write, self._finished = engine._write, engine._finished
        self._names: list[str] = []
        # Not dropped at once: the connection may be reading something else just then.
        weakref.finalize(self, self._finished.extend, self._names)

    def keep(self, statement: str, looked_up: str | None = None) -> str:
        name = f"{RESERVED}_kept_{uuid.uuid4().hex}"
        self._names.append(name)
        finished = [self._finished.pop() for _ in range(len(self._finished))]
        drop = [f"DROP TABLE IF EXISTS pg_temp.{one}" for one in finished]
        made = [f"CREATE TEMPORARY TABLE {name} AS {statement}"]
        if looked_up is not None:
            # Without statistics the planner expects many rows of each value, and sorts both sides.
            made.append(f"ANALYZE pg_temp.{name} ({looked_up})")
        self._engine.attempt(partial(self._write, *drop, *made), EngineError())
        return f"pg_temp.{name}"


def _import() -> Any:
    try:
        import adbc_driver_postgresql.dbapi as driver
    except ImportError:
        raise_alone(
            MissingExtraError("adbc-driver-postgresql", "postgres", "A PostgreSQL database")
        )
    return driver
