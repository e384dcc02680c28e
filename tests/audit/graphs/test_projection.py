"""The projection to a largest degree."""

from __future__ import annotations

import numpy as np

from tulle.audit.engine.kind import kind_of
from tulle.audit.graphs.projection import PER_NODE
from tulle.graphs.mechanisms.projection import at_most, candidates, projected_degrees

GRAPHS = kind_of("graph")


def test_the_projection_moves_as_little_as_the_paper_says():
    world = GRAPHS.world_for(5, PER_NODE)
    first, second = world.first, world.second
    for bound in candidates(4):
        kept = [projected_degrees(graph, bound) for graph in world.datasets]
        counts = np.array([at_most(row, bound) for row in kept])
        moved = np.abs(counts[first] - counts[second]).sum(axis=1)
        assert moved.max() == bound + 1
        steps = np.diff(np.concatenate([np.zeros((len(counts), 1), int), counts], axis=1), axis=1)
        assert np.abs(steps[first] - steps[second]).sum(axis=1).max() == 2 * bound + 1
        sums = np.array([row.sum() for row in kept])
        assert np.abs(sums[first] - sums[second]).max() <= 2 * bound
