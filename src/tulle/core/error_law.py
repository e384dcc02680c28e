"""How wrong a released number may be: laws of the added noise, known to everyone.

A law answers one question: within what distance of the released value does the truth lie, with a
given probability? It is made of public numbers only, so it travels with the release.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar

from tulle.core import registry, validate
from tulle.core.errors import InputError
from tulle.core.validate import rational, text, widen_up

_SLICES = 12
"""How many equally likely parts of a law stand for it when its variance is computed."""


@dataclass(frozen=True)
class ErrorLaw(ABC):
    """The distribution of released value minus true value, or an upper bound on its spread."""

    name: ClassVar[str]

    @property
    def leaves_out(self) -> str:
        """What the error has besides, and the law does not cover, in a sentence for people."""
        return ""

    @property
    def wider(self) -> float:
        """How many times as wide intervals are as if no part of the law were secret."""
        return 1.0

    @abstractmethod
    def half_width(self, level: float) -> float:
        """Return a w such that the error is at most w in size with probability ``level``."""

    def of_one(self) -> ErrorLaw:
        """Return the law of one entry, where this one holds for many entries at once."""
        return self

    def interval(self, value: Any, level: float) -> tuple[Any, Any]:
        """Return the ends between which the truth lies with probability ``level``."""
        width = self.half_width(level)
        return value - width, value + width

    def variance(self) -> float:
        """Return about the mean squared error, from the law's quantiles but for its far tail."""
        sizes = [self.half_width((place + 0.5) / _SLICES) for place in range(_SLICES)]
        return math.fsum(size * size for size in sizes) / _SLICES

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {"law": self.name} | {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_parameters(cls, data: Mapping[str, Any]) -> ErrorLaw:
        """Build the law from what :meth:`to_json` wrote."""
        values = {}
        for field in fields(cls):
            if field.name not in data and field.default is not MISSING:
                continue  # written by an earlier version, which had no such thing
            value = data[field.name]
            values[field.name] = rational(value) if field.type == "Fraction" else value
        return cls(**values)


def secret_size(times: float) -> str:
    """Say how much wider an interval is because the size of the noise is secret.

    Example:
        >>> secret_size(956 / 434)
        '2.2 times as wide as if the size of the noise, which is secret, were known'
    """
    said = f"{times:.1f}" if times < 100 else "over 100"
    return f"{said} times as wide as if the size of the noise, which is secret, were known"


def _plain(value: Any) -> Any:
    return text(value) if isinstance(value, Fraction) else value


def law_from_json(data: Mapping[str, Any] | None) -> ErrorLaw | None:
    """Read a law that was written with :meth:`ErrorLaw.to_json`."""
    if data is None:
        return None
    for group in registry.groups("law"):
        known = registry.find("law", group)
        if data["law"] in known:
            law: ErrorLaw = known[data["law"]].from_parameters(data)
            return law
    raise InputError(
        f"The error law {data['law']!r} is not known to this version of tulle. "
        "Read this release with the version that wrote it."
    )


def check_level(level: float) -> float:
    """Return the level if it lies strictly between 0 and 1."""
    found = level if isinstance(level, float) else float(validate.number(level=level))
    if not 0 < found < 1:
        raise InputError(f"level must lie strictly between 0 and 1; got {validate.shown(level)}.")
    return found


@registry.register("law", "core", "exact")
@dataclass(frozen=True)
class ExactLaw(ErrorLaw):
    """No error at all: a public number."""

    name: ClassVar[str] = "exact"

    def half_width(self, level: float) -> float:
        """Return zero."""
        check_level(level)
        return 0.0


@registry.register("law", "core", "laplace")
@dataclass(frozen=True)
class LaplaceLaw(ErrorLaw):
    """Discrete Laplace noise of this scale on a lattice of this step, per entry.

    With ``count`` above one the half-width holds for that many independent entries at once. After
    post-processing the error is at most ``factor`` times that of the noise, plus ``slack``.
    """

    scale: Fraction
    step: Fraction = Fraction(1)
    count: int = 1
    factor: int = 1
    slack: float = 0.0
    name: ClassVar[str] = "laplace"

    def half_width(self, level: float) -> float:
        """Return the half-width: P(|X| > w) = 2·q^(w+1) / (1 + q), with q = exp(-1/scale)."""
        alpha = 1 - check_level(level)
        if self.count > 1:
            alpha = -math.expm1(math.log1p(-alpha) / self.count)
        scale = float(self.scale)
        q = math.exp(-1 / scale)
        tail = math.log(2 / ((1 + q) * alpha)) * scale - 1
        steps = math.ceil(widen_up(tail))
        width = widen_up(steps * float(self.step)) if steps > 0 else 0.0
        return self.factor * width + self.slack

    def of_one(self) -> LaplaceLaw:
        """Return the law of one entry."""
        return replace(self, count=1)

    def variance(self) -> float:
        """Return 2q / (1 - q)² steps squared, which is about 2·scale²; times the factor squared."""
        rate = 1 / float(self.scale)
        steps = 0.5 / math.sinh(rate / 2) ** 2 if rate < 700 else 0.0
        return steps * (self.factor * float(self.step)) ** 2


@registry.register("law", "core", "knorm")
@dataclass(frozen=True)
class KNormLaw(ErrorLaw):
    """K-norm noise in L-infinity of this scale on a lattice of this step, for ``count`` entries.

    The half-width holds for all entries at once, of ``draws`` independent draws. Rounding adds at
    most ``slack``.
    """

    scale: Fraction
    count: int
    step: Fraction = Fraction(1)
    draws: int = 1
    slack: float = 0.0
    name: ClassVar[str] = "knorm"

    def half_width(self, level: float) -> float:
        """Return the half-width, from the law of the largest of all entries.

        Each lattice point x stands for the reals b that round to it; max |b_i| is within half a
        step of max |x_i|. So x is drawn with a density that is at most exp(1/scale) times that of
        continuous K-norm noise, whose largest entry has a gamma law of shape ``count``.
        """
        from scipy.special import gammainccinv

        alpha = -math.expm1(math.log(check_level(level)) / self.draws)
        scale = float(self.scale)
        reach = float(gammainccinv(self.count, alpha * math.exp(-1 / scale)))
        steps = math.floor(widen_up(reach * scale + 0.5))
        return widen_up(steps * float(self.step)) + self.slack

    def variance(self) -> float:
        """Return that of one entry: (count + 1)·(count + 2)/3 scales squared."""
        return (self.count + 1) * (self.count + 2) / 3 * float(self.scale * self.step) ** 2


@registry.register("law", "core", "gaussian")
@dataclass(frozen=True)
class GaussianLaw(ErrorLaw):
    """Gaussian noise of this standard deviation, for ``count`` independent entries at once.

    The deviation is in steps of a lattice.
    """

    sigma: Fraction
    count: int = 1
    step: Fraction = Fraction(1)
    slack: float = 0.0
    """What else the answer may be off by, whatever the noise."""
    name: ClassVar[str] = "gaussian"

    def of_one(self) -> GaussianLaw:
        """Return the law of one entry."""
        return replace(self, count=1)

    def half_width(self, level: float) -> float:
        """Return the half-width from the normal quantile, one lattice step included."""
        alpha = 1 - check_level(level)
        if self.count > 1:
            alpha = -math.expm1(math.log1p(-alpha) / self.count)
        steps = widen_up(float(self.sigma) * -NormalDist().inv_cdf(alpha / 2)) + 1.0
        return steps * float(self.step) + self.slack
