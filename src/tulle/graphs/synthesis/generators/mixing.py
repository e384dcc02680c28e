"""How often nodes of each two degrees should be joined, and what a swap of edges does to it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.core.compiled import inner
from tulle.graphs.synthesis.joint_degrees.classes import SoftClasses

_SCALING = 100

_CLOSE = 0.005
"""No correlation is asked to be nearer than this."""

_MODEL = 0.02
"""No cell is asked to be nearer than this share of itself: the rest of the graph is rougher."""


class MixingCounts(NamedTuple):
    """How many edge ends of each soft class of degrees should lead to each other one."""

    classes: SoftClasses
    wanted: Floats
    """Symmetric, in ordered ends: an edge counts twice."""
    noise: float
    """The standard deviation of the noise of one cell, in edges."""
    kept: Floats | float = 1.0
    """The share of that noise which is left in each entry."""

    def shrunk(self, chance: Floats) -> MixingCounts:
        """Return what these noisy counts say about a graph, beside what chance would give.

        ``chance`` is the table of a random graph with the same degrees. A cell that is hardly
        larger there than its noise is left to chance: each keeps the share c² / (c² + v) of its
        difference, where c is what chance gives and v the variance of its noise. Then all are
        scaled until classes have as many ends as they should.
        """
        ends = chance.sum(axis=1)
        spread = (self.noise * (1 + np.eye(len(chance)))) ** 2
        kept = chance**2 / (chance**2 + spread + 1e-12)
        wanted = np.maximum(chance + kept * (self.wanted - chance), 0.02 * chance)
        for _ in range(_SCALING):
            factor = np.sqrt(ends / np.maximum(wanted.sum(axis=1), 1e-12))
            wanted = wanted * factor[:, None] * factor[None, :]
        return self._replace(wanted=wanted, kept=kept)

    def table(self, edges: Wholes, degrees: Wholes) -> Floats:
        """Return how many ends of each class lead to each other one, in a graph."""
        lower, share = places_of(self.classes, degrees)
        return soft_table(edges, lower, share, self.classes.count)

    def marks(self) -> Floats:
        """Return two scales for classes, centred: their rank, and the degree they stand for."""
        rank = np.arange(len(self.wanted), dtype=np.float64)
        most = max(len(self.classes.lower), 2)
        degree = np.exp(rank / max(len(rank) - 1, 1) * np.log(most))
        ends = np.maximum(self.wanted, 0.0).sum(axis=1)
        total = max(float(ends.sum()), 1e-12)
        return np.stack([scale - float(ends @ scale) / total for scale in (rank, degree)])

    def misfit(self, table: Floats) -> float:
        """Return how far a table is off, in standard deviations of a cell."""
        apart = table - self.wanted
        cost = float(np.triu(self.weights() * apart**2).sum())
        cost += float(
            self.correlation_weights() @ [(mark @ apart @ mark) ** 2 for mark in self.marks()]
        )
        return float(np.sqrt(cost / max(len(table) * (len(table) + 1) / 2, 1)))

    def correlation_weights(self) -> Floats:
        """Return what the square of a difference in correlation costs, in units of the marks.

        One over its variance: what noise leaves open, and a little more.
        """
        ends = np.maximum(self.wanted, 0.0).sum(axis=1)
        noise = (self.noise * self.kept * (1 + np.eye(len(ends)))) ** 2
        found = []
        for mark in self.marks():
            # Entries of both halves are one number.
            both = np.outer(mark, mark) * (2 - np.eye(len(ends)))
            spread = float(np.triu(noise * both**2).sum())
            found.append(1 / max(spread + (_CLOSE * float(ends @ mark**2)) ** 2, 1e-12))
        return np.array(found)

    def weights(self) -> Floats:
        """Return one over the variance that is granted to each entry."""
        size = np.maximum(self.wanted, 0.0)
        twice = 1 + np.eye(len(size))
        granted = (self.noise * twice) ** 2 + (_MODEL * size) ** 2 + size + 1.0
        return np.asarray(1.0 / granted)


def places_of(classes: SoftClasses, degrees: Wholes) -> tuple[Wholes, Floats]:
    """Return the lower class of each node and the share of it that belongs to the next one."""
    at = np.maximum(degrees, 1) - 1
    lower, share = classes.lower[at], classes.upper[at] / classes.unit
    # At the last grid point there is no next one.
    over = lower >= classes.count - 1
    lower = np.where(over, classes.count - 2, lower) if classes.count > 1 else lower * 0
    return lower.astype(np.int64), np.where(over, 1.0 if classes.count > 1 else 0.0, share)


def soft_table(edges: Wholes, lower: Wholes, share: Floats, count: int) -> Floats:
    """Return how many ends of each class lead to each other one."""
    table = np.zeros(max(count, 2) ** 2)
    width = max(count, 2)
    one, two = edges[:, 0], edges[:, 1]
    for up, first in ((0, 1 - share[one]), (1, share[one])):
        for over, second in ((0, 1 - share[two]), (1, share[two])):
            cells = (lower[one] + up) * width + lower[two] + over
            table += np.bincount(cells, weights=first * second, minlength=len(table))
    square = table.reshape(width, width)[: max(count, 1), : max(count, 1)]
    return np.asarray(square + square.T)


class State(NamedTuple):
    """Where the mixing stands while edges are swapped, for compiled code."""

    lower: Wholes
    share: Floats
    apart: Floats
    """The table of the graph less the wanted one."""
    weights: Floats
    marks: Floats
    correlation_weights: Floats
    sums: Floats
    """How far each correlation is off."""
    one: Floats
    two: Floats
    touched: Wholes
    shifts: Floats

    @classmethod
    def of(cls, mixing: MixingCounts, edges: Wholes, degrees: Wholes) -> State:
        """Return the state of a graph."""
        lower, share = places_of(mixing.classes, degrees)
        apart = mixing.table(edges, degrees) - mixing.wanted
        marks = mixing.marks()
        sums = np.array([mark @ apart @ mark for mark in marks])
        width = len(apart)
        return cls(
            lower,
            share,
            np.ascontiguousarray(apart),
            mixing.weights(),
            marks,
            mixing.correlation_weights(),
            sums,
            np.zeros(width),
            np.zeros(width),
            np.empty(8, dtype=np.int64),
            np.zeros(len(marks)),
        )

    @classmethod
    def none(cls, nodes: int) -> State:
        """Return the state where no mixing is asked for."""
        mark, table = np.zeros(2), np.zeros((2, 2))
        lower = np.zeros(nodes, dtype=np.int64)
        touched = np.empty(8, dtype=np.int64)
        return cls(
            lower, np.zeros(nodes), table, table, table, mark, mark, mark, mark, touched, mark
        )

    def cost(self) -> float:
        """Return the sum of squares of what is off, each in its own standard deviation."""
        cells = float(np.triu(self.weights * self.apart**2).sum())
        return cells + float(self.correlation_weights @ self.sums**2)


@inner
def weigh_swap(state: Any, u: Any, x: Any, y: Any, v: Any) -> Any:
    """Return by how much the cost changes when (u, v), (x, y) become (u, y), (x, v).

    The table moves by (u - x)(y - v), with the nodes' memberships.
    """
    number = 0
    for node in (u, x, y, v):
        for step in range(2):
            place = state.lower[node] + step
            known = False
            for rank in range(number):
                if state.touched[rank] == place:
                    known = True
            if not known:
                state.touched[number] = place
                state.one[place] = 0.0
                state.two[place] = 0.0
                number += 1
    for node, sign in ((u, 1.0), (x, -1.0)):
        state.one[state.lower[node]] += sign * (1 - state.share[node])
        state.one[state.lower[node] + 1] += sign * state.share[node]
    for node, sign in ((y, 1.0), (v, -1.0)):
        state.two[state.lower[node]] += sign * (1 - state.share[node])
        state.two[state.lower[node] + 1] += sign * state.share[node]
    change = 0.0
    for rank in range(number):
        i = state.touched[rank]
        for other in range(rank, number):
            j = state.touched[other]
            moved = state.one[i] * state.two[j] + state.one[j] * state.two[i]
            change += state.weights[i, j] * moved * (2 * state.apart[i, j] + moved)
    for scale in range(len(state.marks)):
        ours, theirs = 0.0, 0.0
        for rank in range(number):
            ours += state.one[state.touched[rank]] * state.marks[scale, state.touched[rank]]
            theirs += state.two[state.touched[rank]] * state.marks[scale, state.touched[rank]]
        state.shifts[scale] = 2 * ours * theirs
        change += (
            state.correlation_weights[scale]
            * state.shifts[scale]
            * (2 * state.sums[scale] + state.shifts[scale])
        )
    return change, number


@inner
def keep_swap(state: Any, number: Any) -> None:
    """Let the swap that was weighed last stand."""
    for scale in range(len(state.marks)):
        state.sums[scale] += state.shifts[scale]
    for rank in range(number):
        i = state.touched[rank]
        for other in range(rank, number):
            j = state.touched[other]
            moved = state.one[i] * state.two[j] + state.one[j] * state.two[i]
            state.apart[i, j] += moved
            if i != j:
                state.apart[j, i] += moved
