"""Which blocks the model auto draws a graph with. Everything here reads released numbers only."""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.core.mechanism import Parameters
from tulle.graphs.synthesis.auto.schedule import AutoSettings, budget, ranges_of, ranks_of
from tulle.graphs.synthesis.auto.tuning import TUNING
from tulle.graphs.synthesis.edge_counts import range_of
from tulle.graphs.synthesis.estimates.block_mixture import (
    MixtureTable,
    Placed,
    expected_degrees,
    place_nodes,
)
from tulle.graphs.synthesis.estimates.blocks import find_blocks, square_of
from tulle.graphs.synthesis.model import Statistics


class Division(NamedTuple):
    """How the nodes are divided."""

    blocks: Wholes
    weights: Floats
    """How large the degree of each node is expected to be."""
    counts: Floats
    """The noisy number of edges between each two blocks."""


def first_blocks(seen: Statistics, settings: Parameters) -> Wholes:
    """Return the block of each node by its place in the order."""
    ranges = ranges_of(seen, settings)
    blocks, _ = find_blocks(square_of(seen["order"], ranges))
    return blocks[range_of(AutoSettings.read(settings).nodes, ranges)]


def last_blocks(seen: Statistics, settings: Parameters) -> Placed:
    """Return the block of each node after its neighbours were counted, and its expected degree."""
    start = first_blocks(seen, settings)
    kinds = int(start.max()) + 1
    scale = float(2 / budget(settings, seen, "members"))
    members = seen["members"].reshape(len(start), kinds).astype(np.float64)
    return place_nodes([MixtureTable(members, np.full(kinds, scale))], start, start, kinds)


def divide(seen: Statistics, settings: Parameters, edges: int) -> Division:
    """Return the division that the released parts show; one block if they show none."""
    nodes = AutoSettings.read(settings).nodes
    blocks, weights = np.zeros(nodes, dtype=np.int64), np.zeros(nodes)
    if "home" in seen:
        blocks, weights = seen["home"], seen["weights"].astype(np.float64)
    elif "members" in seen:
        blocks, weights = last_blocks(seen, settings)
    elif "ranks" in seen:
        ranks = ranks_of(seen, settings)
        weights = expected_degrees(ranks.table(np.ones(nodes, dtype=np.bool_)))
    if "pairs" in seen:
        # By the cells that were counted: the last blocks may be empty by now.
        found = (isqrt(8 * len(seen["pairs"]) + 1) - 1) // 2
        counts = np.maximum(square_of(seen["pairs"], found), 0.0)
        # What is found in a core may be parts of one community: these are joined again. A node in
        # the wrong part then still has its neighbours near, and triangles can close around it.
        kinds, modularity = find_blocks(counts)
        if modularity >= TUNING.blocks.shown:
            return Division(kinds[blocks], weights, join(counts, kinds))
    return Division(np.zeros(nodes, dtype=np.int64), weights, np.array([[float(edges)]]))


def join(counts: Floats, kinds: Wholes) -> Floats:
    """Return the numbers of edges between kinds of blocks, from those between blocks.

    Example:
        >>> join(np.array([[5.0, 2, 0], [2, 4, 1], [0, 1, 7]]), np.array([0, 0, 1])).tolist()
        [[11.0, 1.0], [1.0, 7.0]]
    """
    chosen = np.eye(int(kinds.max()) + 1)[kinds]
    # An edge inside stands once on the diagonal, one between two blocks twice beside it.
    joined: Floats = chosen.T @ (counts + np.diag(np.diag(counts))) @ chosen
    joined[np.diag_indices(len(joined))] /= 2
    return joined
