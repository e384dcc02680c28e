"""How much of a graph's matrix public vectors hold: quotients x'Ax, measured on the graph."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge

FINE = 2**12
"""To how many steps a vector of length one is rounded."""

_LARGEST_SCALE = 2**46


def whole_columns(columns: Floats, epsilon: Fraction) -> Wholes:
    """Return public columns as whole numbers; coarser ones at a tiny epsilon, as noise is larger.

    Example:
        >>> whole_columns(np.array([[0.5], [0.25]]), Fraction(1)).tolist()
        [[2048], [1024]]
    """
    fine = FINE
    while fine > 1 and 2 * fine**2 > _LARGEST_SCALE * epsilon:
        fine //= 2
    made: Wholes = np.rint(columns * fine).astype(np.int64)
    return made


def exact_quotients(graph: Graph, whole: Wholes) -> Wholes:
    """Return x'Ax of each column: twice the sum over edges of the product of its ends' entries."""
    first, second = graph.edges().T
    made: Wholes = 2 * np.einsum("ij,ij->j", whole[first], whole[second])
    return made


def quotient_sensitivity(whole: Wholes) -> int:
    """Return the most by which one edge moves all quotients together, in L1.

    An edge between u and v moves the i-th by 2·|x_ui·x_vi|, and the sum of these over i is at most
    the product of the lengths of two rows (Cauchy & Schwarz): that of the two longest at most. It
    depends on the columns alone, which are public. For one column it is attained.

    Example:
        >>> quotient_sensitivity(np.array([[3], [-2], [1]]))
        12
    """
    squares = np.sort((whole**2).sum(axis=1))[-2:]
    product = math.prod(int(square) for square in squares) if len(squares) == 2 else 0
    root = math.isqrt(product)
    return max(2 * (root + (root * root < product)), 1)


def measured_quotients(
    graph: Graph, columns: Floats, epsilon: Fraction, source: Source | None
) -> tuple[Floats, Floats]:
    """Return x'Ax / x'x of public columns with Laplace noise, and the deviations of the noise.

    Pure epsilon per edge: the columns were public before, and noise follows
    :func:`quotient_sensitivity`. It is small where vectors are spread: of a vector with entries
    up to a tenth an edge moves the quotient by a fiftieth at most.
    """
    whole = whole_columns(columns, epsilon)
    exact, moved = exact_quotients(graph, whole), quotient_sensitivity(whole)
    with charge(LaplaceCharge(moved)):
        noise = discrete_laplace(scale=moved / epsilon, size=exact.shape, source=source)
    lengths = np.maximum((whole**2).sum(axis=0), 1)
    return (exact + noise) / lengths, math.sqrt(2) * float(moved / epsilon) / lengths
