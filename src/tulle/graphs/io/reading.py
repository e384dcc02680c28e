"""Reading a graph from a file.

Errors of reading are the custodian's own: they name a line and a reason, never a record. How a
file is read follows from its name, from what is declared, and for each line from that line: no
edge changes how another one is read, or where its nodes stand in the order.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from tulle.core.errors import InputError, raise_alone
from tulle.core.reading import plain_lines, reading
from tulle.graphs.io.conversion import check_ignore
from tulle.graphs.io.edge_lists import EdgeList
from tulle.graphs.io.node_sets import declared_nodes
from tulle.graphs.io.pairs import FactorisedPairs, Progress

FORMATS = {
    "edges": ("csv", "tsv", "txt", "edges", "edgelist", "el", "dat", "tab", "ssv", ""),
    "parquet": ("parquet", "pq"),
    "mtx": ("mtx", "mm"),
    "graphml": ("graphml", "xml"),
}

_PIECE = 1 << 24


def read(
    path: str | PathLike[str],
    *,
    format: str | None = None,
    nodes: Any = None,
    columns: Sequence[int | str] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    ignore: Iterable[str] = (),
    bad_records: str = "refuse",
    progress: Progress | None = None,
) -> FactorisedPairs:
    """Read the pairs of a graph from a file; :meth:`tulle.Graph.read` describes how."""
    file = Path(path)
    kind = _format_of(file, format)
    words = check_ignore(ignore)
    known = declared_nodes(nodes, from_file=True)
    chosen = _check_columns(columns)
    _check_format_options(kind, header, delimiter)
    check_bad_records(bad_records, kind)
    drop = bad_records == "drop"
    report: Progress = progress or (lambda fraction, label: None)
    if not file.exists():
        raise InputError(f"{file} does not exist.")
    if file.is_dir():
        raise InputError(f"{file} is a folder; pass the file inside it.")
    if kind in ("mtx", "graphml") and chosen is not None:
        raise InputError(f"columns is for edge lists and Parquet; a {kind} file has none.")
    report(0.0, "reading")
    with reading(str(file)):
        if kind == "parquet":
            from tulle.graphs.io.formats import read_parquet

            pairs = read_parquet(file, known, chosen, words)
        else:
            data = _load(file, report, drop)
            if kind == "edges":
                listed = EdgeList(
                    file,
                    data,
                    nodes=known,
                    columns=chosen,
                    header=header,
                    delimiter=delimiter,
                    ignore=words,
                    drop=drop,
                    report=report,
                )
                pairs = listed.pairs()
                report(0.8, "building")
            else:
                from tulle.graphs.io.formats import read_graphml, read_matrix_market

                reader = read_matrix_market if kind == "mtx" else read_graphml
                pairs = reader(file, data, known, words)
    report(1.0, "done")
    return pairs


def _format_of(file: Path, format: str | None) -> str:
    if format is not None:
        for kind, names in FORMATS.items():
            if format == kind or (format and format in names):
                return kind
        raise InputError(
            f"format={format!r} is not known. Formats: {', '.join(FORMATS)} (csv, tsv and txt are "
            "edges)."
        )
    suffixes = [suffix.lower().lstrip(".") for suffix in file.suffixes]
    if suffixes and suffixes[-1] == "gz":
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    for kind, names in FORMATS.items():
        if last in names:
            return kind
    return "edges"


def _check_columns(columns: Sequence[int | str] | None) -> tuple[int | str, int | str] | None:
    if columns is None:
        return None
    picked = (columns,) if isinstance(columns, str) else tuple(columns)
    proper = all(
        isinstance(column, str) or (type(column) is int and column >= 0) for column in picked
    )
    if len(picked) != 2 or not proper or picked[0] == picked[1]:
        raise InputError(
            f"columns={columns!r} must be two different columns, by number from 0 or by name."
        )
    if isinstance(picked[0], str) != isinstance(picked[1], str):
        raise InputError(f"columns={columns!r} mixes names and numbers; use one or the other.")
    return picked[0], picked[1]


def _check_format_options(kind: str, header: bool | None, delimiter: str | None) -> None:
    if header is not None and not isinstance(header, bool):
        raise InputError(f"header={header!r} must be True, False or left out.")
    if kind != "edges":
        for name, given in (("header", header), ("delimiter", delimiter)):
            if given is not None:
                raise InputError(f"{name} is for edge lists in text; a {kind} file has none.")
    if delimiter is not None and (
        not isinstance(delimiter, str)
        or len(delimiter) != 1
        or not delimiter.isascii()
        or delimiter.isalnum()
        or delimiter in '"\r\n#%\0'
    ):
        raise InputError(
            f"delimiter={delimiter!r} must be one character, such as ',' or '|'; ' ' stands for "
            "any white space."
        )


def check_bad_records(bad_records: str, kind: str) -> None:
    """Check what is to happen with records that are not what they must be.

    Raises:
        InputError: when it is unknown, or there are no such records in this kind of file.
    """
    if bad_records not in ("refuse", "drop"):
        raise InputError(f"bad_records must be 'refuse' or 'drop'; got {bad_records!r}.")
    if bad_records == "drop" and kind != "edges":
        raise InputError("bad_records='drop' is for edge lists in text, without time=.")


def _load(file: Path, report: Progress, drop: bool) -> bytes:
    """Return the file's bytes as plain lines; with ``drop`` whatever its first ones look like."""
    try:
        data = _bytes(file, report)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        if not drop or file.suffix.lower() == ".gz":
            raise_alone(InputError(f"{file} is not a whole gzip file; was the download cut off?"))
        # The first line begins like such a file, and is a line all the same.
        data = _bytes(file, report, packed=False)
    if not drop and data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{file} is in UTF-16; save it as UTF-8.")
    if not drop and b"\x00" in data:
        raise InputError(
            f"{file} is a binary file, not text. Name it .parquet if it is Parquet, or pass format."
        )
    return plain_lines(data)


def _bytes(file: Path, report: Progress, *, packed: bool | None = None) -> bytes:
    """Return the file's bytes, uncompressed: if it begins so, unless it is said."""
    pieces = []
    try:
        size = max(file.stat().st_size, 1)
        with file.open("rb") as raw:
            if packed is None:
                packed = raw.read(2) == b"\x1f\x8b"
                raw.seek(0)
            stream = gzip.GzipFile(fileobj=raw) if packed else raw
            while piece := stream.read(_PIECE):
                pieces.append(piece)
                report(0.4 * min(raw.tell() / size, 1.0), "reading")
    except gzip.BadGzipFile:
        raise
    except OSError as error:
        raise_alone(InputError(f"{file} cannot be read: {error.strerror or 'input error'}."))
    return b"".join(pieces)
