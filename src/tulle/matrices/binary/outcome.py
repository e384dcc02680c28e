"""Pieces that all XOR mechanisms share."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core.dataset import Dataset
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.matrices.binary.data import BinaryMatrix
from tulle.matrices.binary.queries import Xor
from tulle.noise.xor.limits import FlipLaw


@dataclass(frozen=True, eq=False)
class XorSettings(Settings):
    """What the release says about its noise, whatever the family."""

    rows: int
    columns: int
    epsilon: Fraction
    flip: float
    """Which share of the cells this noise flips."""
    least_flip: float
    """The least share that any mechanism can flip at this epsilon if one cell is all that
    changes."""


class XorMechanism(Mechanism):
    """A mechanism that XORs a noise pattern, drawn without looking at the data, onto a matrix.

    A neighbour differs in some cells S, and gives the same release when the noise differs in S.
    So what is guaranteed is a property of the noise alone: the largest ratio of the probabilities
    of two patterns that differ in cells of one unit.
    """

    kind: ClassVar[str] = "matrix"

    def supports(self, query: Query, unit: Unit) -> bool:
        return isinstance(query, Xor) and self.fits(query, unit.name)

    @abstractmethod
    def fits(self, query: Xor, unit: str) -> bool:
        """Say whether it draws the noise of this family for this unit."""

    @abstractmethod
    def noise(
        self, terms: Terms, settings: Parameters, source: Source | None
    ) -> npt.NDArray[np.uint8]:
        """Draw the noise pattern, in the shape of the matrix."""

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        known = XorSettings.read(settings)
        law = FlipLaw(known.flip, known.rows * known.columns)
        return Prediction(law, law, known.flip)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, BinaryMatrix)
        noise = self.noise(terms, settings, source)
        noise ^= dataset.to_numpy()
        return Outcome(noise, None, {"range": [0, 1]})


def shape_of(terms: Terms) -> tuple[int, int]:
    """Return the public shape of the matrix."""
    return int(terms.facts["rows"]), int(terms.facts["columns"])


def common_settings(terms: Terms, flip: float) -> dict[str, Any]:
    """Return the fields of :class:`XorSettings`, for those of a family."""
    least = 1 / (1 + math.exp(min(float(terms.epsilon), 700.0)))
    return XorSettings(*shape_of(terms), terms.epsilon, flip, least).typed()


def xor_query(terms: Terms) -> Xor:
    """Return the question as one for an XOR release."""
    assert isinstance(terms.query, Xor)
    return terms.query
