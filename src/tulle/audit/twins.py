"""Broken twins: mechanisms that are wrong on purpose, to show that the audit would notice.

A twin looks like a registered mechanism and has one fault that was made in a paper or is easily
made in code. It is never registered, so no plan can choose it. The same checks that pass the
real mechanism must reject its twins; an audit that rejects nothing proves nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tulle.core.mechanism import Mechanism, Parameters, Terms
from tulle.core.query import Query

if TYPE_CHECKING:
    from tulle.audit.kind import Description


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
