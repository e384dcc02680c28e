"""Shares on the simplex: nearest to given ones, or most likely for the reports."""

from __future__ import annotations

import numpy as np

from tulle.core.arrays import Floats
from tulle.surveys import operators

MOST_STEPS = 20_000


def project_to_simplex(shares: Floats) -> Floats:
    """Return the nearest shares, in Euclidean distance, that are not negative and sum to one.

    Reference: Duchi, Shalev-Shwartz, Singer & Chandra, ICML 2008.

    Example:
        >>> project_to_simplex(np.array([0.9, 0.3, -0.2]))
        array([0.8, 0.2, 0. ])
    """
    flat = shares.ravel()
    ordered = np.sort(flat)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(flat) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    result: Floats = np.maximum(flat - excess[last], 0.0).reshape(shares.shape)
    return result


def best_shares(observed: Floats, same: float, other: float) -> Floats:
    """Return the most likely shares under randomized response, in closed form.

    The report probabilities q + (p - q)·share are at least q. By the conditions of optimality
    they are max(q, observed / level) for the one level at which they sum to one.
    """
    bound = np.zeros(len(observed), dtype=bool)
    while True:
        # Fixing a category at q takes more from the others, so that the set only grows.
        level = observed[~bound].sum() / (1 - other * np.count_nonzero(bound))
        grown = observed < other * level
        if not (grown & ~bound).any():
            break
        bound |= grown
    shares = np.where(bound, 0.0, (observed / level - other) / (same - other))
    shares = np.maximum(shares, 0.0)
    result: Floats = shares / shares.sum()
    return result


def most_likely(
    designs: operators.Designs, observed: Floats, start: Floats, tolerance: float
) -> Floats:
    """Maximise the likelihood by expectation maximisation with squared extrapolation.

    The likelihood is concave, so the largest entry of its gradient, less one, bounds what is
    still to gain per response: iteration stops when that is below the tolerance.

    Reference: Varadhan & Roland, Scandinavian Journal of Statistics 2008 (SQUAREM).
    """
    shares = 0.99 * project_to_simplex(start) + 0.01 / start.size

    def gradient(at: Floats) -> Floats:
        expected = operators.apply(designs, at)
        return operators.apply_transposed(designs, observed / np.maximum(expected, 1e-300))

    def likelihood(at: Floats) -> float:
        expected = np.maximum(operators.apply(designs, at), 1e-300)
        return float(np.sum(observed * np.log(expected)))

    for _ in range(MOST_STEPS):
        slope = gradient(shares)
        if float(slope.max()) - 1 <= tolerance:
            break
        once = _normal(shares * slope)
        twice = _normal(once * gradient(once))
        step, bend = once - shares, twice - 2 * once + shares
        length = float(np.linalg.norm(step)) / max(float(np.linalg.norm(bend)), 1e-300)
        if length <= 1:
            shares = twice
            continue
        leap = shares + 2 * length * step + length**2 * bend
        # Stay inside: a share of zero could never grow again.
        leap = _normal(np.maximum(leap, 1e-3 * twice))
        shares = leap if likelihood(leap) >= likelihood(twice) else twice
    return shares


def _normal(shares: Floats) -> Floats:
    result: Floats = shares / shares.sum()
    return result
