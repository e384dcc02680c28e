"""The largest eigenvalues of a large matrix, with a proof that none was missed.

Iteration finds eigenvalues quickly and may miss some: where its start happens to be orthogonal to a
vector, or nearly so. Noise that relies on what it finds would not be private. So what it finds is
only a proposal here, and a secret random vector, drawn after it, checks it.

*Bounds.* Let V be orthonormal with k columns, T = V'AV diagonal with entries t_1 >= ... >= t_k,
R = AV - VT, and B the matrix on the complement of V. Then t_i <= lambda_i for every V (Cauchy).
In a basis of V and its complement A is diag(T, B) plus a matrix of norm |R|, so by Weyl lambda_i is
at most |R| above the i-th largest of the entries of T and the eigenvalues of B together, which is
at most max(t_i, largest of B). Hence, if no eigenvalue of B exceeds t_k + 2e, and |R| <= e,

    0 <= lambda_i - t_i <= 3e   for i = 1 ... k.

*Start.* The entries of a start vector are whole numbers of FINE-ths with discrete normal noise of
deviation one. For any v of length one <x, v> is in size below t = d/(2·sqrt(n)) with probability d
at most, for any d above 1/FINE: v has an entry of 1/sqrt(n) or more, whatever the others are
that entry of x must lie in an interval of length 2t·sqrt(n) = d, in which there are d·FINE + 1
values, each with a chance of .4/FINE at most.

*Check.* Let x be such a vector, cut to the complement of V, and y = C(B)x, where C is the Chebyshev
polynomial of degree m that is within -1 and 1 between a and s = t_k + e. If B has an eigenvalue
above s + e, with vector v, then |y| >= |<x, v>|·C(s + e), and <x, v> is of size below t with
probability d at most. So with C(s + e) >= 4·|x|/t, |y| <= 2·|x| happens with probability d at most;
rounding is far below a factor of two. Where no eigenvalue lies outside of a and s, |y| <= |x| and
the check succeeds. Where it fails y points to what was missed, and is taken in.

*It ends.* After some rounds what was found is put aside, and a way is taken whose steps are counted
beforehand. Let s bound the eigenvalues in size, M = A + s·I, whose eigenvalues lie in 0 ... 2s, X
have k start vectors as columns, and Y = M^m·X. G = U'X is the part of X in the first k
eigenvectors, k by k. A column x of X has with a vector Uh of length one, where h is orthogonal to
all other columns of G, a product larger than t but with probability d/k, t being that of d/k. So
but with probability d all columns of G are further than t from the span of the others, and then
|1/G| <= sqrt(k)/t. For each i and w with entries up to i only, X·(1/G)·w has no part in the
eigenvectors from i + 1 to k, parts w in the first i, and parts of size c = |X|·|1/G|·|w| in all
others. M^m makes each of the first grow by (s + lambda_i)^m at least, and of the others those below
lambda_i - e by at most (s + lambda_i - e)^m, that is by a factor exp(-m·e/2s) less. So with
m = (2s/e)·ln(c·sqrt(2s/e)) no vector of an i-dimensional part of Y has a quotient below
lambda_i - 2e, and the i-th value of A within Y is no further below lambda_i (Courant & Fischer).
A third e is left for rounding.

How long that takes depends on the graph; what it returns is right but for the stated probability.

*Proof.* Where a matrix fits in memory as floats, no probability is needed. With
D = diag(t_i - t_k), which has no negative entry, let

    M = (t_k + e)·I + V·D·V' - A.

If M has no negative eigenvalue, then A is at most (t_k + e)·I + V·D·V', whose i-th largest
eigenvalue is t_i + e: so lambda_i <= t_i + e for i = 1 ... k, by the monotony of eigenvalues, and
t_i <= lambda_i as above. A Cholesky factorisation that runs to its end proves it, up to rounding:
in floating point it shows that no eigenvalue of M is below -g·trace(M), with
g = (n + 1)·u / (1 - 2·(n + 1)·u), u = 2^-53, whatever the order of its sums (Rump, Verification of
positive definiteness, BIT 2006). It takes n³/3 multiplications, which run at a processor's full
speed; all eigenvalues take four times as many, at a tenth of it. Where it stops, it names a vector
on which M is negative, which is taken in; after a few attempts all eigenvalues are computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tulle.core.arrays import Floats
from tulle.graphs.spectra.queries import public_signs

Start = Callable[[], Floats]
"""Returns a fresh start vector, as above."""

_POWERS = 8
"""How many times a block is multiplied before the best of all its images is taken."""

FINE = 2**47
"""Into how many parts the deviation of an entry of a start vector is divided."""

_ROUNDS = 20
"""So many vectors are taken in, one after the other, before the steps are counted."""

_TURNS = 300
"""How many times what was found is improved in each round."""

_CYCLES = 500
"""How often Lanczos iteration begins again before it is given up."""

_SPARE = 3
"""Columns beside those that are asked for: they make the search faster."""

_SMALL = 300
"""Up to this many nodes everything is computed."""

_ATTEMPTS = 3
"""How often a factorisation may stop before all eigenvalues are computed."""

_BLOCKS = 12
"""How many times what a factorisation named is improved before the next attempt."""


def largest_values(matrix: Any, k: int, tolerance: float, failure: float, start: Start) -> Floats:
    """Return numbers t_1 >= ... >= t_k with 0 <= lambda_i - t_i <= 3·tolerance.

    ``matrix`` is symmetric, with eigenvalues that are largest in size at its upper end, as those of
    a matrix without negative entries are. It fails with probability ``failure`` at most, over
    the vectors that ``start`` returns, where that is no less than :func:`least_failure`.
    """
    nodes = matrix.shape[0]
    if nodes <= max(_SMALL, 4 * k):
        return all_values(matrix, k)
    columns = _proposed(matrix, k, tolerance)
    failure /= _ROUNDS + 1
    for _ in range(_ROUNDS):
        columns, values, residual = _refined(matrix, columns, k, tolerance, _TURNS)
        missed = _check(matrix, columns, values, tolerance, failure, start())
        if missed is None and residual <= tolerance:
            return values
        if missed is not None:
            columns = np.column_stack([columns, missed])
    return _powers(matrix, k, tolerance, failure, start)


def least_failure(k: int) -> Fraction:
    """Return how unlikely a failure of ``largest_values`` can be made.

    Example:
        >>> float(least_failure(1)) < 1e-12
        True
    """
    return Fraction(k * (_ROUNDS + 1), FINE)


def _powers(matrix: Any, k: int, tolerance: float, failure: float, start: Start) -> Floats:
    """Return the values by powers of the matrix, in a number of steps that needs no check."""
    size = _largest_size(matrix)
    if size <= tolerance:
        return np.zeros(k)
    columns = np.column_stack([start() for _ in range(k)])
    times = 2 * size / tolerance
    least = _least_product(failure / k, nodes=len(columns))
    spread = float(np.linalg.norm(columns)) * math.sqrt(k * times) / least
    for _ in range(math.ceil(times * math.log(spread))):
        columns = np.linalg.qr(matrix @ columns + size * columns)[0]
    values: Floats = np.linalg.eigvalsh(columns.T @ (matrix @ columns))[::-1].copy()
    return values


def _least_product(failure: float, nodes: int) -> float:
    """Return t: a start vector's product with a given vector of length one is larger in size."""
    return failure / (2 * math.sqrt(nodes))


def _largest_size(matrix: Any) -> float:
    """Return a bound on the eigenvalues of an adjacency matrix."""
    return min(float(matrix.sum(axis=1).max()), math.sqrt(float(matrix.sum())))


def all_values(matrix: Any, k: int) -> Floats:
    """Return the k largest of all eigenvalues, by a method that misses none."""
    values: Floats = np.linalg.eigvalsh(matrix.toarray())[::-1][:k].copy()
    return values


def proved_values(matrix: Any, k: int, tolerance: float) -> Floats:
    """Return numbers t_1 >= ... >= t_k with 0 <= lambda_i - t_i <= 2·tolerance, for certain.

    Where ``matrix``, the adjacency matrix of a graph, is too large for its rounding to stay below
    the tolerance, or the search finds no proof, all eigenvalues are computed.
    """
    columns = _proposed(matrix, k, tolerance)
    for _ in range(_ATTEMPTS):
        columns, values, _residual = _refined(matrix, columns, k, tolerance / 4, _BLOCKS)
        if not np.isfinite(values).all() or not _proof_is_exact(matrix, values, tolerance):
            break
        missed = _factorised(matrix, columns, values, tolerance)
        if missed is None:
            return values
        columns = np.column_stack([columns, missed])
    return all_values(matrix, k)


def _proof_is_exact(matrix: Any, values: Floats, tolerance: float) -> bool:
    """Whether rounding in the factorisation moves no eigenvalue by more than the tolerance."""
    nodes = matrix.shape[0]
    trace = nodes * (abs(float(values[-1])) + tolerance) + float((values - values[-1]).sum())
    unit = (nodes + 1) * 2.0**-53
    return bool(unit / (1 - 2 * unit) * trace * 1.01 <= tolerance)


def _factorised(matrix: Any, columns: Floats, values: Floats, tolerance: float) -> Floats | None:
    """Return None if the factorisation ends, or a vector on which the matrix is negative."""
    from scipy.linalg import solve_triangular
    from scipy.linalg.lapack import dpotrf

    made = (columns * (values - values[-1])) @ columns.T
    made -= matrix.toarray()
    made[np.diag_indices_from(made)] += float(values[-1]) + tolerance
    # Symmetric, and in Fortran's order: it is factorised in place.
    factor, place = dpotrf(made.T, lower=1, clean=0, overwrite_a=1)
    if place == 0:
        return None
    before = place - 1
    missed = np.zeros(len(made))
    missed[before] = 1.0
    if before:
        # The row of the factor at which it stopped; with it the pivot is -M on this vector.
        row = np.asarray(factor[before, :before])
        missed[:before] = -solve_triangular(
            factor[:before, :before], row, lower=True, trans="T", check_finite=False
        )
    size = float(np.linalg.norm(missed))
    return missed / size if np.isfinite(size) else np.eye(1, len(made), before)[0]


def _proposed(matrix: Any, k: int, tolerance: float) -> Floats:
    """Return what Lanczos iteration finds, or fixed signs: anything will do, this is faster."""
    from scipy.sparse.linalg import eigsh

    signs = public_signs(matrix.shape[0], k + _SPARE)
    size = _largest_size(matrix)
    try:
        found: Floats = eigsh(
            matrix,
            k=k,
            which="LA",
            v0=signs[:, 1],
            tol=tolerance / (4 * max(size, 1.0)),
            maxiter=_CYCLES,
        )[1]
    except (RuntimeError, ValueError, np.linalg.LinAlgError):
        # It stops on some matrices, such as those that are zero; nothing depends on it.
        return signs
    return found if np.isfinite(found).all() else signs


def _refined(
    matrix: Any, columns: Floats, k: int, tolerance: float, most: int
) -> tuple[Floats, Floats, float]:
    """Return the best k vectors, their values and their residual, by block Krylov iteration."""
    turns = 0
    while True:
        basis = np.linalg.qr(columns)[0]
        values, turn = np.linalg.eigh(basis.T @ (matrix @ basis))
        vectors = (basis @ turn)[:, ::-1][:, :k]
        values = values[::-1][:k]
        image = matrix @ vectors
        residual = float(np.linalg.norm(image - vectors * values))
        if len(values) == k and (residual <= tolerance / 2 or turns >= most):
            return vectors, values, residual
        turns += 1
        blocks = [(basis @ turn)[:, ::-1][:, : k + _SPARE]]
        for _ in range(_POWERS):
            blocks.append(matrix @ blocks[-1])
            blocks[-1] /= max(float(np.abs(blocks[-1]).max()), 1e-300)
            blocks[-1] = np.linalg.qr(blocks[-1])[0]
        columns = np.column_stack(blocks)


def _check(
    matrix: Any, columns: Floats, values: Floats, tolerance: float, failure: float, start: Floats
) -> Floats | None:
    """Return None if no eigenvalue beside the columns is above the last value, or a vector of it.

    With probability ``failure`` at most None is wrong by more than twice the tolerance.
    """

    def beside(vector: Floats) -> Floats:
        kept: Floats = vector - columns @ (columns.T @ vector)
        return kept

    top = float(values[-1]) + tolerance
    bottom = min(-float(values[0]) * (1 + 1e-9), top) - tolerance
    middle, half = (top + bottom) / 2, (top - bottom) / 2
    # Twice: the first leaves rounding behind.
    before = beside(beside(start))
    size = float(np.linalg.norm(before))
    degree = math.ceil(
        math.acosh(4 * size / _least_product(failure, len(start)))
        / math.acosh(1 + tolerance / half)
    )
    after = beside((matrix @ before - middle * before) / half)
    for _ in range(degree - 1):
        following = 2 * beside((matrix @ after - middle * after) / half) - before
        before, after = after, following
        grown = float(np.linalg.norm(after))
        if grown > 1e6 * size:
            return after / grown
    return None if float(np.linalg.norm(after)) <= 2 * size else after / np.linalg.norm(after)
