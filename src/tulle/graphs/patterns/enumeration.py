"""Listing all copies of a pattern in a graph. Custodian side: everything here is private.

The number of copies is private, so no limit is set on it: what is listed takes (nodes + edges of
the pattern) times four bytes per copy, and whoever asks needs that memory. Counting takes none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.compiled import in_chunks
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degree_rank
from tulle.graphs.patterns import pattern as patterns
from tulle.graphs.patterns.kernels import (
    count_squares,
    edges_of_arcs,
    list_stars,
    list_triangles,
    match,
    renumber_edges,
)
from tulle.graphs.patterns.pattern import Pattern
from tulle.graphs.patterns.search import Checks, Search, prepare_checks, search_for

Array = npt.NDArray[Any]
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
        order, rank = degree_rank(indptr)
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
