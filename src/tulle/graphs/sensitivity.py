"""How much one edge can move a count: on this graph, and on graphs some edges away.

For a count f, the profile of a graph G is a row of whole numbers I_0 <= I_1 <= ... with

* I_0(G) >= |f(G) - f(G')| for every neighbour G' of G (adding or removing one edge), and
* I_{t+1}(G) >= I_t(G') for every neighbour G' of G and every t.

Both conditions are what a ladder function (Zhang et al. 2015) needs; together they make I_t an
upper bound on the local sensitivity at distance t, which smooth sensitivity needs. The audit
checks both on every graph with few nodes, additions and removals alike. From the public place
``length`` on, the profile is the global bound: that keeps both conditions, because the place does
not depend on the graph.

Notation: a(G) is the largest number of common neighbours over all pairs, adjacent or not. One
edge changes a(G) by at most one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from math import comb
from typing import Any, NamedTuple, TypeVar
from weakref import ReferenceType, ref

import numpy as np

from tulle.graphs.data import Graph
from tulle.graphs.queries import Cliques, GraphQuery, KTriangles, Stars, Triangles
from tulle.graphs.statistics_counts import Chains, DegreeSquares, TrianglesAt, place_of

Profile = list[int]
"""I_0, I_1, ... up to the public length; afterwards the global bound."""

PROFILED = (Triangles, Stars, KTriangles, Cliques, Chains, TrianglesAt, DegreeSquares)
"""The questions that have a profile."""


def cap(query: GraphQuery, nodes: int) -> int:
    """Return the global bound, but at least 1, so that every rung has room."""
    return max(query.edge_sensitivity(nodes), 1)


_FRONTS: OrderedDict[tuple[int, str], tuple[ReferenceType[Graph], Any]] = OrderedDict()
_KEPT = 8
_Found = TypeVar("_Found")


def remembered(graph: Graph, compute: Callable[[Graph], _Found]) -> _Found:
    """Return what a slow kernel says about a graph; a plan asks for the same again and again."""
    key = id(graph), compute.__name__
    known = _FRONTS.get(key)
    if known is not None and known[0]() is graph:
        kept: _Found = known[1]
        return kept
    found = compute(graph)
    _FRONTS[key] = ref(graph), found
    while len(_FRONTS) > _KEPT:
        _FRONTS.popitem(last=False)
    return found


class Measured(NamedTuple):
    """What a graph says about the sensitivity of one question. Custodian side."""

    profile: Profile
    spread: int
    """The one number that governs the profile: the largest degree for stars and chains, the
    largest number of common neighbours with the node for its triangles, half the largest part's
    degrees for sums of their squares, a(G) otherwise.

    One edge moves it by at most one.
    """


def measure(query: GraphQuery, graph: Graph, length: int) -> Measured:
    """Return the profile I_0 ... I_{length-1} and the spread; see the module's text."""
    if isinstance(query, Stars):
        rungs, spread = _stars(query, graph, length)
    elif isinstance(query, KTriangles):
        rungs, spread = _k_triangles(query, graph, length)
    elif isinstance(query, Cliques) and query.k > 3:
        rungs, spread = _cliques(query, graph, length)
    elif isinstance(query, Chains):
        rungs, spread = _chains(graph, length)
    elif isinstance(query, DegreeSquares):
        rungs, spread = _degree_squares(query, graph, length)
    elif isinstance(query, TrianglesAt):
        rungs, spread = _triangles_at(query, graph, length)
    else:
        rungs, spread = _triangles(graph, length)
    most = cap(query, graph.node_count)
    return Measured([min(max(value, 1), most) for value in rungs], spread)


def _triangles(graph: Graph, length: int) -> tuple[list[int], int]:
    """Exact local sensitivity of the triangle count at distance t (Nissim et al. 2007).

    A pair with a common neighbours, and x nodes adjacent to exactly one of the two, gains one
    common neighbour from one edge while those x last, afterwards from two edges.
    """
    from tulle.graphs.bounds import pair_front

    front = remembered(graph, pair_front)
    common = np.flatnonzero(front >= 0)
    if not len(common):
        return [1] * length, 0
    single = front[common]
    rungs = [int(np.max(common + (t + np.minimum(t, single)) // 2)) for t in range(length)]
    return rungs, len(front) - 1


def _stars(query: Stars, graph: Graph, length: int) -> tuple[list[int], int]:
    """Exact local sensitivity of the k-star count at distance t.

    Toggling ij moves the count by C(u_i, k-1) + C(u_j, k-1), where u are degrees without ij. Each
    of t edges raises one of the two; the sum is convex, so the larger is filled up first.
    """
    from tulle.graphs.bounds import star_front
    from tulle.graphs.kernels import degrees

    front = [(int(u), int(v)) for u, v in remembered(graph, star_front)]
    room = max(graph.node_count - 2, 0)
    below = query.k - 1

    def at(u: int, v: int, t: int) -> int:
        first = min(t, room - u)
        return comb(u + first, below) + comb(min(v + t - first, room), below)

    rungs = [max((at(u, v, t) for u, v in front), default=1) for t in range(length)]
    return rungs, int(degrees(graph).max(initial=0))


def _cliques(query: Cliques, graph: Graph, length: int) -> tuple[list[int], int]:
    """Local sensitivity of the k-clique count, growing by C(a + t, k - 3) at distance t.

    Toggling ij moves the count by the number of (k-2)-cliques among the common neighbours of i
    and j. One more edge either brings a new common neighbour, in at most C(a, k-3) new cliques,
    or joins two old ones, in at most C(a-2, k-4) <= C(a, k-3). Also never above C(a + t, k - 2).
    """
    from tulle.graphs.bounds import pair_front
    from tulle.graphs.cliques import clique_local_sensitivity

    common = max(len(remembered(graph, pair_front)) - 1, 0)
    return _rising(query, clique_local_sensitivity(graph, query.k), common, length), common


def _k_triangles(query: KTriangles, graph: Graph, length: int) -> tuple[list[int], int]:
    """Local sensitivity of the k-triangle count and a bound on its growth.

    Toggling ij moves the count by F = C(a_ij, k) + sum over common neighbours w of
    C(a_iw, k-1) + C(a_jw, k-1), the latter without ij. One more edge e, with a the largest number
    of common neighbours before it:

    * e joins i (or j) to a neighbour y of the other: C(a, k-1) for the pair, 2·C(a, k-1) for the
      new w = y, and C(a, k-2) for each w adjacent to i, j and y, of which there are at most a;
    * e joins i to another node: only the last of these;
    * e joins two common neighbours: at most 4·C(a, k-2).

    So F grows by at most 3·C(a, k-1) + max(a, 4)·C(a, k-2). Also F <= C(a, k) + 2a·C(a, k-1).
    """
    from tulle.graphs.bounds import k_triangle_local_sensitivity, pair_front

    common = max(len(remembered(graph, pair_front)) - 1, 0)
    return _rising(query, k_triangle_local_sensitivity(graph, query.k), common, length), common


def _chains(graph: Graph, length: int) -> tuple[list[int], int]:
    """Local sensitivity of the number of chains, growing by 4(D + t) + 2, D the largest degree.

    Toggling ij, with u and v other neighbours, moves the count by u·v for chains with ij in the
    middle, and by the sum of d_x - 1 over the other neighbours x of i, and of j, for the rest. It
    is at most W, the largest d_i·d_j + A_i + A_j over all pairs (``chain_weight``). One more edge
    adds at most 2(d_i + d_j) + 1 to that if it is ij, d_j + d_y + 2 if it is iy, 2 otherwise.
    """
    from tulle.graphs.kernels import degrees
    from tulle.graphs.local_counts import chain_weight

    largest = int(degrees(graph).max(initial=0))
    value = remembered(graph, chain_weight)
    rungs = []
    for t in range(length):
        rungs.append(value)
        value += 4 * (largest + t) + 2
    return rungs, largest


def _degree_squares(query: DegreeSquares, graph: Graph, length: int) -> tuple[list[int], int]:
    """Local sensitivity 4D + 4 of the sum of squares, D the degrees of the largest part.

    An edge inside a part takes its degrees from D to D + 2, and one between two parts takes each
    from D to D + 1. An edge more adds at most two to D.
    """
    largest = int(query.part_degrees(graph).max(initial=0))
    return [4 * (largest + 2 * t) + 4 for t in range(length)], -(-largest // 2)


def _triangles_at(query: TrianglesAt, graph: Graph, length: int) -> tuple[list[int], int]:
    """Exact local sensitivity of the triangles through one node, as for all triangles.

    An edge at the node moves the count by the common neighbours of its ends; an edge between two
    neighbours of the node moves it by one. (Bounds that look at edges of the graph only miss
    both: a pair that is not adjacent yet, and the edge opposite.)
    """
    from tulle.graphs.kernels import degrees
    from tulle.graphs.local_counts import common_with

    if graph.node_count < 2:
        return [1] * length, 0
    node = place_of(graph, query.node)
    common = common_with(graph, node)
    indptr, indices = graph.csr()
    joined = np.zeros(graph.node_count, dtype=np.int64)
    joined[indices[indptr[node] : indptr[node + 1]]] = 1
    own = degrees(graph)
    single = own + own[node] - 2 * (common + joined)
    others = np.arange(graph.node_count) != node
    common, single = common[others], single[others]
    front = np.unique(np.column_stack([common, single]), axis=0)
    common, single = front.T
    rungs = [int(np.max(common + (t + np.minimum(t, single)) // 2)) for t in range(length)]
    return rungs, int(common.max())


def _rising(query: Cliques | KTriangles, start: int, common: int, length: int) -> list[int]:
    """Return the profile of a graph with this local sensitivity and number a(G)."""
    k = query.k
    rungs = []
    value = start
    for a in range(common, common + length):
        rungs.append(min(value, envelope(query, a)))
        if isinstance(query, Cliques):
            value += comb(a, k - 3)
        else:
            value += 3 * comb(a, k - 1) + max(a, 4) * comb(a, k - 2)
    return rungs


def envelope(query: GraphQuery, spread: int) -> int:
    """Return a bound on the local sensitivity of every graph with at most this spread.

    At distance t the bound is ``envelope(query, spread + t)``: it grows at least as fast as any
    profile, which is what the error law relies on.
    """
    if isinstance(query, Stars):
        return 2 * comb(spread, query.k - 1)
    if isinstance(query, KTriangles):
        return comb(spread, query.k) + 2 * spread * comb(spread, query.k - 1)
    if isinstance(query, Cliques):
        return comb(spread, query.k - 2)
    if isinstance(query, Chains):
        return 3 * spread * spread + 2 * spread
    if isinstance(query, DegreeSquares):
        return 8 * spread + 4
    return spread


def largest_spread(query: GraphQuery, nodes: int) -> int:
    """Return the largest spread that so many nodes allow."""
    if isinstance(query, DegreeSquares):
        return nodes * max(nodes - 1, 0) // 2
    return max(nodes - 1, 0)


def envelope_profiles(query: GraphQuery, nodes: int, spread: int, length: int) -> list[Profile]:
    """Return extreme profiles of graphs with at most this spread: the widest comes first.

    For cliques and k-triangles the local sensitivity can be far below what the spread allows and
    then grow fast; the second profile starts at nothing and is the one that grows fastest.
    """
    most = cap(query, nodes)
    widest = [envelope(query, spread + t) for t in range(length)]
    rows = [widest]
    if isinstance(query, KTriangles) or (isinstance(query, Cliques) and query.k > 3):
        rows.append(_rising(query, 0, spread, length))
    return [[min(max(value, 1), most) for value in row] for row in rows]
