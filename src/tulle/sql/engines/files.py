"""CSV files as tables: every column is text unless its type is declared.

Nothing is guessed from the rows: the first line names the columns, the ending of the file's name
says what separates them, and a value that does not fit a declared type is NULL.
"""

from __future__ import annotations

import csv
import gzip
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


def csv_file(name: str, path: str, types: Mapping[str, str], dialect: str) -> CsvFile:
    """Return a CSV file with its columns, and the types that are declared for this table.

    Raises:
        InputError: when there is no such file or column, or a type is not one of the engine's.
    """
    found = sorted(glob(path)) or [path]
    first = Path(found[0])
    delimiter = "\t" if ".tsv" in first.name.lower() else ","
    try:
        opened: Any = gzip.open if first.suffix == ".gz" else open
        with opened(first, "rt", encoding="utf-8-sig", newline="") as file:
            columns = tuple(next(csv.reader(file, delimiter=delimiter), ()))
    except (OSError, UnicodeDecodeError, csv.Error, EOFError) as error:
        raise_alone(
            InputError(
                f"tables[{name!r}]: the first line of {path!r} cannot be read "
                f"({type(error).__name__}); it names the columns, in UTF-8."
            )
        )
    if not columns or len(set(columns)) != len(columns):
        raise InputError(
            f"tables[{name!r}]: the first line of {path!r} must name the columns, each once."
        )
    declared = declared_types(name, columns, types, dialect)
    return CsvFile(path, delimiter, columns, declared)


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
