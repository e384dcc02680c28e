"""From sums of products, exact or noisy, to coefficients; and fits that are not private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Floats
from tulle.core.unit import Unit
from tulle.models.data import Table
from tulle.models.design import MOST_BITS, Frame, frame_of, moments, whole_rows

if TYPE_CHECKING:
    from tulle.models.queries import Regression


MOST_PENALTY = 1.0
"""The largest penalty, in units of a row's noise; directions that need more are trimmed."""
LEAST_CURVATURE = 0.5
"""Directions whose curvature is below this, in the same units, are trimmed."""


@dataclass(frozen=True, eq=False)
class Solution:
    """The minimum of a noisy quadratic: w'Mw/2 - v'w, penalised and trimmed."""

    scaled: Floats
    """Coefficients of the scaled features, the intercept first."""
    inverse: Floats
    """The inverse of the penalised matrix on the directions that were kept."""
    penalty: Floats
    """What was added to the matrix's diagonal."""
    trimmed: bool


def solve(
    frame: Frame,
    products: Floats,
    crossed: Floats,
    product_variances: Floats,
) -> Solution:
    """Minimise a quadratic whose matrix carries noise of these variances.

    The noisy matrix may be indefinite, and then has no minimum. Each feature's curvature is
    compared with its row's noise: if the least is below it, a penalty lifts all features in
    proportion to their noise, and what is still not clearly positive is trimmed: coefficients have
    no part in such directions. The intercept is not penalised: where noise drowns everything, the
    model falls back to predicting the same for everyone. All this sees noisy numbers only.
    """
    start = int(frame.intercept)
    means = np.zeros(frame.count)
    total = 1.0
    if frame.intercept:
        total = max(float(products[0, 0]), 1.0)
        means = products[0, 1:] / total
        # A mean of scaled features is within [-1, 1], whatever the noise made of it.
        means = np.clip(means, -1.0, 1.0)
    lift = np.column_stack((-means, np.eye(frame.count)))[:, 1 - start :]
    centred = products[start:, start:].copy()
    against = crossed[start:].copy()
    if frame.intercept:
        centred -= total * np.outer(means, means)
        against -= means * crossed[0]
    spread = _row_noise(lift, product_variances)
    root = 1 / np.sqrt(spread)
    values, vectors = np.linalg.eigh(root[:, None] * centred * root[None, :])
    amount = min(max(1.0 - float(values[0]), 0.0), MOST_PENALTY)
    lifted = values + amount
    kept = lifted >= LEAST_CURVATURE
    basis = root[:, None] * vectors[:, kept]
    inner = (basis / lifted[kept]) @ basis.T
    scaled = np.zeros(frame.size)
    inverse = np.zeros((frame.size, frame.size))
    scaled[start:] = inner @ against
    inverse[start:, start:] = inner
    penalty = np.zeros(frame.size)
    penalty[start:] = amount * spread
    if frame.intercept:
        scaled[0] = (crossed[0] - total * means @ scaled[1:]) / total
        # The block inverse: the penalty leaves the intercept's row as it is.
        inverse[0, 1:] = inverse[1:, 0] = -inner @ means
        inverse[0, 0] = 1 / total + means @ inner @ means
    return Solution(scaled, inverse, penalty, bool(not kept.all()))


def _row_noise(lift: Floats, variances: Floats) -> Floats:
    """Return the root of the summed variances of each feature's row, after centring."""
    squared = lift**2
    rows = np.sqrt(np.sum(squared @ variances @ squared.T, axis=1))
    # Without any noise (a public table) only rounding is left to guard against.
    return np.asarray(np.maximum(rows, 2.0**-20))


def in_own_units(frame: Frame, scaled: Floats) -> Floats:
    """Return intercept and coefficients for features and target as they are measured."""
    return np.asarray(frame.transform() @ scaled + frame.offset())


def fit_linear(query: Regression, table: Table) -> Floats:
    """Return the least-squares coefficients of the clipped table. Custodian side."""
    frame = frame_of(query, table.facts(Unit.of("row")), "row")
    products, crossed = moments(frame, table, MOST_BITS)
    scaled = np.linalg.pinv(np.ldexp(products.astype(np.float64), -2 * MOST_BITS), hermitian=True)
    return in_own_units(frame, scaled @ np.ldexp(crossed.astype(np.float64), -2 * MOST_BITS))


def fit_logistic(query: Regression, table: Table) -> Floats:
    """Return the logistic coefficients of the clipped table, hardly penalised. Custodian side."""
    frame = frame_of(query, table.facts(Unit.of("row")), "row")
    return in_own_units(frame, fit_scaled_logistic(frame, table)[0])


def fit_scaled_logistic(frame: Frame, table: Table) -> tuple[Floats, Floats]:
    """Return the logistic coefficients of the scaled features, and the loss's curvature there."""
    features, target = whole_rows(frame, table, MOST_BITS)
    features /= float(1 << MOST_BITS)
    found = minimise_logistic(features, target > 0, np.zeros(frame.size), 1e-6, 1e-9)
    return found, logistic_curvature(features, chances(features @ found))


def logistic_curvature(features: Floats, predicted: Floats) -> Floats:
    """Return the second derivatives of the logistic loss where these are the predictions."""
    weights = predicted * (1 - predicted)
    return np.asarray((features * weights[:, None]).T @ features)


def minimise_logistic(
    features: Floats,
    positive: npt.NDArray[np.bool_],
    tilt: Floats,
    penalty: float,
    tolerance: float,
    most: int = 200,
) -> Floats:
    """Minimise the logistic loss + penalty·|w|²/2 + tilt·w by Newton's method with halved steps.

    The function is strictly convex, so that every round comes closer; it ends when the gradient is
    shorter than the tolerance.
    """
    found = np.zeros(features.shape[1])
    labels = positive.astype(np.float64)
    value = _objective(features, labels, tilt, penalty, found)
    for _ in range(most):
        guessed = chances(features @ found)
        gradient = features.T @ (guessed - labels) + penalty * found + tilt
        if float(np.linalg.norm(gradient)) <= tolerance:
            break
        curvature = logistic_curvature(features, guessed)
        curvature[np.diag_indices(len(found))] += penalty
        step = np.linalg.solve(curvature, gradient)
        size, slope = 1.0, float(gradient @ step)
        while size > 1e-9:
            tried = found - size * step
            reached = _objective(features, labels, tilt, penalty, tried)
            if reached <= value - 1e-4 * size * slope or abs(slope) < 1e-9 * abs(value):
                break
            size /= 2
        found, value = tried, reached
    return found


def _objective(features: Floats, labels: Floats, tilt: Floats, penalty: float, at: Floats) -> float:
    odds = features @ at
    loss = float(np.logaddexp(0.0, odds).sum() - labels @ odds)
    return loss + penalty / 2 * float(at @ at) + float(tilt @ at)


def chances(odds: Floats) -> Floats:
    """Return the probabilities that go with these log-odds."""
    from scipy.special import expit

    return np.asarray(expit(odds))
