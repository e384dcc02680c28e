"""What mechanisms share that publish noisy sums of products and solve for the model."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.arrays import Floats, Wholes
from tulle.core.dataset import Dataset
from tulle.core.error_law import ErrorLaw, check_level
from tulle.core.errors import InputError
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.source import Source
from tulle.models.data import Table
from tulle.models.design import MOST_BITS, Frame, frame_of, moments
from tulle.models.fitting import Solution, fit_scaled_logistic, in_own_units, solve
from tulle.models.model import describe
from tulle.models.queries import Regression
from tulle.noise.charge import WeightedCharge, charge

NOISE_LAW = "noise_law"
"""Where a release keeps the law of its noise when that is not the law of its whole error."""


UNKNOWN = 1e300
"""The deviation of a coefficient about which a release says nothing."""


@registry.register("law", "table", "coefficients")
@dataclass(frozen=True)
class CoefficientLaw(ErrorLaw):
    """Released minus least-squares coefficients: a deviation for each, and a bias of the penalty.

    The released coefficients w solve (M + P)w = v with noisy M and v and a known penalty P, so
    that w - truth = (M + P)^-1·(e - E·truth - P·truth) exactly, where e and E are the noise. With
    w in place of the truth on the right, that has the covariance from which ``deviations`` come.
    Noise is Gaussian, or a sum of Laplace variables, whose tails lie between those two laws. A sum
    of K-norm variables is a gamma variable times a sum of uniform ones, taken for Gaussian.
    """

    noise: str
    deviations: tuple[float, ...]
    bias: tuple[float, ...]
    name: ClassVar[str] = "coefficients"

    def __post_init__(self) -> None:
        object.__setattr__(self, "deviations", tuple(self.deviations))
        object.__setattr__(self, "bias", tuple(self.bias))

    def widths(self, level: float) -> Floats:
        """Return a half-width for each coefficient; all hold at once with this probability."""
        count = len(self.deviations)
        alpha = -math.expm1(math.log(check_level(level)) / count)
        reach = -NormalDist().inv_cdf(alpha / 2)
        if self.noise == "knorm":
            reach = gamma_reach(count, level)
        elif self.noise != "gaussian":
            reach = max(reach, -math.log(alpha) / math.sqrt(2))
        widths: Floats = reach * np.array(self.deviations) + np.abs(np.array(self.bias))
        return widths

    def half_width(self, level: float) -> float:
        """Return the width of the least certain coefficient."""
        return float(self.widths(level).max())

    def interval(self, value: Any, level: float) -> tuple[Any, Any]:
        """Return the ends for each coefficient."""
        widths = self.widths(level)
        return value - widths, value + widths


@lru_cache(maxsize=64)
def gamma_reach(count: int, level: float) -> float:
    """Return what no sum of K-norm noise exceeds so often, of ``count`` at once, in deviations.

    All of them share the gamma variable; given it, they are taken for Gaussian (Sidak).

    Example:
        >>> round(gamma_reach(1, 0.95), 2), round(gamma_reach(14, 0.95), 2)
        (2.13, 3.26)
    """
    from scipy.special import gammaincinv, ndtr

    places = (np.arange(4096) + 0.5) / 4096
    sizes = gammaincinv(count + 1, places) / math.sqrt((count + 1) * (count + 2))
    low, high = 0.0, 400.0
    for _ in range(60):
        middle = (low + high) / 2
        if float(np.mean((1 - 2 * ndtr(-middle / sizes)) ** count)) < level:
            low = middle
        else:
            high = middle
    return high


TYPICAL_VARIANCE = 0.1
"""The variance of a scaled feature of made-up people: few columns fill their bounds evenly."""


@dataclass(frozen=True, eq=False)
class Places:
    """The coordinates that get noise: sums of products (i, j) with i <= j, then with the target."""

    first: Wholes
    second: Wholes
    """The places (i, j) of the products."""
    targets: int

    @classmethod
    def of(cls, frame: Frame) -> Places:
        """Return all coordinates, but for the number of rows where that is public."""
        first, second = np.triu_indices(frame.size)
        skip = int(frame.unit == "row" and frame.intercept)
        return cls(first[skip:], second[skip:], frame.size)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The places of the products, one after the other."""
        return list(zip(self.first.tolist(), self.second.tolist(), strict=True))

    def pack(self, products: Any, crossed: Any) -> npt.NDArray[Any]:
        """Return the coordinates of a matrix and a vector as one array."""
        chosen = np.asarray(products)[self.first, self.second]
        return np.concatenate((chosen, np.asarray(crossed)))

    def unpack(self, packed: Floats, products: Floats, crossed: Floats) -> None:
        """Write coordinates into a matrix, symmetric, and a vector."""
        count = len(self.first)
        products[self.first, self.second] = products[self.second, self.first] = packed[:count]
        crossed[:] = packed[count:]


@dataclass(frozen=True, eq=False)
class Scales:
    """The scale (of Gaussian noise the variance) of each coordinate's noise, in steps."""

    values: tuple[Fraction, ...]
    """The few that there are."""
    kinds: Wholes
    """Which of them each coordinate has."""

    def each(self) -> list[Fraction]:
        """Return them coordinate by coordinate."""
        return [self.values[kind] for kind in self.kinds.tolist()]


@dataclass(frozen=True, eq=False)
class MomentSettings(Settings):
    """What the settings of all mechanisms on sums of products have."""

    bits: int
    """Columns are rounded to so many binary digits, and sums are in steps of these."""


class MomentMechanism(Mechanism):
    """Add noise to the exact sums of products, then minimise the quadratic that they define."""

    kind: ClassVar[str] = "table"
    noise: ClassVar[str]

    @abstractmethod
    def scales(self, terms: Terms, settings: Parameters) -> Scales:
        """Return how much noise each coordinate gets."""

    @abstractmethod
    def draw(self, scale: Fraction, count: int, source: Source | None) -> Wholes:
        """Draw so many numbers of noise."""

    @abstractmethod
    def variance(self, scale: Fraction, bits: int) -> float:
        """Return the variance of such noise, in units of the scaled data."""

    @abstractmethod
    def worst(
        self, terms: Terms, settings: Parameters, kinds: Sequence[int], rates: Sequence[Fraction]
    ) -> Fraction:
        """Return the most that one person's moves times the rates of these kinds add up to."""

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Table)
        frame = frame_for(terms)
        centre = self.centre(terms, settings, dataset)
        scales = self.scales(terms, settings)
        noisy = np.array(centre, dtype=np.int64)
        kinds = [kind for kind in range(len(scales.values)) if (scales.kinds == kind).any()]
        with charge(WeightedCharge(lambda rates: self.worst(terms, settings, kinds, rates))):
            for kind in kinds:
                where = scales.kinds == kind
                noisy[where] += self.draw(scales.values[kind], int(where.sum()), source)
        return self.finish(terms, settings, frame, noisy)

    def centre(self, terms: Terms, settings: Parameters, table: Table) -> list[int]:
        """Return the exact sums that noise is added to, in steps."""
        frame = frame_for(terms)
        packed = Places.of(frame).pack(*moments(frame, table, MomentSettings.read(settings).bits))
        found: list[int] = packed.tolist()
        return found

    def finish(self, terms: Terms, settings: Parameters, frame: Frame, noisy: Wholes) -> Outcome:
        """Return the model that noisy sums define; post-processing."""
        solution, variances = self._solve(terms, settings, frame, noisy)
        # For a logistic model the coefficients are twice those of the least squares.
        factor = 2.0 if frame.logistic else 1.0
        value = in_own_units(frame, solution.scaled * factor)
        law = self._law(frame, solution, factor, *variances)
        shown: dict[str, Any] = {"model": describe(frame, terms.facts)}
        if frame.logistic:
            # It leaves out what the second-order loss does: not the law of the whole error.
            return Outcome(value, None, shown | {NOISE_LAW: law.to_json()})
        return Outcome(value, law, shown)

    def _solve(
        self, terms: Terms, settings: Parameters, frame: Frame, noisy: Wholes
    ) -> tuple[Solution, tuple[Floats, Floats]]:
        places, bits = Places.of(frame), MomentSettings.read(settings).bits
        products, crossed = np.zeros((frame.size, frame.size)), np.zeros(frame.size)
        if frame.unit == "row" and frame.intercept:
            products[0, 0] = float(frame.rows or 0)
        places.unpack(np.asarray(noisy) / 4**bits, products, crossed)
        variances = self._variances(terms, settings, frame)
        return solve(frame, products, crossed, variances[0]), variances

    def _variances(self, terms: Terms, settings: Parameters, frame: Frame) -> tuple[Floats, Floats]:
        scales = self.scales(terms, settings)
        known = np.array(
            [self.variance(s, MomentSettings.read(settings).bits) for s in scales.values]
        )
        products, crossed = np.zeros((frame.size, frame.size)), np.zeros(frame.size)
        Places.of(frame).unpack(known[scales.kinds], products, crossed)
        return products, crossed

    def _law(
        self,
        frame: Frame,
        solution: Solution,
        factor: float,
        products: Floats,
        crossed: Floats,
    ) -> CoefficientLaw:
        size = frame.count + 1
        if solution.trimmed:
            return CoefficientLaw(self.noise, (UNKNOWN,) * size, (0.0,) * size)
        covariance = noise_covariance(solution.scaled, products, crossed)
        shape = frame.transform() @ solution.inverse * factor
        deviations = deviations_through(shape, covariance)
        bias = shape @ (solution.penalty * solution.scaled)
        return CoefficientLaw(self.noise, tuple(deviations.tolist()), tuple(bias.tolist()))

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        frame = frame_for(terms)
        found = typical_moments(frame, like)
        if found is None:
            return Prediction(None, None)
        products, at = found
        noise, crossed = self._variances(terms, settings, frame)
        solution = solve(frame, products, products @ at, noise)
        covariance = noise_covariance(at, noise, crossed)
        factor = 2.0 if frame.logistic else 1.0
        short = flattening(frame, products, factor * at, like)
        return predicted(
            frame, solution.inverse, covariance, solution.penalty * at, factor, self, short
        )


def frame_for(terms: Terms) -> Frame:
    """Return the public shape of the question asked."""
    assert isinstance(terms.query, Regression)
    return frame_of(terms.query, terms.facts, terms.unit.name)


def noise_covariance(at: Floats, products: Floats, crossed: Floats) -> Floats:
    """Return the covariance of e - E·w for independent noise e and symmetric noise E."""
    covariance = products * np.outer(at, at)
    np.fill_diagonal(covariance, crossed + products @ at**2)
    return covariance


def deviations_through(shape: Floats, covariance: Floats) -> Floats:
    """Return the standard deviations of shape·x for x of this covariance."""
    return np.asarray(np.sqrt(np.sum((shape @ covariance) * shape, axis=1)))


def typical_moments(frame: Frame, like: Dataset | None) -> tuple[Floats, Floats] | None:
    """Return sums of products and least-squares coefficients on which errors are predicted.

    Of the public stand-in, or of made-up people: independent features, coefficients of equal size
    that fill the target's range.
    """
    if isinstance(like, Table):
        products, crossed = moments(frame, like, MOST_BITS)
        matrix = np.ldexp(products.astype(np.float64), -2 * MOST_BITS)
        against = np.ldexp(crossed.astype(np.float64), -2 * MOST_BITS)
        return matrix, np.linalg.pinv(matrix, hermitian=True) @ against
    if not frame.rows:
        return None
    even = min(TYPICAL_VARIANCE, float(frame.length_squared) / frame.count)
    diagonal = np.full(frame.size, frame.rows * even)
    if frame.intercept:
        diagonal[0] = float(frame.rows)
    return np.diag(diagonal), np.full(frame.size, 1 / np.sqrt(frame.size))


def flattening(frame: Frame, products: Floats, at: Floats, like: Dataset | None) -> Floats:
    """Return by how much the second-order logistic loss shortens coefficients.

    On a public stand-in it is the difference of the two fits. Without one, roughly: over log-odds
    of variance s² the logistic curve is sqrt(1 + pi·s²/8) times flatter than at 0.
    """
    if frame.logistic and isinstance(like, Table):
        return np.asarray(fit_scaled_logistic(frame, like)[0] - at)
    if not frame.logistic or not frame.rows:
        return np.zeros(frame.size)
    start = int(frame.intercept)
    variance = float(at[start:] @ products[start:, start:] @ at[start:]) / frame.rows
    return np.asarray(at * (1 - 1 / np.sqrt(1 + np.pi * variance / 8)))


def predicted(
    frame: Frame,
    inverse: Floats,
    covariance: Floats,
    pull: Floats,
    factor: float,
    mechanism: Any,
    short: Floats | float = 0.0,
) -> Prediction:
    """Return the error to expect: of coefficients in own units, and the mean of the scaled ones.

    ``pull`` is what a penalty adds to the slope; ``short`` is what coefficients lose otherwise.
    """
    scaled = factor * deviations_through(inverse, covariance)
    pulled = factor * np.abs(inverse @ pull)
    shape = frame.transform() @ inverse * factor
    deviations = deviations_through(shape, covariance)
    bias = shape @ pull + frame.transform() @ np.broadcast_to(short, frame.size)
    law = CoefficientLaw(mechanism.noise, tuple(deviations.tolist()), tuple(bias.tolist()))
    mean = float(np.mean(np.sqrt(scaled**2 * 2 / np.pi) + pulled + np.abs(short)))
    return Prediction(None, law, mean)


def choose_bits(query: Regression, largest: Fraction, limit: int) -> int:
    """Return the finest resolution at which noise of this scale (at 0 bits) can be drawn.

    ``largest`` grows fourfold with each bit and must stay below ``limit``.

    Raises:
        InputError: when even the coarsest is too fine; it depends on public numbers only.
    """
    if query.bits is not None:
        fine = query.bits
    else:
        fine = MOST_BITS
        while fine > 0 and largest * 4**fine > limit:
            fine -= 1
    if largest * 4**fine > limit:
        raise InputError(
            "The noise has too many steps to be drawn: take a larger epsilon or gamma, or fewer "
            "features or bits."
        )
    return fine
