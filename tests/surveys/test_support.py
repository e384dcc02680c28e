"""Counts and estimates for unary encoding and local hashing: how often a category is supported."""

from __future__ import annotations

import numpy as np

from tulle.surveys import (
    LocalHashing,
)
from tulle.surveys.support import supports


def test_hash_supports_equal_the_plain_formulation() -> None:
    generator = np.random.default_rng(3)
    for categories, buckets in ((4, 2), (6, 2), (9, 3), (20, 3), (30, 5)):
        design = LocalHashing.of(categories, epsilon=1, buckets=buckets)
        counts = generator.integers(0, 50, design.rows * buckets)
        plain = [
            sum(int(counts[row * buckets + design.bucket(row, x)]) for row in range(design.rows))
            for x in range(categories)
        ]
        assert supports(design, counts).tolist() == plain
