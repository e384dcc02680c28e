"""Reading a graph from a file.

Errors of reading are the custodian's own: they name a line and a reason, never a record.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path

from tulle.core.errors import InputError, raise_alone
from tulle.graphs.conversion import check_ignore
from tulle.graphs.data import Graph, Progress, _check_node_count
from tulle.graphs.edge_lists import EdgeList

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
    nodes: int | None = None,
    columns: Sequence[int | str] | None = None,
    ignore: Iterable[str] = (),
    progress: Progress | None = None,
) -> Graph:
    """Read a graph from an edge list, Parquet, MatrixMarket or GraphML file.

    The format follows from the file name (``.csv``, ``.tsv``, ``.txt``, ``.edges``, ``.parquet``,
    ``.mtx``, ``.graphml``; ``.gz`` on top of any but Parquet) or from ``format``: "edges",
    "parquet", "mtx" or "graphml".

    An edge list has one pair per line, separated by a comma, a tab, a semicolon or white space,
    whichever the first line uses. Lines that start with ``#``, ``%`` or ``//`` are comments; a
    header is recognised and skipped; fields may be quoted. Whole numbers become node ids: the
    nodes are those that occur, in ascending order, or 0 to n - 1 with ``nodes=n``. Anything else
    is a label. More than two columns are refused unless ``columns`` picks two, by number or by
    the name in the header, or ``ignore`` holds "weights", which keeps the first two. An edge list
    does not say whether it is directed: a pair joins its nodes either way.

    MatrixMarket and GraphML say so: a matrix that is not symmetric and a directed graph are
    refused unless ``ignore`` holds "direction"; weights are refused unless it holds "weights".

    ``progress`` is called with the fraction done and a word for the current step.

    Raises:
        InputError: when the file cannot be read as asked; it names the line and the reason.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "friends.csv")
        ...     _ = file.write_text("source,target\\nann,bob\\nbob,cas\\n")
        ...     read(file).edge_count
        2
    """
    file = Path(path)
    kind = _format_of(file, format)
    words = check_ignore(ignore)
    if nodes is not None:
        nodes = _check_node_count(nodes)
    chosen = _check_columns(columns)
    report: Progress = progress or (lambda fraction, label: None)
    if not file.exists():
        raise InputError(f"{file} does not exist.")
    if file.is_dir():
        raise InputError(f"{file} is a folder; pass the file inside it.")
    if kind in ("mtx", "graphml") and chosen is not None:
        raise InputError(f"columns is for edge lists and Parquet; a {kind} file has none.")
    report(0.0, "reading")
    if kind == "parquet":
        from tulle.graphs.formats import read_parquet

        graph = read_parquet(file, nodes, chosen, words)
    else:
        data = _load(file, report)
        if kind == "edges":
            pairs = EdgeList(file, data, nodes, chosen, words, report).pairs()
            report(0.8, "building")
            graph = Graph._build(pairs, pairs.labels)
        else:
            from tulle.graphs.formats import read_graphml, read_matrix_market

            reader = read_matrix_market if kind == "mtx" else read_graphml
            graph = reader(file, data, nodes, words)
    report(1.0, "done")
    return graph


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


def _load(file: Path, report: Progress) -> bytes:
    """Return the file's bytes, uncompressed, without a byte order mark."""
    pieces = []
    try:
        size = max(file.stat().st_size, 1)
        with file.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = gzip.GzipFile(fileobj=raw) if zipped else raw
            while piece := stream.read(_PIECE):
                pieces.append(piece)
                report(0.4 * min(raw.tell() / size, 1.0), "reading")
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise_alone(InputError(f"{file} is not a whole gzip file; was the download cut off?"))
    except OSError as error:
        raise_alone(InputError(f"{file} cannot be read: {error.strerror or 'input error'}."))
    data = b"".join(pieces)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{file} is in UTF-16; save it as UTF-8.")
    if b"\x00" in data[:65536]:
        raise InputError(
            f"{file} is a binary file, not text. Name it .parquet if it is Parquet, or pass format."
        )
    if data[:3] == b"\xef\xbb\xbf":
        data = data[3:]
    if b"\n" not in data[:_PIECE] and b"\r" in data[:_PIECE]:
        data = data.replace(b"\r", b"\n")
    return data
