"""The largest singular values and vectors of a large matrix, dense or with few cells that count."""

from __future__ import annotations

import numpy as np
import pytest

from tulle.matrices.contributions.largest_parts import largest_parts, parts_above


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
