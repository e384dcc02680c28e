"""Large samples against closed forms and against OpenDP, at a fixed significance of 1e-6."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy import stats
from tests.noise.noise_helpers import (
    SIGNIFICANCE,
    chi_square,
    counted,
    exp,
    gaussian_mass,
    same_law,
    scale_p_value,
)

from tulle import noise
from tulle.noise import SeededSource, system

SOURCES = [pytest.param(system, id="system"), pytest.param(lambda: SeededSource(2024), id="seeded")]


def laplace_masses(scale, reach=20):
    ratio = np.exp(-1 / scale)
    zero = (1 - ratio) / (1 + ratio)
    span = int(reach * scale) + 2
    return {x: float(zero * ratio ** abs(x)) for x in range(-span, span + 1)}


def binned(draws, width):
    """Which cell of ``width`` neighbouring integers a draw falls into."""
    return np.asarray(draws) // width


def binned_masses(scale, width):
    ratio = np.exp(-1 / scale)
    norm = (1 - ratio) / (1 + ratio)

    def below(x):
        if x < 0:
            return norm * np.exp(x / scale) / (1 - ratio)
        return 1 - norm * np.exp(-(x + 1) / scale) / (1 - ratio)

    cells = int(16 * scale / width) + 1
    return {
        c: float(below((c + 1) * width - 1) - below(c * width - 1)) for c in range(-cells, cells)
    }


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("scale", [0.5, 3, 100])
def test_discrete_laplace_in_bulk(scale, source):
    draws = noise.discrete_laplace(scale=scale, size=400_000, source=source())
    assert chi_square(draws, laplace_masses(scale)) > SIGNIFICANCE


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("scale", [1000, 10**6, 10**9, 2**48])
def test_discrete_laplace_with_digits(scale, source):
    draws = noise.discrete_laplace(scale=scale, size=400_000, source=source())
    width = scale // 20
    assert chi_square(binned(draws, width), binned_masses(scale, width)) > SIGNIFICANCE
    # The low digits too: nearly uniform modulo a small number, at a large scale.
    if scale >= 10**6:
        assert chi_square(draws % 64, dict.fromkeys(range(64), 1 / 64)) > SIGNIFICANCE


def test_discrete_laplace_one_by_one():
    source = SeededSource(5)
    draws = [noise.discrete_laplace(scale=2.5, source=source) for _ in range(30_000)]
    assert chi_square(draws, laplace_masses(2.5)) > SIGNIFICANCE


def test_few_and_many_have_one_law():
    few = np.concatenate([noise.discrete_laplace(scale=7, size=100) for _ in range(300)])
    many = noise.discrete_laplace(scale=7, size=30_000)
    assert same_law(few, many) > SIGNIFICANCE


@pytest.mark.parametrize("scale", [0.5, 20])
def test_discrete_laplace_against_opendp(scale):
    ours = noise.discrete_laplace(scale=scale, size=100_000)
    with noise.backend("opendp"):
        theirs = noise.discrete_laplace(scale=scale, size=100_000)
    assert same_law(ours, theirs) > SIGNIFICANCE


@pytest.mark.parametrize("sigma", [1.5, 40])
def test_discrete_gaussian_against_opendp(sigma):
    ours = noise.discrete_gaussian(sigma=sigma, size=60_000)
    with noise.backend("opendp"):
        theirs = noise.discrete_gaussian(sigma=sigma, size=60_000)
    assert same_law(ours, theirs) > SIGNIFICANCE


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("variance", ["1/4", "2", "30"])
def test_discrete_gaussian_in_bulk(variance, source):
    exact = Fraction(variance)
    draws = noise.discrete_gaussian(variance=variance, size=400_000, source=source())
    masses = {x: float(gaussian_mass(x, exact)) for x in range(-40, 41)}
    assert chi_square(draws, masses) > SIGNIFICANCE


@pytest.mark.parametrize("sigma", [300, 5000, 10**6, 2**40])
def test_discrete_gaussian_of_large_sigma(sigma):
    """Beyond a few hundred the lattice is finer than the test can see: compare with the normal."""
    draws = noise.discrete_gaussian(sigma=sigma, size=300_000, source=SeededSource(11))
    edges = np.linspace(-3.5, 3.5, 40)
    cells = np.searchsorted(np.floor(edges * sigma) + 0.5, draws)
    bounds = np.concatenate([[-np.inf], (np.floor(edges * sigma) + 0.5) / sigma, [np.inf]])
    masses = dict(enumerate(np.diff(stats.norm.cdf(bounds)).tolist()))
    assert chi_square(cells, masses) > SIGNIFICANCE


def test_discrete_gaussian_one_by_one():
    source = SeededSource(8)
    draws = [noise.discrete_gaussian(sigma=2, source=source) for _ in range(10_000)]
    masses = {x: float(gaussian_mass(x, Fraction(4))) for x in range(-20, 21)}
    assert chi_square(draws, masses) > SIGNIFICANCE


@pytest.mark.parametrize("scale", [0.4, 5])
def test_rounded_laplace_in_bulk(scale):
    draws = noise.rounded_laplace(scale=scale, size=400_000)
    law = stats.laplace(scale=scale)
    span = range(-int(16 * scale) - 2, int(16 * scale) + 3)
    masses = {x: float(law.cdf(x + 0.5) - law.cdf(x - 0.5)) for x in span}
    assert chi_square(draws, masses) > SIGNIFICANCE


def test_geometric_in_bulk():
    draws = noise.geometric(scale=4, size=400_000)
    ratio = np.exp(-0.25)
    assert chi_square(draws, {k: (1 - ratio) * ratio**k for k in range(80)}) > SIGNIFICANCE


def test_an_array_of_scales():
    scales = np.tile([0.5, 20.0], 100_000)
    draws = noise.discrete_laplace(scale=scales, source=SeededSource(1))
    assert draws.shape == scales.shape
    assert chi_square(draws[::2], laplace_masses(0.5)) > SIGNIFICANCE
    assert chi_square(draws[1::2], laplace_masses(20)) > SIGNIFICANCE
    fractions = [Fraction(1, 2)] * 300 + [Fraction(20)] * 300
    draws = noise.discrete_laplace(scale=fractions)
    assert np.abs(draws[:300]).mean() < 2 < np.abs(draws[300:]).mean()


@pytest.mark.parametrize("scale", [1, 10, 1000])
def test_scale_test_is_two_sided(scale):
    right = noise.discrete_laplace(scale=scale, size=20_000)
    assert scale_p_value(right, scale) > SIGNIFICANCE
    for factor in ("0.7", "1.3"):
        wrong = noise.discrete_laplace(scale=Fraction(factor) * scale, size=20_000)
        assert scale_p_value(wrong, scale) < SIGNIFICANCE


@pytest.mark.parametrize("sigma", [3, 6000])
def test_gaussian_scale_test_is_two_sided(sigma):
    """20,000 squares put 30 % more than 30 standard errors away."""

    def p_value(draws):
        error = np.sqrt(2 / len(draws))
        return 2 * stats.norm.sf(abs((draws / sigma).var() - 1) / error)

    assert p_value(noise.discrete_gaussian(sigma=sigma, size=20_000)) > SIGNIFICANCE
    for factor in ("0.7", "1.3"):
        wrong = noise.discrete_gaussian(sigma=Fraction(factor) * sigma, size=20_000)
        assert p_value(wrong) < SIGNIFICANCE


def test_a_stuck_bit_is_caught():
    """Broken twin: the lowest bit of each byte of randomness is always set."""

    class Stuck(SeededSource):
        def read(self, count):
            return bytes(byte | 1 for byte in super().read(count))

    draws = noise.discrete_laplace(scale=3, size=100_000, source=Stuck(3))
    assert chi_square(draws, laplace_masses(3)) < SIGNIFICANCE


def test_uniform_below():
    for bound in (3, 1000):
        draws = noise.uniform_below(bound, size=200_000)
        assert chi_square(draws, dict.fromkeys(range(bound), 1 / bound)) > SIGNIFICANCE
    wide = noise.uniform_below(3 * 2**61, size=60_000)
    assert chi_square(wide >> 61, dict.fromkeys(range(3), 1 / 3)) > SIGNIFICANCE
    big = [noise.uniform_below(10**30) // (10**29) for _ in range(3000)]
    assert chi_square(big, dict.fromkeys(range(10), 0.1)) > SIGNIFICANCE


def test_permutation_and_shuffle():
    source = SeededSource(3)
    orders = Counter(tuple(noise.permutation(3, source).tolist()) for _ in range(12_000))
    assert counted(orders, dict.fromkeys(permutations(range(3)), 1 / 6)) > SIGNIFICANCE
    lists = Counter("".join(noise.shuffle(["a", "b", "c"], source)) for _ in range(12_000))
    truth = {"".join(order): 1 / 6 for order in permutations("abc")}
    assert counted(lists, truth) > SIGNIFICANCE
    rows = noise.shuffle(np.arange(20).reshape(10, 2))
    assert sorted(map(tuple, rows.tolist())) == [(2 * i, 2 * i + 1) for i in range(10)]
    assert noise.permutation(0).tolist() == []


def test_bernoulli_in_bulk():
    for p in (0.5, 0.1, Fraction(1, 3), 1e-4):
        ones = int(noise.bernoulli(p, size=400_000).sum())
        assert stats.binomtest(ones, 400_000, float(p)).pvalue > SIGNIFICANCE
    chances = np.tile([0.25, 0.75], 50_000)
    draws = noise.bernoulli(chances)
    assert draws.dtype == np.bool_
    for part, p in ((draws[::2], 0.25), (draws[1::2], 0.75)):
        assert stats.binomtest(int(part.sum()), 50_000, p).pvalue > SIGNIFICANCE


def test_bernoulli_exp_in_bulk():
    for x in (0, Fraction(1, 2), 3):
        ones = int(noise.bernoulli_exp(x, size=200_000).sum())
        assert stats.binomtest(ones, 200_000, float(exp(-Fraction(x)))).pvalue > SIGNIFICANCE
    numerators = np.tile([1, 7], 50_000)
    draws = noise.bernoulli_exp(numerators, denominator=10)
    for part, x in ((draws[::2], 0.1), (draws[1::2], 0.7)):
        assert stats.binomtest(int(part.sum()), 50_000, np.exp(-x)).pvalue > SIGNIFICANCE
    floats = noise.bernoulli_exp(np.full((100, 500), 1.5))
    assert floats.shape == (100, 500)
    assert stats.binomtest(int(floats.sum()), 50_000, np.exp(-1.5)).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("power", [2, 4])
def test_heavy_tailed_law_and_quantile(power):
    draws = noise.heavy_tailed(scale=1000, power=power, size=20_000, source=SeededSource(4))
    sizes = np.abs(draws.astype(np.float64)) / 1000
    for level in (0.1, 0.5, 0.9, 0.99):
        bound = noise.heavy_tailed_quantile(level, power)
        inside = int((sizes <= bound + 1e-3).sum())
        assert stats.binomtest(inside, len(sizes), level).pvalue > SIGNIFICANCE
    positive = int((draws > 0).sum())
    assert stats.binomtest(positive, int((draws != 0).sum()), 0.5).pvalue > SIGNIFICANCE


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.5, 10, 1000, 10**6])
def test_many_million_draws(scale):
    draws = noise.discrete_laplace(scale=scale, size=20_000_000)
    width = max(1, int(scale / 50))
    masses = laplace_masses(scale) if width == 1 else binned_masses(scale, width)
    assert chi_square(binned(draws, width), masses) > SIGNIFICANCE


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [2, 5000])
def test_many_million_gaussians(sigma):
    draws = noise.discrete_gaussian(sigma=sigma, size=10_000_000)
    variance = Fraction(sigma) ** 2
    if sigma == 2:
        masses = {x: float(gaussian_mass(x, variance)) for x in range(-20, 21)}
        assert chi_square(draws, masses) > SIGNIFICANCE
    else:
        assert abs(draws.std() / sigma - 1) < 5 / np.sqrt(2 * len(draws))
