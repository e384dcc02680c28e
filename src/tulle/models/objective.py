"""Objective perturbation for logistic models, with a minimum that is found only nearly."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import validate
from tulle.core.arrays import Floats, Wholes
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError, QueryError
from tulle.core.events import Pure
from tulle.core.guarantee import display
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.core.validate import counted, round_up, short_up
from tulle.models.data import Table
from tulle.models.design import MOST_BITS, Frame, whole_rows
from tulle.models.fitting import fit_scaled_logistic, in_own_units, minimise_logistic
from tulle.models.interval import (
    MinimumLaw,
    least_curvature,
    noise_reach,
    output_deviation,
    reach_moved,
    tilt_deviation,
)
from tulle.models.model import describe
from tulle.models.moments import frame_for, predicted, typical_moments
from tulle.models.queries import Logistic, Regression
from tulle.noise import discrete_laplace
from tulle.noise.charge import Charge, LaplaceCharge, charge
from tulle.noise.tables import check_scale
from tulle.noise.watch import spend

STEPS = 46
"""The noise has about two to this power of steps."""
_CURVATURE = 10
"""What is bought of the curvature is released in steps of two to minus this power."""


@dataclass(frozen=True)
class Tuning:
    """What epsilon is divided into. No data chose any of it."""

    output: Fraction = Fraction(1, 32)
    """The share of epsilon (and delta) for the gap between the minimum and what was found. What it
    has to hide is as small as one likes to compute, so it is small; the tilt's noise grows by a
    thirty-first."""
    shares: tuple[Fraction, ...] = tuple(Fraction(percent, 100) for percent in (2, 5, 10, 20, 35))
    """Shares of epsilon for the change of volume, of which the best is taken by public facts."""
    least_penalty: float = 2.0**-10
    """The least penalty, relative to the squared length of a row: of no weight beside the
    curvature of a row, and enough for the minimum to be certified."""


TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class ObjectiveSettings(Settings):
    """The public settings of one run."""

    bits: int
    volume_share: Fraction
    penalty: Fraction
    scale: Fraction
    """Of the noise on the slope, drawn in steps of two to the exponent."""
    exponent: int
    tolerance: Fraction
    """How long the gradient may be at the minimum that is found."""
    output_scale: Fraction
    output_exponent: int
    curvature_scale: Fraction | None = None
    """Of the noise on the least curvature, where that is bought."""
    named: tuple[int, ...] = ()
    """Coefficients for which it is bought how far noise moves them, instead."""


class Objective(Mechanism):
    """Tilt the logistic loss at random, minimise it, and hide the minimiser's last digits.

    J(w) = sum of losses + L·|w|²/2 + b·w. With b continuous, the minimum w* of J has the density
    f(b(w))·det(H(w) + L), where b(w) = -gradient and H is the curvature of the losses. One person
    moves the gradient by at most D and multiplies the determinant by at most 1 + R/(4L), where
    |a|² <= R for every row a and 1/4 bounds the logistic curvature.

    Two things keep the proof from floating point. The minimiser found, w, is certified to have a
    gradient of at most t, hence |w - w*| <= t/L, and the noise b is a whole number of steps, which
    stands for any continuous b that rounds to it: t grows by half a step. Given w* the two
    neighbours' w are thus at most 2t/L apart, and noise of that scale is added to w, on a lattice,
    at a small share of the budget (Iyengar et al. 2019).
    """

    kind: ClassVar[str] = "table"
    noise: ClassVar[str]
    shares: ClassVar[tuple[Fraction, ...]] = TUNING.shares
    options: ClassVar[tuple[str, ...]] = ("gap", "curvature", "coefficients")

    def supports(self, query: Query, unit: Unit) -> bool:
        # All features get the same noise: a gamma below one would be a promise not kept.
        return (
            isinstance(query, Logistic)
            and unit.name in ("participant", "row")
            and not (query.sensitive and query.ratio != 1)
        )

    @abstractmethod
    def scale(self, frame: Frame, epsilon: Fraction, delta: Fraction) -> Fraction:
        """Return the scale (Gaussian: standard deviation) of b that this budget needs."""

    @abstractmethod
    def output_scale(
        self, frame: Frame, apart: Fraction, epsilon: Fraction, delta: Fraction
    ) -> Fraction:
        """Return the same for noise on minimisers that are so far apart."""

    @abstractmethod
    def draw(self, scale: Fraction, count: int, source: Source | None) -> Wholes:
        """Draw b, in steps: continuous noise, rounded."""

    @abstractmethod
    def draw_output(self, scale: Fraction, count: int, source: Source | None) -> Wholes:
        """Draw the noise on the minimiser, in steps."""

    @abstractmethod
    def charge_tilt(self, terms: Terms, frame: Frame, step: Fraction) -> Charge:
        """Return what noise on the slope, drawn in such steps, is charged for."""

    @abstractmethod
    def charge_output(self, terms: Terms, frame: Frame, apart: Fraction) -> Charge:
        """Return what noise on minimisers that are so many steps apart is charged for."""

    def reach(self, count: int) -> int:
        """Return how many times its scale a number in b is at most, but once in 2^90."""
        return 64

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        assert isinstance(terms.query, Regression)
        frame = frame_for(terms)
        gap = validate.positive(gap=options.get("gap", default_gap(frame)))
        if not Fraction(1, 2**20) <= gap <= 1:
            raise InputError(f"gap must lie between 2**-20 and 1; got {options['gap']!r}.")
        curvature = validate.share(or_none=True, curvature=options.get("curvature", 0))
        if curvature > Fraction(1, 2):
            raise InputError(f"curvature must be at most 1/2; got {options['curvature']!r}.")
        paid = replace(terms, epsilon=terms.epsilon * (1 - curvature))
        self.check(paid, frame)
        made = [self._settings(paid, frame, gap, share) for share in self.shares]
        if typical_moments(frame, None) is None:
            best = made[len(made) // 2]
        else:
            best = min(made, key=lambda found: self.predict(paid, found, None).rank())
        named = places_of(frame, options.get("coefficients", ()))
        if not curvature:
            if named:
                raise InputError("coefficients= needs curvature=, the share of epsilon for them.")
            return best
        best = replace(best, named=named)
        scale = short_up(bought_moved(frame, best) / (terms.epsilon * curvature))
        check_scale(scale)  # before the price
        return replace(best, curvature_scale=scale)

    def split(self, terms: Terms, frame: Frame, share: Fraction) -> tuple[Fraction, Fraction]:
        """Return the penalty that this share of epsilon buys, and what is left for the tilt."""
        longest = frame.length_squared + frame.intercept
        # 1 + R/(4L) <= exp(volume) once L >= R/(4·(e^volume - 1)). A larger L only helps privacy,
        # and one near zero would let the minimiser's last digits reach far.
        volume = min(float(share * terms.epsilon), 40.0)
        needed = float(longest) / 4 / math.expm1(volume) * (1 + 2.0**-30)
        penalty = Fraction(max(needed, float(longest) * TUNING.least_penalty))
        return penalty, terms.epsilon * (1 - share - TUNING.output)

    def volume(self, frame: Frame, chosen: ObjectiveSettings) -> Fraction:
        """Return what the change of volume costs on top of the tilt, rounded up."""
        return volume(frame, chosen.penalty)

    def check(self, terms: Terms, frame: Frame) -> None:
        """Refuse budgets for which the noise cannot be drawn."""
        return

    def _settings(
        self, terms: Terms, frame: Frame, gap: Fraction, share: Fraction
    ) -> ObjectiveSettings:
        assert isinstance(terms.query, Regression)
        longest = frame.length_squared + frame.intercept
        penalty, left = self.split(terms, frame, share)
        scale = short_up(self.scale(frame, left, terms.delta * (1 - 2 * TUNING.output)))
        exponent = math.frexp(float(scale))[1] - STEPS
        step = Fraction(2) ** exponent
        tolerance = gap * Fraction(round_up(Fraction(math.sqrt(float(longest)))))
        # A float keeps 52 bits of the tilt.
        if 8 * self.reach(frame.size) * frame.size * scale / 2**52 > tolerance / 4:
            raise QueryError(
                f"epsilon = {display(terms.epsilon)} is too small for "
                f"{counted(frame.size, 'coefficient')}: the noise would be so large that no "
                "minimum could be certified in floating point. "
                "Spend more, or use mechanism='functional'."
            )
        root = _root(frame)
        apart = 2 * (tolerance + root * step / 2) / penalty
        output = self.output_scale(
            frame, apart, TUNING.output * terms.epsilon, TUNING.output * terms.delta
        )
        fine = math.frexp(float(output))[1] - 12
        # Snapping moves the found minimum by half a step in each coordinate.
        snapped = self.output_scale(
            frame,
            apart + root * Fraction(2) ** fine,
            TUNING.output * terms.epsilon,
            TUNING.output * terms.delta,
        )
        return ObjectiveSettings(
            MOST_BITS if terms.query.bits is None else terms.query.bits,
            volume_share=share,
            penalty=penalty,
            scale=scale,
            exponent=exponent,
            tolerance=tolerance,
            output_scale=short_up(snapped),
            output_exponent=fine,
        )

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Table)
        frame, chosen = frame_for(terms), ObjectiveSettings.read(settings)
        features, target = whole_rows(frame, dataset, chosen.bits)
        features /= float(1 << chosen.bits)
        exponent = chosen.exponent
        with charge(self.charge_tilt(terms, frame, Fraction(2) ** exponent)):
            drawn = self.draw(chosen.scale / Fraction(2) ** exponent, frame.size, source)
        spend(Pure(self.volume(frame, chosen)))
        tilt = np.ldexp(drawn.astype(np.float64), exponent)
        found = near_minimum(
            features,
            target > 0,
            tilt,
            float(chosen.penalty),
            float(chosen.tolerance),
        )
        fine = chosen.output_exponent
        with np.errstate(over="ignore"):
            steps = np.rint(np.clip(np.ldexp(found, -fine), -(2.0**62), 2.0**62)).astype(np.int64)
        hidden = chosen.output_scale / Fraction(2) ** fine
        apart = _apart(frame, chosen) + _root(frame) * Fraction(2) ** fine
        with charge(self.charge_output(terms, frame, apart / Fraction(2) ** fine)):
            steps += self.draw_output(hidden, frame.size, source)
        scaled = np.ldexp(steps.astype(np.float64), fine)
        shown = {"model": describe(frame, terms.facts), "lattice": fine}
        curvature = 0.0
        if chosen.curvature_scale is not None:
            curvature = buy(frame, chosen, features, scaled, source)
            shown["curvature"] = curvature
        law = self.law(frame, chosen, curvature)
        return Outcome(in_own_units(frame, scaled), law, shown)

    def law(self, frame: Frame, chosen: ObjectiveSettings, curvature: float) -> MinimumLaw:
        """Return how far coefficients are from the minimum without noise."""
        transform = np.abs(frame.transform())
        scale = float(chosen.curvature_scale or 0)
        return MinimumLaw(
            self.noise,
            float(chosen.scale),
            float(chosen.output_scale),
            float(chosen.penalty),
            float(chosen.tolerance),
            math.sqrt(frame.length_squared + frame.intercept),
            tuple(np.linalg.norm(transform, axis=1).tolist()),
            tuple(transform.sum(axis=1).tolist()),
            curvature,
            math.ldexp(scale, -_CURVATURE),
            chosen.named,
        )

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        frame = frame_for(terms)
        if isinstance(like, Table):
            at, curvature = fit_scaled_logistic(frame, like)
        else:
            found = typical_moments(frame, like)
            if found is None:
                return Prediction(None, None)
            # Near zero the curvature is a quarter of the sums of products; twice the least squares.
            at, curvature = 2 * found[1], found[0] / 4
        chosen = ObjectiveSettings.read(settings)
        penalty = float(chosen.penalty)
        variance = tilt_deviation(self.noise, float(chosen.scale), frame.size) ** 2
        output = output_deviation(self.noise, float(chosen.output_scale)) ** 2
        curvature = curvature + penalty * np.eye(frame.size)
        # Noise on the minimiser is as noise on the slope, seen through the curvature.
        covariance = variance * np.eye(frame.size) + output * curvature @ curvature
        inverse: Floats = np.linalg.inv(curvature).astype(np.float64)
        return predicted(frame, inverse, covariance, penalty * at, 1.0, self)


def buy(
    frame: Frame, chosen: ObjectiveSettings, features: Floats, at: Floats, source: Source | None
) -> float:
    """Return a noisy least curvature at the released coefficients, or the log of a noise reach."""
    assert chosen.curvature_scale is not None
    if chosen.named:
        places = [place - 1 + frame.intercept for place in chosen.named]
        found = math.log(noise_reach(features, at, float(chosen.penalty), places))
    else:
        found = least_curvature(features, at)
    # Rounding in floats is far below a step.
    steps = math.floor(min(math.ldexp(found, _CURVATURE), 2.0**60))
    with charge(LaplaceCharge(bought_moved(frame, chosen))):
        noise = discrete_laplace(scale=chosen.curvature_scale, size=1, source=source)
    return math.ldexp(float(steps + int(noise[0])), -_CURVATURE)


def bought_moved(frame: Frame, chosen: ObjectiveSettings) -> Fraction:
    """Return how far one person moves what is bought, in steps, its rounding included."""
    most = Fraction(frame.length_squared + frame.intercept) / 4
    if chosen.named:
        most = reach_moved(most / chosen.penalty, changed=frame.unit == "row")
    return most * (1 << _CURVATURE) + 2


def places_of(frame: Frame, names: Any) -> tuple[int, ...]:
    """Return the places of named features among the coefficients, of which the first is constant.

    Raises:
        InputError: when a name is not one of the model's features.
    """
    listed = [names] if isinstance(names, str) or not isinstance(names, Iterable) else [*names]
    unknown = [name for name in listed if name not in frame.features]
    if unknown:
        raise InputError(
            f"coefficients must be features of the model, which {unknown[0]!r} is not: "
            f"{', '.join(frame.features)}."
        )
    return tuple(sorted({frame.features.index(name) + 1 for name in listed}))


def near_minimum(
    features: Floats,
    positive: npt.NDArray[np.bool_],
    tilt: Floats,
    penalty: float,
    tolerance: float,
) -> Floats:
    """Return a point where the true gradient is certified to be at most ``tolerance`` long.

    The gradient is computed again in pairwise sums, and what rounding can have changed is added:
    each loss's slope is off by at most the rounding of its odds, each sum by 64 roundings.
    """
    from scipy.special import expit

    aim = tolerance / 4
    found = np.zeros(features.shape[1])
    for _ in range(8):
        found = minimise_logistic(features, positive, tilt, penalty, aim)
        slopes = expit(features @ found) - positive
        columns = [
            float(np.sum(np.ascontiguousarray(features[:, j]) * slopes)) for j in range(len(found))
        ]
        gradient = np.array(columns) + penalty * found + tilt
        size = float(np.abs(found).sum())
        rounding = 2.0**-52 * (
            len(slopes) * math.sqrt(len(found)) * (64 + len(found) * size)
            + 4 * penalty * size
            + 4 * float(np.abs(tilt).sum())
        )
        if float(np.linalg.norm(gradient)) + rounding <= tolerance:
            return found
        aim /= 4
    # Strictly convex, and by the check of settings far from the limits of floating point: this is
    # not reached. Were it, no uncertified number would leave: this is the minimum without anybody.
    return np.asarray(-tilt / penalty)


def volume(frame: Frame, penalty: Fraction) -> Fraction:
    """Return ln(1 + R/(4L)): what one person changes the determinant by, rounded up."""
    longest = frame.length_squared + frame.intercept
    with localcontext() as context:
        context.prec = 40
        ratio = 1 + longest / (4 * penalty)
        found = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
    return Fraction(found) * (1 + Fraction(1, 10**35))


def _root(frame: Frame) -> Fraction:
    return Fraction(math.sqrt(frame.size)) * (1 + Fraction(1, 2**40))


def _apart(frame: Frame, chosen: ObjectiveSettings) -> Fraction:
    """Return how far the minimisers that two neighbours find may be apart."""
    step = Fraction(2) ** chosen.exponent
    gradient = chosen.tolerance + _root(frame) * step / 2
    return 2 * gradient / chosen.penalty


def default_gap(frame: Frame) -> Fraction:
    """Return how near a minimum must be, relative to a row's length: above what rounding does."""
    return min(max(Fraction(1, 2**16), Fraction(frame.size**1.5) / 2**22), Fraction(1))


def row_length(frame: Frame) -> Fraction:
    """Return the largest sum of absolute values of a row, the intercept included."""
    box = Fraction(frame.count)
    root = Fraction(math.sqrt(frame.count * float(frame.length_squared)))
    return min(box, root * (1 + Fraction(1, 2**40))) + frame.intercept


def row_entry(frame: Frame) -> Fraction:
    """Return the largest absolute value in a row, the intercept included."""
    if frame.intercept or frame.length_squared >= 1:
        return Fraction(1)
    return Fraction(math.sqrt(frame.length_squared)) * (1 + Fraction(1, 2**40))


def persons(frame: Frame) -> int:
    """Return how many people's gradients differ: one comes or goes, or one turns into another."""
    return 1 if frame.unit == "participant" else 2
