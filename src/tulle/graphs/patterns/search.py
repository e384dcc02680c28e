"""How a pattern is searched for: in which order its nodes are placed, and what is checked when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.graphs.data import Graph
from tulle.graphs.patterns.conditions import Attribute
from tulle.graphs.patterns.pattern import Edge, Pattern

Array = npt.NDArray[Any]

_SIGNS = ("=", "!=", "<", "<=", ">", ">=")

# A rough social network, to compare orders of placing: how many neighbours a node has, how likely
# two neighbours of a node are neighbours, and what part is left by an order between two nodes.
_BRANCHES = 40.0
_CLOSED = 0.25
_BEFORE = 0.4
_AFTER = 0.6


@dataclass(frozen=True, eq=False)
class Search:
    """The arrays that the matching kernel follows; see ``subgraph_kernels.match``."""

    anchors: Array
    bounds: Array
    columns: Array


@dataclass(frozen=True, eq=False)
class Checks:
    """Comparisons of attributes, as the matching kernel wants them."""

    rows: Array = field(default_factory=lambda: np.empty((0, 7), np.int64))
    node_codes: Array = field(default_factory=lambda: np.empty((0, 0), np.int32))
    edge_codes: Array = field(default_factory=lambda: np.empty((0, 0), np.int32))
    alternatives: int = 0


def search_for(pattern: Pattern) -> Search:
    """Return a good search for a pattern that finds each copy once."""
    return _search_for(pattern.size, pattern.edges, pattern.automorphisms())


def search_cliques(size: int) -> Search:
    """Return the search for cliques: each node comes before the last one."""
    edges = [(u, v) for v in range(size) for u in range(v)]
    later = [(u, v) for u, v in edges]
    return _arrays(range(size), edges, later)


def search_k_triangles(k: int) -> Search:
    """Return the search for k triangles on an edge: the edge first, then corners in order."""
    corners = range(2, k + 2)
    edges = [(0, 1)] + [(end, corner) for corner in corners for end in (0, 1)]
    later = [(0, 1)] + [(corner, corner + 1) for corner in corners[:-1]]
    return _arrays(range(k + 2), edges, later)


@lru_cache(maxsize=256)
def _search_for(
    size: int, edges: tuple[Edge, ...], automorphisms: tuple[tuple[int, ...], ...]
) -> Search:
    later = break_symmetry(size, automorphisms)
    orders = [order for order in permutations(range(size)) if _connected(order, edges)]
    best = min(orders, key=lambda order: _cost(order, edges, later))
    return _arrays(best, edges, later)


def break_symmetry(size: int, automorphisms: Iterable[Sequence[int]]) -> list[tuple[int, int]]:
    """Return pairs (u, v): the node laid on u must come later than the one laid on v.

    Of all ways to lay the pattern over one copy exactly one fulfils them (Grochow and Kellis,
    2007): fix node after node by making it the latest of its orbit under the automorphisms that
    keep the nodes fixed before.
    """
    left = [tuple(image) for image in automorphisms]
    pairs = []
    for node in range(size):
        pairs += [(node, other) for other in sorted({image[node] for image in left} - {node})]
        left = [image for image in left if image[node] == node]
    return pairs


def _connected(order: Sequence[int], edges: Iterable[Edge]) -> bool:
    links = {frozenset(edge) for edge in edges}
    return all(
        any(frozenset((node, earlier)) in links for earlier in order[:step])
        for step, node in enumerate(order)
        if step
    )


def _cost(order: Sequence[int], edges: Sequence[Edge], later: Sequence[tuple[int, int]]) -> float:
    links = {frozenset(edge) for edge in edges}
    total, partial = 0.0, 1.0
    for step, node in enumerate(order[1:], start=1):
        back = sum(frozenset((node, earlier)) in links for earlier in order[:step])
        partial *= _BRANCHES
        for earlier in order[:step]:
            partial *= _BEFORE if (earlier, node) in later else 1.0
            partial *= _AFTER if (node, earlier) in later else 1.0
        # Candidates are looked at before closing edges sort them out.
        total += partial
        partial *= _CLOSED ** (back - 1)
    return total


def _arrays(
    order: Iterable[int], edges: Sequence[Edge], later: Sequence[tuple[int, int]]
) -> Search:
    columns = np.array(list(order), np.int64)
    step_of = {int(node): step for step, node in enumerate(columns)}
    anchors = np.full((len(columns), len(columns)), -1, np.int64)
    bounds = np.zeros((len(columns), len(columns)), np.int64)
    for number, (u, v) in enumerate(edges):
        first, second = sorted((step_of[u], step_of[v]))
        anchors[second, first] = number
    for high, low in later:
        first, second = step_of[high], step_of[low]
        if first > second:
            bounds[first, second] = 1
        else:
            bounds[second, first] = -1
    return Search(anchors, bounds, columns)


def prepare_checks(pattern: Pattern, search: Search, graph: Graph) -> Checks:
    """Return the comparisons of the pattern's conditions on the attributes of this graph.

    A copy counts when some way of laying the pattern over it fulfils some alternative: so the
    alternatives seen through every automorphism are all tried on the one way that is listed.
    """
    if not pattern.conditions:
        return Checks()
    from tulle.graphs.patterns.attributes import encode

    alternatives = list(
        dict.fromkeys(parts for seen in pattern.laid_over() for parts in seen.alternatives)
    )
    coded = encode(graph, pattern.conditions)
    step_of = {int(node): step for step, node in enumerate(search.columns)}
    edge_of = {edge: number for number, edge in enumerate(pattern.edges)}
    rows = []
    for number, parts in enumerate(alternatives):
        for part in parts:
            ready, sides = 0, []
            for side in (part.left, part.right):
                if not isinstance(side, Attribute):
                    sides += [coded.constants[side], -1]
                    continue
                ready = max(ready, *(step_of[node] for node in side.place))
                if len(side.place) == 1:
                    sides += [coded.node_rows[side.name], step_of[side.place[0]]]
                else:
                    place = edge_of[side.place[0], side.place[1]]
                    sides += [coded.edge_rows[side.name], pattern.size + place]
            rows.append([number, ready, _SIGNS.index(part.sign), *sides])
    return Checks(
        np.array(rows, np.int64).reshape(-1, 7),
        coded.node_codes,
        coded.edge_codes,
        len(alternatives),
    )
