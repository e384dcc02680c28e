"""The declared set of nodes: a number, names, a file of names, or a table of people."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from tulle.core import validate
from tulle.core.cells import check_quotes
from tulle.core.errors import InputError, raise_alone
from tulle.core.reading import plain_lines, reading, without_row_numbers
from tulle.graphs.io.labels import from_text, names_a_column, ordered

LARGEST_NODE_COUNT = 2**31 - 1

Declared = int | list[Any] | None
"""A number n for the nodes 0 to n - 1, labels in their order, or nothing."""


def declared_nodes(nodes: Any, *, from_file: bool = False) -> Declared:
    """Return the declared nodes, checked; ``from_file`` reads text as files write it.

    ``nodes`` is a whole number; a list or array of labels; the path of a file; or a table whose
    first column has the labels (pandas, polars, pyarrow, or a dict of columns).

    A ``.txt`` file has one label per line; a line that is a usual name of a column, such as
    ``node`` or ``user_id``, is a header and nobody, wherever it stands. A ``.csv`` or ``.tsv``
    file has a header, and the labels in its first column; in a ``.parquet`` file they are in the
    first column too.

    Raises:
        InputError: when it is none of these.
    """
    if nodes is None:
        return None
    if isinstance(nodes, str | PathLike):
        return ordered(read_names(Path(nodes)))
    if not hasattr(nodes, "__iter__") and not hasattr(nodes, "column_names"):
        return check_count(nodes)
    with reading("nodes", "something in it is no label of a node"):
        names = first_column(nodes)
        if from_file:
            names = [from_text(name.strip()) if isinstance(name, str) else name for name in names]
        return ordered(names)


def check_count(nodes: Any) -> int:
    """Return a number of nodes, checked."""
    return validate.whole(at_least=0, at_most=LARGEST_NODE_COUNT, nodes=nodes)


def first_column(table: Any) -> list[Any]:
    """Return the first column of a table, or the items of a list, as Python values."""
    if isinstance(table, Mapping):
        if not table:
            raise InputError("nodes= is a table without columns; its first column names the nodes.")
        table = next(iter(table.values()))
    elif hasattr(table, "column_names"):  # pyarrow
        table = table.column(0)
    elif hasattr(table, "columns") and hasattr(table, "iloc"):  # pandas
        table = table.iloc[:, 0]
    elif hasattr(table, "columns") and hasattr(table, "get_columns"):  # polars
        table = table.get_columns()[0]
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(table, name):
            return list(getattr(table, name)())
    return list(table)


def read_names(file: Path) -> list[Any]:
    """Return the labels that a file lists: by its ending, so that nothing is guessed."""
    kind = file.suffix.lower().lstrip(".")
    if kind == "parquet":
        columns = read_table(file)
        return next(iter(columns.values()), [])
    if kind in ("csv", "tsv"):
        return next(iter(read_table(file).values()), [])
    lines = (line.strip() for line in _text(file).split("\n"))
    named = (line for line in lines if line and not line.startswith("#"))
    # By the line alone: whether the first is a header must not hang on the others.
    return [from_text(line) for line in named if not names_a_column(line)]


def read_table(file: Path) -> dict[str, list[Any]]:
    """Return a table of people by column; the first column names them.

    Raises:
        InputError: when the file cannot be read as its ending says.
    """
    kind = file.suffix.lower().lstrip(".")
    if kind == "parquet":
        from pyarrow import parquet

        with reading(str(file)), parquet.ParquetFile(file) as opened:
            # One file: of a folder the names of all folders in it would become columns.
            table = without_row_numbers(opened.read())
            columns = {name: table.column(name).to_pylist() for name in table.column_names}
    elif kind in ("csv", "tsv"):
        lines = [line for line in _text(file).split("\n") if line.strip()]
        delimiter = "\t" if kind == "tsv" else ","
        check_quotes(file, delimiter)
        with reading(str(file)):
            # One by one: of all together, a quote that is not closed would swallow the next ones.
            rows = [next(csv.reader([line], delimiter=delimiter)) for line in lines]
        header = [name.strip() for name in rows[0]] if rows else []
        if len(set(header)) != len(header):
            raise InputError(f"{file}: two columns of the header have the same name.")
        for number, row in enumerate(rows[1:], start=2):
            if len(row) != len(header):
                raise InputError(f"{file}, row {number}: not as many fields as the header has.")
        columns = {
            name: [row[place].strip() or None for row in rows[1:]]
            for place, name in enumerate(header)
        }
    else:
        raise InputError(f"{file} is not a table; end its name in .csv, .tsv or .parquet.")
    first = next(iter(columns), None)
    if first is not None:
        columns[first] = [
            from_text(name) if isinstance(name, str) else name for name in columns[first]
        ]
        if any(name is None or name == "" for name in columns[first]):
            raise InputError(f"{file}: the first column names the nodes, and a name is missing.")
    return columns


def _text(file: Path) -> str:
    try:
        return plain_lines(file.read_bytes()).decode("utf-8")
    except UnicodeDecodeError:
        raise_alone(InputError(f"{file} is not UTF-8; save it as UTF-8."))
    except OSError as error:
        why = error.strerror or "input error"
        raise_alone(InputError(f"{file} cannot be read: {why}."))
