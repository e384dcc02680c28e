"""Broken twins of the mechanisms on graphs."""

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
from tulle.audit.engine.rounded import RoundedHeavy, RoundedLaplace
from tulle.audit.graphs.joint_faults import joint_twins
from tulle.audit.graphs.kind import DESCRIBERS, ladder_law, measured, vector, with_spread
from tulle.audit.graphs.projection import projection_twins
from tulle.audit.graphs.response_faults import response_twins
from tulle.audit.graphs.spectra_faults import spectra_twins
from tulle.audit.graphs.statistics_faults import statistics_twins
from tulle.audit.graphs.synthesis_degrees_faults import degree_twins
from tulle.audit.graphs.synthesis_models_faults import model_twins
from tulle.audit.graphs.wrapped_faults import OpenSpread, Scaled, Seeded, Skipping
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.exact import rational
from tulle.core.mechanism import Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.mechanisms.isotonic import Isotonic
from tulle.graphs.mechanisms.ladder import Ladder, SmoothedLadder, draw_ladder
from tulle.graphs.mechanisms.laplace import Laplace
from tulle.graphs.mechanisms.settings import SpreadBudget, graph_query, profiled_count
from tulle.graphs.mechanisms.smooth import Smooth, SmoothPure, smooth_bound
from tulle.graphs.queries.counts import (
    GraphQuery,
    cliques,
    degree_distribution,
    degrees,
    k_triangles,
    stars,
    triangles,
)
from tulle.graphs.queries.local_counts import chains, degree_squares, triangles_at
from tulle.graphs.sensitivity.counts import LocalSensitivity

_COUNTS: tuple[Query, ...] = (triangles(), stars(2), stars(3), k_triangles(2))


class _Reshaped(Twin):
    """A ladder or smooth mechanism that uses another profile than the real one."""

    questions: ClassVar[Sequence[Query]] = _COUNTS
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")

    def reshape(
        self, query: GraphQuery, graph: Graph, found: LocalSensitivity, most: int
    ) -> Sequence[int]:
        """Return the wrong profile."""
        raise TypeError("each twin has its own fault")

    def _wrong(
        self, terms: Terms, settings: Parameters, graph: Graph
    ) -> tuple[int, LocalSensitivity, int]:
        query = profiled_count(terms)
        truth, found = measured(query, graph, int(settings["length"]))
        most = query.cap(int(settings["nodes"]))
        wrong = [min(max(width, 1), most) for width in self.reshape(query, graph, found, most)]
        return truth, found._replace(profile=wrong), most

    def draw(
        self, found: LocalSensitivity, most: int, settings: Parameters, source: Source | None
    ) -> int:
        """Draw the noise that the wrong profile leads to."""
        raise TypeError("ladders and smooth bounds draw differently")

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        truth, found, most = self._wrong(terms, settings, dataset)
        largest = graph_query(terms).maximum(int(settings["nodes"]))
        value = min(max(truth + self.draw(found, most, settings, source), 0), largest)
        private = SpreadBudget.from_settings(settings).draw(found.spread, source)
        honest = super().run(terms, settings, dataset, source)  # type: ignore[safe-super]
        assert private is not None
        return replace(honest, value=value, error=_with_private(honest.error, private[0]))


def _with_private(error: Any, spread: int) -> Any:
    return replace(error, spread=spread)


class _ReshapedLadder(_Reshaped):
    def draw(
        self, found: LocalSensitivity, most: int, settings: Parameters, source: Source | None
    ) -> int:
        return draw_ladder(found.profile, most, rational(settings["decay"]), source)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        truth, found, most = self._wrong(terms, settings, dataset)
        return with_spread(ladder_law(truth, found.profile, most, settings), found.spread, settings)


class _ReshapedSmooth(_Reshaped):
    law: ClassVar[Any]
    shape: ClassVar[type[RoundedLaplace] | type[RoundedHeavy]]

    def bound(self, found: LocalSensitivity, most: int, settings: Parameters) -> Fraction:
        """Return the bound that the noise follows."""
        return smooth_bound(found.profile, most, rational(settings["beta"]))

    def draw(
        self, found: LocalSensitivity, most: int, settings: Parameters, source: Source | None
    ) -> int:
        scale = self.bound(found, most, settings) / rational(settings["alpha"])
        assert isinstance(self, Smooth | SmoothPure)
        return self.noise(scale, source)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        truth, found, most = self._wrong(terms, settings, dataset)
        rates = rational(settings["alpha"]), rational(settings["beta"])
        answer = self.shape(truth, self.bound(found, most, settings), *rates)
        return with_spread(answer, found.spread, settings)


class ConstantLadder(_ReshapedLadder, Ladder):
    """Every rung as wide as the first."""

    name: ClassVar[str] = "ladder, constant widths"
    mimics: ClassVar[str] = "ladder"
    fault: ClassVar[str] = "the local sensitivity of the graph at hand on every rung"

    def reshape(
        self, query: GraphQuery, graph: Graph, found: LocalSensitivity, most: int
    ) -> Sequence[int]:
        return [found.profile[0]] * len(found.profile)


class RawSteep(_ReshapedLadder, SmoothedLadder):
    """SmoothedLadder steps on widths that were not smoothed."""

    name: ClassVar[str] = "smoothed_ladder, raw widths"
    mimics: ClassVar[str] = "smoothed_ladder"
    fault: ClassVar[str] = "decay epsilon - smoothing on widths that may grow faster"

    def reshape(
        self, query: GraphQuery, graph: Graph, found: LocalSensitivity, most: int
    ) -> Sequence[int]:
        return found.profile


def deletions_only(query: GraphQuery, graph: Graph, found: LocalSensitivity) -> list[int]:
    """Return the profile with a local sensitivity over removed edges only, as papers print it."""
    pairs = {(int(u), int(v)) for u, v in graph.edges()}
    here = int(query.truth(graph))
    changes = [
        here - int(query.truth(Graph.from_edges(sorted(pairs - {pair}), nodes=graph.node_count)))
        for pair in pairs
    ]
    gap = found.profile[0] - max(changes, default=0)
    return [width - gap for width in found.profile]


class _Deletions(_Reshaped):
    questions: ClassVar[Sequence[Query]] = (
        triangles(),
        k_triangles(2),
        cliques(4),
        chains(),
        triangles_at(0),
        degree_squares(),
        degree_squares([0, 1]),
    )
    fault: ClassVar[str] = "local sensitivity over deletions only, as printed in a dissertation"

    def reshape(
        self, query: GraphQuery, graph: Graph, found: LocalSensitivity, most: int
    ) -> Sequence[int]:
        return deletions_only(query, graph, found)


class DeletionsLadder(_Deletions, _ReshapedLadder, Ladder):
    """A ladder that has heard of removed edges only."""

    name: ClassVar[str] = "ladder, deletions only"
    mimics: ClassVar[str] = "ladder"


class DeletionsSteep(_Deletions, _ReshapedLadder, SmoothedLadder):
    """A smoothed ladder that has heard of removed edges only."""

    name: ClassVar[str] = "smoothed_ladder, deletions only"
    mimics: ClassVar[str] = "smoothed_ladder"

    def reshape(
        self, query: GraphQuery, graph: Graph, found: LocalSensitivity, most: int
    ) -> Sequence[int]:
        return deletions_only(query, graph, found)


class DeletionsSmooth(_Deletions, _ReshapedSmooth, Smooth):
    """A smooth bound that has heard of removed edges only."""

    name: ClassVar[str] = "smooth, deletions only"
    mimics: ClassVar[str] = "smooth"
    shape: ClassVar[type[RoundedLaplace] | type[RoundedHeavy]] = RoundedLaplace
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")


class DeletionsPure(_Deletions, _ReshapedSmooth, SmoothPure):
    """A smooth bound for heavy-tailed noise that has heard of removed edges only."""

    name: ClassVar[str] = "smooth_pure, deletions only"
    mimics: ClassVar[str] = "smooth_pure"
    shape: ClassVar[type[RoundedLaplace] | type[RoundedHeavy]] = RoundedHeavy
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")


class PrintedStars(_ReshapedSmooth, Smooth):
    """The dissertation's bound for paths of length two, with its min and max put right."""

    name: ClassVar[str] = "smooth, printed 2-stars"
    mimics: ClassVar[str] = "smooth"
    fault: ClassVar[str] = "d_max + d_second - 2 counts removed edges only (chapter 2, result 4)"
    questions: ClassVar[Sequence[Query]] = (stars(2),)
    shape: ClassVar[type[RoundedLaplace] | type[RoundedHeavy]] = RoundedLaplace
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")

    def reshape(
        self, query: GraphQuery, graph: Graph, found: LocalSensitivity, most: int
    ) -> Sequence[int]:
        count = graph.node_count
        adjacency = np.zeros((count, count), dtype=np.int64)
        for u, v in graph.edges().tolist():
            adjacency[u, v] = adjacency[v, u] = 1
        second, first = np.sort(adjacency.sum(axis=0))[-2:].tolist()
        half_built = max(
            int(np.sum(adjacency[i] ^ adjacency[j])) for i, j in combinations(range(count), 2)
        )
        return [
            first + second - 2 + (t + min(t, half_built)) // 2 for t in range(len(found.profile))
        ]


class _Local(_ReshapedSmooth):
    fault: ClassVar[str] = "noise on the local sensitivity itself, which neighbours do not share"

    def reshape(
        self, query: GraphQuery, graph: Graph, found: LocalSensitivity, most: int
    ) -> Sequence[int]:
        return found.profile

    def bound(self, found: LocalSensitivity, most: int, settings: Parameters) -> Fraction:
        return Fraction(found.profile[0])


class LocalSmooth(_Local, Smooth):
    """Laplace noise on the local sensitivity."""

    name: ClassVar[str] = "smooth, local"
    mimics: ClassVar[str] = "smooth"
    shape: ClassVar[type[RoundedLaplace] | type[RoundedHeavy]] = RoundedLaplace


class LocalPure(_Local, SmoothPure):
    """Heavy-tailed noise on the local sensitivity."""

    name: ClassVar[str] = "smooth_pure, local"
    mimics: ClassVar[str] = "smooth_pure"
    shape: ClassVar[type[RoundedLaplace] | type[RoundedHeavy]] = RoundedHeavy


class HalfDrawn(Twin, Smooth):
    """The settings are right and the draw is not: half the scale that they say."""

    name: ClassVar[str] = "smooth, half the scale drawn"
    mimics: ClassVar[str] = "smooth"
    fault: ClassVar[str] = "the code draws less noise than its stated settings say"
    questions: ClassVar[Sequence[Query]] = (triangles(),)
    caught_by: ClassVar[tuple[str, ...]] = ("sampler",)

    def noise(self, scale: Fraction, source: Source | None) -> int:
        return super().noise(scale / 2, source)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return DESCRIBERS["smooth"](terms, settings, dataset)


class CutHistogram(Skipping, Laplace):
    """A histogram that ends at the true largest degree."""

    name: ClassVar[str] = "laplace, cut histogram"
    mimics: ClassVar[str] = "laplace"
    fault: ClassVar[str] = "the length of the answer tells the largest degree"
    questions: ClassVar[Sequence[Query]] = (degree_distribution(),)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        outcome = Laplace.run(self, terms, settings, dataset, source)
        return replace(outcome, value=outcome.value[: self._end(dataset)])

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        honest = DESCRIBERS["laplace"](terms, settings, dataset)
        law = honest.parts[0][1]
        assert isinstance(law, LaplaceVector)
        end = self._end(dataset)
        return Description(
            (("answer", replace(law, centre=law.centre[:end], scales=law.scales[:end])),)
        )

    def _end(self, graph: Graph) -> int:
        return max(vector(degrees().truth(graph))) + 1


class SkippedDegree(Skipping, Laplace):
    """One entry of the degree sequence is left as it is."""

    name: ClassVar[str] = "laplace, skipped entry"
    mimics: ClassVar[str] = "laplace"
    fault: ClassVar[str] = "the largest degree gets no noise"
    questions: ClassVar[Sequence[Query]] = (degrees(),)

    def noisy(self, centre: Sequence[int]) -> list[bool]:
        return [place > 0 for place in range(len(centre))]


class NonZeroCells(Skipping, Laplace):
    """Noise only on the cells of the distribution that are not zero."""

    name: ClassVar[str] = "laplace, non-zero cells"
    mimics: ClassVar[str] = "laplace"
    fault: ClassVar[str] = "exact zeros tell which degrees nobody has"
    questions: ClassVar[Sequence[Query]] = (degree_distribution(),)

    def noisy(self, centre: Sequence[int]) -> list[bool]:
        return [value != 0 for value in centre]


class SkippedIsotonic(Skipping, Isotonic):
    """One entry of the sorted sequence is left as it is."""

    name: ClassVar[str] = "isotonic, skipped entry"
    mimics: ClassVar[str] = "isotonic"
    fault: ClassVar[str] = "the first entry of the sequence gets no noise"
    questions: ClassVar[Sequence[Query]] = (degrees(),)

    def noisy(self, centre: Sequence[int]) -> list[bool]:
        return [place > 0 for place in range(len(centre))]


@registry.register("audit", "graph", "faults")
def graph_twins() -> list[Twin]:
    """Return one of each twin."""
    return [
        *response_twins(),
        *spectra_twins(),
        *statistics_twins(),
        *projection_twins(),
        *degree_twins(),
        *joint_twins(),
        *model_twins(),
        *Scaled.all(),
        *Seeded.all(),
        *OpenSpread.all(),
        ConstantLadder(),
        RawSteep(),
        DeletionsLadder(),
        DeletionsSteep(),
        DeletionsSmooth(),
        DeletionsPure(),
        PrintedStars(),
        HalfDrawn(),
        LocalSmooth(),
        LocalPure(),
        CutHistogram(),
        SkippedDegree(),
        NonZeroCells(),
        SkippedIsotonic(),
    ]
