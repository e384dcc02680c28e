"""Objective perturbation with Laplace noise: pure epsilon."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.mechanism import Terms
from tulle.core.source import Source
from tulle.models.design import Frame
from tulle.models.objective import Objective, persons, row_length
from tulle.models.queries import Logistic
from tulle.noise import discrete_laplace, rounded_laplace
from tulle.noise.charge import Charge, LaplaceCharge


@registry.mechanism("table", "objective_laplace", answers=(Logistic,), units=("participant", "row"))
class ObjectiveLaplace(Objective):
    """Tilt the logistic loss by Laplace noise and minimise it.

    Guarantee:
        Pure epsilon per row or per participant: the sum of three parts. *Tilt*: a person's
        gradient is (chance - label)·a with |chance - label| < 1, so one person moves b(w) by less
        than D = max |a|_1 in L1 (twice that for a change), and independent Laplace noise of scale
        D/epsilon_1 gives epsilon_1. *Volume*: ln(1 + R/(4L)); for a change, the people in common
        bound both determinants. *Output*: minimisers that differ by at most 2t/L in length differ
        by sqrt(p) times that in L1, and get Laplace noise on a lattice. See :class:`Objective`.

    Error:
        Per coefficient about sqrt(2)·D / (epsilon·n·curvature), and a pull towards zero by the
        penalty L, which is R / (4·(e^(share·epsilon) - 1)). A plan on a public stand-in predicts
        both parts, through the stand-in's curvature. Its interval is as that of
        ``objective_knorm``.

    Reference:
        Chaudhuri, Monteleoni & Sarwate, Differentially private empirical risk minimization, JMLR
        2011, with independent Laplace noise; minimum found nearly: Iyengar et al., S&P 2019.

    Example:
        >>> import tulle
        >>> people = tulle.models.Table({"age": [30, 60], "ill": ["no", "yes"]},
        ...     bounds={"age": (18, 70)}, classes={"ill": ["no", "yes"]})
        >>> r = tulle.release(people, tulle.models.logistic("ill"), unit="row", epsilon=1.0,
        ...                   mechanism="objective_laplace")
        >>> len(r.value)
        2
    """

    title: ClassVar[str] = "Laplace noise on the slope of the loss"
    reference: ClassVar[str] = "Chaudhuri et al., JMLR 2011; Iyengar et al., S&P 2019"
    noise: ClassVar[str] = "laplace"

    def scale(self, frame: Frame, epsilon: Fraction, delta: Fraction) -> Fraction:
        return persons(frame) * row_length(frame) / epsilon

    def output_scale(
        self, frame: Frame, apart: Fraction, epsilon: Fraction, delta: Fraction
    ) -> Fraction:
        root = Fraction(math.sqrt(frame.size)) * (1 + Fraction(1, 2**40))
        return root * apart / epsilon

    def draw(self, scale: Fraction, count: int, source: Source | None) -> npt.NDArray[np.int64]:
        return rounded_laplace(scale=scale, size=count, source=source)

    def draw_output(
        self, scale: Fraction, count: int, source: Source | None
    ) -> npt.NDArray[np.int64]:
        return discrete_laplace(scale=scale, size=count, source=source)

    def charge_tilt(self, terms: Terms, frame: Frame, step: Fraction) -> Charge:
        return LaplaceCharge(persons(frame) * row_length(frame) / step)

    def charge_output(self, terms: Terms, frame: Frame, apart: Fraction) -> Charge:
        root = Fraction(math.sqrt(frame.size)) * (1 + Fraction(1, 2**40))
        return LaplaceCharge(root * apart)
