"""From an engine's rows to a relation: participants numbered, equal tuples merged, on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.relations.alternatives import Alternatives
from tulle.relations.data import Relation
from tulle.relations.mechanisms.single_owner import SingleOwnerRows
from tulle.sql.compile.alternatives import NOBODY, least_alternatives, merge_equal
from tulle.sql.compile.derivations import Slot
from tulle.sql.compile.rewrite import ABOVE, BELOW, GROUP, TIMES, TUPLE, WEIGHT, Rewritten

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Gathered:
    """One relation for each group, all numbering the same participants, and who they are.

    Custodian side.
    """

    relations: tuple[Relation, ...]
    identifiers: tuple[tuple[str, Any], ...]
    """For each kind of participant the identifiers, an Arrow array, in the order of the numbers."""

    @property
    def names(self) -> tuple[tuple[str, Any], ...]:
        """Each participant's kind and identifier: an object for each, for small databases."""
        return tuple((kind, one) for kind, listed in self.identifiers for one in listed.to_pylist())


def gather(rewritten: Rewritten, table: pyarrow.Table) -> Gathered:
    """Return the relations that an engine's rows describe."""
    owners, identifiers = _number_participants(table, rewritten.slots)
    count = sum(len(listed) for _, listed in identifiers)
    sets = _as_sets(owners)
    groups = _numbers(table, GROUP, 0.0).astype(np.int64)
    # The rows of each group, found once: there may be many groups.
    order = np.argsort(groups, kind="stable")
    ends = np.searchsorted(groups[order], np.arange(rewritten.groups + 1))
    largest = np.finfo(np.float64).max
    above = np.minimum(_numbers(table, ABOVE, 0.0), largest)
    below = np.maximum(_numbers(table, BELOW, 0.0), -largest)
    relations = []
    for group in range(rewritten.groups):
        here = order[ends[group] : ends[group + 1]]
        if rewritten.keyed:
            relation = _from_alternatives(table.take(here), sets[here], count)
        else:
            lower = here[below[here] < 0]
            relation = _conjunctive(
                np.concatenate([sets[here], sets[lower]]),
                np.concatenate([above[here], below[lower]]),
                count,
            )
        relations.append(relation)
    return Gathered(tuple(relations), identifiers)


def gather_owned(rewritten: Rewritten, table: pyarrow.Table, *, signed: bool) -> SingleOwnerRows:
    """Return what each participant adds to each group, where rows are about one of them alone.

    Rows of several participants, where a key on a path to owners is not unique, count for nothing.
    Who a participant is plays no part, so nobody gets a name.
    """
    import pyarrow.compute as pc

    columns = [table.column(slot.name) for slot in rewritten.slots]
    first = columns[0]
    people = np.full(table.num_rows, -1, dtype=np.int64)
    if table.num_rows:
        codes = pc.dictionary_encode(first.combine_chunks()).indices
        people = pc.fill_null(codes, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    one = np.ones(table.num_rows, dtype=bool)
    for other in columns[1:]:
        one &= pc.fill_null(pc.equal(first, other), False).to_numpy()
    places = np.zeros(table.num_rows, dtype=np.int64)
    if GROUP in table.column_names:
        places = table.column(GROUP).to_numpy().astype(np.int64)
    # Each set of owners is in one row of a group; what is above and below zero adds up.
    amounts = _numbers(table, ABOVE, 0.0) + (_numbers(table, BELOW, 0.0) if signed else 0.0)
    if not bool(one.all()):
        people, places, amounts = people[one], places[one], amounts[one]
    return SingleOwnerRows.of_rows(people, places, amounts, rewritten.groups, signed=signed)


def _number_participants(
    table: pyarrow.Table, slots: Sequence[Slot]
) -> tuple[Wholes, tuple[tuple[str, Any], ...]]:
    """Give every participant a number, in order of kind and identifier; nobody gets NOBODY."""
    import pyarrow as pa
    import pyarrow.compute as pc

    owners = np.full((table.num_rows, len(slots)), NOBODY, dtype=np.int64)
    found: list[tuple[str, Any]] = []
    count = 0
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
        rank[order] = np.arange(len(order)) + count
        codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        numbers = np.full(len(codes), NOBODY, dtype=np.int64)
        numbers[codes >= 0] = rank[codes[codes >= 0]]
        owners[:, places] = numbers.reshape(len(places), -1).T
        found.append((entity, encoded.dictionary.take(pa.array(order))))
        count += len(order)
    return owners, tuple(found)


def _as_sets(owners: Wholes) -> Wholes:
    """Sort each row and strike repetitions, so that equal sets of participants are equal rows."""
    rows = np.sort(owners, axis=1)
    if rows.shape[1] > 1:
        repeated = np.zeros(rows.shape, dtype=bool)
        repeated[:, 1:] = rows[:, 1:] == rows[:, :-1]
        rows[repeated] = NOBODY
        rows = np.sort(rows, axis=1)
    return rows


def _numbers(table: pyarrow.Table, name: str, absent: float) -> Floats:
    if name not in table.column_names:
        return np.full(table.num_rows, absent)
    numbers: Floats = np.asarray(table.column(name).to_numpy(), dtype=np.float64)
    # NULL weighs nothing: without a column to group by, it is the sum over no rows.
    return np.where(np.isnan(numbers), 0.0, numbers)


def _row_keys(sets: Wholes, count: int) -> Wholes:
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
    sets: Wholes,
    weights: Floats,
    count: int,
    several: Alternatives | None = None,
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
    return Relation(found.offsets, found.participants, found.weights, count, alternatives=several)


def _from_alternatives(table: pyarrow.Table, sets: Wholes, count: int) -> Relation:
    """Build tuples of several alternatives; a single one is a plain conjunction."""
    tuples = _numbers(table, TUPLE, 0.0).astype(np.int64)
    weights = _numbers(table, WEIGHT, 1.0) * _numbers(table, TIMES, 1.0)
    weights = np.where(np.isfinite(weights), weights, 0.0)
    _, sample, alternatives = np.unique(
        _row_keys(sets, count), return_index=True, return_inverse=True
    )
    clauses = sets[sample]
    # One row for each way of each tuple, in order.
    order = np.lexsort((alternatives, tuples))
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (np.diff(tuples[order]) != 0) | (np.diff(alternatives[order]) != 0)
    order = order[fresh & (weights[order] != 0)]
    tuples, alternatives, weights = tuples[order], alternatives[order], weights[order]
    starts = np.append(np.flatnonzero(np.diff(tuples, prepend=-1)), len(tuples))
    heights = weights[starts[:-1]]
    kept = least_alternatives(starts, alternatives, clauses, count)
    starts = np.concatenate([[0], np.cumsum(kept)])[starts]
    alternatives = alternatives[kept]
    single = np.diff(starts) == 1
    several = np.repeat(~single, np.diff(starts))
    offsets = np.concatenate([[0], np.cumsum(np.diff(starts)[~single])])
    starts_of, alternatives_of, sums = merge_equal(offsets, alternatives[several], heights[~single])
    return _conjunctive(
        clauses[alternatives[starts[:-1][single]]],
        heights[single],
        count,
        Alternatives.of_rows(starts_of, clauses[alternatives_of], NOBODY, sums),
    )
