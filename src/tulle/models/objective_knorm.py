"""Objective perturbation with K-norm noise in L-infinity: pure epsilon, and less noise."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.mechanism import Terms
from tulle.core.source import Source
from tulle.models.design import Frame
from tulle.models.objective import (
    STEPS,
    TUNING,
    ObjectiveSettings,
    persons,
    row_entry,
)
from tulle.models.objective_laplace import ObjectiveLaplace
from tulle.models.queries import Logistic
from tulle.noise import discrete_knorm
from tulle.noise.charge import Charge, KNormCharge

_STEP = Fraction(1, 2 ** (STEPS - 1))
"""A step of the noise, relative to its scale, is at most this."""


@registry.mechanism("table", "objective_knorm", answers=(Logistic,), units=("participant", "row"))
class ObjectiveKNorm(ObjectiveLaplace):
    """Tilt the logistic loss by K-norm noise and minimise it.

    Guarantee:
        Pure epsilon per row or per participant. *Tilt*: a person's gradient is (chance - label)·a
        with u = |chance - label| < 1 and every entry of a in [-1, 1], so one person moves each
        number of b(w) by at most u, all at once: a bound in L-infinity, 2 for a change. b is a
        lattice point x, drawn with probability proportional to exp(-max |x_i| / s), plus anything
        that rounds to zero: where b moves by D, x moves by at most D plus a step. *Volume*: the
        curvature of the person's loss is chance·(1 - chance) = u·(1 - u), at the same w, so tilt
        and volume together cost one person at most u/s + ln(1 + u·(1 - u)·R/L). This is concave
        in u, and largest at u = 1, where the volume costs nothing, if its slope there, 1/s - R/L,
        is not negative: the penalty is L = R·s, and s = (D + step)/epsilon_1 pays for both. For a
        change only the person who is there enlarges the determinant; the other adds 1/s at most.
        *Output*: as for Laplace noise. See :class:`Objective`.

    Error:
        Per coefficient about 0.58·D·p / (epsilon·n·curvature) with p coefficients, where
        independent Laplace noise has 1.41·D·p; and a pull towards zero by the penalty. A plan on a
        public stand-in predicts both parts. The interval is about the minimum of the same loss and
        penalty without noise (:mod:`tulle.models.interval`). As it is, it holds for every
        curvature of the loss and is wide, whatever the number of people; with ``curvature=`` a
        share of epsilon buys a lower bound on the curvature, and it narrows as people come in. With
        ``coefficients=`` that share buys how far noise moves those that are named, and with a
        public stand-in it is known for all: :func:`tulle.models.noise_interval`.

    Reference:
        Hardt & Talwar, On the geometry of differential privacy, STOC 2010; in objective
        perturbation: Awan & Slavkovic, Structure and sensitivity in differential privacy, JASA
        2021. Minimum found nearly: Iyengar et al., S&P 2019.

    Example:
        >>> import tulle
        >>> people = tulle.models.Table({"age": [30, 60], "ill": ["no", "yes"]},
        ...     bounds={"age": (18, 70)}, classes={"ill": ["no", "yes"]})
        >>> r = tulle.release(people, tulle.models.logistic("ill"), unit="row", epsilon=1.0,
        ...                   mechanism="objective_knorm")
        >>> len(r.value)
        2
    """

    title: ClassVar[str] = "K-norm noise on the slope of the loss"
    reference: ClassVar[str] = "Hardt & Talwar, STOC 2010; Awan & Slavkovic, JASA 2021"
    noise: ClassVar[str] = "knorm"
    shares: ClassVar[tuple[Fraction, ...]] = (Fraction(0),)

    def scale(self, frame: Frame, epsilon: Fraction, delta: Fraction) -> Fraction:
        # s >= (D + step)/epsilon, where step <= _STEP·s. A budget near _STEP is refused anyway:
        # floats do not hold its noise.
        return persons(frame) * row_entry(frame) / (epsilon - min(_STEP, epsilon / 2))

    def split(self, terms: Terms, frame: Frame, share: Fraction) -> tuple[Fraction, Fraction]:
        left = terms.epsilon * (1 - TUNING.output)
        longest = frame.length_squared + frame.intercept
        # A little more than the argument needs: the scale of the noise is rounded up.
        needed = longest * persons(frame) / left * (1 + Fraction(1, 2**10))
        return max(needed, longest * Fraction(TUNING.least_penalty)), left

    def volume(self, frame: Frame, chosen: ObjectiveSettings) -> Fraction:
        longest = frame.length_squared + frame.intercept
        covered = longest / chosen.penalty <= row_entry(frame) / chosen.scale
        return Fraction(0) if covered else super().volume(frame, chosen)

    def draw(self, scale: Fraction, count: int, source: Source | None) -> npt.NDArray[np.int64]:
        return discrete_knorm(scale=scale, count=count, source=source)

    def charge_tilt(self, terms: Terms, frame: Frame, step: Fraction) -> Charge:
        return KNormCharge(persons(frame) * row_entry(frame) / step + 1)

    def reach(self, count: int) -> int:
        return 2 * count + 130
