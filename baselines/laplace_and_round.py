"""Laplace noise on the number of a category, then rounding: the baseline. Plain Python."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from tulle.core import validate
from tulle.core.validate import Number
from tulle.noise.source import exp_bounds
from tulle.surveys.designs import DesignMatrix, row_ratio
from tulle.surveys.exact import LARGEST_EPSILON, checked_epsilon, ratio_is_within


def laplace_and_round(categories: int, *, epsilon: Number) -> DesignMatrix:
    """Return the design of adding Laplace noise to the category's number and rounding.

    The noise has scale (k - 1) / epsilon, the result is rounded to the nearest category; what
    falls outside goes to the first or last. It is the baseline that randomized response beats.

    Guarantee:
        Pure epsilon: Laplace noise at sensitivity k - 1, then post-processing. The matrix is
        rounded to fractions, mixed with a little of the uniform one if that is needed to stay
        within epsilon, and checked as every matrix is.

    Example:
        >>> round(float(laplace_and_round(2, epsilon=1).probability(1, 1)), 4)
        0.6967

    Reference:
        Wang, Wu & Hu 2014, results 10 and 12.
    """
    size = validate.whole(categories=categories, at_least=2)
    exact = checked_epsilon(epsilon)
    used = min(exact, LARGEST_EPSILON)
    places = 96 + int(used * 3 / 2)
    one = Fraction(1)

    def tail(distance: Fraction) -> Fraction:
        """P(noise > distance): half of exp(-distance·epsilon/(k - 1)), rounded up."""
        return Fraction(exp_bounds(distance * used / (size - 1), places)[1], 2 << places)

    columns = []
    for answer in range(size):
        # P(report <= u) for u = 0, ..., k - 2: the noise is at most u + 1/2 - answer.
        edges = [u + Fraction(1, 2) - answer for u in range(size - 1)]
        below = [one - tail(edge) if edge > 0 else tail(-edge) for edge in edges]
        steps = [*below, one]
        column = [steps[0], *(b - a for a, b in pairwise(steps))]
        columns.append(tuple(column))
    mix = Fraction(0)
    while True:
        mixed = tuple(tuple((1 - mix) * p + mix / size for p in column) for column in columns)
        if min(map(min, mixed)) > 0 and ratio_is_within(row_ratio(mixed), exact):
            return DesignMatrix(mixed, exact, "laplace and round")
        mix = 2 * mix if mix else Fraction(1, 1 << places - 8)
