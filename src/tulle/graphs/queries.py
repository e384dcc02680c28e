"""Questions about a graph.

Each class knows its true answer, the largest answer on so many nodes, and how much one edge can
move it at most; what the graph at hand says about its sensitivity is in ``sensitivity.py``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry, validate
from tulle.core.errors import InputError
from tulle.core.query import Query, Shape
from tulle.graphs.data import Graph

if TYPE_CHECKING:
    from tulle.graphs.patterns import Pattern


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


class PatternQuery(GraphQuery):
    """A question that counts the copies of a pattern; see ``patterns`` for what a copy is.

    One edge moves the count by the copies that hold it, of which there are at most as many as in
    the complete graph.
    """

    @abstractmethod
    def shape_of(self) -> Pattern:
        """Return the pattern, with its conditions."""

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.enumeration import count_copies

        return count_copies(dataset, self.shape_of())

    def edge_sensitivity(self, nodes: int) -> int:
        return self.shape_of().most_on_an_edge(nodes)

    def maximum(self, nodes: int) -> int:
        return self.shape_of().most(nodes)


@dataclass(frozen=True)
class Paths(PatternQuery):
    """How many paths with k edges, so k + 1 different nodes; the two directions are one path."""

    k: int
    name: ClassVar[str] = "paths"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", _whole_between(3, 4, k=self.k))

    def shape_of(self) -> Pattern:
        from tulle.graphs.patterns import path

        return path(self.k)

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.kernels import count_triangles

        if self.k == 3:
            # A middle edge and a further neighbour at each end; a triangle has these ends equal.
            first, second = dataset.edges().T
            others = np.diff(dataset.csr()[0]) - 1
            return int((others[first] * others[second]).sum()) - 3 * count_triangles(dataset)
        return super().truth(dataset)


@dataclass(frozen=True)
class Cycles(PatternQuery):
    """How many cycles through k nodes, with or without chords."""

    k: int
    name: ClassVar[str] = "cycles"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", _whole_between(4, 5, k=self.k))

    def shape_of(self) -> Pattern:
        from tulle.graphs.patterns import cycle

        return cycle(self.k)

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.enumeration import count_four_cycles

        return count_four_cycles(dataset) if self.k == 4 else super().truth(dataset)


@dataclass(frozen=True)
class Subgraphs(PatternQuery):
    """How many copies of a connected pattern of up to 5 nodes, with conditions or without.

    The texts are kept in a form that does not depend on how the pattern was written.
    """

    pattern: str
    where: str | None = None
    name: ClassVar[str] = "subgraphs"

    def __post_init__(self) -> None:
        shape = self.shape_of()
        object.__setattr__(self, "pattern", shape.edge_text)
        object.__setattr__(self, "where", shape.condition_text)

    def shape_of(self) -> Pattern:
        from tulle.graphs.patterns import Pattern

        return Pattern.read(self.pattern, self.where)

    def __str__(self) -> str:
        where = "" if self.where is None else f", where={self.where!r}"
        return f"{self.name}({self.pattern!r}{where})"


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


@registry.register("query", "graph", "paths")
def paths(k: int) -> GraphQuery:
    """Ask how many paths with ``k`` edges there are, k from 1 to 4.

    A path visits k + 1 different nodes, and its two directions are one path. Paths with one edge
    are ``edges()`` and those with two are ``stars(2)``: they become that question.

    Example:
        >>> paths(3).truth(Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4))
        4
    """
    k = _whole_between(1, 4, k=k)
    return Edges() if k == 1 else Stars(2) if k == 2 else Paths(k)


@registry.register("query", "graph", "cycles")
def cycles(k: int) -> GraphQuery:
    """Ask how many cycles through ``k`` nodes there are, k from 3 to 5.

    Chords do not matter. Cycles through three nodes are ``triangles()`` and become that question.

    Example:
        >>> cycles(4).truth(Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4))
        1
    """
    k = _whole_between(3, 5, k=k)
    return Triangles() if k == 3 else Cycles(k)


@registry.register("query", "graph", "subgraphs")
def subgraphs(pattern: Any, where: str | None = None) -> GraphQuery:
    """Ask how many copies of a connected pattern of 2 to 5 nodes there are.

    ``pattern`` is text (``"a-b, b-c, c-a"``), a list of pairs or a small graph. A copy is a set of
    edges that looks like the pattern, whatever other edges its nodes have, and counts once. With
    conditions (``where="a.dept = b.dept and a.age < 30"``, on attributes given to the graph) it
    counts when the pattern can be laid over it so that they hold. Patterns that have a name, such
    as triangles, stars, cliques, paths and cycles, become the question of that name.

    Raises:
        QueryError: when the pattern or the conditions cannot be read.

    Example:
        >>> subgraphs("x-y, y-z, z-x, z-w").truth(
        ...     Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)], nodes=4)
        ... )
        1
        >>> str(subgraphs("x-y, y-z, z-x"))
        'triangles()'
    """
    from tulle.graphs.patterns import Pattern

    shape = Pattern.read(pattern, where)
    return _named(shape) or Subgraphs(shape.edge_text, shape.condition_text)


def _named(shape: Pattern) -> GraphQuery | None:
    """Return the question with a name of its own that counts this pattern."""
    from tulle.graphs import patterns

    size = shape.size
    known: dict[Pattern, GraphQuery] = {
        patterns.clique(2): Edges(),
        patterns.clique(3): Triangles(),
    }
    if size > 2:
        known |= {patterns.star(size - 1): Stars(size - 1)}
    if size > 3:
        known |= {
            patterns.path(size - 1): Paths(size - 1),
            patterns.cycle(size): Cycles(size),
            patterns.clique(size): Cliques(size),
            patterns.triangles_on_an_edge(size - 2): KTriangles(size - 2),
        }
    return known.get(shape)


def _whole_between(low: int, high: int, **named: Any) -> int:
    ((name, value),) = named.items()
    checked = validate.whole(at_least=low, **named)
    if checked > high:
        raise InputError(f"{name} must be at most {high}; got {value!r}.")
    return checked


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


# Registers the questions about the spectrum together with these.
from tulle.graphs import spectra as _spectra  # noqa: E402, F401
