"""Small connected patterns to look for in a graph, with conditions on what the nodes are.

*What is counted.* An occurrence of a pattern is a copy: a set of edges of the graph which, with
their ends, looks like the pattern. Other edges between the same nodes do not matter (copies are
edge-induced, not induced), and a copy counts once however many ways there are to lay the pattern
over it. A square with one diagonal holds one square and two triangles.

With conditions a copy counts when the pattern can be laid over it in at least one way in which the
conditions hold; it still counts once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from math import perm
from typing import Any

from tulle.core.errors import QueryError
from tulle.graphs.patterns.conditions import NO_CONDITIONS, Conditions, read_conditions

LARGEST_PATTERN = 5
NAMES = "abcde"

Edge = tuple[int, int]


@dataclass(frozen=True)
class Pattern:
    """A connected graph of 2 to 5 nodes in a form that does not depend on how it was written.

    Nodes are numbered from 0, and called a, b, ... in text. Equal patterns, whatever their nodes
    were called, are equal objects with equal text. Build one with :meth:`read`.

    Example:
        >>> Pattern.read("x-y, y-z, z-x") == Pattern.read([(7, 8), (8, 9), (7, 9)])
        True
        >>> str(Pattern.read("x-y, y-z", where="x.age < 30"))
        'a-b, a-c where b.age < 30'
    """

    size: int
    edges: tuple[Edge, ...]
    conditions: Conditions = NO_CONDITIONS

    @classmethod
    def read(cls, source: Any, where: str | None = None) -> Pattern:
        """Build a pattern from text, from pairs of nodes, or from a small graph.

        Text lists edges: ``"a-b, b-c, c-a"``. A graph is anything with ``edges()``. ``where``
        compares attributes of nodes (``a.age``) and edges (``a-b.weight``) with each other or with
        constants, by = != < <= > >=, joined by ``and`` and ``or`` (``and`` binds first):
        ``"a.dept = b.dept and a.age < 30"``.

        Raises:
            QueryError: when that is not a simple connected graph of 2 to 5 nodes, or when the
                conditions cannot be read.
        """
        if isinstance(source, Pattern):
            if where is None:
                return source
            source = source.edge_text
        names, edges = _numbered(_pairs(source))
        _check(names, edges)
        conditions = NO_CONDITIONS if where is None else read_conditions(where, names, edges)
        return _canonical(len(names), edges, conditions)

    @property
    def edge_text(self) -> str:
        """The edges as text that can be read back."""
        return ", ".join(f"{NAMES[u]}-{NAMES[v]}" for u, v in self.edges)

    @property
    def condition_text(self) -> str | None:
        """The conditions as text that can be read back, or None."""
        return str(self.conditions) if self.conditions else None

    def __str__(self) -> str:
        return self.edge_text + (f" where {self.conditions}" if self.conditions else "")

    def automorphisms(self) -> tuple[tuple[int, ...], ...]:
        """Return all renumberings of the nodes that keep the edges; conditions are left aside."""
        return _automorphisms(self.size, self.edges)

    def most(self, nodes: int) -> int:
        """Return the number of copies in a complete graph, the most on so many nodes.

        Example:
            >>> Pattern.read("a-b, b-c, c-d, d-a").most(4)
            3
        """
        return perm(nodes, self.size) // len(self.automorphisms())

    def most_on_an_edge(self, nodes: int) -> int:
        """Return the most copies that can share one edge.

        Every copy that holds a given edge is one in the complete graph, too; there each of the
        C(n, 2) edges is in equally many copies.

        Example:
            >>> Pattern.read("a-b, b-c, c-a").most_on_an_edge(10)
            8
        """
        if nodes < 2:
            return 0
        return self.most(nodes) * len(self.edges) * 2 // (nodes * (nodes - 1))

    def laid_over(self) -> tuple[Conditions, ...]:
        """Return the conditions as seen through each automorphism, without repetitions."""
        seen = {self.conditions.renumbered(image): None for image in self.automorphisms()}
        return tuple(seen)

    def without_conditions(self) -> Pattern:
        """Return the pattern alone."""
        return _canonical(self.size, self.edges, NO_CONDITIONS)


def path(edges: int) -> Pattern:
    """Return the path with so many edges."""
    return Pattern.read([(step, step + 1) for step in range(edges)])


def cycle(nodes: int) -> Pattern:
    """Return the cycle through so many nodes."""
    return Pattern.read([(step, (step + 1) % nodes) for step in range(nodes)])


def star(leaves: int) -> Pattern:
    """Return the star with so many leaves."""
    return Pattern.read([(0, leaf) for leaf in range(1, leaves + 1)])


def clique(nodes: int) -> Pattern:
    """Return the complete graph."""
    return Pattern.read([(u, v) for v in range(nodes) for u in range(v)])


def triangles_on_an_edge(triangles: int) -> Pattern:
    """Return the pattern of triangles that share one edge."""
    corners = range(2, triangles + 2)
    return Pattern.read([(0, 1)] + [(end, corner) for corner in corners for end in (0, 1)])


def _pairs(source: Any) -> list[tuple[Any, Any]]:
    if isinstance(source, str):
        return [_pair_of_text(part) for part in source.split(",")]
    listed = source.edges() if callable(getattr(source, "edges", None)) else source
    if hasattr(listed, "tolist"):
        listed = listed.tolist()
    try:
        pairs = [tuple(pair) for pair in listed]
        plain = all(len(pair) == 2 and len({*pair}) for pair in pairs)
    except TypeError:
        plain = False
    if not plain:
        raise QueryError(
            "A pattern is text such as 'a-b, b-c, c-a', a list of pairs, or a small graph."
        )
    return pairs


def _pair_of_text(part: str) -> tuple[str, str]:
    found = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*-\s*([A-Za-z_]\w*)\s*", part)
    if found is None:
        raise QueryError(
            f"{part.strip()!r} is not an edge of a pattern. Write edges as a-b with commas between "
            "them, for example 'a-b, b-c, c-a'."
        )
    return found[1], found[2]


def _numbered(pairs: Iterable[tuple[Any, Any]]) -> tuple[dict[Any, int], list[Edge]]:
    names: dict[Any, int] = {}
    edges = []
    for u, v in pairs:
        first, second = (names.setdefault(name, len(names)) for name in (u, v))
        edges.append((min(first, second), max(first, second)))
    return names, edges


def _check(names: dict[Any, int], edges: list[Edge]) -> None:
    if any(u == v for u, v in edges):
        raise QueryError("A pattern has no edge from a node to itself.")
    if len(set(edges)) != len(edges):
        raise QueryError("A pattern names each edge once.")
    if not 2 <= len(names) <= LARGEST_PATTERN:
        raise QueryError(
            f"A pattern has 2 to {LARGEST_PATTERN} nodes; got {len(names)}. For larger stars, "
            "cliques and groups of triangles ask stars(k), cliques(k) and k_triangles(k)."
        )
    reached = {0}
    for _ in names:
        reached |= {end for edge in edges for end in edge if reached & {*edge}}
    if len(reached) < len(names):
        raise QueryError("A pattern is connected: ask for its parts one by one.")


@lru_cache(maxsize=256)
def _canonical_cached(size: int, edges: tuple[Edge, ...], conditions: Conditions) -> Pattern:
    best: tuple[tuple[Edge, ...], Any] | None = None
    chosen = Pattern(size, edges, conditions)
    for image in permutations(range(size)):
        moved = _moved(edges, image)
        if best is not None and moved > best[0]:
            continue
        renamed = conditions.renumbered(image)
        key = (moved, renamed.key())
        if best is None or key < best:
            best, chosen = key, Pattern(size, moved, renamed)
    return chosen


def _canonical(size: int, edges: Iterable[Edge], conditions: Conditions) -> Pattern:
    return _canonical_cached(size, tuple(sorted(edges)), conditions)


@lru_cache(maxsize=256)
def _automorphisms(size: int, edges: tuple[Edge, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(image for image in permutations(range(size)) if _moved(edges, image) == edges)


def _moved(edges: Iterable[Edge], image: tuple[int, ...]) -> tuple[Edge, ...]:
    return tuple(sorted((min(image[u], image[v]), max(image[u], image[v])) for u, v in edges))
