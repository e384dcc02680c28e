"""The square root of summing up: exact on its lattice, and its sensitivity by brute force."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tulle.streams import factor


def matrix(steps: int) -> np.ndarray:
    """Return C in steps of the lattice, from its definition."""
    made = np.zeros((steps, steps), dtype=object)
    for t in range(steps):
        for s in range(t + 1):
            exact = Fraction(math.comb(2 * (t - s), t - s), 4 ** (t - s)) * factor.RESOLUTION
            made[t, s] = math.floor(exact + Fraction(1, 2))
    return made


def test_coefficients_are_those_of_the_root() -> None:
    steps = 300
    found = factor.coefficients(steps)
    assert list(found) == list(matrix(steps)[:, 0])
    assert all(a >= b > 0 for a, b in itertools.pairwise(found))
    # The square of the series is 1 + x + x² + ..., up to the rounding of its coefficients.
    whole = np.array([x / factor.RESOLUTION for x in found])
    assert np.abs(np.convolve(whole, whole)[:steps] - 1).max() < 1e-3


@pytest.mark.parametrize("groups", [1, 3])
def test_encoding_is_exact_and_decoding_brings_the_totals_back(groups: int) -> None:
    chance = np.random.default_rng(5)
    x = chance.integers(-(2**40), 2**40, (40, groups))
    rows = [factor.encode(x, step) for step in range(40)]
    assert [list(row) for row in matrix(40) @ x.astype(object)] == rows
    found = factor.decode(np.array(rows, dtype=float))
    assert np.allclose(found, np.cumsum(x, axis=0), rtol=1e-9, atol=1e-3 * 2**40 * 1e-6)


def worst(steps: int, periods: int, norm: int = 1) -> int:
    """Return the largest squared move over all steps, signs and shares of two groups."""
    root = matrix(steps)
    moves = [(norm, 0), (-norm, 0), (0, norm), (0, -norm)]
    largest = 0
    for used in range(1, periods + 1):
        for columns in itertools.combinations(range(steps), used):
            for chosen in itertools.product(moves, repeat=used):
                x = np.zeros((steps, 2), dtype=object)
                for column, move in zip(columns, chosen, strict=True):
                    x[column] = move
                largest = max(largest, int(((root @ x) ** 2).sum()))
    return largest


@pytest.mark.parametrize(("steps", "periods"), [(1, 1), (4, 1), (6, 1), (4, 2), (5, 3), (3, 3)])
def test_the_sensitivity_by_brute_force(steps: int, periods: int) -> None:
    assert factor.squared_sensitivity(steps, periods, 1) == worst(steps, periods)
    assert factor.squared_sensitivity(steps, periods, 7) == 49 * worst(steps, periods)
    parts = [factor.squared_at(steps, periods, 3, step) for step in range(steps)]
    assert sum(parts) == factor.squared_sensitivity(steps, periods, 3)


def last_column(steps: int, periods: int, bound: int) -> int:
    """The broken twin: the norm of the last column, in which one entry is left."""
    return bound**2 * factor.coefficients(steps)[0] ** 2


def root_of_periods(steps: int, periods: int, bound: int) -> int:
    """The broken twin: several steps of one person as if their columns were orthogonal."""
    return periods * factor.squared_sensitivity(steps, 1, bound)


@pytest.mark.parametrize("twin", [last_column, root_of_periods])
def test_wrong_norms_are_caught(twin: object) -> None:
    assert callable(twin)
    assert any(
        twin(steps, periods, 1) < worst(steps, periods) for steps, periods in ((4, 1), (4, 2))
    )


def test_late_records_move_no_entry_further() -> None:
    """A unit whose records change between steps: each entry sees another vector of the bound."""
    steps, root = 5, matrix(5)
    limit = factor.squared_sensitivity(steps, 1, 1)
    for column in range(steps):
        for signs in itertools.product((-1, 0, 1), repeat=steps):
            moved = [int(root[t, column]) * signs[t] for t in range(steps)]
            assert sum(m * m for m in moved) <= limit


@pytest.mark.parametrize("step", [0, 3, 11])
def test_the_deviation_is_that_of_decoded_noise(step: int) -> None:
    identity = np.eye(12)
    decoded = np.array([factor.decode(column[:, None])[:, 0] for column in identity])
    expected = math.sqrt(9.0 * (decoded[:, step] ** 2).sum())
    assert factor.deviation(9.0, step) == pytest.approx(expected)
