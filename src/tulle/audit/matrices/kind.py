"""The audit's view of binary matrices: all small ones, per row and per cell."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.bits import BitPattern, Noise, number_of
from tulle.audit.engine.broken import name_of
from tulle.audit.engine.kind import AuditView, Description
from tulle.audit.engine.world import World
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query, Shape
from tulle.core.unit import Unit
from tulle.core.validate import rational
from tulle.matrices.binary.coupled import CoupledSettings
from tulle.matrices.binary.data import BinaryMatrix, all_matrices
from tulle.matrices.binary.outcome import shape_of
from tulle.matrices.binary.queries import Xor, xor
from tulle.matrices.binary.two_level import TwoLevelSettings


@dataclass(frozen=True)
class AskedMatrix(Query):
    """A question of the audit: a family, a unit, and couplings that fit any shape."""

    family: str
    unit: str
    couplings: str = ""
    name: ClassVar[str] = "xor"
    kind: ClassVar[str] = "matrix"
    shape: ClassVar[Shape] = "object"

    def truth(self, dataset: BinaryMatrix) -> Any:
        return dataset.to_numpy()

    def fit(self, rows: int, columns: int) -> Xor:
        """Return the question proper for one shape."""
        if self.family == "general":
            return xor("general", pi=_PI[self.couplings](rows * columns))
        return xor()

    def __str__(self) -> str:
        return f"xor({', '.join(filter(None, (self.family, self.couplings)))}) per {self.unit}"


def _square(size: int, entry: Callable[[int, int], Fraction]) -> list[list[Fraction]]:
    return [[entry(i, j) for j in range(size)] for i in range(size)]


_PI: dict[str, Callable[[int], Any]] = {
    "attractive": lambda size: _square(
        size, lambda i, j: Fraction(-2) if i == j else Fraction(3, 10)
    ),
    # Couplings of both signs, no two cells alike.
    "mixed": lambda size: _square(
        size, lambda i, j: Fraction(-3 - i if i == j else (i + 1) * (j + 1) % 5 - 2)
    ),
    "ones": lambda size: _square(size, lambda i, j: Fraction(1)),
}

QUESTIONS: dict[str, tuple[AskedMatrix, ...]] = {
    "cells": (AskedMatrix("optimal", "cell"),),
    "two_level": (AskedMatrix("optimal", "row"),),
    "coupled": tuple(
        AskedMatrix("general", unit, name)
        for unit in ("cell", "row")
        for name in ("attractive", "mixed")
    ),
}
"""The questions on which each mechanism is examined."""


# --- closed forms -----------------------------------------------------------------------------


def patterns(rows: int, columns: int) -> Any:
    """Return all patterns of a shape as an array (pattern, row, column)."""
    places = np.arange(1 << rows * columns)
    return (places[:, None] >> np.arange(rows * columns) & 1).reshape(-1, rows, columns)


@lru_cache(maxsize=256)
def flips_noise(rows: int, columns: int, epsilon: Fraction) -> Noise:
    """Return independent flips that cost epsilon each."""
    return Noise(-float(epsilon) * patterns(rows, columns).sum(axis=(1, 2)))


@lru_cache(maxsize=256)
def two_level_noise(rows: int, columns: int, epsilon: Fraction, cut: int) -> Noise:
    """Return rows of which those with more than ``cut`` flips cost epsilon."""
    heavy = patterns(rows, columns).sum(axis=2) > cut
    return Noise(-float(epsilon) * heavy.sum(axis=1))


@lru_cache(maxsize=256)
def quadratic_noise(query: Xor, rows: int, columns: int, scale: Fraction) -> Noise:
    """Return exp(scale · b'Πb), for Π of a single row or of the whole matrix."""
    pi = dense(query)
    found = patterns(rows, columns)
    if len(pi) == rows * columns:
        found = found.reshape(len(found), 1, -1)
    return Noise(float(scale) * np.einsum("bri,ij,brj->b", found, pi, found))


def dense(query: Xor) -> Any:
    """Return the question's Π."""
    pi = np.zeros((query.size or 0, query.size or 0))
    for i, j, value in query.entries or ():
        pi[i, j] = pi[j, i] = float(rational(value))
    return pi


def noise_of(name: str, terms: Terms, settings: Parameters) -> Noise:
    """Return the law of a registered mechanism's noise from its public settings."""
    shape = shape_of(terms)
    if name == "cells":
        return flips_noise(*shape, terms.epsilon)
    if name == "two_level":
        return two_level_noise(*shape, terms.epsilon, TwoLevelSettings.read(settings).cut)
    assert isinstance(terms.query, Xor)
    # The settings' scale is for Π in whole numbers; here Π is taken as it was written.
    whole = np.lcm.reduce([rational(v).denominator for _, _, v in terms.query.entries or ()])
    return quadratic_noise(terms.query, *shape, CoupledSettings.read(settings).scale * int(whole))


def describe(name: str, terms: Terms, settings: Parameters, matrix: BinaryMatrix) -> Description:
    """Describe a pattern XORed onto the matrix."""
    law = BitPattern(number_of(matrix.to_numpy()), noise_of(name, terms, settings))
    return Description((("answer", law),))


def matrix_key(dataset: Dataset) -> Hashable:
    """Return what tells matrices apart: their records. For made-up matrices only."""
    assert isinstance(dataset, BinaryMatrix)
    return dataset.shape, dataset.to_numpy().tobytes()


@registry.register("audit", "matrix", "view")
class AuditedMatrices(AuditView):
    """Matrices of up to six cells, in every shape, per row and per cell."""

    name: ClassVar[str] = "matrix"

    def world(self, size: int) -> World:
        return _world(size, "row")

    def world_for(self, size: int, query: Query) -> World:
        return _world(size, query.unit if isinstance(query, AskedMatrix) else "row")

    def asked(self, mechanism: Mechanism) -> Sequence[Query]:
        return QUESTIONS.get(mechanism.name, ())

    def proper(self, query: Query, dataset: Dataset, unit: Unit) -> tuple[Query, Unit]:
        assert isinstance(query, AskedMatrix)
        assert isinstance(dataset, BinaryMatrix)
        return query.fit(*dataset.shape), Unit.of(query.unit)

    def law_of(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters, dataset: Dataset
    ) -> Description:
        assert isinstance(dataset, BinaryMatrix)
        return describe(name_of(mechanism), terms, settings, dataset)

    def finish(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters
    ) -> Callable[[tuple[Any, ...]], Hashable]:
        return lambda parts: int(parts[0])

    def observe(self, outcome: Outcome) -> Hashable:
        return number_of(outcome.value)

    def small(self, query: Query) -> tuple[Dataset, Dataset]:
        changed = (
            [[0, 1], [1, 1]] if isinstance(query, AskedMatrix) and query.unit == "row" else None
        )
        return BinaryMatrix([[1, 0], [1, 1]]), BinaryMatrix(changed or [[0, 0], [1, 1]])

    def show(self, dataset: Dataset) -> str:
        assert isinstance(dataset, BinaryMatrix)
        return "/".join("".join(map(str, row)) for row in dataset.to_numpy().tolist())

    def odd_questions(self) -> Sequence[Query]:
        two = [[-1, "0.5"], ["0.5", -2]]
        return [xor(), xor("general", pi=two)]


@lru_cache(maxsize=32)
def _world(cells: int, unit: str) -> World:
    shapes = [(n, cells // n) for n in range(1, cells + 1) if cells % n == 0]
    made = (matrix for shape in shapes for matrix in all_matrices(*shape))
    return World.of(f"all matrices of {cells} cells, per {unit}", unit, made, matrix_key)
