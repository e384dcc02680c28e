"""How many nodes get each degree: whole numbers from what is known on average."""

from __future__ import annotations

import numpy as np
import pytest

from tulle.graphs.synthesis.estimates.degree_counts import choose_counts, with_totals
from tulle.noise import SeededSource
from tulle.noise.post_processing import post_processing


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
