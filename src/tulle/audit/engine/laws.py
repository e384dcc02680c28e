"""Closed forms of the noise that mechanisms draw, and what they claim about it.

A mechanism's run is described by independent parts, each a law with a centre that comes from the
data. Two things can be asked of a law and the same law on a neighbour: do the claims hold that
its proof rests on (:meth:`Law.claims`), and how far apart are the two distributions
(:meth:`Law.loss`, :meth:`Law.excess`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.core.validate import rational


class Claim(NamedTuple):
    """One inequality of a proof, for one pair of neighbours."""

    check: str
    observed: float
    """As a ratio to what is allowed; above 1 the claim is false."""
    figure: str


class Law(ABC):
    """The distribution of one independent part of a release before post-processing."""

    @abstractmethod
    def claims(self, other: Any) -> Iterator[Claim]:
        """Yield what the proof claims about this law and the same law on a neighbour."""

    @abstractmethod
    def loss(self, other: Any) -> float:
        """Return the largest log-ratio of probabilities, this law's to the other's."""

    @abstractmethod
    def losses(self, other: Any) -> tuple[Floats, Floats]:
        """Return masses of this law and its log-ratios there; they add up to one, within 1e-15."""

    @abstractmethod
    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        """Return values and their probabilities, all but at most ``left_out`` of the mass."""


class Centred(Law):
    """A law that is symmetric about a whole number and moves with it.

    Two of them differ as they do at any other place, so that pairs equally far apart are compared
    once.
    """

    centre: Any

    def loss(self, other: Any) -> float:
        return _largest_ratio(*_from_zero(self, other))

    def losses(self, other: Any) -> tuple[Floats, Floats]:
        return _ratios(*_from_zero(self, other))

    @abstractmethod
    def largest_ratio(self, other: Any) -> float:
        """Return what :meth:`loss` says, computed anew."""

    @abstractmethod
    def ratios(self, other: Any) -> tuple[Floats, Floats]:
        """Return what :meth:`losses` says, computed anew."""


def _from_zero(one: Any, other: Any) -> tuple[Any, Any]:
    return replace(one, centre=0), replace(other, centre=abs(other.centre - one.centre))


@lru_cache(maxsize=4096)
def _largest_ratio(one: Centred, other: Centred) -> float:
    return one.largest_ratio(other)


@lru_cache(maxsize=4096)
def _ratios(one: Centred, other: Centred) -> tuple[Floats, Floats]:
    masses, losses = one.ratios(other)
    # There are few different ones. Rounded up, so that nothing looks more private than it is.
    kept, place = np.unique(np.ceil(losses * 1e12) / 1e12, return_inverse=True)
    return np.bincount(place, weights=masses).astype(np.float64), kept


def excess(masses: Floats, losses: Floats, epsilon: float) -> float:
    """Return the hockey-stick divergence: the sum of max(0, p - exp(epsilon)·q)."""
    above = losses > epsilon
    # 1 - exp(epsilon - loss) is exactly 1 where the other mass is zero.
    return float(np.sum(masses[above] * -np.expm1(epsilon - losses[above])))


def ratio(observed: float, allowed: float) -> float:
    """Return observed / allowed, where 0 / 0 is 0."""
    if observed == 0:
        return 0.0
    return math.inf if allowed == 0 else observed / allowed


def log_ratio(top: Fraction | int, bottom: Fraction | int, allowed: Fraction) -> float:
    """Return ln(top / bottom) / allowed to thirty digits, then as a float."""
    exact = Fraction(top) / Fraction(bottom)
    with localcontext() as context:
        context.prec = 60
        logarithm = (Decimal(exact.numerator) / Decimal(exact.denominator)).ln()
        return float(logarithm * allowed.denominator / allowed.numerator)


@dataclass(frozen=True)
class LaplaceVector(Law):
    """Independent discrete Laplace noise on each entry; an entry of scale 0 has none."""

    centre: tuple[int, ...]
    scales: tuple[Fraction, ...]
    sensitivity: Fraction
    """The most that one unit moves the centre in L1, as claimed."""

    def claims(self, other: LaplaceVector) -> Iterator[Claim]:
        if len(self.centre) != len(other.centre):
            yield Claim("L1 sensitivity", math.inf, "lengths differ")
            return
        moved = sum(abs(a - b) for a, b in zip(self.centre, other.centre, strict=True))
        yield Claim(
            "L1 sensitivity",
            ratio(moved, float(self.sensitivity)),
            f"moves {moved} of {self.sensitivity}",
        )

    def loss(self, other: LaplaceVector) -> float:
        if len(self.centre) != len(other.centre):
            return math.inf
        total, moved = Fraction(0), 0
        scale, its = Fraction(0), Fraction(0)
        for a, b, s, t in zip(self.centre, other.centre, self.scales, other.scales, strict=True):
            # Mostly one object stands in all entries: it is compared and divided by once.
            if s is not scale or t is not its:
                if s != t:
                    # Unbounded for one order of the pair, and both orders are looked at.
                    return math.inf
                total += moved / scale if moved else 0
                scale, its, moved = s, t, 0
            if a != b:
                if s == 0:
                    return math.inf
                moved += abs(a - b)
        return float(total + moved / scale if moved else total)

    def losses(self, other: LaplaceVector) -> tuple[Floats, Floats]:
        if len(self.centre) != len(other.centre):
            return np.array([1.0]), np.array([math.inf])
        masses, losses = np.array([1.0]), np.array([0.0])
        for a, b, s, t in zip(self.centre, other.centre, self.scales, other.scales, strict=True):
            if (a, s) != (b, t):
                entry = _entry_losses(a, b, s, t)
                masses = np.multiply.outer(masses, entry[0]).ravel()
                losses = np.add.outer(losses, entry[1]).ravel()
        return masses, losses

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        vectors: list[tuple[int, ...]] = [()]
        masses = np.array([1.0])
        share = left_out / max(len(self.centre), 1)
        for centre, scale in zip(self.centre, self.scales, strict=True):
            reach = 0 if scale == 0 else math.ceil(float(scale) * math.log(2 / share))
            values = np.arange(-reach, reach + 1)
            entry = np.exp(_laplace_logs(values, scale))
            vectors = [(*vector, centre + int(value)) for vector in vectors for value in values]
            masses = np.multiply.outer(masses, entry).ravel()
        return list(vectors), masses


def laplace_vector(
    centre: Iterable[int], scale: Fraction, sensitivity: int | Fraction
) -> LaplaceVector:
    """Return noise of one scale on every entry."""
    entries = tuple(map(int, centre))
    return LaplaceVector(entries, (scale,) * len(entries), Fraction(sensitivity))


def _laplace_logs(values: Wholes, scale: Fraction) -> Floats:
    """Return the log-probabilities of discrete Laplace noise."""
    if scale == 0:
        return np.where(values == 0, 0.0, -math.inf)
    rate = 1 / float(scale)
    normal = math.log(math.tanh(rate / 2))
    return np.asarray(normal - np.abs(values) * rate, dtype=np.float64)


def _entry_losses(a: int, b: int, s: Fraction, t: Fraction) -> tuple[Floats, Floats]:
    """Return masses and log-ratios of one entry, its far ends as one cell each."""
    if s == 0 or t == 0:
        return np.array([1.0]), np.array([math.inf])
    low, high = min(a, b), max(a, b)
    if s != t:
        reach = math.ceil(40 * float(max(s, t)))
        values = np.arange(low - reach, high + reach + 1)
        logs = _laplace_logs(values - a, s)
        return np.exp(logs), logs - _laplace_logs(values - b, t)
    rate = 1 / float(s)
    values = np.arange(low, high + 1)
    masses = np.exp(_laplace_logs(values - a, s))
    # All values beyond either end have the ratio of that end.
    q = math.exp(-rate)
    masses[0] /= 1 - q
    masses[-1] /= 1 - q
    return masses, (np.abs(values - b) - np.abs(values - a)) * rate


@dataclass(frozen=True)
class RungChoice(Centred):
    """The exponential mechanism on rungs: rung t >= 1 has widths[t-1] numbers on either side.

    With a ``middle`` every rung ends that share of the next width further out, less one half.
    """

    centre: int
    widths: tuple[int, ...]
    most: int
    decay: Fraction
    smoothing: Fraction
    """How fast the widths may grow, as claimed; zero when nothing is claimed."""
    middle: Fraction = Fraction(0)

    @classmethod
    def of(cls, centre: int, widths: Iterable[int], most: int, settings: Mapping[str, Any]) -> Self:
        """Return a ladder with the rates that the settings say."""
        rates = (rational(settings.get(name, 0)) for name in ("decay", "smoothing", "middle"))
        return cls(int(centre), tuple(widths), most, *rates)

    def claims(self, other: RungChoice) -> Iterator[Claim]:
        moved, covered = abs(self.centre - other.centre), self.widths[0]
        yield Claim("first rung covers", ratio(moved, covered), f"moves {moved}, I_0 = {covered}")
        ours, theirs = [*self.widths, self.most], [*other.widths, other.most]
        shifts = [(ratio(b, a), t) for t, (a, b) in enumerate(zip(ours[1:], theirs, strict=False))]
        worst, t = max(shifts)
        yield Claim(
            "rungs shift by one", worst, f"I_{t}(G') = {theirs[t]}, I_{t + 1}(G) = {ours[t + 1]}"
        )
        rises = [ratio(a, b) for a, b in pairwise(ours)]
        yield Claim("widths rise", max(rises), f"largest step down {max(rises):.3g}")
        if self.middle:
            near, far = other._reaches(), self._reaches()
            within = float(np.max((near[:-1] + moved) / far[1:]))
            yield Claim("reaches shift by one", within, f"{within:.6g} of the next rung's reach")
        if self.smoothing:
            steps = [(Fraction(b, a), t) for t, (a, b) in enumerate(pairwise(ours))]
            step, t = max(steps)
            yield Claim(
                "widths grow slowly",
                log_ratio(step, 1, self.smoothing),
                f"J_{t + 1} / J_{t} = {float(step):.6g}",
            )

    def _reaches(self) -> Floats:
        """Return how far from the centre each rung ends."""
        widths = np.array([*self.widths, self.most], dtype=np.float64)
        middles = np.maximum(float(self.middle) * widths - 0.5, 0.0)
        return np.asarray(np.cumsum([0.0, *widths[:-1]]) + middles, dtype=np.float64)

    def logs(self, values: Wholes) -> Floats:
        """Return the log-probabilities of the values."""
        # A number at distance a stands for distances from a - 1 to a: on one rung or on two.
        reach, distance = self._reaches(), np.abs(values - self.centre)
        more = math.ceil(max(float(distance.max()) - reach[-1], 0.0) / self.most) + 1
        reach = np.append(reach, reach[-1] + self.most * np.arange(1, more + 1))
        rung = np.searchsorted(reach, np.maximum(distance - 1, 0), side="right")
        outside = np.where(distance > 0, np.clip(distance - reach[rung], 0.0, 1.0), 0.0)
        rung = np.where(distance > 0, rung, 0)
        further = np.log1p(outside * math.expm1(-float(self.decay)))
        return np.asarray(further - float(self.decay) * rung - self._log_total(), dtype=np.float64)

    def _log_total(self) -> float:
        step, reach = float(self.decay), self._reaches()
        sizes = [1.0 + 2 * reach[0], *(2 * np.diff(reach)), 2 * self.most / -math.expm1(-step)]
        return math.log(math.fsum(size * math.exp(-step * t) for t, size in enumerate(sizes)))

    def _range(self, *others: RungChoice, reach: int = 0) -> Wholes:
        laws = (self, *others)
        # One period past the last width shows every difference of rungs that exists.
        wide = [sum(law.widths) + 4 * law.most + reach for law in laws]
        low = min(law.centre - w for law, w in zip(laws, wide, strict=True))
        high = max(law.centre + w for law, w in zip(laws, wide, strict=True))
        return np.arange(low, high + 1)

    def largest_ratio(self, other: RungChoice) -> float:
        values = self._range(other)
        return float(np.max(self.logs(values) - other.logs(values)))

    def ratios(self, other: RungChoice) -> tuple[Floats, Floats]:
        reach = math.ceil(40 / float(self.decay)) * self.most
        values = self._range(other, reach=reach)
        logs = self.logs(values)
        return np.exp(logs), logs - other.logs(values)

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        reach = math.ceil(-math.log(left_out) / float(self.decay)) * self.most
        values = self._range(reach=reach)
        return values.tolist(), np.exp(self.logs(values))
