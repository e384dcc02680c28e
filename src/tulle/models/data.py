"""The sealed table of people: one row each, columns with declared bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tulle.core import cells, validate
from tulle.core.arrays import Floats
from tulle.core.dataset import Dataset, Facts
from tulle.core.errors import InputError, raise_alone
from tulle.core.public import public
from tulle.core.unit import Unit

WIDEST = 1e50
"""Bounds lie within this: squares of ratios of two columns, times any noise, are then finite.

So whether a number overflows, and numpy warns of it, never depends on the records.
"""

MOST_ROWS = 2**26
"""More rows than this are refused: certificates of minima leave room for rounding up to here."""


@public()
class Table(Dataset):
    """Sealed rows of people; each person has one row, and every column is declared.

    ``bounds`` gives (low, high) for each column of numbers, ``classes`` the list of values of each
    column of classes. Both are public and must come from knowledge about such data, never from
    these records: a bound read off the data shows who is the largest. A number outside its bounds
    is *clipped* to them when a question is answered. A column with two classes is one yes/no
    column (no is the first); one with more becomes a yes/no column ``name=class`` for each class
    but the first.

    Under ``row`` one person's values may change and the number of rows is public. Under
    ``participant`` one person may come or go and the number of rows is private; ``about`` may
    declare a public guess at it, which plans use and noise does not.

    Raises:
        InputError: when a column is not declared, lengths differ, a number is missing or not
            finite, or a class is not declared. Reading is the custodian's side.

    Example:
        >>> people = Table({"age": [31, 58], "smokes": ["no", "yes"]},
        ...                bounds={"age": (18, 90)}, classes={"smokes": ["no", "yes"]})
        >>> people, people.names
        (<Table: sealed>, ('age', 'smokes'))
    """

    kind: ClassVar[str] = "table"
    units: ClassVar[tuple[str, ...]] = ("participant", "row")

    def __init__(
        self,
        columns: Any,
        *,
        bounds: Mapping[str, tuple[float, float]],
        classes: Mapping[str, Sequence[Any]] | None = None,
        about: int | None = None,
    ) -> None:
        self._classes = {name: _read_classes(name, c) for name, c in (classes or {}).items()}
        declared = {name: _read_bounds(name, pair) for name, pair in bounds.items()}
        both = sorted(set(declared) & set(self._classes))
        if both:
            raise InputError(f"{both[0]!r} is declared both in bounds and in classes.")
        self._about = None if about is None else validate.whole(about=about, at_least=1)
        self._bounds: dict[str, tuple[float, float]] = {}
        self._columns: dict[str, Floats] = {}
        lengths = set()
        for name in (*declared, *self._classes):
            try:
                given = columns[name]
            except (KeyError, IndexError, TypeError):
                raise_alone(InputError(f"The table has no column {name!r}."))
            if name in declared:
                self._bounds[name] = declared[name]
                self._columns[name] = _read_numbers(name, given)
            else:
                for made, values in _spread(name, given, self._classes[name]):
                    self._bounds[made] = (0.0, 1.0)
                    self._columns[made] = values
            lengths.add(len(given))
        if len(lengths) != 1:
            raise InputError("All columns must have the same number of rows.")
        self._rows = lengths.pop()
        if self._rows > MOST_ROWS:
            raise InputError(f"A table may have at most {MOST_ROWS:,} rows.")

    @classmethod
    def read(cls, path: str | Path, **declared: Any) -> Table:
        """Read the declared columns of a CSV file (also .gz) or a Parquet file.

        A CSV file has commas between cells and the names of the columns in its first line. Each
        cell is read by itself: what a column holds is declared, and never guessed.

        Raises:
            InputError: when the file cannot be read, and as for a table.
        """
        return cls(cells.read_table(path), **declared)

    # --- custodian side ---------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, classes spread out. Public."""
        return tuple(self._bounds)

    def column(self, name: str) -> Floats:
        """Return the values of one column as they were given. Custodian side."""
        return self._columns[name]

    def rows(self) -> int:
        """Return the number of rows. Custodian side; public under ``row``."""
        return self._rows

    def part(self, places: Any) -> Table:
        """Return the rows at these places (numbers, or yes and no). Custodian side."""
        return self._with({name: values[places] for name, values in self._columns.items()})

    def _with(self, columns: dict[str, Floats]) -> Table:
        made = type(self).__new__(type(self))
        made._classes, made._bounds, made._about = self._classes, self._bounds, self._about
        made._columns = columns
        made._rows = len(next(iter(columns.values())))
        return made

    # --- what privacy needs -----------------------------------------------------------------

    def facts(self, unit: str | Unit) -> Facts:
        """Return what is public: bounds, classes, and the number of rows or the guess at it."""
        rows = self._rows if self.check_unit(unit).name == "row" else self._about
        return {
            "bounds": {name: list(pair) for name, pair in self._bounds.items()},
            "classes": {name: list(listed) for name, listed in self._classes.items()},
            "rows": rows,
        }

    def neighbours(self, unit: str | Unit) -> Iterator[Table]:
        """Yield the table without each row in turn, or with each row changed.

        Per participant the neighbours with one row more are the same pairs the other way round.
        Per row a new row is made of the low, middle and high of every column: values in between
        are not listed.
        """
        known = self.check_unit(unit)
        places = np.arange(self._rows)
        if known.name == "participant":
            for one in range(self._rows):
                yield self.part(places != one)
            return
        corners = [(low, (low + high) / 2, high) for low, high in self._bounds.values()]
        for one, values in product(range(self._rows), product(*corners)):
            yield self._with(
                {
                    name: np.where(places == one, value, self._columns[name])
                    for name, value in zip(self._columns, values, strict=True)
                }
            )


def _read_bounds(name: str, pair: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in pair)
    except (TypeError, ValueError, OverflowError):
        raise_alone(InputError(f"The bounds of {name!r} must be two numbers: (low, high)."))
    if not (np.isfinite(low) and np.isfinite(high) and low < high and np.isfinite(high - low)):
        raise InputError(f"The bounds of {name!r} must be finite and low below high.")
    if max(-low, high) > WIDEST or high - low < 1 / WIDEST:
        raise InputError(
            f"The bounds of {name!r} must lie within ±{WIDEST:g} and be at least {1 / WIDEST:g} "
            "apart. Measure the column in another unit."
        )
    return low, high


def _read_classes(name: str, listed: Any) -> tuple[Any, ...]:
    if isinstance(listed, str | bytes) or not hasattr(listed, "__iter__"):
        raise InputError(f"The classes of {name!r} must be a list of at least two values.")
    given = listed.tolist() if hasattr(listed, "tolist") else listed
    found = tuple(value.item() if hasattr(value, "item") else value for value in given)
    if len(found) < 2 or len(set(cells.texts(found, repr(name)).to_pylist()) - {None}) != len(
        found
    ):
        raise InputError(f"The classes of {name!r} must be at least two different values.")
    return found


def _read_numbers(name: str, given: Any) -> Floats:
    values = cells.numbers(given, repr(name))
    if not np.isfinite(values).all():
        raise InputError(
            f"Column {name!r} must hold numbers; at least one value is missing or infinite, or is "
            "no number. Fill it in, or leave the row out, by a rule that looks at one row at a "
            "time; declare a column of words in classes=."
        )
    return values


def _spread(name: str, given: Any, classes: tuple[Any, ...]) -> Iterator[tuple[str, Floats]]:
    """Yield one yes/no column for each class but the first; a single one keeps its name."""
    codes = cells.places(given, classes, repr(name))
    if (codes < 0).any():
        raise InputError(
            f"Column {name!r} has a value that is not among its declared classes. Declare the "
            "class, or put such rows into a declared one."
        )
    for place, value in enumerate(classes[1:], start=1):
        yield (
            name if len(classes) == 2 else f"{name}={value}",
            (codes == place).astype(np.float64),
        )
