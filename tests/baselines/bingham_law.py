"""The closed form of vectors drawn by the exponential mechanism, and of broken versions of it.

The draw is described before it is rounded: its density is exp(strength·u'Au) / C(A) on a sphere,
and C, an integral over the sphere, is computed by inverting a Laplace transform. Later vectors and
the values follow released ones: they are described for fixed ones that let one edge show most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from baselines.bingham import (
    Deflation,
    conclude,
    dense_adjacency,
    most_moved,
    snapped,
    whole_basis,
)

from tulle.audit.engine.laws import Claim, Law, ratio
from tulle.core.arrays import Floats
from tulle.core.mechanism import Parameters
from tulle.core.validate import rational
from tulle.graphs.data import Graph
from tulle.graphs.spectra.queries import Spectrum, decompose, public_signs

_REACH = 4
"""Rounded entries up to this size are listed: beyond lies a ten-thousandth of the mass."""

_NODES = 8
"""Points in each direction of a cell, by which its probability is integrated."""


def log_constant(eigenvalues: Any) -> float:
    """Return ln of the mean of exp(u'Fu) over the unit sphere, F having these eigenvalues.

    The inverse Laplace transform of Gamma(n/2)·prod (t - eigenvalue)^(-1/2), along a contour
    around its singularities, which lie on the real axis (Talbot 1979).

    Example:
        >>> round(log_constant([3.0, 3.0]), 9)
        3.0
    """
    exponents = np.asarray(eigenvalues, dtype=np.float64)
    top = float(exponents.max())
    count = 32
    angles = (np.arange(count) + 0.5) * np.pi / count
    cotangents = 1 / np.tan(angles)
    points = 0.4 * count * angles * (cotangents + 1j)
    slopes = 0.4 * count * (cotangents - angles * (1 + cotangents**2) + 1j)
    roots = np.prod(np.sqrt(points[:, None] - exponents + top), axis=1)
    total = float(np.sum((np.exp(points) * slopes / roots).imag)) / count
    return top + math.lgamma(len(exponents) / 2) + math.log(total)


@lru_cache(maxsize=65536)
def _constant(form: bytes, size: int) -> float:
    return log_constant(np.linalg.eigvalsh(np.frombuffer(form).reshape(size, size)))


@lru_cache(maxsize=4096)
def _range(form: bytes, size: int) -> tuple[float, float]:
    """Return the least and the largest eigenvalue."""
    found = np.linalg.eigvalsh(np.frombuffer(form).reshape(size, size))
    return float(found[0]), float(found[-1])


@dataclass(frozen=True)
class BinghamLaw(Law):
    """Vectors drawn with weight exp(strength·u'Au), then values with Laplace noise."""

    matrix: bytes
    nodes: int
    k: int
    strength: float
    levels: int
    epsilon_values: Fraction

    def form(self) -> Floats:
        """Return strength·A."""
        return np.frombuffer(self.matrix).reshape(self.nodes, self.nodes) * self.strength

    def directions(self) -> list[Floats]:
        """Return orthogonal directions as if released: one pair of nodes in each, where it fits."""
        signs = np.eye(self.nodes)
        signs[:, :2] = np.array([[1.0, 1.0], [1.0, -1.0]] + [[0.0, 0.0]] * (self.nodes - 2))
        return [signs[:, place] for place in range(self.k - 1)]

    def forms(self) -> tuple[Floats, ...]:
        """Return the form of every draw."""
        return _forms(self)

    def rows(self) -> Any:
        """Return vectors as if released: all entries of equal size, and random signs."""
        return whole_basis((public_signs(self.nodes, self.k) * 64).astype(np.int64))

    def values(self) -> tuple[Any, Fraction]:
        """Return the products with those vectors in lattice steps, and their claimed movement."""
        return _values(self)

    def graph(self) -> Graph:
        """Return the graph that is described."""
        edges = np.argwhere(np.triu(np.frombuffer(self.matrix).reshape(self.nodes, self.nodes)))
        return Graph.from_edges(edges, nodes=self.nodes)

    def claims(self, other: BinghamLaw) -> Iterator[Claim]:
        moved = max(max(-low, high) / self.strength for low, high in self._moves(other))
        yield Claim("u'Au", moved, f"moves {moved:.6g} of 1")
        steps, claimed = self._steps(other)
        yield Claim("values", ratio(steps, float(claimed)), f"move {steps} of {float(claimed):.6g}")

    def _moves(self, other: BinghamLaw) -> list[tuple[float, float]]:
        """Return the least and the most that each draw's exponent differs by."""
        pairs = zip(self.forms(), other.forms(), strict=True)
        return [_range((mine - theirs).tobytes(), len(mine)) for mine, theirs in pairs]

    def _steps(self, other: BinghamLaw) -> tuple[int, Fraction]:
        (mine, claimed), (theirs, _) = self.values(), other.values()
        return int(np.abs(mine - theirs).sum()), claimed

    def loss(self, other: BinghamLaw) -> float:
        total = sum(high for _, high in self._moves(other))
        for mine, theirs in zip(self.forms(), other.forms(), strict=True):
            size = len(mine)
            total += _constant(theirs.tobytes(), size) - _constant(mine.tobytes(), size)
        steps, claimed = self._steps(other)
        return total + float(self.epsilon_values * steps / claimed)

    def losses(self, other: BinghamLaw) -> tuple[Floats, Floats]:
        return np.array([1.0]), np.array([self.loss(other)])

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        """List rounded vectors with noisy values; all but a ten-thousandth of the mass."""
        assert self.k == 1, "only a single vector's outcomes are listed"
        settings = {"levels": self.levels, "nodes": self.nodes}
        graph = self.graph()
        listed: list[Any] = []
        masses: list[float] = []
        for cell, mass in zip(*self._cells(), strict=True):
            rows = whole_basis(np.array(cell, dtype=np.int64)[:, None])
            scale = most_moved(rows, settings) / self.epsilon_values
            centre = int(snapped(graph, rows, settings)[0])
            for value, chance in _clipped_laplace(
                centre, float(scale), self.nodes * self.levels**2
            ):
                listed.append((cell, value))
                masses.append(mass * chance)
        return listed, np.array(masses)

    def _cells(self) -> tuple[list[tuple[int, ...]], list[float]]:
        """Return rounded vectors and their probabilities, by integration over each cell."""
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        inner = np.array(list(product(nodes, repeat=self.nodes))) / 2
        weight = np.prod(np.array(list(product(weights, repeat=self.nodes))) / 2, axis=1)
        constant = _constant(self.form().tobytes(), self.nodes)
        reach = _REACH * self.levels
        cells = list(product(range(-reach, reach + 1), repeat=self.nodes))
        masses = []
        for cell in cells:
            x = (np.array(cell) + inner) / self.levels
            squares = (x**2).sum(axis=1)
            scores = np.einsum("ni,ij,nj->n", x, self.form(), x) / squares
            logs = scores - constant - squares / 2 - self.nodes / 2 * math.log(2 * math.pi)
            masses.append(float(weight @ np.exp(logs)) / self.levels**self.nodes)
        return cells, masses


@lru_cache(maxsize=4096)
def _forms(law: BinghamLaw) -> tuple[Floats, ...]:
    sphere = Deflation(law.form())
    found = [sphere.form]
    for direction in law.directions():
        sphere.leave_out(direction)
        found.append(sphere.form)
    return tuple(found)


@lru_cache(maxsize=4096)
def _values(law: BinghamLaw) -> tuple[Any, Fraction]:
    settings = {"levels": law.levels}
    return snapped(law.graph(), law.rows(), settings), most_moved(law.rows(), settings)


def _clipped_laplace(centre: int, scale: float, most: int) -> Iterator[tuple[int, float]]:
    """Yield the values of a discrete Laplace from -most to most, both tails put into the ends."""
    q = math.exp(-1 / scale)
    for value in range(-most, most + 1):
        chance = q ** abs(value - centre) / (1 + q)
        yield value, chance if abs(value) == most else chance * (1 - q)


def law_of(settings: Parameters, graph: Graph, kind: type[BinghamLaw] = BinghamLaw) -> BinghamLaw:
    """Return the law of the draws for one graph."""
    return kind(
        dense_adjacency(graph).tobytes(),
        int(settings["nodes"]),
        int(settings["k"]),
        float(rational(settings["strength"])),
        int(settings["levels"]),
        rational(settings["epsilon_values"]),
    )


def finish_bingham(answer: Any, settings: Parameters) -> Spectrum:
    """Return what leaves for one rounded vector and noisy value."""
    cell, value = answer
    rows = whole_basis(np.array(cell, dtype=np.int64)[:, None])
    return conclude(rows, np.array([value]), settings)


_STEP = 0.01
"""How far the stopped chain has moved from where it started."""


def _apart(one: BinghamLaw, other: BinghamLaw) -> float:
    """Return the angle between the true first vectors of two graphs."""
    mine, theirs = (decompose(law.graph(), 1).vectors for law in (one, other))
    return math.acos(min(abs(float((mine.T @ theirs).item())), 1.0))


@dataclass(frozen=True)
class GibbsLaw(BinghamLaw):
    """SBMF as printed: the state of a chain that starts at the true vector and has hardly moved."""

    def loss(self, other: BinghamLaw) -> float:
        # What it can reach lies within an angle of the true vector: two such cones may not meet.
        return math.inf if _apart(self, other) > 4 * _STEP else super().loss(other)


@dataclass(frozen=True)
class TrueDeflation(BinghamLaw):
    """Later vectors are orthogonal to the true first one, not to the released one."""

    def loss(self, other: BinghamLaw) -> float:
        # Two spheres of directions that are not the same one hardly meet.
        return math.inf if _apart(self, other) > 1e-4 else super().loss(other)
