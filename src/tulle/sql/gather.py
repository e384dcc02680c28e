"""From an engine's rows to a relation: participants numbered, equal tuples merged, on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tulle.relations.annotations import Annotation, Participant, either, together
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
            relation = _conjunctive(
                np.concatenate([sets[here], sets[here]]),
                np.concatenate([above, below]),
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


def _conjunctive(
    sets: Integers,
    weights: Numbers,
    count: int,
    general: tuple[tuple[Annotation, float], ...] = (),
) -> Relation:
    """Merge tuples that need the same participants and whose weights have the same sign."""
    kept = weights != 0
    sets, weights = sets[kept], weights[kept]
    # Weights are the last key to sort by: the order of addition is then the same every time.
    order = np.lexsort((weights, weights > 0, *sets.T[::-1]))
    sets, weights = sets[order], weights[order]
    fresh = np.ones(len(weights), dtype=bool)
    fresh[1:] = (sets[1:] != sets[:-1]).any(axis=1) | ((weights[1:] > 0) != (weights[:-1] > 0))
    starts = np.flatnonzero(fresh)
    sums = np.add.reduceat(weights, starts) if len(starts) else np.zeros(0)
    sets = sets[starts]
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
    order = np.lexsort((*sets.T[::-1], tuples))
    sets, tuples, weights = sets[order], tuples[order], weights[order]
    fresh = np.ones(len(tuples), dtype=bool)
    fresh[1:] = (tuples[1:] != tuples[:-1]) | (sets[1:] != sets[:-1]).any(axis=1)
    sets, tuples, weights = sets[fresh], tuples[fresh], weights[fresh]
    _, starts, ways = np.unique(tuples, return_index=True, return_counts=True)
    single = starts[ways == 1]
    merged: dict[tuple[frozenset[frozenset[int]], bool], float] = {}
    for start, number in zip(starts[ways > 1], ways[ways > 1], strict=True):
        if weights[start] == 0:
            continue
        clauses = _least(sets[start : start + number])
        key = (clauses, bool(weights[start] > 0))
        merged[key] = merged.get(key, 0.0) + float(weights[start])
    general, plain_sets, plain_weights = [], [sets[single]], [weights[single]]
    for (clauses, _), weight in merged.items():
        if len(clauses) > 1:
            general.append((_either(clauses), weight))
            continue
        row = np.full((1, sets.shape[1]), NOBODY, dtype=np.int64)
        (only,) = clauses
        row[0, : len(only)] = sorted(only)
        plain_sets.append(row)
        plain_weights.append(np.array([weight]))
    return _conjunctive(
        np.concatenate(plain_sets), np.concatenate(plain_weights), count, tuple(general)
    )


def _least(rows: Integers) -> frozenset[frozenset[int]]:
    """Return the ways without those that need more than another: the normal form of the tuple."""
    ways = {frozenset(row[row != NOBODY].tolist()) for row in rows}
    kept: list[frozenset[int]] = []
    for way in sorted(ways, key=len):
        if not any(smaller <= way for smaller in kept):
            kept.append(way)
    return frozenset(kept)


def _either(clauses: frozenset[frozenset[int]]) -> Annotation:
    ordered = sorted(sorted(clause) for clause in clauses)
    return either(*(together(*map(Participant, clause)) for clause in ordered))
