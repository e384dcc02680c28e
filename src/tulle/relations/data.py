"""Sealed tuples owned by participants: what every joined query comes down to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Array
from tulle.core.dataset import Dataset, Facts
from tulle.core.errors import InputError
from tulle.core.unit import Unit
from tulle.relations.alternatives import Alternatives
from tulle.relations.annotated_table import AnnotatedTable
from tulle.relations.annotations import (
    ALWAYS,
    NEVER,
    Annotation,
    Either,
    Participant,
    Together,
    either,
    together,
)
from tulle.relations.trees import Trees


class Relation(Dataset, only_assigns=True):
    """Tuples with weights, each annotated with the participants that it needs.

    Conjunctions ("all of these must be there") are stored as a sparse incidence, which is what
    joins of owned rows and subgraphs give. Other annotations (a projection with duplicates, a
    union) are kept as expressions beside them.

    The participants, their number and the tuples are all private: nothing about a relation is
    public.

    Example:
        >>> triangles = Relation.conjunctive([0, 3, 6], [0, 1, 2, 1, 2, 3], count=4)
        >>> triangles.total
        2.0
    """

    kind: ClassVar[str] = "relation"
    units: ClassVar[tuple[str, ...]] = ("participant",)

    def __init__(
        self,
        offsets: Array,
        participants: Array,
        weights: Array,
        count: int,
        general: tuple[tuple[Annotation, float], ...] = (),
        alternatives: Alternatives | None = None,
    ) -> None:
        self.offsets = offsets
        self.participants = participants
        self.weights = weights
        self.count = count
        self.notes = general
        filled = alternatives is not None and len(alternatives.weights)
        self.alternatives = alternatives if filled else None
        """Tuples of several alternatives as arrays, beside or instead of expressions."""

    @classmethod
    def conjunctive(
        cls,
        offsets: npt.ArrayLike,
        participants: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        *,
        count: int | None = None,
    ) -> Relation:
        """Build from an incidence: tuple t needs ``participants[offsets[t]:offsets[t + 1]]``.

        Weights are one when left out; they may be negative. Participants are numbered from zero.

        Raises:
            InputError: when the arrays do not describe such a relation.
        """
        starts = np.asarray(offsets, dtype=np.int64)
        members = np.asarray(participants, dtype=np.int64).astype(np.int32)
        if starts.ndim != 1 or len(starts) < 1 or starts[0] != 0 or starts[-1] != len(members):
            raise InputError(
                "offsets must start at 0 and end at the number of participants listed."
            )
        if bool((np.diff(starts) < 0).any()):
            raise InputError("offsets must not decrease.")
        tuples = len(starts) - 1
        heights = np.ones(tuples) if weights is None else np.asarray(weights, dtype=np.float64)
        if heights.shape != (tuples,) or not bool(np.isfinite(heights).all()):
            raise InputError("weights must be one finite number per tuple.")
        most = int(members.max(initial=-1)) + 1
        if members.size and int(members.min()) < 0:
            raise InputError("participants are numbered from zero.")
        if count is not None and count < most:
            raise InputError("count must exceed every participant's number.")
        return cls(starts, members, heights, most if count is None else count)

    @classmethod
    def from_table(
        cls, table: AnnotatedTable, weight: Callable[[dict[str, Any]], float] | None = None
    ) -> Relation:
        """Build from an annotated table; ``weight`` gives each row's number, one when left out."""
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        heights = [1.0 if weight is None else float(weight(row)) for row in rows]
        return cls.from_annotations(zip(table.rows.values(), heights, strict=True))

    @classmethod
    def from_annotations(
        cls, items: Iterable[tuple[Annotation, float]], *, normalise: bool = True
    ) -> Relation:
        """Build from pairs of annotation and weight.

        Annotations get the relaxation of their disjunctive normal form, which is always safe and
        never costs accuracy. They are written out only where parts share participants
        (:meth:`Annotation.factored_form`), since elsewhere nothing changes. Where many parts share
        many, that is long: the numbers of the normal form are a weighted set cover, for which no
        fast method is known. ``normalise=False`` keeps annotations as they are: time then grows
        with their length alone, and a participant named twice on one way counts twice, which may
        cost accuracy. It is for whoever builds the relation to choose, and for all data alike:
        whether a simplification applies must not depend on who takes part.
        """
        listed = [(note.factored_form() if normalise else note, height) for note, height in items]
        names: dict[Any, int] = {}
        for note, _ in listed:
            for name in sorted(note.participants(), key=repr):
                names.setdefault(name, len(names))
        offsets, members, heights = [0], [], []
        general: list[tuple[Annotation, float]] = []
        for note, height in listed:
            if not np.isfinite(height):
                raise InputError("Every weight must be a finite number.")
            if note == NEVER:
                continue
            needed = _conjunction(note)
            if needed is None:
                general.append((_renumber(note, names), float(height)))
                continue
            members.extend(sorted(names[name] for name in needed))
            offsets.append(len(members))
            heights.append(float(height))
        return cls(
            np.array(offsets, dtype=np.int64),
            np.array(members, dtype=np.int32),
            np.array(heights, dtype=np.float64),
            len(names),
            tuple(general),
        )

    @cached_property
    def general(self) -> tuple[tuple[Annotation, float], ...]:
        """The tuples that are no plain conjunctions, as expressions with their weights."""
        return self.notes + (() if self.alternatives is None else self.alternatives.annotations())

    @property
    def heights(self) -> Array:
        """The weights of the tuples that are no plain conjunctions."""
        listed = np.array([height for _, height in self.notes], dtype=np.float64)
        return (
            listed
            if self.alternatives is None
            else np.concatenate([listed, self.alternatives.weights])
        )

    @property
    def total(self) -> float:
        """The exact sum of all weights. Custodian side."""
        return float(self.weights.sum() + self.heights.sum())

    @property
    def is_conjunctive(self) -> bool:
        """Whether every tuple simply needs all of some participants."""
        return not self.notes and self.alternatives is None

    def parts(self) -> tuple[Relation, Relation]:
        """Return the tuples of positive and of negative weight, both with positive weights."""
        return self._signed(1.0), self._signed(-1.0)

    def _signed(self, sign: float) -> Relation:
        kept = sign * self.weights > 0
        sizes = np.diff(self.offsets)
        return Relation(
            np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64),
            self.participants[np.repeat(kept, sizes)],
            sign * self.weights[kept],
            self.count,
            tuple((note, sign * height) for note, height in self.notes if sign * height > 0),
            None if self.alternatives is None else self.alternatives.signed(sign),
        )

    def annotations(self) -> Iterator[tuple[Annotation, float]]:
        """Yield every tuple as an expression with its weight. Custodian side; small relations."""
        for t, height in enumerate(self.weights):
            members = self.participants[self.offsets[t] : self.offsets[t + 1]]
            yield together(*(Participant(int(p)) for p in members)), float(height)
        yield from self.general

    def trees(self) -> tuple[Array, Array, Array]:
        """Return all tuples as and/or trees: (starts, offsets, members). Custodian side.

        :class:`tulle.lp.AlternativesProblem` says what they mean.
        """
        if self.alternatives is not None and not self.notes:
            others, plain = self.alternatives, len(self.offsets) - 1
            return (
                np.concatenate([np.arange(plain), plain + others.starts]),
                np.concatenate([self.offsets[:-1], len(self.participants) + others.offsets]),
                np.concatenate([self.participants, others.members]),
            )
        trees = Trees(self.count)
        trees.add(note for note, _ in self.general)
        return trees.arrays(self.offsets, self.participants)

    def without(self, participant: int) -> Relation:
        """Return the relation after one participant has left; the others keep their numbers."""
        sizes = np.diff(self.offsets)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        kept = np.ones(len(sizes), dtype=bool)
        kept[owner[self.participants == participant]] = False
        general = ((note.without(participant), height) for note, height in self.general)
        return Relation(
            np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64),
            self.participants[np.repeat(kept, sizes)],
            self.weights[kept],
            self.count,
            tuple((note, height) for note, height in general if note != NEVER),
        )

    def facts(self, unit: Unit) -> Facts:
        """Return nothing: who takes part, and how many, is private."""
        return {}

    def neighbours(self, unit: Unit) -> Iterator[Relation]:
        """Yield the relation without each participant; additions are these pairs read backwards."""
        self.check_unit(unit)
        for participant in range(self.count):
            yield self.without(participant)


def _conjunction(note: Annotation) -> list[Any] | None:
    """Return who is needed if the expression is a plain conjunction of different participants."""
    parts = note.parts if isinstance(note, Together) else (note,)
    if note == ALWAYS:
        return []
    names = [part.name for part in parts if isinstance(part, Participant)]
    return names if len(set(names)) == len(parts) else None


def _renumber(note: Annotation, names: dict[Any, int]) -> Annotation:

    if isinstance(note, Participant):
        return Participant(names[note.name])
    if isinstance(note, Together):
        return together(*(_renumber(part, names) for part in note.parts))
    if isinstance(note, Either):
        return either(*(_renumber(part, names) for part in note.parts))
    return note
