"""How a pattern is searched for: in which order its nodes are placed, and what is checked when.

The kernel runs on a graph renumbered by descending degree, with sorted neighbours; ``edge_of``
gives for every arc the number of its edge in the order of ``Graph.edges``. It works in two passes,
one that counts and one that fills arrays of the size found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import permutations

import numpy as np

from tulle.core.arrays import Array
from tulle.core.compiled import compiled
from tulle.graphs.data import Graph
from tulle.graphs.patterns.conditions import AttributeTerm
from tulle.graphs.patterns.pattern import Edge, Pattern

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
                if not isinstance(side, AttributeTerm):
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


@compiled
def _first_above(neighbours: Array, low: int, high: int, bound: int) -> int:
    """Return the first place in a sorted stretch whose entry exceeds ``bound``."""
    while low < high:
        middle = (low + high) >> 1
        if neighbours[middle] > bound:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def _holds(sign: int, left: int, right: int) -> bool:
    """Compare two codes; a code below zero is a missing value, with which nothing holds."""
    if left < 0 or right < 0:
        return False
    if sign == 0:
        return left == right
    if sign == 1:
        return left != right
    if sign == 2:
        return left < right
    if sign == 3:
        return left <= right
    if sign == 4:
        return left > right
    return left >= right


@compiled
def match(
    offsets: Array,
    neighbours: Array,
    edge_of: Array,
    order: Array,
    anchors: Array,
    bounds: Array,
    columns: Array,
    tests: Array,
    codes: Array,
    edge_codes: Array,
    alternatives: int,
    chunk: int,
    chunks: int,
    start: int,
    nodes: Array,
    edges: Array,
) -> int:
    """Count the copies of a pattern, and write them to the arrays that are not empty.

    Step i of the search places one node of the pattern. ``anchors[i, j]`` is the edge of the
    pattern between the nodes of steps i and j < i, or -1; ``bounds[i, j]`` is 1 when the node of
    step i must come after that of step j in the order of degrees, -1 when before, 0 when it does
    not matter (this finds each copy once); ``columns[i]`` is where the node goes in the output.
    A row of ``tests`` is one comparison of an alternative: (alternative, step by which it can be
    made, sign, left attribute, left place, right attribute, right place). A place is a step, or
    size + edge for an edge of the pattern, or -1 for a constant, whose code is the attribute then.
    """
    count = len(offsets) - 1
    size = len(columns)
    wants_nodes, wants_edges = len(nodes) > 0, len(edges) > 0
    here = np.zeros(size, np.int64)
    until = np.zeros(size, np.int64)
    placed = np.full(size, -1, np.int64)
    owner = np.full(size, -1, np.int64)
    arcs = np.full(anchors.max() + 1, -1, np.int64)
    alive = np.ones((size + 1, max(alternatives, 1)), np.uint8)
    found = start
    for root in range(chunk, count, chunks):
        placed[0] = root
        depth = 0
        # Depth 0 has one candidate, the root; a depth's candidates are here[depth]..until[depth].
        here[0], until[0] = 0, 1
        while depth >= 0:
            if here[depth] >= until[depth]:
                depth -= 1
                continue
            place = here[depth]
            here[depth] += 1
            if depth > 0:
                node = neighbours[place]
                fits = True
                for step in range(depth):
                    if placed[step] == node:
                        fits = False
                        break
                    edge = anchors[depth, step]
                    if edge < 0:
                        continue
                    if step == owner[depth]:
                        arcs[edge] = place
                        continue
                    other = placed[step]
                    at = _first_above(neighbours, offsets[other], offsets[other + 1], node - 1)
                    if at >= offsets[other + 1] or neighbours[at] != node:
                        fits = False
                        break
                    arcs[edge] = at
                if not fits:
                    continue
                placed[depth] = node
            if alternatives:
                left_alive = 0
                for alternative in range(alternatives):
                    alive[depth + 1, alternative] = alive[depth, alternative]
                for row in range(len(tests)):
                    if tests[row, 1] != depth or not alive[depth + 1, tests[row, 0]]:
                        continue
                    left = _code(
                        codes, edge_codes, edge_of, order, placed, arcs, size,
                        tests[row, 3], tests[row, 4],
                    )  # fmt: skip
                    right = _code(
                        codes, edge_codes, edge_of, order, placed, arcs, size,
                        tests[row, 5], tests[row, 6],
                    )  # fmt: skip
                    if not _holds(tests[row, 2], left, right):
                        alive[depth + 1, tests[row, 0]] = 0
                for alternative in range(alternatives):
                    left_alive += alive[depth + 1, alternative]
                if left_alive == 0:
                    continue
            if depth == size - 1:
                if wants_nodes:
                    for step in range(size):
                        nodes[found, columns[step]] = order[placed[step]]
                if wants_edges:
                    for edge in range(edges.shape[1]):
                        edges[found, edge] = edge_of[arcs[edge]]
                found += 1
                continue
            depth += 1
            # Walk the shortest list among the neighbours that are placed already.
            shortest = -1
            low, high = -1, count
            for step in range(depth):
                if anchors[depth, step] >= 0 and (shortest < 0 or placed[step] > placed[shortest]):
                    shortest = step
                if bounds[depth, step] > 0:
                    low = max(low, placed[step])
                elif bounds[depth, step] < 0:
                    high = min(high, placed[step])
            base = placed[shortest]
            owner[depth] = shortest
            here[depth], until[depth] = offsets[base], offsets[base + 1]
            if low >= 0:
                here[depth] = _first_above(neighbours, offsets[base], offsets[base + 1], low)
            if high < count:
                until[depth] = _first_above(neighbours, here[depth], offsets[base + 1], high - 1)
            if depth == size - 1 and not (wants_nodes or wants_edges or alternatives):
                lone = 0
                for step in range(depth):
                    lone += anchors[depth, step] >= 0
                if lone == 1:
                    # Only counting, and nothing left to check: all of the stretch that is unused.
                    found += until[depth] - here[depth]
                    for step in range(depth):
                        if step != shortest and here[depth] < until[depth]:
                            at = _first_above(
                                neighbours, here[depth], until[depth], placed[step] - 1
                            )
                            if at < until[depth] and neighbours[at] == placed[step]:
                                found -= 1
                    depth -= 1
    return found - start


@compiled
def _code(
    codes: Array,
    edge_codes: Array,
    edge_of: Array,
    order: Array,
    placed: Array,
    arcs: Array,
    size: int,
    attribute: int,
    place: int,
) -> int:
    if place < 0:
        return int(attribute)
    if place < size:
        return int(codes[attribute, order[placed[place]]])
    return int(edge_codes[attribute, edge_of[arcs[place - size]]])
