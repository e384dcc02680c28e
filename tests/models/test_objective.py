"""Objective perturbation for logistic models, with a minimum that is found only nearly."""

import numpy as np

from tulle.models.fitting import minimise_logistic
from tulle.models.objective import near_minimum


def test_a_near_minimum_is_near():
    generator = np.random.default_rng(2)
    features = generator.random((2000, 4)) * 2 - 1
    positive = generator.random(2000) < 0.3
    tilt, penalty, tolerance = generator.normal(size=4) * 50, 0.5, 1e-3
    found = near_minimum(features, positive, tilt, penalty, tolerance)
    best = minimise_logistic(features, positive, tilt, penalty, 1e-10)
    assert np.linalg.norm(found - best) <= tolerance / penalty


def test_a_near_minimum_is_found_where_the_loss_is_flat_or_steep():
    for tilt in (0.0, 1e-9, 1e9):
        found = near_minimum(np.ones((3, 1)), np.array([True] * 3), np.array([tilt]), 1e-2, 1e-3)
        slope = 3 * (1 / (1 + np.exp(-np.clip(found, -700, 700))) - 1) + 1e-2 * found + tilt
        assert abs(slope[0]) <= 1e-3 + 1e-15 * tilt * 8
