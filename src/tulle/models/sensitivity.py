"""How far one person moves the coefficients of a regression's objective, weighted.

A scaled row is z in [-1, 1]^d (and of length at most r), the target y in [-1, 1], the intercept's
feature the constant 1. The coefficients of the quadratic objective are sums over people of
z_i², z_i·z_j and z_i·y. The functional mechanism gives coefficient k noise of scale
D / (w_k·epsilon), where D bounds the sum of w_k·|change of k|: one person's privacy loss is then
at most epsilon.
With the weights of the polynomial (q for squares, 2q for products, l for terms with the target)
this is the mechanism of Zhang et al. with noise of one scale on all monomials; weights times
gamma for monomials with a sensitive feature give those 1/gamma times the noise.

*One person more or less* (participant). In the box the sum is largest where all |z_i| = |y| = 1:
D is the sum of the weights. In the ball, with a = |z|, it is a'Wa + l'a + c <=
lambda_max(W)·r² + |l|·r + c.

*One person changes* (row). Write p = (z + z')/2 and s = (z - z')/2, so that |p_i| + |s_i| <= 1,
z_i·z_j - z'_i·z'_j = 2(p_i·s_j + s_i·p_j) and z_i² - z'_i² = 4·p_i·s_i. With u_i = |p_i| and
|s_i| <= 1 - u_i, products and squares among m features of one weight sum to at most
4q·(m·U - U²), where U = sum u_i: squares and products together depend on the sum alone. The
intercept has u = 1, the target any u in [0, 1], in which everything is linear: an end is best. So D
is the largest value of a concave quadratic in two numbers, the sums over sensitive and other
features: found exactly. Without an intercept it is (d + 1)² for least squares, where twice the
largest row is 2(d² + 2d). In the ball, |zz' - z'z'|_F <= sqrt(2)·r² gives another bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.models.design import Frame

_UP = 1 + Fraction(1, 2**30)
"""Covers the rounding of eigenvalues and roots of at most 2000 x 2000 matrices."""


@dataclass(frozen=True)
class RowWeights:
    """The weights of the monomials: of squares, and of products with the target."""

    square: Fraction
    """Of z_i²; products of two features have twice this."""
    target: Fraction

    @classmethod
    def of(cls, frame: Frame) -> RowWeights:
        """Return the weights of (y - z·w)², or of the logistic loss to second order at 0."""
        if frame.logistic:
            return cls(Fraction(1, 8), Fraction(1, 2))
        return cls(Fraction(1), Fraction(2))


def kind_weights(frame: Frame) -> tuple[Fraction, ...]:
    """Return the weight of each kind of monomial: see :func:`pair_kinds` and `target_kinds`."""
    weights = RowWeights.of(frame)
    open_kinds = (weights.square, 2 * weights.square, weights.target)
    return (*open_kinds, *(weight * frame.gamma for weight in open_kinds))


def pair_kinds(frame: Frame) -> Wholes:
    """Return the kind of each product (i, j): 0 a square, 1 a product; sensitive ones 3 more."""
    hidden = np.array(hidden_places(frame))
    return np.asarray(
        np.where(np.eye(frame.size, dtype=bool), 0, 1) + 3 * (hidden[:, None] | hidden[None, :])
    )


def target_kinds(frame: Frame) -> Wholes:
    """Return the kind of each product with the target: 2, or 5 when the feature is sensitive."""
    return np.asarray(2 + 3 * np.array(hidden_places(frame)))


def pair_weights(frame: Frame) -> list[list[Fraction]]:
    """Return the weight of each sum of products, (i, j) with i <= j, the intercept first."""
    weights = kind_weights(frame)
    return [[weights[kind] for kind in row] for row in pair_kinds(frame).tolist()]


def target_weights(frame: Frame) -> list[Fraction]:
    """Return the weight of each sum of products with the target, the intercept first."""
    weights = kind_weights(frame)
    return [weights[kind] for kind in target_kinds(frame).tolist()]


def hidden_places(frame: Frame) -> list[bool]:
    """Return, for each coefficient, whether its feature is sensitive; the intercept is not."""
    return [False] * frame.intercept + list(frame.sensitive)


def functional_sensitivity(frame: Frame) -> Fraction:
    """Return the most that one person moves the weighted coefficients."""
    if frame.unit == "participant":
        return min(_box_coming(frame), _ball_coming(frame))
    return min(_box_changing(frame), _ball_changing(frame), 2 * _ball_coming(frame))


def attribute_sensitivity(frame: Frame) -> Fraction:
    """Return the most that a change of one person's sensitive features alone moves them.

    The other features have u = 1 and so has the target: what is left is concave in one number.
    """
    hidden = sum(frame.sensitive)
    if not hidden:
        return Fraction(0)
    weights = RowWeights.of(frame)
    square, target = weights.square * frame.gamma, weights.target * frame.gamma
    others = frame.count - hidden + frame.intercept
    # 4q·(h·U - U²) among the sensitive, 4q·(h - U) with each other feature, 2l·(h - U).
    slope = 4 * square * (hidden - others) - 2 * target
    best = min(max(slope / (8 * square), Fraction(0)), Fraction(hidden))
    start = 4 * square * others * hidden + 2 * target * hidden
    return start + slope * best - 4 * square * best**2


def monomials(frame: Frame) -> tuple[int, int]:
    """Return the paper's counts of monomials, all and those with a sensitive feature.

    Products count once in each order, terms with the target twice: d² + 2d for least squares, of
    which 2k + d² - (d - k)² have a sensitive feature. The printed count of those, 2k + k·d,
    leaves out products of which the first factor only is not sensitive.
    """
    d, k = frame.count, sum(frame.sensitive)
    return d * d + 2 * d, 2 * k + d * d - (d - k) ** 2


def _constants(frame: Frame) -> Fraction:
    """Return the weight of the count of rows and of the sum of targets, where there is one."""
    if not frame.intercept:
        return Fraction(0)
    return RowWeights.of(frame).square + RowWeights.of(frame).target


def _box_coming(frame: Frame) -> Fraction:
    pairs = pair_kinds(frame)[np.triu_indices(frame.size)]
    counts = np.bincount(np.concatenate((pairs, target_kinds(frame))), minlength=6).tolist()
    weighted = (w * count for w, count in zip(kind_weights(frame), counts, strict=True))
    return sum(weighted, Fraction(0))


def _ball_coming(frame: Frame) -> Fraction:
    matrix, linear = _matrices(frame)
    squared = float(frame.length_squared)
    bound = float(np.linalg.eigvalsh(matrix)[-1]) * squared
    bound += float(np.linalg.norm(linear)) * math.sqrt(squared)
    return Fraction(bound) * _UP + _constants(frame)


def _ball_changing(frame: Frame) -> Fraction:
    matrix, _ = _matrices(frame)
    squared = float(frame.length_squared)
    weights = np.array([float(w) for w in kind_weights(frame)])
    targets = weights[target_kinds(frame)][int(frame.intercept) :]
    bound = float(np.linalg.norm(matrix)) * math.sqrt(2) * squared
    if frame.intercept:
        # |z - z'| <= 2r in the intercept's products, and the sum of targets moves by 2.
        firsts = weights[pair_kinds(frame)[0, 1:]]
        bound += float(np.linalg.norm(firsts)) * 2 * math.sqrt(squared)
        bound += 2 * float(RowWeights.of(frame).target)
    bound += float(np.linalg.norm(targets)) * 2 * math.sqrt(squared)
    return Fraction(bound) * _UP


def _matrices(frame: Frame) -> tuple[Floats, Floats]:
    """Return W with a'Wa the weighted squares and products, and the weights linear in a."""
    start = int(frame.intercept)
    weights = np.array([float(w) for w in kind_weights(frame)])
    pairs = weights[pair_kinds(frame)]
    matrix = pairs[start:, start:] / 2
    matrix[np.diag_indices(frame.count)] *= 2
    linear = weights[target_kinds(frame)][start:]
    if frame.intercept:
        linear = linear + pairs[0, 1:]
    return matrix, linear


def _box_changing(frame: Frame) -> Fraction:
    weights = RowWeights.of(frame)
    counts = (frame.count - sum(frame.sensitive), sum(frame.sensitive))
    square = (weights.square, weights.square * frame.gamma)
    target = (weights.target, weights.target * frame.gamma)
    best = Fraction(0)
    for end in (0, 1):
        # F(U) = constant + slope·U - U'QU, with Q of the weights of squares, both classes.
        slope, constant = [Fraction(0), Fraction(0)], Fraction(0)
        for one in (0, 1):
            for other in (0, 1):
                joint = square[max(one, other)]
                slope[one] += 4 * joint * counts[other]
            if frame.intercept:
                constant += 4 * square[one] * counts[one]
                slope[one] -= 4 * square[one]
            constant += 2 * target[one] * counts[one] * end
            slope[one] += 2 * target[one] * (1 - 2 * end)
        if frame.intercept:
            constant += 2 * weights.target * (1 - end)
        best = max(best, constant + _concave(slope, square, counts))
    return best


def _concave(
    slope: list[Fraction], square: tuple[Fraction, Fraction], counts: tuple[int, int]
) -> Fraction:
    """Return the largest slope·U - 4(q0·U0² + 2·q1·U0·U1 + q1·U1²) for 0 <= U <= counts.

    It is concave since q1 <= q0: the largest value is where both slopes vanish, or at an edge.
    """
    (a, b), (q0, q1) = slope, square

    def value(first: Fraction, second: Fraction) -> Fraction:
        return a * first + b * second - 4 * (q0 * first**2 + q1 * second * (2 * first + second))

    def clip(found: Fraction, most: int) -> Fraction:
        return min(max(found, Fraction(0)), Fraction(most))

    candidates = []
    for first in (Fraction(0), Fraction(counts[0])):
        candidates.append((first, clip((b - 8 * q1 * first) / (8 * q1), counts[1])))
    for second in (Fraction(0), Fraction(counts[1])):
        candidates.append((clip((a - 8 * q1 * second) / (8 * q0), counts[0]), second))
    if q0 != q1:
        first = (a - b) / (8 * (q0 - q1))
        second = (b - 8 * q1 * first) / (8 * q1)
        if 0 <= first <= counts[0] and 0 <= second <= counts[1]:
            candidates.append((first, second))
    return max(value(*point) for point in candidates)
