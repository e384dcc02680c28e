"""Kinds of values, as far as they decide what an engine can fail on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

WHOLE, DECIMAL, DOUBLE = "whole number", "decimal", "double"
TEXT, BOOLEAN, TIME, INTERVAL = "text", "boolean", "time", "interval"
DATE, TIMESTAMP, ZONED = "date", "timestamp", "timestamp with time zone"
UUID, BYTES, OPAQUE, NULL, ANY = "uuid", "bytes", "other type", "NULL", "result of a function"

NUMBERS = frozenset({WHOLE, DECIMAL, DOUBLE})
DAYS = frozenset({DATE, TIMESTAMP, ZONED})


@dataclass(frozen=True)
class Kind:
    """What is known about a value from the public schema.

    ``digits`` before and ``scale`` after the point bound whole numbers and decimals; ``digits``
    is None where nothing does. ``stored`` is the type of a column as it lies in the engine, and
    empty for what is computed.
    """

    name: str
    digits: int | None = None
    scale: int = 0
    stored: str = ""
    joined: bool = False
    """Whether a text was put together from others, so that it may have grown."""

    @property
    def width(self) -> int:
        """How many digits there are at most; more than any engine has where nothing is known."""
        return 10**6 if self.digits is None else self.digits + self.scale

    @property
    def own(self) -> bool:
        """Whether it is a type of the database's own, of which nobody knows what it does."""
        return self.stored.startswith('"')


_types = exp.DataType.Type
_WHOLE = {
    _types.TINYINT: 3,
    _types.SMALLINT: 5,
    _types.INT: 10,
    _types.BIGINT: 19,
    _types.UTINYINT: 3,
    _types.USMALLINT: 5,
    _types.UINT: 10,
    _types.UBIGINT: 20,
    _types.INT128: 39,
    _types.UINT128: 39,
}
_NAMED = {
    _types.FLOAT: DOUBLE,
    _types.DOUBLE: DOUBLE,
    _types.BOOLEAN: BOOLEAN,
    _types.CHAR: TEXT,
    _types.NCHAR: TEXT,
    _types.VARCHAR: TEXT,
    _types.NVARCHAR: TEXT,
    _types.TEXT: TEXT,
    _types.ENUM: TEXT,
    _types.DATE: DATE,
    _types.TIME: TIME,
    _types.TIMESTAMP: TIMESTAMP,
    _types.TIMESTAMPNTZ: TIMESTAMP,
    _types.TIMESTAMP_S: TIMESTAMP,
    _types.TIMESTAMP_MS: TIMESTAMP,
    _types.TIMESTAMP_NS: TIMESTAMP,
    _types.TIMESTAMPTZ: ZONED,
    _types.TIMESTAMPLTZ: ZONED,
    _types.UUID: UUID,
    _types.BINARY: BYTES,
    _types.VARBINARY: BYTES,
}


def kind_of_type(kind: Any) -> Kind:
    """Return the kind of values that a type of SQL has."""
    if kind.this in _WHOLE:
        return Kind(WHOLE, _WHOLE[kind.this])
    if kind.this == _types.DECIMAL:
        sizes = [int(part.name) for part in kind.expressions]
        if not sizes:
            return Kind(DECIMAL)
        scale = sizes[1] if len(sizes) > 1 else 0
        return Kind(DECIMAL, max(sizes[0] - scale, 0), scale)
    return Kind(_NAMED.get(kind.this, OPAQUE))


@lru_cache(maxsize=1024)
def _read_type(written: str) -> Any:
    return exp.DataType.build(written)


def named_type(written: str) -> Any:
    """Return a type of SQL by its name, such as DOUBLE; each name is parsed once."""
    return _read_type(written).copy()


@lru_cache(maxsize=4096)
def kind_of_column(written: str, dialect: str) -> Kind:
    """Return the kind of a column, from its type as the catalogue writes it.

    Example:
        >>> kind_of_column("DECIMAL(15,2)", "duckdb").name
        'decimal'
    """
    if written.startswith('"'):
        return Kind(OPAQUE, stored=written)
    try:
        kind = exp.DataType.build(written, dialect=dialect)
    except (SqlglotError, ValueError):
        return Kind(OPAQUE, stored=written)
    # Engines refuse some functions of texts under some collations, and not before they meet a row.
    if not isinstance(kind, exp.DataType) or "collate" in written.lower():
        return Kind(OPAQUE, stored=written)
    found = kind_of_type(kind)
    return Kind(found.name, found.digits, found.scale, written.lower())
