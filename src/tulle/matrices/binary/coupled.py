"""Noise with any couplings that the user chooses, drawn exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.matrices.binary.families import couplings_for
from tulle.matrices.binary.outcome import (
    XorMechanism,
    XorSettings,
    common_settings,
    shape_of,
    xor_query,
)
from tulle.matrices.binary.queries import Xor
from tulle.noise import SeededSource
from tulle.noise.charge import Draw, PatternCharge, charge
from tulle.noise.xor.general import Couplings

_TRIAL_CELLS = 100_000
"""About so many cells are drawn from a fixed seed to predict how many flip; no data is used."""


@dataclass(frozen=True, eq=False)
class CoupledSettings(XorSettings):
    """The public settings of one run: how couplings are scaled, and how they are drawn from."""

    lines: str
    scale: Fraction
    price: str
    method: str
    blocks: int
    flips: tuple[float, ...] | None
    """How often each place is flipped: known only when all patterns are listed; else ``flip`` is
    measured on trial draws."""


@registry.mechanism("matrix", "coupled", answers=(Xor,))
class CoupledNoise(XorMechanism):
    """Draw the noise b with weight exp(b'Πb), Π scaled to use up epsilon.

    Guarantee:
        Pure epsilon per cell or row. The price is the largest |b'Πb - c'Πc| over patterns b and c
        that differ within one unit, and Π is multiplied by epsilon / price. The price of a cell
        is exact: |Π_pp + 2·(sum of the positive, or of the negative, Π_pq)|. That of a row is
        exact up to twenty coupled cells, by listing all patterns, and beyond for rows of up to
        nine, or whose cells are coupled with few others, or all alike; else it is a bound by a
        minimum cut, exact where it is reached (:mod:`tulle.noise.xor.prices`). All of it in whole
        numbers.

        A draw is exact: all patterns are listed, or coupling from the past is run to its end.

    Error:
        The share of wrong cells is at least that of ``optimal``, whatever Π. What Π decides is
        which cells are wrong: those with larger entries on its diagonal less often, and together.

    Raises:
        InputError: for more than twenty coupled cells when an entry off the diagonal is negative,
            or when couplings are so strong that an exact draw could take very long.

    Reference:
        Ji et al., An XOR Mechanism, PVLDB 14(5), 2021, definition 5, with a correct price in
        place of theorem 1; Propp & Wilson 1996.

    Example:
        >>> import tulle
        >>> matrix = tulle.BinaryMatrix([[0, 1], [1, 1], [0, 0]])
        >>> query = tulle.xor("general", pi=[[-2, 1], [1, -2]])
        >>> tulle.release(matrix, query, unit="row", epsilon=1.0).parameters["price"]
        'exact'
    """

    title: ClassVar[str] = "noise with chosen couplings"
    reference: ClassVar[str] = "Ji et al., PVLDB 2021"

    def fits(self, query: Xor, unit: str) -> bool:
        return query.family == "general" and unit in ("row", "cell")

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        rows, columns = shape_of(terms)
        query = xor_query(terms)
        couplings, by_row = couplings_for(terms, query.entries, query.size or 0)
        if terms.unit.name == "cell":
            price, exact = couplings.price_of_bit(), True
        else:
            price, exact = couplings.price_of_line(columns)
        scale = terms.epsilon / price
        method = couplings.method(scale)
        blocks = rows if by_row else 1
        rates = _flips(couplings, scale)
        return CoupledSettings(
            **common_settings(terms, float(np.mean(rates))),
            lines="rows" if by_row else "matrix",
            scale=scale,
            price="exact" if exact else "safe bound",
            method=method,
            blocks=blocks,
            flips=tuple(rates.tolist()) if method == "enumeration" else None,
        )

    def noise(
        self, terms: Terms, settings: Parameters, source: Source | None
    ) -> npt.NDArray[np.uint8]:
        query, chosen = xor_query(terms), CoupledSettings.read(settings)
        couplings, _ = couplings_for(terms, query.entries, query.size or 0)

        def price(draw: Draw) -> Fraction:
            drawn_from: Couplings = draw.parameters["law"]
            if terms.unit.name == "cell":
                return drawn_from.price_of_bit() * draw.exact("scale")
            return drawn_from.price_of_line(shape_of(terms)[1])[0] * draw.exact("scale")

        with charge(PatternCharge(price)):
            drawn = couplings.draw(chosen.scale, chosen.blocks, source)
        return np.ascontiguousarray(drawn.reshape(shape_of(terms)))


@lru_cache(maxsize=16)
def _flips(couplings: Couplings, scale: Fraction) -> npt.NDArray[np.float64]:
    """Return how often each place is flipped: computed, or measured on noise from a fixed seed."""
    if couplings.method(scale) == "enumeration":
        return couplings.marginals(scale)
    trials = max(1, _TRIAL_CELLS // couplings.size)
    drawn = couplings.draw(scale, trials, SeededSource(1))
    return np.full(couplings.size, float(drawn.mean()))
