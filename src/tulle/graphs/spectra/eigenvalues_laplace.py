"""Eigenvalues with Laplace noise: one edge moves all of them together by at most two."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.arrays import Floats
from tulle.core.dataset import Dataset
from tulle.core.error_law import LaplaceLaw
from tulle.core.errors import QueryError
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.source import Source
from tulle.core.validate import counted, rational, text
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import node_count
from tulle.graphs.spectra.queries import LARGEST_DENSE, Eigenvalues, adjacency, rank_of
from tulle.noise import Lattice, discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge

ROUNDING = Fraction(1, 2**16)
"""More than the computed eigenvalues of so many nodes can be off, each.

A backward stable method errs by a modest multiple of n·2^-53·norm, and the norm is below n: on
10,000 nodes a factor of 10 makes it 1e-7.
"""


@registry.mechanism("graph", "eigen_laplace", answers=(Eigenvalues,), units=("edge",))
class EigenLaplace(Mechanism):
    """Add Laplace noise on a lattice to the largest eigenvalues.

    Guarantee:
        Pure epsilon per edge. One edge changes the adjacency matrix by a matrix with eigenvalues
        1 and -1. By Weyl each sorted eigenvalue moves by at most 1, and by Lidskii, Mirsky and
        Wielandt all of them together by at most |1| + |-1| = 2 in L1: so min(k, 2) for the k
        largest, where Hoffman & Wielandt alone would give sqrt(2k). Snapping to the lattice adds
        one step per eigenvalue, and what floating-point errs by is added too. All eigenvalues are
        computed, by a method that misses none: a missed one would void the bound.

    Error:
        The noise, and half a step. Sorting moves no two vectors further apart.

    Raises:
        QueryError: beyond 10,000 nodes, where all eigenvalues are too many to compute.

    Reference:
        Bhatia, Matrix analysis, 1997, theorem III.4.4. Dwork et al., TCC 2006.

    Example:
        >>> import tulle
        >>> triangle = Graph.from_edges([(0, 1), (1, 2), (2, 0)], nodes=3)
        >>> r = tulle.release(triangle, tulle.eigenvalues(2), unit="edge", epsilon=1000.0)
        >>> r.value.round(1).tolist()
        [2.0, -1.0]
    """

    title: ClassVar[str] = "noise on the eigenvalues"
    reference: ClassVar[str] = "Bhatia 1997; Dwork et al., TCC 2006"
    options: ClassVar[tuple[str, ...]] = ("step",)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes, k = node_count(terms), rank_of(terms)
        check_size(terms, nodes, k)
        lattice = Lattice(validate.positive(step=options.get("step", Fraction(1, 4096))))
        moved = (min(k, 2) + 2 * k * ROUNDING) / lattice.step + k
        return {
            "nodes": nodes,
            "k": k,
            "step": text(lattice.step),
            "sensitivity": text(moved),
            "scale": text(moved / terms.epsilon),
        }

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        law = _law(settings)
        mean = float(rational(settings["scale"]) * rational(settings["step"]))
        return Prediction(law, law, mean)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        index = snapped(dataset, settings)
        scale = rational(settings["scale"])
        with charge(LaplaceCharge(settings["sensitivity"])):
            noise = discrete_laplace(scale=scale, size=len(index), source=source)
        most = int(settings["nodes"]) - 1
        return Outcome(finish(index + noise, settings), _law(settings), {"range": [-most, most]})


def check_size(terms: Terms, nodes: int, k: int) -> None:
    """Refuse a graph of too many nodes for all its eigenvalues.

    Raises:
        QueryError: naming what to ask instead.
    """
    if nodes > LARGEST_DENSE:
        raise QueryError(
            f"{terms.query} needs all eigenvalues of the graph, and {counted(nodes, 'node')} have "
            f"too many; at most {LARGEST_DENSE:,} are handled. Ask for spectrum({k}) instead: its "
            "values are estimates of them."
        )


def snapped(graph: Graph, settings: Parameters) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the true eigenvalues in lattice steps. Custodian side."""
    values = np.linalg.eigvalsh(adjacency(graph).toarray().astype(np.float64))[::-1]
    index: np.ndarray[tuple[int], np.dtype[np.int64]] = Lattice(rational(settings["step"])).snap(
        values[: int(settings["k"])].copy()
    )
    return index


def finish(index: np.ndarray[tuple[int], np.dtype[np.int64]], settings: Parameters) -> Floats:
    """Return noisy eigenvalues, sorted and within what so many nodes allow."""
    most = float(settings["nodes"]) - 1
    values = Lattice(rational(settings["step"])).value(index)
    ordered: Floats = np.sort(np.clip(values, -most, most))[::-1].copy()
    return ordered


def _law(settings: Parameters) -> LaplaceLaw:
    step = rational(settings["step"])
    return LaplaceLaw(
        rational(settings["scale"]),
        step,
        count=int(settings["k"]),
        slack=float(step / 2 + ROUNDING),
    )
