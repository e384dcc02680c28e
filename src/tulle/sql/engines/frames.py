"""Frames of pandas, polars and Arrow as tables: types come from a frame's schema, never its values.

Where the schema says nothing about the values (objects of pandas, columns that are all missing,
categories), a column is text unless its type is declared, as in a CSV file: a type that followed
from the rows would tell of them.
"""

from __future__ import annotations

from collections import Counter
from os import PathLike
from typing import TYPE_CHECKING, Any

from tulle.core.cells import looked_up
from tulle.core.errors import InputError, MissingExtraError, raise_alone
from tulle.core.reading import without_row_numbers

if TYPE_CHECKING:
    import pyarrow


def is_path(source: Any) -> bool:
    """Say whether a table is given as a file."""
    return isinstance(source, str | PathLike)


def arrow_table(name: str, frame: Any) -> pyarrow.Table:
    """Return a frame as an Arrow table whose types depend on the frame's schema alone.

    Raises:
        InputError: when it is not a frame, or its columns have no names of their own.
        MissingExtraError: when pyarrow is not installed.
    """
    try:
        import pyarrow
    except ImportError:
        raise_alone(MissingExtraError("pyarrow", "sql", "A frame as a table"))
    refusal = InputError(
        f"tables[{name!r}]: the frame cannot be read as a table. What went wrong may quote records "
        "and is not shown."
    )
    module = type(frame).__module__.partition(".")[0]
    if module == "polars" and hasattr(frame, "collect"):
        raise InputError(f"tables[{name!r}] is a lazy frame: collect() it first.")
    if module == "polars" and "Object" in map(str, frame.dtypes):
        # Arrow would be given where in memory each object is, and not what it says.
        raise InputError(
            f"tables[{name!r}] has a column of objects of Python: cast it, say to text."
        )
    if module == "pandas" and hasattr(frame, "columns"):
        columns = [str(column) for column in frame.columns]
    elif hasattr(frame, "__arrow_c_stream__"):
        try:
            frame = without_row_numbers(pyarrow.table(frame))
        except (pyarrow.ArrowException, TypeError, ValueError):
            raise_alone(refusal)
        columns = frame.column_names
    else:
        raise InputError(
            f"tables[{name!r}] must be a file, or a frame of pandas, polars or Arrow; got "
            f"{type(frame).__name__}."
        )
    twice = sorted(column for column, times in Counter(columns).items() if times > 1)
    if twice or not columns:
        raise InputError(
            f"tables[{name!r}]: each column must have a name of its own; "
            + (f"{', '.join(twice)} occurs twice." if twice else "there are none.")
        )
    try:
        if module == "pandas":
            read = [_pandas_column(frame.iloc[:, place]) for place in range(len(columns))]
        else:
            read = [_plain(column) for column in frame.columns]
        return pyarrow.table(dict(zip(columns, read, strict=True)))
    except Exception:  # noqa: BLE001 - an object in a frame raises what it likes when it is written
        raise_alone(refusal)


def _pandas_column(series: Any) -> Any:
    """Return a column of pandas; what is missing there is NULL."""
    import pyarrow

    kind = series.dtype
    numpy_kind = getattr(kind, "kind", "O")
    plain = type(kind).__module__.startswith("numpy")
    if not plain and hasattr(kind, "pyarrow_dtype"):
        return _plain(pyarrow.chunked_array(pyarrow.array(series, type=kind.pyarrow_dtype)))
    if plain and numpy_kind in "biuf":
        return _plain(pyarrow.array(series, type=pyarrow.from_numpy_dtype(kind), from_pandas=True))
    if numpy_kind == "M":
        zone = getattr(kind, "tz", None)
        unit = pyarrow.timestamp(kind.unit if hasattr(kind, "unit") else _unit(kind), zone)
        return _plain(pyarrow.array(series, type=unit, from_pandas=True))
    if not plain and numpy_kind in "biuf" and hasattr(kind, "numpy_dtype"):
        held = pyarrow.from_numpy_dtype(kind.numpy_dtype)
        return _plain(pyarrow.array(series, type=held, from_pandas=True))
    if type(kind).__name__ != "StringDtype":
        # One by one: how pandas writes categories and durations follows from all of them. With one
        # missing, categories of whole numbers would be written as floats.
        series = type(series)(series.tolist(), dtype=object)
    return pyarrow.array(series.astype("string"), type=pyarrow.string(), from_pandas=True)


def _unit(kind: Any) -> str:
    import numpy as np

    return str(np.datetime_data(kind)[0])


def _plain(column: Any) -> Any:
    """Return a column in a type that holds no values: no list of categories, no missing type."""
    import pyarrow

    types = pyarrow.types
    if isinstance(column, pyarrow.Array):
        column = pyarrow.chunked_array([column])
    kind = column.type
    if types.is_dictionary(kind):
        return _plain(looked_up(column))
    if types.is_null(kind):
        return column.cast(pyarrow.string())
    if types.is_float16(kind):
        return column.cast(pyarrow.float32())
    if types.is_timestamp(kind) and kind.unit == "ns":
        # Not checked: whether something is lost depends on the values.
        return column.cast(pyarrow.timestamp("us", kind.tz), safe=False)
    return column
