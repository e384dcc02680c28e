"""Eigenvalues with Laplace noise: one edge moves all of them together by at most two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.arrays import Floats
from tulle.core.dataset import Dataset
from tulle.core.error_law import LaplaceLaw
from tulle.core.errors import QueryError
from tulle.core.events import Approximate
from tulle.core.guarantee import Guarantee
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.source import Source
from tulle.core.validate import counted
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import node_count
from tulle.graphs.spectra.queries import LARGEST_DENSE, Eigenvalues, adjacency, rank_of
from tulle.noise import Lattice, discrete_gaussian, discrete_laplace
from tulle.noise.charge import GaussianCharge, LaplaceCharge, charge
from tulle.noise.watch import spend

ROUNDING = Fraction(1, 2**16)
"""More than the computed eigenvalues of so many nodes can be off, each.

A backward stable method errs by a modest multiple of n·2^-53·norm, and the norm is below n: on
10,000 nodes a factor of 10 makes it 1e-7.
"""

LARGEST_SOLVED = 1_500
"""Up to this many nodes all eigenvalues are computed: it takes a second or less."""

MOST_PROVED = 32
"""So many eigenvalues are searched for; for more, all are computed."""

PROOF = Fraction(1, 2**12)
"""How sharply eigenvalues are separated from what is left. On 10,000 nodes rounding in the
factorisation is below half of it, whatever the graph."""


@dataclass(frozen=True, eq=False, kw_only=True)
class EigenvalueSettings(Settings):
    """What the public settings for eigenvalues have, whatever the noise."""

    nodes: int
    k: int
    step: Fraction
    sensitivity: Fraction
    """Of all of them together, in steps."""
    missing: Fraction | None = None
    """The most by which an eigenvalue that is found may be too small."""


@dataclass(frozen=True, eq=False, kw_only=True)
class EigenLaplaceSettings(EigenvalueSettings):
    """The public settings of one run."""

    scale: Fraction
    tolerance: Fraction | None = None
    failure: Fraction | None = None
    """Where a search finds them: how exactly, and how likely it is to miss one."""


@registry.mechanism("graph", "eigen_laplace", answers=(Eigenvalues,), units=("edge",))
class EigenLaplace(Mechanism):
    """Add Laplace noise on a lattice to the largest eigenvalues.

    Guarantee:
        Pure epsilon per edge. One edge changes the adjacency matrix by a matrix with eigenvalues
        1 and -1. By Weyl each sorted eigenvalue moves by at most 1, and by Lidskii, Mirsky and
        Wielandt all of them together by at most |1| + |-1| = 2 in L1: so min(k, 2) for the k
        largest, where Hoffman & Wielandt alone would give sqrt(2k). Snapping to the lattice adds
        one step per eigenvalue, and what floating-point errs by is added too. Up to 1,500 nodes,
        and for many eigenvalues, all are computed, by a method that misses none: a missed one would
        void the bound. Up to 10,000 nodes the largest are found by iteration, and a factorisation
        proves that each is from 0 to 2e below the true one; where it does not, all are computed
        (:func:`~tulle.graphs.spectra.certified.proved_values`). Computed ones then differ by 2e
        more than true ones between neighbours, a 2,000th each, which is added to the bound.
        Beyond, (epsilon, delta): the largest are found by iteration and checked with secret
        random vectors (:mod:`tulle.graphs.spectra.certified`). Each is then from 0 to 3e below the
        true one but with probability delta/2, whatever the graph; so computed ones differ by 3e
        more than true ones between neighbours, which is added to the bound, but with probability
        delta.

    Error:
        The noise, and half a step; beyond 1,500 nodes a 2,000th more, beyond 10,000 3e more, about
        a twentieth of what an edge moves. Sorting moves no two vectors further apart.

    Raises:
        QueryError: beyond 10,000 nodes without a delta.

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
        lattice = Lattice(validate.positive(step=options.get("step", Fraction(1, 4096))))
        missing = missed_at_most(nodes, k)
        tolerance, failure = None, None
        if nodes > LARGEST_DENSE:
            check_size(terms, nodes, k, searched=terms.delta > 0)
            tolerance = Fraction(1, 32 * max(k, 2))
            missing = 3 * tolerance
            failure = terms.delta / 2
            check_failure(terms, failure, k)
        moved = (min(k, 2) + k * (2 * ROUNDING + missing)) / lattice.step + k
        return EigenLaplaceSettings(
            nodes=nodes,
            k=k,
            step=lattice.step,
            sensitivity=moved,
            scale=moved / terms.epsilon,
            missing=missing or None,
            tolerance=tolerance,
            failure=failure,
        )

    def guarantee(self, terms: Terms, settings: Parameters) -> Guarantee:
        """Return what a run guarantees; a delta is spent only where values are searched for."""
        found = super().guarantee(terms, settings)
        return replace(found, delta=terms.delta) if "failure" in settings else found

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        chosen = EigenLaplaceSettings.read(settings)
        law = _law(settings)
        mean = float(chosen.scale * chosen.step)
        return Prediction(law, law, mean)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        chosen = EigenLaplaceSettings.read(settings)
        assert isinstance(dataset, Graph)
        index = snapped(dataset, settings, source)
        scale = chosen.scale
        with charge(LaplaceCharge(chosen.sensitivity)):
            noise = discrete_laplace(scale=scale, size=len(index), source=source)
        most = chosen.nodes - 1
        return Outcome(finish(index + noise, settings), _law(settings), {"range": [-most, most]})


def missed_at_most(nodes: int, k: int) -> Fraction:
    """Return how far below the true eigenvalues computed ones may be: zero if all are computed.

    Example:
        >>> missed_at_most(1_000, 5), missed_at_most(6_000, 5), missed_at_most(6_000, 500)
        (Fraction(0, 1), Fraction(1, 2048), Fraction(0, 1))
    """
    proved = LARGEST_SOLVED < nodes <= LARGEST_DENSE and k <= MOST_PROVED
    return 2 * PROOF if proved else Fraction(0)


def check_size(terms: Terms, nodes: int, k: int, *, searched: bool = False) -> None:
    """Refuse a graph of too many nodes for all its eigenvalues, unless the largest are searched.

    Raises:
        QueryError: naming what to ask instead.
    """
    if nodes > LARGEST_DENSE and not searched:
        raise QueryError(
            f"{terms.query} needs all eigenvalues of the graph, and {counted(nodes, 'node')} have "
            f"too many: at most {LARGEST_DENSE:,} are handled. Give a delta, and "
            f"the largest are searched for; or ask for spectrum({k}): its values are estimates."
        )
    if searched and 4 * k > nodes:
        raise QueryError(
            f"{terms.query} asks for more than a quarter of the eigenvalues of "
            f"{counted(nodes, 'node')}, which is too many to search for. Ask for at most "
            f"{nodes // 4:,}."
        )


def check_failure(terms: Terms, failure: Fraction, k: int) -> None:
    """Refuse a delta below what a search can promise.

    Raises:
        QueryError: naming the least delta.
    """
    from tulle.graphs.spectra.certified import least_failure

    if failure < least_failure(k):
        raise QueryError(
            f"{terms.query} is searched for in so large a graph, and a search can miss one. Give a "
            f"delta of at least {float(2 * least_failure(k)):.2g}."
        )


def snapped(
    graph: Graph, settings: Parameters, source: Source | None = None
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the true eigenvalues in lattice steps. Custodian side."""
    from tulle.graphs.spectra.certified import all_values, proved_values

    chosen = EigenvalueSettings.read(settings)
    matrix, k = adjacency(graph).astype(np.float64), chosen.k
    if "failure" in settings:
        values = searched_values(matrix, settings, source)
    elif chosen.missing is not None:
        values = proved_values(matrix, k, float(chosen.missing / 2))
    else:
        values = all_values(matrix, k)
    index: np.ndarray[tuple[int], np.dtype[np.int64]] = Lattice(chosen.step).snap(values)
    return index


def searched_values(matrix: Any, settings: Parameters, source: Source | None) -> Floats:
    """Return the largest eigenvalues, each from 0 to three tolerances too low. Custodian side."""
    from tulle.graphs.spectra.certified import FINE, largest_values

    chosen = EigenLaplaceSettings.read(settings)
    nodes, failure = chosen.nodes, chosen.failure
    assert failure is not None
    assert chosen.tolerance is not None

    def start() -> Floats:
        # What nobody's edge moves costs nothing; it must be secret, or a graph could avoid it.
        with charge(GaussianCharge(0)):
            drawn = discrete_gaussian(variance=FINE**2, size=nodes, source=source)
        return drawn / FINE

    spend(Approximate(Fraction(0), 2 * failure))
    tolerance = float(chosen.tolerance)
    return largest_values(matrix, chosen.k, tolerance, float(failure), start)


def finish(index: np.ndarray[tuple[int], np.dtype[np.int64]], settings: Parameters) -> Floats:
    """Return noisy eigenvalues, sorted and within what so many nodes allow."""
    chosen = EigenvalueSettings.read(settings)
    most = chosen.nodes - 1
    values = Lattice(chosen.step).value(index)
    ordered: Floats = np.sort(np.clip(values, -most, most))[::-1].copy()
    return ordered


def _law(settings: Parameters) -> LaplaceLaw:
    chosen = EigenLaplaceSettings.read(settings)
    step = chosen.step
    missing = chosen.missing or 0
    return LaplaceLaw(
        chosen.scale,
        step,
        count=chosen.k,
        slack=float(step / 2 + ROUNDING + missing),
    )
