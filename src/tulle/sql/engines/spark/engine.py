"""Spark: a session at hand, or a master to start one on."""

from __future__ import annotations

import re
import uuid
import weakref
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

from tulle.core.errors import InputError, MissingExtraError, raise_alone
from tulle.core.reading import are_row_numbers
from tulle.sql.engines.base import Engine, EngineError, Size, Workspace
from tulle.sql.engines.connector import place_of
from tulle.sql.engines.files import CsvFile, csv_file, is_parquet, partitioned_from
from tulle.sql.engines.spark.plans import NAMES_ONLY, NOT_STORED, columns_to_read, listed, read_plan
from tulle.sql.schema.catalogue import RESERVED, Catalogue, Definition, Keys

if TYPE_CHECKING:
    import pyarrow


MEANING = {
    # ${env:NAME} in a question would be what the machine's environment has there.
    "spark.sql.variable.substitute": "false",
    "spark.sql.ansi.enabled": "true",
    # The type of a column would follow from the names of all folders.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""Settings that are not left as Spark has them while a statement is worked on."""

HARMLESS = re.compile(
    r"spark\.(?!sql\.)|spark\.sql\.(?:"
    # The custodian's choice: how a time with a zone is a date.
    r"session\.timeZone"
    # Where tables are, and who looks on.
    r"|catalog|defaultCatalog|warehouse|extensions|artifact|hive\.|ui\.|streaming|.*[lL]isteners"
    # How much is done at once, and where.
    r"|shuffle|adaptive|autoBroadcast|broadcast|codegen|files\.(?:max|min|open)|inMemory|join\."
    r"|execution\.arrow\.maxRecords|sources\.parallel)"
)
"""Beginnings of names of settings that change no answer. A session's others are as Spark has them
while a statement is worked on: they may change what it means, or let a value of a row stop it."""

_LIMITS = ("spark.driver.memory", "spark.executor.memory", "spark.driver.maxResultSize")
"""Settings of a session that bound its memory; they are read when it starts."""


class Spark(Engine):
    """A Spark session; the tables of its current database, and its temporary views.

    While it is connected, Spark itself logs nothing: what it logs about a task that failed, also
    after the question is over, quotes values. :meth:`close` gives the levels back.
    """

    dialect: ClassVar[str] = "spark"
    loggers: ClassVar[tuple[str, ...]] = (
        *("py4j", "pyspark", "SQLQueryContextLogger", "DataFrameQueryContextLogger"),
    )

    def __init__(self, session: Any, *, owned: bool) -> None:
        self._session = session
        self._owned = owned
        self._levels: dict[str, Any] = {}
        with suppress(ImportError):
            from pyspark.logger import PySparkLogger

            # Made now, as they would be made at the first error: see tulle.sql.engines.base.quiet.
            for name in self.loggers[2:]:
                PySparkLogger.getLogger(name)
        refusal = InputError("The Spark session does not say its current database; is it running?")
        self._place: tuple[str, str] = self.attempt(self._here, refusal)
        self._temporary: set[str] = set()
        self._held: dict[str, Any] | None = None

    def _here(self) -> tuple[str, str]:
        return self._session.catalog.currentCatalog(), self._session.catalog.currentDatabase()

    @classmethod
    def open(
        cls,
        master: str,
        tables: Mapping[str, Any],
        types: Mapping[str, str],
        memory: Size | None = None,
    ) -> Spark:
        """Start a session on this master, with a view for each Parquet or CSV path in ``tables``.

        Raises:
            InputError: when the session cannot be started or a path cannot be read.
        """
        pyspark = _import()
        try:
            running = pyspark.sql.SparkSession.getActiveSession() is not None
            builder = pyspark.sql.SparkSession.builder.master(master).appName("tulle")
            builder = builder.config("spark.ui.enabled", "false")
            # It would say on standard error how many parts there are and how far it is.
            builder = builder.config("spark.ui.showConsoleProgress", "false")
            if memory is not None and not running:
                for setting in _LIMITS:
                    builder = builder.config(setting, f"{memory.kilobytes}k")
            session = builder.getOrCreate()
        except Exception as error:  # noqa: BLE001 - a missing Java shows in many ways
            shown = place_of(master) if "://" in master else master
            raise_alone(
                InputError(
                    f"Spark cannot be started on {shown!r}: {type(error).__name__}. It needs "
                    "Java 17."
                )
            )
        if memory is not None and running:
            raise InputError(
                "memory= limits a Spark that is started here, and one is running already. Set "
                f"{', '.join(_LIMITS)} when it is started, and leave memory= out."
            )
        # A session that was running before is not ours to stop.
        engine = cls(session, owned=not running)
        for name, path in tables.items():
            engine._attach(name, str(path), types)
        return engine

    def _attach(self, name: str, path: str, types: Mapping[str, str]) -> None:
        refusal = InputError(
            f"tables[{name!r}]: Spark cannot read {path!r}. Its message may quote the file and is "
            "not shown; read the file in Spark to see it."
        )
        source = None if is_parquet(path) else csv_file(name, path, types, self.dialect)
        below = partitioned_from(name, path) if source is None else None
        self.attempt(partial(self._make_view, name, path, source, below), refusal)

    def _make_view(self, name: str, path: str, source: CsvFile | None, below: str | None) -> None:
        reader = self._session.read
        if below is None:
            reader = reader.option("recursiveFileLookup", True)
        else:
            reader = reader.option("basePath", below).option(NAMES_ONLY, False)
        if source is None:
            # Files whose columns differ in type are refused now, not when a question needs them.
            frame = reader.option("mergeSchema", True).parquet(path)
            numbers = [column for column in frame.columns if are_row_numbers(column)]
            frame = frame.drop(*numbers) if numbers else frame
        else:
            named = ", ".join(f"{_quote(column)} STRING" for column in source.columns)
            frame = reader.csv(
                path, schema=named, header=True, sep=source.delimiter, quote='"', escape='"'
            ).selectExpr(
                *(
                    f"TRY_CAST({_quote(column)} AS {source.types[column]}) AS {_quote(column)}"
                    if column in source.types
                    else _quote(column)
                    for column in source.columns
                )
            )
        frame.createOrReplaceTempView(name)

    def catalogue(self, only: Collection[str] | None = None) -> Catalogue:
        return self._listed(only)[0]

    def definitions(self) -> dict[str, Definition]:
        return self._listed(None)[1]

    def _listed(
        self, only: Collection[str] | None
    ) -> tuple[dict[str, dict[str, str]], dict[str, Definition]]:
        """Return the columns of what is stored, and the rest of what there is."""
        listed = self._session.sql(f"SHOW TABLES IN {_quote(*self._place)}").collect()
        listed = [row for row in listed if not row["tableName"].startswith(RESERVED)]
        # Where a temporary view hides a table, its name means the view.
        self._temporary = {row["tableName"] for row in listed if row["isTemporary"]}
        tables: dict[str, dict[str, str]] = {}
        definitions: dict[str, Definition] = {}
        for name in dict.fromkeys(row["tableName"] for row in listed):
            if only is not None and name not in only:
                continue
            frame = self._session.table(_quote(*self.place(name), name))
            columns = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
            found = read_plan(frame, columns, self._place)
            if found.definition is not None:
                definitions[name] = found.definition
            elif found.program and self._held is not None and not _is_kept(frame):
                # Another frame than the one that was read when the database was connected.
                definitions[name] = Definition(reason=NOT_STORED)
            else:
                tables[name] = columns
        return tables, definitions

    def hold(self, tables: Collection[str]) -> None:
        self._held = {}
        for name in tables:
            frame = self._session.table(_quote(*self.place(name), name))
            if read_plan(frame, {}, self._place).program and not _is_kept(frame):
                self._held[name] = frame.persist()
                refusal = InputError(
                    f"Table {name} is a frame that a program makes, and Spark cannot read it to "
                    "its end. The message may quote a row and is not shown."
                )
                try:
                    self.attempt(frame.count, refusal)
                except InputError:
                    frame.unpersist()
                    raise
                continue
            checked = columns_to_read(frame)
            if checked:
                refusal = InputError(
                    f"Table {name} lies in files that Spark cannot read to their end: a value is "
                    "not what its column says, such as a decimal of too many digits or a moment "
                    "beyond the calendar, or a line has more columns than Spark reads. The message "
                    "may quote it and is not shown."
                )
                self.attempt(partial(_read_through, frame.select(*map(_quote, checked))), refusal)

    def shadowed(self) -> list[str]:
        return [] if _puts_its_own_first(self._session) else session_functions(self._session)

    def place(self, table: str) -> tuple[str, ...]:
        return () if table in self._temporary else self._place

    def keys(self) -> Keys:
        return Keys({}, {})

    def read(self, statement: str) -> pyarrow.Table:
        return self._planned(statement).toArrow()

    def workspace(self) -> Workspace:
        return CachedFrames(self)

    def explain(self, statement: str) -> None:
        # A Spark frame is lazy: planning it resolves names and types and reads nothing.
        self._planned(statement)

    def _planned(self, statement: str) -> Any:
        """Return a statement's frame, planned in the thread that waits for it.

        A statement nested too deeply overflows the planner's stack. In the thread that hands rows
        over Spark does not notice, and whoever waits for them waits for ever.
        """
        frame = self._session.sql(statement)
        _ = frame.schema
        if hasattr(frame, "_jdf"):  # not with Spark Connect, whose server answers for it
            frame._jdf.queryExecution().executedPlan()
        return frame

    @contextmanager
    def muted(self) -> Iterator[None]:
        logging = self._log4j()
        if logging is not None:
            context, off = logging
            changed = False
            for name, logger in context.getConfiguration().getLoggers().items():
                level = logger.getLevel()
                if level.intLevel() != off.intLevel():
                    self._levels[name] = level
                    logger.setLevel(off)
                    changed = True
            if changed:
                context.updateLoggers()
        with _usual_settings(self._session):
            yield

    def _log4j(self) -> tuple[Any, Any] | None:
        """Return the context of Spark's loggers and the level that is none at all."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            log4j = self._session._jvm.org.apache.logging.log4j
            return log4j.LogManager.getContext(False), log4j.Level.OFF
        except (AttributeError, TypeError, Py4JError, PySparkException):
            # Spark Connect: the Java machine, and its log, are elsewhere.
            return None

    def close(self) -> None:
        for frame in (self._held or {}).values():
            # Where memory has ended, the Java machine may be gone with the connection to it.
            with suppress(Exception):
                frame.unpersist()
        if self._owned:
            self._session.stop()
            return
        logging = self._log4j()
        if logging is not None:
            loggers = logging[0].getConfiguration().getLoggers()
            for name, level in self._levels.items():
                loggers[name].setLevel(level)
            logging[0].updateLoggers()


_ADAPTIVE = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"
"""Lets Spark choose how many parts a kept frame has: of few rows 200 parts take seconds."""


class CachedFrames(Workspace):
    """Frames that Spark keeps in memory and on disk, as temporary views of names of their own."""

    keeps: ClassVar[bool] = True

    def __init__(self, engine: Spark) -> None:
        super().__init__(engine)
        self._session = engine._session
        self._frames: dict[str, Any] = {}
        weakref.finalize(self, _drop, self._session, self._frames)

    def keep(self, statement: str, looked_up: str | None = None) -> str:
        name = f"{RESERVED}_kept_{uuid.uuid4().hex}"
        # It is computed by the first statement that reads it.
        self._engine.attempt(partial(self._cache, name, statement), EngineError())
        return _quote(name)

    def _cache(self, name: str, statement: str) -> None:
        with _setting(self._session, _ADAPTIVE, "true"):
            self._frames[name] = self._session.sql(statement).persist()
        self._frames[name].createTempView(_quote(name))


_changed: dict[int, tuple[int, dict[str, str]]] = {}
"""For each session that works on statements: on how many, and how it was set before the first."""

_changing = Lock()


@contextmanager
def _usual_settings(session: Any) -> Iterator[None]:
    """Let a session mean what Spark means without settings, until no statement needs it."""
    key, conf = id(session), session.conf
    with _changing:
        count, before = _changed.get(key) or (0, _deviations(conf))
        if not count:
            for name in before:
                conf.unset(name)
            for name, value in MEANING.items():
                conf.set(name, value)
        _changed[key] = count + 1, before
    try:
        yield
    finally:
        with _changing:
            count, before = _changed.pop(key)
            if count > 1:
                _changed[key] = count - 1, before
            else:
                # Where memory has ended, the Java machine may be gone with the connection to it.
                with suppress(Exception):
                    for name in MEANING:
                        conf.unset(name)
                    for name, value in before.items():
                        conf.set(name, value)


def _deviations(conf: Any) -> dict[str, str]:
    return {
        name: value
        for name, value in conf.getAll.items()
        if not HARMLESS.match(name) and conf.isModifiable(name)
    }


@contextmanager
def _setting(session: Any, name: str, value: str) -> Iterator[None]:
    """Set something for a while."""
    before = session.conf.get(name, None)
    session.conf.set(name, value)
    try:
        yield
    finally:
        session.conf.unset(name) if before is None else session.conf.set(name, before)


def _drop(session: Any, frames: dict[str, Any]) -> None:
    # Where memory has ended, the Java machine may be gone with the connection to it.
    with suppress(Exception):
        for name, frame in frames.items():
            session.catalog.dropTempView(name)
            frame.unpersist()


def _puts_its_own_first(session: Any) -> bool:
    """Say whether no function of the session takes the place of one of Spark's: since 4.3."""
    return tuple(map(int, str(session.version).split(".")[:2])) >= (4, 3)


def session_functions(session: Any) -> list[str]:
    """Return the functions of a session that are called like Spark's."""
    registry = session._jsparkSession.sessionState().functionRegistry()
    known = [
        (one.funcName(), registry.lookupFunction(one)) for one in listed(registry.listFunction())
    ]
    own = {name for name, found in known if found.get().getSource() != "built-in"}
    if not own:
        return []
    analysis = session._jvm.org.apache.spark.sql.catalyst.analysis
    built_in = getattr(getattr(analysis, "FunctionRegistry$"), "MODULE$").builtin()
    return sorted(own & {one.funcName() for one in listed(built_in.listFunction())})


def _read_through(frame: Any) -> None:
    """Read rows to their end and keep nothing."""
    frame.write.format("noop").mode("overwrite").save()


def _is_kept(frame: Any) -> bool:
    level = frame.storageLevel
    return bool(level.useMemory or level.useDisk)


def _quote(*names: str) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def _import() -> Any:
    try:
        import pyspark.sql
    except ImportError:
        raise_alone(MissingExtraError("pyspark", "spark", "A Spark database"))
    return pyspark
