"""Low rank of large matrices: nearly what the full decomposition gives, and much faster."""

from __future__ import annotations

import time

import numpy as np

import tulle
from tulle.matrices.contributions.low_rank import then_low_rank


def test_a_large_release_is_decomposed_as_far_as_needed():
    generator = np.random.default_rng(1)
    count, places = 400_000, 700
    who = generator.integers(0, 20_000, count)
    ends = (generator.zipf(1.4, (2, count)) % places for _ in range(1))
    start, end = next(ends)
    data = tulle.Contributions(who, start, end, rows=places, columns=places)
    r = tulle.release(data, tulle.weights(bound=2, total=20), unit="participant", epsilon=2.0)
    began = time.process_time()
    smooth = then_low_rank(r, "auto")
    fast = time.process_time() - began
    truth = data.totals()
    assert np.abs(smooth.value - truth).mean() < 0.5 * np.abs(r.value - truth).mean()
    began = time.process_time()
    np.linalg.svd(r.value)
    assert fast < 2 * (time.process_time() - began)
    assert np.array_equal(then_low_rank(r, 4).value, then_low_rank(r, 4).value)
    assert np.linalg.matrix_rank(then_low_rank(r, 4).value) == 4
