"""Questions that count the copies of a pattern: paths, cycles, and whatever the user draws.

What a copy is, is said in ``patterns.py``; patterns with a question of their own are counted by it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.public import public
from tulle.graphs.data import Graph
from tulle.graphs.facts import GraphFacts
from tulle.graphs.queries.counts import (
    Cliques,
    Edges,
    GraphQuery,
    KTriangles,
    Stars,
    SubgraphCount,
    Triangles,
)

if TYPE_CHECKING:
    from tulle.graphs.patterns.enumeration import Copies
    from tulle.graphs.patterns.pattern import Pattern


class PatternQuery(SubgraphCount):
    """A question that counts the copies of a pattern; see ``patterns`` for what a copy is.

    One edge moves the count by the copies that hold it, of which there are at most as many as in
    the complete graph.
    """

    @abstractmethod
    def shape_of(self) -> Pattern:
        """Return the pattern, with its conditions."""

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.patterns.enumeration import count_copies

        return count_copies(dataset, self.shape_of())

    def copies(self, graph: Graph, *, nodes: bool) -> Copies:
        from tulle.graphs.patterns.enumeration import Lister

        lister, pattern = Lister(graph), self.shape_of()
        kernel = lister.kernel(pattern)
        return lister.fill(kernel, pattern.size * nodes, len(pattern.edges) * (not nodes))

    def one_per_set(self) -> bool:
        from tulle.graphs.patterns.pattern import clique

        pattern = self.shape_of()
        return pattern.without_conditions() == clique(pattern.size)

    def edge_sensitivity(self, nodes: int) -> int:
        return self.shape_of().most_on_an_edge(nodes)

    def maximum(self, nodes: int) -> int:
        return self.shape_of().most(nodes)


@dataclass(frozen=True)
class Paths(PatternQuery):
    """How many paths with k edges, so k + 1 different nodes; the two directions are one path."""

    k: int
    name: ClassVar[str] = "paths"
    words: ClassVar[str] = "How many paths over {k} links are there?"
    quantity: ClassVar[str] = "paths"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", validate.whole(at_least=3, at_most=4, k=self.k))

    def shape_of(self) -> Pattern:
        from tulle.graphs.patterns.pattern import path

        return path(self.k)

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.kernels.counts import count_triangles

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
    words: ClassVar[str] = "How many cycles through {k} nodes are there?"
    quantity: ClassVar[str] = "cycles"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", validate.whole(at_least=4, at_most=5, k=self.k))

    def shape_of(self) -> Pattern:
        from tulle.graphs.patterns.pattern import cycle

        return cycle(self.k)

    def truth(self, dataset: Graph) -> int:
        from tulle.graphs.patterns.enumeration import count_four_cycles

        return count_four_cycles(dataset) if self.k == 4 else super().truth(dataset)


@dataclass(frozen=True)
class Subgraphs(PatternQuery):
    """How many copies of a connected pattern of up to 5 nodes, with conditions or without.

    The texts are kept in a form that does not depend on how the pattern was written.
    """

    pattern: str
    where: str | None = None
    name: ClassVar[str] = "subgraphs"
    quantity: ClassVar[str] = "copies"

    def in_words(self) -> str:
        limited = "" if self.where is None else f", where {self.where}"
        return f"How many copies of the pattern {self.pattern} are there{limited}?"

    def __post_init__(self) -> None:
        shape = self.shape_of()
        object.__setattr__(self, "pattern", shape.edge_text)
        object.__setattr__(self, "where", shape.condition_text)

    def shape_of(self) -> Pattern:
        from tulle.graphs.patterns.pattern import Pattern

        return Pattern.read(self.pattern, self.where)

    def objection(self, dataset: Any) -> str | None:
        """Check the conditions against the public kinds of attributes."""
        if self.where is None or not isinstance(dataset, GraphFacts):
            return None
        from tulle.graphs.patterns.attributes import objection

        return objection(dataset.kinds, self.shape_of().conditions)

    def __str__(self) -> str:
        where = "" if self.where is None else f", where={self.where!r}"
        return f"{self.name}({self.pattern!r}{where})"


@public("Count in a graph")
@registry.register("query", "graph", "paths")
def paths(k: int) -> GraphQuery:
    """Ask how many paths with ``k`` edges there are, k from 1 to 4.

    A path visits k + 1 different nodes, and its two directions are one path. Paths with one edge
    are ``edges()`` and those with two are ``stars(2)``: they become that question.

    Example:
        >>> paths(3).truth(Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4))
        4
    """
    k = validate.whole(at_least=1, at_most=4, k=k)
    return Edges() if k == 1 else Stars(2) if k == 2 else Paths(k)


@public("Count in a graph")
@registry.register("query", "graph", "cycles")
def cycles(k: int) -> GraphQuery:
    """Ask how many cycles through ``k`` nodes there are, k from 3 to 5.

    Chords do not matter. Cycles through three nodes are ``triangles()`` and become that question.

    Example:
        >>> cycles(4).truth(Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4))
        1
    """
    k = validate.whole(at_least=3, at_most=5, k=k)
    return Triangles() if k == 3 else Cycles(k)


@public("Count in a graph")
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
    from tulle.graphs.patterns.pattern import Pattern

    shape = Pattern.read(pattern, where)
    return _named(shape) or Subgraphs(shape.edge_text, shape.condition_text)


def _named(shape: Pattern) -> GraphQuery | None:
    """Return the question with a name of its own that counts this pattern."""
    from tulle.graphs.patterns import pattern as patterns

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
