"""Named columns of equal length: the form in which every answer can be read."""

from __future__ import annotations

import csv
import html
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tulle.core import codec, registry
from tulle.core.errors import InputError, MissingExtraError, raise_alone
from tulle.core.validate import counted, visible

_MOST_ROWS = 20
"""How many rows are shown; of longer tables the first and the last."""


class LabelledTable:
    """Ordered columns of equal length, by name; it cannot be changed.

    ``columns`` maps names to numpy arrays or to lists, in which None stands for what is missing.
    ``keys`` names the columns that say what a row is about (a group, a node, a cell); the others
    hold what was measured. Arrays of anything but numbers are held as lists.

    Raises:
        InputError: when columns differ in length, or a key is no column.

    Example:
        >>> table = LabelledTable({"city": ["Aarhus", "Bern"], "trips": [12, None]}, keys=["city"])
        >>> table
        city    trips
        Aarhus     12
        Bern        –
        >>> table["trips"], len(table), table.keys
        ((12, None), 2, ('city',))
    """

    __slots__ = ("_columns", "_keys")
    _columns: dict[str, Any]
    _keys: tuple[str, ...]

    def __init__(self, columns: Mapping[str, Any], *, keys: Sequence[str] = ()) -> None:
        made = {str(name): _column(name, values) for name, values in columns.items()}
        lengths = {len(values) for values in made.values()}
        if len(lengths) > 1:
            raise InputError(
                "The columns of a table must have equally many rows; these have "
                + ", ".join(f"{name!r}: {len(values)}" for name, values in made.items())
                + "."
            )
        given = (keys,) if isinstance(keys, str) else tuple(keys)
        for key in given:
            if key not in made:
                raise InputError(
                    f"The key {key!r} is no column of the table. Its columns: "
                    f"{', '.join(map(repr, made)) or 'none'}."
                )
        object.__setattr__(self, "_columns", made)
        object.__setattr__(self, "_keys", given)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("A table cannot be changed; make another one.")

    # --- reading ----------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self._columns)

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the columns that say what a row is about."""
        return self._keys

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of all other columns."""
        return tuple(name for name in self._columns if name not in self._keys)

    def __getitem__(self, name: str) -> Any:
        if name not in self._columns:
            raise_alone(
                InputError(f"The table has no column {name!r}. It has: {', '.join(self._columns)}.")
            )
        return self._columns[name]

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Yield the rows as plain Python values."""
        parts = [_plain(values[start:stop]) for values in self._columns.values()]
        return zip(*parts, strict=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelledTable):
            return NotImplemented
        return (
            self.names == other.names
            and self.keys == other.keys
            and all(_same(self[name], other[name]) for name in self.names)
        )

    __hash__ = None  # type: ignore[assignment]

    # --- other forms ------------------------------------------------------------------------

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists of plain Python values, by name."""
        return {name: _plain(values) for name, values in self._columns.items()}

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table``; a column of several types becomes one of texts."""
        import pyarrow as pa

        arrays = {name: _arrow(values, name) for name, values in self._columns.items()}
        return pa.table(arrays)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Hand the columns to any library that reads Arrow streams, as a PyCapsule."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame``.

        Raises:
            MissingExtraError: when pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise_alone(MissingExtraError("pandas", "interop", "A DataFrame"))
        made = {
            name: values if isinstance(values, np.ndarray) else _series(pd, values, name)
            for name, values in self._columns.items()
        }
        return pd.DataFrame(made)

    def to_polars(self) -> Any:
        """Return a ``polars.DataFrame``.

        Raises:
            MissingExtraError: when polars is not installed.
        """
        try:
            import polars as pl
        except ImportError:
            raise_alone(MissingExtraError("polars", "interop", "A DataFrame"))
        return pl.from_arrow(self.to_arrow())

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the table as CSV text with names in the first line; what is missing is empty.

        With ``path`` it is written there as well.

        Example:
            >>> print(LabelledTable({"node": ["a", "b"], "value": [1, None]}).to_csv())
            node,value
            a,1
            b,
            <BLANKLINE>
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.names)
        if len(self.names) == 1:
            # An empty line would be no row: the one cell is quoted.
            writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerows(self.rows())
        if path is not None:
            Path(path).write_text(text.getvalue(), encoding="utf-8")
        return text.getvalue()

    # --- showing ----------------------------------------------------------------------------

    def written(self, most: int = _MOST_ROWS) -> Iterator[tuple[str, ...] | None]:
        """Yield rows as texts for people; of more than ``most``, None for those between."""
        count = len(self)
        if count <= most:
            yield from (tuple(map(written, row)) for row in self.rows())
            return
        first = most - most // 2
        yield from (tuple(map(written, row)) for row in self.rows(0, first))
        yield None
        if most // 2:
            yield from (tuple(map(written, row)) for row in self.rows(count - most // 2))

    def __repr__(self) -> str:
        return self.shown()

    def shown(self, most: int = _MOST_ROWS) -> str:
        """Return aligned text of the first and the last rows."""
        if not self.names:
            return "a table without columns"
        body = [row or ("…",) * len(self.names) for row in self.written(most)]
        titles = tuple(map(written, self.names))
        widths = [max(map(len, cells)) for cells in zip(titles, *body, strict=True)]
        sides = [self._is_numeric(name) for name in self.names]
        lines = [
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, sides, strict=True)
            ).rstrip()
            for row in (titles, *body)
        ]
        if len(self) > most:
            lines.append(f"({counted(len(self), 'row')})")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self, most: int = _MOST_ROWS) -> str:
        """Return an HTML table of the first and the last rows."""
        sides = [
            "text-align:right" if self._is_numeric(name) else "text-align:left"
            for name in self.names
        ]

        def line(cells: Sequence[str], tag: str) -> str:
            return "".join(
                f"<{tag} style='{side}'>{html.escape(cell)}</{tag}>"
                for cell, side in zip(cells, sides, strict=True)
            )

        body = "".join(
            f"<tr>{line(row or ('…',) * len(self.names), 'td')}</tr>" for row in self.written(most)
        )
        size = f"<p>{counted(len(self), 'row')}</p>" if len(self) > most else ""
        return (
            f"<table><thead><tr>{line(self.names, 'th')}</tr></thead><tbody>{body}</tbody></table>"
            + size
        )

    def _is_numeric(self, name: str) -> bool:
        values = self[name]
        if isinstance(values, np.ndarray):
            return True
        return all(
            value is None or (isinstance(value, int | float) and not isinstance(value, bool))
            for value in values
        )


def written(value: Any) -> str:
    """Write one cell for people: thousands apart, no more digits than are looked at.

    Example:
        >>> written(1234567), written(0.123456789), written(None), written("a")
        ('1,234,567', '0.12346', '–', 'a')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if math.isnan(value):
            return "–"
        if math.isinf(value):
            return "no end"
        value += 0.0  # no minus before a zero
        if abs(value) >= 1e15:
            return f"{value:.5g}"
        return f"{value:,.0f}" if value == int(value) or abs(value) >= 1e4 else f"{value:,.5g}"
    return visible(str(value)).replace("\n", "\\n")


def _column(name: Any, values: Any) -> Any:
    """Return values that nobody can change: a read-only array of numbers, or a tuple."""
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
        raise InputError(f"The column {name!r} must be a list or an array.")
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InputError(f"The column {name!r} must have one value for each row.")
        if values.dtype.kind in "biuf":
            kept = values.copy()
            kept.flags.writeable = False
            return kept
        values = values.tolist()
    return tuple(_scalar(value) for value in values)


def _scalar(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    return float(value) if isinstance(value, Fraction) else value


def _plain(values: Any) -> list[Any]:
    listed: list[Any] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return listed


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) != isinstance(other, np.ndarray):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(
            one, other, equal_nan=one.dtype.kind == "f"
        )
    return len(one) == len(other) and all(
        type(a) is type(b) and (a == b or (a != a and b != b))
        for a, b in zip(one, other, strict=True)
    )


def _arrow(values: Any, name: str) -> Any:
    import pyarrow as pa

    from tulle.core import cells

    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return cells.texts(values, name)


def _series(pandas: Any, values: Sequence[Any], name: str) -> Any:
    """Return a column for pandas: numbers with gaps as floats, anything else as it is."""
    held = [value for value in values if value is not None]
    numeric = held and all(type(value) in (int, float) for value in held)
    if numeric and len(held) < len(values):
        return pandas.Series(
            [np.nan if value is None else value for value in values], dtype="float64", name=name
        )
    return pandas.Series(list(values), dtype=None if held else "object", name=name)


@registry.register("value", "core", "table")
class TableCodec:
    """A table as JSON."""

    type: ClassVar[type] = LabelledTable

    @staticmethod
    def encode(value: LabelledTable) -> dict[str, Any]:
        """Return the columns, exactly, in their order."""
        columns = [[name, codec.encode(value[name])] for name in value.names]
        return {"columns": columns, "keys": list(value.keys)}

    @staticmethod
    def decode(data: Any) -> LabelledTable:
        """Read what :meth:`encode` wrote."""
        columns = {str(name): codec.decode(values) for name, values in data["columns"]}
        return LabelledTable(columns, keys=tuple(data["keys"]))
