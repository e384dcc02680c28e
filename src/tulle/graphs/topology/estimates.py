"""From a released topology to unbiased counts, with their errors. Costs no privacy.

Write a for the bit of a pair, y for the released one and f for the flip probability. Then
(y - f) / (1 - 2f) is an unbiased estimate of a with variance s² = f(1 - f) / (1 - 2f)², and the
estimates of different pairs are independent. Sums and products over different pairs of them are
therefore unbiased as well.
"""

from __future__ import annotations

import math
from math import comb

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Wholes
from tulle.core.compiled import compiled, population_count
from tulle.core.errors import InputError
from tulle.core.release import Release
from tulle.graphs.topology.response import Topology
from tulle.noise.xor.limits import FlipEstimate, Limit

Words = npt.NDArray[np.uint64]

LARGEST_NODES = 20_000
"""Triangles are counted on all pairs of rows: above this it takes more than a minute."""


def estimate_edges(release: Release) -> FlipEstimate:
    """Estimate the number of edges; the error is exact and does not depend on the graph.

    Example:
        >>> import tulle
        >>> graph = tulle.Graph.from_edges([(0, 1), (1, 2)], nodes=9)
        >>> r = tulle.release(graph, tulle.topology(), unit="edge", epsilon=30.0)
        >>> round(estimate_edges(r).value, 6)
        2.0
    """
    released, flip = _topology(release)
    value = (released.edge_count - flip * released.pairs) / (1 - 2 * flip)
    return FlipEstimate(value, _deviation(flip) * math.sqrt(released.pairs))


def estimate_density(release: Release) -> FlipEstimate:
    """Estimate the share of pairs that are joined."""
    released, _ = _topology(release)
    edges = estimate_edges(release)
    return FlipEstimate(edges.value / released.pairs, edges.error / released.pairs)


def estimate_degrees(release: Release) -> FlipEstimate:
    """Estimate the degree of every node; the error is the same for each."""
    released, flip = _topology(release)
    others = released.nodes - 1
    value = (_degrees(released) - flip * others) / (1 - 2 * flip)
    return FlipEstimate(value, _deviation(flip) * math.sqrt(others))


def estimate_triangles(release: Release) -> FlipEstimate:
    """Estimate the number of triangles.

    The product over the three pairs of a triple, summed over all triples, needs only the
    triangles, paths of two edges and edges of the released graph.

    *Error.* The variance is s²·(sum of c²) + s⁴·(n - 2)·edges + s⁶·(number of triples), where c
    is the number of common neighbours of a pair: each product of noises occurs once. Edges and
    the sum of c² are replaced by unbiased estimates, cut at zero.

    Raises:
        InputError: for more than 20,000 nodes.

    Example:
        >>> import tulle
        >>> graph = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 0)], nodes=9)
        >>> r = tulle.release(graph, tulle.topology(), unit="edge", epsilon=30.0)
        >>> round(estimate_triangles(r).value, 6)
        1.0
    """
    released, flip = _topology(release)
    nodes = released.nodes
    if nodes > LARGEST_NODES:
        raise InputError(
            f"Triangles are estimated for at most {LARGEST_NODES:,} nodes; got {nodes:,}. "
            "Ask for tulle.triangles() itself, which is far more accurate."
        )
    if nodes < 3:
        return FlipEstimate(0.0, 0.0)
    degrees = _degrees(released)
    triangles, squares = _pair_moments(_rows(released), degrees, flip)
    edges, paths = released.edge_count, int((degrees * (degrees - 1) // 2).sum())
    triples = comb(nodes, 3)
    numerator = int(triangles) - flip * paths + flip**2 * edges * (nodes - 2) - flip**3 * triples
    value = numerator / (1 - 2 * flip) ** 3
    variance = _deviation(flip) ** 2
    true_edges = max(estimate_edges(release).value, 0.0)
    # E[(estimate of c)²] = c² + s²·(degrees of both, without the pair itself) + s⁴·(n - 2).
    joint = squares / (1 - 2 * flip) ** 4 - (
        variance * 2 * true_edges * (nodes - 2) + variance**2 * (nodes - 2) * released.pairs
    )
    total = variance * max(joint, 0.0) + variance**2 * (nodes - 2) * true_edges
    return FlipEstimate(value, math.sqrt(total + variance**3 * triples))


def limit(release: Release) -> Limit:
    """Return how near the release is to what its epsilon allows: 1 and 1 are the optimum.

    Example:
        >>> import tulle
        >>> graph = tulle.Graph.from_edges([(0, 1), (1, 2)], nodes=9)
        >>> print(limit(tulle.release(graph, tulle.xor(), unit="edge", epsilon=1.0)))
        keep 0.7311 <= e^1 · invent 0.2689: 100.00% of what is possible
    """
    _topology(release)
    known = release.parameters
    epsilon = float(release.guarantee.epsilon or 0)
    return Limit(float(known["keep"]), float(known["invent"]), epsilon)


def _topology(release: Release) -> tuple[Topology, float]:
    if not isinstance(release, Release) or not isinstance(release.value, Topology):
        raise InputError("This needs a release of tulle.topology().")
    return release.value, float(release.parameters["flip"])


def _deviation(flip: float) -> float:
    return math.sqrt(flip * (1 - flip)) / (1 - 2 * flip)


def _degrees(released: Topology) -> Wholes:
    ends = released.edges().ravel()
    return np.bincount(ends, minlength=released.nodes).astype(np.int64)


def _rows(released: Topology) -> Words:
    """Return the full adjacency matrix with 64 columns in a word."""
    nodes = released.nodes
    width = -(-nodes // 64)
    rows = np.zeros((nodes, width), dtype=np.uint64)
    first, second = released.edges().T
    for one, other in ((first, second), (second, first)):
        marks = np.uint64(1) << (other % 64).astype(np.uint64)
        np.bitwise_or.at(rows, (one, other // 64), marks)
    return rows


@compiled
def _pair_moments(rows: Words, degrees: Wholes, flip: float) -> tuple[np.int64, float]:
    """Return the triangles, and the sum over pairs of squared estimates of common neighbours.

    The latter are without their denominator (1 - 2·flip)².
    """
    nodes = rows.shape[0]
    width = rows.shape[1]
    corners = np.int64(0)
    squares = 0.0
    for u in range(nodes):
        for v in range(u + 1, nodes):
            common = np.int64(0)
            for word in range(width):
                common += np.int64(population_count(rows[u, word] & rows[v, word]))
            joined = np.int64((rows[u, v // 64] >> np.uint64(v % 64)) & np.uint64(1))
            corners += common * joined
            ends = degrees[u] + degrees[v] - 2 * joined
            estimate = common - flip * ends + flip * flip * (nodes - 2)
            squares += estimate * estimate
    return corners // 3, squares
