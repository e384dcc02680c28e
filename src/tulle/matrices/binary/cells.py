"""Randomized response: every cell is flipped by its own coin."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.matrices.binary.outcome import XorMechanism, XorSettings, common_settings, shape_of
from tulle.matrices.binary.queries import Xor
from tulle.noise.charge import ResponseCharge, charge
from tulle.noise.xor.patterns import flip_probability, response_bits


@registry.mechanism("matrix", "cells", answers=(Xor,))
class Cells(XorMechanism):
    """Flip each cell with probability 1 / (1 + exp(epsilon)).

    Guarantee:
        Pure epsilon per cell: two patterns that differ in one cell have probabilities whose ratio
        is exp(epsilon) or exp(-epsilon).

    Error:
        The least possible. An epsilon-private bit has P(1 | 1) <= exp(epsilon)·P(1 | 0) and
        P(0 | 0) <= exp(epsilon)·P(0 | 1), so its two errors together are at least
        2 / (1 + exp(epsilon)).

    Reference:
        Warner, Randomized response, JASA 1965; Kairouz, Oh & Viswanath, NIPS 2014.

    Example:
        >>> import tulle
        >>> matrix = tulle.BinaryMatrix([[0, 1], [1, 1]])
        >>> r = tulle.release(matrix, tulle.xor(), unit="cell", epsilon=1.0)
        >>> r.mechanism, r.value.shape
        ('cells', (2, 2))
    """

    title: ClassVar[str] = "a coin for every cell"
    reference: ClassVar[str] = "Warner, JASA 1965"

    def fits(self, query: Xor, unit: str) -> bool:
        return query.family == "optimal" and unit == "cell"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        flip = flip_probability(terms.epsilon)
        found = XorSettings(**common_settings(terms, flip))
        return {**found, "covariance": 0.0, "lines": "cells"}

    def noise(
        self, terms: Terms, settings: Parameters, source: Source | None
    ) -> npt.NDArray[np.uint8]:
        rows, columns = shape_of(terms)
        with charge(ResponseCharge()):
            drawn: npt.NDArray[np.uint8] = response_bits(terms.epsilon, rows * columns, source)
        return drawn.reshape(rows, columns)
