"""The leading eigenvectors of a public, noisy matrix. All of it is post-processing.

Vectors of real networks are concentrated on parts of the nodes. Two things make use of that: the
search begins among the nodes of largest (noisy) degree, where fewer entries mean less noise, and
entries that the noise alone could explain are set to zero between multiplications.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.graphs.spectra import Floats, Spectrum, leading, oriented, public_signs, shrink

LARGEST_HELD = 6_000
"""Up to this many nodes a matrix, or a part of one, is held as floats."""

_PLAIN, _INSIDE, _SPARSE, _LAST = 8, 10, 5, 5
"""Rounds: plain ones; cleaned ones inside a core, with columns to spare; then on all nodes with
columns to spare; then with those that are asked for.

An eigenvalue just above half the bulk hardly stands out at first; once entries are cleaned it
does, so columns must not be dropped before.
"""

_THRESHOLD = 2.0
_SMALLEST_CORE = 32
_GROWTH = 1.6
_MARGIN = 3.0
"""By how many of its own fluctuations an eigenvalue must leave the bulk to count."""


class NoisyMatrix(ABC):
    """An unbiased estimate of an adjacency matrix, with independent noise on each pair. Public."""

    nodes: int
    noise: float
    """The standard deviation of the noise on an entry."""

    @abstractmethod
    def __matmul__(self, columns: Floats) -> Floats:
        """Return the product with some columns."""

    @abstractmethod
    def part(self, places: npt.NDArray[np.int64]) -> NoisyMatrix:
        """Return the rows and columns at these places, held as floats."""


class HeldMatrix(NoisyMatrix):
    """A noisy matrix that is small enough to be held as floats."""

    def __init__(self, entries: npt.NDArray[np.float32], noise: float) -> None:
        self.entries = entries
        self.nodes = len(entries)
        self.noise = noise

    def __matmul__(self, columns: Floats) -> Floats:
        return np.asarray(self.entries @ columns.astype(np.float32), dtype=np.float64)

    def part(self, places: npt.NDArray[np.int64]) -> HeldMatrix:
        return HeldMatrix(self.entries[np.ix_(places, places)], self.noise)


def decompose_noisy(
    matrix: NoisyMatrix, k: int, degrees: npt.NDArray[Any] | None, *, by_size: bool
) -> Spectrum:
    """Return the k leading values and vectors that a noisy matrix shows.

    ``degrees`` rank the nodes; they too are public. The search takes cores of growing size, those
    of largest degree, and begins with the one where most is left of the eigenvalues after the
    noise. ``by_size`` looks for eigenvalues of either sign.
    """
    nodes = matrix.nodes
    spare = min(5 * k + 5, 25)
    order = np.arange(nodes) if degrees is None else np.argsort(-degrees, kind="stable")
    best, core, inside = -1.0, order, np.zeros((nodes, 0))
    for size in _sizes(nodes, 2 * (k + spare), by_degree=degrees is not None):
        part = matrix if size == nodes else matrix.part(order[:size])
        columns, _ = np.linalg.qr(public_signs(size, min(k + spare, size)))
        # Columns that span everything already cannot be turned towards anything.
        for _ in range(_PLAIN if columns.shape[1] < size else 0):
            columns, _ = np.linalg.qr(part @ columns)
        values, vectors = _ritz(part, columns, by_size)
        left = _left(values[:k], part.noise, size, by_size)
        if left > best:
            best, core, inside = left, order[:size] if size < nodes else np.arange(nodes), vectors
    if len(core) < nodes:
        part = matrix.part(core)
        inside = _ritz(part, _cleaned(part, inside, _INSIDE), by_size)[1]
        columns = np.zeros((nodes, inside.shape[1]))
        columns[core] = inside
        columns = _cleaned(matrix, columns, _SPARSE)
    else:
        columns = _cleaned(matrix, inside, _INSIDE + _SPARSE)
    columns = _cleaned(matrix, _ritz(matrix, columns, by_size)[1][:, :k], _LAST)
    values, vectors = _ritz(matrix, columns, by_size)
    most = float(nodes) - 1
    level = matrix.noise * math.sqrt(len(core))
    return Spectrum(np.clip(values, -most, most), oriented(vectors), level)


def _sizes(nodes: int, least: int, *, by_degree: bool) -> list[int]:
    """Return sizes of cores to try, growing, and all nodes."""
    sizes: list[int] = []
    size = float(max(_SMALLEST_CORE, least))
    while by_degree and size < min(nodes, LARGEST_HELD + 1):
        sizes.append(int(size))
        size *= _GROWTH
    return [*sizes, nodes]


def _left(values: Floats, noise: float, size: int, by_size: bool) -> float:
    """Return what is left of true eigenvalues, from those of the noisy matrix.

    A true value v shows as v + s²n/v, outside the bulk 2s·sqrt(n) of the noise, and its vector
    with a cosine of sqrt(1 - s²n/v²) (Benaych-Georges & Nadakuditi 2011). The sum of v times the
    cosine is returned.
    """
    seen = np.abs(values) if by_size else values
    bulk = 2 * noise * math.sqrt(size)
    out = seen > bulk + _MARGIN * noise * size ** (-1 / 6)
    true = (seen + np.sqrt(np.maximum(seen**2 - bulk**2, 0.0))) / 2
    return float(np.sqrt(np.maximum(true**2 - bulk**2 / 4, 0.0))[out].sum())


def _cleaned(matrix: NoisyMatrix, columns: Floats, rounds: int) -> Floats:
    """Return columns after iterations that set to zero what the noise alone could explain."""
    for _ in range(rounds):
        image = matrix @ columns
        # Turned so that its columns are orthogonal, the strongest first; far cheaper than an SVD.
        image = image @ np.linalg.eigh(image.T @ image)[1][:, ::-1]
        kept = shrink(image, _THRESHOLD * matrix.noise)
        columns, _ = np.linalg.qr(np.where(kept.any(axis=0), kept, image))
    return columns


def _ritz(matrix: NoisyMatrix, columns: Floats, by_size: bool) -> tuple[Floats, Floats]:
    """Return the best values and vectors within the span of the columns, the leading first."""
    within = columns.T @ (matrix @ columns)
    values, turn = np.linalg.eigh((within + within.T) / 2)
    order = leading(values, by_size)
    return values[order], columns @ turn[:, order]
