"""The published XOR mechanism on a matrix, mended: flips in a column attract each other.

``tulle.xor()`` is never worse. Kept to be compared with; ``xor_paper`` of
:mod:`baselines.xor_topology` is the same on a graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from baselines import baseline
from tulle.core import validate
from tulle.core.errors import InputError
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.core.validate import Number, rational, text
from tulle.matrices.binary.outcome import XorMechanism, XorSettings, common_settings, shape_of
from tulle.matrices.binary.queries import Xor
from tulle.noise.charge import PatternCharge, charge
from tulle.noise.xor.laws import Coupled
from tulle.noise.xor.patterns import exchangeable_bits


@dataclass(frozen=True)
class PaperXor(Xor):
    """The whole matrix, with flips in a column that attract each other."""

    family: str = "paper"
    alpha: str = "0.7"
    """The share of the budget for single flips, as exact text."""

    def canonical(self) -> dict[str, Any]:
        return {**super().canonical(), "alpha": self.alpha}

    def __str__(self) -> str:
        return f"xor({self.family}, alpha={self.alpha})"


def paper_xor(alpha: Number = Fraction(7, 10)) -> PaperXor:
    """Ask for the whole matrix by the published mechanism with its faults mended.

    Single flips get the share ``alpha`` of the budget, pairs of flips in one column the rest; with
    1, the setting of the paper's experiments, flips are independent.

    Raises:
        InputError: when ``alpha`` is not above 0 and at most 1.

    Example:
        >>> str(paper_xor()), str(paper_xor(0.5))
        ('xor(paper, alpha=0.7)', 'xor(paper, alpha=0.5)')
    """
    share = validate.positive(alpha=alpha)
    if share > 1:
        raise InputError(f"alpha must be above 0 and at most 1; got {text(share)}.")
    return PaperXor(alpha=text(share))


def column_law(rows: int, columns: int, alpha: Fraction, epsilon: Fraction, unit: str) -> Coupled:
    """Return the law of the flips in one column, with the published proportions.

    Algorithm 1 gives every flip the weight theta and every pair of flips in a column, counted in
    both orders, lambda, with theta : lambda = alpha : 2 (1 - alpha) / (rows (rows - 1)). Here
    theta is negative, so that more budget means fewer flips, and both are scaled so that the
    exact price is epsilon. One changed cell costs the price of one column; one changed row may
    change a cell in every column, each in the worst direction: ``columns`` times as much.

    Example:
        >>> column_law(100, 8, Fraction(1, 2), Fraction(4), "row").price()
        Fraction(1, 2)
    """
    pairs = rows * (rows - 1)
    shape = Coupled(-alpha, 2 * (1 - alpha) / pairs if pairs else Fraction(0), rows)
    share = epsilon / columns if unit == "row" else epsilon
    scale = share / shape.price()
    return Coupled(shape.field * scale, shape.coupling * scale, rows)


@dataclass(frozen=True, eq=False)
class ColumnSettings(XorSettings):
    """The public settings of one run: the paper's theta, and its lambda as the coupling."""

    covariance: float
    lines: str
    theta: Fraction
    coupling: Fraction


@baseline("matrix", "columns", answers=(PaperXor,))
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
        never below it.

    Reference:
        Ji et al., An XOR Mechanism, PVLDB 14(5), 2021, algorithm 1. The printed privacy condition
        is too weak, the sign of theta makes flips likelier than not, and the printed sampler is
        not exact; here the price is exact, theta is negative and no chain is run.

    Example:
        >>> import baselines, tulle
        >>> baselines.register()
        >>> matrix = tulle.BinaryMatrix([[0, 1], [1, 1], [0, 0]])
        >>> tulle.release(matrix, paper_xor(), unit="cell", epsilon=1.0).mechanism
        'columns'
    """

    title: ClassVar[str] = "the published XOR noise with its exact price"
    reference: ClassVar[str] = "Ji et al., PVLDB 2021"

    def fits(self, query: Xor, unit: str) -> bool:
        return isinstance(query, PaperXor) and unit in ("row", "cell")

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        assert isinstance(terms.query, PaperXor)
        alpha = rational(terms.query.alpha)
        law = column_law(*shape_of(terms), alpha, terms.epsilon, terms.unit.name)
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
