"""Gaussian noise on the adjacency matrix, then decompose."""

from __future__ import annotations

import math
from math import comb
from typing import ClassVar

import numpy as np

from baselines import baseline
from tulle.core.arrays import Floats, Wholes
from tulle.core.dataset import Dataset
from tulle.core.errors import QueryError
from tulle.core.guarantee import largest_rho
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.core.validate import rational, text
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import node_count
from tulle.graphs.spectra.denoising import LARGEST_HELD, HeldMatrix, decompose_noisy
from tulle.graphs.spectra.queries import (
    Eigenvalues,
    SpectralQuery,
    Spectrum,
    public_spectrum,
    rank_of,
    typical_sine,
)
from tulle.graphs.topology.response import pair_places
from tulle.noise import discrete_gaussian
from tulle.noise.charge import GaussianCharge, charge


@baseline("graph", "gauss", answers=(SpectralQuery,), units=("edge",))
class Gauss(Mechanism):
    """Add Gaussian noise to every entry of the adjacency matrix, once for each pair of nodes.

    Guarantee:
        (epsilon, delta) per edge. An edge is one entry of the upper triangle and moves it by one.
        Discrete Gaussian noise of variance s² is 1/(2s²)-zCDP, and s² is chosen so that this
        implies (epsilon, delta). The lower triangle repeats the upper one. The rest is
        post-processing.

    Error:
        The noise alone has eigenvalues up to 2·s·sqrt(n), with s = 4.6 at epsilon = 1 and
        delta = 1e-6. A coin for every pair, which needs no delta, is as good as s = 0.96: this
        mechanism is for comparison. There is no interval.

    Raises:
        QueryError: beyond 6,000 nodes, since the matrix is held as it is.

    Reference:
        Dwork, Talwar, Thakurta & Zhang, Analyze Gauss, STOC 2014.

    Example:
        >>> import tulle
        >>> clique = Graph.from_edges([(u, v) for u in range(9) for v in range(u)], nodes=9)
        >>> r = tulle.release(clique, tulle.low_rank(1), unit="edge", epsilon=200.0, delta=1e-6,
        ...                   mechanism="gauss")
        >>> bool(abs(r.value.values[0] - 8) < 1), r.value.matrix().shape
        (True, (9, 9))
    """

    title: ClassVar[str] = "Gaussian noise on the matrix, then decompose"
    reference: ClassVar[str] = "Dwork et al., STOC 2014"
    needs_delta: ClassVar[bool] = True
    concentrated: ClassVar[bool] = True

    def offers(self, query: Query, unit: Unit) -> bool:
        # A coin for every pair has less noise at every epsilon, and needs no delta.
        return False

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes, k = node_count(terms), rank_of(terms)
        if nodes > LARGEST_HELD:
            raise QueryError(
                f"gauss holds the whole matrix and is for at most {LARGEST_HELD:,} nodes; the "
                f"graph has {nodes:,}. Use power, power_pure or spectral_response."
            )
        variance = 1 / (2 * largest_rho(terms.epsilon, terms.delta))
        return {"nodes": nodes, "k": k, "variance": text(variance)}

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        level = math.sqrt(rational(settings["variance"]) * int(settings["nodes"]))
        if not isinstance(like, Graph):
            return Prediction(None, None, level if isinstance(terms.query, Eigenvalues) else 1.0)
        known = public_spectrum(like, int(settings["k"]))
        if isinstance(terms.query, Eigenvalues):
            # An eigenvalue that drowns is replaced by one of the noise.
            return Prediction(None, None, float(np.mean(np.minimum(known.values, level) + level)))
        return Prediction(None, None, typical_sine(level, known.values))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        nodes = dataset.node_count
        variance = rational(settings["variance"])
        with charge(GaussianCharge(1)):
            noisy: Wholes = discrete_gaussian(variance=variance, size=comb(nodes, 2), source=source)
        noisy[pair_places(nodes, dataset.edges())] += 1
        return Outcome(conclude(terms, noisy, settings), None)


def conclude(terms: Terms, noisy: Wholes, settings: Parameters) -> Spectrum | Floats:
    """Return what noisy entries, one for each pair in order, show of the spectrum."""
    assert isinstance(terms.query, SpectralQuery)
    nodes, k = int(settings["nodes"]), int(settings["k"])
    entries = np.zeros((nodes, nodes), dtype=np.float32)
    entries[np.triu_indices(nodes, 1)] = noisy
    entries += entries.T.copy()
    matrix = HeldMatrix(entries, math.sqrt(rational(settings["variance"])))
    found = decompose_noisy(matrix, k, None, by_size=terms.query.by_size)
    return found.values if isinstance(terms.query, Eigenvalues) else found
