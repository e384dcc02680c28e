"""Nodes of like degree in one block as kinds: what a graph with locality is placed by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.graphs.synthesis.generators.affinity import balance
from tulle.graphs.synthesis.generators.joint_fit import JointDegrees, round_joint
from tulle.noise.post_processing import Random

GROUP_RATIO = 1.3
"""Degrees within this ratio are one kind of node: among few nodes nobody is near."""

_ROUNDS = 50
"""How often the fit goes over blocks, degrees and kinds."""


class Kinds(NamedTuple):
    """Nodes numbered kind by kind, in random order within each, and the edges between kinds."""

    between: Wholes
    """Symmetric; the diagonal counts an edge once."""
    sizes: Wholes
    """How many nodes each kind has."""
    room: Wholes
    """The degree of each node."""
    blocks: Wholes
    """The block of each kind; kinds of one block follow one another."""

    @property
    def middle(self) -> Floats:
        """The mean degree of each kind."""
        ends = np.add.reduceat(self.room, np.append(0, np.cumsum(self.sizes)[:-1]))
        return np.asarray(ends / self.sizes)


class Parts(NamedTuple):
    """The block of each node, and the wanted number of edges between each two blocks."""

    blocks: Wholes
    counts: Floats
    """Symmetric; the diagonal counts an edge once."""


def sort_by_kind(
    joint: JointDegrees, degrees: Wholes, random: Random, parts: Parts | None = None
) -> tuple[Kinds, Wholes]:
    """Return the kinds of the nodes with an edge, and which node each number of them is.

    ``degrees`` are those of the joint degrees, in any order. With ``parts``, nodes of different
    blocks are of different kinds, and as many edges lie between blocks as wanted, nearly.

    Example:
        >>> from tulle.noise import SeededSource
        >>> from tulle.noise import post_processing
        >>> star = JointDegrees(np.array([1, 3]), np.array([3, 1]), np.array([[0, 3], [3, 0]]))
        >>> random = post_processing(SeededSource(1))
        >>> kinds, names = sort_by_kind(star, np.array([1, 3, 1, 1]), random)
        >>> kinds.sizes.tolist(), kinds.room.tolist(), int(names[3])
        ([3, 1], [1, 1, 1, 3], 1)
    """
    place = np.floor(np.log(joint.degrees) / np.log(GROUP_RATIO))
    of_degree = np.unique(place, return_inverse=True)[1].reshape(-1)
    count = int(of_degree.max(initial=-1)) + 1
    held = random.permutation(np.flatnonzero(degrees))
    alike = of_degree[np.searchsorted(joint.degrees, degrees[held])]
    between = _sum_kinds(joint, of_degree, count)
    if parts is None or len(parts.counts) == 1:
        names = held[np.argsort(alike, kind="stable")]
        sizes = np.bincount(alike, minlength=count)
        return Kinds(between, sizes, degrees[names], np.zeros_like(sizes)), names
    cells, kind = np.unique(parts.blocks[held] * count + alike, return_inverse=True)
    kind = kind.reshape(-1)
    names = held[np.argsort(kind, kind="stable")]
    sizes = np.bincount(kind)
    ends = np.bincount(kind, weights=degrees[held]).astype(np.float64)
    wanted = _both(cells // count, cells % count, ends, parts.counts, between)
    limits = np.outer(sizes, sizes)
    np.fill_diagonal(limits, sizes * (sizes - 1) // 2)
    np.fill_diagonal(wanted, np.diag(wanted) / 2)
    whole = round_joint(np.minimum(wanted, limits), limits, ends.astype(np.int64), random)
    return Kinds(whole, sizes, degrees[names], cells // count), names


def _both(block: Wholes, alike: Wholes, ends: Floats, counts: Floats, between: Wholes) -> Floats:
    """Return the ends that lead from each kind to each other one, by blocks and by degrees.

    The table nearest to chance whose sums over blocks and over degrees are as wanted.
    """
    by_block, by_degree = np.eye(len(counts))[block], np.eye(len(between))[alike]
    wanted_blocks = balance(counts, ends @ by_block)
    wanted_degrees = between + np.diag(np.diag(between))
    table = np.outer(ends, ends) / max(float(ends.sum()), 1.0)
    for _ in range(_ROUNDS):
        for chosen, wanted in ((by_block, wanted_blocks), (by_degree, wanted_degrees)):
            factor = wanted / np.maximum(chosen.T @ table @ chosen, 1e-12)
            table = table * (chosen @ factor @ chosen.T)
        scale = np.sqrt(ends / np.maximum(table.sum(axis=1), 1e-12))
        table = table * scale[:, None] * scale[None, :]
    return np.asarray(table)


def _sum_kinds(joint: JointDegrees, kinds: Wholes, count: int) -> Wholes:
    """Return the edges between kinds, the diagonal counting each edge once."""
    pick = np.zeros((len(kinds), count), dtype=np.int64)
    pick[np.arange(len(kinds)), kinds] = 1
    upper = pick.T @ np.triu(joint.edges) @ pick
    whole: Wholes = upper + upper.T
    np.fill_diagonal(whole, np.diag(upper))
    return whole
