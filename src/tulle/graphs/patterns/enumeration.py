"""Listing all copies of a pattern in a graph. Custodian side: everything here is private.

The number of copies is private, so no limit is set on it: what is listed takes (nodes + edges of
the pattern) times four bytes per copy, and whoever asks needs that memory. Counting takes none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Array
from tulle.core.compiled import compiled, in_chunks
from tulle.graphs.data import Graph
from tulle.graphs.patterns import pattern as patterns
from tulle.graphs.patterns.pattern import Pattern
from tulle.graphs.patterns.search import Checks, Search, match, prepare_checks, search_for

Kernel = Callable[[int, int, int, Array, Array], int]


@dataclass(frozen=True, eq=False)
class Copies:
    """Copies of a pattern: row t of ``nodes`` holds the nodes of copy t, of ``edges`` its edges.

    Columns go with the pattern's nodes and edges; edges are numbered as in ``Graph.edges``. An
    array that was not asked for has no rows.
    """

    nodes: npt.NDArray[np.int32]
    edges: npt.NDArray[np.int32]

    def __repr__(self) -> str:
        return "Copies(...)"


class Lister:
    """A graph made ready for listing, once for any number of patterns."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        indptr, indices = graph.csr()
        order, rank = graph.by_degree()
        self.order = order.astype(np.int32)
        self.offsets, self.neighbours, self.edge_of = renumber_edges(
            indptr, indices, edges_of_arcs(indptr, indices), order, rank
        )

    def triangles(self) -> Kernel:
        return lambda chunk, chunks, start, nodes, edges: list_triangles(
            self.offsets, self.neighbours, self.edge_of, self.order, chunk, chunks, start, nodes,
            edges,
        )  # fmt: skip

    def stars(self, leaves: int) -> Kernel:
        return lambda chunk, chunks, start, nodes, edges: list_stars(
            self.offsets, self.neighbours, self.edge_of, self.order, leaves, chunk, chunks, start,
            nodes, edges,
        )  # fmt: skip

    def search(self, search: Search, checks: Checks | None = None) -> Kernel:
        asked = checks or Checks()
        return lambda chunk, chunks, start, nodes, edges: match(
            self.offsets, self.neighbours, self.edge_of, self.order, search.anchors, search.bounds,
            search.columns, asked.rows, asked.node_codes, asked.edge_codes, asked.alternatives,
            chunk, chunks, start, nodes, edges,
        )  # fmt: skip

    def kernel(self, pattern: Pattern) -> Kernel:
        """Return the fastest way to list this pattern."""
        if not pattern.conditions:
            if pattern == patterns.clique(3):
                return self.triangles()
            if pattern.size > 2 and pattern == patterns.star(pattern.size - 1):
                return self.stars(pattern.size - 1)
        search = search_for(pattern)
        return self.search(search, prepare_checks(pattern, search, self.graph))

    def count(self, kernel: Kernel) -> int:
        nothing = np.empty((0, 0), np.int32)
        work = max(len(self.neighbours) * 20, 1)
        return sum(
            in_chunks(work, lambda chunk, chunks: kernel(chunk, chunks, 0, nothing, nothing))
        )

    def fill(self, kernel: Kernel, nodes: int, edges: int) -> Copies:
        """List copies of so many nodes and edges; 0 leaves that array out."""
        nothing = np.empty((0, 0), np.int32)
        work = max(len(self.neighbours) * 20, 1)
        counts = in_chunks(work, lambda chunk, chunks: kernel(chunk, chunks, 0, nothing, nothing))
        starts = np.concatenate([[0], np.cumsum(counts)])
        copies = Copies(
            np.empty((int(starts[-1]) if nodes else 0, nodes), np.int32),
            np.empty((int(starts[-1]) if edges else 0, edges), np.int32),
        )
        if starts[-1]:
            in_chunks(
                work,
                lambda chunk, chunks: kernel(
                    chunk, chunks, int(starts[chunk]), copies.nodes, copies.edges
                ),
                chunks=len(counts),
            )
        return copies


def list_copies(
    graph: Graph, pattern: Pattern, *, nodes: bool = True, edges: bool = False
) -> Copies:
    """Return every copy of the pattern once, as its nodes, its edges or both.

    Example:
        >>> kite = Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)], nodes=4)
        >>> copies = list_copies(kite, Pattern.read("a-b, b-c, c-a"), edges=True)
        >>> sorted(copies.nodes[0].tolist()), sorted(copies.edges[0].tolist())
        ([0, 1, 2], [0, 1, 2])
    """
    lister = Lister(graph)
    return lister.fill(lister.kernel(pattern), pattern.size * nodes, len(pattern.edges) * edges)


def count_four_cycles(graph: Graph) -> int:
    """Return the number of cycles through four nodes, in time that paths of two edges take.

    Example:
        >>> count_four_cycles(Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)]))
        1
    """
    lister = Lister(graph)
    parts = in_chunks(
        len(lister.neighbours) * 20,
        lambda chunk, chunks: count_squares(lister.offsets, lister.neighbours, chunk, chunks),
    )
    return int(sum(parts))


def count_copies(graph: Graph, pattern: Pattern) -> int:
    """Return the number of copies of the pattern without listing them.

    Example:
        >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> count_copies(square, Pattern.read("a-b, b-c, c-d"))
        6
    """
    lister = Lister(graph)
    return int(lister.count(lister.kernel(pattern)))


# --- kernels ------------------------------------------------------------------------------------


@compiled
def edges_of_arcs(indptr: Array, indices: Array) -> Array:
    """Return the number of the edge of each arc, in the order of ``Graph.edges``."""
    count = len(indptr) - 1
    edge_of = np.empty(len(indices), np.int32)
    cursor = indptr[:count].copy()
    fill = 0
    for node in range(count):
        for place in range(indptr[node], indptr[node + 1]):
            other = indices[place]
            if node < other:
                edge_of[place] = fill
                # Lower ends come in ascending order in every list: a cursor finds the twin arc.
                edge_of[cursor[other]] = fill
                cursor[other] += 1
                fill += 1
    return edge_of


@compiled
def renumber_edges(
    indptr: Array, indices: Array, edge_of: Array, order: Array, rank: Array
) -> tuple[Array, Array, Array]:
    """Return (offsets, sorted neighbours, edge of each arc) of the graph numbered by ``rank``."""
    count = len(indptr) - 1
    offsets = np.zeros(count + 1, np.int64)
    for mine in range(count):
        node = order[mine]
        offsets[mine + 1] = offsets[mine] + indptr[node + 1] - indptr[node]
    neighbours = np.empty(len(indices), np.int32)
    edges = np.empty(len(indices), np.int32)
    fill = offsets[:count].copy()
    for mine in range(count):
        node = order[mine]
        for place in range(indptr[node], indptr[node + 1]):
            other = rank[indices[place]]
            neighbours[fill[other]] = mine
            edges[fill[other]] = edge_of[place]
            fill[other] += 1
    return offsets, neighbours, edges


@compiled
def list_triangles(
    offsets: Array,
    neighbours: Array,
    edge_of: Array,
    order: Array,
    chunk: int,
    chunks: int,
    start: int,
    nodes: Array,
    edges: Array,
) -> int:
    """Count triangles, and write them from row ``start`` on to the arrays that are not empty."""
    count = len(offsets) - 1
    mark = np.full(count, -1, np.int64)
    wants_nodes, wants_edges = len(nodes) > 0, len(edges) > 0
    found = start
    for node in range(chunk, count, chunks):
        first = offsets[node]
        last = first
        # Neighbours of higher degree come first; there are at most sqrt(2 m) of them.
        while last < offsets[node + 1] and neighbours[last] < node:
            mark[neighbours[last]] = last
            last += 1
        for place in range(first, last):
            other = neighbours[place]
            for step in range(offsets[other], offsets[other + 1]):
                third = neighbours[step]
                if third >= other:
                    break
                if mark[third] < 0:
                    continue
                if wants_nodes:
                    nodes[found, 0] = order[node]
                    nodes[found, 1] = order[other]
                    nodes[found, 2] = order[third]
                if wants_edges:
                    edges[found, 0] = edge_of[place]
                    edges[found, 1] = edge_of[mark[third]]
                    edges[found, 2] = edge_of[step]
                found += 1
        for place in range(first, last):
            mark[neighbours[place]] = -1
    return found - start


@compiled
def list_stars(
    offsets: Array,
    neighbours: Array,
    edge_of: Array,
    order: Array,
    leaves: int,
    chunk: int,
    chunks: int,
    start: int,
    nodes: Array,
    edges: Array,
) -> int:
    """Write all stars, centre first, from row ``start`` on to the arrays that are not empty."""
    count = len(offsets) - 1
    wants_nodes, wants_edges = len(nodes) > 0, len(edges) > 0
    chosen = np.empty(leaves, np.int64)
    found = start
    for node in range(chunk, count, chunks):
        first, last = offsets[node], offsets[node + 1]
        if last - first < leaves:
            continue
        for leaf in range(leaves):
            chosen[leaf] = first + leaf
        while True:
            if wants_nodes:
                nodes[found, 0] = order[node]
                for leaf in range(leaves):
                    nodes[found, leaf + 1] = order[neighbours[chosen[leaf]]]
            if wants_edges:
                for leaf in range(leaves):
                    edges[found, leaf] = edge_of[chosen[leaf]]
            found += 1
            # The next choice of places in lexicographic order.
            leaf = leaves - 1
            while leaf >= 0 and chosen[leaf] == last - leaves + leaf:
                leaf -= 1
            if leaf < 0:
                break
            chosen[leaf] += 1
            for later in range(leaf + 1, leaves):
                chosen[later] = chosen[later - 1] + 1
    return found - start


@compiled
def count_squares(offsets: Array, neighbours: Array, chunk: int, chunks: int) -> int:
    """Count cycles through four nodes: the latest one, the one opposite, and two between them."""
    count = len(offsets) - 1
    between = np.zeros(count, np.int64)
    total = 0
    for node in range(chunk, count, chunks):
        for clearing in range(2):
            for place in range(offsets[node], offsets[node + 1]):
                other = neighbours[place]
                if other >= node:
                    break
                for step in range(offsets[other], offsets[other + 1]):
                    opposite = neighbours[step]
                    if opposite >= node:
                        break
                    if clearing:
                        between[opposite] = 0
                    else:
                        # The k-th node between them makes a square with each of the k - 1 before.
                        total += between[opposite]
                        between[opposite] += 1
    return total
