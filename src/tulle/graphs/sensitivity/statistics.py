"""How much one edge can move a statistic: on this graph, and on graphs some edges away.

Values are whole multiples of 1/units, rounded down; the profile of a graph G is a row of whole
numbers I_0 <= I_1 <= ... with the two conditions of :mod:`tulle.graphs.sensitivity.counts`, in the
same multiples:

* I_0(G) is at least the change of the rounded value for every neighbour G' of G, and
* I_{t+1}(G) >= I_t(G') for every neighbour G' of G and every t.

Each profile is a function of a few numbers of the graph that is monotone in each of them. For
every such number x there is a row of bounds x_0, x_1, ... with x_t(G') <= x_{t+1}(G), so the
second condition holds; the arguments for x_0 are given with each statistic. All are over edges
added *and* removed, and checked on every graph with few nodes.
"""

from __future__ import annotations

import numpy as np

from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import count_stars, count_triangles, degrees, triangles_per_node
from tulle.graphs.kernels.local_counts import (
    FINE,
    chain_weight,
    closing_weight,
    common_with,
    count_chains,
)
from tulle.graphs.sensitivity import counts
from tulle.graphs.sensitivity.counts import Profile, remembered

_VERY_FINE = 2**64

CLOSING_GROWTH = -(-4 * FINE // 3)
"""How much :func:`closing_weight` can grow by one edge: two common neighbours of a pair that lose
the edge between them have degree 2 instead of 3, and weigh 1 instead of 1/3 each."""


def _divide_up(top: int, bottom: int, otherwise: int) -> int:
    return -(-top // bottom) if bottom > 0 else otherwise


def transitivity(graph: Graph, units: int, length: int) -> Profile:
    """Return the bound max(3·c, T·(u + v)) / P on what one edge does.

    Joining i and j, with c common neighbours and u and v other neighbours, adds c triangles and
    u + v paths. From T = 3·triangles/P it moves T by |3c - T·(u + v)| / (P + u + v); parting them
    by |3c - T·(u + v)| / (P - u - v). Rows: c_t and (u + v)_t are the profiles of triangles and
    2-stars; P falls by at most (u + v)_t; T rises by at most I_t.
    """
    closing = counts.triangles(graph, length).profile
    paths = counts.stars(graph, 2, length).profile
    left = count_stars(graph, 2)
    value = 3 * remembered(graph, count_triangles) * units // left + 1 if left else 0
    rows = []
    for c, w in zip(closing, paths, strict=True):
        left -= w
        rows.append(min(_divide_up(max(3 * c * units, value * w), left, units), units))
        value = min(value + rows[-1], units)
    return rows


def node_clustering(graph: Graph, node: int, units: int, length: int) -> Profile:
    """Return the lesser of 2/d and 2·max(C/(d - 2), c/((d - 1)(d - 2)), 1/(d(d - 1))).

    C is the coefficient, d the degree, and c the most neighbours that the node shares with any
    other. An edge at the node takes its degree from u to u + 1 and its triangles from
    N = C·u(u-1)/2 to N + k, k <= min(c, u): a change of 2(k - C·u)/(u(u + 1)), which is at most
    2/(u + 1) in size, and at most 2·max(C, c/u)/(u + 1). Taking one away, from degree d, changes
    it by 2(C·(d - 1) - k)/((d - 1)(d - 2)). An edge between two of its neighbours changes it by
    2/(d(d-1)). With u = 1 the change is at most 1; with u = 0 there is none. Rows: d falls by 1,
    c grows by 1, C by I_t.
    """
    degree = int(degrees(graph)[node])
    if not degree:
        # One edge does nothing; after that the degree is one, and C and c are nought.
        return [1, *(units for _ in range(length - 1))][:length]
    indptr, indices = graph.csr()
    shared = common_with(graph, node)
    ends = int(shared[indices[indptr[node] : indptr[node + 1]]].sum())
    share = _divide_up(ends * units, degree * (degree - 1), 0)
    shared[node] = 0
    most = int(shared.max(initial=0))
    rows: list[int] = []
    for t in range(length):
        left = degree - t
        bound = _divide_up(2 * units, max(left, 2), units)
        if left > 2:
            closer = max(
                _divide_up(2 * share, left - 2, units),
                _divide_up(2 * (most + t) * units, (left - 1) * (left - 2), units),
                _divide_up(2 * units, left * (left - 1), units),
            )
            bound = min(bound, closer)
        rows.append(bound)
        share = min(share + bound, units)
    return rows


def average_clustering(graph: Graph, units: int, length: int) -> Profile:
    """Return the closing weight, over n; it grows by at most 4/3 per edge.

    Joining i and j moves C_i by at most 2/(u + 1), C_j by 2/(v + 1), and C_w of each common
    neighbour w by 2/(d_w(d_w - 1)). One more edge elsewhere brings a new common neighbour (at
    most 1), or changes the degrees of two (4/3), or of i (1/3). Without common neighbours the
    change is at most 4/3, as a node of degree 1 has no triangle; the weight starts at 5/3 because
    with one common neighbour it may be 3.
    """
    start = remembered(graph, closing_weight)
    nodes = max(graph.node_count, 1)
    # Rounding of the sum: less than one part of 2^64 for each degree that occurs.
    return [
        _divide_up(
            ((start + t * CLOSING_GROWTH) * (_VERY_FINE // FINE) + nodes) * units,
            _VERY_FINE * nodes,
            units,
        )
        for t in range(length)
    ]


def clustering_mean(graph: Graph, units: int) -> int:
    """Return the mean of all clustering coefficients in multiples of 1/units, rounded down."""
    own = degrees(graph)
    # Nodes of one degree share a denominator: the sum is exact but for one rounding per degree.
    triangles = np.bincount(own, weights=triangles_per_node(graph).astype(np.float64))
    total = sum(
        2 * int(count) * _VERY_FINE // (degree * (degree - 1))
        for degree, count in enumerate(triangles.tolist())
        if degree > 1 and count
    )
    return total * units // (_VERY_FINE * max(graph.node_count, 1))


def modularity(graph: Graph, units: int, length: int) -> Profile:
    """Return 2/M + 2/M², M edges left.

    With shares x of the degrees in each part, l of the edges inside, and M edges after joining
    nodes of parts a and b: the value moves by (1 - l, or -l)/M - 2x·y/M - y²/M², where
    y = (e_a + e_b)/2 - x has y² <= 2. For a = b the first two are at most
    (min(1, 2 - 2·max x) + 2·max x)/M <= 2/M and at least -1/(2M), as l >= 2·max x - 1; for a ≠ b
    they lie between -2/M and 1/M.
    """
    left = graph.edge_count
    rows = []
    for t in range(length):
        edges = max(left - t, 1)
        rows.append(_divide_up((2 * edges + 2) * units, edges * edges, units))
    return rows


class DegreeMoments:
    """Sums over edges of functions of the two degrees."""

    def __init__(self, graph: Graph) -> None:
        self.edges = graph.edge_count
        pairs, triples = count_stars(graph, 2), count_stars(graph, 3)
        self.products = count_chains(graph) + 2 * pairs + self.edges
        self.ends = pairs + self.edges
        self.squares = 3 * triples + 3 * pairs + self.edges

    def correlation(self) -> tuple[int, int]:
        """Return the numerator and the denominator of the assortativity."""
        middle = self.ends * self.ends
        return self.edges * self.products - middle, self.edges * self.squares - middle


def assortativity(graph: Graph, units: int, length: int) -> Profile:
    """Return the bound |ΔA - r·ΔB| / B' on what one edge does to r = A/B.

    A = m·S1 - S2² and B = m·S3 - S2². Joining i and j, with u and v other neighbours, adds to S1
    at most W + 4D + 1, where W is the chain weight and D the largest degree; to S2 exactly
    u + v + 1; to S3 3/2·(u² + v² + u + v) + 1. All grow together, so with a1, a2, a3 for what is
    added to m·S1, S2² and m·S3, B moves by at most max(a2, a3), and |ΔA - r·ΔB| is at most
    |r|·a3 + max(a1, (1 + |r|)·a2). Rows: D by 1, W by 4D + 2, u + v by 1, the sums by what an
    edge adds, B by what it takes away, |r| by I_t.
    """
    sums = DegreeMoments(graph)
    top, left = sums.correlation()
    largest = int(degrees(graph).max(initial=0))
    chain = remembered(graph, chain_weight)
    stars = counts.stars(graph, 2, length).profile
    bound = 2 * units
    size = abs(top) * units // left + 1 if left > 0 else units
    m, s1, s2, s3 = sums.edges, sums.products, sums.ends, sums.squares
    rows = []
    for w in stars:
        u = min(largest, w)
        v = w - u
        more1 = chain + 4 * largest + 1
        more2 = w + 1
        more3 = (3 * (u * u + v * v + u + v)) // 2 + 1
        a1 = (m + 1) * more1 + s1
        a2 = more2 * (2 * s2 + more2)
        a3 = (m + 1) * more3 + s3
        left -= max(a2, a3)
        change = size * a3 + max(units * a1, (units + size) * a2)
        rows.append(min(_divide_up(change, left, bound), bound))
        size = min(size + rows[-1], units)
        chain += 4 * largest + 2
        m, s1, s2, s3 = m + 1, s1 + more1, s2 + more2, s3 + more3
        largest = min(largest + 1, max(graph.node_count - 1, 0))
    return rows
