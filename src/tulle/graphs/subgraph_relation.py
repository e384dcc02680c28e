"""The copies of a subgraph as a relation: each is there as long as all its participants are.

*Who owns a copy.* Under node privacy a copy needs all its nodes, under edge privacy all its edges.
When a node (an edge) leaves, exactly the copies that need it fall, and nothing else changes: the
relation of the smaller graph is the larger one's without that participant. This is what the
mechanisms on relations rest on; the tests check it on all small graphs.

*Memory.* One entry per participant of each copy. The number of copies is private and is not
limited; the compact form for stars and groups of triangles is in ``subgraph_bundles``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.errors import QueryError, UnitError
from tulle.core.query import Query
from tulle.core.unit import Unit
from tulle.graphs import patterns
from tulle.graphs.data import Graph
from tulle.graphs.enumeration import Copies, Lister
from tulle.graphs.queries import Cliques, Edges, KTriangles, Stars, Triangles
from tulle.graphs.subgraph_queries import PatternQuery
from tulle.graphs.subgraph_search import search_cliques, search_k_triangles
from tulle.relations.relation import Relation

Array = npt.NDArray[Any]


def counts_subgraphs(query: Query) -> bool:
    """Return whether the question counts copies of something, and so has a relation."""
    return isinstance(query, Edges | Triangles | Stars | KTriangles | Cliques | PatternQuery)


def relation_of(query: Query, graph: Graph, unit: str | Unit) -> Relation:
    """Return the relation whose total is the answer. Custodian side.

    Under ``node`` the participants are the nodes by number, and copies with the same nodes are
    merged into one tuple whose weight is their number. Under ``edge`` they are the edges in the
    order of ``Graph.edges``, and each copy is a tuple.

    Raises:
        QueryError: when the question does not count copies of a subgraph.

    Example:
        >>> from tulle.graphs.queries import triangles
        >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> relation_of(triangles(), square, "node").total
        2.0
    """
    name = graph.check_unit(unit).name
    if name == "node":
        copies = _copies(query, graph, nodes=True)
        rows, weights = _merged(copies.nodes, graph.node_count, _one_per_set(query))
        return _relation(rows, weights, graph.node_count)
    if name == "edge":
        rows = _copies(query, graph, nodes=False).edges
        return _relation(rows, np.ones(len(rows)), graph.edge_count)
    raise UnitError(f"A graph's copies belong to nodes or to edges, not to {name}s.")


def _copies(query: Query, graph: Graph, *, nodes: bool) -> Copies:
    if isinstance(query, Edges):
        pairs = graph.edges().astype(np.int32) if nodes else np.empty((0, 2), np.int32)
        return Copies(pairs, np.arange(graph.edge_count, dtype=np.int32).reshape(-1, 1))
    lister = Lister(graph)
    if isinstance(query, Triangles):
        return lister.fill(lister.triangles(), 3 * nodes, 3 * (not nodes))
    if isinstance(query, Stars):
        return lister.fill(lister.stars(query.k), (query.k + 1) * nodes, query.k * (not nodes))
    if isinstance(query, Cliques):
        k = query.k
        kernel = lister.search(search_cliques(k))
        return lister.fill(kernel, k * nodes, k * (k - 1) // 2 * (not nodes))
    if isinstance(query, KTriangles):
        kernel = lister.search(search_k_triangles(query.k))
        return lister.fill(kernel, (query.k + 2) * nodes, (2 * query.k + 1) * (not nodes))
    if isinstance(query, PatternQuery):
        pattern = query.shape_of()
        kernel = lister.kernel(pattern)
        return lister.fill(kernel, pattern.size * nodes, len(pattern.edges) * (not nodes))
    raise _not_counting(query)


def _one_per_set(query: Query) -> bool:
    """Return whether two copies never have the same nodes."""
    if isinstance(query, PatternQuery):
        pattern = query.shape_of()
        return pattern.without_conditions() == patterns.clique(pattern.size)
    return isinstance(query, Edges | Triangles | Cliques)


def _merged(rows: Array, nodes: int, distinct: bool) -> tuple[Array, Array]:
    """Return the different sets of nodes, in a fixed order, and how many copies have each."""
    if distinct or not len(rows):
        return rows, np.ones(len(rows))
    rows.sort(axis=1)
    size = rows.shape[1]
    if nodes**size < 2**63:
        keys = rows[:, 0].astype(np.int64)
        for column in range(1, size):
            keys *= nodes
            keys += rows[:, column]
        keys.sort()
        fresh = np.concatenate([[True], keys[1:] != keys[:-1]])
        starts = np.flatnonzero(fresh)
        keys = keys[starts]
        kept = np.empty((len(keys), size), np.int32)
        for column in range(size - 1, -1, -1):
            keys, kept[:, column] = np.divmod(keys, nodes)
    else:
        ordered = rows[np.lexsort(rows.T[::-1])]
        fresh = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
        starts = np.flatnonzero(fresh)
        kept = ordered[starts]
    return kept, np.diff(np.append(starts, len(rows))).astype(np.float64)


def _relation(rows: Array, weights: Array, count: int) -> Relation:
    offsets = np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1]
    return Relation(offsets, rows.reshape(-1), weights, count)


def _not_counting(query: Query) -> QueryError:
    return QueryError(
        f"{query} does not count copies of a subgraph. Those that do: edges, triangles, stars, "
        "k_triangles, cliques, paths, cycles, subgraphs."
    )
