"""Turn the pull of near nodes until circles within circles show the private counts."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tulle.graphs.data import Graph
from tulle.graphs.kernels import count_triangles
from tulle.graphs.synthesis.affinity import Frame
from tulle.graphs.synthesis.auto_parts import closed_picks
from tulle.graphs.synthesis.joint_classes import soft_classes
from tulle.graphs.synthesis.joint_fit import fit_joint
from tulle.graphs.synthesis.kinds import Kinds, Parts, sort_by_kind
from tulle.graphs.synthesis.nested import Pull, draw_nested
from tulle.graphs.synthesis.targets import Target, Targets
from tulle.noise.afterwards import Random

Wholes = npt.NDArray[np.int64]

TURNS = 14
"""How many graphs are drawn."""

_FEWER = 6
_LARGE = 400_000
"""And so many from this number of edges on."""

_STEPS = (1.0, 0.3, 0.5)
"""How the level answers to clustering and to triangles, and the slope to their difference."""

_NEAR_ENOUGH = 0.01
_LEVELS = 12.0
_SLOPES = 4.0


class Nested(NamedTuple):
    """A graph, and how far its triangles and its clustering are off, as logarithms."""

    edges: Wholes
    triangles: float
    closure: float
    products: float
    """The sum, over edges, of the product of the degrees of both ends, that it should have."""

    def reaches(self, part: float) -> bool:
        """Say whether it has this part of the triangles and of the clustering at least."""
        return min(self.triangles, self.closure) >= math.log(part)


def fit_nested(frame: Frame, targets: Targets, random: Random) -> Nested:
    """Return a graph of circles within circles with this frame, near the targets.

    Small degrees weigh more in clustering than in triangles: the level of the pull follows the
    first, its slope over degrees the difference of both.
    """
    degrees = frame.degrees
    kinds, names, products = _arrange(frame, targets, random)
    best = Nested(np.empty((0, 2), dtype=np.int64), 0.0, 0.0, products)
    least = math.inf
    pull = Pull()
    for _ in range(_FEWER if int(degrees.sum()) > 2 * _LARGE else TURNS):
        edges = names[draw_nested(kinds, pull, random)]
        graph = Graph.from_edges(edges, nodes=len(degrees))
        closed, closing = _missing(graph, targets)
        off = abs(closed) + abs(closing)
        if off < least:
            least, best = off, Nested(edges, -closed, -closing, products)
        if off < _NEAR_ENOUGH:
            break
        closed, closing = float(np.clip(closed, -1, 1)), float(np.clip(closing, -1, 1))
        level = pull.level + _STEPS[0] * closing + _STEPS[1] * closed
        slope = pull.slope + _STEPS[2] * (closed - closing)
        pull = Pull(
            float(np.clip(level, -_LEVELS, _LEVELS)), float(np.clip(slope, -_SLOPES, _SLOPES))
        )
    return best


def _arrange(frame: Frame, targets: Targets, random: Random) -> tuple[Kinds, Wholes, float]:
    """Return the kinds of nodes with an edge, the name of each node, and the products."""
    classes = soft_classes(max(len(frame.degrees), 2), Fraction(4))
    noisy, noise = np.zeros((classes.count, classes.count)), math.inf
    if (mixing := targets.mixing) is not None:
        classes, noisy, noise = mixing.classes, mixing.wanted, mixing.noise
    joint = fit_joint(frame.degrees, noisy, noise, classes, random)
    degree = joint.degrees.astype(np.float64)
    products = float(degree @ np.triu(joint.edges) @ degree)
    kinds, names = sort_by_kind(joint, frame.degrees, random, Parts(frame.blocks, frame.counts))
    return kinds, names, products


def _missing(graph: Graph, targets: Targets) -> tuple[float, float]:
    """Return how much is missing of triangles and of clustering, as logarithms."""
    closed = _apart(targets.triangles, count_triangles(graph))
    closing = _apart(targets.closure, closed_picks(graph, targets.closure_limit))
    if targets.triangles is None or targets.closure is None:
        closed = closing = closed + closing
    return closed, closing


def _apart(target: Target | None, made: int) -> float:
    """Return the logarithm of target to made; what is within the noise hardly counts."""
    if target is None:
        return 0.0
    wanted = max(target.value, 0.0)
    room = 1 + target.noise
    return math.log((wanted + room) / (made + room))
