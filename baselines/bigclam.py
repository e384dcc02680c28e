"""BIGCLAM: overlapping communities of a public graph, the judge of community tables. Not private.

Reference: Yang & Leskovec, Overlapping community detection at scale, WSDM 2013. Each node has a
strength in each community; two nodes are joined with probability 1 - exp(-product of strengths).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse

from tulle.core.arrays import Wholes
from tulle.graphs.data import Graph

_LEAST = 1e-4


def bigclam(graph: Graph, communities: int, rounds: int = 60) -> list[Wholes]:
    """Return the members of each community, by ascent on the likelihood from local neighbourhoods.

    Example:
        >>> two = Graph.from_edges(
        ...     [(u, v) for s in (0, 6) for u in range(s, s + 6) for v in range(s, u)], nodes=12)
        >>> [group.tolist() for group in bigclam(two, 2)]
        [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    """
    joined = graph.to_scipy().astype(np.float32)
    nodes = graph.node_count
    one, other = graph.edges().T
    strength = _start(joined, communities)
    best = _likelihood(one, other, strength)
    step = np.float32(0.5 / max(float(joined.sum(axis=1).max()), 1.0))
    for _ in range(rounds):
        pull = 1 / -np.expm1(-_products(one, other, strength))
        weighted = scipy.sparse.csr_array((pull, (one, other)), shape=(nodes, nodes))
        slope = weighted @ strength + weighted.T @ strength - (strength.sum(axis=0) - strength)
        while step > 1e-9:
            tried = np.clip(strength + step * slope, 0, 1000).astype(np.float32)
            reached = _likelihood(one, other, tried)
            if reached >= best:
                break
            step /= np.float32(2)
        else:
            break
        strength, gained = tried, reached - best
        best, step = reached, step * np.float32(1.5)
        if gained < 1e-6 * abs(best):
            break
    density = min(max(2 * len(one) / max(nodes * (nodes - 1), 1), 1e-12), 1 - 1e-6)
    least = math.sqrt(-math.log1p(-density))
    members = [np.flatnonzero(strength[:, place] > least) for place in range(communities)]
    return [group for group in members if len(group)]


def _start(joined: Any, communities: int) -> Any:
    """Return strengths of one in the neighbourhoods of least conductance, far from each other."""
    nodes = joined.shape[0]
    degrees = np.asarray(joined.sum(axis=1)).ravel()
    dense = joined.toarray()
    # Many edges are multiplied faster as if all pairs were joined.
    held = dense if joined.nnz > nodes**2 / 20 else joined
    paths = held @ held
    triangles = np.asarray((paths * held).sum(axis=1)).ravel() / 2
    volume = joined @ degrees + degrees
    cut = np.maximum(volume - 2 * (degrees + triangles), 0)
    conductance = cut / np.maximum(np.minimum(volume, degrees.sum() - volume), 1e-9)
    conductance[degrees == 0] = np.inf
    made = np.zeros((nodes, communities), dtype=np.float32)
    left = np.ones(nodes, dtype=bool)
    for place in range(communities):
        chosen = int(np.argmin(np.where(left, conductance, np.inf)))
        made[:, place] = dense[chosen]
        made[chosen, place] = 1
        left &= made[:, place] == 0
        if not left.any():
            break
    return made + np.float32(0.02)


def _products(one: Any, other: Any, strength: Any) -> Any:
    return np.maximum(np.einsum("ij,ij->i", strength[one], strength[other]), _LEAST)


def _likelihood(one: Any, other: Any, strength: Any) -> float:
    """Return the logarithm of the likelihood; pairs that are apart by what is left of all pairs."""
    product = _products(one, other, strength).astype(np.float64)
    whole = strength.sum(axis=0, dtype=np.float64)
    every = (whole @ whole - (strength.astype(np.float64) ** 2).sum()) / 2
    return float(np.log(-np.expm1(-product)).sum() - (every - product.sum()))
