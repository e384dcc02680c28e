"""What noisy counts along both axes of a degree curve say about each degree."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest

from tulle.graphs.synthesis.estimates.staircase import weigh_staircases
from tulle.noise import SeededSource
from tulle.noise.post_processing import post_processing


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
