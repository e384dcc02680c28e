"""Tuples of several alternatives, as arrays: nothing is an object for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tulle.core.arrays import Array
from tulle.relations.annotations import Annotation, Either, Participant, Together


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Tuple t has the alternatives ``starts[t]`` to ``starts[t + 1]``, each enough by itself;
    alternative w needs all of ``members[offsets[w]:offsets[w + 1]]``. None of a tuple's is within
    another, and each needs somebody.

    Example:
        >>> two = Alternatives(*map(np.array, ([0, 2], [0, 1, 3], [0, 1, 2], [5.0])))
        >>> two.annotations()[0][1]
        5.0
    """

    starts: Array
    offsets: Array
    members: Array
    weights: Array

    @classmethod
    def of_rows(cls, starts: Array, rows: Array, nobody: int, weights: Array) -> Alternatives:
        """Return tuples whose alternatives are rows of participants, filled up with ``nobody``."""
        there = rows != nobody
        offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
        return cls(starts.astype(np.int64), offsets, rows[there].astype(np.int32), weights)

    def signed(self, sign: float) -> Alternatives:
        """Return the tuples whose weights have this sign, with weights above zero."""
        kept = sign * self.weights > 0
        counts = np.diff(self.starts)
        listed = np.repeat(kept, counts)
        sizes = np.diff(self.offsets)
        return Alternatives(
            np.concatenate([[0], np.cumsum(counts[kept])]).astype(np.int64),
            np.concatenate([[0], np.cumsum(sizes[listed])]).astype(np.int64),
            self.members[np.repeat(listed, sizes)],
            sign * self.weights[kept],
        )

    def annotations(self) -> tuple[tuple[Annotation, float], ...]:
        """Return the tuples as expressions: an object for each, for small relations."""
        ends, bounds = self.starts.tolist(), self.offsets.tolist()
        people = [Participant(one) for one in self.members.tolist()]
        notes: list[Annotation] = [
            people[low] if high == low + 1 else Together(tuple(people[low:high]))
            for low, high in pairwise(bounds)
        ]
        return tuple(
            (Either(tuple(notes[low:high])), weight)
            for low, high, weight in zip(ends[:-1], ends[1:], self.weights.tolist(), strict=True)
        )
