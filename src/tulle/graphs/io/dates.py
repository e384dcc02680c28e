"""Days of edges: reading a column of times beside the two of an edge list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core import cells
from tulle.core.errors import InputError, raise_alone
from tulle.core.reading import FormatError, reading
from tulle.graphs.io.labels import from_text

_WRITTEN = "Days are written 2026-11-09, moments 2026-11-09T08:00:00; missing ones are empty."


def read_days(times: Any) -> npt.NDArray[np.datetime64]:
    """Return days, NaT where there is none; of a moment, the day as it is written.

    Raises:
        InputError: when something is neither a day nor missing. It names no value.
    """
    days, missing = cells.days(times, "of times")
    if bool((np.isnat(days) & ~missing).any()):
        raise InputError(f"The times of edges must be days, or moments. {_WRITTEN}")
    return days


def read_dated(
    path: str | PathLike[str],
    time: str,
    format: str | None,
    columns: Sequence[int | str] | None,
    header: bool | None,
    delimiter: str | None,
    ignore: Iterable[str] = (),
) -> tuple[Any, Any]:
    """Return the pairs and the times of a file with names in its first row, or of Parquet.

    Digits without superfluous zeros are numbers, anything else is text, cell by cell, as for every
    edge list.
    """
    file = Path(path)
    named = [] if columns is None or isinstance(columns, str) else list(columns)
    if len(named) != 2 or not all(isinstance(name, str) for name in [*named, time]):
        raise InputError(
            "With time= say by name which columns are the ends of an edge: "
            "columns=['from', 'to'], time='day'."
        )
    if header is False or tuple(ignore) not in ((), ("direction",)):
        raise InputError("With time= the first row names the columns, and nothing is ignored.")
    if not file.is_file():
        raise InputError(f"{file} does not exist, or is not a file.")
    wanted = [*named, time]
    parquet = format == "parquet" or (format is None and file.suffix in (".parquet", ".pq"))
    try:
        with reading(str(file)):
            table = _parquet(file, wanted) if parquet else _text(file, wanted, delimiter)
            table.validate(full=True)  # a text may not be UTF-8
    except FormatError:
        listed = ", ".join(map(str, wanted))
        raise_alone(
            InputError(
                f"{file} cannot be read as a table with the columns {listed}. With time= an edge "
                "list is a .csv or .tsv file with a header, or Parquet."
            )
        )
    ends = [_ids(table.column(name)) for name in named]
    if all(end.dtype.kind == "i" for end in ends):
        pairs = np.column_stack(ends)
    else:
        pairs = np.column_stack([end.astype(object) for end in ends])
    return pairs, _days(table.column(time))


def _parquet(file: Path, wanted: list[Any]) -> Any:
    import pyarrow.parquet

    return pyarrow.parquet.read_table(file, columns=wanted)


def _text(file: Path, wanted: list[Any], delimiter: str | None) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    tabs = ".tsv" in file.suffixes or ".tab" in file.suffixes
    mark = delimiter or ("\t" if tabs else ",")
    longest = cells.check_quotes(file, mark)
    return csv.read_csv(
        cells.csv_source(file),
        read_options=csv.ReadOptions(block_size=cells.block_for(longest)),
        parse_options=csv.ParseOptions(delimiter=mark),
        convert_options=csv.ConvertOptions(
            include_columns=wanted,
            # As text: a type that followed from the rows would tell of them.
            column_types={name: pa.string() for name in wanted},
            strings_can_be_null=False,
        ),
    )


def _ids(column: Any) -> npt.NDArray[Any]:
    """Return labels, read cell by cell as in every edge list."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_signed_integer(column.type) and not column.null_count:
        return np.asarray(column.to_numpy(), dtype=np.int64)
    texts = pc.utf8_trim_whitespace(pc.fill_null(cells.texts(column, "of nodes"), ""))
    if pc.any(pc.equal(texts, "")).as_py():
        raise InputError("An end of an edge is missing; each row needs both.")
    kinds = texts.dictionary_encode()
    labels = np.empty(len(kinds.dictionary), dtype=object)
    labels[:] = [from_text(label) for label in kinds.dictionary.to_pylist()]
    found: npt.NDArray[Any] = labels[kinds.indices.to_numpy()]
    whole = all(isinstance(label, int) and label < 2**63 for label in labels)
    return found.astype(np.int64) if whole else found


def _days(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("s"), safe=False).to_numpy().astype("datetime64[D]")
    return column.cast(pa.string())
