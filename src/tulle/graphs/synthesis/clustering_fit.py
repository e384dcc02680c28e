"""Place a graph with given joint degrees so that it has the triangles that are wanted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tulle.graphs.data import Graph
from tulle.graphs.kernels import triangles_per_node
from tulle.graphs.synthesis.closing import close_triangles
from tulle.graphs.synthesis.joint_classes import SoftClasses
from tulle.graphs.synthesis.joint_fit import JointDegrees
from tulle.graphs.synthesis.realise_joint import place_edges
from tulle.noise.afterwards import Random

Wholes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

GROUP_RATIO = 1.3
"""Degrees within this ratio are one kind of node: on a ring of few nodes nobody is near."""

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
    kinds = _group(joint)
    between = _sum_kinds(joint, kinds)
    sizes = np.bincount(kinds, weights=joint.nodes).astype(np.int64)
    room = np.repeat(joint.degrees, joint.nodes)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    for kind in range(len(sizes)):
        piece = slice(starts[kind], starts[kind + 1])
        room[piece] = random.permutation(room[piece])
    if int(np.triu(between).sum()) < 4 or wanted <= 0:
        return place_edges(between, room, sizes, random, 0.0)
    member = classes.memberships(room)
    middle = np.array([room[starts[k] : starts[k + 1]].mean() for k in range(len(sizes))])
    of_kind = classes.memberships(np.rint(middle).astype(np.int64))
    share = by_class + 1e-3 * wanted / max(len(by_class), 1) + 1e-9
    target = 3 * wanted * share / share.sum()
    tilt = np.full(classes.count, -1.0)
    best: tuple[float, Wholes, float] | None = None
    for _ in range(8 if len(room) * float(room.mean()) < 1e6 else 5):
        local = 1 / (1 + np.exp(-(of_kind @ tilt)))
        edges = place_edges(between, room, sizes, random, local)
        triangles = triangles_per_node(Graph.from_edges(edges, nodes=len(room)))
        made = member.T @ triangles
        off = float(np.abs(made - target).sum())
        if best is None or off < best[0]:
            best = off, edges, float(triangles.sum()) / 3
        tilt += 1.5 * np.clip(np.log((target + 1) / (made + 1)), -2, 2)
        np.clip(tilt, -12, 12, out=tilt)
    assert best is not None
    _, edges, reached = best
    blocks = np.repeat(np.arange(len(sizes)), sizes)
    work = min(WORK_PER_EDGE * len(edges), MOST_WORK)
    return close_triangles(edges, blocks, round(wanted - reached), work, random)


def _group(joint: JointDegrees) -> Wholes:
    place = np.floor(np.log(joint.degrees) / np.log(GROUP_RATIO))
    return np.unique(place, return_inverse=True)[1].reshape(-1)


def _sum_kinds(joint: JointDegrees, kinds: Wholes) -> Wholes:
    """Return the edges between kinds, the diagonal counting each edge once."""
    count = int(kinds.max(initial=-1)) + 1
    pick = np.zeros((len(kinds), count), dtype=np.int64)
    pick[np.arange(len(kinds)), kinds] = 1
    upper = pick.T @ np.triu(joint.edges) @ pick
    whole: Wholes = upper + upper.T
    np.fill_diagonal(whole, np.diag(upper))
    return whole
