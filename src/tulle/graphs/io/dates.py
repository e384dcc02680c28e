"""Days of edges: reading a column of times beside the two of an edge list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.errors import InputError, raise_alone

_WRITTEN = "Days are written 2026-11-09, moments 2026-11-09T08:00:00; missing ones are empty."


def read_days(times: Any) -> npt.NDArray[np.datetime64]:
    """Return days, NaT where there is none; of a moment, the day as it is written.

    Raises:
        InputError: when something is neither a day nor missing. It names no value.
    """
    try:
        if isinstance(times, np.ndarray) and times.dtype.kind == "M":
            return times.astype("datetime64[D]")
        listed = np.asarray(list(times), dtype=object)
        missing = np.array([one is None or one == "" for one in listed.tolist()], dtype=bool)
        texts = np.where(missing, "NaT", listed).astype(str)
        return texts.astype("U10").astype("datetime64[D]")
    except (ValueError, TypeError):
        raise_alone(InputError(f"The times of edges must be days, or moments. {_WRITTEN}"))


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
    import pyarrow as pa

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
        table = _parquet(file, wanted) if parquet else _text(file, wanted, delimiter)
    except (pa.ArrowInvalid, pa.ArrowKeyError, KeyError):
        listed = ", ".join(map(str, wanted))
        raise_alone(
            InputError(
                f"{file} cannot be read as a table with the columns {listed}. With time= an edge "
                "list is a .csv or .tsv file with a header, or Parquet."
            )
        )
    except OSError as error:
        raise_alone(InputError(f"{file} cannot be read: {error.strerror or 'input error'}."))
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
    return csv.read_csv(
        file,
        parse_options=csv.ParseOptions(delimiter=delimiter or ("\t" if tabs else ",")),
        convert_options=csv.ConvertOptions(
            include_columns=wanted,
            # As text: a type that followed from the rows would tell of them.
            column_types={name: pa.string() for name in wanted},
            strings_can_be_null=False,
        ),
    )


def _ids(column: Any) -> npt.NDArray[Any]:
    """Return labels: whole numbers where a cell has digits, text where it has anything else."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(column.type) and not column.null_count:
        return np.asarray(column.to_numpy(), dtype=np.int64)
    texts = pc.fill_null(column.cast(pa.string()), "")
    if pc.any(pc.equal(texts, "")).as_py():
        raise InputError("An end of an edge is missing; each row needs both.")
    digits = pc.match_substring_regex(texts, r"^(0|[1-9][0-9]{0,17})$").to_numpy()
    found = np.asarray(texts.to_numpy(), dtype=object)
    if digits.all():
        return found.astype(np.int64)
    labels = found.copy()
    labels[digits] = found[digits].astype(np.int64).astype(object)
    return labels


def _days(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("s"), safe=False).to_numpy().astype("datetime64[D]")
    return column.to_pylist()
