"""From an engine's rows to a relation: participants numbered, equal tuples merged, on arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tulle.relations.annotations import Annotation, Either, Participant, Together
from tulle.relations.relation import Relation
from tulle.sql.forms import Slot
from tulle.sql.rewrite import ABOVE, BELOW, GROUP, TIMES, TUPLE, WEIGHT, Rewritten

if TYPE_CHECKING:
    import pyarrow

Integers = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

NOBODY = np.iinfo(np.int64).max
"""Fills the places of a row that names fewer participants than there are columns."""


@dataclass(frozen=True)
class Gathered:
    """One relation for each group, all numbering the same participants, and who they are.

    Custodian side: ``names`` holds each participant's kind and identifier.
    """

    relations: tuple[Relation, ...]
    names: tuple[tuple[str, Any], ...]


def gather(rewritten: Rewritten, table: pyarrow.Table) -> Gathered:
    """Return the relations that an engine's rows describe."""
    owners, names = _number_participants(table, rewritten.slots)
    sets = _as_sets(owners)
    groups = _numbers(table, GROUP, 0.0).astype(np.int64)
    relations = []
    for group in range(rewritten.groups):
        here = groups == group
        if rewritten.keyed:
            relation = _from_ways(table, sets, here, len(names))
        else:
            above = np.minimum(_numbers(table, ABOVE, 0.0)[here], np.finfo(np.float64).max)
            below = np.maximum(_numbers(table, BELOW, 0.0)[here], -np.finfo(np.float64).max)
            lower = np.flatnonzero(here)[below < 0]
            relation = _conjunctive(
                np.concatenate([sets[here], sets[lower]]),
                np.concatenate([above, below[below < 0]]),
                len(names),
            )
        relations.append(relation)
    return Gathered(tuple(relations), names)


def _number_participants(
    table: pyarrow.Table, slots: Sequence[Slot]
) -> tuple[Integers, tuple[tuple[str, Any], ...]]:
    """Give every participant a number, in order of kind and identifier; nobody gets NOBODY."""
    import pyarrow as pa
    import pyarrow.compute as pc

    owners = np.full((table.num_rows, len(slots)), NOBODY, dtype=np.int64)
    names: list[tuple[str, Any]] = []
    for entity in dict.fromkeys(slot.entity for slot in slots):
        places = [place for place, slot in enumerate(slots) if slot.entity == entity]
        columns = [table.column(slots[place].name) for place in places]
        listed = pa.chunked_array(
            [chunk for column in columns for chunk in column.chunks], type=columns[0].type
        )
        if table.num_rows == 0:
            continue
        encoded = pc.dictionary_encode(listed.combine_chunks())
        order = pc.sort_indices(encoded.dictionary).to_numpy()
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order)) + len(names)
        codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        numbers = np.full(len(codes), NOBODY, dtype=np.int64)
        numbers[codes >= 0] = rank[codes[codes >= 0]]
        owners[:, places] = numbers.reshape(len(places), -1).T
        names.extend(
            (entity, value) for value in encoded.dictionary.take(pa.array(order)).to_pylist()
        )
    return owners, tuple(names)


def _as_sets(owners: Integers) -> Integers:
    """Sort each row and strike repetitions, so that equal sets of participants are equal rows."""
    rows = np.sort(owners, axis=1)
    if rows.shape[1] > 1:
        repeated = np.zeros(rows.shape, dtype=bool)
        repeated[:, 1:] = rows[:, 1:] == rows[:, :-1]
        rows[repeated] = NOBODY
        rows = np.sort(rows, axis=1)
    return rows


def _numbers(table: pyarrow.Table, name: str, absent: float) -> Numbers:
    if name not in table.column_names:
        return np.full(table.num_rows, absent)
    column = table.column(name).to_numpy()
    return np.asarray(column, dtype=np.float64)


def _row_keys(sets: Integers, count: int) -> Integers:
    """Return a number for each row, equal for equal sets and in their order."""
    keys = np.zeros(len(sets), dtype=np.int64)
    base, largest = count + 1, 1
    for column in sets.T:
        if largest * base >= 2**61:
            # No room for another digit: number the keys that occur instead.
            known, keys = np.unique(keys, return_inverse=True)
            keys, largest = keys.astype(np.int64), len(known)
        keys = keys * base + np.minimum(column, count)
        largest *= base
    return keys


def _conjunctive(
    sets: Integers,
    weights: Numbers,
    count: int,
    general: tuple[tuple[Annotation, float], ...] = (),
) -> Relation:
    """Merge tuples that need the same participants and whose weights have the same sign."""
    kept = weights != 0
    sets, weights = sets[kept], weights[kept]
    keys = 2 * _row_keys(sets, count) + (weights > 0)
    order = np.argsort(keys, kind="stable")
    if bool((np.diff(keys[order]) == 0).any()):
        # Weights are the last key to sort by: the order of addition is then the same every time.
        order = np.lexsort((weights, keys))
    keys, weights = keys[order], weights[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    sums = np.add.reduceat(weights, starts) if len(starts) else np.zeros(0)
    sets = sets[order[starts]]
    there = sets != NOBODY
    offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    found = Relation.conjunctive(offsets, sets[there], sums, count=count)
    return Relation(found.offsets, found.participants, found.weights, count, general)


def _from_ways(
    table: pyarrow.Table, sets: Integers, here: npt.NDArray[np.bool_], count: int
) -> Relation:
    """Build tuples that come about in several ways; one way is a plain conjunction."""
    sets = sets[here]
    tuples = _numbers(table, TUPLE, 0.0)[here].astype(np.int64)
    weights = (_numbers(table, WEIGHT, 1.0) * _numbers(table, TIMES, 1.0))[here]
    weights = np.where(np.isfinite(weights), weights, 0.0)
    _, sample, ways = np.unique(_row_keys(sets, count), return_index=True, return_inverse=True)
    clauses = sets[sample]
    # One row for each way of each tuple, in order.
    order = np.lexsort((ways, tuples))
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (np.diff(tuples[order]) != 0) | (np.diff(ways[order]) != 0)
    order = order[fresh & (weights[order] != 0)]
    tuples, ways, weights = tuples[order], ways[order], weights[order]
    starts = np.flatnonzero(np.diff(tuples, prepend=-1))
    single = np.diff(starts, append=len(tuples)) == 1
    plain_ways, plain_weights = [ways[starts[single]]], [weights[starts[single]]]
    general = []
    for chosen, weight in _several(ways, weights, starts, single, _Clauses(clauses)):
        if isinstance(chosen, Annotation):
            general.append((chosen, weight))
        else:
            plain_ways.append(np.array([chosen]))
            plain_weights.append(np.array([weight]))
    return _conjunctive(
        clauses[np.concatenate(plain_ways)], np.concatenate(plain_weights), count, tuple(general)
    )


class _Clauses:
    """The different ways that occur: who each needs, and the expression for it, made once."""

    def __init__(self, rows: Integers) -> None:
        self.sizes = (rows != NOBODY).sum(axis=1)
        self.members = [row[:size] for row, size in zip(rows.tolist(), self.sizes, strict=True)]
        self._people: dict[int, Participant] = {}
        self._notes: dict[int, Annotation] = {}

    def note(self, way: int) -> Annotation:
        """Return the conjunction of a way's participants, who are different ones."""
        if way not in self._notes:
            people = []
            for member in self.members[way]:
                if member not in self._people:
                    self._people[member] = Participant(member)
                people.append(self._people[member])
            self._notes[way] = people[0] if len(people) == 1 else Together(tuple(people))
        return self._notes[way]

    def least(self, ways: list[int]) -> tuple[int, ...]:
        """Return the ways without those that need more than another: the normal form."""
        kept: list[int] = []
        for way in sorted(ways, key=lambda one: int(self.sizes[one])):
            needed = set(self.members[way])
            if not any(needed.issuperset(self.members[smaller]) for smaller in kept):
                kept.append(way)
        return tuple(sorted(kept))


def _several(
    ways: Integers,
    weights: Numbers,
    starts: Integers,
    single: npt.NDArray[np.bool_],
    clauses: _Clauses,
) -> Iterator[tuple[Annotation | int, float]]:
    """Yield the tuples with several ways, equal ones merged; a lone least way as its number."""
    ends = np.append(starts[1:], len(ways))
    listed = ways.tolist()
    merged: dict[tuple[tuple[int, ...], bool], float] = {}
    for start, end in zip(starts[~single].tolist(), ends[~single].tolist(), strict=True):
        key = (clauses.least(listed[start:end]), bool(weights[start] > 0))
        merged[key] = merged.get(key, 0.0) + float(weights[start])
    for (chosen, _), weight in merged.items():
        if len(chosen) == 1:
            yield chosen[0], weight
        else:
            # Different ways, none within another: nothing is left for either() to simplify.
            yield Either(tuple(clauses.note(way) for way in chosen)), weight
