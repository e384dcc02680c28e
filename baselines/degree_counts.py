"""Degree distributions per node as published: noise on every count (Day, Li & Lyu, SIGMOD 2016).

The projection is that of ``tulle.graphs.mechanisms.projection``; each count of nodes with degree at
most 0, 1, ... bound gets noise of its own, for all that one node moves of them together. The bound
is a power of two, drawn by the exponential mechanism with a quarter of epsilon, on scores that
weigh what the bound cuts off against that noise in all places. tulle adds counts up first.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log

import numpy as np

from tulle.core.arrays import Wholes
from tulle.core.source import Source
from tulle.core.validate import Number, rational
from tulle.graphs.data import Graph
from tulle.graphs.mechanisms.projection import projected_degrees
from tulle.noise import discrete_laplace, exponential
from tulle.noise.charge import ExponentialCharge, LaplaceCharge, charge

BOUNDS = tuple(1 << step for step in range(10))
BOUND_SHARE = Fraction(1, 4)


def at_most(graph: Graph, bound: int) -> Wholes:
    """Return how many nodes keep at most 0, 1, ... bound links: one node moves bound + 1 of them.

    Example:
        >>> at_most(Graph.from_edges([(0, 1), (0, 2), (0, 3)]), 2).tolist()
        [1, 3, 4]
    """
    counts: Wholes = np.cumsum(np.bincount(projected_degrees(graph, bound), minlength=bound + 1))
    return counts


def degree_counts(graph: Graph, epsilon: Number, source: Source | None = None) -> Wholes:
    """Return how many nodes have each degree, pure epsilon per node.

    Example:
        >>> ring = Graph.from_edges([(i, (i + 1) % 9) for i in range(9)])
        >>> degree_counts(ring, 4000).tolist()[:3]
        [0, 0, 9]
    """
    from scipy.optimize import isotonic_regression

    share = rational(epsilon) * BOUND_SHARE
    left = rational(epsilon) - share
    margin = ceil(2 * log(len(BOUNDS) * 10)) / share
    worth = [
        int(projected_degrees(graph, bound).sum()) - (bound + 1) ** 2 / left - margin * 2 * bound
        for bound in BOUNDS
    ]
    scores = [
        min(
            (mine - other) / (2 * bound + 2 * rival)
            for other, rival in zip(worth, BOUNDS, strict=True)
        )
        for mine, bound in zip(worth, BOUNDS, strict=True)
    ]
    with charge(ExponentialCharge(1)):
        bound = BOUNDS[exponential(scores, epsilon=share, sensitivity=1, source=source)]
    exact = at_most(graph, bound)
    with charge(LaplaceCharge(bound + 1)):
        noise = discrete_laplace(scale=(bound + 1) / left, size=exact.shape, source=source)
    fitted = np.rint(np.maximum(isotonic_regression(exact + noise).x, 0))
    counts: Wholes = np.diff(fitted, prepend=0.0).astype(np.int64)
    return counts
