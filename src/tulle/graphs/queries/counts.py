"""Questions that count in a graph, and what all questions about a graph state.

Each class owns its bounds: the largest answer on so many nodes, how much one edge can move it at
most, and for a :class:`ProfiledCount` what the graph at hand says about its sensitivity. They are
abstract, so that a question without them cannot be built. Questions that count any other pattern
are in :mod:`tulle.graphs.queries.subgraphs`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.errors import QueryError
from tulle.core.mechanism import Terms
from tulle.core.public import public
from tulle.core.query import Query
from tulle.core.validate import counted
from tulle.graphs.data import Graph
from tulle.graphs.sensitivity import counts as sensitivity
from tulle.graphs.sensitivity.counts import LocalSensitivity, Profile

if TYPE_CHECKING:
    from tulle.graphs.patterns.enumeration import Copies

LARGEST_K = 100
"""Stars, cliques and sets of triangles that are larger are not counted."""


@dataclass(frozen=True)
class GraphQuery(Query):
    """A question about a graph whose answer one edge moves by a bounded amount."""

    kind: ClassVar[str] = "graph"
    bounds: ClassVar[tuple[str, ...]] = ("edge_sensitivity", "maximum")
    sparse: ClassVar[bool] = False
    """Whether most entries are small beside the noise: those that noise could make become zero."""

    @abstractmethod
    def truth(self, dataset: Graph) -> Any:
        """Return the true answer. Custodian side: this value is not private."""

    @abstractmethod
    def edge_sensitivity(self, nodes: int) -> int:
        """Return the most that one edge can move the answer on any graph, in L1."""

    def edge_squared(self, nodes: int) -> int:
        """Return the most that one edge can move the answer in L2, squared: at most L1 squared."""
        return self.edge_sensitivity(nodes) ** 2

    @abstractmethod
    def maximum(self, nodes: int) -> int:
        """Return the largest value that an entry of the answer can have on so many nodes."""

    def entries(self, nodes: int) -> int:
        """Return how many numbers the answer has: one, or one for each node."""
        return nodes if self.shape == "vector" else 1


class SubgraphCount(GraphQuery):
    """A count of the copies of some subgraph; each copy is there as long as its nodes are.

    Truncation mechanisms answer it, per node and per edge.
    """

    bounds: ClassVar[tuple[str, ...]] = ("copies", "one_per_set")

    @abstractmethod
    def copies(self, graph: Graph, *, nodes: bool) -> Copies:
        """List all copies: the nodes of each, or else the numbers of its edges. Custodian side."""

    @abstractmethod
    def one_per_set(self) -> bool:
        """Say whether two copies never have the same nodes."""


class ProfiledCount(GraphQuery):
    """A count whose local sensitivity is known at every distance.

    Ladders and smooth sensitivity answer it. What the members mean, and which conditions they must
    meet, is said in :mod:`tulle.graphs.sensitivity.counts`.
    """

    bounds: ClassVar[tuple[str, ...]] = (
        *("local_sensitivity", "envelope", "fastest_growth", "largest_spread", "law_key"),
    )

    @abstractmethod
    def local_sensitivity(self, graph: Graph, length: int) -> LocalSensitivity:
        """Return the profile I_0 ... I_{length-1} of a graph, and its spread. Custodian side."""

    @abstractmethod
    def envelope(self, spread: int) -> int:
        """Return a bound on the local sensitivity of every graph with at most this spread.

        At distance t the bound is ``envelope(spread + t)``: it grows at least as fast as any
        profile, which is what error laws rely on.
        """

    @abstractmethod
    def fastest_growth(self, spread: int, length: int) -> Profile | None:
        """Return the profile that starts at nothing and grows fastest, for graphs of this spread.

        None where a profile never starts far below the envelope.
        """

    @abstractmethod
    def largest_spread(self, nodes: int) -> int:
        """Return the largest spread that so many nodes allow."""

    @abstractmethod
    def law_key(self) -> tuple[str, int]:
        """Return the name and the k by which an error law finds this question's envelope."""

    def cap(self, nodes: int) -> int:
        """Return the global bound, but at least 1, so that every rung has room."""
        return max(self.edge_sensitivity(nodes), 1)

    def measure(self, graph: Graph, length: int) -> LocalSensitivity:
        """Return the local sensitivity with every entry between 1 and the global bound."""
        found = self.local_sensitivity(graph, length)
        most = self.cap(graph.node_count)
        return LocalSensitivity([min(max(v, 1), most) for v in found.profile], found.spread)

    def envelope_profiles(self, nodes: int, spread: int, length: int) -> list[Profile]:
        """Return extreme profiles of graphs with at most this spread: the widest comes first.

        For cliques and k-triangles the local sensitivity can be far below what the spread allows
        and then grow fast; the second profile is that one.
        """
        most = self.cap(nodes)
        rows = [[self.envelope(spread + t) for t in range(length)]]
        fastest = self.fastest_growth(spread, length)
        if fastest is not None:
            rows.append(fastest)
        return [[min(max(value, 1), most) for value in row] for row in rows]


@dataclass(frozen=True)
class Edges(SubgraphCount):
    """How many edges."""

    name: ClassVar[str] = "edges"
    words: ClassVar[str] = "How many links does the network have?"
    quantity: ClassVar[str] = "links"

    def truth(self, dataset: Graph) -> int:
        return dataset.edge_count

    def edge_sensitivity(self, nodes: int) -> int:
        return 1

    def maximum(self, nodes: int) -> int:
        return comb(nodes, 2)

    def copies(self, graph: Graph, *, nodes: bool) -> Copies:
        from tulle.graphs.patterns.enumeration import Copies

        pairs = graph.edges().astype(np.int32) if nodes else np.empty((0, 2), np.int32)
        return Copies(pairs, np.arange(graph.edge_count, dtype=np.int32).reshape(-1, 1))

    def one_per_set(self) -> bool:
        return True


@dataclass(frozen=True)
class Triangles(ProfiledCount, SubgraphCount):
    """How many triangles."""

    name: ClassVar[str] = "triangles"
    words: ClassVar[str] = (
        "How many triangles does the network have: three nodes that are all linked?"
    )
    quantity: ClassVar[str] = "triangles"

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.kernels.counts import count_triangles

        return count_triangles(dataset)

    def edge_sensitivity(self, nodes: int) -> int:
        return max(nodes - 2, 0)

    def maximum(self, nodes: int) -> int:
        return comb(nodes, 3)

    def local_sensitivity(self, graph: Graph, length: int) -> LocalSensitivity:
        return sensitivity.triangles(graph, length)

    def envelope(self, spread: int) -> int:
        return spread

    def fastest_growth(self, spread: int, length: int) -> Profile | None:
        return None

    def largest_spread(self, nodes: int) -> int:
        return max(nodes - 1, 0)

    def law_key(self) -> tuple[str, int]:
        return self.name, 0

    def copies(self, graph: Graph, *, nodes: bool) -> Copies:
        from tulle.graphs.patterns.enumeration import Lister

        lister = Lister(graph)
        return lister.fill(lister.triangles(), 3 * nodes, 3 * (not nodes))

    def one_per_set(self) -> bool:
        return True


@dataclass(frozen=True)
class SizedCount(ProfiledCount, SubgraphCount):
    """A count of subgraphs of a size k that is asked for."""

    k: int
    least: ClassVar[int] = 2
    """Smaller ones have another name."""

    def __post_init__(self) -> None:
        size = validate.whole(k=self.k, at_least=self.least, at_most=LARGEST_K)
        object.__setattr__(self, "k", size)

    def law_key(self) -> tuple[str, int]:
        return self.name, self.k


@dataclass(frozen=True)
class Stars(SizedCount):
    """How many stars with k leaves: ways to choose a centre and k of its neighbours."""

    name: ClassVar[str] = "stars"
    words: ClassVar[str] = "How many stars are there: a node with {k} of its neighbours?"
    quantity: ClassVar[str] = "stars"

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.kernels.counts import count_stars

        return count_stars(dataset, self.k)

    def edge_sensitivity(self, nodes: int) -> int:
        return 2 * comb(max(nodes - 2, 0), self.k - 1)

    def maximum(self, nodes: int) -> int:
        return nodes * comb(max(nodes - 1, 0), self.k)

    def local_sensitivity(self, graph: Graph, length: int) -> LocalSensitivity:
        return sensitivity.stars(graph, self.k, length)

    def envelope(self, spread: int) -> int:
        return 2 * comb(spread, self.k - 1)

    def fastest_growth(self, spread: int, length: int) -> Profile | None:
        return None

    def largest_spread(self, nodes: int) -> int:
        return max(nodes - 1, 0)

    def copies(self, graph: Graph, *, nodes: bool) -> Copies:
        from tulle.graphs.patterns.enumeration import Lister

        lister, k = Lister(graph), self.k
        return lister.fill(lister.stars(k), (k + 1) * nodes, k * (not nodes))

    def one_per_set(self) -> bool:
        return False


@dataclass(frozen=True)
class KTriangles(SizedCount):
    """How many k-triangles: ways to choose an edge and k triangles that share it."""

    name: ClassVar[str] = "k_triangles"
    words: ClassVar[str] = "How many sets of {k} triangles share one link?"
    quantity: ClassVar[str] = "sets of triangles"

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.kernels.counts import count_k_triangles

        return count_k_triangles(dataset, self.k)

    def edge_sensitivity(self, nodes: int) -> int:
        others = max(nodes - 2, 0)
        return comb(others, self.k) + 2 * others * comb(max(nodes - 3, 0), self.k - 1)

    def maximum(self, nodes: int) -> int:
        return comb(nodes, 2) * comb(max(nodes - 2, 0), self.k)

    def local_sensitivity(self, graph: Graph, length: int) -> LocalSensitivity:
        return sensitivity.k_triangles(graph, self.k, length)

    def envelope(self, spread: int) -> int:
        return sensitivity.most_k_triangles(self.k, spread)

    def fastest_growth(self, spread: int, length: int) -> Profile | None:
        return sensitivity.rising_k_triangles(self.k, 0, spread, length)

    def largest_spread(self, nodes: int) -> int:
        return max(nodes - 1, 0)

    def copies(self, graph: Graph, *, nodes: bool) -> Copies:
        from tulle.graphs.patterns.enumeration import Lister
        from tulle.graphs.patterns.search import search_k_triangles

        lister, k = Lister(graph), self.k
        kernel = lister.search(search_k_triangles(k))
        return lister.fill(kernel, (k + 2) * nodes, (2 * k + 1) * (not nodes))

    def one_per_set(self) -> bool:
        return False


@dataclass(frozen=True)
class Cliques(SizedCount):
    """How many sets of k nodes that are all adjacent to each other."""

    least: ClassVar[int] = 3
    name: ClassVar[str] = "cliques"
    words: ClassVar[str] = "How many groups of {k} nodes are all linked to each other?"
    quantity: ClassVar[str] = "groups"

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.kernels.cliques import count_cliques

        return count_cliques(dataset, self.k)

    def edge_sensitivity(self, nodes: int) -> int:
        return comb(max(nodes - 2, 0), self.k - 2)

    def maximum(self, nodes: int) -> int:
        return comb(nodes, self.k)

    def local_sensitivity(self, graph: Graph, length: int) -> LocalSensitivity:
        if self.k == 3:
            return sensitivity.triangles(graph, length)
        return sensitivity.cliques(graph, self.k, length)

    def envelope(self, spread: int) -> int:
        return comb(spread, self.k - 2)

    def fastest_growth(self, spread: int, length: int) -> Profile | None:
        # Triangles have an exact profile, which starts at the envelope.
        return None if self.k == 3 else sensitivity.rising_cliques(self.k, 0, spread, length)

    def largest_spread(self, nodes: int) -> int:
        return max(nodes - 1, 0)

    def copies(self, graph: Graph, *, nodes: bool) -> Copies:
        from tulle.graphs.patterns.enumeration import Lister
        from tulle.graphs.patterns.search import search_cliques

        lister, k = Lister(graph), self.k
        kernel = lister.search(search_cliques(k))
        return lister.fill(kernel, k * nodes, k * (k - 1) // 2 * (not nodes))

    def one_per_set(self) -> bool:
        return True


@public("Count in a graph")
@registry.register("query", "graph", "edges")
@registry.offered("ask", "edges", "Links", "how many there are")
def edges() -> Edges:
    """Ask how many edges there are.

    Example:
        >>> str(edges())
        'edges()'
    """
    return Edges()


@public("Count in a graph")
@registry.register("query", "graph", "triangles")
@registry.offered("ask", "triangles", "Triangles", "trios in which everyone is linked")
def triangles() -> Triangles:
    """Ask how many triangles there are.

    Example:
        >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> triangles().truth(square)
        2
    """
    return Triangles()


@public("Count in a graph")
@registry.register("query", "graph", "stars")
@registry.offered("ask", "stars(2)", "Shared contacts", "pairs of people who share a contact")
def stars(k: int) -> Stars:
    """Ask how many stars with ``k`` leaves there are, k from 2 to 100.

    Example:
        >>> stars(2).truth(Graph.from_edges([(0, 1), (1, 2)], nodes=3))
        1
    """
    return Stars(k)


@public("Count in a graph")
@registry.register("query", "graph", "k_triangles")
@registry.offered(
    "ask", "k_triangles(2)", "Pairs with two shared", "linked, with two shared contacts"
)
def k_triangles(k: int) -> KTriangles:
    """Ask how many sets of ``k`` triangles share an edge, k from 2 to 100.

    Example:
        >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> k_triangles(2).truth(square)
        1
    """
    return KTriangles(k)


@public("Count in a graph")
@registry.register("query", "graph", "cliques")
@registry.offered("ask", "cliques(4)", "Cliques of four", "groups of four, all linked")
def cliques(k: int) -> Cliques:
    """Ask how many cliques of ``k`` nodes there are, k from 3 to 100.

    Example:
        >>> cliques(3).truth(Graph.from_edges([(0, 1), (1, 2), (2, 0)], nodes=3))
        1
    """
    return Cliques(k)


def node_count(terms: Terms) -> int:
    """Return the public number of nodes.

    Raises:
        QueryError: when there are fewer than two, since then there is no edge to protect.
    """
    nodes = int(terms.facts["nodes"])
    if nodes < 2:
        raise QueryError(
            f"A graph with {counted(nodes, 'node')} has no pair of nodes, so there "
            f"is no edge to protect and nothing to ask. {terms.query} needs at least two nodes."
        )
    return nodes


def graph_query(terms: Terms) -> GraphQuery:
    """Return the question as one that has a global sensitivity."""
    assert isinstance(terms.query, GraphQuery)
    return terms.query


def profiled_count(terms: Terms) -> ProfiledCount:
    """Return the question as one that has local sensitivities."""
    assert isinstance(terms.query, ProfiledCount)
    return terms.query
