"""Joint degrees on a coarse public grid, with soft classes: one edge moves them by a constant.

A hard class would move all edges of a node that steps from one class into the next, up to n of
them. With soft classes a node of degree d belongs to the two grid points next to it, in
proportion to how near it is on a logarithmic scale. One more edge moves its membership by about
2 / (d·ln ratio), so its d edges together by 2 / ln ratio, however large d is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Floats, Wholes
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees


@dataclass(frozen=True)
class SoftClasses:
    """The public grid of so many nodes: memberships of all degrees, as whole numbers.

    Degree d is in place d - 1: ``upper`` parts of ``unit`` belong to the class ``lower + 1``, the
    rest to ``lower``. Any table is private with the sensitivity that is
    computed from it, so nothing rests on how its logarithms were rounded.
    """

    count: int
    unit: int
    lower: Wholes
    upper: Wholes

    @property
    def cells(self) -> int:
        """How many unordered pairs of classes there are."""
        return self.count * (self.count + 1) // 2

    def sensitivity(self) -> Fraction:
        """Return the most that one edge moves the matrix in L1, in edges.

        Joining i and j changes the degrees of i and j alone. Each of the d_i old edges of i has
        its other end outside {i, j}: it moves by the change of i's membership. The new edge adds
        one. Removing an edge is the same backwards.
        """
        worst = int((np.arange(1, len(self.lower)) * self._changes()).max(initial=0))
        return 2 * Fraction(worst, self.unit) + 1

    def entry_change(self) -> Fraction:
        """Return the largest d·(change of one membership) from degree d to d + 1."""
        worst = int((np.arange(1, len(self.lower)) * self._changes()).max(initial=0))
        # What one class loses another gains, so no entry moves by more than half.
        return Fraction(worst, 2 * self.unit)

    def _changes(self) -> Wholes:
        """Return how far the membership moves in L1 from each degree to the next."""
        steps = np.diff(self.lower)
        inside = np.abs(np.diff(self.upper))
        # Stepping over a grid point leaves one class and enters another.
        across = np.maximum(self.unit - self.upper[:-1], self.upper[1:])
        return 2 * np.where(steps == 0, inside, np.where(steps == 1, across, self.unit))

    def memberships(self, values: Wholes) -> Floats:
        """Return the memberships of degrees, one row each, adding up to one."""
        table = np.zeros((len(values), self.count + 1))
        rows = np.arange(len(values))
        share = self.upper[values - 1] / self.unit
        table[rows, self.lower[values - 1]] = 1 - share
        table[rows, self.lower[values - 1] + 1] = share
        return table[:, : self.count]

    def measure(self, graph: Graph, step: Fraction) -> Wholes:
        """Return the true matrix in lattice steps, row by row of its upper half. Custodian side.

        A cell counts the edges between two classes, each edge in parts by the memberships of its
        ends. Computed in whole numbers, then rounded to the lattice.
        """
        degree = degrees(graph)
        ends = degree[graph.edges()]
        present = np.unique(ends)
        places = np.searchsorted(present, ends)
        # Edges are spread over the classes of one end first, then of the other.
        left = np.zeros((len(present), self.count + 1), dtype=np.int64)
        for one, other in ((0, 1), (1, 0)):
            low, share = self.lower[ends[:, one] - 1], self.upper[ends[:, one] - 1]
            np.add.at(left, (places[:, other], low), self.unit - share)
            np.add.at(left, (places[:, other], low + 1), share)
        matrix: list[list[int]] = [[0] * (self.count + 1) for _ in range(self.count + 1)]
        for row, value in zip(left, present.tolist(), strict=True):
            lower, upper = int(self.lower[value - 1]), int(self.upper[value - 1])
            whole = [int(entry) for entry in row]
            for column, entry in enumerate(whole):
                if entry:
                    matrix[lower][column] += entry * (self.unit - upper)
                    matrix[lower + 1][column] += entry * upper
        factor = Fraction(1, self.unit**2) / step
        return np.array(
            [
                _round(matrix[a][b] * factor / (2 if a == b else 1))
                for a in range(self.count)
                for b in range(a, self.count)
            ],
            dtype=np.int64,
        )


def _round(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


@lru_cache(maxsize=16)
def soft_classes(nodes: int, ratio: Fraction) -> SoftClasses:
    """Return a grid from 1 to the largest degree of so many nodes, evenly spaced on a log scale.

    Neighbouring grid points are at least ``ratio`` apart.

    Example:
        >>> soft_classes(100, Fraction(3)).count
        5
        >>> round(float(soft_classes(100, Fraction(3)).sensitivity()), 2)
        4.47
    """
    most = max(nodes - 1, 1)
    intervals = math.floor(math.log(most) / math.log(ratio)) if most > 1 else 0
    # Fine enough for the slowest change, and small enough for sums over billions of edges.
    unit = 1 << min(max((64 * most).bit_length(), 16), 30)
    degree = np.arange(1, most + 1)
    place = np.log(degree) / math.log(max(most, 2)) * max(intervals, 1)
    lower = np.minimum(np.floor(place), max(intervals, 1)).astype(np.int64)
    upper = np.rint((place - lower) * unit).astype(np.int64)
    count = max(intervals, 1) + 1 if most > 1 else 1
    return SoftClasses(count, unit, lower, upper)


def unpack(cells: npt.NDArray[Any], count: int) -> Floats:
    """Return the whole symmetric matrix from the upper half, as ordered ends: edges twice.

    The entry (a, b) is how many edge ends in class a lead to class b.
    """
    matrix = np.zeros((count, count))
    matrix[np.triu_indices(count)] = cells
    whole: Floats = matrix + matrix.T
    return whole
