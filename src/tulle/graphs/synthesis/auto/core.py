"""Blocks of the model auto from a core, where the order of nodes tells nothing.

Among nodes of large degree, communities rise out of the noise first. So pairs within a core of
such nodes are flipped by coins, and communities are read from the eigenvectors of what is left.
Then the two sides tell each other: nodes outside say how many neighbours they have in each
community of the core, nodes of the core how many they have outside, and so on.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tulle.core.arrays import Truths, Wholes
from tulle.core.mechanism import Terms
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.spectra.communities import find_communities
from tulle.graphs.spectra.denoising import LARGEST_HELD, decompose_noisy
from tulle.graphs.spectra.response import FlippedMatrix, core_of, entry_noise, induced
from tulle.graphs.synthesis.auto.tuning import TUNING
from tulle.graphs.synthesis.edge_counts import side_counts
from tulle.graphs.synthesis.estimates.block_mixture import (
    MixtureTable,
    Placed,
    expected_degrees,
    place_nodes,
)
from tulle.graphs.topology.response import Response
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge
from tulle.noise.watch import disjoint, part
from tulle.noise.xor.patterns import flip_probability

_TUNING = TUNING.core

OUTWARDS, INWARDS, AGAIN = Fraction(3, 10), Fraction(2, 10), Fraction(5, 10)
"""How the edges across spend: nodes outside ask the core, the core asks them, they ask again."""


class Ranks(NamedTuple):
    """Noisy degrees, as released, and the scale of their noise."""

    degrees: Wholes
    scale: float

    def table(self, chosen: Truths) -> MixtureTable:
        """Return the degrees of some nodes as a table of one column."""
        return MixtureTable(self.degrees[chosen, None].astype(np.float64), np.array([self.scale]))


def smallest_core(nodes: int) -> int:
    """Return how many nodes a core has at least."""
    return min(_TUNING.smallest_core, max(nodes // 3, 2))


def core_size(ranks: Ranks, epsilon: Fraction, most: int) -> int:
    """Return how many nodes of largest noisy degree make a core; none if too few stand out.

    A core of c nodes has noise of size s·sqrt(c), where s is that of one flipped pair. A node
    whose degree is no larger than that would add more noise than it tells.

    Example:
        >>> core_size(Ranks(np.repeat([90, 2], [200, 800]), 1.0), Fraction(1), 1000)
        200
        >>> core_size(Ranks(np.repeat([9, 2], [200, 800]), 1.0), Fraction(1), 1000)
        0
    """
    nodes = len(ranks.degrees)
    degrees = np.sort(expected_degrees(ranks.table(np.ones(nodes, dtype=np.bool_))))[::-1]
    sizes = np.arange(1, nodes + 1)
    stands = np.flatnonzero(degrees >= _TUNING.reach * pair_noise(epsilon) * np.sqrt(sizes))
    size = min(int(stands[-1]) + 1, most, LARGEST_HELD) if len(stands) else 0
    return size if size >= smallest_core(nodes) else 0


def telling_degree(epsilon: Fraction) -> int:
    """Return how many neighbours a node must have to tell where it belongs.

    Example:
        >>> telling_degree(Fraction(1, 2))
        16
    """
    return math.ceil(_TUNING.telling_scales / (AGAIN * epsilon))


def pair_noise(epsilon: Fraction) -> float:
    """Return the deviation of the noise on one flipped pair."""
    return entry_noise(flip_probability(epsilon))


def largest_core(nodes: int, triangles: int, noise: float) -> int:
    """Return among how many nodes communities rise out of noise of this size per pair.

    The cubes of all eigenvalues add up to six times the triangles. Were all of these in
    communities of an ordinary size, each would have an equal part of them, and the cube root of
    that is its eigenvalue. Noise on the pairs of c nodes hides what is not well above
    noise·sqrt(c).

    Example:
        >>> largest_core(4000, 1_600_000, 2.0)
        284
    """
    eigenvalue = (6 * max(triangles, 0) * _TUNING.ordinary / max(nodes, 1)) ** (1 / 3)
    return int(min((eigenvalue / (_TUNING.reach * max(noise, 1e-9))) ** 2, nodes))


def measure_core(
    terms: Terms, graph: Graph, ranks: Ranks, size: int, epsilon: Fraction, source: Source | None
) -> Placed:
    """Return the block of each node and its expected degree, by a core of this size.

    Block 0, 1, ... are the communities found; the last one is everybody else. Where none is
    found, all are in block 0.

    Guarantee:
        Pure epsilon per edge, given noisy degrees, which decide what nodes are the core. An
        edge lies within it, across, or outside. Within, its bit is flipped by one coin that costs
        epsilon. Across, three tables count it from one end each, for shares of epsilon that add
        up to it. Outside, one table counts it from both ends, at noise of 2 / epsilon. Each edge
        is in one of the three only, so that together they cost epsilon, not three times that.
    """
    with disjoint():
        return _measure_parts(terms, graph, ranks, size, epsilon, source)


def _measure_parts(
    terms: Terms, graph: Graph, ranks: Ranks, size: int, epsilon: Fraction, source: Source | None
) -> Placed:
    inside = np.zeros(graph.node_count, dtype=np.bool_)
    core = core_of(ranks.degrees, size)
    inside[core] = True
    outside = ~inside

    def noisy(
        rows: Truths, columns: Truths, labels: Wholes, kinds: int, scale: Fraction
    ) -> MixtureTable:
        counts = side_counts(graph, labels, kinds, rows, columns)
        # An edge between two nodes of one side is counted from both of its ends.
        both = rows is columns
        with part("outside" if both else "across"), charge(LaplaceCharge(2 if both else 1)):
            noise = discrete_laplace(scale=scale, size=counts.shape, source=source)
        return MixtureTable((counts + noise).astype(np.float64), np.full(kinds, float(scale)))

    flipped = replace(terms, epsilon=epsilon)
    with part("within"):
        drawn = Response().run(flipped, {}, induced(graph, core), source).value
    matrix = FlippedMatrix(drawn, flip_probability(epsilon))
    known = core_communities(matrix, ranks.degrees[core])
    kinds = int(known.max(initial=-1)) + 2
    home = np.full(graph.node_count, kinds - 1, dtype=np.int64)
    weights = expected_degrees(ranks.table(inside | outside))
    if kinds == 1:
        return Placed(home, weights)
    home[core] = np.where(known < 0, kinds - 1, known)

    def settle(side: Truths, tables: list[MixtureTable]) -> None:
        alike = np.zeros(int(side.sum()), dtype=np.int64)
        placed = place_nodes(tables, home[side], alike, kinds, ranks.table(side))
        home[side], weights[side] = placed

    if not outside.any():
        settle(inside, [seen_within(matrix, home[core], kinds)])
        return Placed(home, weights)
    asked = [noisy(outside, inside, home, kinds, 1 / (OUTWARDS * epsilon))]
    home[outside] = first_guess(asked[0])
    settle(outside, asked)
    answer = noisy(inside, outside, home, kinds, 1 / (INWARDS * epsilon))
    for _ in range(2):
        settle(inside, [seen_within(matrix, home[core], kinds), answer])
    asked.append(noisy(outside, inside, home, kinds, 1 / (AGAIN * epsilon)))
    settle(outside, asked)
    asked.append(noisy(outside, outside, home, kinds, 2 / epsilon))
    settle(outside, asked)
    return Placed(home, weights)


def core_communities(matrix: FlippedMatrix, degrees: Wholes) -> Wholes:
    """Return the community of each node of a core, or -1; from released numbers only."""
    count = max(min(_TUNING.most_communities, matrix.nodes // _TUNING.nodes_per_community), 1)
    ranks = np.clip(degrees, 0, None)
    return find_communities(decompose_noisy(matrix, count, ranks, by_size=False))


def seen_within(matrix: FlippedMatrix, labels: Wholes, kinds: int) -> MixtureTable:
    """Return how many neighbours in each block the flipped pairs of a core show."""
    chosen = np.eye(kinds)[labels]
    sizes = np.maximum(chosen.sum(axis=0), 1.0)
    # As wide as Laplace noise of this scale.
    return MixtureTable(matrix @ chosen, matrix.noise * np.sqrt(sizes / 2))


def first_guess(table: MixtureTable) -> Wholes:
    """Return the block with most neighbours, or the last one where noise may explain them."""
    best: Wholes = np.argmax(table.counts, axis=1).astype(np.int64)
    sure = table.counts.max(axis=1) > _TUNING.sure * table.scales[0]
    return np.where(sure, best, table.counts.shape[1] - 1)
