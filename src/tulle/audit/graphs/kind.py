"""The audit's view of graphs: all small ones, and each mechanism's run in closed form."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, permutations
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.bits import number_of, response_coins
from tulle.audit.engine.broken import name_of
from tulle.audit.engine.kind import AuditView, Description
from tulle.audit.engine.laws import LaplaceVector, Law, RungChoice, laplace_vector
from tulle.audit.engine.rounded import RoundedHeavy, RoundedLaplace
from tulle.audit.engine.world import World
from tulle.audit.graphs.joint import JOINT, JOINT_OPTIONS
from tulle.audit.graphs.measured import graph_key, measured, steepened
from tulle.audit.graphs.projection import OPTIONS as PROJECTION_OPTIONS
from tulle.audit.graphs.projection import PER_NODE, PerNode, describe_projection, node_world
from tulle.audit.graphs.projection import finish as finish_projection
from tulle.audit.graphs.projection import see as see_projection
from tulle.audit.graphs.projection import small_graphs as small_per_node
from tulle.audit.graphs.spectra import (
    DRAWN_SPECTRA,
    SPECTRA,
    SPECTRA_DESCRIBERS,
    GaussianVector,
    is_spectral,
    see,
)
from tulle.audit.graphs.spectra import OPTIONS as SPECTRA_OPTIONS
from tulle.audit.graphs.spectra import finish as finish_spectrum
from tulle.audit.graphs.spectra import small_graphs as small_spectra
from tulle.audit.graphs.statistics import COUNTS as STATISTIC_COUNTS
from tulle.audit.graphs.statistics import (
    DRAWN_STATISTICS,
    LEFT_OUT,
    STATISTICS,
    STATISTICS_DESCRIBERS,
    is_statistical,
)
from tulle.audit.graphs.statistics import OPTIONS as STATISTICS_OPTIONS
from tulle.audit.graphs.statistics import finish as finish_statistic
from tulle.audit.graphs.statistics import see as see_statistic
from tulle.audit.graphs.synthesis import (
    CASES,
    DRAWN_SYNTHESIS,
    SYNTHESIS,
    SYNTHESIS_DESCRIBERS,
    UNLABELLED_MODELS,
    draw_statistics,
    finish_statistics,
    is_synthesis,
    see_statistics,
    small_for,
)
from tulle.audit.graphs.threshold import LARGEST_DEGREE, describe_threshold
from tulle.audit.graphs.truncation import (
    DRAWN_TRUNCATED,
    LARGEST,
    TRUNCATED,
    Per,
    describe_truncated,
    small_truncated,
)
from tulle.audit.graphs.truncation import OPTIONS as TRUNCATION_OPTIONS
from tulle.audit.relations.kind import draw_totals, seen_total
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.unit import Unit
from tulle.graphs.data import Graph
from tulle.graphs.generators import all_graphs
from tulle.graphs.mechanisms.gaussian import GaussianSettings
from tulle.graphs.mechanisms.isotonic import decreasing, graphical, sorted_sequence
from tulle.graphs.mechanisms.ladder import LadderSettings
from tulle.graphs.mechanisms.laplace import LaplaceSettings
from tulle.graphs.mechanisms.smooth import SmoothSettings, smooth_bound
from tulle.graphs.mechanisms.sparse import keep_large
from tulle.graphs.queries.counts import (
    GraphQuery,
    cliques,
    edges,
    graph_query,
    k_triangles,
    node_count,
    profiled_count,
    stars,
    triangles,
)
from tulle.graphs.queries.degrees import (
    DegreeDistribution,
    Degrees,
    degree_distribution,
    degrees,
    max_degree,
)
from tulle.graphs.queries.local_counts import chains
from tulle.graphs.queries.partitions import degree_squares
from tulle.graphs.queries.statistics import assortativity, average_clustering, transitivity
from tulle.graphs.sensitivity.counts import SpreadLaw, SpreadSettings
from tulle.graphs.spectra.queries import Spectrum
from tulle.graphs.synthesis.model import SynthesisModel
from tulle.graphs.synthesis.query import synthetic
from tulle.graphs.topology.response import Topology, WholeTopology, topology
from tulle.relations.truncation.mechanism import TruncationLaw, TruncationMechanism

QUESTIONS: tuple[GraphQuery, ...] = (
    edges(),
    triangles(),
    *(stars(k) for k in (2, 3, 4)),
    *(k_triangles(k) for k in (2, 3)),
    *(cliques(k) for k in (3, 4, 5)),
    degrees(),
    degree_distribution(),
    max_degree(),
    *STATISTIC_COUNTS,
)
"""The questions of the audit; each mechanism is examined on those that it answers."""

UNLABELLED: frozenset[Query] = frozenset(
    (
        *(edges(), triangles(), chains(), degree_distribution(), degree_squares(), max_degree()),
        *(stars(k) for k in (2, 3, 4)),
        *(k_triangles(k) for k in (2, 3)),
        *(cliques(k) for k in (3, 4, 5)),
        *(transitivity(), average_clustering(), assortativity()),
        *JOINT,
        *(query for name in UNLABELLED_MODELS for query in CASES[name].questions),
        synthetic("auto", parts="edges"),
    )
)
"""Questions of which every closed form is the same whatever numbers the nodes have.

They are examined on one graph of each shape, and a test holds all numberings against it.
"""

_DRAWN = (edges(), triangles(), stars(2), degrees(), degree_distribution(), topology())


def vector(value: Any) -> tuple[int, ...]:
    """Return an answer as a tuple of whole numbers."""
    return tuple(int(entry) for entry in np.atleast_1d(value))


def describe_laplace(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe Laplace noise on every entry of the answer."""
    centre = vector(graph_query(terms).truth(graph))
    return _laplace(centre, settings)


def describe_gaussian(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe Gaussian noise on every entry of the answer."""
    centre = vector(graph_query(terms).truth(graph))
    chosen = GaussianSettings.read(settings)
    law = GaussianVector(centre, chosen.variance, Fraction(chosen.squared))
    return Description((("answer", law),))


def describe_isotonic(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe Laplace noise on every entry of the sorted sequence."""
    return _laplace(vector(sorted_sequence(terms.query, graph)), settings)


def _laplace(centre: tuple[int, ...], settings: Parameters) -> Description:
    chosen = LaplaceSettings.read(settings)
    law = laplace_vector(centre, chosen.scale, chosen.sensitivity)
    return Description((("answer", law),))


def describe_ladder(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe a draw from the graph's ladder, and its private spread."""
    query = profiled_count(terms)
    chosen = LadderSettings.read(settings)
    truth, found = measured(query, graph, chosen.length)
    most = query.cap(chosen.nodes)
    widths = steepened(tuple(found.profile), most, chosen.smoothing)
    return with_spread(RungChoice.of(truth, widths, most, settings), found.spread, settings)


def describe_smooth(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe rounded Laplace noise on the smooth bound, and the private spread."""
    return _smooth(RoundedLaplace, terms, settings, graph)


def describe_smooth_pure(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe rounded heavy-tailed noise on the smooth bound, and the private spread."""
    return _smooth(RoundedHeavy, terms, settings, graph)


def _smooth(
    law: type[RoundedLaplace] | type[RoundedHeavy],
    terms: Terms,
    settings: Parameters,
    graph: Graph,
) -> Description:
    query = profiled_count(terms)
    chosen = SmoothSettings.read(settings)
    truth, found = measured(query, graph, chosen.length)
    bound = _smooth_bound(tuple(found.profile), query.cap(chosen.nodes), chosen.beta)
    answer = law(truth, bound, chosen.alpha, chosen.beta)
    return with_spread(answer, found.spread, settings)


@lru_cache(maxsize=4096)
def _smooth_bound(profile: tuple[int, ...], most: int, beta: Fraction) -> Fraction:
    return smooth_bound(list(profile), most, beta)


def with_spread(
    answer: Law, spread: int, settings: Parameters, *, open: bool = False
) -> Description:
    """Add the private spread to an answer; ``open`` describes a spread without noise."""
    budget = SpreadSettings.read(settings).budget
    if budget.spread == 0:
        return Description((("answer", answer),))
    scale = Fraction(0) if open else 1 / budget.spread
    return Description(
        (("answer", answer), ("spread", LaplaceVector((spread,), (scale,), Fraction(1))))
    )


def describe_response(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe a coin for each pair of nodes."""
    bits = vector(topology().truth(graph).bits())
    return Description((("answer", response_coins(bits, settings)),))


Describer = Callable[[Terms, Parameters, Graph], Description]

DESCRIBERS: dict[str, Describer] = {
    "laplace": describe_laplace,
    "gaussian": describe_gaussian,
    "isotonic": describe_isotonic,
    "ladder": describe_ladder,
    "smoothed_ladder": describe_ladder,
    "smooth": describe_smooth,
    "smooth_pure": describe_smooth_pure,
    "response": describe_response,
    **SPECTRA_DESCRIBERS,
    "projection": describe_projection,
    "degree_threshold": describe_threshold,
    **STATISTICS_DESCRIBERS,
    **SYNTHESIS_DESCRIBERS,
}
"""The closed form of each registered mechanism's run, by name."""


@registry.register("audit", "graph", "view")
class AuditedGraphs(AuditView):
    """Graphs under edge privacy, up to six nodes."""

    name: ClassVar[str] = "graph"
    private: ClassVar[tuple[str, ...]] = (*AuditView.private, "statistics")
    examined_with: ClassVar[Mapping[str, Sequence[Parameters]]] = {
        **SPECTRA_OPTIONS,
        **STATISTICS_OPTIONS,
        **PROJECTION_OPTIONS,
        **JOINT_OPTIONS,
        **TRUNCATION_OPTIONS,
    }

    def world(self, size: int) -> World:
        return _world(size)

    def world_for(self, size: int, query: Query) -> World:
        if isinstance(query, Per):
            size = min(size, LARGEST)
        if self._unit(query) == "node":
            return node_world(size, graph_key)
        return shapes(size) if query in UNLABELLED else self.world(size)

    def unit_for(self, query: Query, dataset: Dataset) -> Unit:
        return Unit.of(self._unit(query))

    def _unit(self, query: Query) -> str:
        if isinstance(query, Per):
            return query.unit
        return "node" if isinstance(query, PerNode) else "edge"

    def proper(self, query: Query, dataset: Dataset, unit: Unit) -> tuple[Query, Unit]:
        return query.query if isinstance(query, Per) else query, unit

    def asked(self, mechanism: Mechanism) -> Sequence[Query]:
        if mechanism.name == "projection":
            return (PER_NODE,)
        if mechanism.name == "degree_threshold":
            return (LARGEST_DEGREE,)
        if isinstance(mechanism, TruncationMechanism):
            return [query for query in TRUNCATED if query.unit in mechanism.units]
        if mechanism.name not in DESCRIBERS:
            return ()
        asked = (*QUESTIONS, topology(), *SPECTRA, *STATISTICS, *SYNTHESIS)
        return [
            query
            for query in asked
            if mechanism.supports(query, Unit.of("edge"))
            and (mechanism.name, query) not in LEFT_OUT
        ]

    def drawn_of(self, asked: Sequence[Query], name: str) -> Sequence[Query]:
        drawn = (
            *_DRAWN,
            PER_NODE,
            LARGEST_DEGREE,
            *DRAWN_SPECTRA,
            *DRAWN_STATISTICS,
            *DRAWN_SYNTHESIS,
            *DRAWN_TRUNCATED,
        )
        return [query for query in asked if query in drawn]

    def law_of(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters, dataset: Dataset
    ) -> Description:
        assert isinstance(dataset, Graph)
        if isinstance(mechanism, TruncationMechanism):
            return describe_truncated(mechanism, terms, settings, dataset)
        return DESCRIBERS[name_of(mechanism)](terms, settings, dataset)

    def draw(self, mechanism: Mechanism, terms: Terms, settings: Parameters, dataset: Any) -> Any:
        if isinstance(mechanism, TruncationMechanism):
            return draw_totals(mechanism, terms, settings, dataset)
        if isinstance(mechanism, SynthesisModel) and type(mechanism).run is SynthesisModel.run:
            return draw_statistics(mechanism, terms, settings, dataset)
        return super().draw(mechanism, terms, settings, dataset)

    def finish(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters
    ) -> Callable[[tuple[Any, ...]], Hashable]:
        if isinstance(terms.query, WholeTopology):
            return lambda parts: int(parts[0])
        if isinstance(mechanism, TruncationMechanism):
            return lambda parts: parts[0]
        name = name_of(mechanism)
        if name == "degree_threshold":
            return lambda parts: (parts[0], None)
        if is_spectral(terms.query):
            return finish_spectrum(name, mechanism, terms, settings)
        if isinstance(terms.query, PerNode):
            return finish_projection(settings)
        if is_statistical(name):
            return finish_statistic(name, terms, settings)
        if is_synthesis(terms.query):
            return finish_statistics(name, mechanism, terms, settings)
        query = graph_query(terms)
        nodes = node_count(terms)
        most = query.maximum(nodes)

        def finish(parts: tuple[Any, ...]) -> Hashable:
            answer = parts[0]
            spread = parts[1][0] if len(parts) > 1 else None
            if name == "isotonic":
                return consistent(query, nodes, answer), spread
            if query.sparse and name == "laplace":
                answer = keep_large(np.array(answer), float(LaplaceSettings.read(settings).scale))[
                    0
                ]
            if query.shape == "vector":
                return tuple(int(min(max(entry, 0), most)) for entry in answer), spread
            value = answer[0] if isinstance(answer, tuple) else answer
            return (min(max(value, 0), most),), spread

        return finish

    def observe(self, outcome: Outcome) -> Hashable:
        if "statistics" in outcome.details:
            return see_statistics(outcome)
        # Only a race that nobody won has a number and no error.
        lost = outcome.error is None and isinstance(outcome.value, int)
        if lost or isinstance(outcome.error, TruncationLaw):
            return seen_total(outcome)
        seen = see_statistic(outcome) or see_projection(outcome)
        if seen is not None:
            return seen
        if isinstance(outcome.value, Topology):
            return number_of(outcome.value.bits())
        if isinstance(outcome.value, Spectrum) or np.asarray(outcome.value).dtype.kind == "f":
            return see(outcome.value)
        spread = outcome.error.spread if isinstance(outcome.error, SpreadLaw) else None
        return vector(outcome.value), spread

    def small(self, query: Query) -> tuple[Dataset, Dataset]:
        if isinstance(query, Per):
            return small_truncated(query.unit)
        if isinstance(query, PerNode):
            return small_per_node()
        if is_synthesis(query):
            return small_for(query)
        if is_spectral(query):
            return small_spectra()
        if query.shape == "vector":
            path = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
            return path, Graph.from_edges([(0, 1)], nodes=3)
        square = [(0, 1), (1, 2), (2, 3), (3, 0)]
        return Graph.from_edges(square, nodes=4), Graph.from_edges([*square, (0, 2)], nodes=4)

    def show(self, dataset: Dataset) -> str:
        assert isinstance(dataset, Graph)
        listed = " ".join(f"{u}-{v}" for u, v in dataset.edges().tolist())
        return f"{dataset.node_count} nodes: {listed or 'no edge'}"

    def odd_questions(self) -> Sequence[Query]:
        return [
            *QUESTIONS,
            topology(),
            *SPECTRA,
            *STATISTICS,
            *SYNTHESIS,
            stars(50),
            k_triangles(50),
            cliques(50),
            3 * triangles() / stars(2),
        ]


@lru_cache(maxsize=8)
def _world(nodes: int) -> World:
    return World.of(f"all graphs on {nodes} nodes", "edge", all_graphs(nodes), graph_key)


@lru_cache(maxsize=8)
def shapes(nodes: int) -> World:
    """Return one graph of each shape, with every pair of neighbours among all graphs."""
    pairs = list(combinations(range(nodes), 2))
    place = {pair: bit for bit, pair in enumerate(pairs)}
    every = np.arange(1 << len(pairs))
    least = every.copy()
    for order in permutations(range(nodes)):
        moved = np.zeros_like(every)
        for bit, (u, v) in enumerate(pairs):
            moved |= (every >> bit & 1) << place[min(order[u], order[v]), max(order[u], order[v])]
        np.minimum(least, moved, out=least)
    kept, shape = np.unique(least, return_inverse=True)
    graphs = [
        Graph.from_edges([pair for pair in pairs if one >> place[pair] & 1], nodes=nodes)
        for one in kept.tolist()
    ]
    second = [shape[every ^ 1 << bit] for bit in range(len(pairs))]
    first = np.tile(shape, len(pairs))
    joined = np.concatenate(second) if second else first
    return World(f"all shapes of {nodes} nodes", Unit.of("edge"), graphs, first, joined, 0)


def consistent(query: Query, nodes: int, noisy: tuple[int, ...]) -> tuple[int, ...]:
    """Post-process a noisy sequence as the isotonic mechanism does."""
    most = nodes - 1 if isinstance(query, Degrees) else nodes
    smoothed = np.clip(decreasing(np.array(noisy, dtype=np.int64)), 0, most)
    final = np.rint(smoothed).astype(np.int64)
    if isinstance(query, DegreeDistribution):
        return vector(-np.diff(np.concatenate([[nodes], final, [0]])))
    return vector(graphical(final))
