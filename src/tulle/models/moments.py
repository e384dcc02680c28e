"""What mechanisms share that publish noisy sums of products and solve for the model."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core.dataset import Dataset
from tulle.core.errors import InputError
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.models.data import Table
from tulle.models.design import MOST_BITS, Frame, frame_of, moments
from tulle.models.error_law import UNKNOWN, CoefficientLaw
from tulle.models.fitting import Solution, in_own_units, solve
from tulle.models.model import describe
from tulle.models.queries import Regression

Floats = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]

TYPICAL_VARIANCE = 0.1
"""The variance of a scaled feature of made-up people: few columns fill their bounds evenly."""


@dataclass(frozen=True)
class Places:
    """The coordinates that get noise: sums of products (i, j) with i <= j, then with the target."""

    pairs: tuple[tuple[int, int], ...]
    targets: int

    @classmethod
    def of(cls, frame: Frame) -> Places:
        """Return all coordinates, but for the number of rows where that is public."""
        skip = frame.unit == "row" and frame.intercept
        pairs = tuple(
            (i, j)
            for i in range(frame.size)
            for j in range(i, frame.size)
            if not (skip and i == j == 0)
        )
        return cls(pairs, frame.size)

    def pack(self, products: Any, crossed: Any) -> list[Any]:
        """Return the coordinates of a matrix and a vector as one list."""
        return [products[i][j] for i, j in self.pairs] + [crossed[i] for i in range(self.targets)]

    def unpack(self, packed: Any, products: Any, crossed: Any) -> None:
        """Write a list of coordinates into a matrix, symmetric, and a vector."""
        for place, (i, j) in enumerate(self.pairs):
            products[i][j] = products[j][i] = packed[place]
        crossed[:] = packed[len(self.pairs) :]


class MomentMechanism(Mechanism):
    """Add noise to the exact sums of products, then minimise the quadratic that they define."""

    kind: ClassVar[str] = "table"
    noise: ClassVar[str]

    def supports(self, query: Query, unit: Unit) -> bool:
        return isinstance(query, Regression) and unit.name in ("participant", "row")

    @abstractmethod
    def spreads(self, terms: Terms, settings: Parameters) -> list[Fraction]:
        """Return the scale (of Gaussian noise the variance) of each coordinate, in steps."""

    @abstractmethod
    def draw(self, spread: Fraction, count: int, source: Source | None) -> Wholes:
        """Draw so many numbers of noise."""

    @abstractmethod
    def variance(self, spread: Fraction, bits: int) -> float:
        """Return the variance of such noise, in units of the scaled data."""

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Table)
        frame = frame_for(terms)
        centre = self.centre(terms, settings, dataset)
        spreads = self.spreads(terms, settings)
        noisy = np.array(centre, dtype=np.int64)
        groups = {spread: group for group, spread in enumerate(dict.fromkeys(spreads))}
        member = np.array([groups[spread] for spread in spreads])
        for spread, group in groups.items():
            where = member == group
            noisy[where] += self.draw(spread, int(where.sum()), source)
        return self.finish(terms, settings, frame, [int(entry) for entry in noisy])

    def centre(self, terms: Terms, settings: Parameters, table: Table) -> list[int]:
        """Return the exact sums that noise is added to, in steps."""
        frame = frame_for(terms)
        products, crossed = moments(frame, table, settings["bits"])
        return [int(entry) for entry in Places.of(frame).pack(products, crossed)]

    def finish(self, terms: Terms, settings: Parameters, frame: Frame, noisy: list[int]) -> Outcome:
        """Return the model that noisy sums define; post-processing."""
        solution, variances = self._solve(terms, settings, frame, noisy)
        value = in_own_units(frame, solution.scaled * (2.0 if frame.logistic else 1.0))
        law = None if frame.logistic else self._law(frame, solution, *variances)
        return Outcome(value, law, {"model": describe(frame, terms.facts)})

    def _solve(
        self, terms: Terms, settings: Parameters, frame: Frame, noisy: list[int]
    ) -> tuple[Solution, tuple[Floats, Floats]]:
        places, bits = Places.of(frame), int(settings["bits"])
        products, crossed = np.zeros((frame.size, frame.size)), np.zeros(frame.size)
        if frame.unit == "row" and frame.intercept:
            products[0, 0] = float(frame.rows or 0)
        places.unpack([n / 4**bits for n in noisy], products, crossed)
        variances = self._variances(terms, settings, frame)
        return solve(frame, products, crossed, variances[0]), variances

    def _variances(self, terms: Terms, settings: Parameters, frame: Frame) -> tuple[Floats, Floats]:
        spreads = self.spreads(terms, settings)
        known = {s: self.variance(s, int(settings["bits"])) for s in set(spreads)}
        products, crossed = np.zeros((frame.size, frame.size)), np.zeros(frame.size)
        Places.of(frame).unpack([known[s] for s in spreads], products, crossed)
        return products, crossed

    def _law(
        self, frame: Frame, solution: Solution, products: Floats, crossed: Floats
    ) -> CoefficientLaw:
        size = frame.count + 1
        if solution.trimmed:
            return CoefficientLaw(self.noise, (UNKNOWN,) * size, (0.0,) * size)
        covariance = noise_covariance(solution.scaled, products, crossed)
        shape = frame.transform() @ solution.inverse
        deviations = np.sqrt(np.einsum("ij,jk,ik->i", shape, covariance, shape))
        bias = shape @ (solution.penalty * solution.scaled)
        return CoefficientLaw(self.noise, tuple(deviations.tolist()), tuple(bias.tolist()))

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        frame = frame_for(terms)
        found = typical_moments(frame, like)
        if found is None:
            return Prediction(None, None)
        products, at = found
        noise, crossed = self._variances(terms, settings, frame)
        # For a logistic model the coefficients are twice those of the least squares.
        solution = solve(frame, products, products @ at, noise)
        covariance = noise_covariance(at, noise, crossed)
        factor = 2.0 if frame.logistic else 1.0
        short = flattening(frame, products, factor * at)
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


def flattening(frame: Frame, products: Floats, at: Floats) -> Floats:
    """Return by how much the second-order logistic loss shortens coefficients, roughly.

    Over log-odds of variance s² the logistic curve is sqrt(1 + pi·s²/8) times flatter than at 0.
    """
    if not frame.logistic or not frame.rows:
        return np.zeros(frame.size)
    start = int(frame.intercept)
    spread = float(at[start:] @ products[start:, start:] @ at[start:]) / frame.rows
    return np.asarray(at * (1 - 1 / np.sqrt(1 + np.pi * spread / 8)))


def predicted(
    frame: Frame,
    inverse: Floats,
    covariance: Floats,
    pull: Floats,
    factor: float,
    mechanism: Any,
    short: Floats | float = 0.0,
) -> Prediction:
    """Return the error to expect: of coefficients in own units, and the mean of the scaled ones."""
    scaled = factor * np.sqrt(np.diag(inverse @ covariance @ inverse))
    pulled = factor * np.abs(inverse @ pull)
    shape = frame.transform() @ inverse * factor
    deviations = np.sqrt(np.einsum("ij,jk,ik->i", shape, covariance, shape))
    law = CoefficientLaw(
        mechanism.noise, tuple(deviations.tolist()), tuple((shape @ pull).tolist())
    )
    mean = float(np.mean(np.sqrt(scaled**2 * 2 / np.pi) + pulled + np.abs(short)))
    return Prediction(None, law, mean)


def choose_bits(query: Regression, largest: Fraction, limit: int) -> int:
    """Return the finest resolution at which noise of this spread (at 0 bits) can be drawn.

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
