"""Which URLs and connections lead to an engine.

A connector is registered by the beginning of each URL, ``@registry.register("engine", "url",
"duckdb://")``, and by the package of each connection that can be handed over, ``("engine",
"connection", "duckdb")``. It imports its engine when it opens it, so that an engine that is not
installed troubles nobody.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tulle.core import registry
from tulle.core.errors import InputError

if TYPE_CHECKING:
    from tulle.sql.engines.base import Engine, Size


class Connector(ABC):
    """How an engine is reached. Nothing has a default."""

    @property
    @abstractmethod
    def extra(self) -> str:
        """Which extra of tulle installs what the engine needs."""

    @property
    @abstractmethod
    def urls(self) -> tuple[str, ...]:
        """How its URLs begin, for reading."""

    @property
    @abstractmethod
    def suffixes(self) -> tuple[str, ...]:
        """How names of its files end; none if it has no files."""

    @property
    @abstractmethod
    def handed_over(self) -> str:
        """What is taken in place of a URL, for reading; empty if nothing is."""

    @property
    @abstractmethod
    def holds_tables(self) -> bool:
        """Whether files and frames can be given to an engine that is opened by its URL."""

    @property
    @abstractmethod
    def remote(self) -> bool:
        """Whether a URL names a server, and no file of this machine."""

    @abstractmethod
    def open(
        self, url: str, tables: Mapping[str, Any], types: Mapping[str, str], memory: Size | None
    ) -> Engine:
        """Return the engine behind a URL, over these files and frames.

        Raises:
            InputError: when it cannot be opened.
            MissingExtraError: when its driver is not installed.
        """

    @abstractmethod
    def take(self, connection: Any) -> Engine:
        """Return the engine behind a connection of the user's own, which stays theirs."""

    @abstractmethod
    def beside(self, url: str, folder: Path) -> str:
        """Return a URL in which a file name is relative to a folder."""


def connector_of(url: Any) -> Connector | None:
    """Return the connector of a URL or of a connection; None if there is none."""
    if isinstance(url, str):
        start, mark, _ = url.partition("://")
        found, name = registry.find("engine", "url"), start + mark if mark else url.split("[")[0]
    else:
        found = registry.find("engine", "connection")
        name = type(url).__module__.partition(".")[0]
    return _made(found[name]) if name in found else None


def connectors() -> list[Connector]:
    """Return all connectors, each once."""
    return [_made(kind) for kind in dict.fromkeys(registry.find("engine", "url").values())]


def place_of(url: str) -> str:
    """Return of a URL what may be shown and names things: nothing that may be a user or password.

    Those stand before an @ or after a question mark.

    Example:
        >>> place_of("postgresql://me:secret@host:5432/shop?sslpassword=other")
        'postgresql://host:5432/shop'
        >>> place_of("postgresql://host/shop?password=a@b")
        'postgresql://database'
    """
    scheme, _, rest = url.partition("://")
    start, end = rest.rfind("@") + 1, f"{rest}?".find("?")
    return f"{scheme}://{rest[start:end] if start <= end else 'database'}"


def no_connector(url: Any) -> InputError:
    """Return the error for a URL or a connection that leads to no engine."""
    # A URL may hold a password: only its beginning is shown.
    shown = url.split("://")[0] if isinstance(url, str) else type(url).__name__
    *starts, last = (start for one in connectors() for start in one.urls)
    handed = " and ".join(one.handed_over for one in connectors() if one.handed_over)
    return InputError(
        f"A database URL starts with {', '.join(starts)} or {last}; got {shown!r}. {handed} can "
        "be passed as they are."
    )


def no_tables() -> InputError:
    """Return the error for files and frames that go with no such URL or connection."""
    starts = [start for one in connectors() if one.holds_tables for start in one.urls]
    return InputError(
        "tables= gives files and frames to an engine that is opened here: it goes with "
        f"{', '.join(starts)} or Database.from_tables. Other URLs, and connections and sessions "
        "that are handed over, have tables of their own: put the rows in there, or leave tables= "
        "out."
    )


def _made(kind: type[Connector]) -> Connector:
    return kind()
