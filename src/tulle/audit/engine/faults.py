"""Broken twins: mechanisms that are wrong on purpose, to show that the audit would notice.

A twin looks like a registered mechanism and has one fault that was made in a paper or is easily
made in code. It is never registered, so no plan can choose it. The same checks that pass the
real mechanism must reject its twins; an audit that rejects nothing proves nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tulle.core.dataset import Dataset
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.noise import SeededSource

if TYPE_CHECKING:
    from tulle.audit.engine.kind import Description


class Twin(Mechanism):
    """A mechanism with a known fault."""

    mimics: ClassVar[str]
    """Name of the registered mechanism that it looks like."""

    fault: ClassVar[str]
    """What is wrong with it, and why that matters."""

    caught_by: ClassVar[tuple[str, ...]]
    """The checks that must reject it, each on its own."""

    questions: ClassVar[Sequence[Query]]
    """The questions on which the fault shows."""

    @abstractmethod
    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        """Return the closed form of a run, fault included."""


class FaithfulTwin(Twin):
    """A twin that hands everything to the real mechanism, but for its fault."""

    title: ClassVar[str] = "a broken version"
    reference: ClassVar[str] = "none"
    original: ClassVar[type[Mechanism]]
    """The real mechanism."""

    def supports(self, query: Query, unit: Unit) -> bool:
        return self.original().supports(query, unit)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        return self.original().settings(terms, options)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        return self.original().predict(terms, settings, like)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        return self.original().run(terms, settings, dataset, source)


class SeededTwin(Twin):
    """A twin whose noise is the same every time: put it before the twin that it spoils."""

    fault: ClassVar[str] = "noise from a seeded source: who knows the seed can undo it"
    caught_by: ClassVar[tuple[str, ...]] = ("fresh noise", "sampler")

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        # The twin behind it in the order of classes has the run.
        return super().run(terms, settings, dataset, SeededSource(7))  # type: ignore[safe-super]
