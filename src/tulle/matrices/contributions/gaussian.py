"""Gaussian noise with a variance for each block of cells, one budget over all of them."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.events import Event, Gaussian
from tulle.core.gaussian import largest_rho_where
from tulle.core.guarantee import largest_rho
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.matrices.contributions.block_mechanism import BlockMechanism, BlockSettings
from tulle.matrices.contributions.partition import GAUSSIAN
from tulle.matrices.contributions.queries import Weights
from tulle.noise import discrete_gaussian


@registry.mechanism("contributions", "block_gaussian", answers=(Weights,), units=("participant",))
class BlockGaussian(BlockMechanism):
    """Give the cells of each block independent Gaussian noise of that block's variance.

    Guarantee:
        (epsilon, delta) per participant. Contributions are whole numbers of steps after clipping,
        and one participant moves block k by a vector whose squares add up to m_k. Discrete
        Gaussian noise of variance v_k in every cell is rho-zero-concentrated for
        rho = sum m_k / (2·v_k) (Canonne, Kamath & Steinke 2020, theorem 4 and composition), and
        the largest such sum over all m within the bounds, found exactly in fractions, is at most
        a rho that implies (epsilon, delta), evaluated with outward rounding: by itself as
        :mod:`tulle.core.gaussian` shows, for accounts that add rho up by their corollary 13. No
        delta is divided among blocks.

    Error:
        sqrt(2 / pi)·(sum_k n_k^(2/3)·m_k^(1/3))^(3/2) / sqrt(2·rho) in all cells together, for
        the worst m.

    Reference:
        Brunet, Canard, Gambs & Olivier, Novel differentially private mechanisms for graphs, 2016,
        theorem 12, whose delta_k = 2·delta/K is too large and whose deviation holds for
        epsilon < 1 only; here all blocks share one budget.

    Example:
        >>> import tulle
        >>> trips = tulle.Contributions([1, 1, 2], [0, 1, 0], [1, 0, 1], rows=2, columns=2)
        >>> r = tulle.release(trips, tulle.weights(bound=1, length=2), unit="participant",
        ...                   epsilon=1.0, delta=1e-6, mechanism="block_gaussian")
        >>> print(r.guarantee)
        epsilon = 1, delta = 1e-06, per participant (add-remove)
    """

    title: ClassVar[str] = "Gaussian noise for each block of cells"
    reference: ClassVar[str] = "Brunet et al., 2016; Canonne et al., NeurIPS 2020"
    needs_delta: ClassVar[bool] = True
    concentrated: ClassVar[bool] = True
    noise: ClassVar[str] = "gaussian"
    power: ClassVar[Fraction] = GAUSSIAN
    squared: ClassVar[bool] = True

    def budget(self, terms: Terms) -> Fraction:
        return 2 * largest_rho(terms.epsilon, terms.delta)

    def single_budget(
        self, terms: Terms, budget: Fraction, least: Fraction, moved: int
    ) -> Fraction:
        # Variances are in inverse proportion to rho, up to their rounding.
        nearly = least * budget / 2 * (1 - Fraction(1, 2**20))
        found = largest_rho_where(
            terms.epsilon, terms.delta, lambda rho: ((rho, Fraction(moved), nearly / rho),)
        )
        return 2 * found

    def event(self, terms: Terms, settings: Parameters) -> Event:
        found = BlockSettings.read(settings)
        if found.price is None or found.moved is None:
            return super().event(terms, settings)
        return Gaussian(found.price / 2, Fraction(found.moved), min(found.scales))

    def draw(self, scale: Fraction, count: int, source: Source | None) -> npt.NDArray[np.int64]:
        return discrete_gaussian(variance=scale, size=count, source=source)
