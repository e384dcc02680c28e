"""Counts of subgraphs by the output perturbation of Rastogi, Hay, Miklau & Suciu (PODS 2009).

**Not differentially private.** Its guarantee is (epsilon, gamma)-adversarial privacy: it holds
against adversaries who take edges for independent, or nearly, and know few of them. An edge may
move a count by far more than the noise; ``tests/baselines`` shows a pair of graphs that its answers
tell apart. Kept because paper 001 (the recursive mechanism) compares with it.
"""

from __future__ import annotations

import math
from fractions import Fraction

from tulle.core.source import Source
from tulle.core.validate import Number, rational
from tulle.noise import discrete_laplace
from tulle.noise.watch import free_of_charge

GUARANTEE = "adversarial privacy, not differential privacy"


def rhms_scale(nodes: int, corners: int, links: int, epsilon: Number) -> Fraction:
    """Return the scale of noise for a subgraph of so many corners and links: (k·l²·ln n)^(l-1)/e.

    The order of magnitude that the paper proves, with the constant in its favour: one.

    Example:
        >>> float(rhms_scale(1000, 3, 2, 1)) < float(rhms_scale(1000, 3, 3, 1))
        True
    """
    base = Fraction(corners * links**2 * math.log(max(nodes, 3)))
    return base ** (links - 1) / rational(epsilon)


def rhms(
    count: int, nodes: int, corners: int, links: int, epsilon: Number, source: Source | None = None
) -> int:
    """Return a noisy count of connected subgraphs."""
    scale = rhms_scale(nodes, corners, links, epsilon).limit_denominator(2**20)
    # Nothing is charged: what one edge moves has no bound here.
    with free_of_charge(source):
        return count + int(discrete_laplace(scale=scale, size=1, source=source)[0])
