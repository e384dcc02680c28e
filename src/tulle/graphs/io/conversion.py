"""Between a sealed graph and the graphs of other libraries. Custodian side."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tulle.core.cells import grid
from tulle.core.errors import InputError, MissingExtraError, raise_alone
from tulle.graphs.io.labels import canonical
from tulle.graphs.io.node_sets import declared_nodes
from tulle.graphs.io.pairs import FactorisedPairs, number_places

if TYPE_CHECKING:
    from tulle.graphs.data import Graph

IGNORABLE = ("direction", "weights")


def check_ignore(ignore: Iterable[str]) -> frozenset[str]:
    """Return the set of things to ignore, each a word this library knows."""
    words = frozenset((ignore,) if isinstance(ignore, str) else ignore)
    unknown = words.difference(IGNORABLE)
    if unknown:
        raise InputError(
            f"ignore={sorted(unknown)!r} is not known. What can be ignored: {', '.join(IGNORABLE)}."
        )
    return words


def refuse_direction(what: str) -> InputError:
    """Return the error for directed input."""
    return InputError(
        f"{what} is directed; a Graph here has no direction. To join two nodes when there is an "
        'arc either way, pass ignore=("direction",).'
    )


def refuse_weights(what: str, has: str = "has weights") -> InputError:
    """Return the error for weighted input."""
    return InputError(
        f"{what} {has}; a Graph here has single edges without weights. To keep only who is "
        'joined to whom, pass ignore=("weights",).'
    )


def _load(library: str) -> Any:
    try:
        return importlib.import_module(library)
    except ImportError:
        raise_alone(MissingExtraError(library, "interop", "This conversion"))


def from_networkx(graph: Any, ignore: Iterable[str], nodes: Any = None) -> FactorisedPairs:
    """Return the pairs of a networkx graph."""
    words = check_ignore(ignore)
    if not hasattr(graph, "is_directed") or not hasattr(graph, "is_multigraph"):
        raise InputError(f"from_networkx needs a networkx graph; got a {type(graph).__name__}.")
    if graph.is_directed() and "direction" not in words:
        raise refuse_direction("The networkx graph")
    if "weights" not in words:
        if graph.is_multigraph():
            raise refuse_weights("The networkx graph", "may have parallel edges (MultiGraph)")
        if any(weight is not None for _, _, weight in graph.edges(data="weight")):
            raise refuse_weights("The networkx graph")
    names = list(graph.nodes)
    place = {name: number for number, name in enumerate(names)}
    ends = np.fromiter(
        (place[end] for pair in graph.edges() for end in pair), dtype=np.int64
    ).reshape(-1, 2)
    return number_places(names, ends, _declared(nodes))


def _declared(nodes: Any) -> list[Any] | None:
    known = declared_nodes(nodes)
    return list(range(known)) if isinstance(known, int) else known


def from_igraph(graph: Any, ignore: Iterable[str], nodes: Any = None) -> FactorisedPairs:
    """Return the pairs of an igraph graph."""
    words = check_ignore(ignore)
    if not hasattr(graph, "get_edgelist") or not hasattr(graph, "vcount"):
        raise InputError(f"from_igraph needs an igraph graph; got a {type(graph).__name__}.")
    if graph.is_directed() and "direction" not in words:
        raise refuse_direction("The igraph graph")
    if "weights" not in words and "weight" in graph.es.attributes():
        raise refuse_weights("The igraph graph")
    ends = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    count = graph.vcount()
    names = list(range(count))
    if "name" in graph.vs.attributes():
        names = graph.vs["name"]
        if len({canonical(name) for name in names}) != count:
            raise InputError("Two vertices of the igraph graph have the same name; rename one.")
    return number_places(names, ends, _declared(nodes))


def from_scipy(matrix: Any, ignore: Iterable[str], what: str = "The matrix") -> FactorisedPairs:
    """Return the pairs of a square adjacency matrix."""
    import scipy.sparse

    words = check_ignore(ignore)
    if not scipy.sparse.issparse(matrix):
        refusal = f"{what} is not a matrix of numbers; pass a square adjacency matrix."
        matrix = grid(matrix, refusal)
        if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
            raise InputError(refusal)
        matrix = scipy.sparse.coo_array(matrix)
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"{what} has shape {matrix.shape}; an adjacency matrix is square.")
    # Small integers start anew at 256: an entry that stands there so often would be none.
    wide = matrix.astype(np.int64 if matrix.dtype.kind in "iu" else matrix.dtype, copy=True)
    entries = scipy.sparse.csr_array(wide)
    entries.sum_duplicates()
    entries = entries.tocoo()
    values = entries.data
    if values.dtype.kind == "f" and bool(np.isnan(values).any()):
        raise InputError(f"{what} holds missing values (NaN); an adjacency matrix has none.")
    nonzero = values != 0
    if "weights" not in words and bool((values[nonzero] != 1).any()):
        raise refuse_weights(what, "has values other than 0 and 1")
    rows = entries.row[nonzero].astype(np.int64)
    columns = entries.col[nonzero].astype(np.int64)
    count = int(matrix.shape[0])
    if "direction" not in words:
        forward = np.sort(rows * count + columns)
        backward = np.sort(columns * count + rows)
        if not np.array_equal(forward, backward):
            raise refuse_direction(f"{what} is not symmetric, so it")
    return FactorisedPairs(count, rows, columns, declared=True, mirrored=True)


def to_networkx(graph: Graph) -> Any:
    """Return a networkx graph with the labels as nodes."""
    networkx = _load("networkx")
    names = graph.labels.tolist()
    result = networkx.Graph()
    result.add_nodes_from(names)
    result.add_edges_from((names[u], names[v]) for u, v in graph.edges().tolist())
    return result


def to_igraph(graph: Graph) -> Any:
    """Return an igraph graph, with labels as the vertex attribute ``name`` if there are any."""
    igraph = _load("igraph")
    result = igraph.Graph(n=graph.node_count, edges=graph.edges().tolist())
    if graph._labels is not None:
        # Strings only: igraph looks vertices up by name, and a number means a position.
        result.vs["name"] = [str(name) for name in graph.labels.tolist()]
    return result


def to_scipy(graph: Graph) -> Any:
    """Return the adjacency matrix as a scipy csr_array."""
    import scipy.sparse

    indptr, indices = graph.csr()
    ones = np.ones(len(indices), dtype=np.int64)
    shape = (graph.node_count, graph.node_count)
    return scipy.sparse.csr_array((ones, indices.copy(), indptr.copy()), shape=shape)
