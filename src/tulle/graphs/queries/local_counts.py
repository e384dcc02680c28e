"""Counts that statistics are put together from: per node, at one node, along chains."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.arrays import Wholes
from tulle.core.errors import QueryError
from tulle.core.labels import Axis
from tulle.core.public import public
from tulle.core.query import Query, Shape
from tulle.graphs.data import Graph
from tulle.graphs.facts import EdgeFacts, find, node_axis
from tulle.graphs.queries.counts import GraphQuery, ProfiledCount, Triangles
from tulle.graphs.sensitivity import counts as sensitivity
from tulle.graphs.sensitivity.counts import LocalSensitivity, Profile


def find_node(graph: Graph, node: int | str) -> int | None:
    """Return the number of the node with this label, or None. Custodian side."""
    return find(graph._labels, graph.node_count, node)


def place_of(graph: Graph, node: int | str) -> int:
    """Return the number of a node; on a stand-in that lacks it, of a node of middling degree."""
    found = find_node(graph, node)
    if found is not None:
        return found
    if graph.node_count == 0:
        raise QueryError("A graph without nodes has none to ask about; pass another stand-in.")
    order = np.argsort(np.diff(graph.csr()[0]), kind="stable")
    return int(order[len(order) // 2])


def no_such_node(facts: Any, node: int | str) -> str | None:
    """Return why a question about a node cannot be asked, or None.

    Who is in the graph is public under edge privacy; under another unit nothing is said about it.
    """
    if isinstance(facts, EdgeFacts) and facts.find(node) is None:
        return f"The graph has no node {node!r}. Name one of its labels, or a number from 0 on."
    return None


def checked_node(node: Any) -> int | str:
    """Return a node's label, checked."""
    return node if isinstance(node, str) else validate.whole(node=node, at_least=0, at_most=None)


# --- counts that statistics are made of -----------------------------------------------------------


@dataclass(frozen=True)
class BoundedVector(Query):
    """A vector per node whose local sensitivity follows one number that can be released privately.

    An edge moves that number, the spread, by at most one.
    """

    bounds: ClassVar[tuple[str, ...]] = (
        *("spread", "largest_spread", "edge_sensitivity_at", "in_units", "maximum"),
    )

    kind: ClassVar[str] = "graph"
    shape: ClassVar[Shape] = "vector"
    sparse: ClassVar[bool] = False
    """As of counts: whether entries that noise could make become zero."""

    @abstractmethod
    def spread(self, graph: Graph) -> int:
        """Return the number that bounds the local sensitivity. Custodian side."""

    @abstractmethod
    def largest_spread(self, nodes: int) -> int:
        """Return the largest spread that so many nodes allow, at least 1."""

    @abstractmethod
    def edge_sensitivity_at(self, spread: int, nodes: int, units: int) -> int:
        """Return the most that one edge moves :meth:`in_units`, in L1, at this spread."""

    @abstractmethod
    def in_units(self, graph: Graph, units: int) -> Wholes:
        """Return the answer in whole multiples of 1/units, rounded down. Custodian side."""

    @abstractmethod
    def maximum(self, nodes: int) -> int:
        """Return the largest value that an entry of the answer can have on so many nodes."""


@dataclass(frozen=True)
class TrianglesPerNode(BoundedVector, GraphQuery):
    """How many triangles pass through each node, in the order of the nodes."""

    name: ClassVar[str] = "triangles_per_node"
    words: ClassVar[str] = "How many triangles is each node part of?"
    quantity: ClassVar[str] = "triangles"
    shape: ClassVar[Shape] = "vector"
    sparse: ClassVar[bool] = True

    def truth(self, dataset: Graph) -> Wholes:
        from tulle.graphs.kernels.counts import triangles_per_node as count

        return count(dataset)

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        return node_axis(public)

    def edge_sensitivity(self, nodes: int) -> int:
        """Return 3(n - 2): each triangle that an edge closes counts at all three corners."""
        return 3 * max(nodes - 2, 0)

    def maximum(self, nodes: int) -> int:
        return max(nodes - 1, 0) * max(nodes - 2, 0) // 2

    def spread(self, graph: Graph) -> int:
        """Return the largest number of common neighbours of any pair.

        An edge ij with c of them moves two entries by c and c entries by one.
        """
        return sensitivity.triangles(graph, 1).spread

    def largest_spread(self, nodes: int) -> int:
        return max(nodes - 2, 1)

    def edge_sensitivity_at(self, spread: int, nodes: int, units: int) -> int:
        return 3 * spread

    def in_units(self, graph: Graph, units: int) -> Wholes:
        return self.truth(graph)


@dataclass(frozen=True)
class TriplesPerNode(GraphQuery):
    """How many pairs of neighbours each node has, in the order of the nodes."""

    name: ClassVar[str] = "triples_per_node"
    words: ClassVar[str] = "How many pairs of neighbours does each node have?"
    quantity: ClassVar[str] = "pairs of neighbours"
    shape: ClassVar[Shape] = "vector"

    def truth(self, dataset: Graph) -> Wholes:
        degrees = np.diff(dataset.csr()[0])
        triples: Wholes = (degrees * (degrees - 1) // 2).astype(np.int64)
        return triples

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        return node_axis(public)

    def edge_sensitivity(self, nodes: int) -> int:
        """Return 2(n - 2): each end gains a pair with each neighbour that it had."""
        return 2 * max(nodes - 2, 0)

    def maximum(self, nodes: int) -> int:
        return max(nodes - 1, 0) * max(nodes - 2, 0) // 2


@dataclass(frozen=True)
class TrianglesAt(ProfiledCount):
    """How many triangles pass through one node."""

    node: int | str
    name: ClassVar[str] = "triangles_at"
    words: ClassVar[str] = "How many triangles is node {node} part of?"
    quantity: ClassVar[str] = "triangles"

    def __post_init__(self) -> None:
        object.__setattr__(self, "node", checked_node(self.node))

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.kernels.local_counts import common_with

        place = place_of(dataset, self.node)
        common = common_with(dataset, place)
        indptr, indices = dataset.csr()
        return int(common[indices[indptr[place] : indptr[place + 1]]].sum()) // 2

    def edge_sensitivity(self, nodes: int) -> int:
        return max(nodes - 2, 0)

    def maximum(self, nodes: int) -> int:
        return max(nodes - 1, 0) * max(nodes - 2, 0) // 2

    def objection(self, dataset: Any) -> str | None:
        return no_such_node(dataset, self.node)

    def local_sensitivity(self, graph: Graph, length: int) -> LocalSensitivity:
        return sensitivity.triangles_at(graph, place_of(graph, self.node), length)

    def envelope(self, spread: int) -> int:
        return spread

    def fastest_growth(self, spread: int, length: int) -> Profile | None:
        return None

    def largest_spread(self, nodes: int) -> int:
        return max(nodes - 1, 0)

    def law_key(self) -> tuple[str, int]:
        # The envelope of all triangles bounds this one's too.
        return Triangles.name, 0


@dataclass(frozen=True)
class DegreeOf(GraphQuery):
    """How many neighbours one node has."""

    node: int | str
    name: ClassVar[str] = "degree_of"
    words: ClassVar[str] = "How many links does node {node} have?"
    quantity: ClassVar[str] = "links"

    def __post_init__(self) -> None:
        object.__setattr__(self, "node", checked_node(self.node))

    def truth(self, dataset: Graph) -> int:
        place = place_of(dataset, self.node)
        indptr = dataset.csr()[0]
        return int(indptr[place + 1] - indptr[place])

    def edge_sensitivity(self, nodes: int) -> int:
        return 1

    def maximum(self, nodes: int) -> int:
        return max(nodes - 1, 0)

    def objection(self, dataset: Any) -> str | None:
        return no_such_node(dataset, self.node)


@dataclass(frozen=True)
class Chains(ProfiledCount):
    """How many walks of three edges that never turn back, both directions as one.

    These are the paths with three edges, and each triangle three times: the sum over edges ij of
    (d_i - 1)·(d_j - 1).
    """

    name: ClassVar[str] = "chains"
    words: ClassVar[str] = "How many walks over three links are there that never turn back?"
    quantity: ClassVar[str] = "walks"

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.kernels.local_counts import count_chains

        return count_chains(dataset)

    def edge_sensitivity(self, nodes: int) -> int:
        """Return 3(n - 2)²: the pair in the middle, or at either end, of a walk in K_n."""
        return 3 * max(nodes - 2, 0) ** 2

    def maximum(self, nodes: int) -> int:
        return nodes * max(nodes - 1, 0) // 2 * max(nodes - 2, 0) ** 2

    def local_sensitivity(self, graph: Graph, length: int) -> LocalSensitivity:
        return sensitivity.chains(graph, length)

    def envelope(self, spread: int) -> int:
        return 3 * spread * spread + 2 * spread

    def fastest_growth(self, spread: int, length: int) -> Profile | None:
        return None

    def largest_spread(self, nodes: int) -> int:
        return max(nodes - 1, 0)

    def law_key(self) -> tuple[str, int]:
        return self.name, 0


# --- what users call ------------------------------------------------------------------------------


@public("Count in a graph")
@registry.register("query", "graph", "triangles_per_node")
def triangles_per_node() -> TrianglesPerNode:
    """Ask how many triangles pass through each node.

    Example:
        >>> triangles_per_node().truth(Graph.from_edges([(0, 1), (1, 2), (2, 0)])).tolist()
        [1, 1, 1]
    """
    return TrianglesPerNode()


@public("Count in a graph")
@registry.register("query", "graph", "triples_per_node")
def triples_per_node() -> TriplesPerNode:
    """Ask how many pairs of neighbours each node has.

    Example:
        >>> triples_per_node().truth(Graph.from_edges([(0, 1), (0, 2), (0, 3)])).tolist()
        [3, 0, 0, 0]
    """
    return TriplesPerNode()


@public("Count in a graph")
@registry.register("query", "graph", "triangles_at")
def triangles_at(node: int | str) -> TrianglesAt:
    """Ask how many triangles pass through one node.

    Example:
        >>> triangles_at(0).truth(Graph.from_edges([(0, 1), (1, 2), (2, 0)]))
        1
    """
    return TrianglesAt(node)


@public("Count in a graph")
@registry.register("query", "graph", "degree_of")
def degree_of(node: int | str) -> DegreeOf:
    """Ask how many neighbours one node has.

    Example:
        >>> degree_of("ann").truth(Graph.from_edges([("ann", "bob"), ("ann", "cas")]))
        2
    """
    return DegreeOf(node)


@public("Count in a graph")
@registry.register("query", "graph", "chains")
def chains() -> Chains:
    """Ask for the walks of three edges that never turn back: Σ (d_i - 1)·(d_j - 1) over edges.

    Example:
        >>> chains().truth(Graph.from_edges([(0, 1), (1, 2), (2, 3)]))
        1
    """
    return Chains()
