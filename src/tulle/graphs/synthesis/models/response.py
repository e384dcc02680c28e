"""The model response: every pair of nodes flipped by its own coin, then thinned."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Wholes
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.synthesis.model import ModelSettings, Statistics, SynthesisModel
from tulle.graphs.synthesis.query import Synthetic
from tulle.graphs.topology.response import Response, ResponseSettings, Topology
from tulle.noise.post_processing import Random

_TOPOLOGY = Response()


@dataclass(frozen=True, eq=False, kw_only=True)
class CoinSettings(ModelSettings):
    """The public settings of one run: those of the coins."""

    epsilon: Fraction
    flip: float
    keep: float
    invent: float


@registry.offered("synthetic", "response", "Randomized response", "flips every pair by a coin")
@registry.mechanism("graph", "synthetic_response", answers=(Synthetic,), units=("edge",))
class ResponseModel(SynthesisModel):
    """A released topology, of which as many edges are kept as there probably are.

    Guarantee:
        Pure epsilon per edge: that of the topology (see ``response``), one coin for each pair of
        nodes. Thinning reads the released bits only.

    Error:
        The limit case: nothing keeps more of each single edge, and at small epsilon that is
        nearly nothing. At epsilon = 1, 27 % of all pairs are wrong before thinning.

    Reference:
        Warner, Randomized response, JASA 1965.

    Example:
        >>> import tulle
        >>> path = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
        >>> r = tulle.release(path, tulle.synthetic("response"), unit="edge", epsilon=40.0)
        >>> r.value.edges().tolist()
        [[0, 1], [1, 2]]
    """

    model: ClassVar[str] = "response"
    title: ClassVar[str] = "a coin for every pair of nodes, thinned"
    keeps_identities: ClassVar[bool] = True
    reference: ClassVar[str] = "Warner, JASA 1965"

    def prepare(self, terms: Terms, nodes: int, options: Parameters) -> ModelSettings:
        return CoinSettings(**ResponseSettings.read(_TOPOLOGY.settings(terms, {})).typed())

    def measure(
        self, terms: Terms, settings: Parameters, graph: Graph, source: Source | None
    ) -> Statistics:
        drawn = _TOPOLOGY.run(terms, settings, graph, source).value
        return {"packed": drawn.packed}

    def generate(self, statistics: Statistics, settings: Parameters, random: Random) -> Wholes:
        chosen = CoinSettings.read(settings)
        drawn = Topology(chosen.nodes, statistics["packed"])
        seen, pairs, flip = drawn.edge_count, comb(drawn.nodes, 2), chosen.flip
        # Unbiased: seen = keep·m + flip·(pairs - m).
        if chosen.epsilon < 30:
            likely = (seen - flip * pairs) / max(1 - 2 * flip, 1e-12)
        else:
            likely = float(seen)
        kept = round(min(max(likely, 0.0), float(seen)))
        edges = drawn.edges()
        if kept >= len(edges):
            return edges
        return edges[np.sort(random.permutation(len(edges))[:kept])]
