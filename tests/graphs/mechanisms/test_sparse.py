"""Numbers of triangles of each node: no worse than zeros, and intervals that cover."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import tulle
from tulle.graphs.generators import social_network
from tulle.graphs.mechanisms.sparse import (
    SparseLaplaceLaw,
    _estimates,
    _risks,
    expected_error,
    highest_threshold,
    keep_large,
)

LEVEL = 0.9


def vectors(entries=2000):
    generator = np.random.default_rng(4)
    yield "nothing", np.zeros(entries, dtype=np.int64)
    yield "ones", np.ones(entries, dtype=np.int64)
    yield "few", np.where(np.arange(entries) < 20, 3000, 0)
    yield "tails", np.floor(50 * generator.pareto(1.0, entries)).astype(np.int64)
    yield "about the noise", np.full(entries, 100)
    yield "half the threshold", np.full(entries, 350)
    yield "large", generator.integers(500, 5000, entries)


@pytest.mark.parametrize(("name", "truth"), list(vectors()), ids=lambda one: str(one)[:20])
def test_never_worse_than_zeros_nor_much_worse_than_noise(name, truth):
    """In mean over runs: noise of one entry, and a share of what any rule would be off."""
    scale, runs = 100.0, 30
    generator = np.random.default_rng(7)
    kept, raw = [], []
    for _ in range(runs):
        noisy = truth + np.rint(generator.laplace(scale=scale, size=truth.size)).astype(np.int64)
        kept.append(np.abs(keep_large(noisy, scale)[0] - truth).sum())
        raw.append(np.abs(np.maximum(noisy, 0) - truth).sum())
    # Where entries are all about half the threshold, chance keeps some: s/sqrt(n) for each.
    slack = 3 * scale + truth.size * scale / np.sqrt(truth.size)
    assert np.mean(kept) <= truth.sum() + slack
    assert np.mean(kept) <= 1.05 * np.mean(raw) + slack
    predicted = truth.size * expected_error(truth, scale)
    assert np.mean(kept) == pytest.approx(predicted, rel=0.15, abs=slack)
    if name == "nothing":
        # Noise as it is would be off by half its size in every entry.
        assert np.mean(kept) < scale < np.mean(raw) / 100


def test_the_cost_of_a_threshold_is_estimated_without_bias():
    generator = np.random.default_rng(3)
    noise = generator.laplace(size=400_000)
    for x in (0.0, 0.7, 2.5, 6.0):
        for threshold in (0.0, 1.5, 4.0):
            noisy = x + noise
            costs = np.abs(np.where(noisy > threshold, noisy, 0.0) - x)
            risk = float(_risks(np.array([x]), threshold)[0][0])
            assert risk == pytest.approx(costs.mean(), abs=0.012)
            assert _estimates(noisy, threshold).mean() == pytest.approx(risk, abs=0.03)


def test_the_highest_threshold():
    for count in (10, 1000, 10**6):
        t = highest_threshold(count)
        assert count * (t + 1) * np.exp(-t) / 2 == pytest.approx(1 / min(count, 100))


@pytest.mark.parametrize(
    ("mechanism", "epsilon"), [("private_bound", 4.0), ("private_bound", 1.0), ("laplace", 300.0)]
)
def test_intervals_cover_after_the_threshold(mechanism, epsilon):
    graph = social_network(200, seed=3)
    truth = tulle.triangles_per_node().truth(graph)
    runs, hits, thresholds = 150, 0, []
    for _ in range(runs):
        release = tulle.release(
            graph,
            tulle.triangles_per_node(),
            unit="edge",
            epsilon=epsilon,
            delta=1e-6,
            mechanism=mechanism,
        )
        low, high = release.interval(LEVEL)
        hits += bool(np.all((low <= truth) & (truth <= high)))
        thresholds.append(release.error.threshold)
        again = tulle.Release.from_json(release.to_json())
        assert again.error == release.error
    assert binom.cdf(hits, runs, LEVEL) >= 1e-6
    assert max(thresholds) > 0


def test_an_interval_that_forgets_the_threshold_would_not_cover():
    """Entries just below the threshold: zero as often as not, and further off than the noise."""
    scale, level, runs = 100, 0.5, 200
    truth = np.where(np.arange(200) < 3, 800, 0)
    generator = np.random.default_rng(5)
    hits = {"told": 0, "forgotten": 0}
    for _ in range(runs):
        noisy = truth + np.rint(generator.laplace(scale=scale, size=truth.size)).astype(np.int64)
        kept, threshold = keep_large(noisy, scale)
        law = SparseLaplaceLaw(Fraction(scale), count=truth.size, threshold=threshold)
        for name, one in (("told", law), ("forgotten", replace(law, threshold=0))):
            low, high = one.interval(kept, level)
            hits[name] += bool(np.all((low <= truth) & (truth <= high)))
    assert binom.cdf(hits["told"], runs, level) >= 1e-6
    assert binom.cdf(hits["forgotten"], runs, level) < 1e-9
