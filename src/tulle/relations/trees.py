"""And/or trees as plain arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tulle.core.arrays import Array
from tulle.core.errors import InputError
from tulle.relations.annotations import (
    Annotation,
    ConstantAnnotation,
    Either,
    Participant,
    Together,
)

_GROUPS = 12
_MEMBERS = 1_000
"""An alternative lists at most so many groups, and so many members; longer ones are nested."""


class Trees:
    """The alternatives of tuples and of groups, as :class:`tulle.lp.AlternativesProblem` has them.

    ``add`` takes expressions with participants numbered from zero; groups are numbered in the order
    in which they are met, from ``count`` on.
    """

    def __init__(self, count: int) -> None:
        self.groups = count
        self.sizes: list[int] = []
        self.lengths: list[int] = []
        self.members: list[int] = []

    def add(self, notes: Iterable[Annotation]) -> None:
        """Add a tuple for each expression, then all groups."""
        waiting: list[Annotation] = list(notes)
        # The list grows while it is walked through.
        for note in waiting:
            parts = note.parts if isinstance(note, Either) else (note,)
            self.sizes.append(len(parts))
            for part in parts:
                self._alternative(part, waiting)

    def _alternative(self, note: Annotation, waiting: list[Annotation]) -> None:
        if isinstance(note, Participant):
            self.lengths.append(1)
            self.members.append(note.name)  # type: ignore[arg-type]
            return
        if isinstance(note, ConstantAnnotation):
            if not note.value:
                raise InputError(
                    "An expression has a part that never holds; build expressions with together() "
                    "and either(), which leave such parts out."
                )
            self.lengths.append(0)
            return
        parts = note.parts if isinstance(note, Together) else (note,)
        inner = sum(not isinstance(part, Participant) for part in parts)
        if inner > _GROUPS or len(parts) > _MEMBERS:
            size = _GROUPS if inner > _GROUPS else _MEMBERS
            # As many pieces as may be listed; each is nested in turn if it is too long still.
            size = max(size, -(-len(parts) // size))
            parts = tuple(Together(parts[at : at + size]) for at in range(0, len(parts), size))
        self.lengths.append(len(parts))
        for part in parts:
            if isinstance(part, Participant):
                self.members.append(part.name)  # type: ignore[arg-type]
            else:
                self.members.append(self.groups)
                self.groups += 1
                waiting.append(part)

    def arrays(self, heads: Array, people: Array) -> tuple[Array, Array, Array]:
        """Return (starts, offsets, members), after conjunctions given as arrays."""
        alternatives = len(heads) - 1
        starts = np.concatenate([np.arange(alternatives + 1), alternatives + np.cumsum(self.sizes)])
        offsets = np.concatenate([heads, len(people) + np.cumsum(self.lengths)])
        members = np.concatenate([people, np.array(self.members, dtype=np.int32)])
        return starts.astype(np.int64), offsets.astype(np.int64), members.astype(np.int32)
