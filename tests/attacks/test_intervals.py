"""Intervals for rates and averages that an attack was measured to have."""

import numpy as np
import pytest
from scipy.stats import binom

from tulle.attacks.intervals import mean_interval, rate_interval
from tulle.core.errors import InputError


@pytest.mark.parametrize("rate", [0.0, 0.03, 0.5, 1.0])
def test_rate_intervals_cover_for_every_count(rate):
    trials = 40
    counts = np.arange(trials + 1)
    inside = [low <= rate <= high for low, high in (rate_interval(c, trials) for c in counts)]
    assert binom.pmf(counts, trials, rate)[inside].sum() >= 0.95


def test_mean_intervals_cover():
    generator = np.random.default_rng(3)
    hits = 0
    for _ in range(300):
        low, high = mean_interval(generator.beta(0.3, 2, size=80), 0.9)
        hits += low <= 0.3 / 2.3 <= high
    assert binom.cdf(hits, 300, 0.9) > 1e-6


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: rate_interval(3, 2), "3 successes in 2 trials"),
        (lambda: rate_interval(0, 0), "at least 1"),
        (lambda: mean_interval([0.5]), "at least two"),
        (lambda: mean_interval([0.5, 1.5]), "between 0 and 1"),
    ],
)
def test_bad_figures_are_refused(call, text):
    with pytest.raises(InputError, match=text):
        call()
