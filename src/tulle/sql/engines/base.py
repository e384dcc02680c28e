"""What every engine offers: a catalogue, and rows as Arrow tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from tulle.core.errors import QueryError, TulleError
from tulle.sql.catalogue import Catalogue, Keys

if TYPE_CHECKING:
    import pyarrow


class EngineError(TulleError):
    """The engine could not finish a query; its own words may quote records and are kept back."""

    def __init__(self) -> None:
        super().__init__(
            "The engine stopped while running the query. Its message may quote records and is not "
            "shown. Print database.rewritten(query) and run it in the engine to see the cause; "
            "often a number is too large for its type or a text is compared with a number."
        )


class Engine(ABC):
    """A connection that reads. It never changes the user's tables."""

    dialect: ClassVar[str]
    """What the engine's SQL is called by the parser."""

    @property
    @abstractmethod
    def errors(self) -> tuple[type[Exception], ...]:
        """What the engine raises when a query fails."""

    @abstractmethod
    def catalogue(self) -> Catalogue:
        """Return all tables with their columns and types."""

    @abstractmethod
    def keys(self) -> Keys:
        """Return the declared primary and foreign keys."""

    @abstractmethod
    def read(self, statement: str) -> pyarrow.Table:
        """Return the rows of a SELECT."""

    @abstractmethod
    def explain(self, statement: str) -> None:
        """Make the engine plan a SELECT."""

    def check(self, statement: str) -> None:
        """Let the engine resolve names and types, without running the statement.

        Raises:
            QueryError: with the engine's message; nothing was read, so it quotes no record.
        """
        try:
            self.explain(statement)
        except self.errors as error:
            words = str(error).strip().splitlines()
            raise QueryError(
                f"{self.dialect} does not accept the query: {words[0] if words else 'no reason'}"
            ) from None

    def fetch(self, statement: str) -> pyarrow.Table:
        """Return the rows of a statement that was checked.

        Raises:
            EngineError: when the engine fails on the way, without its message.
        """
        try:
            return self.read(statement)
        except self.errors:
            raise EngineError from None

    @abstractmethod
    def close(self) -> None:
        """Give the connection back, if it was opened here."""
