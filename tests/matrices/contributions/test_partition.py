"""Shares of the budget and cuts into blocks, against brute force and a general solver."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import minimize

from tulle.matrices.contributions.partition import (
    GAUSSIAN,
    LAPLACE,
    Classes,
    burden,
    cut,
    fill,
    group,
    price,
    run_figures,
    scales,
)

CASES = [
    (sizes, caps, total)
    for sizes in ([5.0, 80.0, 300.0], [1.0, 1.0, 1.0])
    for caps in ([100.0, 20.0, 3.0], [10.0, 10.0, 10.0])
    for total in (float("inf"), 110.0, 25.0, 9.0)
]


@pytest.mark.parametrize(("sizes", "caps", "total"), CASES)
@pytest.mark.parametrize("power", [LAPLACE, GAUSSIAN])
def test_scales_are_the_best_there_are(sizes, caps, total, power):
    """A general solver that may take any scales within the budget finds nothing better."""
    sizes, caps = np.array(sizes), np.array(caps)
    budget = 0.7
    found, error = scales(sizes, caps, total, power, budget)
    root = 1 if power == LAPLACE else 2

    def paid(rates):
        return float(price(caps.tolist(), total, rates.tolist()))

    assert paid(1 / found**root) == pytest.approx(budget**root, rel=1e-9)

    def cost(logs):
        # Any scales, stretched until they are within the budget.
        tried = np.exp(logs)
        stretch = (paid(1 / tried**root) / budget**root) ** (1 / root)
        return float(np.log(sizes @ tried * stretch))

    start = np.log(found) + np.array([0.3, -0.2, 0.1])
    best = minimize(cost, start, method="Nelder-Mead", options={"maxiter": 150})
    assert np.exp(best.fun) >= error * (1 - 1e-9)
    assert error <= np.exp(cost(np.zeros(3))) * (1 + 1e-9)


def test_theorem_five_is_the_case_without_a_joint_total():
    sizes, caps = np.array([5.0, 80.0]), np.array([100.0, 20.0])
    found, error = scales(sizes, caps, float("inf"), LAPLACE, 2.0)
    shares = caps / found
    assert shares == pytest.approx(2.0 * np.sqrt(sizes * caps) / np.sqrt(sizes * caps).sum())
    assert error == pytest.approx(np.sqrt(sizes * caps).sum() ** 2 / 2.0)


def test_a_joint_total_never_costs_more_than_plain_noise():
    generator = np.random.default_rng(1)
    for _ in range(200):
        sizes = generator.integers(1, 1000, 4).astype(float)
        caps = generator.integers(1, 1000, 4).astype(float)
        total = float(generator.integers(caps.max(), caps.sum() + 1))
        _, error = scales(sizes, caps, total, LAPLACE, 1.0)
        assert error <= sizes.sum() * total * (1 + 1e-12)
        worst = fill(sizes, caps, total)
        assert (worst <= caps).all()
        assert worst.sum() == pytest.approx(min(total, caps.sum()))


def test_the_price_is_exact():
    for caps in product(range(4), repeat=3):
        for total in range(8):
            rates = [Fraction(1, 3), Fraction(2, 5), Fraction(1, 7)]
            masses = product(*(range(cap + 1) for cap in caps))
            best = max(
                (sum(m * r for m, r in zip(mass, rates, strict=True)), mass)
                for mass in masses
                if sum(mass) <= total
            )
            assert price(caps, total, rates) == best[0]


def made_up(count, seed, total):
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 100, count).astype(float)
    people = generator.exponential(1, (30, count)) * 2.0 ** np.arange(count)
    ends = np.concatenate((np.zeros((30, 1)), people.cumsum(axis=1)), axis=1)
    caps = np.array(
        [
            [(ends[:, j] - ends[:, i]).max() if i < j else 0 for j in range(count + 1)]
            for i in range(count + 1)
        ]
    )
    limit = float(caps[0, -1]) * total if total else float("inf")
    return Classes(2.0 ** np.arange(count), sizes, np.minimum(caps, limit), limit)


@pytest.mark.parametrize("power", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("total", [None, 1.0, 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_no_partition_into_runs_is_better(seed, total, power):
    classes = made_up(8, seed, total)
    for blocks in (1, 2, 3, 4, 8):
        every = [
            burden(*run_figures(classes, (0, *cuts)), classes.total, power)
            for cuts in combinations(range(1, 8), blocks - 1)
        ]
        found = cut(classes, blocks, power)
        assert len(found) == blocks
        # Exact without a joint total; with one the multiplier is searched on a scale.
        allowed = 1e-12 if total is None else 2e-3
        got = burden(*run_figures(classes, found), classes.total, power)
        assert got <= min(every) * (1 + allowed)


def test_auto_is_within_one_percent_of_the_best():
    classes = made_up(9, 5, 1.0)
    chosen = cut(classes, "auto", LAPLACE)
    figures = {
        k: burden(*run_figures(classes, cut(classes, k, LAPLACE)), classes.total, LAPLACE)
        for k in range(1, 10)
    }
    assert figures[len(chosen)] ** 2 <= 1.01 * min(figures.values()) ** 2
    assert all(
        f**2 > 1.01 * min(figures.values()) ** 2 for k, f in figures.items() if k < len(chosen)
    )


def test_many_bounds_are_merged():
    bounds = np.arange(1, 2001).astype(float)
    classes, places = group(bounds, lambda p, b, s: (np.triu(np.ones((len(b) + 1,) * 2), 1), 9.0))
    assert len(classes.sizes) == 256
    assert classes.sizes.sum() == 2000
    assert (classes.bounds[places] >= bounds).all()
