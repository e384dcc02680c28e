"""What each draw is charged for: stated where it is drawn, checked while an audit watches.

A mechanism says beside each draw what one unit can move there. Nobody listens in ordinary use, and
saying it costs next to nothing. Under :func:`tulle.noise.watch.watch` every sampler reports the
parameters that it was really called with, a charge turns those and the stated sensitivity into an
event, and a draw outside of all charges is an error. So the price of a run is recomputed from what
was drawn, in whatever branch it took. Ordinary random numbers for post-processing
(:mod:`tulle.noise.post_processing`) are free, but a function that draws them may not hold a
dataset.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, ClassVar, NamedTuple

from tulle.core.errors import TulleError
from tulle.core.events import (
    Approximate,
    BoundedRange,
    Composed,
    Event,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    price,
)
from tulle.core.validate import Number, rational
from tulle.noise.source import charge as charge


class CostError(TulleError):
    """Something was drawn that no charge accounts for. Only audits see it."""


class Draw(NamedTuple):
    """One call of a sampler, with the parameters that it was called with."""

    kind: str
    parameters: dict[str, Any]

    def exact(self, name: str) -> Fraction:
        """Return a parameter as the exact number that it is."""
        return rational(self.parameters[name])


class Charge(ABC):
    """What a mechanism states about the draws that it makes under this charge."""

    kinds: ClassVar[tuple[str, ...]]
    """The samplers that may be called."""

    @abstractmethod
    def event(self, draws: Sequence[Draw]) -> Event:
        """Return what these draws cost, from the parameters that they were made with."""


def _alone(noise: Gaussian, delta: Fraction) -> tuple[Fraction, Fraction]:
    """Return the epsilon of Gaussian noise by itself at a delta, and that delta."""
    return price(noise, delta)[0], delta


def _only(draws: Sequence[Draw], calls: int, what: str) -> Sequence[Draw]:
    if len(draws) != calls:
        raise CostError(f"{what} accounts for {calls} draws; {len(draws)} were made.")
    return draws


@dataclass(frozen=True)
class LaplaceCharge(Charge):
    """Laplace noise on numbers that one unit moves by so much in L1, all of them together.

    ``calls`` is in how many calls the noise on these numbers is drawn.
    """

    sensitivity: Number
    calls: int = 1
    kinds: ClassVar[tuple[str, ...]] = ("laplace", "rounded laplace")

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return the sensitivity over the least scale."""
        scale = min(draw.exact("scale") for draw in _only(draws, self.calls, type(self).__name__))
        return Laplace(rational(self.sensitivity) / scale)


@dataclass(frozen=True)
class KNormCharge(Charge):
    """K-norm noise on numbers each of which one unit moves by so much, all at once (L-infinity)."""

    sensitivity: Number
    kinds: ClassVar[tuple[str, ...]] = ("knorm",)

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return the sensitivity over the scale."""
        (draw,) = _only(draws, 1, type(self).__name__)
        return Pure(rational(self.sensitivity) / draw.exact("scale"))


@dataclass(frozen=True)
class GaussianCharge(Charge):
    """Gaussian noise on numbers that one unit moves by so much in L2, squared.

    With a ``delta`` the noise is priced by itself at that delta, else together with other noise.
    """

    squared: Number
    delta: Fraction | None = None
    kinds: ClassVar[tuple[str, ...]] = ("gaussian",)

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return rho = squared sensitivity / (2·variance), and the variance."""
        (draw,) = _only(draws, 1, type(self).__name__)
        noise = Gaussian.of(rational(self.squared), draw.exact("variance"))
        return noise if self.delta is None else Approximate(*_alone(noise, self.delta))


@dataclass(frozen=True)
class WeightedCharge(Charge):
    """Noise of a scale of its own on each of several groups of numbers, one call for each.

    ``worst`` returns the most that the sum over groups of move·rate can be, where the move is L1
    (Laplace, rate 1/scale) or squared L2 (Gaussian, rate 1/variance).
    """

    worst: Callable[[Sequence[Fraction]], Fraction]
    kinds: ClassVar[tuple[str, ...]] = ("laplace", "gaussian")

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return the worst sum at the rates that were drawn."""
        if len({draw.kind for draw in draws}) != 1:
            raise CostError("Groups of numbers have noise of different kinds.")
        gauss = draws[0].kind == "gaussian"
        rates = [1 / draw.exact("variance" if gauss else "scale") for draw in draws]
        if not gauss:
            return Laplace(self.worst(rates))
        # What moves, moves by one step at least: as many numbers as squares can add up to.
        moved = Fraction(max(int(self.worst([Fraction(1)] * len(rates))), 1))
        return Gaussian(self.worst(rates) / 2, moved, 1 / max(rates))


@dataclass(frozen=True)
class ExponentialCharge(Charge):
    """The exponential mechanism on scores that one unit moves by so much each."""

    sensitivity: Number
    kinds: ClassVar[tuple[str, ...]] = ("exponential", "permute and flip")

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return twice the sensitivity times the factor of scores."""
        (draw,) = _only(draws, 1, type(self).__name__)
        factor = draw.exact("epsilon") / draw.exact("sensitivity")
        return BoundedRange(factor * rational(self.sensitivity))


@dataclass(frozen=True)
class ChoiceCharge(Charge):
    """A choice with weights exp(score/scale) on scores that one unit moves by so much each.

    ``scores`` belong to the options of the sampler, in order. Where there are two or more, the
    scale is found from the exponents that it was given; where all are equal, the stated one is
    all there is. Which of equal options is taken is drawn evenly.
    """

    sensitivity: Number
    scores: Sequence[int]
    scale: Fraction
    kinds: ClassVar[tuple[str, ...]] = ("choice", "uniform")

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return twice the sensitivity times the steepest slope of exponents over scores."""
        (draw,) = (draw for draw in draws if draw.kind == "choice")
        pairs = list(zip(self.scores, draw.parameters["exponents"], strict=True))
        slopes = [
            abs(rational(after) - rational(before)) / abs(high - low)
            for (low, before), (high, after) in pairwise(pairs)
        ]
        steepest = max([slope * draw.exact("per") for slope in slopes], default=Fraction(0))
        return BoundedRange(2 * rational(self.sensitivity) * max(steepest, 1 / self.scale))


@dataclass(frozen=True)
class ChoicesCharge(Charge):
    """Several such choices, whose scores one unit moves by so much in all of them together.

    ``scores`` has the options of each choice, in the order in which they are drawn.
    """

    sensitivity: Number
    scores: Sequence[Sequence[int]]
    scale: Fraction
    kinds: ClassVar[tuple[str, ...]] = ("choice", "uniform")

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return what the steepest of the choices would cost if all moved there."""
        chosen = [draw for draw in draws if draw.kind == "choice"]
        _only(chosen, len(self.scores), type(self).__name__)
        priced = [
            ChoiceCharge(self.sensitivity, scores, self.scale).event([draw])
            for scores, draw in zip(self.scores, chosen, strict=True)
        ]
        return max((one for one in priced if isinstance(one, Pure)), key=lambda one: one.epsilon)


@dataclass(frozen=True)
class NoisyMaxCharge(Charge):
    """The largest ``chosen`` of many scores with noise, each moved by so much by one unit."""

    sensitivity: Number
    chosen: int
    kinds: ClassVar[tuple[str, ...]] = ("laplace", "geometric")

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return what a threshold that moves by twice the sensitivity costs, for each chosen."""
        (draw,) = _only(draws, 1, type(self).__name__)
        return Pure(2 * self.chosen * rational(self.sensitivity) / draw.exact("scale"))


@dataclass(frozen=True)
class LadderCharge(Charge):
    """A ladder: weights exp(-decay·rung) on rungs whose widths grow by at most exp(smoothing).

    With a smoothing of zero widths may do what they like, and the sum of weights pays for it. Rung
    t ends max(middle·width - 1/2, 0) beyond the widths of t rungs, by the width of the next.
    """

    smoothing: Fraction
    middle: Fraction = Fraction(0)
    kinds: ClassVar[tuple[str, ...]] = ("choice", "geometric", "uniform")

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return the decay that was drawn with, and what the sum of weights costs."""
        first, rest = draws[:2]
        times = first.exact("per")
        decay = 1 / rest.exact("scale")
        places = [rational(one) * times / decay for one in first.parameters["exponents"]]
        if any(place.denominator != 1 for place in places):
            raise CostError("The rungs of a ladder are not one decay apart.")
        widths = self._widths([int(place) for place in places], first.parameters["multiplicities"])
        if any(a > b for a, b in pairwise(widths)):
            raise CostError("The widths of a ladder do not rise.")
        if not self.smoothing:
            return Pure(2 * decay)
        with localcontext() as context:
            context.prec = 40
            most = Fraction(_decimal(self.smoothing).exp()) * (1 + Fraction(1, 10**25))
        if any(b > a * most for a, b in pairwise(widths)):
            raise CostError("The widths of a ladder grow faster than its smoothing says.")
        return Pure(decay + self.smoothing)

    def _widths(self, places: Sequence[int], steps: Sequence[int]) -> list[int]:
        """Return the widths that rungs were made of: how much there is on each must fit them."""
        inner, half = 2 * self.middle.numerator, self.middle.denominator
        whole = 2 * half if inner else 1
        # Rungs as wide as the one before have no weight of their own, and are left out.
        growth = dict(zip(places, steps, strict=True))
        counts = list(accumulate(growth.get(place, 0) for place in range(places[-1] + 1)))
        after = Fraction(counts[-1], 2 * whole)
        widths = [after]
        for count in reversed(counts[1:-1]):
            left = Fraction(count, 2) - max(inner * after - half, Fraction(0))
            after = left / whole
            if inner * after > half:
                after = (left - half) / (whole - inner)
            widths.append(after)
        first = whole + 2 * max(inner * after - half, Fraction(0))
        if counts[0] != first or any(width.denominator != 1 for width in widths):
            raise CostError("The middle of a ladder is not the share of its widths that it says.")
        return [int(width) for width in reversed(widths)]


@dataclass(frozen=True)
class SmoothCharge(Charge):
    """Laplace noise on a beta-smooth bound of what one unit moves on this dataset.

    The log-ratio exceeds epsilon with probability delta only (see ``graphs/mechanisms/smooth.py``):
    epsilon = alpha - beta + ln(1/delta)·(exp(beta) - 1), and at least alpha + beta.
    """

    bound: Fraction
    beta: Fraction
    delta: Fraction
    kinds: ClassVar[tuple[str, ...]] = ("rounded laplace",)

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return the epsilon of the scale that was drawn with."""
        (draw,) = _only(draws, 1, type(self).__name__)
        alpha = self.bound / draw.exact("scale")
        with localcontext() as context:
            context.prec = 60
            growth = _decimal(self.beta).exp() - 1
            stretched = Fraction(growth * -_decimal(self.delta).ln())
        return Approximate(max(alpha - self.beta + stretched, alpha + self.beta), self.delta)


@dataclass(frozen=True)
class SmoothVectorCharge(Charge):
    """The same for several numbers: epsilon = alpha + 2·beta·(count + ln(2/delta))."""

    bound: Fraction
    beta: Fraction
    delta: Fraction
    count: int
    kinds: ClassVar[tuple[str, ...]] = ("rounded laplace",)

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return the epsilon of the scale that was drawn with."""
        (draw,) = _only(draws, 1, type(self).__name__)
        alpha = self.bound / draw.exact("scale")
        with localcontext() as context:
            context.prec = 60
            logarithm = Fraction((2 / _decimal(self.delta)).ln())
        return Approximate(alpha + 2 * self.beta * (self.count + logarithm), self.delta)


@dataclass(frozen=True)
class HeavyCharge(Charge):
    """Noise of polynomial tails on a beta-smooth bound: slide·alpha + stretch·beta."""

    bound: Fraction
    beta: Fraction
    slide: Fraction
    stretch: Fraction
    kinds: ClassVar[tuple[str, ...]] = ("heavy",)

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return the epsilon of the scale that was drawn with."""
        (draw,) = _only(draws, 1, type(self).__name__)
        return Pure(self.slide * self.bound / draw.exact("scale") + self.stretch * self.beta)


@dataclass(frozen=True)
class BoundCharge(Charge):
    """Laplace noise on a number that one unit moves by one, raised by ``shift``.

    What follows relies on the result not being below the number: that fails with the
    probability that noise is below -shift, which is part of delta.
    """

    shift: int
    kinds: ClassVar[tuple[str, ...]] = ("laplace",)

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return the noise, and the probability q^(shift + 1)/(1 + q) with q = exp(-1/scale)."""
        (draw,) = _only(draws, 1, type(self).__name__)
        rate = 1 / draw.exact("scale")
        with localcontext() as context:
            context.prec = 60
            q = (-_decimal(rate)).exp()
            missed = Fraction((-_decimal(rate * (self.shift + 1))).exp() / (1 + q))
        return Composed((Laplace(rate), Approximate(Fraction(0), missed)))


@dataclass(frozen=True)
class ResponseCharge(Charge):
    """Coins that flip bits, of which one unit is so many."""

    bits: int = 1
    kinds: ClassVar[tuple[str, ...]] = ("response",)

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return the log-odds of a coin times the bits."""
        (draw,) = _only(draws, 1, type(self).__name__)
        return RandomizedResponse(self.bits * draw.exact("epsilon"))


@dataclass(frozen=True)
class KeptCharge(Charge):
    """Each thing that is there is kept by one coin; each that is not is invented by gaps."""

    kinds: ClassVar[tuple[str, ...]] = ("geometric", "coin")

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return the larger log-ratio: kept to invented, and left out to lost."""
        skips = {draw.exact("scale") for draw in draws if draw.kind == "geometric"}
        keeps = [draw.exact("p") for draw in draws if draw.kind == "coin"]
        if len(skips) != 1 or len(keeps) != 1:
            raise CostError("Coins for things kept and invented must have one chance each.")
        with localcontext() as context:
            context.prec = 60
            context.rounding = ROUND_CEILING
            keep, absent = _decimal(keeps[0]), (-1 / _decimal(skips.pop())).exp()
            ratios = [absent / (1 - keep), *([keep / (1 - absent)] if keep else [])]
            found = [Fraction(ratio.ln()) for ratio in ratios]
        return RandomizedResponse(max(*found, Fraction(0)))


@dataclass(frozen=True)
class PatternCharge(Charge):
    """A pattern of flips with couplings; ``price`` returns what one unit costs, from the law."""

    price: Callable[[Draw], Fraction]
    kinds: ClassVar[tuple[str, ...]] = ("pattern", "uniform")

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return the price of the pattern that was drawn."""
        (draw,) = (draw for draw in draws if draw.kind == "pattern")
        return RandomizedResponse(self.price(draw))


@dataclass(frozen=True)
class PricedCharge(Charge):
    """Draws with a proof of their own; ``priced`` returns the event, from what was drawn."""

    priced: Callable[[Sequence[Draw]], Event]
    allowed: tuple[str, ...]

    @property
    def kinds(self) -> tuple[str, ...]:  # type: ignore[override]
        """The samplers that may be called."""
        return self.allowed

    def event(self, draws: Sequence[Draw]) -> Event:
        """Return what the proof says."""
        return self.priced(draws)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
