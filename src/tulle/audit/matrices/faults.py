"""Broken twins of the mechanisms on binary matrices."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.bits import Noise, Pattern, number_of
from tulle.audit.engine.faults import FaithfulTwin, Twin
from tulle.audit.engine.kind import Description
from tulle.audit.matrices.kind import (
    QUESTIONS,
    Asked,
    dense,
    describe,
    flips_noise,
    noise_of,
    quadratic_noise,
    two_level_noise,
)
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.matrices.binary.cells import Cells
from tulle.matrices.binary.coupled import CoupledNoise
from tulle.matrices.binary.data import BinaryMatrix
from tulle.matrices.binary.queries import Xor
from tulle.matrices.binary.two_level import TwoLevel
from tulle.noise import SeededSource, choose_log_weights


class MatrixTwin(FaithfulTwin):
    """A twin that draws its noise from a wrong law, looked up pattern by pattern."""

    kind: ClassVar[str] = "matrix"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)

    def wrong(self, terms: Terms, settings: Parameters, matrix: BinaryMatrix) -> Noise:
        """Return the law of the noise, fault included."""
        return noise_of(self.mimics, terms, settings)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, BinaryMatrix)
        logs = self.wrong(terms, settings, dataset).logs
        drawn = choose_log_weights((logs.max() - logs).tolist(), source=source)
        bits = drawn >> np.arange(dataset.shape[0] * dataset.shape[1]) & 1
        return Outcome(dataset.to_numpy() ^ bits.reshape(dataset.shape).astype(np.uint8), None)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        law = Pattern(number_of(dataset.to_numpy()), self.wrong(terms, settings, dataset))
        return Description((("answer", law),))


class HalfCells(MatrixTwin):
    """Coins for twice the epsilon."""

    name: ClassVar[str] = "cells, half the noise"
    mimics: ClassVar[str] = "cells"
    original: ClassVar[type[Mechanism]] = Cells
    fault: ClassVar[str] = "flips as rare as twice the epsilon would allow"
    questions: ClassVar[Sequence[Query]] = QUESTIONS["cells"]

    def wrong(self, terms: Terms, settings: Parameters, matrix: BinaryMatrix) -> Noise:
        return flips_noise(*matrix.shape, 2 * terms.epsilon)


class OnesOnly(MatrixTwin):
    """Only ones are flipped, so that every released one is true."""

    name: ClassVar[str] = "cells, ones only"
    mimics: ClassVar[str] = "cells"
    original: ClassVar[type[Mechanism]] = Cells
    fault: ClassVar[str] = "no one is invented: each released one is certain"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = QUESTIONS["cells"]

    def wrong(self, terms: Terms, settings: Parameters, matrix: BinaryMatrix) -> Noise:
        return _masked(number_of(matrix.to_numpy()), *matrix.shape, terms.epsilon)


@lru_cache(maxsize=1024)
def _masked(truth: int, rows: int, columns: int, epsilon: Fraction) -> Noise:
    logs = flips_noise(rows, columns, epsilon).logs.copy()
    logs[(np.arange(len(logs)) & ~truth) != 0] = -np.inf
    return Noise(logs)


class RowAsCell(MatrixTwin):
    """Randomized response in every cell, charged as if a row were one cell."""

    name: ClassVar[str] = "two_level, a row charged as a cell"
    mimics: ClassVar[str] = "two_level"
    original: ClassVar[type[Mechanism]] = TwoLevel
    fault: ClassVar[str] = "epsilon in every cell adds up over the cells of a row"
    questions: ClassVar[Sequence[Query]] = QUESTIONS["two_level"]

    def wrong(self, terms: Terms, settings: Parameters, matrix: BinaryMatrix) -> Noise:
        return flips_noise(*matrix.shape, terms.epsilon)


class CutByData(MatrixTwin):
    """The cut is the number of ones in the first row."""

    name: ClassVar[str] = "two_level, cut by data"
    mimics: ClassVar[str] = "two_level"
    original: ClassVar[type[Mechanism]] = TwoLevel
    fault: ClassVar[str] = "the shape of the noise tells how many ones a row has"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = QUESTIONS["two_level"]

    def wrong(self, terms: Terms, settings: Parameters, matrix: BinaryMatrix) -> Noise:
        cut = min(int(matrix.to_numpy()[0].sum()), matrix.shape[1] - 1)
        return two_level_noise(*matrix.shape, terms.epsilon, cut)


class PrintedCouplings(MatrixTwin):
    """Any Pi, priced by its Frobenius norm as theorem 1 does for one changed cell."""

    name: ClassVar[str] = "coupled, the printed condition"
    mimics: ClassVar[str] = "coupled"
    original: ClassVar[type[Mechanism]] = CoupledNoise
    fault: ClassVar[str] = "the norm of the eigenvalues is not the price of a cell"
    questions: ClassVar[Sequence[Query]] = (Asked("general", "cell", "ones"),)

    def wrong(self, terms: Terms, settings: Parameters, matrix: BinaryMatrix) -> Noise:
        assert isinstance(terms.query, Xor)
        norm = Fraction(float(np.linalg.norm(dense(terms.query))))
        return quadratic_noise(terms.query, *matrix.shape, terms.epsilon / norm)


class FiniteChain(MatrixTwin):
    """A Markov chain that is stopped after one sweep."""

    name: ClassVar[str] = "coupled, a finite chain"
    mimics: ClassVar[str] = "coupled"
    original: ClassVar[type[Mechanism]] = CoupledNoise
    fault: ClassVar[str] = "a chain that is stopped has not arrived at the law that was priced"
    questions: ClassVar[Sequence[Query]] = (Asked("general", "cell", "attractive"),)
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)

    def wrong(self, terms: Terms, settings: Parameters, matrix: BinaryMatrix) -> Noise:
        return _after_one_sweep(noise_of("coupled", terms, settings))


@lru_cache(maxsize=64)
def _after_one_sweep(noise: Noise) -> Noise:
    """Return the law after one heat-bath update of each cell, starting without any flip."""
    places = np.arange(len(noise.logs))
    law = (places == 0).astype(np.float64)
    for cell in range(len(places).bit_length() - 1):
        zero, one = places & ~(1 << cell), places | 1 << cell
        favour = noise.logs[one] - noise.logs[zero]
        chance = 1 / (1 + np.exp(np.where(places >> cell & 1, -favour, favour)))
        law = (law[zero] + law[one]) * chance
    return Noise(np.log(law))


class SeededMatrix(MatrixTwin):
    """The noise is the same every time."""

    fault: ClassVar[str] = "noise from a seeded source: who knows the seed can undo it"
    caught_by: ClassVar[tuple[str, ...]] = ("fresh noise", "sampler")

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        return self.original().run(terms, settings, dataset, SeededSource(7))

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return describe(self.mimics, terms, settings, dataset)

    @classmethod
    def all(cls) -> list[Twin]:
        """Return the twin of each mechanism."""
        made: list[Twin] = []
        for original in (Cells, TwoLevel, CoupledNoise):
            values = {
                "__doc__": f"{cls.__doc__} Mimics {original.name}.",
                "name": f"{original.name}, seeded",
                "mimics": original.name,
                "original": original,
                "questions": QUESTIONS[original.name][:1],
            }
            made.append(type(f"Seeded{original.__name__}", (cls,), values)())
        return made


@registry.register("audit", "matrix", "faults")
def matrix_twins() -> list[Twin]:
    """Return one of each twin."""
    return [
        *SeededMatrix.all(),
        HalfCells(),
        OnesOnly(),
        RowAsCell(),
        CutByData(),
        PrintedCouplings(),
        FiniteChain(),
    ]
