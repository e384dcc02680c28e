"""Place a graph with given joint degrees so that it has the triangles that are wanted."""

from __future__ import annotations

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import triangles_per_node
from tulle.graphs.synthesis.generators.joint_fit import JointDegrees
from tulle.graphs.synthesis.generators.kinds import sort_by_kind
from tulle.graphs.synthesis.generators.realise_joint import place_edges
from tulle.graphs.synthesis.generators.tuning import Aim, Aims, tune
from tulle.graphs.synthesis.joint_degrees.classes import SoftClasses
from tulle.noise.post_processing import Random

KEPT = 0.001
"""How far, relatively, swaps may move the sum of products of degrees."""

WORK_PER_EDGE = 1_000
"""Neighbours looked at per edge while swapping, at most."""

MOST_WORK = 1_000_000_000


def cluster(
    joint: JointDegrees, wanted: float, by_class: Floats, classes: SoftClasses, random: Random
) -> Wholes:
    """Return edges with these degrees, nearly these joint degrees, and the triangles wanted.

    ``by_class`` says how the triangles are divided among the classes of degrees; only its shape
    is used, as the total is known better.
    """
    kinds, _ = sort_by_kind(joint, np.repeat(joint.degrees, joint.nodes), random)
    between, sizes, room, _ = kinds
    if int(np.triu(between).sum()) < 4 or wanted <= 0:
        return place_edges(between, room, sizes, random, 0.0)
    member = classes.memberships(room)
    of_kind = classes.memberships(np.rint(kinds.middle).astype(np.int64))
    share = by_class + 1e-3 * wanted / max(len(by_class), 1) + 1e-9
    target = 3 * wanted * share / share.sum()
    tilt = np.full(classes.count, -1.0)
    best: tuple[float, Wholes] | None = None
    for _ in range(8 if len(room) * float(room.mean()) < 1e6 else 5):
        local = 1 / (1 + np.exp(-(of_kind @ tilt)))
        edges = place_edges(between, room, sizes, random, local)
        triangles = triangles_per_node(Graph.from_edges(edges, nodes=len(room)))
        made = member.T @ triangles
        off = float(np.abs(made - target).sum())
        if best is None or off < best[0]:
            best = off, edges
        tilt += 1.5 * np.clip(np.log((target + 1) / (made + 1)), -2, 2)
        np.clip(tilt, -12, 12, out=tilt)
    assert best is not None
    edges = best[1]
    blocks = np.repeat(np.arange(len(sizes)), sizes)
    work = min(WORK_PER_EDGE * len(edges), MOST_WORK)
    joined = float(room[edges].prod(axis=1).sum())
    aims = Aims(triangles=Aim(wanted), products=Aim(joined, KEPT * joined))
    return tune(edges, blocks, aims, work, random)
