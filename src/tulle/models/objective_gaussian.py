"""Objective perturbation with Gaussian noise: epsilon and delta."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.errors import QueryError
from tulle.core.events import Approximate, Composed, Event
from tulle.core.guarantee import largest_rho
from tulle.core.mechanism import Terms
from tulle.core.source import Source
from tulle.models.design import Frame
from tulle.models.objective import OUTPUT, STEPS, Objective, persons
from tulle.models.queries import Logistic
from tulle.noise import discrete_gaussian
from tulle.noise.charge import Charge, Draw, GaussianCharge, PricedCharge


@registry.mechanism(
    "table", "objective_gaussian", answers=(Logistic,), units=("participant", "row")
)
class ObjectiveGaussian(Objective):
    """Tilt the logistic loss by Gaussian noise and minimise it.

    Guarantee:
        (epsilon, delta) per row or per participant. *Tilt*: the log-ratio of the densities of b is
        (2·b·g + |g|²) / (2s²), where g = u·a with |u| < 1 is the one person's gradient. Whatever
        w is, |b·g| <= |b·a|, and b·a is Gaussian with deviation at most s·sqrt(R): the ratio stays
        below epsilon_1 but with probability 2·Q((epsilon_1 - R/2s²)·s/sqrt(R)). For a change
        g = u·a - u'·a', |g| <= 2·sqrt(R), and b·g is beyond a limit only if one of b·a, b·a' is
        beyond half of it: 4·Q((epsilon_1 - 2R/s²)·s/(2·sqrt(R))). *Volume*: ln(1 + R/(4L)).
        *Output*: Gaussian noise on a lattice, by rho. The discrete Gaussian b is within
        p·(K²/8·4^-45 + 4·e^(-K²/2)), K = 12, of a rounded continuous one in total variation; that,
        times 1 + e^epsilon, must fit into a thirty-second of delta. See :class:`Objective`.

    Error:
        Per coefficient about 2·sqrt(2·R·ln(4/delta)) / (epsilon·n·curvature) for a change, half of
        that for coming or going, and a pull towards zero by the penalty. A plan on a public
        stand-in predicts both parts. Its interval is as that of ``objective_knorm``.

    Reference:
        Kifer, Smith & Thakurta, Private convex empirical risk minimization, COLT 2012; Iyengar et
        al., Towards practical differentially private convex optimization, S&P 2019; the bound for
        generalised linear models as in Redberg, Koskela & Wang, 2023.

    Example:
        >>> import tulle
        >>> people = tulle.models.Table({"age": [30, 60], "ill": ["no", "yes"]},
        ...     bounds={"age": (18, 70)}, classes={"ill": ["no", "yes"]})
        >>> r = tulle.release(people, tulle.models.logistic("ill"), unit="row", epsilon=1.0,
        ...                   delta=1e-6, mechanism="objective_gaussian")
        >>> print(r.guarantee)
        epsilon = 1, delta = 1e-06, per row (replace)
    """

    title: ClassVar[str] = "Gaussian noise on the slope of the loss"
    reference: ClassVar[str] = "Kifer et al., COLT 2012; Iyengar et al., S&P 2019"
    needs_delta: ClassVar[bool] = True
    noise: ClassVar[str] = "gaussian"

    def spread(self, frame: Frame, epsilon: Fraction, delta: Fraction) -> Fraction:
        longest = frame.length_squared + frame.intercept
        people = persons(frame)
        # With x = s/sqrt(R): x·epsilon/people - people/(2x) must reach the quantile.
        tail = float(delta) / (2 * people)
        reach = -NormalDist().inv_cdf(tail) if tail > 1e-300 else 40.0
        slope = float(epsilon) / people
        ratio = (reach + math.sqrt(reach**2 + 2 * people * slope)) / (2 * slope)
        return Fraction(ratio * math.sqrt(float(longest))) * (1 + Fraction(1, 2**30))

    def check(self, terms: Terms, frame: Frame) -> None:
        if self.rounding(terms, frame) > terms.delta * OUTPUT:
            raise QueryError(
                "delta is too small, or epsilon too large, for Gaussian noise on a lattice; "
                "mechanism='objective_laplace' needs no delta."
            )

    def output_spread(
        self, frame: Frame, apart: Fraction, epsilon: Fraction, delta: Fraction
    ) -> Fraction:
        # rho = apart²/(2·s²).
        rho = largest_rho(epsilon, delta)
        return apart * Fraction(math.sqrt(1 / (2 * float(rho)))) * (1 + Fraction(1, 2**30))

    def draw(self, spread: Fraction, count: int, source: Source | None) -> npt.NDArray[np.int64]:
        return discrete_gaussian(sigma=spread, size=count, source=source)

    def draw_output(
        self, spread: Fraction, count: int, source: Source | None
    ) -> npt.NDArray[np.int64]:
        return discrete_gaussian(sigma=spread, size=count, source=source)

    def charge_tilt(self, terms: Terms, frame: Frame, step: Fraction) -> Charge:
        def priced(draws: Sequence[Draw]) -> Event:
            (draw,) = draws
            deviation = math.sqrt(draw.exact("variance")) * float(step)
            people, delta = persons(frame), terms.delta * (1 - 2 * OUTPUT)
            ratio = deviation / math.sqrt(frame.length_squared + frame.intercept)
            reach = -NormalDist().inv_cdf(float(delta) / (2 * people))
            epsilon = people * (reach + people / (2 * ratio)) / ratio
            rounded = Approximate(Fraction(0), Fraction(self.rounding(terms, frame)))
            return Composed((Approximate(Fraction(epsilon), delta), rounded))

        return PricedCharge(priced, ("gaussian",))

    def charge_output(self, terms: Terms, frame: Frame, apart: Fraction) -> Charge:
        return GaussianCharge(apart**2, delta=OUTPUT * terms.delta)

    def rounding(self, terms: Terms, frame: Frame) -> float:
        """Return what drawing whole steps in place of continuous noise adds to delta."""
        variation = frame.size * (18 * 4.0 ** -(STEPS - 1) + 4 * math.exp(-72))
        return (1 + math.exp(min(float(terms.epsilon), 700.0))) * variation
