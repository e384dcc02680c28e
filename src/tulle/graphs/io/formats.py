"""Readers for Parquet, MatrixMarket and GraphML."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from tulle.core.errors import InputError, raise_alone
from tulle.core.matrix_market import read_matrix_market as parse_matrix_market
from tulle.core.reading import are_row_numbers
from tulle.core.validate import counted
from tulle.graphs.io.conversion import from_scipy, refuse_direction, refuse_weights
from tulle.graphs.io.labels import from_text
from tulle.graphs.io.node_sets import Declared
from tulle.graphs.io.pairs import FactorisedPairs, factorise, number_names, number_places


def read_parquet(
    file: Path,
    nodes: Declared,
    columns: tuple[int | str, int | str] | None,
    ignore: frozenset[str],
) -> FactorisedPairs:
    """Read a Parquet file of pairs."""
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(file) as source:
            names = [name for name in source.schema_arrow.names if not are_row_numbers(name)]
            picked = _pick_columns(file, names, columns, ignore)
            kinds = [source.schema_arrow.field(names[place]).type for place in picked]
            for place, kind in zip(picked, kinds, strict=True):
                if not _names_nodes(kind):
                    raise InputError(
                        f"{file}: column {names[place]!r} is of type {kind}; nodes are whole "
                        "numbers or text."
                    )
            table = source.read(columns=[names[place] for place in picked])
            table.validate(full=True)  # a text may not be UTF-8
    except (pyarrow.ArrowException, OSError):
        raise_alone(InputError(f"{file} cannot be read as Parquet."))
    ends = [table.column(names[place]) for place in picked]
    for place, end in zip(picked, ends, strict=True):
        if end.null_count:
            raise InputError(f"{file}: column {names[place]!r} has missing nodes; drop those rows.")
    if all(not _is_text(kind) for kind in kinds):
        numbers = [end.to_numpy() for end in ends]
        if numbers[0].dtype.kind != numbers[1].dtype.kind and not isinstance(nodes, int):
            # Of signed ones, unsigned ones and floats together numpy would make doubles.
            numbers = [column.astype(object) for column in numbers]
        pairs = factorise(np.column_stack(numbers), nodes)
    elif isinstance(nodes, int):
        raise InputError(
            f"{file}: with nodes={nodes} both columns must hold whole numbers from 0 to nodes - 1."
        )
    else:
        pairs = number_names(_labels(ends[0]), _labels(ends[1]), nodes)
    return pairs


def _names_nodes(kind: Any) -> bool:
    """Say by the type of a column alone whether it can name nodes."""
    import pyarrow

    number = pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind)
    return number or _is_text(kind) or pyarrow.types.is_null(kind)


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    if types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _labels(column: Any) -> list[Any]:
    """Return a column's labels; text is read as in an edge list."""
    values = column.to_pylist()
    return [from_text(value) if isinstance(value, str) else value for value in values]


def _pick_columns(
    file: Path,
    names: list[str],
    columns: tuple[int | str, int | str] | None,
    ignore: frozenset[str],
) -> tuple[int, int]:
    if len(names) < 2:
        raise InputError(f"{file} has fewer than two columns; an edge needs two nodes.")
    if columns is None:
        if len(names) > 2 and "weights" not in ignore:
            raise InputError(
                f"{file} has {counted(len(names), 'column')}; is the graph weighted? Pick two with "
                'columns=("source", "target"), or pass ignore=("weights",) to keep the first two.'
            )
        return 0, 1
    places = []
    for column in columns:
        place = names.index(column) if column in names else column
        if not isinstance(place, int) or place >= len(names):
            raise InputError(f"{file} has no column {column!r}; it has {', '.join(names)}.")
        places.append(place)
    return places[0], places[1]


def read_matrix_market(
    file: Path, data: bytes, nodes: Declared, ignore: frozenset[str]
) -> FactorisedPairs:
    """Read a MatrixMarket file as an adjacency matrix."""
    matrix = parse_matrix_market(data, str(file))
    pairs = from_scipy(matrix, ignore, str(file))
    _check_declared(file, pairs, nodes)
    return pairs


def _check_declared(file: Path, pairs: FactorisedPairs, nodes: Declared) -> None:
    if isinstance(nodes, list):
        raise InputError(f"{file} numbers its nodes and has no names; leave nodes out.")
    if nodes is not None and pairs.nodes != nodes:
        raise InputError(
            f"{file} states its own nodes, and not nodes={nodes} of them; leave nodes out."
        )


def read_graphml(
    file: Path, data: bytes, nodes: Declared, ignore: frozenset[str]
) -> FactorisedPairs:
    """Read a GraphML file with one graph."""
    reader = _GraphMLReader(file, ignore)
    reader.parse(data)
    if isinstance(nodes, list):
        return reader.pairs(nodes)
    pairs = reader.pairs(None)
    _check_declared(file, pairs, nodes)
    return pairs


class _GraphMLReader:
    """Collects nodes and edges while the parser walks the file.

    A document type declaration is refused: it is where entity expansion attacks live, and GraphML
    has no need of one.
    """

    def __init__(self, file: Path, ignore: frozenset[str]) -> None:
        self.file, self.ignore = file, ignore
        self.nodes: dict[str, int] = {}
        self.sources: list[str] = []
        self.targets: list[str] = []
        self.weight_keys: set[str] = set()
        self.directed = False
        self.graphs = 0
        self.inside: list[str] = []
        self.parser = expat.ParserCreate(namespace_separator="}")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._refuse_declaration

    def parse(self, data: bytes) -> None:
        if not data.strip():
            raise InputError(f"{self.file} is empty; a GraphML file has a graph.")
        try:
            self.parser.Parse(data, True)
        except expat.ExpatError as error:
            reason = expat.errors.messages.get(error.code, "malformed")
            raise_alone(InputError(f"{self.file}, line {error.lineno}: not valid XML ({reason})."))
        if self.graphs == 0:
            raise self._error("there is no graph element")

    def pairs(self, nodes: list[Any] | None) -> FactorisedPairs:
        ends = []
        for side in (self.sources, self.targets):
            missing = sum(name not in self.nodes for name in side)
            if missing:
                raise InputError(
                    f"{self.file}: {counted(missing, 'edge')} name a node that is not declared."
                )
            ends.append(np.array([self.nodes[name] for name in side], dtype=np.int64))
        labels = [from_text(name) for name in self.nodes]
        return number_places(labels, np.column_stack(ends), nodes)

    def _error(self, reason: str) -> InputError:
        return InputError(f"{self.file}, line {self.parser.CurrentLineNumber}: {reason}.")

    def _refuse_declaration(self, *_: Any) -> None:
        raise self._error("a document type declaration is refused; remove the DOCTYPE")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition("}")[2]
        if name == "graph":
            self.graphs += 1
            if self.graphs > 1:
                raise self._error("more than one graph, or a graph inside a node")
            self.directed = attributes.get("edgedefault") == "directed"
        elif name == "node":
            identity = attributes.get("id")
            if identity is None:
                raise self._error("a node without id")
            if identity in self.nodes:
                raise self._error("a node id that was used before")
            self.nodes[identity] = len(self.nodes)
        elif name == "edge":
            self._edge(attributes)
        elif name == "hyperedge":
            raise self._error("a hyperedge; edges here join two nodes")
        elif name == "key":
            if "weight" in attributes.get("attr.name", attributes.get("id", "")).casefold():
                self.weight_keys.add(attributes.get("id", ""))
        elif (
            name == "data"
            and self.inside
            and self.inside[-1] == "edge"
            and attributes.get("key") in self.weight_keys
            and "weights" not in self.ignore
        ):
            raise refuse_weights(f"{self.file}, line {self.parser.CurrentLineNumber}: the graph")
        self.inside.append(name)

    def _end(self, tag: str) -> None:
        self.inside.pop()

    def _edge(self, attributes: dict[str, str]) -> None:
        stated = attributes.get("directed")
        directed = self.directed if stated is None else stated in ("true", "1")
        if directed and "direction" not in self.ignore:
            raise refuse_direction(f"{self.file}, line {self.parser.CurrentLineNumber}: the graph")
        source, target = attributes.get("source"), attributes.get("target")
        if source is None or target is None:
            raise self._error("an edge without source or target")
        self.sources.append(source)
        self.targets.append(target)
