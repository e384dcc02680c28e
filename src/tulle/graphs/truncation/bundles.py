"""Stars and groups of triangles in a form whose size does not grow with k.

*Bundles.* A bundle has a stem and d leaves, all of them sets of participants. It counts the ways to
choose k leaves that are present together with the stem: C(x, k) when the stem and x leaves are.

    ============  ===========  ======================  =================================
    question      privacy      stem                    leaves
    ============  ===========  ======================  =================================
    stars         node         the centre              each neighbour
    stars         edge         nothing                 each edge at the centre
    k_triangles   node         both ends of an edge    each common neighbour
    k_triangles   edge         the edge                the two edges to a common neighbour
    ============  ===========  ======================  =================================

*Truncated value.* Participant p is deleted to the part g_p in [0, 1]. The stem is then there to
the part m = max(0, 1 - g(stem)), a leaf together with the stem to the part
a = max(0, m - g(leaf)), and with A the sum of a over the leaves the bundle keeps

    Phi(g) = m h(A / m) = sum over j = k-1, ..., d-1 of C(j-1, k-2) max(0, A - j m),

where h joins the points (x, C(x, k)) at whole x by straight lines. The value is

    X(tau) = min over g in [0, 1]^P of  sum of Phi over the bundles + tau sum_p g_p.

*Why it may stand in for the packing value.*

1. It moves by at most tau when p leaves, and falls. At g_p = 1 every bundle keeps exactly what it
   keeps without p: a stem with p has m = 0, a leaf with p has a = 0, and the terms with j beyond
   the leaves that are left vanish because A <= (leaves left) m. So giving p the part 1 in a
   solution without p costs tau and nothing else: X(with p) <= X(without p) + tau. And Phi falls
   as g grows, so raising g_p to 1 and not paying for it is a solution without p:
   X(without p) <= X(with p).
2. It is at most the truth, its value at g = 0.
3. It equals the truth when tau is at least every participant's load (the copies that need them).
   The line through the last two points lies below h: h(x) >= C(d, k) - (d - x) C(d-1, k-1). With
   m >= 1 - g(stem) and A >= d m - (sum of g over the leaves) this gives
   Phi >= C(d, k) - g(stem) C(d, k) - (sum of g over the leaves) C(d-1, k-1): what is kept plus the
   loads of what is deleted is at least the truth.
4. It is at least the packing value of the plain relation, which is the same minimum with
   sum_t max(0, 1 - g(t)) over all copies t in place of Phi. Take m = 1 (else divide by m). Draw
   leaves with chances a so that their number is A rounded up or down, as systematic sampling does.
   The expected number of k-sets drawn is h(A) = Phi; it is also the sum over k-sets of the chance
   that all of it is drawn, which is at least max(0, (sum of a over the set) - k + 1), the part
   that the plain relation keeps. So truncation costs no more than there, and often less.

*Dual*, what the lower bounds certify: with s(i) = C(i, k-1) and b(i) = (k-1) C(i+1, k),

    maximise the sum of S_e over the bundles,
    0 <= w_l <= R_e for every leaf l of e,  S_e <= sum_l w_l - B(R_e),  0 <= R_e <= s(d_e - 1),
    sum of S_e over stems with p + sum of w_l over leaves with p <= tau for every participant p,

where B is the convex function that joins the points (s(i), b(i)), with slope j from s(j-1) to s(j).
S_e is how many copies of the bundle are kept, w_l how many of them use leaf l.

*Size.* The sum of the degrees for stars, three times the number of triangles for k_triangles.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from tulle.core.arrays import Array
from tulle.core.errors import QueryError
from tulle.core.query import Query
from tulle.core.unit import Unit
from tulle.graphs.data import Graph
from tulle.graphs.patterns.enumeration import Lister, edges_of_arcs
from tulle.graphs.queries.counts import KTriangles, Stars
from tulle.relations.data import Relation


@dataclass(frozen=True, eq=False)
class Bundles:
    """Stems with leaves, of which k at a time are counted. Custodian side.

    Bundle e has the participants ``stems[e]`` and the leaves from ``offsets[e]`` to
    ``offsets[e + 1]``, of which leaf l has the participants ``leaves[l]``.

    Example:
        >>> star = Bundles(2, np.array([[0]]), np.array([0, 3]), np.array([[1], [2], [3]]), 4)
        >>> star.total, star.without(3).total
        (3.0, 1.0)
    """

    k: int
    stems: Array
    offsets: Array
    leaves: Array
    count: int

    def __repr__(self) -> str:
        return "Bundles(...)"

    @property
    def sizes(self) -> Array:
        """The number of leaves of each bundle."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Array:
        """The bundle of each leaf."""
        return np.repeat(np.arange(len(self.stems)), self.sizes)

    @property
    def total(self) -> float:
        """How many there are, within rounding."""
        return float(chosen(self.sizes, self.k).sum())

    def loads(self) -> Array:
        """Return how many copies need each participant, within rounding."""
        sizes = self.sizes
        loads = np.zeros(self.count)
        whole, part = chosen(sizes, self.k), chosen(sizes - 1, self.k - 1)
        for column in self.stems.T:
            loads += np.bincount(column, whole, self.count)
        for column in self.leaves.T:
            loads += np.bincount(column, part[self.owners], self.count)
        return loads

    def without(self, participant: int) -> Bundles:
        """Return the bundles after one participant has left; the others keep their numbers."""
        stays = ~(self.stems == participant).any(axis=1)
        kept = ~(self.leaves == participant).any(axis=1) & stays[self.owners]
        sizes = np.bincount(self.owners[kept], minlength=len(stays))
        return _bundles(self.k, self.stems, sizes * stays, self.leaves[kept], self.count)

    def members(self) -> Relation:
        """Return the relation of stem and one leaf at a time, whatever k: the bundles for k = 1."""
        rows = np.hstack([self.stems[self.owners], self.leaves])
        offsets = np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1]
        return Relation(offsets, rows.reshape(-1).astype(np.int32), np.ones(len(rows)), self.count)


def bundles_of(query: Query, graph: Graph, unit: str | Unit) -> Bundles:
    """Return the compact form of a question about stars or groups of triangles. Custodian side.

    Raises:
        QueryError: for any other question.

    Example:
        >>> from tulle.graphs.queries.counts import stars
        >>> bundles_of(stars(3), Graph.from_edges([(0, v) for v in range(1, 6)]), "node").total
        10.0
    """
    name = graph.check_unit(Unit.of(unit).base).name
    if isinstance(query, Stars):
        indptr, indices = graph.csr()
        degrees = np.diff(indptr)
        if name == "node":
            stems, leaves = np.arange(graph.node_count)[:, np.newaxis], indices
        else:
            stems = np.empty((graph.node_count, 0), np.int32)
            leaves = edges_of_arcs(indptr, indices)
        count = graph.node_count if name == "node" else graph.edge_count
        return _bundles(query.k, stems, degrees, leaves[:, np.newaxis], count)
    if isinstance(query, KTriangles):
        return _triangle_bundles(query.k, graph, name)
    raise QueryError(f"{query} has no compact form; stars and k_triangles have.")


def _triangle_bundles(k: int, graph: Graph, unit: str) -> Bundles:
    """Group the triangles by each of their edges."""
    lister = Lister(graph)
    copies = lister.fill(lister.triangles(), 3, 3)
    # Corner c of a triangle lies opposite to edge 2 - c in the order in which they are listed.
    edge = copies.edges[:, ::-1].T.reshape(-1)
    order = np.argsort(edge, kind="stable")
    sizes = np.bincount(edge, minlength=graph.edge_count)
    if unit == "node":
        leaves = copies.nodes.T.reshape(-1)[order][:, np.newaxis]
        return _bundles(k, graph.edges().astype(np.int32), sizes, leaves, graph.node_count)
    first, second = (
        np.concatenate([copies.edges[:, which[corner]] for corner in range(3)])[order]
        for which in ((0, 0, 1), (1, 2, 2))
    )
    stems = np.arange(graph.edge_count, dtype=np.int32)[:, np.newaxis]
    return _bundles(k, stems, sizes, np.column_stack([first, second]), graph.edge_count)


def _bundles(k: int, stems: Array, sizes: Array, leaves: Array, count: int) -> Bundles:
    """Leave out the bundles with fewer than k leaves, which count nothing now or later."""
    kept = sizes >= k
    offsets = np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
    return Bundles(
        k,
        np.ascontiguousarray(stems[kept], np.int32),
        offsets,
        np.ascontiguousarray(leaves[np.repeat(kept, sizes)], np.int32),
        count,
    )


def chosen(values: Array, k: int) -> Array:
    """Return (value choose k) as floats, by a table: exact up to 2^53, else rounded once."""
    most = int(values.max(initial=0))
    table = np.array([float(comb(value, k)) for value in range(most + 1)])
    # One below zero occurs for k = 2 only, where choosing none of it counts one.
    return np.where(values >= 0, table[np.maximum(values, 0)], 1.0 if k == 0 else 0.0)
