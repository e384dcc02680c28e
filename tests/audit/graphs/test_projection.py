"""The projection to a largest degree."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tulle.audit.engine.kind import kind_of
from tulle.audit.graphs.projection import PER_NODE
from tulle.core.arrays import Wholes
from tulle.graphs.mechanisms.projection import (
    ProjectionSettings,
    block_counts,
    block_starts,
    candidates,
    finish_counts,
    moved,
    projected_degrees,
)

GRAPHS = kind_of("graph")
EPSILONS = (Fraction(1, 200), Fraction(1), Fraction(10**9))
"""Whatever epsilon is: at the first blocks have several degrees, at the last each has one."""


def most_moved(degrees: object, bound: int, epsilon: Fraction) -> int:
    """Return how far any node moves the sums of blocks, over all graphs of up to five nodes."""
    world = GRAPHS.world_for(5, PER_NODE)
    counts = np.array([block_counts(degrees(one), bound, epsilon) for one in world.datasets])
    return int(np.abs(counts[world.first] - counts[world.second]).sum(axis=1).max())


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("bound", candidates(5))
def test_sums_of_blocks_move_as_little_as_is_paid_for(bound: int, epsilon: Fraction):
    assert most_moved(lambda one: projected_degrees(one, bound), bound, epsilon) <= moved(bound)
    if bound <= 4:
        # No bound could be smaller: someone who brings that many edges moves that much.
        assert most_moved(lambda one: projected_degrees(one, bound), bound, epsilon) == moved(bound)


def test_sums_of_blocks_of_clipped_degrees_move_further():
    def clipped(graph: object) -> Wholes:
        return np.minimum(np.diff(graph.csr()[0]), 1)

    assert most_moved(clipped, 1, Fraction(1, 200)) > moved(1)


def test_blocks_that_overlap_move_further():
    """As does whatever counts a degree twice: here the sums from each block on."""
    world = GRAPHS.world_for(5, PER_NODE)
    kept = [projected_degrees(one, 4) for one in world.datasets]
    sums = np.array([block_counts(one, 4, Fraction(1, 200)) for one in kept])
    sums[:, :-1] = np.cumsum(sums[:, -2::-1], axis=1)
    assert np.abs(sums[world.first] - sums[world.second]).sum(axis=1).max() > moved(4)


def test_one_node_moves_kept_degrees_by_twice_the_bound():
    world = GRAPHS.world_for(5, PER_NODE)
    for bound in candidates(4):
        sums = np.array([projected_degrees(one, bound).sum() for one in world.datasets])
        assert np.abs(sums[world.first] - sums[world.second]).max() <= 2 * bound


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("bound", [1, 2, 3, 5, 8, 100, 1000])
def test_blocks_divide_the_degrees_below_the_bound(bound: int, epsilon: Fraction):
    starts = block_starts(bound, epsilon)
    assert starts[0] == 0
    assert starts[-1] == bound
    assert (np.diff(starts) >= 1).all()
    if epsilon > 1000:
        assert starts == list(range(bound + 1))


@pytest.mark.parametrize("bound", [1, 2, 7, 40])
def test_without_noise_the_distribution_comes_back(bound: int):
    draw = np.random.default_rng(bound)
    kept = draw.integers(0, bound + 1, size=300)
    settings = ProjectionSettings(50, Fraction(1), Fraction(10**9), Fraction(1))
    sums = block_counts(kept, bound, settings.epsilon_answer)
    found = finish_counts(sums, bound, settings)
    assert found[: bound + 1].tolist() == np.bincount(kept, minlength=bound + 1).tolist()
    assert not found[bound + 1 :].any()


@pytest.mark.parametrize("nodes", [-40, 0, 1, 30])
def test_any_noise_gives_a_distribution(nodes: int):
    """Whatever comes out of the noise, counts are whole, not negative, and add up to the nodes."""
    draw = np.random.default_rng(3)
    settings = ProjectionSettings(20, Fraction(1), Fraction(1, 100), Fraction(1))
    for bound in (1, 2, 5, 20):
        length = len(block_starts(bound, settings.epsilon_answer))
        noisy = np.append(draw.integers(-500, 500, length - 1), nodes)
        found = finish_counts(noisy, bound, settings)
        assert found.shape == (21,)
        assert (found >= 0).all()
        assert found.sum() == max(nodes, 0)
