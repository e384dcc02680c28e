"""Partition selection: which keys of a table may be shown, by how many people have them.

Everyone is bounded to L keys beforehand, by a choice that depends on their own rows alone. The
number of people of every key that anybody has gets noise, and a key is shown, with that noisy
number, when it is above a threshold. A key that nobody has is never shown: no list of keys is
needed, and the probability that a key of one person alone is shown is what delta pays for.

*Argument.* Somebody joins with at most L keys. A key that others have too gets one person more,
and a key of theirs alone is new. What is shown of different keys is independent, so it is enough
to price each key and compose: L times (epsilon/L, delta/L) for the truncated geometric rule; for
Gaussian noise the keys that others have together, and new ones by the probability that they show.

*Weights.* Where no number of people is asked for, a person of n keys may count for 1/sqrt(n) in
each of them instead of 1: whoever has few keys then counts for more, at the same length of what one
person moves (:class:`WeightedGaussian`).

*Minimum.* With ``minimum`` m the rule sees the number of people less m - 1 (at least zero), which
one person moves by at most one. So a key of fewer than m people is never shown, for certain.

References: Desfontaines, Voss, Gipson & Mandayam, *Differentially private partition selection*,
PETS 2022; Korolova, Kenthapadi, Mishra & Ntoulas, WWW 2009; Gopi et al., *Differentially private
set union*, ICML 2020.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.errors import InputError
from tulle.core.events import Approximate, Composed, Event, Gaussian, price
from tulle.core.gaussian import largest_rho_alone, largest_rho_where
from tulle.core.source import Source
from tulle.core.validate import rational, text
from tulle.noise.additive import discrete_gaussian
from tulle.noise.charge import CostError, Draw, PricedCharge, charge
from tulle.noise.tables import LARGEST_SCALE
from tulle.noise.truncated_laplace import chance_of_end, gaussian_tail, truncated_laplace

SEEN = 0.95
"""The chance at which a plan says that a key of so many people will be seen."""

MOST_EACH = Fraction(64)
"""How much of epsilon one key gets at most; with more, noise is zero all the same."""

LEAST_DELTA = Fraction(1, 10**100)
"""The least delta for one key: beyond it floating point has no numbers for chances."""

_LARGEST_SIGMA = Fraction(2**40)
"""Above this Gaussian noise is not considered."""

STEPS = 2**16
"""How many whole steps a person of one key counts for, where people are weighted."""

_EACH = 128
"""Up to so many keys every number of keys has a weight of its own; beyond, ranges of numbers do."""


def selection_options(minimum: Any, other: Any, top: Any) -> tuple[int, str | None, int | None]:
    """Check what is said about keys: how many people at least, a row for the rest, the first few.

    Raises:
        InputError: naming the one that does not fit.
    """
    if top is not None:
        top = validate.whole(top=top, at_least=1)
    given = 1 if minimum is None else validate.whole(minimum=minimum, at_least=1)
    if given > 2**40:
        raise InputError("minimum must be at most 2**40.")
    if other is True:
        other = "other"
    if other in (None, False):
        other = None
    elif not isinstance(other, str) or not other:
        raise InputError("other must be True, or the text that the row of the rest is called.")
    return given, other, top


@dataclass(frozen=True)
class Rule(ABC):
    """A rule by which keys are shown: the noise on the number of people, and a threshold."""

    keys: int
    """How many keys one person has at most."""
    minimum: int
    """A key of fewer people is never shown."""
    threshold: int
    """A key is shown when its number of people less ``minimum - 1``, with noise, is above this."""
    name: ClassVar[str]

    @abstractmethod
    def noise(self, size: int, source: Source | None) -> Array:
        """Draw noise for so many keys."""

    @abstractmethod
    def price(self, draws: Sequence[Draw]) -> Event:
        """Return what was spent, from the parameters that were drawn with."""

    @property
    @abstractmethod
    def drawn(self) -> str:
        """Which sampler the rule calls."""

    @abstractmethod
    def above(self, least: int) -> float:
        """Return the probability that the noise is ``least`` or more, in floating point."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the rule as public settings."""

    @property
    def levels(self) -> tuple[tuple[int, int], ...]:
        """How much a person of at most so many keys counts for in each of them; ascending."""
        return ((self.keys, 1),)

    def show(self, people: Array, source: Source | None) -> tuple[Array, Array]:
        """Return for each key whether it is shown, and its noisy number of people.

        ``people`` is how many have each key, everyone bounded to ``keys`` of them and counted as
        ``levels`` says. The numbers of keys that are not shown are private all the same: they are
        zero.
        """
        counted = np.maximum(np.asarray(people, dtype=np.int64) - (self.minimum - 1), 0)
        if not len(counted):
            return np.zeros(0, dtype=np.bool_), counted
        with charge(PricedCharge(self.price, (self.drawn,))):
            noisy = counted + self.noise(len(counted), source)
        shown = (counted > 0) & (noisy > self.threshold)
        return shown, np.where(shown, noisy + (self.minimum - 1), 0)

    def chance(self, people: int) -> float:
        """Return the probability that a key is shown that people count for so much."""
        counted = people - (self.minimum - 1)
        return 0.0 if counted < 1 else self.above(self.threshold + 1 - counted)

    def enough(self, level: float = SEEN) -> int:
        """Return how much people must count for in a key that it is shown with this chance."""
        return _least(lambda counted: self.chance(counted) >= level, self.minimum)

    def seen_from(self, level: float = SEEN, having: int | None = None) -> int:
        """Return from how many people on a key is shown with at least this chance.

        Each of them has ``having`` keys; without it the most that anybody counts for, which is the
        least favourable.
        """
        most = self.keys if having is None else min(having, self.keys)
        weight = next(weight for up_to, weight in self.levels if most <= up_to)
        return -(-self.enough(level) // weight)

    def in_words(self, what: str, delta: float) -> str:
        """Return from which size on a key is seen, for a plan."""
        size = f"{self.seen_from():,} people on"
        if self.keys > 1:
            size += f", everyone counted for {self.keys:,} {what}s at most"
        if self.levels[0][1] > 1:
            size = (
                f"{self.seen_from(having=1):,} people on who have no other {what}, and from "
                f"{self.seen_from():,} on who have {self.keys:,} {what}s or more"
            )
        alone = f"a {what} of one person with at most {delta:.1g}"
        if self.minimum > 1:
            alone = f"with fewer than {self.minimum:,} never"
        return f"A {what} is seen with 95 % chance from {size}; {alone}."


@dataclass(frozen=True)
class TruncatedGeometric(Rule):
    """Geometric noise within the threshold: for one key the rule that shows most.

    *Argument.* With n and with n + 1 people (n >= 1) the noisy numbers have probabilities within
    exp(1/scale) of each other where both can occur. Only n + 1 + threshold cannot be had from n;
    its probability is that of the largest noise. Only n - threshold cannot be had from n + 1; its
    probability is the same (and where it is not above the threshold, nothing is shown either way).
    With no one a key is not shown, with one person it is when the noise is the largest. So each key
    is (1/scale, P(noise = threshold))-private, and a person has at most ``keys`` of them.

    *Optimality.* Where delta is exactly such a probability, no private rule shows a key of any size
    with a larger chance (Desfontaines et al.); between two of them about one person is lost.
    """

    scale: Fraction
    name: ClassVar[str] = "truncated geometric"
    drawn: ClassVar[str] = "truncated laplace"

    @classmethod
    def at(
        cls, epsilon: Fraction, delta: Fraction, keys: int, minimum: int = 1
    ) -> TruncatedGeometric:
        """Return the rule for a budget."""
        scale, allowed = Fraction(keys) / epsilon, delta / keys
        bound = _least(lambda n: chance_of_end(scale, n) <= allowed, 0)
        # With a large delta at a tiny epsilon nearly every draw would be beyond the bound.
        return cls(keys, minimum, max(bound, int(scale) // 16), scale)

    def noise(self, size: int, source: Source | None) -> Array:
        return truncated_laplace(scale=self.scale, bound=self.threshold, size=size, source=source)

    def price(self, draws: Sequence[Draw]) -> Event:
        (draw,) = draws
        scale, bound = draw.exact("scale"), int(draw.parameters["bound"])
        if bound > self.threshold:
            raise CostError("Noise goes beyond the threshold.")
        return Approximate(self.keys / scale, self.keys * chance_of_end(scale, bound))

    def above(self, least: int) -> float:
        if least > self.threshold:
            return 0.0
        if least <= 0:
            return 1.0 - self.above(1 - least)
        rate, end = 1 / float(self.scale), self.threshold + 1
        last = math.exp(-rate * end)
        return (math.exp(-rate * least) - last) / (1 + math.exp(-rate) - 2 * last)

    def to_json(self) -> dict[str, Any]:
        return {"rule": self.name, "scale": text(self.scale), "threshold": self.threshold}


@dataclass(frozen=True)
class ThresholdedGaussian(Rule):
    """Gaussian noise and a threshold that one person alone hardly ever gets above.

    *Argument.* The numbers of people of the keys that others have move by at most 1 each, in at
    most ``keys`` places: by sqrt(keys) in L2, so they are (epsilon, delta_noise)-private, and what
    is shown of them follows from them. A key of one person alone is shown with the probability that
    noise is at least the threshold; at most ``keys`` times that is by how much probabilities of
    what is shown of new keys differ with and without the person: (0, that)-private. The two are
    independent, so they compose to the sum.
    """

    variance: Fraction
    delta_noise: Fraction
    name: ClassVar[str] = "gaussian"
    drawn: ClassVar[str] = "gaussian"

    @classmethod
    def at(
        cls, epsilon: Fraction, delta: Fraction, keys: int, minimum: int = 1
    ) -> ThresholdedGaussian:
        """Return the rule for a budget: half of delta for the noise, half for new keys."""
        rho = largest_rho_alone(epsilon, delta / 2, Fraction(keys))
        exact = Fraction(keys) / (2 * rho)
        # Short to write; rounding up only adds noise.
        variance = Fraction(math.ceil(exact * 64), 64) if exact > 1 else exact
        allowed = delta / (2 * keys)
        return cls(keys, minimum, _tail_start(variance, allowed), variance, delta / 2)

    def noise(self, size: int, source: Source | None) -> Array:
        return discrete_gaussian(variance=self.variance, size=size, source=source)

    def price(self, draws: Sequence[Draw]) -> Event:
        (draw,) = draws
        variance = draw.exact("variance")
        noise = Gaussian.of(Fraction(self.keys), variance)
        epsilon = price(noise, self.delta_noise)[0]
        missed = self.keys * gaussian_tail(variance, self.threshold)
        return Composed((Approximate(epsilon, self.delta_noise), Approximate(Fraction(0), missed)))

    def above(self, least: int) -> float:
        spread = float(self.variance)
        if spread > 25:
            return math.erfc((least - 0.5) / math.sqrt(2 * spread)) / 2
        weights = np.exp(-(np.arange(-200, 201) ** 2) / (2 * spread))
        return float(weights[min(max(least + 200, 0), 401) :].sum() / weights.sum())

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.name,
            "variance": text(self.variance),
            "threshold": self.threshold,
            "delta_noise": text(self.delta_noise),
        }


@dataclass(frozen=True)
class WeightedGaussian(ThresholdedGaussian):
    """Gaussian noise on sums of weights: a person of n keys counts for 1/sqrt(n) in each.

    Weights are whole numbers of steps, rounded down; one is ``steps`` of them. What is shown with a
    key is no number of people.

    *Argument.* With n keys, n at most L = ``keys``, each weight w(n) has n·w(n)² <= steps²: whoever
    joins moves the sums of the keys that others have by at most ``steps`` in L2, in at most L
    places, so they are (epsilon, delta_noise)-private, and what is shown of them follows from them.
    The other keys are new: at most n of them, each of which has w(n) and is shown with the
    probability that noise is above the threshold less w(n). That any of them is has at most n times
    this probability, and the largest of these products over all n <= L is what new keys add to
    delta: (0, that)-private. The two are independent, so they compose to the sum. Few keys come
    nearer to the threshold, many keys try more often; neither end of the range is the worst for all
    budgets, so that all n are looked at.

    Reference: Gopi, Gulhane, Kulkarni, Shen, Shokouhi & Yekhanin, *Differentially private set
    union*, ICML 2020 (weighted Gaussian).
    """

    steps: int = STEPS
    name: ClassVar[str] = "weighted gaussian"

    @classmethod
    def at(
        cls,
        epsilon: Fraction,
        delta: Fraction,
        keys: int,
        minimum: int = 1,
        steps: int = STEPS,
    ) -> WeightedGaussian:
        """Return the rule for a budget: half of delta for the noise, half for new keys."""
        squared, moved = Fraction(steps) ** 2, Fraction(keys)
        rho = largest_rho_where(
            epsilon, delta / 2, lambda rho: ((rho, moved, squared / (2 * rho)),)
        )
        exact = squared / (2 * rho)
        variance = Fraction(math.ceil(exact * 64), 64) if exact > 1 else exact
        levels, threshold = weight_levels(keys, steps), 0
        # Many keys mostly decide, so with them the others are only looked at.
        for n, weight in reversed(levels):
            allowed = delta / (2 * n)
            start = max(threshold + 1 - weight, 1)
            if gaussian_tail(variance, start) > allowed:
                start = _tail_start(variance, allowed, start)
            threshold = max(threshold, start - 1 + weight)
        return cls(keys, minimum, threshold, variance, delta / 2, steps)

    @property
    def levels(self) -> tuple[tuple[int, int], ...]:
        return weight_levels(self.keys, self.steps)

    def price(self, draws: Sequence[Draw]) -> Event:
        (draw,) = draws
        variance = draw.exact("variance")
        noise = Gaussian(Fraction(self.steps) ** 2 / (2 * variance), Fraction(self.keys), variance)
        epsilon = price(noise, self.delta_noise)[0]
        missed = max(
            n * gaussian_tail(variance, self.threshold + 1 - weight)
            if weight <= self.threshold
            else Fraction(1)
            for n, weight in self.levels
        )
        return Composed((Approximate(epsilon, self.delta_noise), Approximate(Fraction(0), missed)))

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"steps": self.steps}


@lru_cache(maxsize=64)
def weight_levels(keys: int, steps: int = STEPS) -> tuple[tuple[int, int], ...]:
    """Return numbers of keys and the weight of whoever has at most so many, in whole steps.

    The squares of the weights of n keys add up to at most ``steps`` squared.

    Example:
        >>> weight_levels(4, 100)
        ((1, 100), (2, 70), (3, 57), (4, 50))
    """
    numbers = list(range(1, min(keys, _EACH) + 1))
    while numbers[-1] < keys:
        numbers.append(min(numbers[-1] + numbers[-1] // 16, keys))
    return tuple((n, math.isqrt(steps**2 // n)) for n in numbers)


def best_rule(
    epsilon: Fraction, delta: Fraction, keys: int, minimum: int = 1, *, numbers: bool = True
) -> Rule:
    """Return the rule of this price that shows keys of the fewest people.

    Without ``numbers``, nobody asks how many people have a key: then people may be weighted.

    Whether there is one depends on the budget alone. Of a larger epsilon than :data:`MOST_EACH`
    for each key the rest is not used: noise is zero then but for a chance that no delta notices.

    Raises:
        InputError: when epsilon or delta are so small that noise for it cannot be drawn.

    Example:
        >>> few = best_rule(Fraction(1), Fraction(1, 10**6), keys=1)
        >>> many = best_rule(Fraction(1), Fraction(1, 10**6), keys=100)
        >>> few.name, few.seen_from(), many.name
        ('truncated geometric', 17, 'gaussian')
        >>> best = best_rule(Fraction(1), Fraction(1, 10**6), keys=64, numbers=False)
        >>> best.name, best.seen_from(having=1), best.seen_from(having=64)
        ('weighted gaussian', 33, 257)
    """
    least = Fraction(keys) / LARGEST_SCALE
    if epsilon < least:
        raise InputError(
            f"Keys cannot be found at so small an epsilon: finding {keys:,} for each person takes "
            f"at least {float(least):.1g}. Give more (half of epsilon finds keys where other "
            "columns are asked for), bound a person to fewer keys, or list the keys."
        )
    if delta < keys * LEAST_DELTA:
        raise InputError(
            f"Keys cannot be found at so small a delta: finding {keys:,} for each person takes at "
            f"least {float(keys * LEAST_DELTA):.1g}. Give more, or list the keys."
        )
    epsilon = min(epsilon, keys * MOST_EACH)
    found: list[Rule] = [TruncatedGeometric.at(epsilon, delta, keys, minimum)]
    if keys > 1 and epsilon >= Fraction(1, 10**6):
        kind = ThresholdedGaussian if numbers or minimum > 1 else WeightedGaussian
        gaussian = kind.at(epsilon, delta, keys, minimum)
        if gaussian.variance <= _LARGEST_SIGMA * gaussian.levels[0][1] ** 2:
            found.append(gaussian)
    return min(found, key=lambda rule: rule.seen_from())


def rule_from_json(data: Mapping[str, Any], keys: int, minimum: int) -> Rule:
    """Read what :meth:`Rule.to_json` wrote."""
    threshold = int(data["threshold"])
    if data["rule"] == TruncatedGeometric.name:
        return TruncatedGeometric(keys, minimum, threshold, rational(data["scale"]))
    noise = rational(data["variance"]), rational(data["delta_noise"])
    if data["rule"] == WeightedGaussian.name:
        return WeightedGaussian(keys, minimum, threshold, *noise, int(data["steps"]))
    return ThresholdedGaussian(keys, minimum, threshold, *noise)


def _tail_start(variance: Fraction, allowed: Fraction, start: int = 1) -> int:
    """Return from where on Gaussian noise has at most this probability."""
    return _least(lambda at: gaussian_tail(variance, at) <= allowed, start)


def _least(fits: Callable[[int], bool], start: int = 1) -> int:
    """Return the least number from ``start`` on that fits, if all above it do."""
    if fits(start):
        return start
    low, step = start, 1
    while not fits(low + step):
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
