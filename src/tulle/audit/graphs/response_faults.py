"""Broken twins of the release of a whole topology."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from tulle.audit.engine.bits import Coins
from tulle.audit.engine.faults import SeededTwin, Twin
from tulle.audit.engine.kind import Description
from tulle.audit.graphs.kind import describe_response
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.graphs.topology.response import Response, Topology, topology


class _Broken(Twin, Response):
    mimics: ClassVar[str] = "response"
    questions: ClassVar[Sequence[Query]] = (topology(),)
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return describe_response(terms, settings, dataset)


class BothTriangles(_Broken):
    """Both halves of the adjacency matrix are drawn, and an edge is kept where both say so."""

    name: ClassVar[str] = "response, both triangles"
    fault: ClassVar[str] = "each pair is shown twice and charged once (algorithm 3 as printed)"

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        upper, lower = (
            super(BothTriangles, self).run(terms, settings, dataset, source) for _ in range(2)
        )
        return Outcome(Topology(upper.value.nodes, upper.value.packed & lower.value.packed), None)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        honest = super().describe(terms, settings, dataset).parts[0][1]
        assert isinstance(honest, Coins)
        invent, keep = honest.ones
        return Description((("answer", replace(honest, ones=(invent**2, keep**2))),))


class NothingInvented(_Broken):
    """Edges are lost, but none is invented."""

    name: ClassVar[str] = "response, nothing invented"
    fault: ClassVar[str] = "a released edge is certainly true"

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        drawn = super().run(terms, settings, dataset, source).value
        true = topology().truth(dataset)  # type: ignore[arg-type]
        return Outcome(Topology(drawn.nodes, drawn.packed & true.packed), None)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        honest = super().describe(terms, settings, dataset).parts[0][1]
        assert isinstance(honest, Coins)
        return Description((("answer", replace(honest, ones=(0.0, honest.ones[1]))),))


class SeededResponse(SeededTwin, _Broken):
    """The noise is the same every time."""

    name: ClassVar[str] = "response, seeded"


def response_twins() -> list[Twin]:
    """Return one of each twin."""
    return [BothTriangles(), NothingInvented(), SeededResponse()]
