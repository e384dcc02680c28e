"""How many links nodes have: of each node, and in all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.labels import Axis
from tulle.core.public import public
from tulle.core.query import Shape
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import GraphQuery


@dataclass(frozen=True)
class Degrees(GraphQuery):
    """The degree sequence, largest first, without saying whose degree it is."""

    name: ClassVar[str] = "degrees"
    words: ClassVar[str] = (
        "How many links do the nodes have, the largest number first, without saying whose?"
    )
    quantity: ClassVar[str] = "links"
    shape: ClassVar[Shape] = "vector"

    def truth(self, dataset: Graph) -> npt.NDArray[np.int64]:
        from tulle.graphs.kernels.counts import degrees as count

        return np.sort(count(dataset))[::-1].copy()

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        return (Axis("rank", first=1),)

    def edge_sensitivity(self, nodes: int) -> int:
        """Return 2: two degrees move by one, and sorting never moves vectors apart in L1."""
        return 2

    def edge_squared(self, nodes: int) -> int:
        """Return 2: two degrees move by one, and sorting never moves vectors apart in L2."""
        return 2

    def maximum(self, nodes: int) -> int:
        return max(nodes - 1, 0)


@dataclass(frozen=True)
class DegreeDistribution(GraphQuery):
    """How many nodes have degree 0, 1, ... n - 1, on the public grid of all degrees."""

    name: ClassVar[str] = "degree_distribution"
    words: ClassVar[str] = "How many nodes have no link, one link, two links, and so on?"
    quantity: ClassVar[str] = "nodes"
    shape: ClassVar[Shape] = "vector"

    def truth(self, dataset: Graph) -> npt.NDArray[np.int64]:
        from tulle.graphs.kernels.counts import degrees as count

        return np.bincount(count(dataset), minlength=dataset.node_count).astype(np.int64)

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        return (Axis("degree"),)

    def edge_sensitivity(self, nodes: int) -> int:
        """Return 4: each end of an edge leaves one place of the grid and enters another."""
        return 4

    def edge_squared(self, nodes: int) -> int:
        """Return 8: at most, two nodes leave one place together and enter one together."""
        return 8

    def maximum(self, nodes: int) -> int:
        return nodes


@dataclass(frozen=True)
class MaxDegree(GraphQuery):
    """The largest number of links of any node."""

    name: ClassVar[str] = "max_degree"
    words: ClassVar[str] = "How many links has the node with the most?"
    quantity: ClassVar[str] = "links"

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.kernels.counts import degrees as count

        return int(count(dataset).max(initial=0))

    def edge_sensitivity(self, nodes: int) -> int:
        """Return 1: an edge moves the degrees of its ends by one, and no other."""
        return 1

    def maximum(self, nodes: int) -> int:
        return max(nodes - 1, 0)


@public("Describe a graph")
@registry.register("query", "graph", "degrees")
def degrees() -> Degrees:
    """Ask for the degree sequence, largest first.

    Example:
        >>> degrees().truth(Graph.from_edges([(0, 1), (1, 2)], nodes=3)).tolist()
        [2, 1, 1]
    """
    return Degrees()


@public("Describe a graph")
@registry.register("query", "graph", "max_degree")
def max_degree() -> MaxDegree:
    """Ask for the largest degree.

    Per edge it gets little noise. Per node the answer is about the degree that a few nodes, as many
    as noise can hide, still exceed, with a lower end for the largest.

    Example:
        >>> max_degree().truth(Graph.from_edges([(0, 1), (1, 2)], nodes=3))
        2
    """
    return MaxDegree()


@public("Describe a graph")
@registry.register("query", "graph", "degree_distribution")
@registry.offered(
    "ask", "degree_distribution", "Degree distribution", "how many have how many links"
)
def degree_distribution() -> DegreeDistribution:
    """Ask how many nodes have each degree.

    Example:
        >>> degree_distribution().truth(Graph.from_edges([(0, 1), (1, 2)], nodes=3)).tolist()
        [0, 2, 1]
    """
    return DegreeDistribution()
