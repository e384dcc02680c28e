"""Eigenvalues with Gaussian noise: one edge moves all of them together by at most sqrt(2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from tulle.core import registry, validate
from tulle.core.dataset import Dataset
from tulle.core.error_law import GaussianLaw
from tulle.core.events import Event, Gaussian
from tulle.core.gaussian import rho_for
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import node_count
from tulle.graphs.spectra.eigenvalues_laplace import (
    ROUNDING,
    EigenvalueSettings,
    check_size,
    finish,
    missed_at_most,
    snapped,
)
from tulle.graphs.spectra.queries import Eigenvalues, rank_of
from tulle.noise import Lattice, discrete_gaussian
from tulle.noise.charge import GaussianCharge, charge


@dataclass(frozen=True, eq=False, kw_only=True)
class EigenGaussSettings(EigenvalueSettings):
    """The public settings of one run."""

    variance: Fraction


@registry.mechanism("graph", "eigen_gauss", answers=(Eigenvalues,), units=("edge",))
class EigenGauss(Mechanism):
    """Add Gaussian noise on a lattice to the largest eigenvalues.

    Guarantee:
        (epsilon, delta) per edge. One edge changes the matrix by one of Frobenius norm sqrt(2),
        and by Hoffman & Wielandt all sorted eigenvalues together move by no more in L2; a single
        one moves by at most 1, by Weyl. Snapping to the lattice adds a step for each eigenvalue,
        sqrt(k) steps in L2, and what floating point and a search for the largest err by is added
        too (see ``eigen_laplace``). Discrete Gaussian noise
        of variance s² is then D²/(2s²)-zCDP, and s² is chosen so that this implies
        (epsilon, delta).

    Error:
        The noise, and half a step. In L1 the eigenvalues move by at most 2, whatever k, so
        Laplace noise is smaller unless epsilon or delta is large: plans compare both.

    Raises:
        QueryError: beyond 10,000 nodes, where all eigenvalues are too many to compute.

    Reference:
        Hoffman & Wielandt, Duke Math. J. 1953. Canonne, Kamath & Steinke, NeurIPS 2020.

    Example:
        >>> import tulle
        >>> triangle = Graph.from_edges([(0, 1), (1, 2), (2, 0)], nodes=3)
        >>> r = tulle.release(triangle, tulle.eigenvalues(2), unit="edge", epsilon=5000.0,
        ...                   delta=1e-6, mechanism="eigen_gauss")
        >>> r.value.round().tolist()
        [2.0, -1.0]
    """

    title: ClassVar[str] = "Gaussian noise on the eigenvalues"
    reference: ClassVar[str] = "Hoffman & Wielandt 1953; Canonne et al., NeurIPS 2020"
    needs_delta: ClassVar[bool] = True
    concentrated: ClassVar[bool] = True
    options: ClassVar[tuple[str, ...]] = ("step",)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes, k = node_count(terms), rank_of(terms)
        check_size(terms, nodes, k)
        lattice = Lattice(validate.positive(step=options.get("step", Fraction(1, 4096))))
        missing = missed_at_most(nodes, k)
        errs = root_up(k) * (2 * ROUNDING + missing)
        moved = (root_up(min(k, 2)) + errs) / lattice.step + root_up(k)
        variance = moved**2 / (2 * rho_for(terms, moved**2))
        return EigenGaussSettings(
            nodes=nodes,
            k=k,
            step=lattice.step,
            sensitivity=moved,
            variance=variance,
            missing=missing or None,
        )

    def event(self, terms: Terms, settings: Parameters) -> Event:
        chosen = EigenGaussSettings.read(settings)
        squared = chosen.sensitivity**2
        return Gaussian.of(squared, chosen.variance)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        law = _law(settings)
        return Prediction(law, law, float(law.sigma * law.step) * math.sqrt(2 / math.pi))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        chosen = EigenGaussSettings.read(settings)
        assert isinstance(dataset, Graph)
        index = snapped(dataset, settings)
        variance = chosen.variance
        with charge(GaussianCharge(chosen.sensitivity**2)):
            noise = discrete_gaussian(variance=variance, size=len(index), source=source)
        most = chosen.nodes - 1
        return Outcome(finish(index + noise, settings), _law(settings), {"range": [-most, most]})


def root_up(number: int) -> Fraction:
    """Return a square root, rounded up by less than 2^-32.

    Example:
        >>> root_up(4) - 2 <= Fraction(1, 2**32), root_up(2) ** 2 > 2
        (True, True)
    """
    return Fraction(math.isqrt(number << 64) + 1, 1 << 32)


def _law(settings: Parameters) -> GaussianLaw:
    chosen = EigenGaussSettings.read(settings)
    # Half a step that the value was snapped by is within the whole step that the law adds.
    slack = float(ROUNDING + (chosen.missing or 0))
    return GaussianLaw(root_up(math.ceil(chosen.variance)), chosen.k, chosen.step, slack)
