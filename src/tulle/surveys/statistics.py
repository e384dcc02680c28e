"""Statistics of estimated shares, with standard errors by the delta method.

Each statistic is a smooth function of the shares. Its standard error comes from its gradient;
where the table is small enough, from its second derivatives as well, and these also correct its
bias: noise makes attributes look more dependent and less uneven than they are.

Reference: Wang, Wu & Hu 2014, section 7.5.2; Oehlert, A note on the delta method, 1992.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log, log2, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from tulle.core.arrays import Floats
from tulle.core.errors import InputError
from tulle.surveys.frequencies import Frequencies, Target, check_target

Gradient = Callable[[Floats], Floats]

_NORMAL_95 = 1.959964
"""Half the width of a 95 % interval, in standard errors."""

_CAUTION = 1.2
"""Where cells may be empty errors are skewed, and the standard error is raised by so much. It was
chosen on the tables of ``tests/core/test_error_law.py``; those with a row or column nearly
empty, on which nothing was chosen, are tested beside them."""

MOST_CURVED = 400
"""Tables with more cells get no second-order terms: these need matrices over all pairs of cells."""


@dataclass(frozen=True)
class Estimate:
    """A number, its standard error, and what else is to be known about it."""

    name: str
    value: float
    sigma: float
    details: dict[str, Any] = field(default_factory=dict)


def mean(table: Frequencies, scores: Sequence[float], target: Target) -> Estimate:
    """Estimate the mean score; linear, hence unbiased."""
    check_target(target)
    weights = _scores(scores, table.counts.shape[0])
    variance = table.functional_variance(table.likelihood(), weights, target)
    value = float(table.unbiased() @ weights)
    return Estimate("mean", value, sqrt(variance), {"target": target})


def entropy(table: Frequencies, target: Target) -> Estimate:
    """Estimate the entropy in bits."""

    def value(p: Floats) -> float:
        return float(-np.sum(p * np.log2(p)))

    def gradient(p: Floats) -> Floats:
        return np.asarray(-np.log2(p) - 1 / log(2))

    return _delta("entropy", table, target, value, gradient, (0.0, log2(table.counts.size)))


def mutual_information(table: Frequencies, target: Target) -> Estimate:
    """Estimate the mutual information in bits."""

    def value(p: Floats) -> float:
        return float(np.sum(p * np.log2(p / _product(p))))

    def gradient(p: Floats) -> Floats:
        return np.asarray(np.log2(p / _product(p)) - 1 / log(2))

    most = log2(min(table.counts.shape))
    return _delta("mutual_information", table, target, value, gradient, (0.0, most))


def chi_square(table: Frequencies, target: Target) -> Estimate:
    """Estimate n times the mean square contingency, and test independence on the reports."""

    def value(p: Floats) -> float:
        return float(np.sum(p**2 / _product(p))) - 1

    def gradient(p: Floats) -> Floats:
        rows, columns = p.sum(axis=1, keepdims=True), p.sum(axis=0, keepdims=True)
        ratio = p**2 / (rows * columns)
        by_row = ratio.sum(axis=1, keepdims=True) / rows
        by_column = ratio.sum(axis=0, keepdims=True) / columns
        return np.asarray(2 * p / (rows * columns) - by_row - by_column)

    most = float(min(table.counts.shape) - 1)
    found = _delta("chi_square", table, target, value, gradient, (0.0, most))
    n = table.responses
    details = {
        **found.details,
        "range": [0.0, most * n],
        "p_value": independence_p_value(table.counts),
    }
    return Estimate(found.name, found.value * n, found.sigma * n, details)


def correlation(
    table: Frequencies,
    scores: tuple[Sequence[float], Sequence[float]] | None,
    target: Target,
) -> Estimate:
    """Estimate the correlation of two scores."""
    rows, columns = table.counts.shape
    given = scores or (tuple(range(rows)), tuple(range(columns)))
    a = _scores(given[0], rows)[:, None]
    b = _scores(given[1], columns)[None, :]
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        raise InputError("Scores that are all equal have no correlation.")

    # Sums over the table are linear in the shares, so that those of the unbiased shares are
    # unbiased, whatever cells are empty: nothing is pulled back from the edge of the simplex.
    shares = table.unbiased()
    powers = [np.broadcast_to(f, shares.shape) for f in (a, b, a * a, b * b, a * b)]
    first = np.array([float(np.sum(shares * power)) for power in powers])
    least = 0.25 / table.responses
    one, other = _variances(first)
    if one <= least * np.ptp(a) ** 2 or other <= least * np.ptp(b) ** 2:
        # Noise left no variance at all: the most likely shares always have some.
        shares, _ = _inside(table)
        first = np.array([float(np.sum(shares * power)) for power in powers])
    check_target(target)
    covariance = np.array([[_joint(table, shares, f, g, target) for g in powers] for f in powers])
    slope, curve = _derivatives(first)
    curved = curve @ covariance
    bias = float(np.trace(curved)) / 2
    variance = float(slope @ covariance @ slope) + max(float(np.sum(curved * curved.T)) / 2, 0.0)
    found = min(max(_correlation(first) - bias, -1.0), 1.0)
    details = {"target": target, "range": [-1.0, 1.0], "bias_removed": bias}
    return Estimate("correlation", found, sqrt(max(variance, 0.0)), details)


def _variances(moments: Floats) -> tuple[float, float]:
    """Return the variances of two scores, from their means, mean squares and mean product."""
    a, b, aa, bb, _ = moments.tolist()
    return aa - a * a, bb - b * b


def _correlation(moments: Floats) -> float:
    a, b, _, _, ab = moments.tolist()
    variance_a, variance_b = _variances(moments)
    return float((ab - a * b) / sqrt(max(variance_a * variance_b, 1e-300)))


def _derivatives(moments: Floats) -> tuple[Floats, Floats]:
    """Return first and second derivatives of the correlation by the moments, numerically."""
    steps = 1e-4 * np.sqrt(np.maximum(np.abs(_variances(moments)), 1e-12))
    each = np.array([*steps, *(steps**2 * 1e4), steps[0] * steps[1] * 1e4])

    def at(*moves: Floats) -> float:
        return _correlation(moments + sum(moves, np.zeros(5)))

    units = np.diag(each)
    slope = np.array([(at(u) - at(-u)) / (2 * h) for u, h in zip(units, each, strict=True)])
    curve = np.empty((5, 5))
    for i, u in enumerate(units):
        for j, v in enumerate(units):
            change = at(u, v) - at(u, -v) - at(-u, v) + at(-u, -v)
            curve[i, j] = change / (4 * each[i] * each[j])
    return slope, curve


def _joint(table: Frequencies, shares: Floats, f: Floats, g: Floats, target: Target) -> float:
    """Return the covariance of two sums over the unbiased shares, by polarisation."""
    plus = table.functional_variance(shares, f + g, target)
    minus = table.functional_variance(shares, f - g, target)
    return (plus - minus) / 4


def independence_p_value(counts: npt.NDArray[np.int64]) -> float:
    """Return the p-value of the ordinary chi-square test on a table of reports.

    Attributes perturbed separately stay independent when they were, so the test is valid; it
    has less power than on the answers.
    """
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    used = expected > 0
    statistic = float(np.sum((counts[used] - expected[used]) ** 2 / expected[used]))
    rows, columns = (np.count_nonzero(counts.sum(axis=axis)) for axis in (1, 0))
    freedom = (rows - 1) * (columns - 1)
    return float(chi2.sf(statistic, freedom)) if freedom else 1.0


def _product(p: Floats) -> Floats:
    return np.outer(p.sum(axis=1), p.sum(axis=0))


def _scores(scores: Sequence[float], size: int) -> Floats:
    array = np.asarray(scores, dtype=np.float64)
    if array.shape != (size,) or not np.isfinite(array).all():
        raise InputError(f"scores are {size} finite numbers, one for each category.")
    return array


def _delta(
    name: str,
    table: Frequencies,
    target: Target,
    value: Callable[[Floats], float],
    gradient: Gradient,
    limits: tuple[float, float],
) -> Estimate:
    """Evaluate a statistic at the most likely shares, with its standard error and bias."""
    check_target(target)
    shares, bounded = _inside(table)
    variance = table.functional_variance(shares, gradient(shares), target)
    bias = 0.0
    if table.counts.size <= MOST_CURVED:
        bias, extra = _second_order(table, target, shares, gradient)
        variance += extra
    sigma = sqrt(variance)
    low = high = value(shares) - bias
    others = [value(possible) for possible in _possible(table, target, shares)]
    if others:
        low, high = min(low, *others), max(high, *others)
        # So that the 95 % interval reaches from below the lowest to above the highest.
        sigma = _CAUTION * sigma + (high - low) / 2 / _NORMAL_95
    found = min(max((low + high) / 2, limits[0]), limits[1])
    details = {
        "target": target,
        "range": list(limits),
        "bias_removed": bias,
        # Where shares lie on the boundary the normal approximation is not to be trusted.
        "cells_at_boundary": bounded,
    }
    return Estimate(name, found, sigma, details)


def _possible(table: Frequencies, target: Target, shares: Floats) -> list[Floats]:
    """Return other tables that the reports leave possible, where a cell may well be empty.

    Noise can only raise an empty cell, never lower it, so that tables with empty cells look less
    dependent than they are, by more than any expansion around the estimate tells. All cells whose
    share is below two of its standard errors may be empty; and in a row or column of such cells
    alone, any one of them may hold what there is.
    """
    if table.counts.size > MOST_CURVED:
        return []
    spread = np.sqrt(np.maximum(np.diag(table.covariance_at(shares, target)), 0.0))
    spread = spread.reshape(shares.shape)
    doubtful = shares < 2 * spread
    if not doubtful.any():
        return []
    emptied = np.where(doubtful, 0.25 / table.responses, shares)
    lone = np.zeros_like(doubtful)
    for axis in range(doubtful.ndim):
        lone |= doubtful & doubtful.all(axis=axis, keepdims=True)
    found = [emptied]
    for place in np.argwhere(lone):
        for start in (shares, emptied):
            raised = start.copy()
            raised[tuple(place)] += 2 * spread[tuple(place)]
            found.append(raised)
    return [one / one.sum() for one in found]


def _inside(table: Frequencies) -> tuple[Floats, int]:
    """Return the most likely shares, each at least a quarter of one response."""
    shares = table.likelihood()
    least = 0.25 / table.responses
    bounded = int(np.count_nonzero(shares < least))
    if bounded:
        shares = np.maximum(shares, least)
        shares = shares / shares.sum()
    return shares, bounded


def _second_order(
    table: Frequencies, target: Target, shares: Floats, gradient: Gradient
) -> tuple[float, float]:
    """Return the bias tr(H·C)/2 and the extra variance tr(H·C·H·C)/2, with C the covariance.

    A cell whose standard error exceeds its share is given the share as standard error: the
    expansion says nothing beyond, and would explode.
    """
    covariance = table.covariance_at(shares, target)
    flat = shares.ravel()
    spread = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    trust = np.minimum(1.0, flat / spread)
    covariance = covariance * np.outer(trust, trust)
    curved = _hessian(shares, gradient) @ covariance
    return float(np.trace(curved)) / 2, max(float(np.sum(curved * curved.T)) / 2, 0.0)


def _hessian(shares: Floats, gradient: Gradient) -> Floats:
    """Differentiate the gradient numerically, each cell by a small part of itself."""
    flat = shares.ravel()
    result = np.empty((flat.size, flat.size))
    for place in range(flat.size):
        step = 1e-4 * flat[place]
        up, down = flat.copy(), flat.copy()
        up[place] += step
        down[place] -= step
        change = gradient(up.reshape(shares.shape)) - gradient(down.reshape(shares.shape))
        result[place] = change.ravel() / (2 * step)
    return (result + result.T) / 2
