"""A sealed database: tables in an engine, each owned by participants or public."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tulle.core import registry
from tulle.core.dataset import Dataset, Facts
from tulle.core.errors import InputError, MissingExtraError, QueryError, UnitError, raise_alone
from tulle.core.public import public
from tulle.core.unit import Unit
from tulle.sql.dialect import DEFAULT
from tulle.sql.engines.connector import connector_of, no_connector, no_tables

if TYPE_CHECKING:
    from tulle.sql.compile.engine_totals import EngineTotals
    from tulle.sql.engines.base import Engine
    from tulle.sql.queries import SqlQuery
    from tulle.sql.schema.schema import Schema


@public("Hold data")
class Database(Dataset):
    """Tables that stay in their engine, with the owners of every row declared.

    Build one with :meth:`connect` or :meth:`from_toml`. Two databases are neighbours when one
    comes from the other by removing one participant with every row that belongs to them, alone
    or together with others. Table and column names, types and the declared owners are public;
    rows, and how many there are, are not.

    Example:
        >>> import duckdb
        >>> connection = duckdb.connect()
        >>> _ = connection.execute("CREATE TABLE edge AS SELECT 1 AS a, 2 AS b")
        >>> friends = Database.connect(connection, owners={"edge": ["a", "b"]})
        >>> friends
        <Database: sealed>
    """

    kind: ClassVar[str] = "database"
    units: ClassVar[tuple[str, ...]] = ("participant",)

    _engine: Engine
    _schema: Schema
    _gone: tuple[str, Any] | None
    _divided: dict[str, Database]
    """The database with participants' records divided into periods, by period."""

    def __init__(self) -> None:
        raise InputError(
            "A Database is not built by calling it. Use Database.connect, Database.from_tables or "
            "Database.from_toml."
        )

    @classmethod
    def connect(
        cls,
        url: Any,
        *,
        owners: Mapping[str, Any],
        public: Iterable[str] = (),
        ranges: Mapping[str, Any] | None = None,
        tables: Mapping[str, Any] | None = None,
        types: Mapping[str, str] | None = None,
        times: Mapping[str, str] | None = None,
        keys: Mapping[str, Any] | None = None,
        memory: str | None = None,
    ) -> Database:
        """Connect to an engine, and check the owners against its catalogue.

        ``url`` is ``duckdb:///file.duckdb``; ``duckdb://`` with ``tables={name: path}`` for CSV
        and Parquet files, and for frames (see :meth:`from_tables`); a DuckDB connection;
        ``postgresql://...``; a Spark session, or a master such as ``local[2]`` or
        ``spark://host:7077``. Temporary tables and registered Arrow frames of a DuckDB connection
        are copied now, if they are among the owned or public ones.

        ``owners`` says for each table whose its rows are: ``"o_custkey"`` (a column),
        ``["a", "b"]`` or ``"a and b"`` (a row belongs to both),
        ``"l_orderkey -> orders.o_custkey"`` (over a foreign key; with
        ``orders[o_orderkey].o_custkey`` where the catalogue declares no key),
        ``"l_orderkey -> orders"`` (the owners of that row), ``"(tenant, user)"`` (a composite
        identifier). ``"customer: o_custkey"`` names a kind of participant: customer 5 and
        supplier 5 are then two. Without kinds equal identifiers are one participant everywhere,
        which protects at least as much.

        Tables are those of the schema (database, in Spark) that is the current one now; they are
        read by their full names, whatever becomes the current one or hides them later. A table
        whose columns have changed since is refused.

        A view is asked about as the SELECT that it stands for, over tables that are declared; so it
        has no owners of its own. The same goes for columns that are computed when they are read.

        ``public`` lists the tables that belong to nobody. Any other table is refused when asked
        about. A row whose owner is NULL, or whose path leads nowhere, is left out of all answers.

        ``ranges`` says between which numbers values of a column lie: ``{"line.price": (0, inf)}``,
        or ``{"line.price": "0, inf"}``; of dates and timestamps, between which days:
        ``{"visit.day": ("2020-01-01", "2029-12-31")}``.
        Values beyond are clipped to the nearer end, by the engine and whatever the question, so
        nothing fails or shows when the declaration is wrong. Columns that say whose a row is, keys
        on the way to an owner included, have no range. A SUM of what cannot be negative then
        pays for one sign only, and has an error interval.

        Columns of a CSV file in ``tables`` are texts unless ``types`` says otherwise, such as
        ``{"line.price": "DOUBLE"}``: a type that followed from the rows would tell of them. Values
        that do not fit are NULL. The first line names the columns. Folders of Parquet files are
        columns, of text, where the path names them: ``sales/year=*/*.parquet``.

        ``times`` says which column is the time of a table's rows: ``{"trips": "started_on"}``, a
        date or a timestamp without time zone, in local time. Then ``unit="participant-week"`` (or
        day, month, year) protects any one participant's rows of any one week, from Monday on. A
        row has its own time and those of the rows on the way to its owners, and is gone when one of
        them is. Rows whose time is NULL are one more week. Tables without a time are refused under
        such a unit, unless they are public: their rows are there in every week.

        ``keys`` says by which columns a row of a table is one of a kind: ``{"person": "id"}``, or
        ``["tenant", "user"]``, where the engine's catalogue has no primary key to say so. Where
        nobody has more than one row, there is less noise, and intervals have two ends. Privacy does
        not rest on it: where a key does not hold, whoever has more is cut, and intervals may be
        wrong.

        ``memory``, such as ``"4GB"``, is how much an engine that is opened here may use. It is
        public. A question that needs more stops with one message, and its price stays paid. DuckDB
        (4GB unless it is said) and PostgreSQL use up to ten times as much on disk, or what
        ``"4GB + 100GB"`` says after the sign; on PostgreSQL
        each of a statement's sorts and joins in memory gets a sixteenth. Spark's driver and
        executors get as much each, and nothing limits their disks. Without it a PostgreSQL server
        has its own limits, as has a connection or a session that is handed over.

        Raises:
            InputError: when the engine cannot be reached, or owners do not fit the catalogue.
            MissingExtraError: when the engine's driver is not installed.
        """
        _require_parser(url)
        from tulle.sql.compile.views import with_views
        from tulle.sql.schema.declarations import flat
        from tulle.sql.schema.schema import Schema

        engine = open_engine(url, dict(tables or {}), flat(types or {}), memory)
        try:
            engine.check_functions(InputError)
            engine.adopt({*owners, *public})
            definitions = engine.attempt(
                engine.definitions, InputError(f"{engine.dialect} cannot list its views.")
            )
            schema = Schema.build(
                engine.dialect,
                engine.tables(),
                owners=owners,
                public=public,
                ranges=ranges,
                times=times,
                keys=engine.attempt(
                    engine.keys, InputError(f"{engine.dialect} cannot list the keys of its tables.")
                ),
                declared_keys=keys,
                place=engine.place,
                definitions=definitions,
            )
            engine.check_parts(schema, InputError)
            engine.hold(schema.tables)
            schema = with_views(schema, definitions)
        except BaseException:
            engine.close()
            raise
        return cls._of(engine, schema)

    @classmethod
    def from_tables(
        cls,
        tables: Mapping[str, Any],
        *,
        owners: Mapping[str, Any],
        public: Iterable[str] = (),
        ranges: Mapping[str, Any] | None = None,
        types: Mapping[str, str] | None = None,
        times: Mapping[str, str] | None = None,
        keys: Mapping[str, Any] | None = None,
        memory: str | None = None,
    ) -> Database:
        """Hold frames of pandas, polars and Arrow (and files) in a DuckDB of their own.

        Frames are copied: what becomes of them later changes no answer. Types are those of a
        frame's schema. Where that says nothing (objects and categories of pandas, columns that are
        all missing), a column is text unless ``types`` says otherwise, such as
        ``{"orders.price": "DOUBLE"}``, since a type that followed from the rows would tell of
        them; values that do not fit are NULL. The index of pandas is left out.

        The rest is as in :meth:`connect`.

        Raises:
            InputError: when something is not a frame, or owners do not fit the columns.

        Example:
            >>> import pyarrow
            >>> orders = pyarrow.table({"customer": [1, 1, 2], "price": [3.0, 4.0, 5.0]})
            >>> Database.from_tables({"orders": orders}, owners={"orders": "customer"})
            <Database: sealed>
        """
        return cls.connect(
            f"{DEFAULT}://",
            owners=owners,
            public=public,
            ranges=ranges,
            tables=tables,
            types=types,
            times=times,
            keys=keys,
            memory=memory,
        )

    @classmethod
    def _of(cls, engine: Engine, schema: Schema, gone: tuple[str, Any] | None = None) -> Database:
        database = cls.__new__(cls)
        database._engine, database._schema, database._gone = engine, schema, gone
        database._divided = {}
        return database

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Database:
        """Connect as a TOML file says: url, owners, and if need be public, ranges and tables.

        File names in it are relative to its own folder.

        Raises:
            InputError: when the file cannot be read or has other entries.
        """
        from tulle.sql.schema.declarations import TOML_FORMS, is_of_form

        file = Path(path)
        try:
            declared = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise_alone(InputError(f"{file} cannot be read: {error.strerror}."))
        except (ValueError, RecursionError) as error:
            why = error if isinstance(error, tomllib.TOMLDecodeError) else type(error).__name__
            raise_alone(InputError(f"{file} is not TOML: {why}."))
        if declared.keys() - TOML_FORMS.keys() or "url" not in declared or "owners" not in declared:
            raise InputError(
                f"{file} must have url and owners, and may have public, ranges, tables, "
                "types, times, keys and memory; "
                f"it has {', '.join(declared) or 'nothing'}."
            )
        for name, value in declared.items():
            if not is_of_form(value, TOML_FORMS[name]):
                raise InputError(
                    f"{file}: {name} is not written like that. A table of TOML ends where the next "
                    "begins: what is no table, such as public = [...], stands above all of them."
                )
        url, folder = declared["url"], file.parent
        connector = connector_of(url)
        if isinstance(url, str) and connector is not None:
            url = connector.beside(url, folder)
        tables = {name: folder / source for name, source in declared.get("tables", {}).items()}
        return cls.connect(
            url,
            owners=declared["owners"],
            public=declared.get("public", ()),
            ranges=declared.get("ranges"),
            tables=tables,
            types=declared.get("types"),
            times=declared.get("times"),
            keys=declared.get("keys"),
            memory=declared.get("memory"),
        )

    @property
    def schema(self) -> Schema:
        """The public schema: tables, columns, owners."""
        return self._schema

    def facts(self, unit: str | Unit) -> Facts:
        """Return the schema: names, types and owners are public, and nothing else is."""
        return self.under(Unit.of(unit))._schema.to_json()

    def check_unit(self, unit: str | Unit) -> Unit:
        """Return the unit if this database knows it: participants, or their records of a period.

        Raises:
            UnitError: when it is another one, or no times are declared.
        """
        known = Unit.of(unit)
        if known.base != "participant" or self._schema.period not in (None, known.period):
            return super().check_unit(known)
        if known.period is not None and not self._schema.times:
            raise UnitError(
                f"Nobody knows of which {known.period} a row is. Say which columns are times when "
                "connecting: times={'trips': 'started_on'}."
            )
        return known

    @property
    def origin(self) -> object:
        return self._engine

    def public_side(self, unit: str | Unit) -> Database:
        """Return the database as its schema is under the unit."""
        return self.under(Unit.of(unit))

    def under(self, unit: str | Unit) -> Database:
        """Return the database in which whose a row is, is as the unit says."""
        period = Unit.of(unit).period
        if period is None or period == self._schema.period:
            return self
        if period not in self._divided:
            divided = Database._of(self._engine, self._schema.within(period), self._gone)
            self._divided[period] = divided
        return self._divided[period]

    def of_days(self, first: date, last: date) -> Database:
        """Return the database with the rows of these days alone, by all of their times.

        The engine leaves out the others, whatever is asked. A row without a time is of no day.
        """
        schema = self._schema.of_days(first, last)
        return Database._of(self._engine, schema, self._gone)

    def check(self, statement: str) -> None:
        """Let the engine check a statement without running it; nothing depends on rows.

        Raises:
            QueryError: when it does not fit, or the tables are not those that were connected to.
        """
        schema = self._schema
        found = self._engine.tables(schema.tables)
        changed = [
            table
            for table, columns in schema.tables.items()
            if dict(found.get(table, {})) != dict(columns)
            or self._engine.place(table) != schema.places[table]
        ]
        if changed:
            raise QueryError(
                f"The columns of {', '.join(changed)} are not those that were there when the "
                "database was connected, so nobody knows whose the rows are. Connect again. "
                "Nothing was spent."
            )
        self._engine.check_functions(QueryError)
        self._engine.check_parts(schema, QueryError)
        self._engine.check(statement)

    def rewritten(self, query: SqlQuery) -> str:
        """Return the statement that the engine would run for a question, for reading."""
        return query.rewrite(self._schema).text

    def engine_totals(self, text: str, *, dialect: str = DEFAULT) -> EngineTotals:
        """Return the rows of ``SELECT row, column[, weight]``, each with its owner.

        Custodian side: :meth:`tulle.Contributions.from_query` calls it.

        Raises:
            QueryError: when the SELECT is not supported, or rows do not have one owner each.
        """
        from tulle.sql.question.parse import parse_statement

        tree = parse_statement(text, dialect)
        rows: type[EngineTotals] = registry.find("data", "database")["engine_totals"]
        return rows(self._engine, self._schema, tree, self._gone)

    def neighbours(self, unit: str | Unit) -> Iterator[Database]:
        """Yield the database without each participant; additions are these pairs read backwards."""
        whole = self.under(self.check_unit(unit))
        for participant in whole.participants():
            yield whole.without(*participant)

    def participants(self) -> list[tuple[str, Any]]:
        """Return everyone who owns a row: kind and identifier. Custodian side."""
        from tulle.sql.compile.truth import participants

        return participants(self._engine, self._schema, self._gone)

    def without(self, entity: str, identifier: Any) -> Database:
        """Return the database as it is after one participant has left with all their rows.

        Raises:
            InputError: when somebody has left already; one at a time makes a neighbour.
        """
        if self._gone is not None:
            raise InputError("Somebody has left this database already; start from the whole one.")
        return Database._of(self._engine, self._schema, (entity, identifier))

    def close(self) -> None:
        """Close the connection, if it was opened by :meth:`connect`."""
        self._engine.close()


def open_engine(
    url: Any,
    tables: dict[str, Any],
    types: Mapping[str, str] | None = None,
    memory: str | None = None,
) -> Engine:
    """Return the engine behind a URL or a connection; see :meth:`Database.connect`."""
    from tulle.sql.engines.base import Size
    from tulle.sql.engines.files import check_types

    check_types(types or {}, tables)
    size = None if memory is None else Size.read(memory)
    if size is not None and not isinstance(url, str):
        raise InputError(
            "memory= limits an engine that is opened here. What is handed over keeps its own "
            "limits: set them on the connection or the session, and leave memory= out."
        )
    connector = connector_of(url)
    if connector is None:
        raise no_connector(url)
    if tables and not (isinstance(url, str) and connector.holds_tables):
        raise no_tables()
    if isinstance(url, str):
        return connector.open(url, tables, types or {}, size)
    return connector.take(url)


def _require_parser(url: object) -> None:
    try:
        import sqlglot  # noqa: F401
    except ImportError:
        connector = connector_of(url)
        extra = "sql" if connector is None else connector.extra
        raise_alone(MissingExtraError("sqlglot", extra, "A database"))
