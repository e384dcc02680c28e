"""The published XOR mechanism, mended: flips in a column attract each other."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.core.validate import rational
from tulle.matrices.binary.families import column_law
from tulle.matrices.binary.outcome import (
    XorMechanism,
    XorSettings,
    common_settings,
    shape_of,
    xor_query,
)
from tulle.matrices.binary.queries import Xor
from tulle.noise.charge import PatternCharge, charge
from tulle.noise.xor.laws import Coupled
from tulle.noise.xor.patterns import exchangeable_bits


@dataclass(frozen=True, eq=False)
class ColumnSettings(XorSettings):
    """The public settings of one run: the paper's theta, and its lambda as the coupling."""

    covariance: float
    lines: str
    theta: Fraction
    coupling: Fraction


@registry.mechanism("matrix", "columns", answers=(Xor,))
class Columns(XorMechanism):
    """Draw the number of flips in each column from its exact law, then places for them.

    Guarantee:
        Pure epsilon per cell or row. With Theta = theta·I and all Lambda_ij = lambda·I the
        exponent of a pattern is the sum over columns of theta·k + lambda·k·(k - 1), k being the
        flips in the column. So columns are independent, and one more flip in a column of n cells
        changes its exponent by theta + 2·lambda·k, k < n: at most
        c = max(|theta|, |theta + 2·lambda·(n - 1)|). A cell costs c. A row of P cells costs P·c,
        and all of it when every column is at its worst in the same direction; both are attained.
        theta and lambda are scaled so that this is epsilon.

    Error:
        Near that of randomized response with epsilon per cell, or epsilon / P per cell for rows;
        never below it. Kept for comparison: ``optimal`` is better.

    Reference:
        Ji et al., An XOR Mechanism, PVLDB 14(5), 2021, algorithm 1. The printed privacy condition
        is too weak, the sign of theta makes flips likelier than not, and the printed sampler is
        not exact; here the price is exact, theta is negative and no chain is run.

    Example:
        >>> import tulle
        >>> matrix = tulle.BinaryMatrix([[0, 1], [1, 1], [0, 0]])
        >>> tulle.release(matrix, tulle.xor("paper"), unit="cell", epsilon=1.0).mechanism
        'columns'
    """

    title: ClassVar[str] = "the published XOR noise with its exact price"
    reference: ClassVar[str] = "Ji et al., PVLDB 2021"

    def fits(self, query: Xor, unit: str) -> bool:
        return query.family == "paper" and unit in ("row", "cell")

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        alpha = xor_query(terms).alpha
        assert alpha is not None
        law = column_law(*shape_of(terms), rational(alpha), terms.epsilon, terms.unit.name)
        flip, covariance = law.moments()
        return ColumnSettings(
            **common_settings(terms, flip),
            covariance=covariance,
            lines="columns",
            theta=law.field,
            coupling=law.coupling,
        )

    def noise(
        self, terms: Terms, settings: Parameters, source: Source | None
    ) -> npt.NDArray[np.uint8]:
        rows, columns = shape_of(terms)
        found = ColumnSettings.read(settings)
        law = Coupled(found.theta, found.coupling, rows)
        changed = columns if terms.unit.name == "row" else 1
        with charge(PatternCharge(lambda draw: changed * draw.parameters["law"].price())):
            return np.ascontiguousarray(exchangeable_bits(law, columns, source).T)
