"""Degrees of the model auto: what noisy rows and sums say together, and whole numbers from it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tulle.graphs.generators import social_network
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.synthesis.auto.degrees import Climbed, Noisy, estimate_degrees
from tulle.noise import SeededSource
from tulle.noise.post_processing import post_processing


def counts_from(sequence):
    """Return how many nodes have degree at least 1, 2, ..., n - 1."""
    return np.array([(sequence >= k).sum() for k in range(1, len(sequence))])


def heavy_tail(random, nodes=1000):
    """Return a degree sequence, descending, with one node in twenty far out."""
    tail = nodes // 20
    rows = random.integers(1, 20, nodes - tail), random.integers(20, 300, tail)
    return np.sort(np.concatenate(rows))[::-1]


def noise_of(random, scale, size):
    return np.rint(random.laplace(0, scale, size)).astype(np.int64)


def pairs_in(sequence):
    """Return how many pairs of edges meet."""
    return int((sequence * (sequence - 1) // 2).sum())


def test_degrees_are_exact_without_noise():
    graph = social_network(300, seed=7)
    sequence = np.sort(degrees(graph))[::-1]
    rows = Noisy(counts_from(sequence), 1e-3), Noisy(sequence, 1e-3)
    stars = Climbed(pairs_in(sequence), Fraction(10**6))
    for more in (None, stars):
        made = estimate_degrees(300, Noisy(graph.edge_count, 1e-3), *rows, stars=more)
        assert np.array_equal(made, sequence)


@pytest.mark.parametrize("scale", [0.01, 2.0, 50.0, 5000.0])
def test_noisy_degrees_are_those_of_some_graph(scale):
    random = post_processing(SeededSource(1))
    for nodes in (2, 3, 10, 200):
        reached = Noisy(noise_of(random, scale, nodes - 1), scale)
        sequence = Noisy(noise_of(random, scale, nodes), scale)
        edges = Noisy(int(random.integers(-9, 999)), scale)
        for other in (sequence, None):
            for stars in (None, -10_000, 0, 30, 10**9):
                climbed = None if stars is None else Climbed(stars, Fraction(1, 3))
                made = estimate_degrees(nodes, edges, reached, other, climbed)
                assert len(made) == nodes
                assert 0 <= made.min() <= made.max() < nodes
                assert made.sum() % 2 == 0


def test_the_tail_of_the_degrees_is_not_lost_in_noise():
    random = post_processing(SeededSource(4))
    truth = heavy_tail(random)
    reached = Noisy(counts_from(truth) + noise_of(random, 5.0, 999), 5.0)
    sequence = Noisy(truth + noise_of(random, 5.0, 1000), 5.0)
    edges = int(truth.sum()) // 2
    made = estimate_degrees(1000, Noisy(edges, 0.1), reached, sequence)
    assert made.sum() == pytest.approx(2 * edges, abs=4)
    assert made.var() == pytest.approx(truth.var(), rel=0.1)
    assert np.abs(made - truth)[:20].mean() < 15


def test_edges_are_averaged_with_those_of_the_curve():
    truth = np.sort(np.arange(400) % 23 + 1)[::-1]
    reached, edges = counts_from(truth), int(truth.sum()) // 2
    for scale, near in ((1e-3, edges), (1e6, edges + 300)):
        # With little noise the curve knows better, with much the number of edges does.
        made = estimate_degrees(400, Noisy(edges + 300, 20.0), Noisy(reached, scale))
        assert int(made.sum()) // 2 == pytest.approx(near, abs=10)


def test_pairs_of_edges_that_meet_mend_the_variance():
    random = post_processing(SeededSource(6))
    off: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(8):
        truth = heavy_tail(random)
        reached = Noisy(counts_from(truth) + noise_of(random, 20.0, 999), 20.0)
        edges = Noisy(int(truth.sum()) // 2, 1.0)
        stars = Climbed(pairs_in(truth), Fraction(10))
        for known in off:
            made = estimate_degrees(1000, edges, reached, stars=stars if known else None)
            off[known].append(abs(made.var() / truth.var() - 1))
    assert np.mean(off[True]) < 0.002
    assert np.mean(off[False]) > 5 * np.mean(off[True])


def test_stars_full_of_noise_change_little():
    random = post_processing(SeededSource(7))
    truth = heavy_tail(random)
    reached = Noisy(counts_from(truth) + noise_of(random, 2.0, 999), 2.0)
    edges = Noisy(int(truth.sum()) // 2, 1.0)
    alone = estimate_degrees(1000, edges, reached)
    for wrong in (0, 3 * pairs_in(truth)):
        made = estimate_degrees(1000, edges, reached, stars=Climbed(wrong, Fraction(1, 10**5)))
        assert made.var() == pytest.approx(alone.var(), rel=0.01)
