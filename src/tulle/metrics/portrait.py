"""All that a comparison looks at in one graph, computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees, triangles_per_node
from tulle.metrics.betweenness import betweenness
from tulle.metrics.distances import Distances, measure_distances
from tulle.metrics.louvain import louvain, modularity
from tulle.noise import SeededSource, post_processing

SPECTRUM = 50
"""How many of the largest eigenvalues a portrait holds."""


@dataclass(frozen=True)
class Portrait:
    """What one graph looks like. Of a sealed graph it is as private as the graph.

    Example:
        >>> round(Portrait.of(Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)])).transitivity, 6)
        0.6
    """

    nodes: int
    edges: int
    degree: Wholes
    triangles_of: Wholes
    """How many triangles each node is in."""
    distances: Distances
    communities: Wholes
    modularity: float
    centrality: Floats
    """Eigenvector centrality of each node, of length one all together."""
    spectrum: Floats
    """The largest eigenvalues, the largest first."""
    betweenness: Floats
    assortativity: float

    @classmethod
    def of(cls, graph: Graph, *, seed: int = 1) -> Portrait:
        """Look at a graph. The seed is for the order of Louvain's visits and for samples."""
        communities = louvain(graph, seed=seed)
        values, vector = leading_eigenpair(graph)
        return cls(
            graph.node_count,
            graph.edge_count,
            degrees(graph),
            triangles_per_node(graph),
            measure_distances(graph, seed=seed),
            communities,
            modularity(graph, communities),
            vector,
            values,
            betweenness(graph, seed=seed),
            assortativity(graph),
        )

    def __repr__(self) -> str:
        return "<Portrait: sealed>"

    @property
    def triangles(self) -> int:
        """How many triangles there are."""
        return int(self.triangles_of.sum()) // 3

    @property
    def density(self) -> float:
        """The share of pairs that are joined."""
        pairs = self.nodes * (self.nodes - 1) // 2
        return self.edges / pairs if pairs else 0.0

    @property
    def mean_degree(self) -> float:
        """The mean degree."""
        return 2 * self.edges / self.nodes if self.nodes else 0.0

    @property
    def degree_variance(self) -> float:
        """The variance of the degrees, over all nodes."""
        return float(np.var(self.degree)) if self.nodes else 0.0

    @property
    def transitivity(self) -> float:
        """Closed among all paths of two edges; 0 when there is none."""
        paths = int((self.degree * (self.degree - 1) // 2).sum())
        return int(self.triangles_of.sum()) / paths if paths else 0.0

    @property
    def clustering(self) -> Floats:
        """Each node's share of joined pairs of neighbours; 0 with fewer than two neighbours."""
        pairs = self.degree * (self.degree - 1) // 2
        share: Floats = self.triangles_of / np.maximum(pairs, 1)
        return share

    @property
    def average_clustering(self) -> float:
        """The mean of the clustering coefficients over all nodes."""
        return float(self.clustering.mean()) if self.nodes else 0.0

    @property
    def largest_eigenvalue(self) -> float:
        """The largest eigenvalue of the adjacency matrix."""
        return float(self.spectrum[0]) if len(self.spectrum) else 0.0


def assortativity(graph: Graph) -> float:
    """Return the correlation of the degrees at both ends of an edge; 0 when it is not defined.

    Example:
        >>> round(assortativity(Graph.from_edges([(0, 1), (1, 2), (2, 3)])), 6)
        -0.5
    """
    first, second = degrees(graph)[graph.edges()].T
    one, other = (
        np.concatenate(ends).astype(np.float64) for ends in ((first, second), (second, first))
    )
    if not len(one) or np.ptp(one) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def leading_eigenpair(graph: Graph, count: int = SPECTRUM) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues and the leading eigenvector, of length one, nonnegative."""
    nodes = graph.node_count
    if graph.edge_count == 0:
        return np.zeros(min(nodes, count)), np.full(nodes, 1 / np.sqrt(max(nodes, 1)))
    matrix = graph.to_scipy().astype(np.float64)
    if nodes <= 400:
        values, vectors = np.linalg.eigh(matrix.toarray())
    else:
        from scipy.sparse.linalg import eigsh

        start = post_processing(SeededSource(1)).random(nodes)
        values, vectors = eigsh(matrix, k=min(count, nodes - 1), which="LA", v0=start)
    order = np.argsort(-values)[:count]
    return values[order], np.abs(vectors[:, order[0]])
