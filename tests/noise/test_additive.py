"""The law of every scalar sampler, exactly, from all bit tapes up to a length."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy import integrate
from tests.noise.noise_helpers import (
    PRECISION,
    check_tape_law,
    exp,
    gaussian_mass,
    geometric_mass,
    laplace_mass,
    rounded_laplace_mass,
    tape_law,
)

from tulle import noise
from tulle.core.events import BoundedRange
from tulle.noise import source as bits
from tulle.noise.additive import heavy_from_bits
from tulle.noise.charge import ChoiceCharge, Draw
from tulle.noise.source import Bits

HALF = Fraction(1, 2)


@pytest.fixture(autouse=True)
def _short_tapes(monkeypatch):
    """Few digits by themselves, so that short tapes decide; the law is the same for any reach.

    That it is for the real one too, test_noise_time shows. Bounds are kept, since all tapes ask
    for the same ones.
    """
    monkeypatch.setattr(bits, "REACH", 1)
    monkeypatch.setattr(bits, "exp_bounds_of", lru_cache(bits.exp_bounds_of))
    for kept in (bits.coin_exponents, bits.coin_thresholds):
        kept.cache_clear()
    yield
    for kept in (bits.coin_exponents, bits.coin_thresholds):
        kept.cache_clear()


@pytest.mark.parametrize("bound", range(1, 8))
def test_uniform_below(bound):
    check_tape_law(
        lambda tape: noise.uniform_below(bound, source=tape),
        lambda _: Fraction(1, bound),
        12,
        0.02,
    )


@pytest.mark.parametrize("p", ["0", "1", "1/2", "1/3", "0.1", "0.875"])
def test_bernoulli(p):
    exact = Fraction(p)
    check_tape_law(
        lambda tape: noise.bernoulli(p, source=tape),
        lambda outcome: exact if outcome else 1 - exact,
        14,
        2**-14,
    )


@pytest.mark.parametrize("x", ["0", "1/2", "1", "5/2", "0.1"])
def test_bernoulli_exp(x):
    chance = exp(-Fraction(x))
    check_tape_law(
        lambda tape: noise.bernoulli_exp(x, source=tape),
        lambda outcome: chance if outcome else 1 - chance,
        18,
        0.003,
    )


@pytest.mark.parametrize("scale", ["1/4", "1/2", "1", "3/2", "2"])
def test_geometric(scale):
    check_tape_law(
        lambda tape: noise.geometric(scale=scale, source=tape),
        lambda k: geometric_mass(k, Fraction(scale)),
        18,
        0.12,
    )


@pytest.mark.parametrize("scale", ["1/4", "1/2", "1", "2"])
def test_discrete_laplace(scale):
    check_tape_law(
        lambda tape: noise.discrete_laplace(scale=scale, source=tape),
        lambda x: laplace_mass(x, Fraction(scale)),
        18,
        0.13,
    )


@pytest.mark.parametrize("scale", ["1/4", "1/2", "1"])
def test_rounded_laplace(scale):
    check_tape_law(
        lambda tape: noise.rounded_laplace(scale=scale, source=tape),
        lambda x: rounded_laplace_mass(x, Fraction(scale)),
        18,
        0.04,
    )


@pytest.mark.parametrize("variance", ["1/4", "1/2", "1"])
def test_discrete_gaussian(variance):
    check_tape_law(
        lambda tape: noise.discrete_gaussian(variance=variance, source=tape),
        lambda x: gaussian_mass(x, Fraction(variance)),
        16,
        0.47,
    )


@pytest.mark.parametrize("per", [Fraction(1, 3), Fraction(2, 3)])
def test_exponents_that_are_multiples_are_priced_by_them(per):
    draw = Draw("choice", {"exponents": [0, 3, 1], "per": per, "multiplicities": None})
    stated = ChoiceCharge(1, [0, 3, 1], Fraction(3))
    # A scale of three is stated: the sampler's own, if it is steeper, counts.
    assert stated.event([draw]) == BoundedRange(2 * max(per, Fraction(1, 3)))


def permute_and_flip_law(losses):
    """The closed form: average over all orders."""
    law = [Fraction(0)] * len(losses)
    orders = list(itertools.permutations(range(len(losses))))
    for order in orders:
        alive = Fraction(1, len(orders))
        for index in order:
            yes = exp(-losses[index])
            law[index] += alive * yes
            alive *= 1 - yes
    return law


@pytest.mark.parametrize("scores", [[0, 1], [0, 2, 2], [0, 1, 3]])
def test_permute_and_flip(scores):
    law = permute_and_flip_law([Fraction(max(scores) - score, 2) for score in scores])
    check_tape_law(
        lambda tape: noise.permute_and_flip(scores, epsilon=1, sensitivity=1, source=tape),
        lambda i: law[i],
        15,
        0.02,
    )


@pytest.mark.parametrize("power", [2, 4])
def test_heavy_tailed(power):
    def density(z):
        return 1 / (1 + abs(z) ** power)

    total = integrate.quad(density, -np.inf, np.inf)[0]

    def truth(x):
        part = integrate.quad(density, (x - 0.5) / 2, (x + 0.5) / 2)[0]
        return Fraction(part / total)

    masses, undecided = tape_law(
        lambda tape: heavy_from_bits(Fraction(2), power, Bits(tape), step=1), 17
    )
    assert undecided < 0.35
    for outcome, mass in masses.items():
        assert mass - Fraction(1, 10**9) <= truth(outcome) <= mass + undecided


def test_a_biased_sampler_is_caught():
    """Twins: half the scale, a sign that never flips, a coin that stops a digit too early."""

    def half_scale(tape):
        return noise.discrete_laplace(scale=HALF, source=tape)

    def never_negative(tape):
        return abs(noise.discrete_laplace(scale=1, source=tape))

    def coarse_geometric(tape):
        coins = Bits(tape)
        count = 0
        while coins.fraction(3, 8):  # 0.375 for exp(-1) = 0.368
            count += 1
        return count

    for twin, truth in [
        (half_scale, lambda x: laplace_mass(x, Fraction(1))),
        (never_negative, lambda x: laplace_mass(x, Fraction(1))),
        (coarse_geometric, lambda k: geometric_mass(k, Fraction(1))),
    ]:
        with pytest.raises(AssertionError):
            check_tape_law(twin, truth, 15, 1)


def test_truths_sum_to_one():
    """The closed forms above are laws themselves."""
    for law in (
        lambda x: laplace_mass(x, Fraction(2)),
        lambda x: rounded_laplace_mass(x, Fraction(2)),
        lambda x: gaussian_mass(x, Fraction(2)),
    ):
        assert abs(sum(law(x) for x in range(-60, 61)) - 1) < 1e-12
    assert abs(sum(permute_and_flip_law([Fraction(0), HALF, HALF])) - 1) < PRECISION


@pytest.mark.parametrize("power", [2, 4])
@pytest.mark.parametrize("level", ["0.001", "0.3", "0.5", "0.95", "0.999", "0.99999999"])
def test_heavy_tailed_quantile_is_an_upper_bound(power, level):
    bound = noise.heavy_tailed_quantile(level, power)
    total = integrate.quad(lambda z: 1 / (1 + z**power), 0, np.inf)[0]
    # The part outside, with z = 1/t: the integral of t**(power - 2) / (1 + t**power).
    outside = integrate.quad(lambda t: t ** (power - 2) / (1 + t**power), 0, 1 / bound)[0] / total
    target = float(1 - Fraction(level))
    assert outside <= target * (1 + 1e-9)
    assert outside >= target * (1 - 1e-6)
