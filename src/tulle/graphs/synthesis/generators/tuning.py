"""Bring a graph to several private counts at once, by swaps that keep every degree.

The counts are released before, so all of this is post-processing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.core.compiled import compiled, inner
from tulle.graphs.synthesis.generators.edge_set import draw_below
from tulle.graphs.synthesis.generators.mixing import MixingCounts, State, keep_swap, weigh_swap
from tulle.graphs.synthesis.generators.swapping import (
    ENOUGH,
    SwapGraph,
    build_swap_graph,
    is_loose,
    may_swap,
    swap_edges,
    weigh_triangles,
)
from tulle.graphs.synthesis.joint_degrees.scores import ScoredEdges
from tulle.noise.post_processing import Random


class Target(NamedTuple):
    """A private count and the standard deviation of its noise; None where it was not measured."""

    value: float
    noise: float


class TriangleTargets(NamedTuple):
    """What the graph should show."""

    triangles: Target | None
    closure: Target | None
    closure_limit: int
    mixing: MixingCounts | None
    correlation: ScoredEdges | None = None
    """How alike the degrees of joined nodes are."""


_STAGES = np.array(
    [
        (0.3, 0, 0.02),
        (0.3, 0, 0.2),
        (0.3, 1, 0.2),
        (0.3, 1, np.inf),
        (0.3, 2, np.inf),
        (0.6, 2, np.inf),
        (1.0, 2, np.inf),
    ]
)
"""What a swap may do, in turn: little first.

An edge that moves has ends that share at most this part of their neighbours: others hold a circle
together. New edges join nodes that are near (0), not far (1), or any (2). And so many swaps, as
part of all edge ends, must be enough to take away all that is off: each must bring its part.
"""


class Tuning(NamedTuple):
    """How swaps are proposed and judged; a named tuple, which compiled code can read.

    Which networks chose these numbers is not on record: results of ``benchmarks/synthetic.py``
    count as in-sample.
    """

    far: float = 0.15
    """When more than this part of the triangles is off, the last stage comes first."""
    very_far: float = 0.3
    """And when more than this is, triangles count more than all else."""
    period: int = 60
    """So much work for each edge end is one period.

    At a pace that would not take away all that is off with half of the work that is left, the next
    stage begins.
    """
    periods: int = 60
    """There are at least so many periods, where that leaves some work for each."""
    least_period: int = 50_000
    hopeless: float = 0.001
    """When a period takes away less than this part of what is off, in the last stage, it ends."""
    last: int = 4
    """The last part of the work, one in so many, is for the triangles."""
    exact: float = 4.0
    """How much more a triangle counts in each stage after those."""
    rises: int = 4
    """How many these are."""
    mixing: float = 1e-4
    """What a cell of the mixing that is off by its noise costs, beside relative errors."""
    slight: float = 0.02
    """Correlations of degrees below this are all alike."""
    near: float = 0.002
    """Clustering and correlation are not asked to be nearer than this, relatively."""
    tries: tuple[int, int] = (2, 8)
    """Of so many edges of a node, the one in the fewest triangles is taken; of more when far off.

    Loose edges are the ways between circles: where too many of them go, distances grow.
    """
    kinds: int = 8
    seldom: float = 0.03
    """The chance that each kind of proposal keeps, however little it brings."""
    learning: int = 500
    """After so many proposals the chances are set anew."""
    forgetting: float = 0.98
    step: int = 50
    """What a proposal costs beside the neighbours it looks at."""


_TUNING = Tuning()


class Aim(NamedTuple):
    """A number that the graph should show, and how near is near enough."""

    value: float
    tolerance: float = 0.0


class Aims(NamedTuple):
    """What the graph should show; None where nothing is asked."""

    triangles: Aim | None = None
    clustering: Aim | None = None
    """The sum of all nodes' clustering coefficients."""
    products: Aim | None = None
    """The sum, over edges, of the product of the degrees of both ends."""
    mixing: MixingCounts | None = None


class _Score(NamedTuple):
    """Triangles, clustering, products and the cost of the mixing, for compiled code."""

    now: Floats
    wanted: Floats
    room: Floats
    price: Floats
    """What it costs to be off by one."""
    moved: Floats
    """By how much the swap that is looked at moves them."""


class _Habit(NamedTuple):
    """What each kind of proposal brought, for which work, and how often it is made next."""

    gained: Floats
    spent: Floats
    until: Floats


def tune(
    edges: Wholes, blocks: Wholes, aims: Aims, work: int, random: Random, gently: bool = False
) -> Wholes:
    """Return the edges after swaps that bring about all that is aimed at, as nearly as can be.

    A swap exchanges the ends of two edges; it keeps all degrees, the number of edges between
    blocks, and the graph simple. One is made when what is off, in all counts together, becomes
    less. At first each swap must bring much, join what is near, and leave dense circles alone;
    what cannot be had so may cost more of the structure. It stops when all is there, when nothing
    helps any more, or after so much work, in looked-at neighbours. The triangles come first where
    not all can be had; where many are off, any swap will do at once, unless ``gently``.

    Example:
        >>> from tulle.graphs.data import Graph
        >>> from tulle.graphs.kernels.counts import count_triangles
        >>> from tulle.noise import SeededSource
        >>> from tulle.noise.post_processing import post_processing
        >>> ring = np.array([(i, (i + 1) % 6) for i in range(6)])
        >>> made = tune(
        ...     ring,
        ...     np.zeros(6, dtype=np.int64),
        ...     Aims(triangles=Aim(2)),
        ...     100_000,
        ...     post_processing(SeededSource(1)),
        ... )
        >>> count_triangles(Graph.from_edges(made))
        2
    """
    if len(edges) < 2:
        return edges
    network = build_swap_graph(edges, blocks)
    if not len(network.able):
        return edges
    score = _score(edges, network, aims)
    mixing = aims.mixing
    if mixing is not None and len(mixing.wanted) > 1:
        state = State.of(mixing, edges, network.degrees)
        width = len(state.apart)
        score.now[3], score.room[3] = state.cost(), ENOUGH * width * (width + 1)
        score.price[3] = _TUNING.mixing
    else:
        state = State.none(len(blocks))
    kinds = _TUNING.kinds
    before = _off_by(score) / len(network.neighbours)
    habit = _Habit(np.full(kinds, before), np.full(kinds, 1000.0), np.zeros(kinds))
    far = np.inf if gently else _TUNING.far
    _swap_towards(network, state, score, habit, work, far, random)
    return network.edges


def off_by(edges: Wholes, blocks: Wholes, aims: Aims) -> float:
    """Return how far a graph is from its aims, as a sum of relative errors; the mixing aside."""
    return _off_by(_score(edges, build_swap_graph(edges, blocks), aims))


def _score(edges: Wholes, network: SwapGraph, aims: Aims) -> _Score:
    """Return where a graph stands; relative errors cost alike."""
    degrees = network.degrees
    now, wanted, room, price, moved = np.zeros((5, 4))
    now[0], now[1] = network.triangles, network.clustering
    now[2] = (degrees[edges[:, 0]] * degrees[edges[:, 1]]).sum()
    if (aim := aims.triangles) is not None:
        wanted[0], room[0] = round(max(aim.value, 0.0)), aim.tolerance
        price[0] = 1 / (wanted[0] + aim.tolerance + 10)
    if (aim := aims.clustering) is not None:
        wanted[1] = min(max(aim.value, 0.0), len(network.able))
        room[1] = max(aim.tolerance, _TUNING.near * wanted[1])
        price[1] = 1 / (wanted[1] + room[1] + 1)
    mean = float(degrees @ degrees) / max(int(degrees.sum()), 1)
    spread = float(degrees @ (degrees - mean) ** 2) / 2
    if (aim := aims.products) is not None and spread > 0:
        # Beside chance: the error of the correlation, relative to it.
        apart = max(abs(aim.value - mean**2 * len(edges)), _TUNING.slight * spread)
        wanted[2], room[2] = aim.value, max(aim.tolerance, _TUNING.near * apart)
        price[2] = 1 / (apart + room[2])
    return _Score(now, wanted, room, price, moved)


def _off_by(score: _Score) -> float:
    """Return what it costs that the graph is not there yet."""
    apart = np.abs(score.now - score.wanted) - score.room
    return float(score.price @ np.maximum(apart, 0.0))


@inner
def _off(score: Any, rank: Any, moved: Any) -> Any:
    """Return what it costs that a count is off, once it has moved."""
    apart = abs(score.now[rank] + moved - score.wanted[rank]) - score.room[rank]
    return score.price[rank] * max(apart, 0.0)


@inner
def _gain(score: Any, first: Any, last: Any) -> Any:
    """Return by how much less counts ``first`` ... ``last`` - 1 are off after the swap."""
    gain = 0.0
    for rank in range(first, last):
        gain += _off(score, rank, 0.0) - _off(score, rank, score.moved[rank])
    return gain


@inner
def _cost(score: Any, first: Any, last: Any) -> Any:
    cost = 0.0
    for rank in range(first, last):
        cost += _off(score, rank, 0.0)
    return cost


@inner
def _learn(habit: Any) -> None:
    """Let kinds of proposals that bring more for their work come more often."""
    whole = 0.0
    for kind in range(_TUNING.kinds):
        whole += habit.gained[kind] / habit.spent[kind]
    total = 0.0
    for kind in range(_TUNING.kinds):
        share = habit.gained[kind] / habit.spent[kind] / whole
        total += _TUNING.seldom + (1 - _TUNING.kinds * _TUNING.seldom) * share
        habit.until[kind] = total
        habit.gained[kind] = max(_TUNING.forgetting * habit.gained[kind], 1e-30)
        habit.spent[kind] *= _TUNING.forgetting


@inner
def _place_of(network: Any, node: Any, random: Any) -> Any:
    """Return a random place of a node."""
    return network.offsets[node] + draw_below(network.degrees[node], random)


@inner
def _step(network: Any, place: Any, random: Any) -> Any:
    """Return a random place of the node that a place leads to."""
    return _place_of(network, network.neighbours[place], random)


@inner
def _loosest(network: Any, node: Any, tries: Any, random: Any) -> Any:
    """Return, of some places of a node in a row, the one whose edge is in the fewest triangles."""
    first, degree = network.offsets[node], network.degrees[node]
    rank = draw_below(degree, random)
    best = first + rank
    for _ in range(min(tries, degree) - 1):
        rank = rank + 1 if rank + 1 < degree else 0
        if network.shared[first + rank] < network.shared[best]:
            best = first + rank
    return best


@inner
def _propose(network: Any, kind: Any, reach: Any, tries: Any, random: Any) -> Any:
    """Return the places, at a and at c, of two edges (a, x), (c, y) to become (a, c), (x, y).

    Kinds 0 to 3 join a and c, who have a common neighbour, 0 and 1 at the cost of edges in few
    triangles; 4 and 5 take an edge out of a triangle; 6 takes two edges near each other; 7 any
    two. Of two kinds, the odd one starts at any node, the even one at any edge, so that nodes of
    high degree come up more often. -1 stands for none.
    """
    if kind % 2 and kind < 6:
        start = network.able[draw_below(len(network.able), random)]
    else:
        start = network.neighbours[draw_below(len(network.neighbours), random)]
    first = _place_of(network, start, random)
    if kind == 7:
        return (first, draw_below(len(network.neighbours), random)) if reach > 1 else (-1, -1)
    second = _step(network, first, random)
    end = network.neighbours[second]
    if end == start:
        return -1, -1
    if kind < 4:
        tries = tries if kind < 2 else 1
        return _loosest(network, start, tries, random), _loosest(network, end, tries, random)
    third = _step(network, second, random)
    if kind == 6:
        # Along a path a - x - c - y: x and c exchange a neighbour.
        return first, third if reach < 1 else _step(network, third, random)
    if network.neighbours[third] != start:
        return -1, -1
    if random.random() < 0.5:
        first = network.mates[first]
    if reach > 1 and random.random() < 0.5:
        return first, draw_below(len(network.neighbours), random)
    return first, _step(network, _step(network, second, random), random)


@compiled
def _swap_towards(
    network: Any, state: Any, score: Any, habit: Any, work: Any, far: Any, random: Any
) -> None:
    period = max(
        min(_TUNING.period * len(network.neighbours), work // _TUNING.periods), _TUNING.least_period
    )
    stages = len(_STAGES) - 1
    before = _cost(score, 0, 4)
    stage = stages if _off(score, 0, 0.0) > far else 0
    tries = _TUNING.tries[1] if _off(score, 0, 0.0) > _TUNING.very_far else _TUNING.tries[0]
    done, turn, until = 0, 0, period
    least = surely = loose = reach = 0.0
    while done < work:
        if turn % _TUNING.learning == 0:
            cost = _cost(score, 0, 4)
            last = stage < stages + _TUNING.rises and done > work - work // _TUNING.last
            if last or done > until:
                # In the end any pace will do.
                slow = (
                    2 * period / (work - done)
                    if stage < stages + _TUNING.rises
                    else _TUNING.hopeless
                )
                if last or before - cost < slow * cost:
                    stage += 1
                    if stage > stages + _TUNING.rises:
                        return
                    if stage > stages:
                        score.price[0] *= _TUNING.exact
                        cost = _cost(score, 0, 4)
                before = cost
                until = done + period
            if cost == 0.0:
                return
            _learn(habit)
            rank = min(stage, stages)
            loose, reach = _STAGES[rank, 0], _STAGES[rank, 1]
            least = cost / (_STAGES[rank, 2] * len(network.neighbours))
            surely = _cost(score, 2, 4) / cost
        turn += 1
        drawn = random.random()
        kind = 0
        while kind < _TUNING.kinds - 1 and drawn > habit.until[kind]:
            kind += 1
        done += _TUNING.step
        habit.spent[kind] += _TUNING.step
        ax, cy = _propose(network, kind, reach, tries, random)
        if ax < 0:
            continue
        x, y = network.neighbours[ax], network.neighbours[cy]
        a, c = network.neighbours[network.mates[ax]], network.neighbours[network.mates[cy]]
        if not (is_loose(network, ax, loose) and is_loose(network, cy, loose)):
            continue
        # Two nodes with no other neighbour would be cut off from the rest.
        if max(network.degrees[a], network.degrees[c]) == 1:
            continue
        if max(network.degrees[x], network.degrees[y]) == 1:
            continue
        if not may_swap(network, a, x, c, y):
            continue
        # Degrees are known at once: where most of what is off lies there, do not look further.
        score.moved[2] = (network.degrees[a] - network.degrees[y]) * (
            network.degrees[c] - network.degrees[x]
        )
        number = 0
        if score.price[3] > 0:
            score.moved[3], number = weigh_swap(state, a, y, c, x)
        if _gain(score, 2, 4) < surely * least and random.random() < surely:
            continue
        looked = weigh_triangles(network, ax, cy, score.moved)
        done += looked
        habit.spent[kind] += looked
        gain = _gain(score, 0, 4)
        if gain <= least:
            continue
        habit.gained[kind] += gain
        for rank in range(4):
            score.now[rank] += score.moved[rank]
        if score.price[3] > 0:
            keep_swap(state, number)
        swap_edges(network, ax, cy)
