"""Laplace noise on the global sensitivity: simple, pure, and best where one edge moves little."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.error_law import LaplaceLaw
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.graphs.data import Graph
from tulle.graphs.mechanisms.sparse import SparseLaplaceLaw, expected_error, keep_large
from tulle.graphs.queries.counts import (
    GraphQuery,
    ProfiledCount,
    SubgraphCount,
    graph_query,
    node_count,
)
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge


@dataclass(frozen=True, eq=False)
class LaplaceSettings(Settings):
    """The public settings of one run."""

    nodes: int
    sensitivity: int
    scale: Fraction

    def law(self, query: GraphQuery) -> LaplaceLaw:
        """Return the law of the noise on all entries."""
        return LaplaceLaw(self.scale, count=query.entries(self.nodes))


@registry.mechanism("graph", "laplace", answers=(GraphQuery,), units=("edge",))
class Laplace(Mechanism):
    """Add discrete Laplace noise whose scale fits the most that any edge can move the answer.

    Guarantee:
        Pure epsilon per edge. The answer is a vector of whole numbers that one edge moves by at
        most the global sensitivity in L1, and each entry gets independent noise with
        P(x) proportional to exp(-|x|·epsilon/sensitivity). (Dwork et al. 2006; Ghosh et al. 2012)

    Error:
        The noise itself: the law in the release is exact. Numbers of triangles of each node that
        noise alone could have made are set to zero (:mod:`tulle.graphs.mechanisms.sparse`).

    Reference:
        Dwork, McSherry, Nissim & Smith, Calibrating noise to sensitivity, TCC 2006.

    Example:
        >>> import tulle
        >>> path = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
        >>> tulle.release(path, tulle.edges(), unit="edge", epsilon=1.0).mechanism
        'laplace'
    """

    title: ClassVar[str] = "noise on the global sensitivity"
    reference: ClassVar[str] = "Dwork et al., TCC 2006"

    def offers(self, query: Query, unit: Unit) -> bool:
        """One edge can be in nearly all copies of a pattern: plain noise drowns those counts."""
        if isinstance(query, ProfiledCount) or not isinstance(query, SubgraphCount):
            return True
        from tulle.graphs.queries.subgraphs import PatternQuery

        return not isinstance(query, PatternQuery)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes = node_count(terms)
        # An answer that no edge can move still gets noise: a scale of zero is no mechanism.
        sensitivity = max(graph_query(terms).edge_sensitivity(nodes), 1)
        return LaplaceSettings(nodes, sensitivity, sensitivity / terms.epsilon)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        law = LaplaceSettings.read(settings).law(graph_query(terms))
        # For whole numbers with P(x) proportional to q^|x| the mean size is 2q / (1 - q²).
        q = np.exp(-1 / float(law.scale))
        mean = float(2 * q / (1 - q * q)) if terms.query.shape == "vector" and q < 1 else None
        query = graph_query(terms)
        if query.sparse and isinstance(like, Graph):
            mean = expected_error(query.truth(like), float(law.scale))
        return Prediction(law, law, mean)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        query = graph_query(terms)
        truth = query.truth(dataset)
        chosen = LaplaceSettings.read(settings)
        scale, most, law = chosen.scale, query.maximum(chosen.nodes), chosen.law(query)
        if query.shape == "vector":
            with charge(LaplaceCharge(chosen.sensitivity)):
                noisy = truth + discrete_laplace(scale=scale, size=truth.shape, source=source)
            if query.sparse:
                noisy, threshold = keep_large(noisy, float(scale))
                law = SparseLaplaceLaw(law.scale, count=law.count, threshold=threshold)
            return Outcome(np.clip(noisy, 0, most), law, {"range": [0, most]})
        with charge(LaplaceCharge(chosen.sensitivity)):
            noisy = truth + discrete_laplace(scale=scale, source=source)
        value = min(max(noisy, 0), most)
        return Outcome(value, law, {"range": [0, most]})
