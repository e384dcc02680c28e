"""How alike the degrees of joined nodes are, as one number that an edge moves by little.

The correlation of degrees itself is moved far by an edge of a node with a large degree: all its
other edges count differently then. Scores on a logarithmic scale that is cut at both ends do not
have this: one more neighbour moves the score of degree d by about 1 / (d·width), so its d edges
together by 1 / width, and nothing at all where the scale has ended.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees

_UNIT = 1 << 24
"""Scores are whole parts of this: fine enough for the slowest change among millions of nodes."""


@dataclass(frozen=True)
class DegreeScores:
    """The score of each degree from 1 on, between -1 and 1; any table is private.

    The bound is computed from the table as it is, so nothing rests on how logarithms were rounded.
    """

    parts: Wholes
    """Scores in parts of 2^24."""

    def of(self, values: Wholes) -> Floats:
        """Return the scores of degrees."""
        return np.asarray(self.parts[values - 1] / _UNIT)

    def sensitivity(self) -> Fraction:
        """Return the most that one edge moves the sum of products.

        Joining i and j changes the scores of i and j alone. Each of the d_i old edges of i has its
        other end outside {i, j}: its product moves by the change of i's score times a score. The
        new edge adds one product. Removing an edge is the same backwards.
        """
        largest = int(np.abs(self.parts).max(initial=0))
        changes = np.arange(1, len(self.parts)) * np.abs(np.diff(self.parts))
        return self.product(largest, largest + 2 * int(changes.max(initial=0)))

    def product(self, one: int, other: int) -> Fraction:
        """Return the product of two scores that are given in parts."""
        return Fraction(one * other, _UNIT**2)

    def measure(self, graph: Graph, step: Fraction) -> int:
        """Return the sum, over edges, of the product of both ends' scores, in lattice steps.

        Custodian side. Computed in whole numbers, then rounded to the lattice.
        """
        degree = degrees(graph)
        ends = degree[graph.edges()]
        joined = np.zeros(len(self.parts), dtype=np.int64)
        # The scores of all other ends, by the degree of the first.
        np.add.at(joined, ends[:, 0] - 1, self.parts[ends[:, 1] - 1])
        total = sum(int(self.parts[place]) * int(joined[place]) for place in np.flatnonzero(joined))
        return math.floor(total / (Fraction(_UNIT**2) * step) + Fraction(1, 2))


@lru_cache(maxsize=16)
def degree_scores(nodes: int, middle: float, width: float) -> DegreeScores:
    """Return scores for the degrees of so many nodes: 0 at the middle, 1 so many times above.

    ``middle`` and ``width`` are logarithms.

    Example:
        >>> scores = degree_scores(100, math.log(4), math.log(4))
        >>> scores.of(np.array([1, 2, 4, 16, 99])).round(2).tolist()
        [-1.0, -0.5, 0.0, 1.0, 1.0]
        >>> round(float(scores.sensitivity()), 2)
        2.4
    """
    degree = np.arange(1, max(nodes, 2))
    place = np.clip((np.log(degree) - middle) / width, -1.0, 1.0)
    return DegreeScores(np.rint(place * _UNIT).astype(np.int64))


class ScoredEdges(NamedTuple):
    """The noisy sum of products of scores, and the standard deviation of its noise."""

    scores: DegreeScores
    value: float
    noise: float
