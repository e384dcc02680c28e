"""Gaussian noise on the global sensitivity: for many answers on one account."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.error_law import GaussianLaw
from tulle.core.events import Event
from tulle.core.events import Gaussian as GaussianEvent
from tulle.core.gaussian import rho_for
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import (
    GraphQuery,
    ProfiledCount,
    SubgraphCount,
    graph_query,
    node_count,
)
from tulle.noise import discrete_gaussian
from tulle.noise.charge import GaussianCharge, charge


@dataclass(frozen=True, eq=False)
class GaussianSettings(Settings):
    """The public settings of one run; ``squared`` is the sensitivity in L2, squared."""

    nodes: int
    squared: int
    variance: Fraction

    def law(self, query: GraphQuery) -> GaussianLaw:
        """Return the law of the noise; the root is rounded up."""
        sigma = Fraction(math.isqrt(math.ceil(self.variance * 10**12)) + 1, 10**6)
        return GaussianLaw(sigma, query.entries(self.nodes))


@registry.mechanism(
    "graph",
    "gaussian",
    answers=(GraphQuery,),
    units=("edge",),
    # One number has less noise by Laplace, at the same epsilon; batches name this one.
    named_only={"edge": (SubgraphCount, ProfiledCount)},
)
class Gaussian(Mechanism):
    """Add discrete Gaussian noise that fits the most that any edge can move the answer, in L2.

    Guarantee:
        (epsilon, delta) per edge. The answer is a vector of whole numbers that one edge moves by
        at most the global sensitivity in L2, and each entry gets independent discrete Gaussian
        noise of variance sensitivity² / (2·rho), which is rho-zero-concentrated (Canonne, Kamath
        & Steinke 2020, theorem 4); rho is one that by itself implies (epsilon, delta), as
        :mod:`tulle.core.gaussian` shows. For accounts that add up tightly it is one that does so
        by their corollary 13, and they book the rho and no delta.

    Error:
        The noise itself. One answer at (epsilon, delta) has more of it than Laplace noise has at
        epsilon; a hundred answers on one account have less.

    Reference:
        Canonne, Kamath & Steinke, The discrete Gaussian for differential privacy, NeurIPS 2020.

    Example:
        >>> import tulle
        >>> path = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
        >>> r = tulle.release(path, tulle.edges(), unit="edge", epsilon=1, delta=1e-6,
        ...                   mechanism="gaussian")
        >>> print(r.guarantee)
        epsilon = 1, delta = 1e-06, per edge (add-remove)
    """

    title: ClassVar[str] = "Gaussian noise on the global sensitivity"
    reference: ClassVar[str] = "Canonne et al., NeurIPS 2020"
    needs_delta: ClassVar[bool] = True
    concentrated: ClassVar[bool] = True

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes = node_count(terms)
        squared = max(graph_query(terms).edge_squared(nodes), 1)
        variance = squared / (2 * rho_for(terms, Fraction(squared)))
        return GaussianSettings(nodes, squared, variance)

    def event(self, terms: Terms, settings: Parameters) -> Event:
        chosen = GaussianSettings.read(settings)
        return GaussianEvent.of(Fraction(chosen.squared), chosen.variance)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        law = GaussianSettings.read(settings).law(graph_query(terms))
        mean = float(law.sigma) * math.sqrt(2 / math.pi)
        return Prediction(law, law, mean if terms.query.shape == "vector" else None)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        query, chosen = graph_query(terms), GaussianSettings.read(settings)
        truth = np.asarray(query.truth(dataset))
        most, law = query.maximum(chosen.nodes), chosen.law(query)
        size = truth.shape or 1
        with charge(GaussianCharge(chosen.squared)):
            noise = discrete_gaussian(variance=chosen.variance, size=size, source=source)
        if query.shape != "vector":
            noisy = int(truth) + int(noise[0])
            return Outcome(min(max(noisy, 0), most), law, {"range": [0, most]})
        return Outcome(np.clip(truth + noise, 0, most), law, {"range": [0, most]})
