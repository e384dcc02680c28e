"""Rows that an engine gave, as arrays.

Arrow's own conversions to and from arrays load pandas wherever it is installed, which takes half a
second and 50 MB of memory.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tulle.core.arrays import Array, Wholes

if TYPE_CHECKING:
    import pyarrow


def numbers_in(table: pyarrow.Table, name: str) -> Array:
    """Return a column of whole numbers without NULL, or of doubles, among which NULL is NaN."""
    import pyarrow as pa

    column = table.column(name)
    if pa.types.is_null(column.type):
        return np.full(len(column), math.nan)
    dtype = np.dtype(column.type.to_pandas_dtype())
    assert pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    assert pa.types.is_floating(column.type) or not column.null_count
    parts = [np.zeros(0, dtype)]
    for chunk in column.chunks:
        known, held = chunk.buffers()
        if len(chunk):
            part = np.frombuffer(held, dtype, len(chunk), chunk.offset * dtype.itemsize)
            if chunk.null_count:
                bits = np.unpackbits(np.frombuffer(known, np.uint8), bitorder="little")
                part = np.where(bits[chunk.offset : chunk.offset + len(chunk)], part, math.nan)
            parts.append(part)
    return np.concatenate(parts)


def texts_in(column: Any) -> list[str | bytes | None]:
    """Return a column of texts; one that is no UTF-8, as Spark has them, as its bytes."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        import pyarrow as pa

        return [_text(one) for one in column.cast(pa.binary()).to_pylist()]


def readable(column: Any) -> Any:
    """Return a column of texts, with NULL for one that is no UTF-8."""
    import pyarrow as pa

    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        texts = [one if isinstance(one, str) else None for one in texts_in(column)]
        return pa.array(texts, column.type)
    return column


def _text(written: bytes | None) -> str | bytes | None:
    try:
        return None if written is None else written.decode()
    except UnicodeDecodeError:
        return written


def rows_at(table: pyarrow.Table, places: Wholes) -> pyarrow.Table:
    """Return some rows of a table."""
    import pyarrow as pa

    held = pa.py_buffer(np.ascontiguousarray(places, dtype=np.int64))
    return table.take(pa.Array.from_buffers(pa.int64(), len(places), [None, held]))
