"""Degrees of the model auto: what noisy rows and sums say together, and whole numbers from it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from tulle.graphs.generators import social_network
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.synthesis.auto.degrees import Climbed, Noisy, estimate_degrees
from tulle.graphs.synthesis.estimates.degree_counts import choose_counts, with_totals
from tulle.graphs.synthesis.estimates.staircase import weigh_staircases
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


def test_staircases_are_weighed_as_if_one_by_one():
    """Against the sum over every degree sequence of five nodes."""
    random = post_processing(SeededSource(3))
    nodes, scales = 5, (1.5, 0.8)
    guess = np.array([0.4, 1.3, 0.7, 2.0, 0.2])
    tilt = np.array([0.0, -0.3, 0.2, 0.5, -0.1])
    for tilted in (None, tilt):
        reached = random.integers(-2, 8, nodes - 1)
        sequence = random.integers(-2, 7, nodes)
        total, expected = 0.0, np.zeros(nodes)
        for rising in combinations_with_replacement(range(nodes), nodes):
            degree = np.array(rising[::-1])
            counts = np.bincount(degree, minlength=nodes)
            at_least = np.array([(degree >= k).sum() for k in range(1, nodes)])
            weight = math.exp(
                -np.abs(at_least - reached).sum() / scales[0]
                - np.abs(degree - sequence).sum() / scales[1]
                + (0.0 if tilted is None else counts @ tilted)
            ) * np.prod((guess / (1 + guess)) ** counts)
            total += weight
            expected += weight * counts
        middle = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
        found = weigh_staircases(reached, sequence, scales, guess, middle, tilted)
        assert found == pytest.approx(expected / total)


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


def test_counts_keep_all_three_totals():
    random = post_processing(SeededSource(8))
    for _ in range(20):
        nodes = int(random.integers(200, 3000))
        degree = np.arange(int(random.integers(20, 200)))
        expected = np.exp(-degree / random.integers(4, 30)) * random.random(len(degree)) ** 2
        expected *= nodes / expected.sum()
        edges, squares = round(float(expected @ degree) / 2), float(expected @ degree**2)
        made = with_totals(choose_counts(expected, nodes, edges, squares), edges, squares)
        assert len(made) == nodes
        assert made.sum() == 2 * edges
        assert float(made @ made) == pytest.approx(squares, abs=4)


def test_a_few_hubs_do_not_bend_the_rest():
    """Three hubs have nearly all squares; where they are is known to a few degrees only."""
    expected = np.zeros(1500)
    expected[1:30] = 2000.0 / np.arange(1, 30) ** 2
    expected[30:300] = 0.1
    for hub in (690, 750, 1458):
        expected[hub - 2 : hub + 3] += (0.1, 0.2, 0.4, 0.2, 0.1)
    degree, nodes = np.arange(1500.0), round(expected.sum())
    expected[1] += nodes - expected.sum()
    edges, squares = round(float(expected @ degree) / 2), float(expected @ degree**2)
    made = with_totals(choose_counts(expected, nodes, edges, squares), edges, squares)
    assert np.abs(made[:3] - (1458, 750, 690)).max() <= 5
    counts = np.bincount(made)[1:15]
    assert counts == pytest.approx(expected[1:15], rel=0.25)
    assert float(made @ made) == pytest.approx(squares, rel=0.01)


def test_degrees_that_may_occur_get_a_node():
    """Forty nodes are somewhere among two hundred degrees: as many as there is room for are."""
    expected = np.append(np.full(20, 50.0), np.full(200, 0.2))
    degree = np.arange(220)
    edges, squares = round(float(expected @ degree) / 2), float(expected @ degree**2)
    counts = choose_counts(expected, 1040, edges, squares)
    assert counts.sum() == 1040
    assert (counts[:20] > 0).all()
    # More than on average, and where they cost less.
    assert (counts[20:] > 0).sum() > 45
    assert (counts[20:80] > 0).sum() > 1.5 * (counts[160:] > 0).sum()
