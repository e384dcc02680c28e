"""Questions about a graph.

Each class knows its true answer, the largest answer on so many nodes, and how much one edge can
move it at most; what the graph at hand says about its sensitivity is in ``sensitivity.py``.
Questions that count any other pattern are in ``subgraph_queries.py``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry, validate
from tulle.core.query import Query, Shape
from tulle.graphs.data import Graph


@dataclass(frozen=True)
class GraphQuery(Query):
    """A question about a graph whose answer one edge moves by a bounded amount."""

    kind: ClassVar[str] = "graph"

    @abstractmethod
    def truth(self, dataset: Graph) -> Any:
        """Return the true answer. Custodian side: this value is not private."""

    @abstractmethod
    def edge_sensitivity(self, nodes: int) -> int:
        """Return the most that one edge can move the answer on any graph, in L1."""

    @abstractmethod
    def maximum(self, nodes: int) -> int:
        """Return the largest value that an entry of the answer can have on so many nodes."""

    def law_key(self) -> tuple[str, int]:
        """Return the name and the k by which an error law finds this question's envelope."""
        return self.name, int(getattr(self, "k", 0))


@dataclass(frozen=True)
class Edges(GraphQuery):
    """How many edges."""

    name: ClassVar[str] = "edges"

    def truth(self, dataset: Graph) -> int:
        return dataset.edge_count

    def edge_sensitivity(self, nodes: int) -> int:
        return 1

    def maximum(self, nodes: int) -> int:
        return comb(nodes, 2)


@dataclass(frozen=True)
class Triangles(GraphQuery):
    """How many triangles."""

    name: ClassVar[str] = "triangles"

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.kernels import count_triangles

        return count_triangles(dataset)

    def edge_sensitivity(self, nodes: int) -> int:
        return max(nodes - 2, 0)

    def maximum(self, nodes: int) -> int:
        return comb(nodes, 3)


@dataclass(frozen=True)
class Stars(GraphQuery):
    """How many stars with k leaves: ways to choose a centre and k of its neighbours."""

    k: int
    name: ClassVar[str] = "stars"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", validate.whole(k=self.k, at_least=2))

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.kernels import count_stars

        return count_stars(dataset, self.k)

    def edge_sensitivity(self, nodes: int) -> int:
        return 2 * comb(max(nodes - 2, 0), self.k - 1)

    def maximum(self, nodes: int) -> int:
        return nodes * comb(max(nodes - 1, 0), self.k)


@dataclass(frozen=True)
class KTriangles(GraphQuery):
    """How many k-triangles: ways to choose an edge and k triangles that share it."""

    k: int
    name: ClassVar[str] = "k_triangles"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", validate.whole(k=self.k, at_least=2))

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.kernels import count_k_triangles

        return count_k_triangles(dataset, self.k)

    def edge_sensitivity(self, nodes: int) -> int:
        others = max(nodes - 2, 0)
        return comb(others, self.k) + 2 * others * comb(max(nodes - 3, 0), self.k - 1)

    def maximum(self, nodes: int) -> int:
        return comb(nodes, 2) * comb(max(nodes - 2, 0), self.k)


@dataclass(frozen=True)
class Cliques(GraphQuery):
    """How many sets of k nodes that are all adjacent to each other."""

    k: int
    name: ClassVar[str] = "cliques"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", validate.whole(k=self.k, at_least=3))

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.cliques import count_cliques

        return count_cliques(dataset, self.k)

    def edge_sensitivity(self, nodes: int) -> int:
        return comb(max(nodes - 2, 0), self.k - 2)

    def maximum(self, nodes: int) -> int:
        return comb(nodes, self.k)


@dataclass(frozen=True)
class Degrees(GraphQuery):
    """The degree sequence, largest first, without saying whose degree it is."""

    name: ClassVar[str] = "degrees"
    shape: ClassVar[Shape] = "vector"

    def truth(self, dataset: Graph) -> npt.NDArray[np.int64]:
        from tulle.graphs.kernels import degrees as count

        return np.sort(count(dataset))[::-1].copy()

    def edge_sensitivity(self, nodes: int) -> int:
        """Return 2: two degrees move by one, and sorting never moves vectors apart in L1."""
        return 2

    def maximum(self, nodes: int) -> int:
        return max(nodes - 1, 0)


@dataclass(frozen=True)
class DegreeDistribution(GraphQuery):
    """How many nodes have degree 0, 1, ... n - 1, on the public grid of all degrees."""

    name: ClassVar[str] = "degree_distribution"
    shape: ClassVar[Shape] = "vector"

    def truth(self, dataset: Graph) -> npt.NDArray[np.int64]:
        from tulle.graphs.kernels import degrees as count

        return np.bincount(count(dataset), minlength=dataset.node_count).astype(np.int64)

    def edge_sensitivity(self, nodes: int) -> int:
        """Return 4: each end of an edge leaves one place of the grid and enters another."""
        return 4

    def maximum(self, nodes: int) -> int:
        return nodes


@registry.register("query", "graph", "edges")
def edges() -> Edges:
    """Ask how many edges there are.

    Example:
        >>> str(edges())
        'edges()'
    """
    return Edges()


@registry.register("query", "graph", "triangles")
def triangles() -> Triangles:
    """Ask how many triangles there are.

    Example:
        >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> triangles().truth(square)
        2
    """
    return Triangles()


@registry.register("query", "graph", "stars")
def stars(k: int) -> Stars:
    """Ask how many stars with ``k`` leaves there are, k at least 2.

    Example:
        >>> stars(2).truth(Graph.from_edges([(0, 1), (1, 2)], nodes=3))
        1
    """
    return Stars(k)


@registry.register("query", "graph", "k_triangles")
def k_triangles(k: int) -> KTriangles:
    """Ask how many sets of ``k`` triangles share an edge, k at least 2.

    Example:
        >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> k_triangles(2).truth(square)
        1
    """
    return KTriangles(k)


@registry.register("query", "graph", "cliques")
def cliques(k: int) -> Cliques:
    """Ask how many cliques of ``k`` nodes there are, k at least 3.

    Example:
        >>> cliques(3).truth(Graph.from_edges([(0, 1), (1, 2), (2, 0)], nodes=3))
        1
    """
    return Cliques(k)


@registry.register("query", "graph", "degrees")
def degrees() -> Degrees:
    """Ask for the degree sequence, largest first.

    Example:
        >>> degrees().truth(Graph.from_edges([(0, 1), (1, 2)], nodes=3)).tolist()
        [2, 1, 1]
    """
    return Degrees()


@registry.register("query", "graph", "degree_distribution")
def degree_distribution() -> DegreeDistribution:
    """Ask how many nodes have each degree.

    Example:
        >>> degree_distribution().truth(Graph.from_edges([(0, 1), (1, 2)], nodes=3)).tolist()
        [0, 2, 1]
    """
    return DegreeDistribution()
