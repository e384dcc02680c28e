"""K-norm noise: its law from all bit tapes, by the sum over cubes, and by draws in bulk."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import comb, prod

import numpy as np
import pytest
from scipy import stats
from tests.noise.noise_helpers import (
    SIGNIFICANCE,
    check_tape_law,
    chi_square,
    exp,
    laplace_mass,
    same_law,
)
from tests.noise.test_kernels import check_independent_work, watch_work

from tulle import noise
from tulle.core.error_law import KNormLaw
from tulle.core.errors import InputError
from tulle.core.events import Pure
from tulle.noise import knorm
from tulle.noise import source as bits
from tulle.noise.charge import CostError, KNormCharge, LaplaceCharge, charge
from tulle.noise.knorm import _radius, accepted_floor
from tulle.noise.source import Bits
from tulle.noise.watch import watch


@pytest.fixture
def short_tapes(monkeypatch):
    """Few digits by themselves, so that short tapes decide; the law is the same for any reach."""
    monkeypatch.setattr(bits, "REACH", 1)
    monkeypatch.setattr(bits, "exp_bounds_of", lru_cache(bits.exp_bounds_of))
    kept = (bits.coin_exponents, bits.coin_thresholds)
    for each in kept:
        each.cache_clear()
    yield
    for each in kept:
        each.cache_clear()


@lru_cache
def radius_masses(scale, count, reach=400):
    weights = [(2 * r + 1) ** count * exp(-Fraction(r) / scale) for r in range(reach)]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 7, 8])
def test_scaled_bits_are_uniform(bound):
    check_tape_law(lambda tape: Bits(tape).scaled(bound), lambda _: Fraction(1, bound), 12, 0.01)


@pytest.mark.parametrize(("scale", "count"), [("1/2", 1), ("1/2", 2)])
def test_the_law_of_the_radius(scale, count, short_tapes):
    exact = Fraction(scale)
    check_tape_law(
        lambda tape: _radius(exact, count, Bits(tape), tape),
        lambda radius: radius_masses(exact, count)[radius],
        15,
        0.95,
    )


def test_one_number_is_discrete_laplace(short_tapes):
    check_tape_law(
        lambda tape: int(noise.discrete_knorm(scale="1/2", count=1, source=tape)[0]),
        lambda x: laplace_mass(x, Fraction(1, 2)),
        15,
        0.95,
    )


@pytest.mark.parametrize("count", [1, 2, 3])
def test_cubes_add_up_to_the_norm(count):
    """P(x) = sum over R of P(R)/(2R + 1)^count, to sixty digits, is proportional to exp(-max)."""
    scale = Fraction(2)
    masses = radius_masses(scale, count)
    for x in product(range(-3, 4), repeat=count):
        largest = max(map(abs, x))
        mass = sum(masses[r] / (2 * r + 1) ** count for r in range(largest, len(masses)))
        at_zero = sum(mass / (2 * r + 1) ** count for r, mass in enumerate(masses))
        assert abs(mass / at_zero - exp(-Fraction(largest) / scale)) < Fraction(1, 10**60)


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_what_is_accepted_has_the_weights(count):
    """The chance to accept turns binomial(R + count, count) into (2R + 1)^count."""
    for radius in (0, 1, 2, 7, 10**6, 2**52):
        wanted = Fraction((2 * radius + 1) ** count, comb(radius + count, count))
        chance = wanted / (2**count * prod(range(1, count + 1)))
        for known in (1, 31, 128):
            floor, whole = accepted_floor(radius, count, known)
            assert floor == (chance.numerator << known) // chance.denominator
            assert not whole or floor == chance * 2**known
        assert chance <= 1


@pytest.mark.parametrize("scale", [1, 3])
def test_two_numbers_by_draws(scale):
    draws = Counter(
        tuple(noise.discrete_knorm(scale=scale, count=2).tolist()) for _ in range(20_000)
    )
    weights = {
        x: float(exp(-Fraction(max(map(abs, x)), scale))) for x in product(range(-40, 41), repeat=2)
    }
    total = sum(weights.values())
    coded = {a * 1000 + b: mass / total for (a, b), mass in weights.items()}
    flat = np.repeat([a * 1000 + b for a, b in draws], list(draws.values()))
    assert chi_square(flat, coded) > SIGNIFICANCE
    # Twins: noise of its own for each number, and the same radius spread over the surface alone.
    separate = noise.discrete_laplace(scale=scale, size=(20_000, 2))
    assert chi_square(separate @ [1000, 1], coded) < SIGNIFICANCE


def shares_below(draws, scale):
    """Return where the largest of all lies in its law, a gamma of shape count."""
    return stats.gamma.cdf(np.abs(draws).max(axis=1) / scale, draws.shape[1])


@pytest.mark.parametrize("count", [14, 200])
def test_many_numbers_by_draws(count):
    scale = 2**30
    draws = np.array([noise.discrete_knorm(scale=scale, count=count) for _ in range(1500)])
    assert stats.kstest(shares_below(draws, scale), "uniform").pvalue > SIGNIFICANCE
    deviation = scale * np.sqrt((count + 1) * (count + 2) / 3)
    assert abs(draws.std() / deviation - 1) < 0.05
    assert KNormLaw(Fraction(scale), count).variance() == pytest.approx(deviation**2)
    # Given the largest, the others are uniform up to it, of either sign.
    sizes = np.abs(draws)
    rest = np.sort(sizes, axis=1)[:, :-1] / sizes.max(axis=1, keepdims=True)
    assert stats.kstest(rest.ravel()[:10_000], "uniform").pvalue > SIGNIFICANCE
    assert stats.binomtest(int((draws > 0).sum()), draws.size).pvalue > SIGNIFICANCE
    # Two-sided: a fifth more or less is noticed.
    for factor in (0.8, 1.25):
        assert stats.kstest(shares_below(draws, factor * scale), "uniform").pvalue < SIGNIFICANCE


def test_tables_and_single_draws_have_one_law():
    few, many = (
        np.array([_radius(Fraction(50), 40, Bits(), noise.system()) for _ in range(1500)]),
        [],
    )
    limit = knorm.FEW
    try:
        knorm.FEW = 1
        many = np.array([_radius(Fraction(50), 40, Bits(), noise.system()) for _ in range(1500)])
    finally:
        knorm.FEW = limit
    assert same_law(few, many, 20) > SIGNIFICANCE


def test_work_says_nothing_about_the_radius():
    def draw(source):
        return int(np.abs(noise.discrete_knorm(scale=9, count=3, source=source)).max())

    check_independent_work(watch_work(draw, 300))

    def by_value(source):
        """As many bits as the radius has: the work tells it."""
        coins = Bits(source)
        radius = _radius(Fraction(9), 3, coins, source)
        return max(abs(coins.below(2 * radius + 1) - radius) + radius for _ in range(8 + radius))

    with pytest.raises(AssertionError):
        check_independent_work(watch_work(by_value, 300))


@pytest.mark.parametrize(("scale", "count"), [(1, 2), (2, 1), (5, 8), (40, 60), (2**40, 14)])
def test_half_widths_cover_all_numbers_at_once(scale, count):
    runs, level = 1500, 0.9
    width = KNormLaw(Fraction(scale), count).half_width(level)
    hits = sum(
        np.abs(noise.discrete_knorm(scale=scale, count=count)).max() <= width for _ in range(runs)
    )
    assert stats.binom.cdf(hits, runs, level) >= SIGNIFICANCE
    assert hits / runs < 0.99 if scale > 4 else True


def test_half_widths_cover_exactly_where_all_can_be_summed():
    for scale, count in [(1, 1), (1, 2), (2, 2), (3, 3)]:
        sizes = range(600)
        shells = [
            ((2 * m + 1) ** count - max(2 * m - 1, 0) ** count) * exp(-Fraction(m, scale))
            for m in sizes
        ]
        for level in (0.5, 0.9, 0.99):
            width = KNormLaw(Fraction(scale), count).half_width(level)
            assert sum(shells[: int(width) + 1]) / sum(shells) >= Fraction(level)


def test_it_is_charged_by_its_largest_move():
    with watch() as events, charge(KNormCharge(2)):
        noise.discrete_knorm(scale=8, count=3)
    assert events == [Pure(Fraction(1, 4))]
    with pytest.raises(CostError), watch(), charge(LaplaceCharge(2)):
        noise.discrete_knorm(scale=8, count=3)


@pytest.mark.parametrize(("scale", "count"), [(2, 5), (2**47, 2**14), (2**49, 1), (0, 1), (1, 0)])
def test_what_cannot_be_drawn_is_refused(scale, count):
    with pytest.raises(InputError):
        noise.discrete_knorm(scale=scale, count=count)
