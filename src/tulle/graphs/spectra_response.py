"""Eigenvectors of a released topology: every pair of nodes flipped by its own coin."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.errors import QueryError
from tulle.core.exact import text
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.graphs.data import Graph
from tulle.graphs.response import Response, Topology
from tulle.graphs.settings import node_count
from tulle.graphs.spectra import (
    Floats,
    LargestSpectrum,
    Spectrum,
    oriented,
    public_signs,
    public_spectrum,
    rank_of,
    shrink,
    typical_sine,
)
from tulle.noise.xor import flip_probability

LARGEST_OFFERED = 20_000
"""With more nodes the flipped matrix has so many entries that plans choose another mechanism."""

_LARGEST_HELD = 6_000
"""Up to this many nodes the matrix is held as floats; beyond, its bits are unpacked in pieces."""

_PIECE = 512
_PLAIN, _SPARSE, _LAST = 4, 15, 5
"""Rounds: plain ones, then cleaned ones with columns to spare, then with those that are asked for.

An eigenvalue just above half the bulk hardly stands out at first; once entries are cleaned it
does, so columns must not be dropped before.
"""

_THRESHOLD = 2.0


class FlippedMatrix:
    """A released topology as an unbiased estimate of the adjacency matrix. Public.

    An entry of the released matrix has mean p + (1 - 2p)·a, for a true entry a: taking p off and
    dividing makes it a + noise, of standard deviation sqrt(p(1 - p)) / (1 - 2p).
    """

    def __init__(self, topology: Topology, flip: float) -> None:
        self.nodes = topology.nodes
        self.flip = flip
        self._rows = _upper_rows(topology)
        self._held: npt.NDArray[np.float32] | None = None
        if self.nodes <= _LARGEST_HELD:
            upper = np.unpackbits(self._rows, axis=1, count=self.nodes).astype(np.float32)
            self._held = upper + upper.T

    @property
    def noise(self) -> float:
        """The standard deviation of the noise on an entry."""
        return entry_noise(self.flip)

    def __matmul__(self, columns: Floats) -> Floats:
        small = columns.astype(np.float32)
        product = self._bits_times(small).astype(np.float64)
        away = self.flip * (columns.sum(axis=0) - columns)
        result: Floats = (product - away) / (1 - 2 * self.flip)
        return result

    def _bits_times(self, columns: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        if self._held is not None:
            return self._held @ columns
        total = np.zeros_like(columns)
        for first in range(0, self.nodes, _PIECE):
            piece = np.unpackbits(self._rows[first : first + _PIECE], axis=1, count=self.nodes)
            floats = piece.astype(np.float32)
            total[first : first + _PIECE] += floats @ columns
            total += floats.T @ columns[first : first + _PIECE]
        return total


def _upper_rows(topology: Topology) -> npt.NDArray[np.uint8]:
    """Return the upper triangle, a packed row for each node."""
    nodes = topology.nodes
    packed = np.zeros((nodes, -(-nodes // 8)), dtype=np.uint8)
    place = 0
    for first in range(0, nodes, _PIECE):
        piece = np.zeros((min(_PIECE, nodes - first), nodes), dtype=np.uint8)
        pairs = sum(nodes - 1 - row for row in range(first, first + len(piece)))
        # Only the bytes of these rows are unpacked: all pairs at once would not fit.
        start, end = place // 8, -(-(place + pairs) // 8)
        bits = np.unpackbits(topology.packed[start:end])[place - 8 * start :]
        used = 0
        for row in range(len(piece)):
            width = nodes - 1 - first - row
            piece[row, nodes - width :] = bits[used : used + width]
            used += width
        packed[first : first + len(piece)] = np.packbits(piece, axis=1)
        place += pairs
    return packed


def entry_noise(flip: float) -> float:
    """Return the deviation of an unbiased entry: 0.96 at epsilon = 1.

    Example:
        >>> round(entry_noise(flip_probability(1)), 2)
        0.96
    """
    return math.sqrt(flip * (1 - flip)) / (1 - 2 * flip)


def noise_bulk(flip: float, nodes: int) -> float:
    """Return where the eigenvalues of the noise alone end; what lies above is informative."""
    return 2 * entry_noise(flip) * math.sqrt(nodes)


@registry.register("mechanism", "graph", "spectral_response")
class SpectralResponse(Mechanism):
    """Flip each pair of nodes by a coin, and decompose the unbiased estimate of the matrix.

    The released matrix is public, so any number of iterations on it is free: first plain subspace
    iterations, then some that set entries to zero which the noise alone could explain. Vectors of
    real networks are concentrated on parts of the nodes, and gain much from that.

    Guarantee:
        Pure epsilon per edge: the bits are those of the mechanism ``response``, each pair once;
        the rest reads nothing else.

    Error:
        An eigenvalue v is found when it exceeds about sqrt(n)·0.96 at epsilon = 1; the noise
        alone has eigenvalues up to ``bulk`` (in the release's parameters); :func:`informative`
        says how many released values lie above half of it, where vectors begin to show. There is
        no interval.

    Reference:
        Warner, JASA 1965. Ma, Sparse principal component analysis and iterative thresholding,
        Annals of Statistics 2013.

    Example:
        >>> import tulle
        >>> clique = Graph.from_edges([(u, v) for u in range(9) for v in range(u)], nodes=9)
        >>> r = tulle.release(clique, tulle.spectrum(1), unit="edge", epsilon=30.0,
        ...                   mechanism="spectral_response")
        >>> r.value.values.round(3).tolist(), r.value.vectors.round(3)[:2].ravel().tolist()
        ([8.0], [0.333, 0.333])
    """

    name: ClassVar[str] = "spectral_response"
    kind: ClassVar[str] = "graph"
    title: ClassVar[str] = "a coin for every pair, then decompose"
    reference: ClassVar[str] = "Warner, JASA 1965; Ma, Ann. Statist. 2013"

    def supports(self, query: Query, unit: Unit) -> bool:
        return isinstance(query, LargestSpectrum) and unit.name == "edge"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes, k = node_count(terms), rank_of(terms)
        if nodes > LARGEST_OFFERED:
            raise QueryError(
                f"spectral_response draws a coin for every pair of nodes and is for at most "
                f"{LARGEST_OFFERED:,} nodes; the graph has {nodes:,}. Use power or power_pure."
            )
        flip = flip_probability(terms.epsilon)
        return {
            "nodes": nodes,
            "k": k,
            "epsilon": text(terms.epsilon),
            "flip": flip,
            "keep": 1 - flip,
            "invent": flip,
            "bulk": noise_bulk(flip, nodes),
        }

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        if not isinstance(like, Graph):
            return Prediction(None, None, 1.0)
        known = public_spectrum(like, int(settings["k"]))
        return Prediction(None, None, typical_sine(settings["bulk"] / 2, known.values))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        drawn = Response().run(terms, settings, dataset, source).value
        return Outcome(decompose_topology(drawn, settings), None)


def decompose_topology(topology: Topology, settings: Parameters) -> Spectrum:
    """Return the spectrum that a released topology shows."""
    matrix = FlippedMatrix(topology, float(settings["flip"]))
    k, nodes = int(settings["k"]), topology.nodes
    spare = min(5 * k + 5, 25)
    columns, _ = np.linalg.qr(public_signs(nodes, min(k + spare, nodes)))
    for _ in range(_PLAIN):
        columns, _ = np.linalg.qr(matrix @ columns)
    columns = _cleaned(matrix, _ritz(matrix, columns)[1], _SPARSE)
    columns = _cleaned(matrix, _ritz(matrix, columns)[1][:, :k], _LAST)
    values, vectors = _ritz(matrix, columns)
    most = float(nodes) - 1
    return Spectrum(np.clip(values, -most, most), oriented(vectors))


def _cleaned(matrix: FlippedMatrix, columns: Floats, rounds: int) -> Floats:
    """Return columns after iterations that set to zero what the noise alone could explain."""
    for _ in range(rounds):
        image = matrix @ columns
        # Turned so that its columns are orthogonal, the strongest first; far cheaper than an SVD.
        image = image @ np.linalg.eigh(image.T @ image)[1][:, ::-1]
        kept = shrink(image, _THRESHOLD * matrix.noise)
        columns, _ = np.linalg.qr(np.where(kept.any(axis=0), kept, image))
    return columns


def _ritz(matrix: FlippedMatrix, columns: Floats) -> tuple[Floats, Floats]:
    """Return the best values and vectors within the span of the columns, the largest first."""
    within = columns.T @ (matrix @ columns)
    values, turn = np.linalg.eigh((within + within.T) / 2)
    return values[::-1].copy(), columns @ turn[:, ::-1]


def informative(values: Floats, settings: Parameters) -> int:
    """Return how many released eigenvalues lie above half the bulk of the noise.

    A true eigenvalue leaves a trace in the noisy matrix when it exceeds half the bulk (the noise
    then pushes it out of the bulk); released values are those of cleaned vectors, near the true.

    Example:
        >>> informative(np.array([9.0, 4.0]), {"bulk": 10.0})
        1
    """
    return int(np.sum(values > settings["bulk"] / 2))
