"""The truncated value of bundles at a threshold, and where to put the threshold."""

from __future__ import annotations

from math import comb, factorial
from typing import Any

import numpy as np

from tulle.core.arrays import Array
from tulle.core.errors import InputError, QueryError
from tulle.core.progress import report
from tulle.core.query import Query
from tulle.core.validate import Number
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import Edges, KTriangles, Stars, Triangles
from tulle.graphs.truncation.bundle_bounds import Tables, lower_bound, upper_bound
from tulle.graphs.truncation.bundle_interior import BundleInterior
from tulle.graphs.truncation.bundle_newton import Reduced, reduce
from tulle.graphs.truncation.bundles import Bundles, bundles_of
from tulle.lp import Bracket, DeletionOracle, PackingProblem
from tulle.relations.truncation.totals import ETA

_STEPS = 120
_IDLE = 12
_REACHES = (0.99, 0.9, 0.7)
"""How far towards the boundary steps go; shorter ones are slower and safer, and come later."""
_LARGEST = 8_000
"""Beyond so many active participants the dense matrix would not fit into memory."""
_FINEST = 10_000

SPREAD = 8.0
"""By how much thresholds on edges or triangles are raised; see :func:`base_threshold`."""


def solve_bundles(bundles: Bundles, tau: float, *, gap: float) -> Bracket:
    """Return bounds on X(tau) that are at most ``gap`` apart. Custodian side.

    ``gap`` is absolute and at least tau / 10,000. Time grows with the number of leaves and with
    the cube of the number of participants whose load exceeds tau; memory with its square. It goes
    on until both bounds are certified: how long that takes depends on the data, whether it ends
    does not.

    Raises:
        InputError: when ``tau`` or ``gap`` is out of range.

    Example:
        >>> from tulle.graphs.queries.counts import stars
        >>> hub = Graph.from_edges([(0, leaf) for leaf in range(1, 11)])
        >>> bracket = solve_bundles(bundles_of(stars(2), hub, "node"), 20.0, gap=0.2)
        >>> bracket.lower <= 20.0 <= bracket.upper
        True
    """
    tau, gap = float(tau), float(gap)
    if not 0.0 < tau < np.inf:
        raise InputError(f"tau must be a number above 0; got {tau!r}.")
    if not (tau / _FINEST <= gap < np.inf):
        raise InputError(f"gap must be at least tau / {_FINEST}; got {gap!r}.")
    run = _Run(bundles, tau, gap)
    if int(run.active.sum()) <= _LARGEST:
        for reach in _REACHES:
            if run.upper - run.lower > gap:
                run.interior(gap, reach)
    if run.upper - run.lower > gap:
        run.go_on(gap)
    return Bracket(run.lower, run.upper)


class _Run:
    """One threshold, with the best certified bounds so far."""

    def __init__(self, bundles: Bundles, tau: float, gap: float) -> None:
        self.bundles, self.tau, self.gap = bundles, tau, gap
        self.tables = Tables(bundles)
        # Whoever is in at most tau copies is never deleted: their row cannot bind.
        self.active = bundles.loads() > tau
        self.lower, self.upper = 0.0, np.inf
        self.full = self.tables.slope[bundles.sizes - 1]

    def interior(self, gap: float, reach: float) -> None:
        problem = reduce(self.bundles, self.tau, self.active)
        run = BundleInterior(problem, reach)
        idle = 0
        for _ in range(_STEPS):
            before = self.upper - self.lower
            self._offer(problem, run.deletions(), *run.levels())
            idle = 0 if self.upper - self.lower < 0.99 * before else idle + 1
            if self.upper - self.lower <= gap or idle > _IDLE or not problem.count:
                return
            run.advance()

    def go_on(self, gap: float) -> None:
        """Go on with slower methods, the last of them exact, until the gap is certified."""
        problem = reduce(self.bundles, self.tau, self.active)
        bundles, leaves = len(problem.stems), len(problem.leaves)
        for x, levels in problem.program().attempts():
            kept, used, rises = np.split(levels, [bundles, bundles + leaves])[:3]
            heights = np.bincount(problem.term_owner, rises[: len(problem.term_owner)], bundles)
            self._offer(problem, x[: problem.count], kept, heights + problem.leaf_cost, used)
            if self.upper - self.lower <= gap:
                return

    def _offer(
        self, problem: Reduced, deleted: Array, kept: Array, height: Array, use: Array
    ) -> None:
        """Certify g of the active, S and R of bundles and w of leaves, the latter over tau."""
        deletions = np.zeros(self.bundles.count)
        deletions[self.active] = deleted
        heights, limits = self.full.copy(), np.full(len(self.full), np.inf)
        heights[problem.bundles] = height * self.tau
        if self.bundles.stems.shape[1] > 1:
            # With one participant as the stem S is as large as it can be; with two it may not be.
            limits[problem.bundles] = kept * self.tau
        uses = np.repeat(heights, self.bundles.sizes)
        uses[problem.places] = use * self.tau
        self._certify(deletions, limits, heights, uses)

    def _certify(self, deletions: Array, limits: Array, heights: Array, uses: Array) -> None:
        given = (self.bundles, self.tables, self.tau)
        self.upper = min(self.upper, upper_bound(*given, deletions))
        self.lower = max(self.lower, lower_bound(*given, limits, heights, uses))
        report("truncating", self.lower, self.upper, self.gap)


class BundleTruncation:
    """Truncated values and a public rule for thresholds, for stars and k_triangles under ``node``.

    It has the two methods of ``tulle.relations.truncation.totals.Truncation``. ``value`` is within
    the gap of X(tau) as defined in ``subgraph_bundles``: one node moves X(tau) by at most tau.

    ``decide`` says whether D(tau) <= level + eta, where D(tau) is the least fractional number of
    nodes to delete so that everyone left is in at most t(tau) *edges* (stars) or *triangles*
    (k_triangles), and t is a fixed increasing function (:func:`base_threshold`): a node of degree
    d is the centre of C(d, k) stars; nodes of a complete graph are in so many triangles and so many
    k-triangles. As the deletion value of a relation, D moves by at most one with one node,
    whatever t is; only accuracy depends on t. It spares the deletion problem on the far more
    numerous copies.
    """

    def __init__(self, query: Query, graph: Graph, *, eta: Number = ETA) -> None:
        if not isinstance(query, Stars | KTriangles):
            raise QueryError(f"{query} has no compact form; stars and k_triangles have.")
        self.query = query
        self.bundles = bundles_of(query, graph, "node")
        base = Edges() if isinstance(query, Stars) else Triangles()
        rows = base.copies(graph, nodes=True).nodes
        offsets = np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1]
        problem = PackingProblem(offsets, rows.reshape(-1), np.ones(len(rows)), graph.node_count)
        self.oracle = DeletionOracle(problem, eta=eta)

    def decide(self, tau: float, level: int) -> bool:
        """Say whether D(tau) is at most level + eta."""
        return self.oracle.decide(base_threshold(self.query, tau), level)

    def estimate(self, tau: float) -> float | None:
        """Return a guess at D(tau) from what is known so far."""
        return self.oracle.estimate(base_threshold(self.query, tau))

    def ceiling(self, tau: float) -> float:
        """Return a number that X(tau) is certainly not above, at the cost of one look."""
        # A copy has the stem and k leaves; who is above tau is deleted by that part.
        members = self.bundles.stems.shape[1] + self.bundles.k * self.bundles.leaves.shape[1]
        deletions = (self.bundles.loads() > tau) / members
        return upper_bound(self.bundles, Tables(self.bundles), tau, deletions)

    def value(self, tau: float, gap: float) -> float:
        """Return a number within half the gap of X(tau)."""
        return solve_bundles(self.bundles, tau, gap=gap).middle


def base_threshold(query: Query, tau: float) -> float:
    """Return t(tau): how many edges, or triangles, go with tau copies. A public function.

    Mechanisms raise the threshold at which D is small by a factor, because that is where many
    participants stick out. Copies grow faster than edges, so the factor is meant for the edges
    here: t(tau) = (edges that go with SPREAD·tau copies) / SPREAD.

    Example:
        >>> from tulle.graphs.queries.counts import stars
        >>> round(SPREAD * base_threshold(stars(2), 45.0 / SPREAD), 6)
        10.0
    """
    return _base(query, SPREAD * tau) / SPREAD


def _base(query: Query, tau: float) -> float:
    if isinstance(query, Stars):
        k = query.k
        return _inverse(lambda degree: _choose(degree, k), float(k - 1), tau)
    assert isinstance(query, KTriangles)
    k = query.k

    def load(degree: float) -> float:
        corners = degree * (degree - 1) / 2 * _choose(degree - 2, k - 1)
        return degree * _choose(degree - 1, k) + corners

    degree = _inverse(load, float(k), tau)
    return degree * (degree - 1) / 2


def _choose(value: float, k: int) -> float:
    """Return (value choose k) for real values, zero below k - 1."""
    if value <= k - 1:
        return 0.0
    if value == int(value) and value < 2**20:
        return float(comb(int(value), k))
    product = 1.0
    for step in range(k):
        product *= value - step
    return product / factorial(k)


def _inverse(function: Any, low: float, target: float) -> float:
    """Return where an increasing function that is 0 at ``low`` reaches the target."""
    high = low + 1.0
    while function(high) < target:
        high = low + 2.0 * (high - low)
    for _ in range(200):
        middle = (low + high) / 2
        if function(middle) < target:
            low = middle
        else:
            high = middle
    return high
