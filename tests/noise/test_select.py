"""Choices among finitely many options: private selection by scores, and even draws."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from tests.noise.noise_helpers import (
    SIGNIFICANCE,
    check_tape_law,
    chi_square,
    counted,
    exp,
)

from tulle import noise
from tulle.noise import SeededSource
from tulle.noise.select import Choice
from tulle.noise.source import Bits


@pytest.mark.parametrize("scores", [[0, 1], [0, 1, 1], [0.5, 0.25, 1.0]])
def test_exponential(scores):
    weights = [exp(Fraction(score) / 2) for score in scores]
    losses = [(max(map(Fraction, scores)) - Fraction(score)) / 2 for score in scores]
    choice = Choice(losses, None)
    check_tape_law(
        lambda tape: choice.draw(Bits(tape), step=1),
        lambda i: weights[i] / sum(weights),
        12,
        2**-10,
    )


@pytest.mark.parametrize(
    ("exponents", "multiplicities"),
    [([0, 0, 0], [1, 2, 0]), ([0, 3, 1], [1, 20, 2]), ([5, 90], [1, 10**37])],
)
def test_choose_log_weights(exponents, multiplicities):
    weights = [m * exp(-Fraction(c)) for c, m in zip(exponents, multiplicities, strict=True)]
    choice = Choice([Fraction(c) for c in exponents], multiplicities)
    check_tape_law(
        lambda tape: choice.draw(Bits(tape), step=1),
        lambda i: weights[i] / sum(weights),
        12,
        2**-10,
    )


@pytest.mark.parametrize("per", [Fraction(1, 3), Fraction(5, 2)])
def test_exponents_that_are_multiples(per):
    exponents, multiplicities = [0, 3, 1], [1, 20, 2]
    weights = [m * exp(-per * c) for c, m in zip(exponents, multiplicities, strict=True)]

    def check(choice):
        check_tape_law(
            lambda tape: choice.draw(Bits(tape), step=1),
            lambda i: weights[i] / sum(weights),
            12,
            2**-10,
        )

    check(Choice(exponents, multiplicities, per))
    # One that leaves the factor out is caught.
    with pytest.raises(AssertionError):
        check(Choice(exponents, multiplicities))


def test_exponential_law():
    scores = [0, 1, Fraction(5, 2), 0.75]
    weights = np.exp([0.4 * float(s) for s in scores])
    draws = noise.exponential(scores, epsilon="0.8", sensitivity=1, size=20_000)
    assert chi_square(draws, dict(enumerate((weights / weights.sum()).tolist()))) > SIGNIFICANCE
    half = noise.exponential(scores, epsilon="0.4", sensitivity=1, size=20_000)
    assert chi_square(half, dict(enumerate((weights / weights.sum()).tolist()))) < SIGNIFICANCE


def test_permute_and_flip_beats_exponential():
    """Its mean score is at least as good; here by far more than the test's error."""
    scores = [0] * 9 + [4]
    source = SeededSource(6)
    flips = [
        noise.permute_and_flip(scores, epsilon=1, sensitivity=1, source=source) for _ in range(4000)
    ]
    others = noise.exponential(scores, epsilon=1, sensitivity=1, size=4000, source=source)
    assert flips.count(9) > (others == 9).sum() + 200


def test_selection_of_extremes():
    assert noise.exponential([10**400, 0], epsilon=1, sensitivity=1) == 0
    assert noise.exponential([7.5], epsilon=1e-9, sensitivity=1) == 0
    assert noise.choose_log_weights([10**6, 0], multiplicities=[1, 0]) == 0
    # 2**3000 options at a cost that just outweighs them.
    cost = 3000 * math.log(2) - math.log(3)
    picks = Counter(
        noise.choose_log_weights([0, cost], multiplicities=[1, 2**3000], size=2000).tolist()
    )
    assert counted(picks, {0: 0.25, 1: 0.75}) > SIGNIFICANCE
    assert noise.exponential(np.arange(3) * 5000, epsilon=1, sensitivity=1) == 2
