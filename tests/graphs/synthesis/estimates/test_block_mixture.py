"""Which block each node belongs to, from noisy numbers of its neighbours in each block."""

from __future__ import annotations

import numpy as np
import pytest

from tulle.graphs.synthesis.estimates.block_mixture import MixtureTable, place_nodes
from tulle.metrics.communities import mutual_information
from tulle.noise import SeededSource
from tulle.noise.post_processing import post_processing


def test_nodes_find_their_block_through_the_noise():
    random = post_processing(SeededSource(1))
    truth = np.repeat(np.arange(3), 200)
    degree = random.integers(10, 60, 600)
    shares = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    rows = degree[:, None] * shares[truth] + random.laplace(0, 6.0, (600, 3))
    start = np.where(random.random(600) < 0.5, truth, random.integers(0, 3, 600))
    table = MixtureTable(rows, np.full(3, 6.0))
    placed = place_nodes([table], start, np.zeros(600, dtype=np.int64), 3)
    assert (placed.blocks == truth).mean() > 0.85
    assert (placed.blocks == truth).mean() > (rows.argmax(axis=1) == truth).mean() - 0.02
    assert np.corrcoef(placed.weights, degree)[0, 1] > 0.8
    # What a group has in common counts: here it is known to be right nine times in ten.
    told = np.where(random.random(600) < 0.9, truth, (truth + 1) % 3)
    better = place_nodes([table], told, told, 3)
    assert (better.blocks == truth).mean() > max((placed.blocks == truth).mean(), 0.93)


def test_numbers_that_say_nothing_leave_the_start_as_it_is():
    random = post_processing(SeededSource(2))
    told = random.integers(0, 2, 400)
    table = MixtureTable(random.laplace(0, 100.0, (400, 2)), np.full(2, 100.0))
    placed = place_nodes([table], told, told, 2)
    assert mutual_information(placed.blocks, told) > 0.9


@pytest.mark.parametrize("scale", [0.0, 1e-200, 1e-3])
def test_nodes_are_placed_without_any_noise(scale):
    """A block of which nobody knows anyone, and a node that does: unlikely, not impossible."""
    truth = np.repeat([0, 1], 20)
    rows = np.array([[30.0, 0.0], [0.0, 20.0]])[truth]
    rows[0, 1] = 1.0
    table = MixtureTable(rows, np.full(2, scale))
    placed = place_nodes([table], truth, np.zeros(40, dtype=np.int64), 2)
    assert placed.blocks.tolist() == truth.tolist()
    assert np.isfinite(placed.weights).all()


def test_many_nodes_are_placed_by_shares_fitted_to_some(monkeypatch):
    random = post_processing(SeededSource(3))
    truth = random.integers(0, 2, 900)
    rows = 30.0 * (0.1 + 0.8 * np.eye(2)[truth]) + random.laplace(0, 3.0, (900, 2))
    monkeypatch.setattr("tulle.graphs.synthesis.estimates.block_mixture._MOST_FITTED", 200)
    placed = place_nodes(
        [MixtureTable(rows, np.full(2, 3.0))], rows.argmax(axis=1), np.zeros(900, dtype=np.int64), 2
    )
    assert (placed.blocks == truth).mean() > 0.97
