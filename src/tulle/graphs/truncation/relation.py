"""The copies of a subgraph as a relation: each is there as long as all its participants are.

*Who owns a copy.* Under node privacy a copy needs all its nodes, under edge privacy all its edges.
When a node (an edge) leaves, exactly the copies that need it fall, and nothing else changes: the
relation of the smaller graph is the larger one's without that participant. This is what the
mechanisms on relations rest on; the tests check it on all small graphs.

*Memory.* One entry per participant of each copy. The number of copies is private and is not
limited; the compact form for stars and groups of triangles is in
:mod:`tulle.graphs.truncation.bundles`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tulle.core.arrays import Array
from tulle.core.dataset import Dataset
from tulle.core.errors import QueryError, UnitError
from tulle.core.mechanism import Parameters, Prediction, Terms
from tulle.core.query import Query
from tulle.core.unit import Unit
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import KTriangles, Stars, SubgraphCount
from tulle.graphs.queries.subgraphs import PatternQuery
from tulle.relations.data import Relation
from tulle.relations.truncation.mechanism import TruncationMechanism
from tulle.relations.truncation.totals import Truncation


class OnCopies(TruncationMechanism):
    """A mechanism on the relation whose tuples are the copies of a subgraph."""

    kind: ClassVar[str] = "graph"

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        """Predict on a stand-in; not for patterns at large, of which it may have millions."""
        if isinstance(terms.query, PatternQuery):
            return Prediction(None, None)
        return super().predict(terms, settings, like)

    def relation(self, terms: Terms, dataset: Dataset) -> Relation:
        assert isinstance(dataset, Graph)
        return relation_of(terms.query, dataset, terms.unit)

    def parts(self, terms: Terms, dataset: Dataset) -> list[tuple[int, Truncation]]:
        """Return the copies' truncation; for stars and k-triangles per node, the compact one."""
        if terms.unit.name == "node" and has_bundles(terms.query):
            from tulle.graphs.truncation.bundle_packing import BundleTruncation

            assert isinstance(dataset, Graph)
            return [(1, BundleTruncation(terms.query, dataset))]
        return super().parts(terms, dataset)


def relation_of(query: Query, graph: Graph, unit: str | Unit) -> Relation:
    """Return the relation whose total is the answer. Custodian side.

    Under ``node`` the participants are the nodes by number, and copies with the same nodes are
    merged into one tuple whose weight is their number. Under ``edge`` they are the edges in the
    order of ``Graph.edges``, and each copy is a tuple.

    Raises:
        QueryError: when the question does not count copies of a subgraph.

    Example:
        >>> from tulle.graphs.queries.counts import triangles
        >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> relation_of(triangles(), square, "node").total
        2.0
    """
    name = unit if isinstance(unit, str) else unit.base
    if not isinstance(query, SubgraphCount):
        raise _not_counting(query)
    if name == "node":
        copies = query.copies(graph, nodes=True)
        rows, weights = _merged(copies.nodes, graph.node_count, query.one_per_set())
        return _relation(rows, weights, graph.node_count)
    if name == "edge":
        rows = query.copies(graph, nodes=False).edges
        return _relation(rows, np.ones(len(rows)), graph.edge_count)
    raise UnitError(f"A graph's copies belong to nodes or to edges, not to {name}s.")


def has_bundles(query: Query) -> bool:
    """Return whether the question has the compact form: stars and groups of triangles do."""
    return isinstance(query, Stars | KTriangles)


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
