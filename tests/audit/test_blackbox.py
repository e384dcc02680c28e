import math

import numpy as np
import pytest

import tulle
from tulle.audit import find_pairs, lower_bound, one_by_one, power
from tulle.core.errors import InputError
from tulle.noise import bernoulli, discrete_laplace

SURE = 1 - 1e-8
"""So that a correct bound fails a test about once in a hundred million runs."""


def keep_probability(epsilon):
    return 1 / (1 + math.exp(-epsilon))


def respond(epsilon):
    """Randomized response on one bit, in bulk."""

    def draw(bit, size):
        kept = np.asarray(bernoulli(keep_probability(epsilon), size=size))
        return np.where(kept, bit, 1 - bit)

    return draw


def laplace(scale):
    return lambda value, size: value + discrete_laplace(scale=scale, size=size)


def test_randomized_response_is_bounded_from_below_and_closely():
    evidence = lower_bound(respond(1.0), [(0, 1)], samples=100_000, confidence=SURE)
    assert 0.9 < evidence.epsilon_at_least <= 1.0
    assert evidence.measured == 50_000


def test_half_the_noise_is_caught():
    evidence = lower_bound(laplace(0.5), [(0, 1)], samples=40_000)
    assert evidence.epsilon_at_least > 1.5


def test_a_tail_event_is_found():
    """Two scales differ in the tails only."""
    draw = lambda scale, size: discrete_laplace(scale=scale, size=size)  # noqa: E731
    evidence = lower_bound(draw, [(1, 4)], samples=40_000)
    assert evidence.epsilon_at_least > 2


def test_features_of_vectors():
    def skipped(counts, size):
        noise = discrete_laplace(scale=2, size=(size, 3))
        noise[:, 1] = 0
        return list(np.array(counts) + noise)

    evidence = lower_bound(skipped, [((3, 1, 0), (3, 2, 0))], samples=2_000)
    assert evidence.epsilon_at_least > 4
    assert "entry 1" in evidence.event or "answers" in evidence.event


def test_a_leak_is_found_among_answers_that_never_come_twice():
    def among_noise(secret, size):
        return np.column_stack([discrete_laplace(scale=10**6, size=size), np.full(size, secret)])

    assert lower_bound(among_noise, [(0, 1)], samples=400).epsilon_at_least > 2


def test_a_length_that_tells():
    draw = lambda n, size: [tuple(discrete_laplace(scale=3, size=n)) for _ in range(size)]  # noqa: E731
    assert lower_bound(draw, [(2, 3)], samples=2_000).epsilon_at_least > 4


def test_words_andpairs_of_answers():
    draw = one_by_one(lambda secret: "yes" if secret else "no")
    evidence = lower_bound(draw, [("", "x")], samples=1_000)
    assert evidence.event in ("answer is yes", "answer is no")
    assert evidence.epsilon_at_least > 3


def test_delta_is_taken_off():
    """A secret shown with probability 0.05 is (0, 0.05)."""

    def shown(secret, size):
        return np.where(bernoulli("0.05", size=size), secret, 7)

    assert lower_bound(shown, [(0, 1)], samples=20_000).epsilon_at_least > 1
    assert (
        lower_bound(shown, [(0, 1)], samples=20_000, delta=0.05, confidence=SURE).epsilon_at_least
        <= 0
    )


def test_the_bound_is_seldom_too_high():
    """With 40 tries at confidence 0.95 the true epsilon is exceeded in at most about 5 %."""
    tries = [
        lower_bound(respond(0.5), [(0, 1)], samples=2_000, confidence=0.95).epsilon_at_least
        for _ in range(40)
    ]
    assert sum(bound > 0.5 for bound in tries) <= 10


def test_power_is_what_it_says():
    noticed = power(epsilon=1.0, samples=20_000)
    assert 1.0 < noticed < 1.3
    found = [
        lower_bound(respond(noticed + 0.02), [(0, 1)], samples=20_000).epsilon_at_least > 1.0
        for _ in range(12)
    ]
    assert sum(found) >= 4
    assert power(epsilon=1.0, samples=200_000) < noticed < power(epsilon=1.0, samples=2_000)
    assert power(epsilon=1.0, samples=200, delta=0.999) == math.inf


def test_pairs_come_from_the_unit():
    square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4)
    pairs = find_pairs(square, "edge")
    assert len(pairs) == 6
    exact = one_by_one(lambda graph: tulle.triangles().truth(graph))
    assert lower_bound(exact, pairs, samples=400).epsilon_at_least > 2


def test_refusals():
    with pytest.raises(InputError, match="pair"):
        lower_bound(respond(1.0), [], samples=1000)
    with pytest.raises(InputError, match="samples"):
        lower_bound(respond(1.0), [(0, 1)], samples=10)
    with pytest.raises(InputError, match="hashable"):
        lower_bound(one_by_one(lambda secret: {1: 2}), [(0, 1)], samples=200)
