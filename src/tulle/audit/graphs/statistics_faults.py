"""Broken twins of the mechanisms for statistics, the printed bounds among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.faults import Twin
from tulle.audit.engine.kind import Description
from tulle.audit.engine.laws import LaplaceVector
from tulle.audit.graphs.statistics import (
    BoundThenVector,
    describe_bounded,
    describe_direct,
    statistic_ladder,
)
from tulle.audit.graphs.wrapped_faults import Wrapped
from tulle.core.dataset import Dataset
from tulle.core.exact import rational, text
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.mechanisms.decomposed import Decomposed
from tulle.graphs.mechanisms.ladder import draw_ladder
from tulle.graphs.mechanisms.laplace import Laplace
from tulle.graphs.mechanisms.private_bound import PrivateBound, law_of
from tulle.graphs.mechanisms.statistic_ladder import StatisticLadder
from tulle.graphs.queries.local_counts import (
    BoundedVector,
    TriplesPerNode,
    triangles_per_node,
    triples_per_node,
)
from tulle.graphs.queries.statistics import (
    Statistic,
    assortativity,
    average_clustering,
    clustering,
    modularity,
    transitivity,
)
from tulle.noise import SeededSource, discrete_laplace

_SCALARS: tuple[Query, ...] = (
    transitivity(),
    average_clustering(),
    clustering(0),
    assortativity(),
    modularity([0, 1]),
)


class _Settings(Wrapped):
    """One setting of the real mechanism is wrong."""

    fault: ClassVar[str] = "a fraction of the noise that the guarantee needs"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    setting: ClassVar[str]
    factor: ClassVar[Fraction]

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = dict(super().settings(terms, options))
        honest[self.setting] = text(rational(honest[self.setting]) * self.factor)
        return honest


class _Seeded(Wrapped):
    fault: ClassVar[str] = "noise from a seeded source: who knows the seed can undo it"
    caught_by: ClassVar[tuple[str, ...]] = ("fresh noise", "sampler")

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        return super().run(terms, settings, dataset, SeededSource(7))


def _made(
    base: type[Wrapped], original: type[Mechanism], what: str, asked: Sequence[Query], **more: Any
) -> Wrapped:
    values = {
        "__doc__": f"{base.__doc__} Mimics {original.name}.",
        "name": f"{original.name}, {what}",
        "mimics": original.name,
        "original": original,
        "needs_delta": original.needs_delta,
        "questions": tuple(asked),
        **more,
    }
    made: Wrapped = type(f"{base.__name__}{original.__name__}", (base,), values)()
    return made


class _WrongProfile(Twin, StatisticLadder):
    """A ladder of a statistic on widths that are wrong."""

    mimics: ClassVar[str] = "statistic_ladder"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")

    def row(self, query: Statistic, graph: Graph, units: int, length: int) -> list[int]:
        """Return the wrong widths."""
        raise TypeError("each twin has its own fault")

    def _widths(self, terms: Terms, settings: Parameters, graph: Graph) -> list[int]:
        assert isinstance(terms.query, Statistic)
        units = int(settings["units"])
        rows = self.row(terms.query, graph, units, int(settings["length"]))
        return [min(max(row, 1), terms.query.cap(units)) for row in rows]

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        assert isinstance(terms.query, Statistic)
        widths = self._widths(terms, settings, dataset)
        centre = terms.query.position(dataset, int(settings["units"]))
        honest = describe_direct(terms, settings, dataset).parts
        wrong = statistic_ladder(terms.query, settings, centre, widths)
        return Description((("answer", wrong), *honest[1:]))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        assert isinstance(terms.query, Statistic)
        units = int(settings["units"])
        widths = self._widths(terms, settings, dataset)
        largest = terms.query.cap(units)
        noise = draw_ladder(widths, largest, rational(settings["decay"]), source)
        honest = StatisticLadder.run(self, terms, settings, dataset, source)
        low, high = terms.query.limits()
        value = min(max((terms.query.position(dataset, units) + noise) / units, low), high)
        return replace(honest, value=value)


class PrintedClustering(_WrongProfile):
    """The dissertation's bound for the vector of clustering coefficients."""

    name: ClassVar[str] = "statistic_ladder, printed clustering"
    fault: ClassVar[str] = "d_max + half-built triangles: K3 moves by 3 (chapter 2, result 3)"
    questions: ClassVar[Sequence[Query]] = (average_clustering(),)

    def row(self, query: Statistic, graph: Graph, units: int, length: int) -> list[int]:
        count = graph.node_count
        largest = int(degrees(graph).max(initial=0))
        half = half_built(graph)
        return [
            -(-min(largest + (t + min(t, half)) // 2, count - 1) * units // count)
            for t in range(length)
        ]


class DeletionsStatistic(_WrongProfile):
    """The largest change over removed edges, on this graph, for every distance."""

    name: ClassVar[str] = "statistic_ladder, deletions only"
    fault: ClassVar[str] = "local sensitivity over deletions only, as printed in a dissertation"
    questions: ClassVar[Sequence[Query]] = _SCALARS

    def row(self, query: Statistic, graph: Graph, units: int, length: int) -> list[int]:
        pairs = {(int(u), int(v)) for u, v in graph.edges()}
        here = query.position(graph, units)
        changes = [
            abs(
                here
                - query.position(
                    Graph.from_edges(sorted(pairs - {pair}), nodes=graph.node_count), units
                )
            )
            for pair in pairs
            if len(pairs) > 1
        ]
        return [max(changes, default=1)] * length


def half_built(graph: Graph) -> int:
    """Return the most nodes that are adjacent to exactly one of two nodes, as printed."""
    count = graph.node_count
    adjacency = np.zeros((count, count), dtype=np.int64)
    for u, v in graph.edges().tolist():
        adjacency[u, v] = adjacency[v, u] = 1
    return max(
        (int(np.sum(adjacency[i] ^ adjacency[j])) for i, j in combinations(range(count), 2)),
        default=0,
    )


class OpenLevel(Wrapped):
    """The level that the interval needs is released as it is."""

    name: ClassVar[str] = "statistic_ladder, open level"
    mimics: ClassVar[str] = "statistic_ladder"
    original: ClassVar[type[Mechanism]] = StatisticLadder
    fault: ClassVar[str] = "the level of the widths without noise"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    questions: ClassVar[Sequence[Query]] = (transitivity(), average_clustering())

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        answer, (name, level) = super().describe(terms, settings, dataset).parts
        assert isinstance(level, LaplaceVector)
        return Description((answer, (name, replace(level, scales=(Fraction(0),)))))


class Unraised(Wrapped):
    """The private bound is used as it was drawn: it is below the truth half of the time."""

    name: ClassVar[str] = "private_bound, not raised"
    mimics: ClassVar[str] = "private_bound"
    original: ClassVar[type[Mechanism]] = PrivateBound
    needs_delta: ClassVar[bool] = True
    fault: ClassVar[str] = "nothing makes it unlikely that the bound is too low"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    questions: ClassVar[Sequence[Query]] = (triangles_per_node(), clustering())

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        return {**super().settings(terms, options), "shift": 0}


class PrintedCoefficients(Wrapped):
    """The bound for the vector of coefficients is the largest degree, as printed."""

    name: ClassVar[str] = "private_bound, printed coefficients"
    mimics: ClassVar[str] = "private_bound"
    original: ClassVar[type[Mechanism]] = PrivateBound
    needs_delta: ClassVar[bool] = True
    fault: ClassVar[str] = "d_max for the coefficients: K3 moves by 3 (chapter 2, table 2)"
    caught_by: ClassVar[tuple[str, ...]] = ("claims",)
    questions: ClassVar[Sequence[Query]] = (clustering(),)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        law = describe_bounded(terms, settings, dataset).parts[0][1]
        assert isinstance(law, BoundThenVector)
        units, largest = int(settings["units"]), int(degrees(dataset).max(initial=0))
        reaches = tuple(units * bound for bound in range(1, dataset.node_count + 1))
        return Description((("answer", replace(law, spread=largest, reaches=reaches)),))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        outcome = super().run(terms, settings, dataset, source)
        assert isinstance(dataset, Graph)
        assert isinstance(terms.query, BoundedVector)
        bound = int(degrees(dataset).max(initial=0)) + 1
        return replace(outcome, error=law_of(terms.query, settings, bound))


class PrintedTriples(Twin, Laplace):
    """Noise on the printed local sensitivity of triples per node."""

    name: ClassVar[str] = "laplace, printed triples"
    mimics: ClassVar[str] = "laplace"
    fault: ClassVar[str] = "2·d_max - 2, of the graph at hand and of removed edges (result 4)"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = (triples_per_node(),)

    def _printed(self, graph: Graph) -> int:
        return max(2 * int(degrees(graph).max(initial=0)) - 2, 1)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        centre = tuple(TriplesPerNode().truth(dataset).tolist())
        printed = self._printed(dataset)
        scales = (Fraction(printed) / terms.epsilon,) * len(centre)
        return Description((("answer", LaplaceVector(centre, scales, Fraction(printed))),))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        exact = TriplesPerNode().truth(dataset)
        scale = Fraction(self._printed(dataset)) / terms.epsilon
        noise = discrete_laplace(scale=scale, size=exact.shape, source=source)
        return Outcome(np.maximum(exact + noise, 0), None)


def statistics_twins() -> list[Twin]:
    """Return one of each twin."""
    half, twice = Fraction(1, 2), Fraction(2)
    vectors = (triangles_per_node(), clustering())
    return [
        _made(
            _Settings, StatisticLadder, "half the noise", _SCALARS, setting="decay", factor=twice
        ),
        _made(
            _Settings,
            PrivateBound,
            "half the noise",
            vectors,
            setting="epsilon_answer",
            factor=twice,
        ),
        _made(
            _Settings,
            Decomposed,
            "half the noise",
            (triples_per_node(),),
            setting="scale",
            factor=half,
        ),
        _made(_Seeded, StatisticLadder, "seeded", (transitivity(),)),
        _made(_Seeded, PrivateBound, "seeded", (triangles_per_node(),)),
        _made(_Seeded, Decomposed, "seeded", (triples_per_node(),)),
        PrintedClustering(),
        DeletionsStatistic(),
        OpenLevel(),
        Unraised(),
        PrintedCoefficients(),
        PrintedTriples(),
    ]
