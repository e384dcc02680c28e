"""Files as tables. In CSV files every column is text unless its type is declared.

Nothing is guessed from the rows: the first line names the columns, the ending of the file's name
says what separates them, and a value that does not fit a declared type is NULL. Nor is it guessed
from which files there are: folders such as ``year=2024`` are a column where the path says so, and
that column is text.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

from tulle.core.errors import InputError, raise_alone
from tulle.sql.engines.frames import is_path


@dataclass(frozen=True)
class CsvFile:
    """Where a table's rows are, and what is declared about its columns."""

    path: str
    delimiter: str
    columns: tuple[str, ...]
    types: Mapping[str, str]
    """Declared types by column, in the engine's own words."""


def is_parquet(path: str) -> bool:
    """Say whether a path, or a pattern of paths, means Parquet files."""
    return ".parquet" in path


_WILD = re.compile(r"[*?\[{]")


def partitioned_from(name: str, path: str) -> str | None:
    """Return the folder below which folders are columns, as in ``sales/year=*/*.parquet``, if any.

    The path alone decides: engines look at all folders that they find, and one that somebody's
    rows are in would change which columns there are.

    Raises:
        InputError: when a folder may have any name, and so be a column or not.
    """
    if Path(path).is_dir():
        return None
    folders = Path(path).parts[:-1]
    named = [re.match(r"[^=*?\[{]+=", folder) is not None for folder in folders]
    if not any(named):
        return None
    for folder, is_named in zip(folders, named, strict=True):
        if not is_named and _WILD.search(folder):
            raise InputError(
                f"tables[{name!r}]: in {path!r} some folders are columns, and {folder!r} may be "
                "one or not. Name the column of every folder, as in year=*/month=*/*.parquet."
            )
    return str(Path(*folders[: named.index(True)]))


def csv_file(name: str, path: str, types: Mapping[str, str], dialect: str) -> CsvFile:
    """Return a CSV file with its columns, and the types that are declared for this table.

    Raises:
        InputError: when there is no such file or column, files name other columns, or a type is
            not one of the engine's.
    """
    found = sorted(glob(path)) or [path]
    delimiter = "\t" if ".tsv" in Path(found[0]).name.lower() else ","
    try:
        columns, *others = dict.fromkeys(_first_line(Path(file), delimiter) for file in found)
    except (OSError, UnicodeDecodeError, csv.Error, EOFError) as error:
        raise_alone(
            InputError(
                f"tables[{name!r}]: the first line of {path!r} cannot be read "
                f"({type(error).__name__}); it names the columns, in UTF-8."
            )
        )
    if others or not columns or len(set(columns)) != len(columns):
        raise InputError(
            f"tables[{name!r}]: the first line of {path!r} must name the columns, each once, and "
            "the same in every file."
        )
    declared = declared_types(name, columns, types, dialect)
    return CsvFile(path, delimiter, columns, declared)


def _first_line(file: Path, delimiter: str) -> tuple[str, ...]:
    opened: Any = gzip.open if file.suffix == ".gz" else open
    with opened(file, "rt", encoding="utf-8-sig", newline="") as lines:
        return tuple(next(csv.reader(lines, delimiter=delimiter), ()))


def declared_types(
    name: str, columns: Sequence[str], types: Mapping[str, str], dialect: str
) -> dict[str, str]:
    """Return the types that are declared for columns of one table, in the engine's own words.

    Raises:
        InputError: when there is no such column, or a type is not one of the engine's.
    """
    declared = {}
    for key, kind in types.items():
        table, _, column = key.partition(".")
        if table == name:
            if column not in columns:
                raise InputError(
                    f"types[{key!r}]: the table has no such column. Columns: {', '.join(columns)}."
                )
            declared[column] = _written(key, kind, dialect)
    return declared


def check_types(types: Mapping[str, str], tables: Mapping[str, Any]) -> None:
    """Refuse types of tables that are not CSV files.

    Raises:
        InputError: naming the table.
    """
    for key in types:
        table = key.partition(".")[0]
        given = tables.get(table)
        if given is None or (is_path(given) and is_parquet(str(given))):
            raise InputError(
                f"types[{key!r}]: types are declared for columns of CSV files and frames in "
                "tables=, written as 'table.column'; anything else has types of its own."
            )


def _written(key: str, kind: str, dialect: str) -> str:
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        # In its place nothing may stand after it; by itself it must be a type that is known.
        cast = parse_one(f"CAST(x AS {kind})", dialect=dialect)
        if not isinstance(cast, exp.Cast) or cast.args.get("format") is not None:
            raise ValueError(kind)
        return str(exp.DataType.build(kind, dialect=dialect).sql(dialect=dialect))
    except (SqlglotError, ValueError, AttributeError):
        raise_alone(
            InputError(
                f"types[{key!r}]: {kind!r} is not a type. Write for example BIGINT, DOUBLE, "
                "DECIMAL(12, 2), TEXT, BOOLEAN, DATE or TIMESTAMP."
            )
        )
