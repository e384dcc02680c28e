"""The sealed simple undirected graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.arrays import Wholes
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError, UnitError
from tulle.core.public import public
from tulle.core.reading import reading
from tulle.core.unit import Unit
from tulle.core.validate import counted
from tulle.graphs.facts import EdgeFacts, NodeFacts
from tulle.graphs.io.labels import canonical
from tulle.graphs.io.node_sets import check_count, declared_nodes
from tulle.graphs.io.pairs import FactorisedPairs, Progress, factorise

if TYPE_CHECKING:
    import igraph
    import networkx
    import scipy.sparse

    from tulle.graphs.patterns.attributes import AttributedGraph
from tulle.graphs.dated import Dated

Indices = npt.NDArray[np.int32]

LARGEST_NODE_NEIGHBOURHOOD = 8

_NOT_PAIRS = "something in it is no node, or no pair of nodes"


@dataclass(frozen=True)
class Dropped:
    """What was left out because the graph cannot hold it. For the custodian.

    ``loops`` counts pairs of a node with itself; ``duplicates`` counts repetitions of an edge,
    in either order, beyond the first; ``outside`` counts pairs with an end that is not among the
    declared nodes; ``bad`` counts lines of a file that name no pair of nodes.
    """

    loops: int = 0
    duplicates: int = 0
    outside: int = 0
    bad: int = 0


READ_OFF = {
    "edge": (
        "who has an edge at all is public, since the set of nodes was read off the edges and not "
        "declared"
    ),
    "node": (
        "whoever is joined to the protected node has other edges too, since the set of nodes was "
        "read off the edges and not declared"
    ),
}
"""What is assumed, by unit, when the set of nodes was not declared."""


@public("Hold data")
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

    _indptr: Wholes
    _indices: Indices
    _labels: npt.NDArray[Any] | None
    _dropped: Dropped
    _declared: bool
    _header: tuple[str, ...] = ()
    _dated: Dated | None = None
    """The records that the edges are of, each with its day; None where days are not known."""

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
        nodes: Any = None,
        labels: Sequence[Any] | None = None,
        times: Sequence[Any] | None = None,
    ) -> Graph:
        """Build a graph from pairs of nodes.

        ``edges`` is an array with two columns or a list of pairs. Labels are numbers, text, bytes,
        dates, UUIDs or tuples of these, and nodes are numbered in their order: numbers first,
        then text, and so on, each ascending. With ``nodes=n`` the pairs hold whole numbers from 0
        to n - 1, and ``labels`` may name these nodes. With other ``nodes`` (labels, a table whose
        first column has them, or a file; see :func:`tulle.graphs.io.reading.read`) these are the
        nodes, and pairs with an end elsewhere are left out and counted.

        Without ``nodes`` they are read off the edges: somebody whose only edge goes away goes
        with it, and every guarantee says that this is assumed not to matter.

        Loops and repeated edges are dropped and counted in :attr:`dropped`.

        ``times`` has the day of each pair (a date, or None); repeated edges are then records of
        one edge. So ``unit="edge-week"`` (day, month, year) protects any one edge's records of any
        one week, and :meth:`of_days` has the graph of some days.

        Raises:
            InputError: when the pairs are not usable as they are.

        Example:
            >>> Graph.from_edges([(0, 1), (1, 2)], nodes=4).node_count
            4
            >>> calls = Graph.from_edges([(0, 1), (0, 1)], nodes=4, times=["2026-01-05", None])
            >>> calls.check_unit("edge-week").meaning.partition(";")[0]
            "any one edge's records of any one week"
        """
        if times is not None:
            records = replace(Dated.of(edges, times), numbered=labels is not None)
            return cls._of_records(records, nodes=nodes, labels=labels)
        known = declared_nodes(nodes)
        if labels is None:
            return cls._build(_read_pairs(edges, known))
        names = _label_array(labels)
        if isinstance(known, list):
            raise InputError("Pass labels for numbered nodes, or the labels as nodes; not both.")
        if known is None:
            known = len(names)
        if known != len(names):
            raise InputError(
                f"labels has {len(names)} names for nodes={nodes}. Pass one name per node."
            )
        return cls._build(replace(_read_pairs(edges, known), labels=names))

    @classmethod
    def _of_records(cls, records: Dated, **terms: Any) -> Graph:
        made = cls.from_edges(records.pairs, **terms)
        made._dated = records
        return made

    def _on_same_nodes(self, records: Dated) -> Graph:
        labels = self._labels
        nodes = self.node_count if labels is None or records.numbered else labels.tolist()
        made = Graph._of_records(records, nodes=nodes)
        made._labels, made._declared, made._origin = labels, self._declared, self.origin
        return made

    @classmethod
    def _build(cls, pairs: FactorisedPairs) -> Graph:
        """Sort checked pairs into CSR."""
        count = check_count(pairs.nodes)
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
        duplicates = 0 if pairs.mirrored else len(low) - len(keys)
        low, high = np.divmod(keys, max(count, 1))
        dropped = Dropped(loops, duplicates, pairs.outside, pairs.bad)
        graph = cls._from_sorted(count, low, high, pairs.labels, dropped)
        graph._declared, graph._header = pairs.declared, pairs.header
        return graph

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
        graph._declared = True
        return graph

    @classmethod
    def _from_pairs(cls, count: int, pairs: set[tuple[int, int]]) -> Graph:
        ordered = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
        return cls._from_sorted(count, ordered[:, 0], ordered[:, 1])

    @classmethod
    def read(
        cls,
        path: str | PathLike[str],
        *,
        format: str | None = None,
        nodes: Any = None,
        columns: Sequence[int | str] | None = None,
        header: bool | None = None,
        delimiter: str | None = None,
        ignore: Iterable[str] = (),
        time: str | None = None,
        bad_records: str = "refuse",
        progress: Progress | None = None,
    ) -> Graph:
        """Read a graph from an edge list, Parquet, MatrixMarket or GraphML file.

        The format follows from the file name (``.csv``, ``.tsv``, ``.txt``, ``.edges``,
        ``.parquet``, ``.mtx``, ``.graphml``; ``.gz`` on top of any but Parquet) or from ``format``:
        "edges", "parquet", "mtx" or "graphml".

        An edge list has one pair per line, separated by ``delimiter``; when that is left out, by a
        tab, a semicolon, a comma or white space, the first of these that the line has. Lines that
        start with ``#``, ``%`` or ``//`` are comments; fields may be quoted. Digits without
        superfluous zeros are numbers, anything else is text; nodes are in the order of numbers,
        then text, each ascending. More than two columns are refused unless ``columns`` picks two,
        by number or by the name in the header, or ``ignore`` holds "weights", which keeps the first
        two. An edge list does not say whether it is directed: a pair joins its nodes either way.

        ``header`` says whether the first line names the columns. When it is left out, a first line
        of two usual names of columns (``source,target``, ``from_id to_id``, ...) is a header;
        without one all ids must be digits, and files and declared nodes with other ids are refused.

        ``nodes`` declares who is in the network, so that people without edges are, too: a number n
        for the nodes 0 to n - 1, a list of labels, a table whose first column has them, or a file
        (``.txt`` with one label per line; ``.csv``, ``.tsv`` or ``.parquet`` with labels in the
        first column, under a header). Edges of others are left out and counted in
        ``graph.dropped``. Without ``nodes`` they are read off the edges, and every guarantee says
        so.

        MatrixMarket and GraphML say so: a matrix that is not symmetric and a directed graph are
        refused unless ``ignore`` holds "direction"; weights are refused unless it holds "weights".

        ``time`` names the column that says of which day an edge is, as in :meth:`from_edges`:
        dates, or moments as they are written, of which the day counts. It goes with ``columns`` by
        name and a header, or with Parquet.

        A line that is not two nodes (a word where ids are numbers, an id that is not among
        ``nodes``, weights that nobody said to ignore, bytes that are no text) makes the file
        refused, which whoever sees the refusal learns. ``bad_records="drop"`` leaves out such lines
        of an edge list, each by itself, and counts them in ``graph.dropped``: then no line makes
        reading fail.

        ``progress`` is called with the fraction done and a word for the current step.

        Raises:
            InputError: when the file cannot be read as asked; it names the line and the reason.

        Example:
            >>> import pathlib, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     file = pathlib.Path(folder, "friends.csv")
            ...     _ = file.write_text("ego,alter\\nann,bob\\nbob,cas\\n")
            ...     Graph.read(file, header=True, nodes=["ann", "bob", "cas", "dee"]).node_count
            4
        """
        from tulle.graphs.io.reading import check_bad_records, read

        if time is not None:
            check_bad_records(bad_records, "dated")
            found = Dated.read(path, time, format, columns, header, delimiter, ignore)
            return cls._of_records(found, nodes=declared_nodes(nodes, from_file=True))
        pairs = read(
            path,
            format=format,
            nodes=nodes,
            columns=columns,
            header=header,
            delimiter=delimiter,
            ignore=ignore,
            bad_records=bad_records,
            progress=progress,
        )
        return cls._build(pairs)

    @classmethod
    def from_networkx(
        cls, graph: networkx.Graph, *, ignore: Iterable[str] = (), nodes: Any = None
    ) -> Graph:
        """Build from a networkx graph; its nodes become the labels, in the order of labels.

        ``nodes`` declares who is in the network, as in :meth:`from_edges`.

        Raises:
            InputError: when it is directed and ``ignore`` lacks "direction", or when it has
                weights or parallel edges and ``ignore`` lacks "weights".
        """
        from tulle.graphs.io.conversion import from_networkx

        with reading("The graph", _NOT_PAIRS):
            pairs = from_networkx(graph, ignore, nodes)
        return cls._build(pairs)

    @classmethod
    def from_igraph(
        cls, graph: igraph.Graph, *, ignore: Iterable[str] = (), nodes: Any = None
    ) -> Graph:
        """Build from an igraph graph; the vertex attribute ``name`` becomes the labels.

        Nodes are in the order of labels. ``nodes`` declares who is in the network, as in
        :meth:`from_edges`.

        Raises:
            InputError: when it is directed and ``ignore`` lacks "direction", or when its edges
                have the attribute weight and ``ignore`` lacks "weights".
        """
        from tulle.graphs.io.conversion import from_igraph

        with reading("The graph", _NOT_PAIRS):
            pairs = from_igraph(graph, ignore, nodes)
        return cls._build(pairs)

    @classmethod
    def from_scipy(cls, matrix: scipy.sparse.sparray, *, ignore: Iterable[str] = ()) -> Graph:
        """Build from an adjacency matrix, sparse or dense: square, symmetric, zeros and ones.

        Raises:
            InputError: when it is not symmetric and ``ignore`` lacks "direction", or when it has
                values other than 0 and 1 and ``ignore`` lacks "weights".
        """
        from tulle.graphs.io.conversion import from_scipy

        with reading("The matrix", _NOT_PAIRS):
            pairs = from_scipy(matrix, ignore)
        return cls._build(pairs)

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

    def what_was_read(self) -> str:
        """Say how much the input held and what was dropped of it. Custodian side.

        Example:
            >>> Graph.from_edges([(0, 1), (1, 0), (1, 1)], nodes=3).what_was_read()
            'Read 3 nodes and 1 link; 1 self-link and 1 repeat dropped.'
        """
        found = f"Read {counted(self.node_count, 'node')} and {counted(self.edge_count, 'link')}"
        dropped = self._dropped
        if dropped.loops or dropped.duplicates:
            loops = counted(dropped.loops, "self-link")
            found += f"; {loops} and {counted(dropped.duplicates, 'repeat')} dropped"
        if dropped.outside:
            found += f"; {counted(dropped.outside, 'link')} of undeclared nodes left out"
        if dropped.bad:
            found += f"; {counted(dropped.bad, 'line')} without two nodes left out"
        if self._header:
            found += f"; header: {', '.join(self._header)}"
        return f"{found}."

    def edges(self) -> npt.NDArray[np.int64]:
        """Return all edges as rows (u, v) with u < v, sorted. Custodian side."""
        first = np.repeat(np.arange(self.node_count, dtype=np.int64), np.diff(self._indptr))
        upper = first < self._indices
        return np.column_stack([first[upper], self._indices[upper].astype(np.int64)])

    def csr(self) -> tuple[Wholes, Indices]:
        """Return the read-only arrays (offsets, sorted neighbours) that kernels work on.

        The neighbours of node ``u`` are ``indices[indptr[u]:indptr[u + 1]]``. Custodian side.
        """
        return self._indptr, self._indices

    def by_degree(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """Return (order, rank): nodes by descending degree, and the place of each node therein.

        Custodian side.
        """
        # No kernel: to compile one takes longer than to sort the degrees of a million nodes.
        order = np.argsort(-np.diff(self._indptr), kind="stable").astype(np.uint32)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order), dtype=np.uint32)
        return order, rank

    def with_attributes(
        self,
        *,
        nodes: Any = None,
        edges: Mapping[str, Any] | None = None,
        kinds: Mapping[str, str] | None = None,
    ) -> AttributedGraph:
        """Return the same graph with columns of attributes, for conditions on subgraphs.

        Columns by name hold one value per node, in the order of :attr:`labels`, or per edge, in
        the order of :meth:`edges`. ``nodes`` may also be a table or a file (.csv, .tsv, .parquet)
        whose first column has the labels, in any order.

        Names and kinds of columns are public, so a kind never follows from the values: it is
        declared with ``kinds`` ("number", "text" or "truth value"), or it is that of a typed
        array or column; anything else is text. Values that do not fit are missing.

        Raises:
            InputError: when a column has another length or a value that no column can hold.

        Example:
            >>> from tulle.graphs.queries.subgraphs import subgraphs
            >>> path = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
            >>> staff = path.with_attributes(nodes={"dept": ["law", "law", "art"]})
            >>> subgraphs("a-b", where="a.dept = b.dept").truth(staff)
            1
        """
        attributed: type[AttributedGraph] = registry.find("data", "graph")["attributed"]
        with reading("The attributes", "a value is none that a column can hold"):
            return attributed.of(self, nodes=nodes, edges=edges, kinds=kinds)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the records to a file, as :mod:`tulle.graphs.io.writing` says. Custodian side."""
        from tulle.graphs.io.writing import write

        write(self, path)

    def to_networkx(self) -> networkx.Graph:
        """Return the graph as a networkx graph with the labels as nodes. Custodian side."""
        from tulle.graphs.io.conversion import to_networkx

        return to_networkx(self)

    def to_igraph(self) -> igraph.Graph:
        """Return the graph as an igraph graph. Custodian side."""
        from tulle.graphs.io.conversion import to_igraph

        return to_igraph(self)

    def to_scipy(self) -> scipy.sparse.csr_array:
        """Return the adjacency matrix with entries of type int64. Custodian side."""
        from tulle.graphs.io.conversion import to_scipy

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

    def facts(self, unit: str | Unit) -> EdgeFacts | NodeFacts:
        """Return what is public: the set of nodes under edge privacy, nothing under node's."""
        if self.check_unit(unit).base == "edge":
            return EdgeFacts(self.node_count, self._labels, self._kinds())
        return NodeFacts(self._kinds())

    def public_side(self, unit: str | Unit) -> EdgeFacts | NodeFacts:
        """Return the public side of the graph, by the unit: all that a question may object to."""
        return self.facts(unit)

    def assumptions(self, unit: str | Unit) -> tuple[str, ...]:
        """Return what guarantees rest on when the nodes were read off the edges."""
        if self._declared:
            return ()
        return (READ_OFF[self.check_unit(unit).base],)

    def check_unit(self, unit: str | Unit) -> Unit:
        """Return the unit if this graph knows it: edges, their records of a period, or nodes.

        Raises:
            UnitError: when it is another one, or nobody knows of which day an edge is.
        """
        known = Unit.of(unit)
        if known.base != "edge" or known.period is None:
            return super().check_unit(known)
        if self._dated is None:
            raise UnitError(
                f"Nobody knows of which {known.period} an edge is. Say which column is the time "
                "when reading: Graph.read(..., time='day'), or times= of Graph.from_edges."
            )
        return known

    def of_days(self, first: date, last: date) -> Graph:
        """Return the graph of the records of these days alone, on the same nodes."""
        if self._dated is None:
            self.check_unit("edge-day")
        assert self._dated is not None
        return self._on_same_nodes(self._dated.of_days(first, last))

    def _kinds(self) -> dict[str, dict[str, str]]:
        """Return the kinds of attributes, by owner and name: the public schema."""
        return {}

    def neighbours(self, unit: str | Unit) -> Iterator[Graph]:
        """Yield all neighbours of a small graph.

        ``edge``: every graph with one pair joined or parted. ``node``: every graph with one node
        removed, and every graph with one node added, joined to any set of the others.

        Raises:
            InputError: under ``node`` for more than 8 nodes, where there are too many.
        """
        known = self.check_unit(unit)
        if known.period is not None:
            assert self._dated is not None
            return map(self._on_same_nodes, self._dated.without_each(known.period))
        if known.name == "edge":
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
            yield self._neighbour(self.node_count, present ^ {pair}, self._labels)

    def _node_neighbours(self) -> Iterator[Graph]:
        count, labels = self.node_count, self._labels
        present = {(int(u), int(v)) for u, v in self.edges()}
        for gone in range(count):
            kept = {(u - (u > gone), v - (v > gone)) for u, v in present if gone not in (u, v)}
            left = None if labels is None else np.delete(labels, gone)
            yield self._neighbour(count - 1, kept, left)
        more = None
        if labels is not None:
            more = np.empty(count + 1, dtype=object)
            more[:] = [*labels.tolist(), (_NEWCOMER,)]
        for subset in range(2**count):
            joined = {(u, count) for u in range(count) if subset >> u & 1}
            yield self._neighbour(count + 1, present | joined, more)

    def _neighbour(
        self, count: int, pairs: set[tuple[int, int]], labels: npt.NDArray[Any] | None
    ) -> Graph:
        graph = self._from_pairs(count, pairs)
        graph._labels, graph._declared = labels, self._declared
        return graph


_NEWCOMER = "somebody new"


def _label_array(labels: Sequence[Any]) -> npt.NDArray[Any]:
    values = [canonical(label) for label in labels]
    if len(set(values)) != len(values):
        raise InputError("labels must be distinct; at least one occurs twice.")
    names = np.empty(len(values), dtype=object)
    names[:] = values
    return names


def _read_pairs(edges: Any, nodes: Any) -> FactorisedPairs:
    """Return pairs that are given as an object; what its library says of a record is kept back."""
    with reading("edges", _NOT_PAIRS):
        return factorise(edges, nodes)
