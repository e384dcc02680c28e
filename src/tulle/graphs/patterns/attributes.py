"""Graphs whose nodes and edges have attributes, and the attributes as comparable codes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Array
from tulle.core.errors import InputError, QueryError
from tulle.core.reading import without_row_numbers
from tulle.core.unit import Unit
from tulle.graphs.data import Graph
from tulle.graphs.dated import Dated
from tulle.graphs.io.labels import canonical
from tulle.graphs.io.node_sets import read_table
from tulle.graphs.patterns.conditions import AttributeTerm, Conditions, ConstantTerm


@registry.register("data", "graph", "attributed")
class AttributedGraph(Graph):
    """A sealed graph with attributes of its nodes and edges.

    Attributes are columns: one value per node, by number, or per edge, in the order of
    ``Graph.edges``. Each column is of a kind, number, text or truth value, that is public like its
    name: it is declared with ``kinds``, or follows from the type of an array or a table. A column
    without either is text. Which values a column holds never changes its kind; None, NaN and
    values that do not fit the kind are missing, and with these no comparison holds.

    An attribute belongs to its node or edge and leaves with it. Under edge privacy nodes are
    public, and so are their attributes; those of edges are not.

    Example:
        >>> pair = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
        >>> staff = pair.with_attributes(nodes={"age": [25, 61, 40]}, kinds={"age": "number"})
        >>> from tulle.graphs.queries.subgraphs import subgraphs
        >>> subgraphs("x-y", where="x.age < 30").truth(staff)
        1
    """

    node_attributes: dict[str, Array]
    edge_attributes: dict[str, Array]
    node_kinds: dict[str, str]
    edge_kinds: dict[str, str]

    @classmethod
    def of(
        cls,
        graph: Graph,
        *,
        nodes: Any = None,
        edges: Mapping[str, Any] | None = None,
        kinds: Mapping[str, str] | None = None,
    ) -> AttributedGraph:
        """Return the same graph with attributes.

        Raises:
            InputError: when a column has another length or a value that no column can hold.
        """
        kinds = _check_kinds_known(kinds)
        whole = cls.__new__(cls)
        whole._indptr, whole._indices = graph.csr()
        whole._labels, whole._dropped = graph._labels, graph.dropped
        whole._declared, whole._header = graph._declared, graph._header
        whole._origin = graph.origin
        by_number = (
            nodes if isinstance(nodes, Mapping) or nodes is None else _by_label(graph, nodes)
        )
        whole.node_attributes, whole.node_kinds = _columns(
            by_number, graph.node_count, "node", kinds
        )
        whole.edge_attributes, whole.edge_kinds = _columns(edges, graph.edge_count, "edge", kinds)
        # Nodes and what is known of them are the same on all days; attributes of edges have none.
        whole._dated = None if whole.edge_attributes else graph._dated
        unknown = sorted(set(kinds).difference(whole.node_kinds, whole.edge_kinds))
        if unknown:
            raise InputError(f"kinds names columns that are not given: {', '.join(unknown)}.")
        return whole

    def _kinds(self) -> dict[str, dict[str, str]]:
        return {"node": self.node_kinds, "edge": self.edge_kinds}

    def without_node(self, node: int) -> AttributedGraph:
        """Return the graph after one node has left; later nodes move up by one."""
        pairs = self.edges()
        kept = (pairs != node).all(axis=1)
        left = pairs[kept] - (pairs[kept] > node)
        smaller = Graph.from_edges(left, nodes=self.node_count - 1)
        if self._labels is not None:
            smaller._labels = np.delete(self._labels, node)
        smaller._declared = self._declared
        return AttributedGraph.of(
            smaller,
            nodes=_typed(self.node_attributes, self.node_kinds, np.arange(self.node_count) != node),
            edges=_typed(self.edge_attributes, self.edge_kinds, kept),
        )

    def without_edge(self, edge: int) -> AttributedGraph:
        """Return the graph after one edge has left, given its place in ``Graph.edges``."""
        smaller = Graph.from_edges(np.delete(self.edges(), edge, axis=0), nodes=self.node_count)
        smaller._labels, smaller._declared = self._labels, self._declared
        return AttributedGraph.of(
            smaller,
            nodes=_typed(self.node_attributes, self.node_kinds, ...),
            edges=_typed(self.edge_attributes, self.edge_kinds, np.arange(self.edge_count) != edge),
        )

    def _on_same_nodes(self, records: Dated) -> AttributedGraph:
        kept = _typed(self.node_attributes, self.node_kinds, ...)
        return AttributedGraph.of(super()._on_same_nodes(records), nodes=kept)

    def neighbours(self, unit: str | Unit) -> Iterator[Graph]:
        """Yield the graph without each node or edge; additions are these pairs read backwards."""
        known = self.check_unit(unit)
        if known.period is not None:
            return super().neighbours(known)
        if known.base == "edge":
            return (self.without_edge(edge) for edge in range(self.edge_count))
        return (self.without_node(node) for node in range(self.node_count))


KINDS = ("number", "text", "truth value")
"""What a column may hold."""


def _check_kinds_known(kinds: Mapping[str, str] | None) -> dict[str, str]:
    declared = dict(kinds or {})
    for name, kind in declared.items():
        if kind not in KINDS:
            raise InputError(f"kinds[{name!r}]={kind!r} must be one of: {', '.join(KINDS)}.")
    return declared


def _by_label(graph: Graph, table: Any) -> dict[str, Any]:
    """Return the columns of a table of people by node number; its first column has the labels."""
    if isinstance(table, str | PathLike):
        columns: dict[str, Any] = dict(read_table(Path(table)))
    elif hasattr(table, "column_names"):
        table = without_row_numbers(table)
        columns = {name: table.column(name) for name in table.column_names}
    elif hasattr(table, "columns"):
        columns = {str(name): table[name] for name in table.columns}
    else:
        raise InputError(
            "nodes must be columns by name, or a table or file whose first column has the labels."
        )
    if not columns:
        raise InputError("The table has no columns; its first column has the labels of the nodes.")
    first, *others = columns
    place = {canonical(label): number for number, label in enumerate(graph.labels.tolist())}
    rows = [place.get(canonical(label), -1) for label in _values(columns[first])]
    laid: dict[str, Any] = {}
    for name in others:
        values: list[Any] = [None] * graph.node_count
        for row, value in zip(rows, _values(columns[name]), strict=True):
            if row >= 0:
                values[row] = value
        laid[name] = _Typed(values, _kind_of(columns[name]))
    return laid


@dataclass(frozen=True)
class _Typed:
    """Values with the kind that the type of their column has."""

    values: list[Any]
    kind: str


def _typed(columns: Mapping[str, Array], kinds: Mapping[str, str], kept: Any) -> dict[str, _Typed]:
    """Return the kept rows of columns, with the kinds that they have."""
    return {name: _Typed(column[kept].tolist(), kinds[name]) for name, column in columns.items()}


def _columns(
    given: Mapping[str, Any] | None, count: int, owner: str, kinds: Mapping[str, str]
) -> tuple[dict[str, Array], dict[str, str]]:
    columns: dict[str, Array] = {}
    found: dict[str, str] = {}
    for name, values in (given or {}).items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"{name!r} is not a name for an attribute, such as age or dept.")
        kind = kinds.get(name) or _kind_of(values)
        exact = isinstance(values, np.ndarray) and values.dtype.kind in "biuf" and kind != "text"
        listed = values if exact else _values(values)
        if len(listed) != count:
            raise InputError(f"Attribute {name!r} must have one value per {owner}.")
        if exact:
            column = np.ma.filled(values.astype(np.float64), np.nan)
        else:
            column = _column(name, listed, kind)
        columns[name], found[name] = column, kind
    return columns, found


def _kind_of(values: Any) -> str:
    """Return the kind of a column by its type alone, never by its values; text if it has none."""
    if isinstance(values, _Typed):
        return values.kind
    arrow = getattr(values, "type", None)
    if arrow is not None and hasattr(values, "to_pylist"):
        import pyarrow.types as types

        number = types.is_integer(arrow) or types.is_floating(arrow) or types.is_decimal(arrow)
        return "number" if number else "truth value" if types.is_boolean(arrow) else "text"
    dtype: Any = getattr(values, "dtype", None)
    if hasattr(dtype, "is_numeric"):  # polars
        return (
            "number" if dtype.is_numeric() else "truth value" if str(dtype) == "Boolean" else "text"
        )
    letter = getattr(dtype, "kind", "O")
    if letter in "mMcV":
        raise InputError("An attribute must hold numbers, truth values or text.")
    return {"b": "truth value", "i": "number", "u": "number", "f": "number"}.get(letter, "text")


def _values(column: Any) -> list[Any]:
    if isinstance(column, _Typed):
        return column.values
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)


def _column(name: str, values: list[Any], kind: str) -> Array:
    """Return a column; each value is judged by itself."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    if any(not (isinstance(value, str) or _is_plain(value)) for value in plain):
        raise InputError(f"Attribute {name!r} must hold numbers, truth values or text.")
    if kind == "text":
        text = np.empty(len(plain), dtype=object)
        text[:] = [None if _is_missing(value) else _as_text(value) for value in plain]
        return text
    read = _as_number if kind == "number" else _as_truth
    return np.array([read(value) for value in plain], dtype=np.float64)


def _is_plain(value: Any) -> bool:
    return not (isinstance(value, bytes | complex) or hasattr(value, "__len__"))


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _as_text(value: Any) -> str:
    """Return the text of a value: of 1 also where others make its column one of floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _as_number(value: Any) -> float:
    if _is_missing(value) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _as_truth(value: Any) -> float:
    if isinstance(value, str):
        return {"true": 1.0, "false": 0.0}.get(value.strip().casefold(), math.nan)
    if _is_missing(value) or value not in (0, 1):
        return math.nan
    return float(value)


@dataclass(frozen=True, eq=False)
class Coded:
    """Attributes and constants as whole numbers that compare as they do; -1 is missing."""

    node_rows: dict[str, int]
    edge_rows: dict[str, int]
    node_codes: Array
    edge_codes: Array
    constants: dict[ConstantTerm, int]


def encode(graph: Graph, conditions: Conditions) -> Coded:
    """Return codes for everything that the conditions compare.

    Raises:
        QueryError: when the graph lacks an attribute, or values of different kinds are compared.
    """
    reason = objection(graph._kinds(), conditions)
    if reason is not None:
        raise QueryError(reason)
    columns: dict[tuple[str, str], Array] = {}
    constants: dict[ConstantTerm, str] = {}
    for part in (part for parts in conditions for part in parts):
        for side in (part.left, part.right):
            if isinstance(side, AttributeTerm):
                columns[_owner(side), side.name] = _attributes(graph, _owner(side))[side.name]
            else:
                constants[side] = side.kind
    kinds = graph._kinds()
    codes: dict[tuple[str, str], Array] = {}
    coded: dict[ConstantTerm, int] = {}
    for kind in ("number", "truth value", "text"):
        group = {key: column for key, column in columns.items() if kinds[key[0]][key[1]] == kind}
        fixed = [constant for constant in constants if constant.kind == kind]
        pool: list[Any] = [column[~_missing(column)] for column in group.values()]
        pool.append(np.array([c.value for c in fixed], object if kind == "text" else np.float64))
        values = np.unique(np.concatenate(pool)) if any(map(len, pool)) else np.empty(0)
        for key, column in group.items():
            gone = _missing(column)
            code = np.full(len(column), -1, np.int32)
            code[~gone] = np.searchsorted(values, column[~gone])
            codes[key] = code
        for constant in fixed:
            coded[constant] = int(
                np.searchsorted(values, np.array([constant.value], values.dtype))[0]
            )
    node_names = [name for owner, name in columns if owner == "node"]
    edge_names = [name for owner, name in columns if owner == "edge"]
    return Coded(
        {name: row for row, name in enumerate(node_names)},
        {name: row for row, name in enumerate(edge_names)},
        _stack([codes["node", name] for name in node_names], graph.node_count),
        _stack([codes["edge", name] for name in edge_names], graph.edge_count),
        coded,
    )


def objection(kinds: Mapping[str, Mapping[str, str]], conditions: Conditions) -> str | None:
    """Return why conditions do not fit the public kinds of attributes, or None."""
    for part in (part for parts in conditions for part in parts):
        compared = []
        for side in (part.left, part.right):
            if not isinstance(side, AttributeTerm):
                compared.append(side.kind)
                continue
            owner = _owner(side)
            known = kinds.get(owner, {})
            if side.name not in known:
                listed = ", ".join(sorted(known)) or "none"
                return (
                    f"The {owner}s of this graph have no attribute {side.name!r} (known: "
                    f"{listed}). Give attributes with "
                    f"graph.with_attributes({owner}s={{{side.name!r}: values}})."
                )
            compared.append(known[side.name])
        if compared[0] != compared[1]:
            return (
                f"{part} compares a {compared[0]} with a {compared[1]}. A column without a type "
                "is text unless its kind is declared: with_attributes(..., kinds={name: "
                "'number'})."
            )
    return None


def _owner(attribute: AttributeTerm) -> str:
    return "node" if len(attribute.place) == 1 else "edge"


def _attributes(graph: Graph, owner: str) -> dict[str, Array]:
    assert isinstance(graph, AttributedGraph)
    return graph.node_attributes if owner == "node" else graph.edge_attributes


def _missing(column: Array) -> Array:
    if column.dtype.kind == "O":
        return np.array([value is None for value in column], dtype=bool)
    return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)


def _stack(rows: list[Array], count: int) -> Array:
    return np.array(rows, np.int32).reshape(len(rows), count)
