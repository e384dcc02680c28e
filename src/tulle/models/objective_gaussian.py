"""Objective perturbation with Gaussian noise: epsilon and delta."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.errors import QueryError
from tulle.core.events import Approximate, Composed, Event
from tulle.core.gaussian import continuous_delta
from tulle.core.guarantee import largest_rho
from tulle.core.mechanism import Terms
from tulle.core.source import Source
from tulle.models.design import Frame
from tulle.models.objective import STEPS, TUNING, Objective, persons
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
        (2·b·g + |g|²) / (2s²), where g = u·a with |u| < 1 is the one person's gradient, or
        g = u·a - u'·a' for a change, with u and u' that depend on w. It is convex in u and u', so
        at most that of the worst of g = ±a, or ±a ± a', whatever w is; and delta is at most the
        sum over these of what Gaussian noise has for a fixed move g (Balle & Wang 2018). Moves
        are at most sqrt(R) long, R for a row's largest |a|²; of a + a' and a - a' one is at most
        2·sqrt(R) and the other sqrt(2·R) long, since their squares add up to at most 4R
        (:func:`tilt_delta`). *Volume*: ln(1 + R/(4L)).
        *Output*: Gaussian noise on a lattice, by rho. The discrete Gaussian b is within
        p·(K²/8·4^-45 + 4·e^(-K²/2)), K = 12, of a rounded continuous one in total variation; that,
        times 1 + e^epsilon, must fit into a thirty-second of delta. See :class:`Objective`.

    Error:
        Per coefficient about 2·sqrt(2·R·ln(2/delta)) / (epsilon·n·curvature) for a change, half of
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

    def scale(self, frame: Frame, epsilon: Fraction, delta: Fraction) -> Fraction:
        longest = frame.length_squared + frame.intercept
        ratio = least_ratio(persons(frame), epsilon, delta)
        return Fraction(ratio * math.sqrt(float(longest))) * (1 + Fraction(1, 2**30))

    def check(self, terms: Terms, frame: Frame) -> None:
        if self.rounding(terms, frame) > terms.delta * TUNING.output:
            raise QueryError(
                "delta is too small, or epsilon too large, for Gaussian noise on a lattice; "
                "mechanism='objective_laplace' needs no delta."
            )

    def output_scale(
        self, frame: Frame, apart: Fraction, epsilon: Fraction, delta: Fraction
    ) -> Fraction:
        # rho = apart²/(2·s²).
        rho = largest_rho(epsilon, delta)
        return apart * Fraction(math.sqrt(1 / (2 * float(rho)))) * (1 + Fraction(1, 2**30))

    def draw(self, scale: Fraction, count: int, source: Source | None) -> npt.NDArray[np.int64]:
        return discrete_gaussian(sigma=scale, size=count, source=source)

    def draw_output(
        self, scale: Fraction, count: int, source: Source | None
    ) -> npt.NDArray[np.int64]:
        return discrete_gaussian(sigma=scale, size=count, source=source)

    def charge_tilt(self, terms: Terms, frame: Frame, step: Fraction) -> Charge:
        def priced(draws: Sequence[Draw]) -> Event:
            (draw,) = draws
            deviation = math.sqrt(draw.exact("variance")) * float(step)
            delta = terms.delta * (1 - 2 * TUNING.output)
            ratio = deviation / math.sqrt(frame.length_squared + frame.intercept)
            epsilon = tilt_epsilon(persons(frame), ratio, delta)
            rounded = Approximate(Fraction(0), Fraction(self.rounding(terms, frame)))
            return Composed((Approximate(Fraction(epsilon), delta), rounded))

        return PricedCharge(priced, ("gaussian",))

    def charge_output(self, terms: Terms, frame: Frame, apart: Fraction) -> Charge:
        return GaussianCharge(apart**2, delta=TUNING.output * terms.delta)

    def rounding(self, terms: Terms, frame: Frame) -> float:
        """Return what drawing whole steps in place of continuous noise adds to delta."""
        variation = frame.size * (18 * 4.0 ** -(STEPS - 1) + 4 * math.exp(-72))
        return (1 + math.exp(min(float(terms.epsilon), 700.0))) * variation


def tilt_delta(people: int, ratio: float, epsilon: float) -> Decimal:
    """Return the delta of a tilt of so many sqrt(R), for one person or for a change of one.

    Example:
        >>> tilt_delta(1, 4.0, 1.0) < tilt_delta(2, 8.0, 1.0) < 2 * tilt_delta(1, 4.0, 1.0)
        True
    """
    moves = (1,) if people == 1 else (4, 2)
    with localcontext() as context:
        context.prec = 60
        squared = Decimal(ratio) ** 2
        found = sum((continuous_delta(m / squared, Decimal(epsilon)) for m in moves), Decimal(0))
        return 2 * found


@lru_cache(maxsize=64)
def least_ratio(people: int, epsilon: Fraction, delta: Fraction) -> float:
    """Return the least deviation of the tilt, in sqrt(R), that this budget needs; rounded up."""
    # Where Gaussian tails alone make up delta: with x = s/sqrt(R), x·epsilon/people - people/(2x)
    # reaches their quantile.
    tail = float(delta) / (2 * people)
    reach = -NormalDist().inv_cdf(tail) if tail > 1e-300 else 40.0
    slope = float(epsilon) / people
    most = (reach + math.sqrt(reach**2 + 2 * people * slope)) / (2 * slope)
    wanted = Decimal(float(delta) * (1 - 2.0**-50))
    return _least(most, lambda ratio: tilt_delta(people, ratio, float(epsilon)) <= wanted)


def tilt_epsilon(people: int, ratio: float, delta: Fraction) -> float:
    """Return the epsilon of a tilt of this deviation, rounded up."""
    reach = -NormalDist().inv_cdf(float(delta) / (2 * people))
    most = people * (reach + people / (2 * ratio)) / ratio
    wanted = Decimal(float(delta))
    return _least(most, lambda epsilon: tilt_delta(people, ratio, epsilon) <= wanted)


def _least(most: float, enough: Callable[[float], bool]) -> float:
    """Return nearly the least number that is enough; ``most`` is, by the tails alone."""
    low, high = 0.0, most
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
