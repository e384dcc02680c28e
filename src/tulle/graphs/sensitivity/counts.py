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
import numpy.typing as npt

from tulle.graphs.data import Graph

Profile = list[int]
"""I_0, I_1, ... up to the public length; afterwards the global bound."""

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


class LocalSensitivity(NamedTuple):
    """What a graph says about the sensitivity of one question. Custodian side."""

    profile: Profile
    spread: int
    """The one number that governs the profile: the largest degree for stars and chains, the
    largest number of common neighbours with the node for its triangles, half the largest part's
    degrees for sums of their squares, a(G) otherwise.

    One edge moves it by at most one.
    """


def triangles(graph: Graph, length: int) -> LocalSensitivity:
    """Exact local sensitivity of the triangle count at distance t (Nissim et al. 2007).

    A pair with a common neighbours, and x nodes adjacent to exactly one of the two, gains one
    common neighbour from one edge while those x last, afterwards from two edges.
    """
    from tulle.graphs.kernels.pair_bounds import pair_front

    front = remembered(graph, pair_front)
    common = np.flatnonzero(front >= 0)
    if not len(common):
        return LocalSensitivity([1] * length, 0)
    single = front[common]
    rungs = [int(np.max(common + (t + np.minimum(t, single)) // 2)) for t in range(length)]
    return LocalSensitivity(rungs, len(front) - 1)


def stars(graph: Graph, k: int, length: int) -> LocalSensitivity:
    """Exact local sensitivity of the k-star count at distance t.

    Toggling ij moves the count by C(u_i, k-1) + C(u_j, k-1), where u are degrees without ij. Each
    of t edges raises one of the two; the sum is convex, so the larger is filled up first.
    """
    from tulle.graphs.kernels.counts import degrees
    from tulle.graphs.kernels.pair_bounds import star_front

    front = [(int(u), int(v)) for u, v in remembered(graph, star_front)]
    room = max(graph.node_count - 2, 0)
    below = k - 1

    def at(u: int, v: int, t: int) -> int:
        first = min(t, room - u)
        return comb(u + first, below) + comb(min(v + t - first, room), below)

    rungs = [max((at(u, v, t) for u, v in front), default=1) for t in range(length)]
    return LocalSensitivity(rungs, int(degrees(graph).max(initial=0)))


def cliques(graph: Graph, k: int, length: int) -> LocalSensitivity:
    """Local sensitivity of the k-clique count, growing by C(a + t, k - 3) at distance t.

    Toggling ij moves the count by the number of (k-2)-cliques among the common neighbours of i
    and j. One more edge either brings a new common neighbour, in at most C(a, k-3) new cliques,
    or joins two old ones, in at most C(a-2, k-4) <= C(a, k-3). Also never above C(a + t, k - 2).
    """
    from tulle.graphs.kernels.cliques import clique_local_sensitivity
    from tulle.graphs.kernels.pair_bounds import pair_front

    common = max(len(remembered(graph, pair_front)) - 1, 0)
    rungs = rising_cliques(k, clique_local_sensitivity(graph, k), common, length)
    return LocalSensitivity(rungs, common)


def k_triangles(graph: Graph, k: int, length: int) -> LocalSensitivity:
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
    from tulle.graphs.kernels.pair_bounds import k_triangle_local_sensitivity, pair_front

    common = max(len(remembered(graph, pair_front)) - 1, 0)
    rungs = rising_k_triangles(k, k_triangle_local_sensitivity(graph, k), common, length)
    return LocalSensitivity(rungs, common)


def chains(graph: Graph, length: int) -> LocalSensitivity:
    """Local sensitivity of the number of chains, growing by 4(D + t) + 2, D the largest degree.

    Toggling ij, with u and v other neighbours, moves the count by u·v for chains with ij in the
    middle, and by the sum of d_x - 1 over the other neighbours x of i, and of j, for the rest. It
    is at most W, the largest d_i·d_j + A_i + A_j over all pairs (``chain_weight``). One more edge
    adds at most 2(d_i + d_j) + 1 to that if it is ij, d_j + d_y + 2 if it is iy, 2 otherwise.
    """
    from tulle.graphs.kernels.counts import degrees
    from tulle.graphs.kernels.local_counts import chain_weight

    largest = int(degrees(graph).max(initial=0))
    value = remembered(graph, chain_weight)
    rungs = []
    for t in range(length):
        rungs.append(value)
        value += 4 * (largest + t) + 2
    return LocalSensitivity(rungs, largest)


def degree_squares(parts: npt.NDArray[np.int64], length: int) -> LocalSensitivity:
    """Local sensitivity 4D + 4 of the sum of squares, D the degrees of the largest part.

    An edge inside a part takes its degrees from D to D + 2, and one between two parts takes each
    from D to D + 1. An edge more adds at most two to D.
    """
    largest = int(parts.max(initial=0))
    rungs = [4 * (largest + 2 * t) + 4 for t in range(length)]
    return LocalSensitivity(rungs, -(-largest // 2))


def triangles_at(graph: Graph, node: int, length: int) -> LocalSensitivity:
    """Exact local sensitivity of the triangles through one node, as for all triangles.

    An edge at the node moves the count by the common neighbours of its ends; an edge between two
    neighbours of the node moves it by one. (Bounds that look at edges of the graph only miss
    both: a pair that is not adjacent yet, and the edge opposite.)
    """
    from tulle.graphs.kernels.counts import degrees
    from tulle.graphs.kernels.local_counts import common_with

    if graph.node_count < 2:
        return LocalSensitivity([1] * length, 0)
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
    return LocalSensitivity(rungs, int(common.max()))


def rising_cliques(k: int, start: int, common: int, length: int) -> Profile:
    """Return the profile of a graph with this local sensitivity of k-cliques and number a(G)."""
    rungs, value = [], start
    for a in range(common, common + length):
        rungs.append(min(value, comb(a, k - 2)))
        value += comb(a, k - 3)
    return rungs


def rising_k_triangles(k: int, start: int, common: int, length: int) -> Profile:
    """Return the profile of a graph with this local sensitivity of k-triangles and number a(G)."""
    rungs, value = [], start
    for a in range(common, common + length):
        rungs.append(min(value, most_k_triangles(k, a)))
        value += 3 * comb(a, k - 1) + max(a, 4) * comb(a, k - 2)
    return rungs


def most_k_triangles(k: int, common: int) -> int:
    """Return the most that one edge can move the k-triangle count where a(G) is at most this."""
    return comb(common, k) + 2 * common * comb(common, k - 1)
