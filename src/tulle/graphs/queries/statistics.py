"""Questions about the shape of a graph: clustering, transitivity, assortativity, modularity.

Counts that these are put together from are in :mod:`tulle.graphs.queries.local_counts`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.arrays import Floats
from tulle.core.labels import Axis
from tulle.core.public import public
from tulle.core.query import Expression, Query
from tulle.graphs.data import Graph
from tulle.graphs.facts import node_axis
from tulle.graphs.kernels.counts import count_triangles
from tulle.graphs.kernels.local_counts import closing_weight
from tulle.graphs.queries.counts import Edges, Stars, Triangles
from tulle.graphs.queries.local_counts import (
    BoundedVector,
    Chains,
    DegreeOf,
    TrianglesAt,
    TrianglesPerNode,
    TriplesPerNode,
    checked_node,
    no_such_node,
    place_of,
)
from tulle.graphs.queries.partitions import (
    DegreeSquares,
    EdgesWithin,
    checked_partition,
    listed,
    shown,
    wrong_length,
)
from tulle.graphs.sensitivity import statistics as sensitivity
from tulle.graphs.sensitivity.counts import Profile, remembered

_FIRST_REACH = 1024
"""How far a profile is computed before it is known whether it has reached the global bound."""


@dataclass(frozen=True)
class Statistic(Query):
    """One real number about a graph, with what one edge can do to it at every distance.

    Values are whole multiples of 1/units; which conditions a profile must meet is said in
    :mod:`tulle.graphs.sensitivity.statistics`.
    """

    kind: ClassVar[str] = "graph"
    integral: ClassVar[bool] = False
    bounds: ClassVar[tuple[str, ...]] = ("position", "local_sensitivity")
    ends: ClassVar[tuple[Fraction, Fraction]] = (Fraction(0), Fraction(1))
    """The least and the largest value on any graph."""

    @abstractmethod
    def position(self, graph: Graph, units: int) -> int:
        """Return the true value in multiples of 1/units, rounded down. Custodian side."""

    @abstractmethod
    def local_sensitivity(self, graph: Graph, units: int, length: int) -> Profile:
        """Return I_0 ... I_{length-1}. Custodian side."""

    def truth(self, dataset: Graph) -> float:
        units = 2**50
        return self.position(dataset, units) / units

    def cap(self, units: int) -> int:
        """Return the global bound: the whole range of the statistic."""
        width = (self.ends[1] - self.ends[0]) * units
        return -(-width.numerator // width.denominator)

    def profile(self, graph: Graph, units: int, length: int) -> Profile:
        """Return the local sensitivities with every entry between 1 and the global bound.

        They never fall: once the global bound is reached, it is that for good, and nothing is
        computed.
        """
        largest, reach = self.cap(units), min(length, _FIRST_REACH)
        while True:
            rows = self.local_sensitivity(graph, units, reach)
            rows = [min(max(row, 1), largest) for row in rows]
            if reach >= length or rows[-1] == largest:
                return rows + [largest] * (length - len(rows))
            reach = min(8 * reach, length)

    def limits(self) -> tuple[float, float]:
        return float(self.ends[0]), float(self.ends[1])


@dataclass(frozen=True)
class Transitivity(Statistic):
    """Three times the triangles over the paths of two edges; 0 when there are none."""

    name: ClassVar[str] = "transitivity"
    words: ClassVar[str] = (
        "Of all pairs of links that meet in a node, which share is closed to a triangle?"
    )
    quantity: ClassVar[str] = "share"

    def decomposition(self) -> Expression:
        return _expression(3 * Triangles() / Stars(2))

    def position(self, graph: Graph, units: int) -> int:
        paths = Stars(2).truth(graph)
        return 3 * remembered(graph, count_triangles) * units // paths if paths else 0

    def local_sensitivity(self, graph: Graph, units: int, length: int) -> Profile:
        return sensitivity.transitivity(graph, units, length)


@dataclass(frozen=True)
class AverageClustering(Statistic):
    """The mean of all nodes' clustering coefficients; that of a node of degree 0 or 1 is 0."""

    name: ClassVar[str] = "average_clustering"
    words: ClassVar[str] = (
        "On average over the nodes, which share of a node's pairs of neighbours is linked?"
    )
    quantity: ClassVar[str] = "share"

    def position(self, graph: Graph, units: int) -> int:
        return sensitivity.clustering_mean(graph, units)

    def local_sensitivity(self, graph: Graph, units: int, length: int) -> Profile:
        return sensitivity.average_clustering(graph, units, length)


@dataclass(frozen=True)
class NodeClustering(Statistic):
    """Which share of one node's pairs of neighbours are adjacent."""

    node: int | str
    name: ClassVar[str] = "clustering"
    words: ClassVar[str] = "Which share of the pairs of neighbours of node {node} is linked?"
    quantity: ClassVar[str] = "share"
    # A stand-in has a node of that name, but not one like it: what it says about the two routes
    # is chance. Of fifteen nodes of five networks the parts were closer for three.
    parts_when_named: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "node", checked_node(self.node))

    def objection(self, dataset: Any) -> str | None:
        return no_such_node(dataset, self.node)

    def decomposition(self) -> Expression:
        degree = DegreeOf(self.node)
        return _expression(2 * TrianglesAt(self.node) / (degree * degree - degree))

    def position(self, graph: Graph, units: int) -> int:
        degree = DegreeOf(self.node).truth(graph) if graph.node_count else 0
        triangles = TrianglesAt(self.node).truth(graph) if degree > 1 else 0
        return 2 * triangles * units // max(degree * (degree - 1), 1)

    def local_sensitivity(self, graph: Graph, units: int, length: int) -> Profile:
        return sensitivity.node_clustering(graph, place_of(graph, self.node), units, length)


@dataclass(frozen=True)
class Assortativity(Statistic):
    """The correlation of the degrees at the two ends of an edge; 0 when all are equal.

    With m edges, S1 = Σ d_i·d_j, S2 = Σ (d_i + d_j)/2 and S3 = Σ (d_i² + d_j²)/2 over edges it is
    (m·S1 - S2²) / (m·S3 - S2²); the sums are counts of chains, stars and edges.
    """

    name: ClassVar[str] = "assortativity"
    words: ClassVar[str] = (
        "Do nodes with many links tend to be linked to each other? (1: always, -1: never)"
    )
    quantity: ClassVar[str] = "correlation"
    ends: ClassVar[tuple[Fraction, Fraction]] = (Fraction(-1), Fraction(1))

    def decomposition(self) -> Expression:
        m, pairs, triples = Edges(), Stars(2), Stars(3)
        ends = pairs + m
        products = Chains() + 2 * pairs + m
        squares = 3 * triples + 3 * pairs + m
        return _expression((m * products - ends * ends) / (m * squares - ends * ends))

    def position(self, graph: Graph, units: int) -> int:
        top, bottom = sensitivity.DegreeMoments(graph).correlation()
        return top * units // bottom if bottom else 0

    def local_sensitivity(self, graph: Graph, units: int, length: int) -> Profile:
        return sensitivity.assortativity(graph, units, length)


@dataclass(frozen=True)
class Modularity(Statistic):
    """How many more edges fall inside the parts of a partition than its degrees suggest.

    Σ_c L_c/m - (D_c/2m)², with L_c edges inside part c and D_c its degrees together; 0 without
    edges. The partition is public: one label for each node, in their order.
    """

    partition: tuple[int, ...]
    name: ClassVar[str] = "modularity"
    words: ClassVar[str] = (
        "How many more links stay inside the parts of the public partition than by chance, as "
        "a share?"
    )
    quantity: ClassVar[str] = "share"
    ends: ClassVar[tuple[Fraction, Fraction]] = (Fraction(-1, 2), Fraction(1))

    def __post_init__(self) -> None:
        object.__setattr__(self, "partition", checked_partition(self.partition))

    def decomposition(self) -> Expression:
        m = Edges()
        squares = DegreeSquares(self.partition) / (4 * m * m)
        return _expression(EdgesWithin(self.partition) / m - squares)

    def position(self, graph: Graph, units: int) -> int:
        count = graph.edge_count
        inside = EdgesWithin(self.partition).truth(graph)
        squares = DegreeSquares(self.partition).truth(graph)
        return (4 * count * inside - squares) * units // (4 * count * count) if count else 0

    def local_sensitivity(self, graph: Graph, units: int, length: int) -> Profile:
        return sensitivity.modularity(graph, units, length)

    def objection(self, dataset: Any) -> str | None:
        return wrong_length(dataset, self.partition)

    def __str__(self) -> str:
        return f"{self.name}({shown(self.partition)})"


@dataclass(frozen=True)
class Clustering(BoundedVector):
    """Every node's clustering coefficient, in the order of the nodes."""

    name: ClassVar[str] = "clustering"
    words: ClassVar[str] = "Which share of each node's pairs of neighbours is linked?"
    quantity: ClassVar[str] = "share"
    integral: ClassVar[bool] = False

    def truth(self, dataset: Graph) -> Floats:
        triples = TriplesPerNode().truth(dataset)
        return TrianglesPerNode().truth(dataset) / np.maximum(triples, 1)

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        return node_axis(public)

    def limits(self) -> tuple[float, float]:
        return 0.0, 1.0

    def maximum(self, nodes: int) -> int:
        return 1

    def spread(self, graph: Graph) -> int:
        """Return the closing weight over 4/3, rounded up."""
        return -(-remembered(graph, closing_weight) // sensitivity.CLOSING_GROWTH)

    def largest_spread(self, nodes: int) -> int:
        # All coefficients together move by at most n - 2 + 4/(n - 1) <= n; in steps of 4/3.
        return -(-3 * max(nodes, 3) // 4)

    def edge_sensitivity_at(self, spread: int, nodes: int, units: int) -> int:
        # Each entry is rounded down once: up to one unit more for each of n entries.
        return -(-4 * spread * units // 3) + nodes

    def in_units(self, graph: Graph, units: int) -> npt.NDArray[np.int64]:
        triples = np.maximum(TriplesPerNode().truth(graph), 1)
        # Exact: a quotient of at most one is taken in two halves of at most 20 bits each.
        first = min(units, 2**20)
        whole, rest = np.divmod(TrianglesPerNode().truth(graph) * first, triples)
        shares: npt.NDArray[np.int64] = (
            whole * (units // first) + rest * (units // first) // triples
        )
        return shares


def _expression(query: Query) -> Expression:
    assert isinstance(query, Expression)
    return query


@public("Describe a graph")
@registry.register("query", "graph", "clustering")
def clustering(node: int | str | None = None) -> Clustering | NodeClustering:
    """Ask for every node's clustering coefficient, or for that of one node.

    Example:
        >>> kite = Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)])
        >>> clustering().truth(kite).round(2).tolist(), round(clustering(2).truth(kite), 2)
        ([1.0, 1.0, 0.33, 0.0], 0.33)
    """
    return Clustering() if node is None else NodeClustering(node)


@public("Describe a graph")
@registry.register("query", "graph", "average_clustering")
@registry.offered(
    "ask", "average_clustering", "Clustering", "how often contacts are linked, averaged over people"
)
def average_clustering() -> AverageClustering:
    """Ask for the mean of all clustering coefficients.

    Example:
        >>> round(average_clustering().truth(Graph.from_edges([(0, 1), (1, 2), (2, 0)])), 6)
        1.0
    """
    return AverageClustering()


@public("Describe a graph")
@registry.register("query", "graph", "transitivity")
@registry.offered("ask", "transitivity", "Transitivity", "how often two contacts of one are linked")
def transitivity() -> Transitivity:
    """Ask which share of the paths of two edges is closed to a triangle.

    Example:
        >>> round(transitivity().truth(Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)])), 6)
        0.6
    """
    return Transitivity()


@public("Describe a graph")
@registry.register("query", "graph", "assortativity")
@registry.offered("ask", "assortativity", "Assortativity", "do the busy link with the busy?")
def assortativity() -> Assortativity:
    """Ask how strongly the degrees of neighbours are correlated, from -1 to 1.

    Example:
        >>> assortativity().truth(Graph.from_edges([(0, 1), (0, 2), (0, 3)]))
        -1.0
    """
    return Assortativity()


@public("Describe a graph")
@registry.register("query", "graph", "modularity")
def modularity(partition: Any) -> Modularity:
    """Ask for the modularity of a partition that you declare public: one label for each node.

    Example:
        >>> pair = Graph.from_edges([(0, 1), (2, 3)])
        >>> modularity(["a", "a", "b", "b"]).truth(pair)
        0.5
    """
    return Modularity(tuple(listed(partition)))
