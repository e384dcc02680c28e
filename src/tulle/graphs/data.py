"""The sealed simple undirected graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import validate
from tulle.core.dataset import Dataset, Facts
from tulle.core.errors import InputError, raise_alone
from tulle.core.unit import Unit
from tulle.graphs.pairs import FactorisedPairs, factorise

if TYPE_CHECKING:
    import igraph
    import networkx
    import scipy.sparse

    from tulle.graphs.subgraph_attributes import AttributedGraph

Offsets = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]
Progress = Callable[[float, str], None]

LARGEST_NODE_COUNT = 2**31 - 1
LARGEST_NODE_NEIGHBOURHOOD = 8


@dataclass(frozen=True)
class Dropped:
    """What was left out because a simple graph cannot hold it. For the custodian.

    ``loops`` counts pairs of a node with itself; ``duplicates`` counts repetitions of an edge,
    in either order, beyond the first.
    """

    loops: int = 0
    duplicates: int = 0


class Graph(Dataset):
    """A sealed graph: simple (no loops, no repeated edges), undirected, without weights.

    Build one with :meth:`from_edges`, :meth:`read`, :meth:`from_networkx`, :meth:`from_igraph` or
    :meth:`from_scipy`. Properties and methods marked *custodian side* return exact records or
    numbers computed from them: they are for whoever holds the data and must not be published.

    Two graphs are equal when they have the same number of nodes and the same edges between them;
    labels do not matter. Because of that a graph is not hashable.

    Example:
        >>> graph = Graph.from_edges([("ann", "bob"), ("bob", "cas"), ("cas", "ann")])
        >>> graph
        <Graph: sealed>
        >>> graph.edge_count
        3
    """

    kind: ClassVar[str] = "graph"
    units: ClassVar[tuple[str, ...]] = ("edge", "node")

    _indptr: Offsets
    _indices: Indices
    _labels: npt.NDArray[Any] | None
    _dropped: Dropped

    def __init__(self) -> None:
        raise InputError(
            "A Graph is not built by calling it. Use Graph.from_edges, Graph.read, "
            "Graph.from_networkx, Graph.from_igraph or Graph.from_scipy."
        )

    # --- building ---------------------------------------------------------------------------

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        *,
        nodes: int | None = None,
        labels: Sequence[Any] | None = None,
    ) -> Graph:
        """Build a graph from pairs of nodes.

        ``edges`` is an array with two columns or a list of pairs. Without ``nodes`` the nodes are
        the labels that occur, numbered in sorted order (in order of appearance when they cannot
        be sorted); any hashable label will do. With ``nodes=n`` the pairs hold whole numbers from
        0 to n - 1, and nodes without edges exist. ``labels`` names the nodes 0 to n - 1.

        Under edge privacy the set of nodes is public. When it has to include nodes without edges,
        say so with ``nodes``: otherwise the set of nodes is read off the edges.

        Loops and repeated edges are dropped and counted in :attr:`dropped`.

        Raises:
            InputError: when the pairs are not usable as they are.

        Example:
            >>> Graph.from_edges([(0, 1), (1, 2)], nodes=4).node_count
            4
        """
        names = None
        if labels is not None:
            names = _label_array(labels)
            if nodes is None:
                nodes = len(names)
        if nodes is not None:
            nodes = _check_node_count(nodes)
            if names is not None and len(names) != nodes:
                raise InputError(
                    f"labels has {len(names)} names for nodes={nodes}. Pass one name per node."
                )
        pairs = factorise(edges, nodes)
        return cls._build(pairs, names if names is not None else pairs.labels)

    @classmethod
    def _build(
        cls,
        pairs: FactorisedPairs,
        labels: npt.NDArray[Any] | None = None,
        *,
        mirrored: bool = False,
    ) -> Graph:
        """Sort checked pairs into CSR; ``mirrored`` says that both orders are meant as one."""
        count = _check_node_count(pairs.nodes)
        low = np.minimum(pairs.first, pairs.second)
        high = np.maximum(pairs.first, pairs.second)
        proper = low != high
        loops = len(low) - int(np.count_nonzero(proper))
        if loops:
            low, high = low[proper], high[proper]
        # One sortable key per edge. count < 2**31, so the key fits int64.
        keys = low * count + high
        if len(keys) > 1 and not bool(np.all(keys[1:] > keys[:-1])):
            keys = np.sort(keys)
            fresh = np.empty(len(keys), dtype=bool)
            fresh[0] = True
            np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
            keys = keys[fresh]
        duplicates = 0 if mirrored else len(low) - len(keys)
        low, high = np.divmod(keys, max(count, 1))
        return cls._from_sorted(count, low, high, labels, Dropped(loops, duplicates))

    @classmethod
    def _from_sorted(
        cls,
        count: int,
        low: npt.NDArray[np.int64],
        high: npt.NDArray[np.int64],
        labels: npt.NDArray[Any] | None = None,
        dropped: Dropped | None = None,
    ) -> Graph:
        """Build from distinct pairs low < high in lexicographic order."""
        degrees = np.bincount(low, minlength=count) + np.bincount(high, minlength=count)
        indptr = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(degrees, out=indptr[1:])
        both = np.concatenate([low * count + high, high * count + low])
        both.sort()
        indices = (both % max(count, 1)).astype(np.int32)
        graph = cls.__new__(cls)
        indptr.flags.writeable = False
        indices.flags.writeable = False
        graph._indptr, graph._indices = indptr, indices
        graph._labels, graph._dropped = labels, dropped or Dropped()
        return graph

    @classmethod
    def read(
        cls,
        path: str | PathLike[str],
        *,
        format: str | None = None,
        nodes: int | None = None,
        columns: Sequence[int | str] | None = None,
        ignore: Iterable[str] = (),
        progress: Progress | None = None,
    ) -> Graph:
        """Read a graph from a file; see :func:`tulle.graphs.reading.read` for the formats."""
        from tulle.graphs.reading import read

        return read(
            path, format=format, nodes=nodes, columns=columns, ignore=ignore, progress=progress
        )

    @classmethod
    def from_networkx(cls, graph: networkx.Graph, *, ignore: Iterable[str] = ()) -> Graph:
        """Build from a networkx graph; its nodes become the labels.

        Raises:
            InputError: when it is directed and ``ignore`` lacks "direction", or when it has
                weights or parallel edges and ``ignore`` lacks "weights".
        """
        from tulle.graphs.conversion import from_networkx

        return from_networkx(graph, ignore)

    @classmethod
    def from_igraph(cls, graph: igraph.Graph, *, ignore: Iterable[str] = ()) -> Graph:
        """Build from an igraph graph; the vertex attribute ``name`` becomes the labels.

        Raises:
            InputError: when it is directed and ``ignore`` lacks "direction", or when it has
                weights or parallel edges and ``ignore`` lacks "weights".
        """
        from tulle.graphs.conversion import from_igraph

        return from_igraph(graph, ignore)

    @classmethod
    def from_scipy(cls, matrix: scipy.sparse.sparray, *, ignore: Iterable[str] = ()) -> Graph:
        """Build from an adjacency matrix, sparse or dense: square, symmetric, zeros and ones.

        Raises:
            InputError: when it is not symmetric and ``ignore`` lacks "direction", or when it has
                values other than 0 and 1 and ``ignore`` lacks "weights".
        """
        from tulle.graphs.conversion import from_scipy

        return from_scipy(matrix, ignore)

    # --- custodian side ---------------------------------------------------------------------

    @property
    def node_count(self) -> int:
        """The exact number of nodes. Custodian side."""
        return len(self._indptr) - 1

    @property
    def edge_count(self) -> int:
        """The exact number of edges. Custodian side."""
        return len(self._indices) // 2

    @property
    def labels(self) -> npt.NDArray[Any]:
        """The label of each node, by node number. Custodian side."""
        if self._labels is None:
            return np.arange(self.node_count, dtype=np.int64)
        return self._labels.copy()

    @property
    def dropped(self) -> Dropped:
        """How many loops and repeated edges the input had. Custodian side."""
        return self._dropped

    def edges(self) -> npt.NDArray[np.int64]:
        """Return all edges as rows (u, v) with u < v, sorted. Custodian side."""
        first = np.repeat(np.arange(self.node_count, dtype=np.int64), np.diff(self._indptr))
        upper = first < self._indices
        return np.column_stack([first[upper], self._indices[upper].astype(np.int64)])

    def csr(self) -> tuple[Offsets, Indices]:
        """Return the read-only arrays (offsets, sorted neighbours) that kernels work on.

        The neighbours of node ``u`` are ``indices[indptr[u]:indptr[u + 1]]``. Custodian side.
        """
        return self._indptr, self._indices

    def with_attributes(
        self,
        *,
        nodes: Mapping[str, Any] | None = None,
        edges: Mapping[str, Any] | None = None,
    ) -> AttributedGraph:
        """Return the same graph with columns of attributes, for conditions on subgraphs.

        One value per node by number, or per edge in the order of ``edges()``: numbers, truth
        values or text. The names of the columns are public.

        Raises:
            InputError: when a column has another length or holds values of several kinds.

        Example:
            >>> from tulle.graphs.subgraph_queries import subgraphs
            >>> path = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
            >>> staff = path.with_attributes(nodes={"dept": ["law", "law", "art"]})
            >>> subgraphs("a-b", where="a.dept = b.dept").truth(staff)
            1
        """
        from tulle.graphs.subgraph_attributes import AttributedGraph

        return AttributedGraph.of(self, nodes=nodes, edges=edges)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the records to a file; see :func:`tulle.graphs.writing.write`. Custodian side."""
        from tulle.graphs.writing import write

        write(self, path)

    def to_networkx(self) -> networkx.Graph:
        """Return the graph as a networkx graph with the labels as nodes. Custodian side."""
        from tulle.graphs.conversion import to_networkx

        return to_networkx(self)

    def to_igraph(self) -> igraph.Graph:
        """Return the graph as an igraph graph. Custodian side."""
        from tulle.graphs.conversion import to_igraph

        return to_igraph(self)

    def to_scipy(self) -> scipy.sparse.csr_array:
        """Return the adjacency matrix with entries of type int64. Custodian side."""
        from tulle.graphs.conversion import to_scipy

        return to_scipy(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return bool(
            np.array_equal(self._indptr, other._indptr)
            and np.array_equal(self._indices, other._indices)
        )

    __hash__ = None  # type: ignore[assignment]

    # --- what privacy needs -----------------------------------------------------------------

    def facts(self, unit: str | Unit) -> Facts:
        """Return what is public: the number of nodes under edge privacy, nothing under node's."""
        if self.check_unit(unit).name == "edge":
            return {"nodes": self.node_count}
        return {}

    def neighbours(self, unit: str | Unit) -> Iterator[Graph]:
        """Yield all neighbours of a small graph.

        ``edge``: every graph with one pair joined or parted. ``node``: every graph with one node
        removed, and every graph with one node added, joined to any set of the others.

        Raises:
            InputError: under ``node`` for more than 8 nodes, where there are too many.
        """
        if self.check_unit(unit).name == "edge":
            return self._edge_neighbours()
        if self.node_count > LARGEST_NODE_NEIGHBOURHOOD:
            raise InputError(
                "All node neighbours are listed for graphs of at most "
                f"{LARGEST_NODE_NEIGHBOURHOOD} nodes, because there are 2^n of them. "
                "Use a smaller graph."
            )
        return self._node_neighbours()

    def _edge_neighbours(self) -> Iterator[Graph]:
        present = {(int(u), int(v)) for u, v in self.edges()}
        for pair in combinations(range(self.node_count), 2):
            yield _from_pairs(self.node_count, present ^ {pair})

    def _node_neighbours(self) -> Iterator[Graph]:
        count = self.node_count
        present = {(int(u), int(v)) for u, v in self.edges()}
        for gone in range(count):
            kept = {(u - (u > gone), v - (v > gone)) for u, v in present if gone not in (u, v)}
            yield _from_pairs(count - 1, kept)
        for subset in range(2**count):
            joined = {(u, count) for u in range(count) if subset >> u & 1}
            yield _from_pairs(count + 1, present | joined)


def all_graphs(nodes: int) -> Iterator[Graph]:
    """Yield every labelled graph on ``nodes`` nodes, 2^(n(n-1)/2) of them. Holds no private data.

    Raises:
        InputError: for more than 7 nodes, where there are too many.

    Example:
        >>> sum(1 for _ in all_graphs(4))
        64
    """
    count = validate.whole(at_least=0, nodes=nodes)
    if count > 7:
        raise InputError(f"All graphs are listed for at most 7 nodes; got nodes={nodes}.")
    return _every_graph(count)


def _every_graph(count: int) -> Iterator[Graph]:
    pairs = list(combinations(range(count), 2))
    for subset in range(2 ** len(pairs)):
        yield _from_pairs(count, {pair for bit, pair in enumerate(pairs) if subset >> bit & 1})


def _from_pairs(count: int, pairs: set[tuple[int, int]]) -> Graph:
    ordered = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return Graph._from_sorted(count, ordered[:, 0], ordered[:, 1])


def _check_node_count(nodes: int) -> int:
    count = validate.whole(at_least=0, nodes=nodes)
    if count > LARGEST_NODE_COUNT:
        raise InputError(f"nodes must be at most {LARGEST_NODE_COUNT}; got {nodes!r}.")
    return count


def _label_array(labels: Sequence[Any]) -> npt.NDArray[Any]:
    values = list(labels)
    try:
        distinct = len(set(values))
    except TypeError:
        raise_alone(InputError("labels must be hashable, for example strings or numbers."))
    if distinct != len(values):
        raise InputError("labels must be distinct; at least one occurs twice.")
    names = np.empty(len(values), dtype=object)
    names[:] = values
    return names
