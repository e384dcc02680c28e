"""Adaptive weighting, by brute force: what one person moves the sums by."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from baselines.adaptive_degree import adaptive_sums

KEYS = 4
SETS = [held for size in range(1, 4) for held in combinations(range(KEYS), size)]


def sums(people: list[tuple[int, ...]], degree: int, enough: float) -> np.ndarray:
    pairs = [(who, key) for who, held in enumerate(people) for key in held]
    found = np.zeros(KEYS)
    if pairs:
        person, key = np.array(pairs).T
        weights = adaptive_sums(person, key, degree, enough)
        found[: len(weights)] = weights
    return found


def longest(degree: int) -> float:
    """Return the largest squared move over all small tables with crowds at the threshold."""
    worst = 0.0
    for enough, crowd in product((1.0, 2.0), (1, 2, 4)):
        for one, other in product(SETS, repeat=2):
            others = [one] * crowd + [other] * crowd
            before = sums(others, degree, enough)
            for joins in SETS:
                moved = sums([*others, joins], degree, enough) - before
                worst = max(worst, float((moved**2).sum()))
    return worst


def test_what_one_person_moves() -> None:
    assert abs(longest(1) - 1) < 1e-9
    for degree in (2, 3):
        # One, for which noise is drawn in the comparison, is not enough.
        assert 1.03 < longest(degree) <= 1 + 1 / (4 * degree)


def test_all_of_a_lonely_persons_weight_is_kept() -> None:
    assert np.allclose(sums([(0, 1, 2)], 3, 10.0)[:3], 1 / np.sqrt(3))
