"""Two-level noise: the best that can be done for rows of several cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.matrices.binary.outcome import XorMechanism, XorSettings, common_settings, shape_of
from tulle.matrices.binary.queries import Xor
from tulle.noise.charge import PatternCharge, charge
from tulle.noise.xor.laws import TwoLevelPatterns as Law
from tulle.noise.xor.patterns import exchangeable_bits


@dataclass(frozen=True, eq=False)
class TwoLevelSettings(XorSettings):
    """The public settings of one run: up to ``cut`` flips in a row are few."""

    covariance: float
    lines: str
    cut: int


@registry.mechanism("matrix", "two_level", answers=(Xor,))
class TwoLevel(XorMechanism):
    """Give each row a pattern of flips: those of few flips are exp(epsilon) times as likely.

    Guarantee:
        Pure epsilon per row: rows get independent patterns, and the probabilities of any two
        patterns of a row differ by a factor of exp(epsilon) or not at all.

    Error:
        The least expected number of wrong cells that any epsilon-private release of a row can
        have, in the worst case over rows (see
        :class:`tulle.noise.xor.laws.TwoLevelPatterns`). The cut between few and many is the best
        one; it depends on epsilon and the number of columns.

    Reference:
        Kairouz, Oh & Viswanath, Extremal mechanisms for local differential privacy, NIPS 2014
        (that optimal mechanisms have two levels).

    Example:
        >>> import tulle
        >>> votes = tulle.BinaryMatrix([[0, 1, 1, 0]] * 5)
        >>> tulle.release(votes, tulle.xor(), unit="row", epsilon=2.0).parameters["cut"]
        1
    """

    title: ClassVar[str] = "few flips in a row are likelier than many"
    reference: ClassVar[str] = "Kairouz et al., NIPS 2014"

    def fits(self, query: Xor, unit: str) -> bool:
        return query.family == "optimal" and unit == "row"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        law = Law.best(terms.epsilon, shape_of(terms)[1])
        flip, covariance = law.moments()
        return TwoLevelSettings(
            **common_settings(terms, flip), covariance=covariance, lines="rows", cut=law.cut
        )

    def noise(
        self, terms: Terms, settings: Parameters, source: Source | None
    ) -> npt.NDArray[np.uint8]:
        rows, columns = shape_of(terms)
        law = Law(terms.epsilon, columns, TwoLevelSettings.read(settings).cut)
        with charge(PatternCharge(lambda draw: draw.parameters["law"].epsilon)):
            drawn: npt.NDArray[np.uint8] = exchangeable_bits(law, rows, source)
        return drawn
