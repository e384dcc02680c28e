"""Turn the pull of near nodes until circles within circles show the private counts."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tulle.core.arrays import Wholes
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import count_triangles
from tulle.graphs.synthesis.edge_counts import closed_picks
from tulle.graphs.synthesis.generators.affinity import Frame
from tulle.graphs.synthesis.generators.joint_fit import JointDegrees
from tulle.graphs.synthesis.generators.kinds import Parts, sort_by_kind
from tulle.graphs.synthesis.generators.nested import Pull, draw_nested
from tulle.graphs.synthesis.generators.targets import Target, Targets
from tulle.noise.post_processing import Random

TURNS = 14
"""How many graphs are drawn."""

_FEWER = 6
_LARGE = 400_000
"""And so many from this number of edges on."""

_STEPS = (1.0, 0.3, 0.5)
"""How the level answers to clustering and to triangles, and the slope to their difference."""

_TRIED = 0.9
"""The strongest pull alone must reach so much of what is asked: the slope may bring the rest."""

_NEAR_ENOUGH = 0.01
_LEVELS = 12.0
_SLOPES = 4.0


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
    frame: Frame, joint: JointDegrees, targets: Targets, part: float, random: Random
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

    if not draw(Pull(_LEVELS)).reaches(_TRIED * part):
        return None
    best: Nested | None = None
    pull = Pull()
    for _ in range(_FEWER if int(degrees.sum()) > 2 * _LARGE else TURNS):
        made = draw(pull)
        if best is None or made.off < best.off:
            best = made
        if made.off < _NEAR_ENOUGH:
            break
        more, closer = (float(np.clip(-by, -1, 1)) for by in (made.triangles, made.closure))
        level = pull.level + _STEPS[0] * closer + _STEPS[1] * more
        slope = pull.slope + _STEPS[2] * (more - closer)
        pull = Pull(
            float(np.clip(level, -_LEVELS, _LEVELS)), float(np.clip(slope, -_SLOPES, _SLOPES))
        )
    return best if best is not None and best.reaches(part) else None


def _shows(graph: Graph, targets: Targets) -> tuple[float, float]:
    """Return how far triangles and clustering are above what is wanted, as logarithms."""
    closed = _apart(targets.triangles, count_triangles(graph))
    closing = _apart(targets.closure, closed_picks(graph, targets.closure_limit))
    if targets.triangles is None or targets.closure is None:
        closed = closing = closed + closing
    return closed, closing


def _apart(target: Target | None, made: int) -> float:
    """Return the logarithm of made to target; what is within the noise hardly counts."""
    if target is None:
        return 0.0
    wanted = max(target.value, 0.0)
    room = 1 + target.noise
    return math.log((made + room) / (wanted + room))
