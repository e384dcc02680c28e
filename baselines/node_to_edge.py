"""Degrees and edges per node by way of the edge: N2E (Hu, Ding & Dong, arXiv 2511.20125).

N2E clips a graph at a private bound on degrees, so that a node is worth no more than so many edges,
and then asks a mechanism per edge at a budget divided by that number. Rebuilt from its abstract
(the text was not at hand): the bound comes from ``degree_threshold`` with half of epsilon, clipping
from ``projection``, and the mechanism per edge is the sorted degree sequence of Hay et al. (ICDM
2009), made monotone. In its favour a node is priced by what it really moves there, not by a number
of edges: the kept edges of a node that joins move its own degree and one of each other end, so the
sorted sequence by at most twice the bound, and the number of kept edges by at most the bound.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import tulle
from tulle.core.arrays import Wholes
from tulle.core.source import Source
from tulle.core.validate import Number, rational
from tulle.graphs.data import Graph
from tulle.graphs.mechanisms.projection import projected_degrees
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge

BOUND_SHARE = Fraction(1, 2)
COUNT_SHARE = Fraction(1, 50)
"""Parts of epsilon for the bound and for how many nodes there are."""


def clipped_sequence(graph: Graph, bound: int, length: int) -> Wholes:
    """Return the degrees after clipping, the largest first, of so many nodes: zeros fill it up.

    A node that joins moves it by at most twice the bound in L1.

    Example:
        >>> clipped_sequence(Graph.from_edges([(0, 1), (0, 2), (0, 3)]), 2, 5).tolist()
        [2, 1, 1, 0, 0]
    """
    made = np.zeros(length, dtype=np.int64)
    kept = np.sort(projected_degrees(graph, bound))[::-1][:length]
    made[: len(kept)] = kept
    return made


def node_to_edge(graph: Graph, epsilon: Number, source: Source | None = None) -> Wholes:
    """Return how many nodes have each degree, pure epsilon per node."""
    from scipy.optimize import isotonic_regression

    total = rational(epsilon)
    asked = {"unit": "node", "epsilon": total * BOUND_SHARE}
    bound = max(int(tulle.release(graph, tulle.max_degree(), **asked, source=source).value), 1)
    with charge(LaplaceCharge(1)):
        noise = discrete_laplace(scale=1 / (total * COUNT_SHARE), source=source)
    nodes = max(graph.node_count + noise, 1)
    left = total * (1 - BOUND_SHARE - COUNT_SHARE)
    exact = clipped_sequence(graph, bound, nodes)
    with charge(LaplaceCharge(2 * bound)):
        noisy = exact + discrete_laplace(scale=2 * bound / left, size=nodes, source=source)
    fitted = np.rint(isotonic_regression(noisy, increasing=False).x)
    counts: Wholes = np.bincount(np.clip(fitted, 0, bound).astype(np.int64))
    return counts


def kept_edges(graph: Graph, bound: int) -> int:
    """Return how many edges are left after clipping: a node moves that by at most the bound.

    Example:
        >>> kept_edges(Graph.from_edges([(0, 1), (0, 2), (0, 3)]), 2)
        2
    """
    return int(projected_degrees(graph, bound).sum()) // 2


def edges_by_clipping(graph: Graph, epsilon: Number, source: Source | None = None) -> int:
    """Return how many edges there are, pure epsilon per node."""
    total = rational(epsilon)
    asked = {"unit": "node", "epsilon": total * BOUND_SHARE}
    bound = max(int(tulle.release(graph, tulle.max_degree(), **asked, source=source).value), 1)
    with charge(LaplaceCharge(bound)):
        noise = discrete_laplace(scale=bound / (total * (1 - BOUND_SHARE)), source=source)
    return kept_edges(graph, bound) + noise
