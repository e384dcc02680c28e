"""Laplace noise with a scale for each block of cells."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.mechanism import Terms
from tulle.core.source import Source
from tulle.matrices.contributions.block_mechanism import BlockMechanism
from tulle.matrices.contributions.partition import LAPLACE
from tulle.matrices.contributions.queries import Weights
from tulle.noise import discrete_laplace


@registry.mechanism("contributions", "block_laplace", answers=(Weights,), units=("participant",))
class BlockLaplace(BlockMechanism):
    """Give the cells of each block independent Laplace noise of that block's scale.

    Guarantee:
        Pure epsilon per participant. Contributions are whole numbers of steps after clipping, and
        one participant moves the totals of block k by m_k in L1, where m_k <= D_k and
        sum m_k <= T. Independent discrete Laplace noise of scale s_k in every cell then changes
        no probability by more than exp(sum m_k / s_k), and the largest such sum, found exactly in
        fractions, is at most epsilon. Blocks, scales and clipping follow from public bounds. Cells
        outside the public support are 0 whatever the data.

    Error:
        (sum_k sqrt(n_k·m_k))² / epsilon in all cells together for the worst m: the least that
        scales for these blocks and bounds can give (see
        :mod:`tulle.matrices.contributions.partition`). What clipping takes away comes on top; a
        plan shows it for a public stand-in given as ``like``.

    Reference:
        Brunet, Canard, Gambs & Olivier, Novel differentially private mechanisms for graphs, 2016,
        theorem 5; with noise drawn anew in every cell, a support that is declared, and
        individuals clipped to bounds instead of replaced by another's records.

    Example:
        >>> import tulle
        >>> trips = tulle.Contributions([1, 1, 2], [0, 1, 0], [1, 0, 1], rows=2, columns=2)
        >>> r = tulle.release(
        ...     trips, tulle.weights(bound=1, total=3), unit="participant", epsilon=1.0)
        >>> r.mechanism, r.value.shape
        ('block_laplace', (2, 2))
    """

    title: ClassVar[str] = "Laplace noise for each block of cells"
    reference: ClassVar[str] = "Brunet et al., 2016"
    noise: ClassVar[str] = "laplace"
    power: ClassVar[Fraction] = LAPLACE
    squared: ClassVar[bool] = False

    def budget(self, terms: Terms) -> Fraction:
        return terms.epsilon

    def draw(self, scale: Fraction, count: int, source: Source | None) -> npt.NDArray[np.int64]:
        return discrete_laplace(scale=scale, size=count, source=source)
