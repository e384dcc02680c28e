"""Broken twins of graph mechanisms that change one thing around the real mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.faults import FaithfulTwin, SeededTwin, Twin
from tulle.audit.engine.kind import Description
from tulle.audit.engine.laws import LaplaceVector
from tulle.audit.graphs.kind import DESCRIBERS, consistent
from tulle.core.dataset import Dataset
from tulle.core.exact import rational, text
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.graphs.mechanisms.isotonic import Isotonic
from tulle.graphs.mechanisms.ladder import Ladder, SmoothedLadder
from tulle.graphs.mechanisms.laplace import Laplace
from tulle.graphs.mechanisms.settings import SpreadLaw, graph_query
from tulle.graphs.mechanisms.smooth import Smooth, SmoothPure
from tulle.graphs.queries.counts import (
    degree_distribution,
    degrees,
    edges,
    k_triangles,
    stars,
    triangles,
)
from tulle.graphs.queries.local_counts import degree_of, edges_within
from tulle.noise import discrete_laplace

_COUNTS: tuple[Query, ...] = (triangles(), stars(2), stars(3), k_triangles(2))
_PARTS: tuple[Query, ...] = (degree_of(0), edges_within([0, 1]))
_VECTORS: tuple[Query, ...] = (degrees(), degree_distribution())


class Wrapped(FaithfulTwin):
    """A twin that hands everything to the real mechanism, but for its fault."""

    kind: ClassVar[str] = "graph"

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return DESCRIBERS[self.mimics](terms, settings, dataset)


def _make(base: type[Wrapped], original: type[Mechanism], what: str, **more: Any) -> Wrapped:
    """Return the twin of one mechanism with the fault of ``base``."""
    values = {
        "__doc__": f"{base.__doc__} Mimics {original.name}.",
        "name": f"{original.name}, {what}",
        "mimics": original.name,
        "original": original,
        "needs_delta": original.needs_delta,
        **more,
    }
    made: Wrapped = type(f"{base.__name__}{original.__name__}", (base,), values)()
    return made


class Scaled(Wrapped):
    """Too little noise."""

    fault: ClassVar[str] = "a fraction of the noise that the guarantee needs"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    setting: ClassVar[str]
    factor: ClassVar[Fraction]

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = dict(super().settings(terms, options))
        honest[self.setting] = text(rational(honest[self.setting]) * self.factor)
        return honest

    @classmethod
    def all(cls) -> list[Twin]:
        """Return the twin of each mechanism."""
        half, twice = Fraction(1, 2), Fraction(2)
        rows: list[tuple[type[Mechanism], Sequence[Query], str, Fraction]] = [
            (Laplace, (edges(), triangles(), *_PARTS, *_VECTORS), "scale", half),
            (Isotonic, _VECTORS, "scale", half),
            (Ladder, _COUNTS, "decay", twice),
            (SmoothedLadder, _COUNTS, "decay", twice),
            (SmoothPure, _COUNTS, "alpha", twice),
            # Half the noise would still be private here: half of epsilon pays for a change of
            # scale that, on small graphs, never comes together with the largest move.
            (Smooth, _COUNTS, "alpha", 2 * twice),
        ]
        names = {
            half: "half the noise",
            twice: "half the noise",
            2 * twice: "a quarter of the noise",
        }
        return [
            _make(cls, original, names[factor], questions=asked, setting=setting, factor=factor)
            for original, asked, setting, factor in rows
        ]


class Seeded(SeededTwin, Wrapped):
    """The noise is the same every time."""

    @classmethod
    def all(cls) -> list[Twin]:
        """Return the twin of each mechanism."""
        rows: list[tuple[type[Mechanism], Query]] = [
            (Laplace, edges()),
            (Isotonic, degrees()),
            (Ladder, triangles()),
            (SmoothedLadder, triangles()),
            (Smooth, triangles()),
            (SmoothPure, triangles()),
        ]
        return [_make(cls, original, "seeded", questions=(asked,)) for original, asked in rows]


class OpenSpread(Wrapped):
    """The spread that the interval needs is released as it is."""

    fault: ClassVar[str] = "the private spread without noise"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    questions: ClassVar[Sequence[Query]] = (triangles(), stars(2))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        outcome = super().run(terms, settings, dataset, source)
        assert isinstance(outcome.error, SpreadLaw)
        spread = self.describe(terms, settings, dataset).parts[1][1]
        assert isinstance(spread, LaplaceVector)
        return replace(outcome, error=replace(outcome.error, spread=spread.centre[0]))

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        answer, (name, spread) = super().describe(terms, settings, dataset).parts
        assert isinstance(spread, LaplaceVector)
        return Description((answer, (name, replace(spread, scales=(Fraction(0),)))))

    @classmethod
    def all(cls) -> list[Twin]:
        """Return the twin of each mechanism that has a spread."""
        originals: tuple[type[Mechanism], ...] = (Ladder, SmoothedLadder, Smooth, SmoothPure)
        return [_make(cls, original, "open spread") for original in originals]


class Skipping(Twin):
    """Some entries get no noise."""

    caught_by: ClassVar[tuple[str, ...]] = ("exact",)

    def noisy(self, centre: Sequence[int]) -> list[bool]:
        """Say which entries get noise."""
        return [True] * len(centre)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        law = DESCRIBERS[self.mimics](terms, settings, dataset).parts[0][1]
        assert isinstance(law, LaplaceVector)
        kept = zip(law.scales, self.noisy(law.centre), strict=True)
        scales = tuple(scale if noisy else Fraction(0) for scale, noisy in kept)
        return Description((("answer", replace(law, scales=scales)),))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        law = self.describe(terms, settings, dataset).parts[0][1]
        assert isinstance(law, LaplaceVector)
        noise = discrete_laplace(
            scale=rational(settings["scale"]), size=len(law.centre), source=source
        )
        values = np.array(law.centre) + np.where([s > 0 for s in law.scales], noise, 0)
        nodes = int(settings["nodes"])
        if self.mimics == "isotonic":
            final = np.array(consistent(terms.query, nodes, tuple(values.tolist())))
        else:
            final = np.clip(values, 0, graph_query(terms).maximum(nodes))
        return Outcome(final, None)
