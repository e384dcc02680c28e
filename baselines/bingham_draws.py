"""Draws of a direction with weight exp(u'Fu): the Bingham law on a sphere.

By rejection from the angular central Gaussian law: no chain is run, so nothing has to converge.
The arithmetic is that of floating point. Who releases such a draw has to round it far more coarsely
than floating point errs, and to say what is assumed of that error: see :data:`ASSUMED_ERROR`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from tulle.core.arrays import Floats
from tulle.core.errors import InputError
from tulle.core.source import Source
from tulle.noise.additive import discrete_gaussian
from tulle.noise.source import Bits, report, resolve

ASSUMED_ERROR = Fraction(1, 2**34)
"""No entry of a drawn vector is assumed to be further from what exact arithmetic would give.

Entries are about 1. A solution by Cholesky factors errs by about sqrt(n)·2^-53 times the
condition of the matrix, which is at most 1 + 2·(largest - least eigenvalue of the form). The
assumption was compared with arithmetic of high precision where :func:`is_verified` says so, and
nothing is assumed elsewhere.
"""

LARGEST_CONDITION = 2**19
"""Up to here sqrt(n)·condition keeps draws within :data:`ASSUMED_ERROR`, with room to spare.

Cliques, pairs of cliques, complete bipartite graphs, stars and random graphs of 4 to 1,000 nodes
were drawn from at this limit: no accepted draw was off by more than 2^-36.
"""

_FINE = 2**40
_WHOLE = 400
"""Up to this size all eigenvalues are computed to choose the envelope, above it the largest."""

_LEADING = 12
_ROUNDS = 10


def is_verified(size: int, spread: Fraction, draws: int = 1) -> bool:
    """Say whether floating point is known to keep within :data:`ASSUMED_ERROR`.

    ``spread`` bounds the difference of any two eigenvalues of the form. Each of several ``draws``
    from what earlier ones leave of a form adds the rounding of a reflection.

    Example:
        >>> is_verified(220, Fraction(100)), is_verified(220, Fraction(10**6))
        (True, False)
    """
    return (math.isqrt(size) + 1 + draws) * (1 + 2 * spread) <= LARGEST_CONDITION


def gaussians(count: int, source: Source | None = None) -> Floats:
    """Draw standard normal numbers as multiples of 2^-40, from exact discrete Gaussian noise.

    Example:
        >>> gaussians(3).shape
        (3,)
    """
    drawn = discrete_gaussian(sigma=_FINE, size=count, source=source)
    return np.asarray(drawn, dtype=np.float64) / _FINE


def bingham(form: Any, source: Source | None = None) -> Floats:
    """Draw x = r·u: u a unit vector with weight exp(u'Fu), r as long as n normal numbers are.

    For F = 0 the entries of x are independent normal numbers; in general x has a smooth density
    in all n dimensions, so that rounding its entries is as good as rounding a direction.

    *Method.* A multiple of the identity is taken off F, which changes nothing on a sphere, so that
    its largest eigenvalue is about 0. For every b > 0 above twice that, exp(s) is at most
    exp((b - n)/2)·(n/b)^(n/2)·(1 - 2s/b)^(-n/2), where s = u'Fu, and the latter is the density of
    y/|y| for normal y with precision I - 2F/b. The best b solves sum 1/(b - 2·eigenvalue) = 1; it
    decides how often a candidate is accepted, not the law of what is.

    Raises:
        InputError: when the form is not a square, symmetric matrix of finite numbers.

    Example:
        >>> x = bingham(np.diag([0.0, 400.0]))
        >>> bool(abs(x[1]) > abs(x[0]))
        True

    Reference: Kent, Ganeiber, Mardia, *A new unified approach for the simulation of a wide class
    of directional distributions*, Journal of Computational and Graphical Statistics 2018.
    """
    matrix = np.asarray(form, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise InputError(f"form must be a square matrix; its shape is {matrix.shape}.")
    if not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T, atol=1e-9):
        raise InputError("form must be symmetric, and hold finite numbers.")
    report("bingham", form=matrix)
    source = resolve(source)
    size = len(matrix)
    leading, rest, mean, variance = _outline(matrix)
    top = float(leading.max())
    matrix = matrix - top * np.eye(size)
    factor, width = _envelope(matrix, _best_width(leading - top, rest, mean - top, variance))
    peak = (width - size) / 2 + size / 2 * math.log(size / width)
    bits = Bits(source)
    while True:
        noise = gaussians(2 * size, source)
        y = _solve(factor, noise[:size])
        u = y / np.linalg.norm(y)
        s = float(u @ matrix @ u)
        left = 1 - 2 * s / width
        # Below zero only where rounding has made a candidate that cannot occur.
        chance = s + size / 2 * math.log(left) - peak if left > 0 else -math.inf
        if (bits.take(53) + 0.5) / 2.0**53 < math.exp(min(chance, 0.0)):
            return np.asarray(u * np.linalg.norm(noise[size:]), dtype=np.float64)


def _envelope(matrix: Floats, width: float) -> tuple[Floats, float]:
    """Return the Cholesky factor of I - 2F/b, and b. That it exists proves that b is valid."""
    while True:
        precision = matrix * (-2 / width)
        precision[np.diag_indices(len(matrix))] += 1
        try:
            return np.asarray(np.linalg.cholesky(precision), dtype=np.float64), width
        except np.linalg.LinAlgError:
            # The largest eigenvalue was underestimated; a wider envelope is as exact, and slower.
            width *= 1.25


def _solve(factor: Floats, noise: Floats) -> Floats:
    from scipy.linalg import solve_triangular

    solved = solve_triangular(factor, noise, lower=True, trans="T", check_finite=False)
    return np.asarray(solved, dtype=np.float64)


def _outline(matrix: Floats) -> tuple[Floats, int, float, float]:
    """Return the largest eigenvalues; of the others the number, mean and variance."""
    size = len(matrix)
    if size <= _WHOLE:
        return np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64), 0, 0.0, 0.0
    # A Krylov search from fixed columns: it always ends, whatever the matrix.
    columns = np.cos(np.outer(np.arange(size), np.arange(_LEADING)) + 0.5)
    basis, _ = np.linalg.qr(columns)
    for _ in range(_ROUNDS):
        image = matrix @ basis[:, -_LEADING:]
        basis, _ = np.linalg.qr(np.concatenate([basis, image], axis=1))
    found = np.linalg.eigvalsh(basis.T @ matrix @ basis)
    leading = np.asarray(found[-_LEADING:], dtype=np.float64)
    rest = size - _LEADING
    mean = (float(np.trace(matrix)) - float(leading.sum())) / rest
    square = (float(np.sum(matrix * matrix)) - float((leading**2).sum())) / rest
    return leading, rest, mean, max(square - mean**2, 0.0)


def _best_width(leading: Floats, rest: int, mean: float, variance: float) -> float:
    """Return b with sum 1/(b - 2·eigenvalue) = 1, the others' part to second order.

    The largest eigenvalue is 0, so that b is between 1 and the number of eigenvalues.
    """

    def excess(width: float) -> float:
        gap = width - 2 * mean
        others = rest / gap * (1 + 4 * variance / gap**2) if rest else 0.0
        return float(np.sum(1 / (width - 2 * leading))) + others - 1

    low, high = 1.0, 2.0 + len(leading) + rest
    while excess(high) > 0:
        high *= 2
    # Near enough is good enough: any width above twice the largest eigenvalue is exact.
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high
