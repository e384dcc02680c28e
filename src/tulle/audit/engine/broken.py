"""What a broken version of a mechanism is: wrong on purpose, to show that the audit would notice.

It looks like a registered mechanism and has one fault that was made in a paper or is easily made in
code. It is never registered, so no plan can choose it. The same checks that pass the real mechanism
must reject it; an audit that rejects nothing proves nothing. :mod:`tulle.audit.faults` makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tulle.audit.engine.laws import Law
from tulle.core.mechanism import Mechanism, Parameters, Terms
from tulle.core.query import Query


class Broken(Mechanism):
    """A mechanism with a known fault; it is the real one in everything else."""

    mimics: ClassVar[str]
    """Name of the registered mechanism that it looks like."""

    fault: ClassVar[str]
    """What is wrong with it, and why that matters."""

    caught_by: ClassVar[tuple[str, ...]]
    """The checks that must reject it, each on its own."""

    questions: ClassVar[Sequence[Query]]
    """The questions on which the fault shows."""

    def seen(self, terms: Terms) -> Terms:
        """Return what was asked for as the fault takes it; settings and runs follow this."""
        return terms

    def spoil(
        self, laws: Mapping[str, Law], terms: Terms, settings: Parameters, dataset: Any
    ) -> Mapping[str, Law]:
        """Return those parts of a run that have another law than the real mechanism's."""
        return {}


def name_of(mechanism: Mechanism) -> str:
    """Return the name of a mechanism, and for a broken version that of the real one."""
    return mechanism.mimics if isinstance(mechanism, Broken) else mechanism.name
