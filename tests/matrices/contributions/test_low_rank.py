"""Low rank of large matrices: nearly what the full decomposition gives, and much faster."""

from __future__ import annotations

import time

import numpy as np
import pytest

import tulle
from tulle.matrices.contributions.largest_parts import largest_parts, parts_above
from tulle.matrices.contributions.low_rank import then_low_rank


def noisy(rows, columns, share=1.0, seed=0):
    generator = np.random.default_rng(seed)
    left, right = generator.normal(size=(rows, 3)), generator.normal(size=(columns, 3))
    signal = (left * [30.0, 20.0, 10.0]) @ right.T
    held = generator.random((rows, columns)) < share
    return np.where(held, signal + generator.normal(size=(rows, columns)), 0.0)


@pytest.mark.parametrize("share", [1.0, 0.05])
def test_the_largest_parts_are_those_of_the_full_decomposition(share):
    matrix = noisy(500, 400, share)
    u, s, v = largest_parts(matrix, 5)
    full_u, full_s, full_v = np.linalg.svd(matrix, full_matrices=False)
    assert s == pytest.approx(full_s[:5], rel=0.01)
    best = (full_u[:, :3] * full_s[:3]) @ full_v[:3]
    found = (u[:, :3] * s[:3]) @ v[:3]
    assert np.abs(found - best).max() < 0.01 * np.abs(best).max()
    # The best approximation of rank 5 leaves this much; the nearly best one hardly more.
    left = np.linalg.norm(matrix - (u * s) @ v)
    assert left <= 1.01 * np.linalg.norm(full_s[5:])


def test_all_parts_above_a_level_are_found():
    matrix = noisy(400, 300)
    full = np.linalg.svd(matrix, compute_uv=False)
    for level in (full[2] - 1, full[0] + 1, full[30]):
        assert len(parts_above(matrix, level)[1]) == pytest.approx(np.sum(full > level), abs=1)
    assert len(parts_above(noisy(40, 30), 0.0)[1]) == 30


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
