"""Graphs whose nodes and edges have attributes, and the attributes as comparable codes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.errors import InputError, QueryError
from tulle.core.unit import Unit
from tulle.graphs.data import Graph
from tulle.graphs.subgraph_conditions import Attribute, Comparison, Conditions, Constant

Array = npt.NDArray[Any]


class AttributedGraph(Graph):
    """A sealed graph with attributes of its nodes and edges.

    Attributes are columns: one value per node, by number, or per edge, in the order of
    ``Graph.edges``. A column holds numbers, truth values or text; None and NaN are missing values,
    with which no comparison holds. The names of the columns and what they hold are public.

    An attribute belongs to its node or edge and leaves with it. Under edge privacy nodes are
    public, and so are their attributes; those of edges are not.

    Example:
        >>> pair = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
        >>> staff = pair.with_attributes(nodes={"age": [25, 61, 40]})
        >>> from tulle.graphs.subgraph_queries import subgraphs
        >>> subgraphs("x-y", where="x.age < 30").truth(staff)
        1
    """

    node_attributes: dict[str, Array]
    edge_attributes: dict[str, Array]

    @classmethod
    def of(
        cls,
        graph: Graph,
        *,
        nodes: Mapping[str, Any] | None = None,
        edges: Mapping[str, Any] | None = None,
    ) -> AttributedGraph:
        """Return the same graph with attributes.

        Raises:
            InputError: when a column has another length or holds values of several kinds.
        """
        whole = cls.__new__(cls)
        whole._indptr, whole._indices = graph.csr()
        whole._labels, whole._dropped = graph._labels, graph.dropped
        whole.node_attributes = _columns(nodes, graph.node_count, "node")
        whole.edge_attributes = _columns(edges, graph.edge_count, "edge")
        return whole

    def without_node(self, node: int) -> AttributedGraph:
        """Return the graph after one node has left; later nodes move up by one."""
        pairs = self.edges()
        kept = (pairs != node).all(axis=1)
        left = pairs[kept] - (pairs[kept] > node)
        smaller = Graph.from_edges(left, nodes=self.node_count - 1)
        return AttributedGraph.of(
            smaller,
            nodes={name: np.delete(column, node) for name, column in self.node_attributes.items()},
            edges={name: column[kept] for name, column in self.edge_attributes.items()},
        )

    def without_edge(self, edge: int) -> AttributedGraph:
        """Return the graph after one edge has left, given its place in ``Graph.edges``."""
        smaller = Graph.from_edges(np.delete(self.edges(), edge, axis=0), nodes=self.node_count)
        return AttributedGraph.of(
            smaller,
            nodes=self.node_attributes,
            edges={name: np.delete(column, edge) for name, column in self.edge_attributes.items()},
        )

    def neighbours(self, unit: str | Unit) -> Iterator[Graph]:
        """Yield the graph without each node or edge; additions are these pairs read backwards."""
        if self.check_unit(unit).name == "edge":
            return (self.without_edge(edge) for edge in range(self.edge_count))
        return (self.without_node(node) for node in range(self.node_count))


def _columns(given: Mapping[str, Any] | None, count: int, owner: str) -> dict[str, Array]:
    columns = {}
    for name, values in (given or {}).items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"{name!r} is not a name for an attribute, such as age or dept.")
        # A list becomes an array of objects first: numpy would turn a mix into text.
        column = np.asarray(values, dtype=getattr(values, "dtype", object))
        if column.shape != (count,):
            raise InputError(f"Attribute {name!r} must have one value per {owner}.")
        if column.dtype.kind in "OU":
            column = _objects(name, column)
        if column.dtype.kind not in "biufO":
            raise InputError(f"Attribute {name!r} must hold numbers, truth values or text.")
        columns[name] = column
    return columns


def _objects(name: str, column: Array) -> Array:
    """Return a column of one kind: text with None where it is missing, numbers or truth values."""
    values = column.tolist()
    present = [value for value in values if value is not None]
    kinds = {bool if isinstance(value, bool | np.bool_) else type(value) for value in present}
    if kinds <= {str}:
        text = np.empty(len(values), dtype=object)
        text[:] = values
        return text
    if kinds == {bool} and len(present) == len(values):
        return np.array(values, dtype=bool)
    if kinds == {int} and len(present) == len(values):
        return np.array(values, dtype=np.int64)
    if all(issubclass(kind, int | float | np.number) and kind is not bool for kind in kinds):
        return np.array([np.nan if value is None else float(value) for value in values])
    raise InputError(
        f"Attribute {name!r} must hold numbers, truth values or text, not a mix; only numbers and "
        "text may be missing (None)."
    )


@dataclass(frozen=True, eq=False)
class Coded:
    """Attributes and constants as whole numbers that compare as they do; -1 is missing."""

    node_rows: dict[str, int]
    edge_rows: dict[str, int]
    node_codes: Array
    edge_codes: Array
    constants: dict[Constant, int]


def encode(graph: Graph, conditions: Conditions) -> Coded:
    """Return codes for everything that the conditions compare.

    Raises:
        QueryError: when the graph lacks an attribute, or values of different kinds are compared.
    """
    columns: dict[tuple[str, str], Array] = {}
    constants: dict[Constant, str] = {}
    for parts in conditions:
        for part in parts:
            kinds = []
            for side in (part.left, part.right):
                if isinstance(side, Attribute):
                    owner = "node" if len(side.place) == 1 else "edge"
                    column = _find(graph, owner, side.name)
                    columns[owner, side.name] = column
                    kinds.append(_kind(column))
                else:
                    constants[side] = side.kind
                    kinds.append(side.kind)
            _check_kinds(part, kinds)
    codes: dict[tuple[str, str], Array] = {}
    coded: dict[Constant, int] = {}
    for kind in ("number", "truth value", "text"):
        group = {key: column for key, column in columns.items() if _kind(column) == kind}
        fixed = [constant for constant in constants if constant.kind == kind]
        pool: list[Any] = [column[~_missing(column)] for column in group.values()]
        pool.append(np.array([c.value for c in fixed], dtype=object if kind == "text" else None))
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


def _find(graph: Graph, owner: str, name: str) -> Array:
    known = getattr(graph, f"{owner}_attributes", {})
    if name not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise QueryError(
            f"The {owner}s of this graph have no attribute {name!r} (known: {listed}). Give "
            f"attributes with graph.with_attributes({owner}s={{{name!r}: values}})."
        )
    column: Array = known[name]
    return column


def _kind(column: Array) -> str:
    return {"O": "text", "b": "truth value"}.get(column.dtype.kind, "number")


def _check_kinds(part: Comparison, kinds: list[str]) -> None:
    if kinds[0] != kinds[1]:
        raise QueryError(f"{part} compares a {kinds[0]} with a {kinds[1]}.")


def _missing(column: Array) -> Array:
    if column.dtype.kind == "O":
        return np.array([value is None for value in column], dtype=bool)
    return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)


def _stack(rows: list[Array], count: int) -> Array:
    return np.array(rows, np.int32).reshape(len(rows), count)
