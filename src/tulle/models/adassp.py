"""Gaussian noise on sums of products, with a penalty that adapts to the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.events import Event, Gaussian
from tulle.core.gaussian import largest_rho_where
from tulle.core.guarantee import largest_rho
from tulle.core.mechanism import Parameters, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.core.validate import short_up
from tulle.models.design import Frame
from tulle.models.moments import (
    MomentMechanism,
    MomentSettings,
    Places,
    Scales,
    choose_bits,
    frame_for,
)
from tulle.models.queries import Linear, Logistic, Regression
from tulle.noise import discrete_gaussian

_LARGEST_DEVIATION = 2**44


@dataclass(frozen=True, eq=False)
class AdasspSettings(MomentSettings):
    """The public settings of one run; variances are in steps of the sums."""

    rho: Fraction
    matrix_variance: Fraction
    vector_variance: Fraction


@registry.mechanism("table", "adassp", answers=(Linear, Logistic), units=("participant", "row"))
class AdaSSP(MomentMechanism):
    """Add Gaussian noise to the sufficient statistics of least squares, then solve.

    The adaptive penalty takes the least eigenvalue of the *released* matrix, which costs nothing,
    where the paper spends a third of the budget on it. For a logistic model the statistics are
    those of its second-order loss.

    Guarantee:
        (epsilon, delta) per row or per participant. Rows are whole numbers of steps with
        |a|² <= R = r² + 1, the intercept included. One person more or less moves the matrix by
        aa', of Frobenius norm at most R, and the vector by y·a; one person's change moves them by
        at most sqrt(2)·R and 2·sqrt(R). Entries off the diagonal, which stand for two, get half
        the variance, so that sum change²/variance = |change|_F²/variance of the diagonal. Discrete
        Gaussian noise is rho-zero-concentrated for rho = sum change²/(2·variance) (Canonne, Kamath
        & Steinke 2020), exactly accounted, and rho implies (epsilon, delta)
        (:mod:`tulle.core.gaussian`).

    Error:
        In proportion to R·sqrt(log(1/delta)) / (n·epsilon), where R <= d + 1. The interval of a
        linear model is through the released matrix; of a logistic one :func:`noise_interval` is
        about the noise alone.

    Reference:
        Wang, Revisiting differentially private linear regression, UAI 2018.

    Example:
        >>> import tulle
        >>> people = tulle.models.Table(
        ...     {"age": [30, 40, 50], "pay": [2, 3, 4]}, bounds={"age": (18, 70), "pay": (0, 9)})
        >>> r = tulle.release(people, tulle.models.linear("pay"), unit="participant",
        ...                   epsilon=1.0, delta=1e-6, mechanism="adassp")
        >>> print(r.guarantee)
        epsilon = 1, delta = 1e-06, per participant (add-remove)
    """

    title: ClassVar[str] = "Gaussian noise on sufficient statistics"
    reference: ClassVar[str] = "Wang, UAI 2018"
    needs_delta: ClassVar[bool] = True
    concentrated: ClassVar[bool] = True
    noise: ClassVar[str] = "gaussian"

    def supports(self, query: Query, unit: Unit) -> bool:
        # All features get the same noise: a gamma below one would be a promise not kept.
        return super().supports(query, unit) and not (
            isinstance(query, Regression) and query.sensitive and query.ratio != 1
        )

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        assert isinstance(terms.query, Regression)
        frame = frame_for(terms)
        rho, moves = largest_rho(terms.epsilon, terms.delta), squared_moves(frame)
        # Half of rho for either: rho/2 = move²/(2·variance).
        fine = choose_bits(terms.query, _root_up(max(moves) / rho), _LARGEST_DEVIATION)
        if not terms.composed:
            moved, least = int(sum(moves) * 16**fine), min(moves[0] / 2, moves[1]) * 16**fine
            rho = largest_rho_where(
                terms.epsilon, terms.delta, lambda rho: ((rho, Fraction(moved), least / rho),)
            )
        matrix, vector = (moved / rho for moved in moves)
        return AdasspSettings(fine, rho, short_up(matrix * 16**fine), short_up(vector * 16**fine))

    def event(self, terms: Terms, settings: Parameters) -> Event:
        chosen = AdasspSettings.read(settings)
        moved = int(sum(squared_moves(frame_for(terms))) * 16**chosen.bits)
        least = min(chosen.matrix_variance / 2, chosen.vector_variance)
        return Gaussian(chosen.rho, Fraction(moved), least)

    def scales(self, terms: Terms, settings: Parameters) -> Scales:
        chosen = AdasspSettings.read(settings)
        matrix, vector = chosen.matrix_variance, chosen.vector_variance
        places = Places.of(frame_for(terms))
        kinds = np.where(places.first == places.second, 0, 1)
        kinds = np.concatenate((kinds, np.full(places.targets, 2)))
        return Scales((matrix, matrix / 2, vector), kinds)

    def draw(self, scale: Fraction, count: int, source: Source | None) -> npt.NDArray[np.int64]:
        return discrete_gaussian(variance=scale, size=count, source=source)

    def worst(
        self, terms: Terms, settings: Parameters, kinds: Sequence[int], rates: Sequence[Fraction]
    ) -> Fraction:
        matrix, vector = squared_moves(frame_for(terms))
        known = dict(zip(kinds, rates, strict=True))
        # An entry off the diagonal stands for two.
        entries = max(known.get(0, Fraction(0)), known.get(1, Fraction(0)) / 2)
        steps: int = 16 ** MomentSettings.read(settings).bits
        return steps * (matrix * entries + vector * known.get(2, Fraction(0)))

    def variance(self, scale: Fraction, bits: int) -> float:
        return float(scale / 16**bits)


def squared_moves(frame: Frame) -> tuple[Fraction, Fraction]:
    """Return the most that one person moves the matrix and the vector, squared.

    For a change: |aa' - bb'|_F² = |a|⁴ + |b|⁴ - 2(a·b)², where with an intercept and short rows
    (r < 1) a·b >= 1 - r² > 0.
    """
    length = frame.length_squared + frame.intercept
    if frame.unit == "participant":
        return length**2, length
    common = max(frame.intercept - frame.length_squared, Fraction(0))
    return 2 * (length**2 - common**2), 4 * length


def _root_up(value: Fraction) -> Fraction:
    return Fraction(float(value) ** 0.5) * (1 + Fraction(1, 2**40))
