"""Turn the knobs of a random graph until it shows the private counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tulle.core.arrays import Wholes
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import count_triangles, triangles_per_node
from tulle.graphs.synthesis.auto.tuning import TUNING
from tulle.graphs.synthesis.edge_counts import closed_picks
from tulle.graphs.synthesis.generators.affinity import FixedParts, Knobs, draw_affinity, draw_parts
from tulle.graphs.synthesis.generators.joint_fit import JointDegrees, fit_joint
from tulle.graphs.synthesis.generators.mixing import MixingCounts
from tulle.graphs.synthesis.generators.nested import Pull, draw_joint, fit_nested
from tulle.graphs.synthesis.generators.swapping import steer
from tulle.graphs.synthesis.generators.tuning import (
    Aim,
    Aims,
    Target,
    TriangleTargets,
    off_by,
    tune,
)
from tulle.graphs.synthesis.joint_degrees.classes import soft_classes
from tulle.graphs.synthesis.joint_degrees.scores import ScoredEdges
from tulle.noise.post_processing import Random

_TUNING = TUNING.fit


class Tried(NamedTuple):
    """A graph that was drawn, and what it shows."""

    score: float
    edges: Wholes
    free: int
    triangles: int
    closure: int
    misfit: float
    knobs: Knobs


def fit_graph(frame: FixedParts, targets: TriangleTargets, random: Random) -> Wholes:
    """Return the edges of a graph with this frame that shows the targets as nearly as found.

    Circles within circles, where they reach the triangles and the clustering; dense groups where
    they do not. At last, swaps bring all targets about together.

    Groups of nodes of like degree are often cut off from each other. Swaps alone can make all
    triangles, too: each joins nodes that have a neighbour in common already, so that small dense
    circles hang on the rest as they do where people write papers together. Where that reaches
    nearly as much and holds more nodes together, it is taken.
    """
    joint = joint_of(frame.degrees, targets.mixing, random, targets.correlation)
    products = aim_of(joint)
    nested = fit_nested(frame, joint, targets, _TUNING.reached, random)
    if nested is not None:
        aims = aims_of(nested.edges, frame, targets, products, random)._replace(mixing=None)
        return finish(nested.edges, frame, aims, random)
    if (mixing := targets.mixing) is not None:
        one = FixedParts(frame.degrees, np.zeros_like(frame.blocks), frame.counts[:1, :1] * 0)
        if targets.correlation is None:
            chance = mixing.table(draw_affinity(one, Knobs(closing=0.0), random), frame.degrees)
        else:
            chance = joint.table(mixing.classes)
        targets = targets._replace(mixing=mixing.shrunk(chance))
    search = _Search(frame, targets, random)
    best = search.run()
    edges = best.edges
    if (mixing := targets.mixing) is not None:
        attempts = _TUNING.last_steering * len(edges)
        edges = steer(edges, best.free, frame.degrees, frame.blocks, mixing, attempts, random)
    aims = aims_of(edges, frame, targets, products, random)
    grouped = finish(edges, frame, aims, random)
    if search.few:
        return grouped
    aims = aims._replace(mixing=None)
    start = draw_joint(frame, joint, Pull(_TUNING.loose), random)
    swapped = finish(start, frame, aims, random, gently=True)
    further = off_by(swapped, frame.blocks, aims) - off_by(grouped, frame.blocks, aims)
    nodes = len(frame.degrees)
    whole = largest_part(swapped, nodes) > largest_part(grouped, nodes)
    return swapped if whole and further <= _TUNING.as_near else grouped


def largest_part(edges: Wholes, nodes: int) -> int:
    """Return how many nodes the largest connected part has.

    Example:
        >>> largest_part(np.array([(0, 1), (1, 2), (3, 4)]), 6)
        3
    """
    links = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(nodes, nodes))
    return int(np.bincount(connected_components(links, directed=False)[1]).max())


def joint_of(
    degrees: Wholes,
    mixing: MixingCounts | None,
    random: Random,
    correlation: ScoredEdges | None = None,
) -> JointDegrees:
    """Return the joint degrees that both say; those of chance where they say nothing."""
    classes = (
        soft_classes(max(len(degrees), 2), _TUNING.coarse) if mixing is None else mixing.classes
    )
    if mixing is None:
        nothing = np.zeros((classes.count, classes.count))
        return fit_joint(degrees, nothing, math.inf, classes, random, correlation)
    return fit_joint(degrees, mixing.wanted, mixing.noise, classes, random, correlation)


def aim_of(joint: JointDegrees) -> Aim:
    """Return the sum, over edges, of the product of the degrees of both ends."""
    degree, number = joint.degrees.astype(np.float64), np.triu(joint.edges)
    ends = joint.degrees * joint.nodes
    count = max(float(ends.sum()), 1.0)
    variance = float(ends @ degree**2) / count - (float(ends @ degree) / count) ** 2
    return Aim(float(degree @ number @ degree), _TUNING.correlated * variance * count / 2)


def aims_of(
    edges: Wholes, frame: FixedParts, targets: TriangleTargets, products: Aim | None, random: Random
) -> Aims:
    """Return what swaps should bring about; what the picks mean is seen on these edges."""
    triangles = clustering = None
    if targets.triangles is not None:
        triangles = Aim(round(max(targets.triangles.value, 0.0)))
    if targets.closure is not None:
        clustering = _clustering(
            edges, frame.degrees, targets.closure, targets.closure_limit, random
        )
    return Aims(triangles, clustering, products, targets.mixing)


def finish(
    edges: Wholes, frame: FixedParts, aims: Aims, random: Random, gently: bool = False
) -> Wholes:
    """Return the edges after swaps that bring all aims about, as nearly as can be."""
    work = min(max(_TUNING.work_per_edge * len(edges), _TUNING.least_work), _TUNING.most_work)
    return tune(edges, frame.blocks, aims, work, random, gently=gently)


def _clustering(
    edges: Wholes, degrees: Wholes, target: Target, limit: int, random: Random
) -> Aim | None:
    """Return the sum of clustering coefficients at which so many picks are closed.

    Picks go by the nodes' numbers, and pairs that many pick count less: how the two compare is
    seen on the graph at hand, under other numbers.
    """
    nodes = len(degrees)
    graph = Graph.from_edges(edges, nodes=nodes)
    pairs = degrees * (degrees - 1) / 2
    held = float((triangles_per_node(graph) / np.maximum(pairs, 1)).sum())
    picked = [
        closed_picks(Graph.from_edges(random.permutation(nodes)[edges], nodes=nodes), limit)
        for _ in range(_TUNING.renumbered)
    ]
    often = float(np.mean(picked))
    if not held or not often:
        return None
    rate = held / often
    return Aim(max(target.value, 0.0) * rate, target.noise * rate * _TUNING.within)


class _Search:
    """Each knob moves one count most: they are searched in turn, and the best graph is kept."""

    def __init__(self, frame: FixedParts, targets: TriangleTargets, random: Random) -> None:
        self.frame, self.targets, self.random = frame, targets, random
        self.best: Tried | None = None
        self.few = int(frame.degrees.sum()) > 2 * _TUNING.large
        self.steering = 1 if self.few else _TUNING.steering

    def run(self) -> Tried:
        few = self.few
        knobs = Knobs(near=self._near())
        for turn in range(1 if few else 2):
            knobs = self._triangles(knobs, 0.0, 3.0, 5 if few else 6)
            knobs = self._closure(knobs, 2 if few else 4)
            knobs = self._mixing(knobs) if turn == 0 else knobs
        reach = 0.3 if few else 0.5
        low = max(knobs.closing - reach, 0.0)
        self._triangles(knobs, low, knobs.closing + reach, 3 if few else 5)
        assert self.best is not None
        return self.best

    def _near(self) -> float:
        """Return the share of other ends that stay near, from the clustering.

        Nothing affordable says how far a network's other edges lead. In networks made of circles
        they mostly lead to circles nearby; where clustering is low, anywhere.
        """
        target = self.targets.closure
        able = int((self.frame.degrees > 1).sum())
        if target is None or able == 0:
            return 0.0
        return _TUNING.near * min(max(target.value / able, 0.0), 0.75) ** 2

    def _triangles(self, knobs: Knobs, low: float, high: float, steps: int) -> Knobs:
        target = self.targets.triangles
        if target is None:
            self._try(knobs)
            return knobs
        return self._halve(
            lambda value: knobs._replace(closing=value),
            lambda tried: tried.triangles < target.value,
            low,
            high,
            steps,
        )

    def _mixing(self, knobs: Knobs) -> Knobs:
        """Return the knobs with groups as unlike as suits the mixing."""
        if self.targets.mixing is None:
            return knobs
        tried = [self._try(knobs._replace(unlike=value)) for value in _TUNING.unlike]
        return min(tried, key=lambda one: one.score).knobs

    def _closure(self, knobs: Knobs, steps: int) -> Knobs:
        target, triangles = self.targets.closure, self.targets.triangles
        if target is None or triangles is None or target.value < 2 * target.noise:
            return knobs
        wanted = max(triangles.value, 1.0)
        # Small degrees weigh more in clustering than in triangles.
        return self._halve(
            lambda value: knobs._replace(slope=value),
            lambda tried: tried.closure / target.value < tried.triangles / wanted,
            -1.0,
            1.0,
            steps,
        )

    def _halve(
        self,
        turned: Callable[[float], Knobs],
        too_low: Callable[[Tried], bool],
        low: float,
        high: float,
        steps: int,
    ) -> Knobs:
        """Search one knob by halving."""
        knobs = turned((low + high) / 2)
        for _ in range(steps):
            middle = (low + high) / 2
            knobs = turned(middle)
            if too_low(self._try(knobs)):
                low = middle
            else:
                high = middle
        return knobs

    def _try(self, knobs: Knobs) -> Tried:
        edges, free = draw_parts(self.frame, knobs, self.random, self.targets.mixing, self.steering)
        graph = Graph.from_edges(edges, nodes=len(self.frame.degrees))
        closure = 0
        triangles = count_triangles(graph)
        if self.targets.closure is not None:
            closure = closed_picks(graph, self.targets.closure_limit)
        misfit = 0.0
        if (mixing := self.targets.mixing) is not None:
            misfit = mixing.misfit(mixing.table(edges, self.frame.degrees))
        tried = Tried(0.0, edges, free, triangles, closure, misfit, knobs)
        tried = tried._replace(score=self._score(tried))
        if self.best is None or tried.score < self.best.score:
            self.best = tried
        return tried

    def _score(self, tried: Tried) -> float:
        """Return how far a graph is from the targets, in relative errors; noise counts as room."""
        score = 0.0
        if (wanted := self.targets.triangles) is not None:
            score += abs(tried.triangles - wanted.value) / (abs(wanted.value) + wanted.noise + 1)
        if (wanted := self.targets.closure) is not None:
            score += abs(tried.closure - wanted.value) / (abs(wanted.value) + wanted.noise + 1)
        return score + _TUNING.misfit_weight * tried.misfit
