"""Questions about the shape of a graph: clustering, transitivity, assortativity, modularity.

Counts that these are put together from are in ``statistics_counts``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.query import Expression, Query, Shape
from tulle.graphs.data import Graph
from tulle.graphs.queries import Edges, Stars, Triangles
from tulle.graphs.statistics_counts import (
    Chains,
    DegreeOf,
    DegreeSquares,
    EdgesWithin,
    TrianglesAt,
    TrianglesPerNode,
    TriplesPerNode,
    checked_node,
    checked_partition,
    listed,
    no_such_node,
    shown,
    wrong_length,
)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Statistic(Query):
    """One real number about a graph; what one edge can do to it is in ``statistics_profiles``."""

    kind: ClassVar[str] = "graph"
    integral: ClassVar[bool] = False
    ends: ClassVar[tuple[Fraction, Fraction]] = (Fraction(0), Fraction(1))
    """The least and the largest value on any graph."""

    def truth(self, dataset: Graph) -> float:
        from tulle.graphs.statistics_profiles import position

        units = 2**50
        return position(self, dataset, units) / units

    def limits(self) -> tuple[float, float]:
        return float(self.ends[0]), float(self.ends[1])


@dataclass(frozen=True)
class Transitivity(Statistic):
    """Three times the triangles over the paths of two edges; 0 when there are none."""

    name: ClassVar[str] = "transitivity"

    def decomposition(self) -> Expression:
        return _expression(3 * Triangles() / Stars(2))


@dataclass(frozen=True)
class AverageClustering(Statistic):
    """The mean of all nodes' clustering coefficients; that of a node of degree 0 or 1 is 0."""

    name: ClassVar[str] = "average_clustering"


@dataclass(frozen=True)
class NodeClustering(Statistic):
    """Which share of one node's pairs of neighbours are adjacent."""

    node: int | str
    name: ClassVar[str] = "clustering"

    def __post_init__(self) -> None:
        object.__setattr__(self, "node", checked_node(self.node))

    def objection(self, dataset: Any) -> str | None:
        return no_such_node(dataset, self.node)

    def decomposition(self) -> Expression:
        degree = DegreeOf(self.node)
        return _expression(2 * TrianglesAt(self.node) / (degree * degree - degree))


@dataclass(frozen=True)
class Assortativity(Statistic):
    """The correlation of the degrees at the two ends of an edge; 0 when all are equal.

    With m edges, S1 = Σ d_i·d_j, S2 = Σ (d_i + d_j)/2 and S3 = Σ (d_i² + d_j²)/2 over edges it is
    (m·S1 - S2²) / (m·S3 - S2²); the sums are counts of chains, stars and edges.
    """

    name: ClassVar[str] = "assortativity"
    ends: ClassVar[tuple[Fraction, Fraction]] = (Fraction(-1), Fraction(1))

    def decomposition(self) -> Expression:
        m, pairs, triples = Edges(), Stars(2), Stars(3)
        ends = pairs + m
        products = Chains() + 2 * pairs + m
        squares = 3 * triples + 3 * pairs + m
        return _expression((m * products - ends * ends) / (m * squares - ends * ends))


@dataclass(frozen=True)
class Modularity(Statistic):
    """How many more edges fall inside the parts of a partition than its degrees suggest.

    Σ_c L_c/m - (D_c/2m)², with L_c edges inside part c and D_c its degrees together; 0 without
    edges. The partition is public: one label for each node, in their order.
    """

    partition: tuple[int, ...]
    name: ClassVar[str] = "modularity"
    ends: ClassVar[tuple[Fraction, Fraction]] = (Fraction(-1, 2), Fraction(1))

    def __post_init__(self) -> None:
        object.__setattr__(self, "partition", checked_partition(self.partition))

    def decomposition(self) -> Expression:
        m = Edges()
        squares = DegreeSquares(self.partition) / (4 * m * m)
        return _expression(EdgesWithin(self.partition) / m - squares)

    def objection(self, dataset: Any) -> str | None:
        return wrong_length(dataset, self.partition)

    def __str__(self) -> str:
        return f"{self.name}({shown(self.partition)})"


@dataclass(frozen=True)
class Clustering(Query):
    """Every node's clustering coefficient, in the order of the nodes."""

    name: ClassVar[str] = "clustering"
    kind: ClassVar[str] = "graph"
    shape: ClassVar[Shape] = "vector"
    integral: ClassVar[bool] = False

    def truth(self, dataset: Graph) -> Floats:
        triples = TriplesPerNode().truth(dataset)
        return TrianglesPerNode().truth(dataset) / np.maximum(triples, 1)

    def limits(self) -> tuple[float, float]:
        return 0.0, 1.0


def _expression(query: Query) -> Expression:
    assert isinstance(query, Expression)
    return query


@registry.register("query", "graph", "clustering")
def clustering(node: int | str | None = None) -> Clustering | NodeClustering:
    """Ask for every node's clustering coefficient, or for that of one node.

    Example:
        >>> kite = Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)])
        >>> clustering().truth(kite).round(2).tolist(), round(clustering(2).truth(kite), 2)
        ([1.0, 1.0, 0.33, 0.0], 0.33)
    """
    return Clustering() if node is None else NodeClustering(node)


@registry.register("query", "graph", "average_clustering")
def average_clustering() -> AverageClustering:
    """Ask for the mean of all clustering coefficients.

    Example:
        >>> round(average_clustering().truth(Graph.from_edges([(0, 1), (1, 2), (2, 0)])), 6)
        1.0
    """
    return AverageClustering()


@registry.register("query", "graph", "transitivity")
def transitivity() -> Transitivity:
    """Ask which share of the paths of two edges is closed to a triangle.

    Example:
        >>> round(transitivity().truth(Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)])), 6)
        0.6
    """
    return Transitivity()


@registry.register("query", "graph", "assortativity")
def assortativity() -> Assortativity:
    """Ask how strongly the degrees of neighbours are correlated, from -1 to 1.

    Example:
        >>> assortativity().truth(Graph.from_edges([(0, 1), (0, 2), (0, 3)]))
        -1.0
    """
    return Assortativity()


@registry.register("query", "graph", "modularity")
def modularity(partition: Any) -> Modularity:
    """Ask for the modularity of a partition that you declare public: one label for each node.

    Example:
        >>> pair = Graph.from_edges([(0, 1), (2, 3)])
        >>> modularity(["a", "a", "b", "b"]).truth(pair)
        0.5
    """
    return Modularity(tuple(listed(partition)))
