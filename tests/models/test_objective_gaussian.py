"""How much Gaussian noise a tilt needs: what is stated is no less than what is lost."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from tulle.models.objective_gaussian import least_ratio, tilt_delta, tilt_epsilon

GRID = np.linspace(-12, 12, 481)
MASSES = norm.pdf(GRID) * (GRID[1] - GRID[0])


def lost(people, ratio, epsilon, angle=0.0):
    """Delta where whoever knows the noise b chooses the gradients u·a - u'·a', 1 long at most."""
    rows = [np.array([1.0, 0.0]), np.array([np.cos(angle), np.sin(angle)])][:people]
    b = np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1) * ratio
    worst = np.full(b.shape[:2], -np.inf)
    # On a grid of all (u, u'): its corners are the worst.
    for signs in product((-1.0, -0.5, 0.0, 0.5, 1.0), repeat=people):
        move = sum(sign * row for sign, row in zip(signs, rows, strict=True))
        worst = np.maximum(worst, (2 * b @ move + move @ move) / (2 * ratio**2))
    # Never more than exp(700): a loss that large costs all of its mass.
    gained = 1 - np.exp(np.clip(epsilon - worst, -700, 0))
    return float(MASSES @ gained @ MASSES)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("people", [1, 2])
def test_no_gradients_lose_more_than_is_stated(people, epsilon):
    for ratio in (people * 0.8 / epsilon, people * 2.5 / epsilon):
        stated = float(tilt_delta(people, ratio, epsilon))
        found = [lost(people, ratio, epsilon, angle) for angle in (0.0, 0.8, np.pi / 2, np.pi)]
        assert max(found) <= min(stated, 1.0) * (1 + 1e-3)
        # For one move that is known beforehand it would be half as much: that is not enough.
        assert max(found) > min(stated, 1.0) * 0.5 * (1 + 1e-3)


@pytest.mark.parametrize("people", [1, 2])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1, 1e-3), (5, 1e-9), (40, 1e-6)])
def test_the_least_noise_costs_what_it_should(people, epsilon, delta):
    ratio = least_ratio(people, Fraction(epsilon), Fraction(delta))
    assert tilt_delta(people, ratio, epsilon) <= delta
    assert tilt_delta(people, ratio * (1 - 1e-6), epsilon) > delta
    assert tilt_epsilon(people, ratio, Fraction(delta)) == pytest.approx(epsilon, rel=1e-9)
    # By tails alone more would be needed.
    tails = norm.isf(delta / (2 * people))
    assert ratio < (tails + np.sqrt(tails**2 + 2 * epsilon)) / (2 * epsilon / people)
