"""Degree distributions per node as published: what one node moves the counts by."""

from __future__ import annotations

import numpy as np
from baselines.degree_counts import at_most

from tulle.audit.engine.kind import kind_of
from tulle.audit.graphs.projection import PER_NODE


def test_a_node_moves_the_counts_by_at_most_the_bound_and_one() -> None:
    world = kind_of("graph").world_for(5, PER_NODE)
    for bound in (1, 2, 3, 4):
        counts = np.array([at_most(one, bound) for one in world.datasets])
        moved = np.abs(counts[world.first] - counts[world.second]).sum(axis=1)
        assert moved.max() == bound + 1
