"""Writing a graph's records to a file. Custodian side: the file holds all of them."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from io import StringIO, TextIOWrapper
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

import numpy as np

from tulle.core.errors import InputError, raise_alone

if TYPE_CHECKING:
    from tulle.graphs.data import Graph

_ROWS_AT_ONCE = 100_000
_DELIMITERS = {"csv": ",", "tsv": "\t", "txt": " ", "edges": " "}


def write(graph: Graph, path: str | PathLike[str]) -> None:
    """Write all edges in the format that the file name asks for.

    ``.csv`` and ``.tsv`` with a header, ``.txt`` and ``.edges`` without, ``.mtx``, ``.graphml``;
    each also with ``.gz``; and ``.parquet``. Labels are written where the format can hold them
    (not in ``.mtx``). An edge list holds no nodes without edges: read it back with ``nodes=``, or
    use ``.mtx`` or ``.graphml``.

    Raises:
        InputError: when the file name asks for another format, or a label does not fit it.
    """
    file = Path(path)
    suffixes = [suffix.lower().lstrip(".") for suffix in file.suffixes]
    zipped = bool(suffixes) and suffixes[-1] == "gz"
    if zipped:
        suffixes.pop()
    kind = suffixes[-1] if suffixes else ""
    if not file.parent.is_dir():
        raise InputError(f"The folder {file.parent} does not exist.")
    if kind == "parquet" and not zipped:
        _write_parquet(graph, file)
        return
    if kind in _DELIMITERS:
        pieces = _edge_list(graph, kind)
    elif kind == "mtx":
        pieces = _matrix_market(graph)
    elif kind == "graphml":
        pieces = _graphml(graph)
    else:
        raise InputError(
            f"{file} does not name a format to write; end it in .csv, .tsv, .txt, .edges, .mtx, "
            ".graphml (each also with .gz) or .parquet."
        )
    with (
        gzip.open(file, "wb") if zipped else file.open("wb") as raw,
        TextIOWrapper(raw, encoding="utf-8", newline="\n") as out,
    ):
        for piece in pieces:
            out.write(piece)


def _edge_list(graph: Graph, kind: str) -> Iterator[str]:
    delimiter = _DELIMITERS[kind]
    header = kind in ("csv", "tsv")
    if header:
        yield f"source{delimiter}target\n"
    edges = graph.edges()
    labels = graph.labels
    if any(isinstance(label, str) and len(label.splitlines()) > 1 for label in labels.tolist()):
        raise InputError("A label holds a line break; an edge list cannot. Write .graphml instead.")
    for start in range(0, len(edges), _ROWS_AT_ONCE):
        rows = labels[edges[start : start + _ROWS_AT_ONCE]]
        text = StringIO()
        # Names are quoted, so that none of them is taken for a comment or holds a delimiter.
        writer = csv.writer(
            text, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
        )
        writer.writerows(rows.tolist())
        yield text.getvalue()


def _matrix_market(graph: Graph) -> Iterator[str]:
    count = graph.node_count
    yield "%%MatrixMarket matrix coordinate pattern symmetric\n"
    yield f"{count} {count} {graph.edge_count}\n"
    edges = graph.edges() + 1
    for start in range(0, len(edges), _ROWS_AT_ONCE):
        text = StringIO()
        # The format keeps the lower triangle: the larger number first.
        np.savetxt(text, edges[start : start + _ROWS_AT_ONCE, ::-1], fmt="%d")
        yield text.getvalue()


def _graphml(graph: Graph) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    yield '<graph edgedefault="undirected">\n'
    names = [quoteattr(str(label)) for label in graph.labels.tolist()]
    if len(set(names)) != len(names):
        raise InputError("Two labels are the same when written as text; GraphML needs them apart.")
    for name in names:
        yield f"<node id={name}/>\n"
    for first, second in graph.edges().tolist():
        yield f"<edge source={names[first]} target={names[second]}/>\n"
    yield "</graph>\n</graphml>\n"


def _write_parquet(graph: Graph, file: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    ends = graph.labels[graph.edges()]
    try:
        table = pyarrow.table({"source": ends[:, 0], "target": ends[:, 1]})
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
        raise_alone(
            InputError(
                "Labels of mixed types do not fit a Parquet column; write .csv or .graphml instead."
            )
        )
    parquet.write_table(table, file)
