"""The boundary around whatever reads a file: one error for all that goes wrong, and no warnings.

Other libraries raise what they like when a file is not as they expect, quote what they found, and
warn about single records. A reader works inside :func:`reading`, so that nothing of this is seen.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tulle.core.errors import InputError, TulleError, raise_alone


class FormatError(InputError):
    """A file is not of the format that it should have."""


_MARK = re.compile(rb"^\xef\xbb\xbf", re.MULTILINE)


def plain_lines(data: bytes) -> bytes:
    """Return a text file with one kind of line end, and no line with a byte order mark before it.

    A mark is no part of the first line; where files were put together, others have one too. How a
    line is read must not hang on whether it comes first.

    Example:
        >>> plain_lines(b"\\xef\\xbb\\xbfann\\r\\n\\xef\\xbb\\xbfbob\\r")
        b'ann\\nbob\\n'
    """
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return _MARK.sub(b"", data) if b"\xef\xbb\xbf" in data else data


ROW_NUMBERS = "__index_level_[0-9]+__"
"""How pandas names row numbers in Arrow and Parquet. It writes them where a row between others was
taken away, and leaves them out where none was: that there are any tells of a record."""


def are_row_numbers(name: str) -> bool:
    """Say whether a column holds row numbers of pandas, and nothing of the records."""
    return re.fullmatch(ROW_NUMBERS, name) is not None


def without_row_numbers(table: Any) -> Any:
    """Return an Arrow table without the columns of row numbers that pandas adds."""
    return table.drop_columns([name for name in table.column_names if are_row_numbers(name)])


_PEOPLE = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""What is raised to stop. Libraries written in Rust raise others that are no Exception either."""


@contextmanager
def reading(name: str, why: str = "it is not a whole file of its format") -> Iterator[None]:
    """Keep back what another library says while something is read; its errors become one.

    Raises:
        InputError: in place of any other error; a FormatError but for those of the file system.

    Example:
        >>> try:
        ...     with reading("people.csv"):
        ...         int("a record")
        ... except InputError as error:
        ...     print(error)
        people.csv cannot be read: it is not a whole file of its format.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except TulleError:
        raise
    except _PEOPLE:
        raise
    except BaseException as error:  # noqa: BLE001 - it may be anything, and quote a record
        reason = error.strerror if isinstance(error, OSError) else None
        if reason:
            raise_alone(InputError(f"{name} cannot be read: {reason}."))
        raise_alone(FormatError(f"{name} cannot be read: {why}."))
