"""A random graph with given joint degrees whose nodes lie in circles within circles.

The nodes of each kind are laid out along one line, which is halved, and halved again: two nodes
are as near as the smallest piece that holds both. Some edges look for the nearest node: they make
small dense circles. Some reach over a random distance, short or long alike: they make circles of
circles. Both stay inside a block. The rest lead anywhere.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.core.compiled import compiled, inner
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import count_triangles
from tulle.graphs.synthesis.edge_counts import closed_picks
from tulle.graphs.synthesis.generators.affinity import FixedParts
from tulle.graphs.synthesis.generators.edge_set import draw_below, empty_set, holds, key_of
from tulle.graphs.synthesis.generators.joint_fit import JointDegrees
from tulle.graphs.synthesis.generators.kinds import Kinds, Parts, sort_by_kind
from tulle.graphs.synthesis.generators.realise_joint import join, lay_out, place_rest
from tulle.graphs.synthesis.generators.tuning import Target, TriangleTargets
from tulle.noise.post_processing import Random


class Tuning(NamedTuple):
    """How near nodes are looked for, and how the pull is turned; compiled code reads it, too.

    Which networks chose these numbers is not on record.
    """

    spread: float = 0.4
    """The share of other ends that reach over a random distance.

    Edges of real networks that close no triangle do not lead just anywhere either. Without this,
    networks of all kinds come out with too little modularity and too short distances.
    """
    nearest: int = 1024
    """How many places are looked at for the nearest node."""
    further: int = 64
    """And for one at a distance that was drawn."""
    turns: int = 14
    """How many graphs are drawn."""
    fewer: int = 6
    large: int = 400_000
    """And so many from this number of edges on."""
    steps: tuple[float, float, float] = (1.0, 0.3, 0.5)
    """How the level answers to clustering and to triangles, and the slope to their difference."""
    tried: float = 0.9
    """The strongest pull alone must reach so much of what is asked; the slope may do the rest."""
    near_enough: float = 0.01
    levels: float = 12.0
    slopes: float = 4.0


_TUNING = Tuning()


class Pull(NamedTuple):
    """How many ends of edges stay near, by degree: the odds are exp(level)·(degree/mean)^slope."""

    level: float = -1.0
    slope: float = 0.0

    def of(self, kinds: Kinds) -> Floats:
        """Return the share for each kind."""
        relative = np.log(kinds.middle / kinds.room.mean())
        return np.asarray(1 / (1 + np.exp(-(self.level + self.slope * relative))))


def draw_nested(kinds: Kinds, pull: Pull, random: Random) -> Wholes:
    """Return the edges of a simple graph of these kinds of nodes.

    Example:
        >>> from tulle.noise import SeededSource
        >>> from tulle.noise import post_processing
        >>> ring = Kinds(np.array([[8]]), np.array([8]), np.full(8, 2), np.array([0]))
        >>> made = draw_nested(ring, Pull(level=9.0), post_processing(SeededSource(1)))
        >>> np.bincount(made.ravel()).tolist()
        [2, 2, 2, 2, 2, 2, 2, 2]
    """
    left, sizes, room, blocks = (part.astype(np.int64) for part in kinds)
    starts = np.append(0, np.cumsum(sizes))
    table = empty_set(int(np.triu(left).sum()))
    # Each edge has two ends, and either may look for the other as often as it has room.
    order = random.permutation(np.repeat(np.arange(len(room)), room))
    of_node, state = lay_out(room, starts)
    first = np.searchsorted(blocks, np.arange(int(blocks[-1]) + 2))
    own = np.column_stack([first[blocks], first[blocks + 1]])
    _place_near(order, pull.of(kinds), left, of_node, own, state, table, random)
    return place_rest(left, state, table, random)


def draw_joint(frame: FixedParts, joint: JointDegrees, pull: Pull, random: Random) -> Wholes:
    """Return the edges of a graph with this frame and these joint degrees."""
    kinds, names = sort_by_kind(joint, frame.degrees, random, Parts(frame.blocks, frame.counts))
    return np.asarray(names[draw_nested(kinds, pull, random)])


@inner
def _kind_of_other(left: Any, one: Any, first: Any, last: Any, random: Any) -> Any:
    """Return a kind that edges are left to, each as often as there are; -1 when there is none."""
    total = 0
    for kind in range(first, last):
        total += left[one, kind]
    if total == 0:
        return -1
    drawn = draw_below(total, random)
    kind = first
    while drawn >= left[one, kind]:
        drawn -= left[one, kind]
        kind += 1
    return kind


@compiled
def _place_near(
    order: Any,
    near: Any,
    left: Any,
    kinds: Any,
    own: Any,
    state: Any,
    table: Any,
    random: Any,
) -> None:
    """Let the nodes of the order, one end each time they come, join a node on their line."""
    room, starts = state[0], state[1]
    nodes = len(room)
    for which in range(len(order)):
        x = order[which]
        one = kinds[x]
        if room[x] == 0:
            continue
        stays = random.random() < near[one]
        if not stays and random.random() >= _TUNING.spread:
            continue
        other = _kind_of_other(left, one, own[one, 0], own[one, 1], random)
        if other < 0:
            continue
        size = starts[other + 1] - starts[other]
        # The place beside x on the line of the other kind; places p and q are in one piece of
        # 2^k places when p ^ q < 2^k.
        place = (2 * (x - starts[one]) + 1) * size // (2 * (starts[one + 1] - starts[one]))
        width = 1
        while width < size:
            width *= 2
        step = 0
        stop = min(width, _TUNING.nearest)
        if not stays:
            step = int(np.exp(random.random() * np.log(width)))
            stop = min(width, step + _TUNING.further)
        while step < stop:
            rank = place ^ step
            step += 1
            if rank >= size:
                continue
            y = starts[other] + rank
            if room[y] > 0 and y != x and not holds(table, key_of(x, y, nodes)):
                join(x, y, one, other, nodes, left, state, table)
                break


class Nested(NamedTuple):
    """A graph, and by how much, as logarithms, it has more triangles and clustering than wanted."""

    edges: Wholes
    triangles: float
    closure: float

    @property
    def off(self) -> float:
        """How far both are off together."""
        return abs(self.triangles) + abs(self.closure)

    def reaches(self, part: float) -> bool:
        """Say whether it has this part of the triangles and of the clustering at least."""
        return min(self.triangles, self.closure) >= math.log(part)


def fit_nested(
    frame: FixedParts, joint: JointDegrees, targets: TriangleTargets, part: float, random: Random
) -> Nested | None:
    """Return a graph of circles within circles with this frame and these joint degrees.

    Small degrees weigh more in clustering than in triangles: the level of the pull follows the
    first, its slope over degrees the difference of both. None if it cannot have this part of the
    triangles and of the clustering that are wanted: cliques of unlike degrees are beyond it.
    """
    degrees = frame.degrees
    kinds, names = sort_by_kind(joint, degrees, random, Parts(frame.blocks, frame.counts))

    def draw(pull: Pull) -> Nested:
        edges = names[draw_nested(kinds, pull, random)]
        return Nested(edges, *_shows(Graph.from_edges(edges, nodes=len(degrees)), targets))

    if not draw(Pull(_TUNING.levels)).reaches(_TUNING.tried * part):
        return None
    best: Nested | None = None
    pull = Pull()
    for _ in range(_TUNING.fewer if int(degrees.sum()) > 2 * _TUNING.large else _TUNING.turns):
        made = draw(pull)
        if best is None or made.off < best.off:
            best = made
        if made.off < _TUNING.near_enough:
            break
        more, closer = (float(np.clip(-by, -1, 1)) for by in (made.triangles, made.closure))
        level = pull.level + _TUNING.steps[0] * closer + _TUNING.steps[1] * more
        slope = pull.slope + _TUNING.steps[2] * (more - closer)
        pull = Pull(
            float(np.clip(level, -_TUNING.levels, _TUNING.levels)),
            float(np.clip(slope, -_TUNING.slopes, _TUNING.slopes)),
        )
    return best if best is not None and best.reaches(part) else None


def _shows(graph: Graph, targets: TriangleTargets) -> tuple[float, float]:
    """Return how far triangles and clustering are above what is wanted, as logarithms."""
    closed = _log_apart(targets.triangles, count_triangles(graph))
    closing = _log_apart(targets.closure, closed_picks(graph, targets.closure_limit))
    if targets.triangles is None or targets.closure is None:
        closed = closing = closed + closing
    return closed, closing


def _log_apart(target: Target | None, made: int) -> float:
    """Return the logarithm of made to target; what is within the noise hardly counts."""
    if target is None:
        return 0.0
    wanted = max(target.value, 0.0)
    room = 1 + target.noise
    return math.log((made + room) / (wanted + room))
