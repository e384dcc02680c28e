"""The square root of summing up, on a lattice: how noise is spread over a stream.

Running totals of x are A·x, with A the lower triangle of ones. Noise on x itself adds up; noise on
A·x must hide a change of all later totals. In between, A = B·C with C the square root of A: the
lower triangular matrix whose entry in row t and column s is f(t - s), where f(k) is the coefficient
of x^k in (1 - x)^(-1/2), that is binomial(2k, k) / 4^k. C·x is released with noise, and B brings
the totals back.

Here f is rounded to multiples of 1/RESOLUTION, so C·x is on that lattice *exactly* for whole x, and
nothing is rounded between data and noise. B = A·C^-1 is computed for the rounded C, in floats:
post-processing. f decreases, and rounding keeps that.

Reference:
    Denisov, McMahan, Rush, Smith & Guha Thakurta, Improved differential privacy for SGD via optimal
    private linear operators on adaptive streams, NeurIPS 2022; Fichtenberger, Henzinger & Upadhyay,
    Constant matters: fine-grained error bound on differentially private continual observation,
    ICML 2023.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt

RESOLUTION = 2**14
"""Steps of the lattice between whole numbers."""


@lru_cache(maxsize=16)
def coefficients(steps: int) -> tuple[int, ...]:
    """Return f(0), f(1), ... in steps of the lattice, rounded to the nearest.

    Example:
        >>> coefficients(4)
        (16384, 8192, 6144, 5120)
    """
    found, exact = [], 1
    for k in range(steps):
        # binomial(2k, k)·RESOLUTION / 4^k, to the nearest
        found.append((2 * exact * RESOLUTION + 4**k) // (2 * 4**k))
        exact = exact * 2 * (2 * k + 1) // (k + 1)
    return tuple(found)


def encode(totals: npt.NDArray[np.int64], step: int) -> list[int]:
    """Return row ``step`` of C·x for each group, in steps of the lattice; exact."""
    factor = coefficients(step + 1)
    return [
        sum(f * int(x) for f, x in zip(reversed(factor), column, strict=True))
        for column in totals[: step + 1].T
    ]


def squared_sensitivity(steps: int, periods: int, bound: int) -> int:
    """Return how far a unit with records in so many steps moves C·x: squared, in lattice steps.

    A unit moves x by u_1, ..., u_k in k different steps, each a vector over the groups of length at
    most ``bound``. Column s of C is c_s, so the square is the sum over i and j of
    <u_i, u_j>·<c_i, c_j>, at most bound² times the sum of <c_i, c_j>, since C has no entry below
    zero. For s < t, <c_s, c_t> is the sum of f(r)·f(r + t - s) over r < steps - t. f decreases, so
    it is largest for the least t and t - s: among k columns, for the first k. Their sum is what is
    computed, exactly. A unit whose records change between steps (because they come late) moves each
    entry by no more.

    Example:
        >>> squared_sensitivity(1, 1, 3) == (3 * RESOLUTION) ** 2
        True
    """
    return bound**2 * sum(moved**2 for moved in _moved(steps, periods))


@lru_cache(maxsize=16)
def _moved(steps: int, periods: int) -> tuple[int, ...]:
    """Return by how much a unit with records in the first steps moves each entry, per bound."""
    # The sum of f(step - s) over s < min(periods, step + 1), as a difference of running sums.
    sums = [0, *accumulate(coefficients(steps))]
    return tuple(sums[step + 1] - sums[max(step + 1 - periods, 0)] for step in range(steps))


def squared_at(steps: int, periods: int, bound: int, step: int) -> int:
    """Return the part of :func:`squared_sensitivity` at one step."""
    return (bound * _moved(steps, periods)[step]) ** 2


@lru_cache(maxsize=16)
def _decoder(steps: int) -> tuple[float, ...]:
    """Return the first column of B: the coefficients of 1 / ((1 - x)·f(x))."""
    factor = np.array(coefficients(steps)) / RESOLUTION
    inverse = np.zeros(steps)
    inverse[0] = 1.0
    for k in range(1, steps):
        inverse[k] = -float(np.dot(factor[1 : k + 1], inverse[k - 1 :: -1][:k]))
    return tuple(np.cumsum(inverse).tolist())


def decode(encoded: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the running totals from noisy rows of C·x, by step and group."""
    steps = len(encoded)
    column = np.array(_decoder(steps))
    totals = [column[step::-1] @ encoded[: step + 1] for step in range(steps)]
    return np.array(totals) / RESOLUTION


def deviation(variance: float, step: int) -> float:
    """Return the standard deviation of the total at a step, for this variance of the noise."""
    column = np.array(_decoder(step + 1))
    return math.sqrt(variance * float(column @ column)) / RESOLUTION
