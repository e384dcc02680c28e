"""What every engine offers: a catalogue, and rows as Arrow tables."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeVar

from tulle.core.errors import InputError, QueryError, TulleError, raise_alone
from tulle.core.logs import quiet
from tulle.sql.schema.catalogue import Catalogue, Definition, Keys

if TYPE_CHECKING:
    import pyarrow

    from tulle.sql.schema.schema import Schema


Result = TypeVar("Result")


_SIZE = r"\s*([0-9]{1,9})\s*([KMGT]B)\s*"


@dataclass(frozen=True)
class Size:
    """A public limit of memory, and of the disk that what needs more may use."""

    kilobytes: int
    on_disk: int
    """How many kilobytes may lie on disk meanwhile: ten times as many, unless it is said."""

    @classmethod
    def read(cls, text: str) -> Size:
        """Read a size such as 4GB, or 4GB + 100GB where that much of the disk may be used.

        Raises:
            InputError: for anything else.
        """
        found = re.fullmatch(rf"{_SIZE}(?:\+{_SIZE})?", str(text))
        if found is not None:
            memory = int(found[1]) * 1024 ** "KMGT".index(found[2][0])
            disk = 10 * memory
            if found[3] is not None:
                disk = int(found[3]) * 1024 ** "KMGT".index(found[4][0])
            if memory and disk:
                return cls(memory, disk)
        raise InputError(
            f"memory must be a size such as '4GB', or '4GB + 100GB' with the disk; got {text!r}."
        )


class EngineError(TulleError):
    """The engine could not finish a query; its own words may quote records and are kept back."""

    def __init__(self) -> None:
        super().__init__(
            "The engine stopped while running the query, and the price stays paid. Its message may "
            "quote records and is not shown. Memory or disk may have ended (memory= of "
            "Database.connect), or a file may be damaged; run database.rewritten(query) in the "
            "engine to see the cause."
        )


class Workspace:
    """Where an engine keeps rows that several statements of one question read.

    What is kept goes when this goes. An engine that keeps nothing computes it again each time, and
    the tables may have changed in between.
    """

    keeps: ClassVar[bool] = False
    """Whether the rows are the same in every statement that reads them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def keep(self, statement: str, looked_up: str | None = None) -> str:
        """Return what stands in FROM for the rows of a checked statement.

        ``looked_up`` is a column by which rows are looked up in it later.

        Raises:
            EngineError: when the engine fails on the way, without its message.
        """
        return f"({statement})"

    def fetch(self, statement: str) -> pyarrow.Table:
        """Return the rows of a statement over what is kept, as :meth:`Engine.fetch` does."""
        return self._engine.fetch(statement)


class Engine(ABC):
    """A connection that reads. It never changes the user's tables.

    The tables are those of the schema that was the current one when the connection was handed
    over; what becomes the current one later does not matter.
    """

    dialect: ClassVar[str]
    """What the engine's SQL is called by the parser."""

    loggers: ClassVar[tuple[str, ...]] = ()
    """Names of the Python loggers of its driver, which may print values of rows."""

    @abstractmethod
    def catalogue(self, only: Collection[str] | None = None) -> Catalogue:
        """Return all tables, or those of these names, with their columns and types.

        A table is rows that are stored: reading it computes nothing that could fail on a row.
        """

    @abstractmethod
    def definitions(self) -> Mapping[str, Definition]:
        """Return every name that is not just a table: views, tables with computed columns, and
        whatever else may fail when it is read."""

    def shadowed(self) -> list[str]:
        """Return functions of the database's own that are called like the engine's.

        What is compiled calls the engine's functions, of which it is known what they do.
        """
        return []

    def hold(self, tables: Collection[str]) -> None:  # noqa: B027 - most engines have nothing to do
        """Read what only a program gives once and keep it, before anything is asked.

        Raises:
            InputError: when that cannot be read to its end.
        """

    @abstractmethod
    def place(self, table: str) -> tuple[str, ...]:
        """Return the catalog and schema that a table of the catalogue is found in."""

    def parts(self) -> Collection[tuple[str, str]]:
        """Return pairs of tables that share rows; where one is a part of the other, that second."""
        return ()

    @abstractmethod
    def keys(self) -> Keys:
        """Return the declared primary and foreign keys."""

    @abstractmethod
    def read(self, statement: str) -> pyarrow.Table:
        """Return the rows of a SELECT."""

    @abstractmethod
    def explain(self, statement: str) -> None:
        """Make the engine resolve names and types of a SELECT.

        Whether it succeeds must not depend on rows, nor on statistics about them.
        """

    def adopt(self, wanted: Collection[str]) -> None:  # noqa: B027 - most have nothing to do
        """Make tables of these names readable that only the user's own session sees."""

    def check(self, statement: str) -> None:
        """Let the engine resolve names and types, without running the statement.

        Raises:
            QueryError: in words of our own, since a view over a file may make the engine quote it.
        """
        refusal = QueryError(
            f"{self.dialect} does not accept the query: a name or a type in it does not fit, for "
            "example a text is compared with a number, or a function takes other arguments. Print "
            "database.rewritten(query) and run it in the engine to see which. Nothing was spent."
        )
        self.attempt(partial(self.explain, statement), refusal)

    def check_parts(self, schema: Schema, kind: type[TulleError]) -> None:
        """Refuse tables that share rows of which they do not say alike whose they are.

        Raises:
            TulleError: of this kind, naming two of them.
        """
        refusal = kind(f"{self.dialect} cannot list which tables are parts of others.")
        for whole, part in self.attempt(self.parts, refusal):
            if {whole, part} <= set(schema.tables) and any(
                declared.get(whole) != declared.get(part)
                for declared in (schema.owners, schema.times)
            ):
                raise kind(
                    f"Rows of {part} are also rows of {whole} (it inherits from it or is a "
                    "partition, or a third table inherits from both), and the two do not say alike "
                    "whose they are, or of when. Declare the same owners and times for both, or "
                    "leave one of them out."
                )

    def check_functions(self, kind: type[TulleError]) -> None:
        """Refuse a database in which a name of the engine's functions means another one.

        Raises:
            TulleError: of this kind, naming the functions.
        """
        refusal = kind(f"{self.dialect} cannot list its functions.")
        found = self.attempt(self.shadowed, refusal)
        if found:
            raise kind(
                f"The database has functions of its own that are called like {self.dialect}'s: "
                f"{', '.join(found)}. A question would call them in place of these, and they may "
                "fail on a row. Rename or drop them."
            )

    def fetch(self, statement: str) -> pyarrow.Table:
        """Return the rows of a statement that was checked.

        Raises:
            EngineError: when the engine fails on the way, without its message.
        """
        return self.attempt(partial(self.read, statement), EngineError())

    def workspace(self) -> Workspace:
        """Return a place for what one question computes once.

        Raises:
            EngineError: when the engine fails on the way, without its message.
        """
        return Workspace(self)

    def tables(self, only: Collection[str] | None = None) -> Catalogue:
        """Return the catalogue.

        Raises:
            InputError: when the engine cannot give it, without its message.
        """
        refusal = InputError(f"{self.dialect} cannot list its tables; connect again.")
        return self.attempt(partial(self.catalogue, only), refusal)

    def attempt(self, act: Callable[[], Result], instead: TulleError) -> Result:
        """Return what an act on the engine gives, with this error in place of the engine's own.

        The engine's error may quote a record, and so may its driver's log: neither is passed on.
        Whatever a driver raises is one: it also reads texts, converts values and allocates.
        """
        try:
            with quiet(self.loggers), self.muted():
                return act()
        except TulleError:
            raise
        except Exception:  # noqa: BLE001 - no driver says all that it may raise
            raise_alone(instead)

    @contextmanager
    def muted(self) -> Iterator[None]:
        """Keep the engine from writing about a statement while it works on it."""
        yield

    @abstractmethod
    def close(self) -> None:
        """Give the connection back, if it was opened here."""
