"""DuckDB: a file, a connection at hand, or CSV and Parquet files read in memory."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, closing
from functools import lru_cache, partial
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tulle.core.cells import check_quotes
from tulle.core.custody import private_folder
from tulle.core.errors import InputError, MissingExtraError, raise_alone
from tulle.core.reading import ROW_NUMBERS, are_row_numbers
from tulle.sql.engines.base import Engine, EngineError, Result, Size, Workspace
from tulle.sql.engines.files import csv_file, declared_types, is_parquet, partitioned_from
from tulle.sql.engines.frames import arrow_table, is_path
from tulle.sql.schema.catalogue import RESERVED, Catalogue, Definition, Keys
from tulle.sql.schema.computed import COMPUTED, UNREADABLE, with_computed

if TYPE_CHECKING:
    import pyarrow


MEMORY = Size.read("4GB")
"""How much memory a DuckDB that is opened here may use, unless the custodian says otherwise."""

_HERE = "database_name = ? AND schema_name = ?"

MEANING = (
    *("calendar", "default_collation", "default_null_order", "default_order"),
    *("dialect_compatibility_mode", "disable_timestamptz_casts", "error_on_division_by_zero"),
    *("ieee_floating_point_ops", "integer_division", "legacy_disable_null_type"),
    *("old_implicit_casting", "order_by_non_integer_literal", "preserve_identifier_case"),
    *("regex_match_operator_semantics", "scalar_subquery_error_on_multiple_rows"),
    *("arrow_large_buffer_size", "arrow_lossless_conversion", "arrow_output_list_view"),
    *("arrow_output_version", "produce_arrow_string_view"),
)
"""Settings that change what a statement means, or in which form rows come back."""


class DuckDB(Engine):
    """An embedded DuckDB."""

    dialect: ClassVar[str] = "duckdb"
    loggers: ClassVar[tuple[str, ...]] = ("duckdb",)

    def __init__(self, connection: Any, *, owned: bool) -> None:
        self._connection = connection
        self._owned = owned
        self._files: set[str] = set()
        self._adopted: dict[str, tuple[str, str]] = {}
        self._beside = ""
        self._place, kind = self.attempt(
            self._here, InputError("DuckDB: the connection does not answer. Is it closed?")
        )
        if kind not in {"duckdb", "ducklake"}:
            raise InputError(
                f"{self._place[0]} is a {kind} database that DuckDB reads from afar, and "
                "whether that works may depend on a row. Copy its tables into a DuckDB database: "
                "CREATE TABLE ... AS SELECT * FROM ...; PostgreSQL has a URL of its own."
            )
        refusal = (
            "DuckDB: the connection does not let its settings be changed (lock_configuration), and "
            "some of them decide what a question means. Hand over one that is not locked, or "
            "give the URL of its file."
        )
        self.attempt(self._cursor, InputError(refusal)).__exit__(None, None, None)

    def _here(self) -> tuple[tuple[str, str], str]:
        """Return the current database and schema, and of what kind the database is."""
        # All rows are fetched: an unfinished result would block the user's connection.
        found = self._connection.execute(
            "SELECT current_database(), current_schema(), type FROM duckdb_databases() "
            "WHERE database_name = current_database()"
        ).fetchall()
        database, schema, kind = found[0]
        return (database, schema), kind

    @classmethod
    def open(
        cls,
        path: str,
        tables: Mapping[str, Any],
        types: Mapping[str, str],
        memory: Size | None = None,
    ) -> DuckDB:
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
        except duckdb.Error:
            raise_alone(
                InputError(
                    f"DuckDB cannot open {path!r}. Is it a DuckDB file, of a version that is not "
                    "newer than the library, and not open for writing elsewhere?"
                )
            )
        engine = cls(connection, owned=True)
        engine._spill_in(private_folder(engine))
        engine._limit(memory or MEMORY)
        for name, source in tables.items():
            if is_path(source):
                engine._attach(name, Path(source), types)
            else:
                target = ".".join(map(_name, (*engine._place, name)))
                engine._copy(name, arrow_table(name, source), types, target)
        return engine

    def _copy(self, name: str, rows: Any, types: Mapping[str, str], target: str) -> None:
        """Copy an Arrow table: a frame that changes later does not change answers."""
        declared = declared_types(name, rows.column_names, types, self.dialect)
        chosen = ", ".join(
            f"TRY_CAST({_name(column)} AS {declared[column]}) AS {_name(column)}"
            if column in declared
            else _name(column)
            for column in rows.column_names
        )
        source = f"{RESERVED}_frame"

        def create() -> None:
            with self._cursor() as cursor:
                cursor.register(source, rows)
                cursor.execute(f"CREATE TABLE {target} AS SELECT {chosen} FROM temp.main.{source}")
                cursor.unregister(source)

        refusal = (
            f"tables[{name!r}] cannot be copied into DuckDB: a column has a type that it lacks, or "
            "a value that it cannot hold, such as a text that is not UTF-8."
        )
        self.attempt(create, InputError(refusal))

    def adopt(self, wanted: Collection[str]) -> None:
        """Copy temporary tables and registered Arrow frames of these names, once, as they are now.

        Cursors do not see what is temporary. The copies are in a database of their own, in memory,
        beside those of the connection, and go when it is closed.

        Raises:
            InputError: for a registered frame of pandas, whose types follow from its values.
        """
        if self._owned:
            return
        names = {name.lower() for name in wanted} - {name.lower() for name in self.catalogue()}
        found: dict[str, str] = {}
        for name, text in self._connection.execute(
            "SELECT table_name, '' FROM duckdb_tables() WHERE temporary UNION ALL "
            "SELECT view_name, sql FROM duckdb_views() WHERE temporary AND NOT internal"
        ).fetchall():
            if name.lower() in names:
                found[name] = text
        for name, text in found.items():
            if "pandas_scan(" in text:
                raise InputError(
                    f"{name} is a registered frame of pandas, and DuckDB takes the types of its "
                    "columns from its values. Give the frame itself: Database.from_tables."
                )
            if text and "arrow_scan(" not in text:
                raise InputError(
                    f"{name} is a temporary view. Make it a table: CREATE TEMP TABLE ... AS."
                )
            self._adopt(name)

    def _adopt(self, name: str) -> None:
        refusal = InputError(f"The temporary table {name} cannot be copied.")
        if not self._beside:
            self._beside = f"{RESERVED}_{uuid.uuid4().hex}"
            attach = f"ATTACH ':memory:' AS {self._beside}"
            self.attempt(partial(self._connection.execute, attach), refusal)
        kinds = self._connection.execute(
            "SELECT column_name, data_type, is_generated FROM information_schema.columns "
            "WHERE table_catalog = 'temp' AND table_name = ? ORDER BY ordinal_position",
            [name],
        ).fetchall()
        if any(generated == "ALWAYS" for *_, generated in kinds):
            raise InputError(f"The temporary table {name} {COMPUTED}")
        types = {f"{name}.{column}": kind for column, kind, _ in kinds}
        rows = self.attempt(
            lambda: self._connection.sql(f"SELECT * FROM temp.main.{_name(name)}").to_arrow_table(),
            refusal,
        )
        rows = arrow_table(name, rows)
        plain = {key: kind for key, kind in types.items() if not kind.startswith("ENUM")}
        self._copy(name, rows, plain, f"{self._beside}.main.{_name(name)}")
        self._adopted[name] = (self._beside, "main")

    def _spill_in(self, folder: str) -> None:
        """Let what memory does not hold be written there: left alone, records go to ./.tmp."""
        refusal = InputError("DuckDB cannot write to a folder for temporary files.")
        statement = f"SET temp_directory = {_text(folder)}"
        self.attempt(partial(self._connection.execute, statement), refusal)

    def _limit(self, memory: Size) -> None:
        refusal = InputError("DuckDB cannot be limited to this memory; choose another size.")
        for setting, value in (
            ("memory_limit", f"'{memory.kilobytes}KiB'"),
            ("max_temp_directory_size", f"'{memory.on_disk}KiB'"),
            # What is freed goes back to the system, also while nothing is asked of DuckDB.
            ("allocator_background_threads", "true"),
        ):
            statement = f"SET {setting} = {value}"
            self.attempt(partial(self._connection.execute, statement), refusal)

    def _attach(self, name: str, path: Path, types: Mapping[str, str]) -> None:
        pattern = str(path)
        if not path.exists() and "*" not in pattern:
            raise InputError(f"tables[{name!r}]: there is no file {pattern!r}.")
        refusal = InputError(
            f"DuckDB cannot read {pattern!r}. Its message may quote the file and is not shown; "
            "read the file in DuckDB to see it."
        )
        quoted, literal = _name(name), _text(pattern)
        if is_parquet(pattern):
            partitioned = str(partitioned_from(name, pattern) is not None).lower()
            self._check_alike(name, literal, refusal)
            read = (
                f"read_parquet({literal}, hive_partitioning = {partitioned}, "
                "hive_types_autocast = false)"
            )
            described = f"SELECT column_name FROM (DESCRIBE SELECT * FROM {read})"
            found = self.attempt(partial(self._connection.execute, described), refusal).fetchall()
            chosen = ", ".join(_name(column) for (column,) in found if not are_row_numbers(column))
            statements = [f"CREATE VIEW {quoted} AS SELECT {chosen} FROM {read}"]
            self._files.add(name)
        else:
            # Read once: parsing text again for every question would be slow. Cast afterwards: casts
            # that are pushed into the reader fail there.
            source = csv_file(name, pattern, types, self.dialect)
            for file in sorted(glob(pattern)) or [pattern]:
                check_quotes(file, source.delimiter)
            listed = ", ".join(f"{_text(column)}: 'VARCHAR'" for column in source.columns)
            chosen = ", ".join(
                f"TRY_CAST({_name(column)} AS {source.types[column]}) AS {_name(column)}"
                if column in source.types
                else _name(column)
                for column in source.columns
            )
            raw = _name(f"{RESERVED}_csv")
            statements = [
                f"CREATE TEMP TABLE {raw} AS SELECT * FROM read_csv({literal}, "
                f"auto_detect = false, header = true, delim = {_text(source.delimiter)}, "
                "quote = '\"', escape = '\"', null_padding = true, strict_mode = false, "
                "hive_partitioning = false, "
                f"columns = {{{listed}}})",
                f"CREATE TABLE {quoted} AS SELECT {chosen} FROM {raw}",
                f"DROP TABLE {raw}",
            ]
        for statement in statements:
            self.attempt(partial(self._connection.execute, statement), refusal)

    def _check_alike(self, name: str, literal: str, refusal: InputError) -> None:
        """Refuse files whose columns differ in type: some of their values may not be read."""
        kinds = (
            "SELECT list((name, type, duckdb_type, num_children) ORDER BY column_id) AS kinds "
            f"FROM parquet_schema({literal}) WHERE column_id > 0 "
            f"AND NOT regexp_full_match(name, '{ROW_NUMBERS}') GROUP BY file_name"
        )
        counted = f"SELECT COUNT(DISTINCT kinds) FROM ({kinds})"
        found = self.attempt(partial(self._connection.execute, counted), refusal).fetchall()
        if found[0][0] > 1:
            raise InputError(
                f"tables[{name!r}]: the files do not all have the same columns of the same types, "
                "and whether a value can be read as the type of another file depends on the value. "
                "Write them alike."
            )

    def catalogue(self, only: Collection[str] | None = None) -> Catalogue:
        return self._listed(only)[0]

    def definitions(self) -> dict[str, Definition]:
        return self._listed(None)[1]

    def _listed(
        self, only: Collection[str] | None
    ) -> tuple[dict[str, dict[str, str]], dict[str, Definition]]:
        """Return the columns of what is stored, and the rest of what there is."""
        kinds: dict[str, dict[str, str]] = {}
        computed: dict[str, set[str]] = {}
        for place in [self._place, *([(self._beside, "main")] if self._beside else [])]:
            for table, column, kind, generated in self._rows(
                "SELECT table_name, column_name, data_type, is_generated "
                "FROM information_schema.columns "
                "WHERE table_catalog = ? AND table_schema = ? "
                "ORDER BY table_name, ordinal_position",
                place,
            ):
                # A table made later by a name that was adopted is another one.
                if (only is None or table in only) and self.place(table) == place:
                    kinds.setdefault(table, {})[column] = kind
                    if generated == "ALWAYS":
                        computed.setdefault(table, set()).add(column)
        views = dict(
            self._rows(f"SELECT view_name, sql FROM duckdb_views() WHERE {_HERE}", self._place)
        )
        made = dict(
            self._rows(f"SELECT table_name, sql FROM duckdb_tables() WHERE {_HERE}", self._place)
        )
        for name in self._adopted:  # copies: whatever they were made from, they are stored
            views.pop(name, None)
            made.pop(name, None)
        tables: dict[str, dict[str, str]] = {}
        definitions: dict[str, Definition] = {}
        for name, columns in kinds.items():
            if name in views and not (name in self._files or _is_one_file(views[name])):
                definitions[name] = _view(views[name], tuple(columns))
                continue
            tables[name] = columns
            found = _computed(made.get(name, ""))
            if found is None or not computed.get(name, set()) <= set(found):
                tables.pop(name)
                definitions[name] = Definition(reason=COMPUTED)
            elif found:
                tables[name] = {c: k for c, k in columns.items() if c not in found}
                definitions[name] = with_computed(name, columns, found, self.dialect)
        return tables, definitions

    def hold(self, tables: Collection[str]) -> None:
        kinds = self.catalogue(tables)
        views = self._rows(f"SELECT view_name FROM duckdb_views() WHERE {_HERE}", self._place)
        for (name,) in views:
            checked = [column for column, kind in kinds.get(name, {}).items() if _may_fail(kind)]
            if checked:
                read = ", ".join(f"MAX(hash({_name(column)}))" for column in checked)
                statement = f"SELECT {read} FROM {'.'.join(map(_name, (*self.place(name), name)))}"
                refusal = (
                    f"Table {name} is a Parquet file that DuckDB cannot read to its end: a value "
                    "is not what its column says, such as a text that is not UTF-8. The message "
                    "may quote it and is not shown."
                )
                self.attempt(partial(self.read, statement), InputError(refusal))

    def place(self, table: str) -> tuple[str, ...]:
        return self._adopted.get(table, self._place)

    def keys(self) -> Keys:
        rows = self._rows(
            "SELECT table_name, constraint_type, constraint_column_names, referenced_table, "
            "referenced_column_names FROM duckdb_constraints() "
            "WHERE database_name = ? AND schema_name = ?",
            self._place,
        )
        primary, foreign = {}, {}
        for table, kind, columns, target, target_columns in rows:
            if kind == "PRIMARY KEY":
                primary[table] = tuple(columns)
            elif kind == "FOREIGN KEY":
                foreign[table, tuple(columns)] = (target, tuple(target_columns))
        return Keys(primary, foreign)

    def _rows(self, statement: str, place: tuple[str, str]) -> list[tuple[Any, ...]]:
        with self._cursor() as cursor:
            rows: list[tuple[Any, ...]] = cursor.execute(statement, list(place)).fetchall()
        return rows

    def read(self, statement: str) -> pyarrow.Table:
        return read_rows(self._cursor, statement)

    def explain(self, statement: str) -> None:
        # DESCRIBE resolves names and types and goes no further. EXPLAIN would optimise, and what
        # the optimiser makes of a condition depends on the least and largest value of a column.
        with self._cursor() as cursor:
            cursor.execute(f"DESCRIBE {statement}")

    def workspace(self) -> Workspace:
        return TemporaryTables(self)

    def _new_cursor(self) -> Any:
        """Return a cursor of its own, which keeps concurrent questions apart.

        It does not see the connection's temporary tables, nor Python variables that happen to be
        called like a table that is gone.
        """
        cursor = self._connection.cursor()
        cursor.execute("SET python_enable_replacements = false")
        for name, value in _defaults().items():
            cursor.execute(f"SET SESSION {name} = {_text(value)}")
        # DuckDB's own functions come first: a macro of the database's, called like one of
        # them, could fail on a row. Tables are read by their full names.
        path = f"system.main,{_name(self._place[0])}.{_name(self._place[1])}"
        cursor.execute(f"SET search_path = {_text(path)}")
        return cursor

    def _cursor(self) -> AbstractContextManager[Any]:
        return closing(self._new_cursor())

    def close(self) -> None:
        if self._owned:
            self._connection.close()
        elif self._beside:
            detach = partial(self._connection.execute, f"DETACH {self._beside}")
            self._beside, self._adopted = "", {}
            self.attempt(detach, InputError("DuckDB does not let go of the copies it made."))


class TemporaryTables(Workspace):
    """Temporary tables of a cursor of its own, with which they go."""

    keeps: ClassVar[bool] = True

    def __init__(self, engine: DuckDB) -> None:
        super().__init__(engine)
        self._cursor = engine.attempt(engine._new_cursor, EngineError())
        self._count = 0

    def keep(self, statement: str, looked_up: str | None = None) -> str:
        self._count += 1
        name = f"{RESERVED}_kept_{self._count}"
        self._run(partial(self._cursor.execute, f"CREATE TEMP TABLE {name} AS {statement}"))
        return f"temp.main.{name}"

    def fetch(self, statement: str) -> pyarrow.Table:
        return self._run(partial(_rows_of, self._cursor, statement))

    def _run(self, act: Callable[[], Result]) -> Result:
        return self._engine.attempt(partial(whatever_the_plan, self._cursor, act), EngineError())


@lru_cache(maxsize=1)
def _defaults() -> dict[str, str]:
    """Return what settings that change what a statement means are where nobody has set them."""
    with closing(_import().connect()) as untouched:
        listed = untouched.execute("SELECT lower(name), value FROM duckdb_settings()").fetchall()
    return {name: value for name, value in listed if name in MEANING}


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Any:
    """Return a CREATE statement of the catalogue, or None when it cannot be read."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return sqlglot.parse_one(text, dialect="duckdb")
    except (SqlglotError, RecursionError):
        return None


def _view(text: str, columns: tuple[str, ...]) -> Definition:
    tree = _parsed(text)
    body = None if tree is None else tree.args.get("expression")
    if body is None:
        return Definition(reason=UNREADABLE)
    return Definition(body.sql(dialect="duckdb"), columns)


def _is_one_file(text: str) -> bool:
    """Say whether a view is all of one Parquet file, in which the types are written down."""
    from sqlglot import exp

    tree = _parsed(text)
    if tree is None or not isinstance(tree.this, exp.Table):
        return False
    body = tree.args.get("expression")
    if not isinstance(body, exp.Select):
        return False
    given = {name for name, value in body.args.items() if value}
    if given != {"expressions", "from_"} or body.expressions != [exp.Star()]:
        return False
    source = body.args["from_"].this
    if not isinstance(source, exp.Table) or {n for n, v in source.args.items() if v} != {"this"}:
        return False
    inner, path = source.this, ""
    if isinstance(inner, exp.ReadParquet):
        listed = inner.expressions
        if len(listed) == 1 and isinstance(listed[0], exp.Literal) and listed[0].is_string:
            path = listed[0].name
    elif isinstance(inner, exp.Identifier):
        path = inner.name
    plain = path.endswith(".parquet") and not set(path) & set("*?[{")
    # Folders become columns whose types follow from their names.
    return plain and not Path(path).is_dir()


@lru_cache(maxsize=4096)
def _computed(text: str) -> dict[str, str] | None:
    """Return the columns of a table that are computed when it is read, with their expressions.

    None is for a statement that cannot be read but may have some.
    """
    from sqlglot import exp

    if "GENERATED" not in text.upper():
        return {}
    tree = _parsed(text)
    if tree is None or not isinstance(tree.this, exp.Schema):
        return None
    found = {}
    for column in tree.this.find_all(exp.ColumnDef):
        for constraint in column.find_all(exp.GeneratedAsIdentityColumnConstraint):
            if constraint.expression is None:
                return None
            found[column.name] = constraint.expression.sql(dialect="duckdb")
    return found


_PLAIN = re.compile("U?(TINY|SMALL|BIG)INT|U?INTEGER|FLOAT|DOUBLE|BOOLEAN|DATE|TIME")


def _may_fail(kind: str) -> bool:
    """Say whether a value of a Parquet file may be none of the type of its column."""
    return _PLAIN.fullmatch(kind) is None


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _import() -> Any:
    try:
        import duckdb
    except ImportError:
        raise_alone(MissingExtraError("duckdb", "sql", "A DuckDB database"))
    return duckdb


def read_rows(
    open_cursor: Callable[[], AbstractContextManager[Any]], statement: str
) -> pyarrow.Table:
    """Return the rows of a checked statement, whatever the optimiser makes of it."""
    with open_cursor() as cursor:
        return whatever_the_plan(cursor, partial(_rows_of, cursor, statement))


def _rows_of(cursor: Any, statement: str) -> pyarrow.Table:
    return cursor.sql(statement).to_arrow_table()


def whatever_the_plan(cursor: Any, act: Callable[[], Result]) -> Result:
    """Return what an act on this cursor gives; if the optimiser fails, without it.

    No row stops a checked statement, but the optimiser may: some plans of outer joins it rewrites
    wrongly and then cannot run, and which plan it tries depends on statistics of the rows. As it
    is written the statement always runs.
    """
    import duckdb

    try:
        return act()
    except (duckdb.OutOfMemoryException, duckdb.InterruptException):
        raise
    except duckdb.Error:
        cursor.execute("PRAGMA disable_optimizer")
        try:
            return act()
        finally:
            cursor.execute("PRAGMA enable_optimizer")
