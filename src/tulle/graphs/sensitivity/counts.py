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

A mechanism whose noise follows the profile cannot publish its scale. It releases the spread, the
one number that governs the profile, and from that anyone can compute an interval.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar
from weakref import ReferenceType, ref

import numpy as np
import numpy.typing as npt

from tulle.core import registry, validate
from tulle.core.error_law import ErrorLaw, check_level, secret_size
from tulle.core.errors import InputError
from tulle.core.mechanism import Parameters, Settings
from tulle.core.source import Source
from tulle.core.validate import text
from tulle.graphs.data import Graph
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge

if TYPE_CHECKING:
    from tulle.graphs.queries.counts import ProfiledCount

Profile = list[int]
"""I_0, I_1, ... up to the public length; afterwards the global bound."""


@dataclass(frozen=True)
class Tuning:
    """What epsilon is divided into where nobody says otherwise.

    Not chosen on any data: the answer's noise grows by a ninth, which few would notice.
    """

    spread_share: Fraction = Fraction(1, 10)
    """Part of epsilon that buys the interval."""


_TUNING = Tuning()

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
    from tulle.graphs.kernels.counts import pair_front

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
    from tulle.graphs.kernels.counts import degrees, star_front

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
    from tulle.graphs.kernels.counts import pair_front

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
    from tulle.graphs.kernels.counts import pair_front
    from tulle.graphs.kernels.local_counts import k_triangle_local_sensitivity

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


# --- the spread, released for an interval -------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SpreadSettings(Settings):
    """What mechanisms that release the spread besides the answer share."""

    nodes: int
    epsilon_answer: Fraction
    epsilon_spread: Fraction

    @property
    def budget(self) -> SpreadBudget:
        """How epsilon is divided."""
        return SpreadBudget(self.epsilon_answer, self.epsilon_spread)


@dataclass(frozen=True)
class SpreadBudget:
    """How a mechanism divides epsilon: the answer, and the spread that its interval needs.

    A mechanism whose noise follows the data cannot publish the noise's scale: that is data. It
    spends a share of epsilon on a private spread instead, from which anyone can compute how wrong
    the answer may be.
    """

    answer: Fraction
    spread: Fraction

    @classmethod
    def of(cls, epsilon: Fraction, options: Parameters) -> SpreadBudget:
        """Divide epsilon by the option ``spread_share`` (0: no interval)."""
        share = validate.share(
            or_none=True, spread_share=options.get("spread_share", _TUNING.spread_share)
        )
        if share > Fraction(9, 10):
            raise InputError(f"spread_share must be at most 0.9; got {text(share)}.")
        return cls(epsilon * (1 - share), epsilon * share)

    def draw(self, spread: int, source: Source | None) -> tuple[int, Fraction] | None:
        """Return a private spread and its noise scale, or None when no interval was bought."""
        if self.spread == 0:
            return None
        scale = 1 / self.spread
        with charge(LaplaceCharge(1)):
            return spread + discrete_laplace(scale=scale, source=source), scale


def printed_note(printed: ErrorLaw, known: ErrorLaw) -> tuple[str, ...]:
    """Say in a plan how wide the interval will be that is printed with the answer."""
    width, needed = printed.half_width(0.95), known.half_width(0.95)
    about = f"{float(f'{width:.3g}'):,.10g}"
    wider = secret_size(width / needed if needed > 0 else math.inf)
    return (f"With the answer comes an interval of about ± {about}, {wider}.",)


def public_length(query: ProfiledCount, nodes: int, decay: Fraction) -> int:
    """Return the public place from which a profile may be the global bound at no cost.

    At exp(-decay) per step the global bound weighs less than exp(-60) from there on. No profile
    grows any more after 2n steps.
    """
    enough = (math.log(query.cap(nodes)) + 60) / float(decay)
    return int(min(math.ceil(enough), 2 * nodes + 2))


def upper_spread(private: int, scale: float, failure: float) -> int:
    """Return a bound on the true spread that fails with at most this probability."""
    if scale <= 0:
        return max(private, 0)
    q = math.exp(-1 / scale)
    # P(noise <= -(w + 1)) = q^(w+1) / (1 + q) must be at most the failure probability.
    w = math.ceil(scale * math.log(1 / ((1 + q) * failure)) - 1 + 1e-9)
    return max(private + max(w, 0), 0)


@dataclass(frozen=True)
class SpreadLaw(ErrorLaw):
    """An error law that holds whatever the graph, given its private spread.

    The released spread is s + Z, with the true one s and discrete Laplace noise Z. The half-width
    is that of a graph whose spread is larger than the released one by an allowance: the least d
    such that for every true spread the interval misses seldom enough,

        Σ_z P(Z = z)·P(error > w(max(s + z, 0) + d)) <= 1 - level,

    where w(s) is the half-width of one who knows the spread. Answer and spread have independent
    noise, so this is the probability of a miss; keeping a part of it for a spread that is too low
    would take wider intervals. Spreads are compared on a grid, up to where noise hardly matters.
    """

    query: str
    k: int
    nodes: int
    spread: int
    spread_scale: Fraction
    name: ClassVar[str]

    def question(self) -> ProfiledCount:
        """Return the question that the law is about."""
        factory = registry.find("query", "graph")[self.query]
        built: ProfiledCount = factory(self.k) if self.k else factory()
        return built

    def half_width(self, level: float) -> float:
        """Return the half-width at the level: that of a spread which is larger by the allowance."""
        failure = 1 - check_level(level)
        spread = max(self.spread, 0)
        if self.spread_scale:
            spread += _allowance(replace(self, spread=0), failure)
        return self.width_at(self.upper(spread), failure)

    @abstractmethod
    def width_at(self, spread: int, failure: float) -> float:
        """Return the half-width where the spread is known, that fails with this probability."""

    @property
    def wider(self) -> float:
        """How much of the interval is there because the spread is known with noise only."""
        known = self.width_at(self.upper(max(self.spread, 0)), 1 - 0.95)
        return self.half_width(0.95) / known if known > 0 else math.inf

    def variance(self) -> float:
        """Return about the mean squared error, were the spread the released one."""
        if self.spread_scale == 0:
            return super().variance()
        return replace(self, spread=max(self.spread, 0), spread_scale=Fraction(0)).variance()

    def upper(self, spread: int) -> int:
        """Return the spread cut at what so many nodes allow."""
        return min(spread, self.question().largest_spread(self.nodes))


_FARTHEST, _FINENESS = 8, 8
"""Spreads are compared up to so many scales of their noise, which is cut into such parts of one."""

_FAILURES = 16
"""At so many probabilities the error of a graph is told; between them its logarithm is a line."""


@lru_cache(maxsize=256)
def _allowance(law: SpreadLaw, failure: float) -> int:
    """Return how much larger than released a spread must be taken; see :class:`SpreadLaw`."""
    scale = float(law.spread_scale)
    rate = 1 / scale
    largest = upper_spread(0, scale, failure / 100)
    step = max(round(scale / 2), 1)
    farthest = math.ceil(_FARTHEST * scale)
    spreads = np.arange(0, farthest + step, step)
    noise = np.unique(np.round(np.arange(-farthest, farthest + 1, scale / _FINENESS)))
    # P(Z >= z); what lies below the first, or above the last, counts as these.
    above = np.exp(-rate * np.abs(np.where(noise > 0, noise, noise - 1))) / (1 + math.exp(-rate))
    above = np.where(noise > 0, above, 1 - above)
    above[0] = 1.0
    chances = above - np.append(above[1:], 0.0)
    failures = np.geomspace(0.8, failure / 30, _FAILURES)
    errors = [[law.width_at(law.upper(int(s)), f) for f in failures] for s in spreads]
    wide = np.arange(0, 2 * farthest + largest + 2 * step, step)
    widths = np.array([law.width_at(law.upper(int(s)), failure) for s in wide])

    def missed(more: int) -> float:
        worst = 0.0
        for spread, error in zip(spreads, errors, strict=True):
            reached = np.interp(np.maximum(spread + noise, 0) + more, wide, widths)
            logs = np.interp(reached, error, np.log(failures), left=0.0)
            worst = max(worst, float(chances @ np.exp(logs)))
        return worst

    low, high = -1, largest
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if missed(middle) > failure else (low, middle)
    return high
