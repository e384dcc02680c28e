"""Exact reductions of the packing and of the deletion problem at one threshold.

Each step below leaves the optimal value unchanged. They are carried out in floating point and
decide only which smaller problem is iterated on: the certificate is always worked out on the
unreduced problem, so rounding here can cost a little of the gap and never the truth of a bound.

1. A row (participant) whose remaining load fits its capacity never binds: its price is 0.
2. A tuple without a remaining row is taken whole.
3. A tuple with one remaining row p is taken before every other tuple of p: moving mass to it from
   a tuple that needs p and more frees the other rows. So all tuples that need p alone are taken
   whole and the capacity of p shrinks by their weight. If they fill p, the price of p is 1, and
   every other tuple of p is left out.
4. Tuples with the same remaining rows merge, with the sum of their weights: the optimum can be
   spread over them in proportion to weight.
5. Participants and columns that colour refinement cannot tell apart become one.

Rows are the limits of their own too. Step 3 lowers the loads of other rows, so 1 to 3 repeat until
nothing changes. If every tuple needs one participant, the problem is gone after the first round:
the value is the sum of min(tau, load).

For the deletion problem:

1. A participant whose load is at most tau never binds. A tuple without a binding participant may
   stay whole and is dropped.
2. If every tuple left of p is also a tuple of p', deleting p' instead of p does at least as much,
   so p need not be deletable (of two with the same tuples, the one numbered lower stays). The cap
   g <= 1 does not hinder: a deletion beyond 1 does no more than 1.
3. Participants that neither bind nor are deletable leave the tuples; tuples with the same
   participants merge; and what colour refinement cannot tell apart becomes one.

Again, no bound rests on these steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tulle.core.arrays import Array
from tulle.core.compiled import compiled
from tulle.lp.problem import PackingProblem, collapse, refine

_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class ReducedProblem:
    """What is left to solve at one threshold, and how to go back.

    Column ``c`` needs ``rows[offsets[c]:offsets[c + 1]]`` and is worth ``weights[c]``; row ``r``
    holds ``capacities[r]``. ``column_of`` gives each tuple's column, or -1 when it is settled at
    the fraction ``settled`` of its weight; ``row_of`` gives each participant's row, or -1 when
    their price is already known from ``prices``.
    """

    offsets: Array
    rows: Array
    weights: Array
    capacities: Array
    column_of: Array
    settled: Array
    row_of: Array
    prices: Array

    @property
    def column_count(self) -> int:
        """The number of merged tuples."""
        return len(self.weights)

    @property
    def row_count(self) -> int:
        """The number of classes of participants that can bind."""
        return len(self.capacities)

    def fractions(self, levels: Array) -> Array:
        """Return what fraction of each tuple the column levels stand for."""
        if not self.column_count:
            return self.settled
        shares = levels / self.weights
        return np.where(self.column_of >= 0, shares[self.column_of], self.settled)

    def everyone(self, prices: Array) -> Array:
        """Return the price of every participant, given the prices of the rows."""
        if not self.row_count:
            return self.prices
        return np.where(self.row_of >= 0, prices[self.row_of], self.prices)


def reduce(problem: PackingProblem, tau: float, *, symmetry: bool = True) -> ReducedProblem:
    """Return the packing problem at threshold ``tau`` after all reductions."""
    alive, held, undecided, settled, prices = _settle(
        problem.offsets,
        problem.participants,
        problem.weights,
        problem.loads,
        problem.capacities(tau),
        _ROUNDS,
    )
    row_of, members = number(alive)
    offsets, rows, weights, column_of = merge(
        problem.offsets, problem.participants, problem.weights, undecided, row_of
    )
    capacities = held[members]
    classes = refine(offsets, rows, weights, capacities) if symmetry and len(weights) else None
    if classes is not None:
        row_class, column_class = classes
        columns = int(column_class.max()) + 1
        offsets, rows, weights = collapse(offsets, rows, weights, row_class, column_class, columns)
        capacities = np.bincount(row_class, capacities)
        row_of = np.where(row_of >= 0, row_class[row_of], -1)
        column_of = np.where(column_of >= 0, column_class[column_of], -1)
    return ReducedProblem(offsets, rows, weights, capacities, column_of, settled, row_of, prices)


@compiled
def number(alive: Array) -> tuple[Array, Array]:
    """Number the marked participants: (number of each or -1, those numbered)."""
    numbers = np.full(len(alive), -1, np.int32)
    members = np.empty(len(alive), np.int32)
    count = 0
    for participant in range(len(alive)):
        if alive[participant]:
            numbers[participant] = count
            members[count] = participant
            count += 1
    return numbers, members[:count].copy()


@compiled
def _settle(
    offsets: Array,
    participants: Array,
    weights: Array,
    loads: Array,
    capacities: Array,
    rounds: int,
) -> tuple[Array, Array, Array, Array, Array]:
    """Repeat steps 1 to 3; return (alive, capacities, undecided tuples, settled, prices)."""
    count = len(loads)
    alive = loads > capacities
    filled = np.zeros(count, np.bool_)
    prices = np.zeros(count)
    remaining = np.zeros(count)
    alone = np.zeros(count)
    settled = np.zeros(len(weights))
    undecided = np.empty(len(weights), np.int64)
    only = np.empty(len(weights), np.int32)
    left = 0
    for item in range(len(weights)):
        # A tuple of weight zero is worth nothing wherever it goes.
        if weights[item] > 0.0:
            undecided[left] = item
            left += 1
    for _ in range(rounds):
        alone[:] = 0.0
        kept = 0
        for position in range(left):
            item = undecided[position]
            binding = 0
            sole = -1
            for place in range(offsets[item], offsets[item + 1]):
                if alive[participants[place]]:
                    binding += 1
                    sole = participants[place]
            if binding == 0:
                settled[item] = 1.0
                continue
            if binding > 1:
                sole = -1
            else:
                alone[sole] += weights[item]
            undecided[kept] = item
            only[kept] = sole
            kept += 1
        left = kept
        changed = False
        for participant in range(count):
            if alive[participant]:
                if alone[participant] >= capacities[participant]:
                    filled[participant] = True
                    alive[participant] = False
                    prices[participant] = 1.0
                    changed = True
                elif alone[participant] > 0.0:
                    changed = True
        if not changed:
            break
        kept = 0
        remaining[:] = 0.0
        for position in range(left):
            item = undecided[position]
            sole = only[position]
            if sole >= 0:
                full = filled[sole]
                settled[item] = capacities[sole] / alone[sole] if full else 1.0
                continue
            blocked = False
            for place in range(offsets[item], offsets[item + 1]):
                blocked |= filled[participants[place]]
            if blocked:
                continue
            for place in range(offsets[item], offsets[item + 1]):
                remaining[participants[place]] += weights[item]
            undecided[kept] = item
            kept += 1
        left = kept
        for participant in range(count):
            if alive[participant]:
                capacities[participant] -= alone[participant]
                alive[participant] = remaining[participant] > capacities[participant]
    return alive, capacities, undecided[:left].copy(), settled, prices


@compiled
def merge(
    offsets: Array, participants: Array, weights: Array, chosen: Array, row_of: Array
) -> tuple[Array, Array, Array, Array]:
    """Merge tuples with the same rows: (offsets, rows, weights, column of every tuple).

    An open-addressing table maps each set of rows to its column; sets are compared in full.
    """
    size = 16
    while size < 2 * len(chosen):
        size *= 2
    mask = np.uint64(size - 1)
    table = np.full(size, -1, np.int32)
    entries = 0
    for item in chosen:
        entries += offsets[item + 1] - offsets[item]
    starts = np.zeros(len(chosen) + 1, np.int64)
    rows = np.empty(entries, np.int32)
    totals = np.zeros(len(chosen))
    column_of = np.full(len(weights), -1, np.int32)
    columns = 0
    fill = 0
    for item in chosen:
        code = np.uint64(0)
        end = fill
        for place in range(offsets[item], offsets[item + 1]):
            row = row_of[participants[place]]
            if row >= 0:
                rows[end] = row
                end += 1
                code = (code ^ np.uint64(row + 1)) * np.uint64(0x9E3779B97F4A7C15)
                code ^= code >> np.uint64(29)
        slot = (code ^ (code >> np.uint64(32))) & mask
        while True:
            column = table[slot]
            if column < 0:
                table[slot] = columns
                column = columns
                columns += 1
                starts[columns] = end
                fill = end
                break
            first = starts[column]
            same = starts[column + 1] - first == end - fill
            if same:
                for place in range(end - fill):
                    if rows[first + place] != rows[fill + place]:
                        same = False
                        break
            if same:
                break
            slot = (slot + np.uint64(1)) & mask
        totals[column] += weights[item]
        column_of[item] = column
    return starts[: columns + 1].copy(), rows[:fill].copy(), totals[:columns].copy(), column_of


@dataclass(frozen=True, slots=True)
class ReducedDeletion:
    """What is left to solve, and how to go back.

    Row ``r`` stands for ``sizes[r]`` participants with ``capacities[r]`` between them. ``shares``
    is each tuple's part of its column's weight.
    """

    offsets: Array
    rows: Array
    weights: Array
    capacities: Array
    sizes: Array
    deletable: Array
    binding: Array
    column_of: Array
    row_of: Array
    shares: Array

    def everyone(self, values: Array) -> Array:
        """Return the value of every participant, given that of every row; zero elsewhere."""
        if not len(values):
            return np.zeros(len(self.row_of))
        return np.where(self.row_of >= 0, values[self.row_of], 0.0)

    def same_in_column(self, values: Array, elsewhere: float) -> Array:
        """Return the value of every tuple's column."""
        if not len(values):
            return np.full(len(self.column_of), elsewhere)
        return np.where(self.column_of >= 0, values[self.column_of], elsewhere)

    def every_tuple(self, values: Array) -> Array:
        """Spread a value of every column over its tuples by weight; zero elsewhere."""
        return self.same_in_column(values, 0.0) * self.shares


def reduce_deletion(
    problem: PackingProblem, tau: float, *, symmetry: bool = True, also: Array | None = None
) -> ReducedDeletion:
    """Return the deletion problem at threshold ``tau`` after all reductions.

    With ``also``, a mask, only these and those who bind may be deleted: not the same problem, but
    one whose deletions are enough for this one too.
    """
    over = problem.loads > tau
    chosen = _relevant(problem.offsets, problem.participants, problem.weights, over)
    if also is None:
        dominated, present = _dominated(
            problem.offsets, problem.participants, chosen, problem.count
        )
        row_of, members = number(present & (over | ~dominated))
    else:
        dominated = np.zeros(problem.count, np.bool_)
        row_of, members = number(over | also)
    offsets, rows, weights, column_of = merge(
        problem.offsets, problem.participants, problem.weights, chosen, row_of
    )
    deletable, binding = ~dominated[members], over[members]
    sizes = np.ones(len(members))
    marks = 2.0 * deletable + binding
    classes = refine(offsets, rows, weights, marks) if symmetry and len(weights) else None
    if classes is not None:
        row_class, column_class = classes
        columns = int(column_class.max()) + 1
        offsets, rows, weights = collapse(offsets, rows, weights, row_class, column_class, columns)
        sizes = np.bincount(row_class).astype(np.float64)
        first = np.unique(row_class, return_index=True)[1]
        deletable, binding = deletable[first], binding[first]
        row_of = np.where(row_of >= 0, row_class[row_of], -1)
        column_of = np.where(column_of >= 0, column_class[column_of], -1)
    shares = problem.weights / weights[column_of] if len(weights) else problem.weights
    return ReducedDeletion(
        offsets,
        rows,
        weights,
        sizes * tau,
        sizes,
        deletable,
        binding,
        column_of,
        row_of,
        shares,
    )


@compiled
def _relevant(offsets: Array, participants: Array, weights: Array, over: Array) -> Array:
    chosen = np.empty(len(weights), np.int64)
    count = 0
    for item in range(len(weights)):
        wanted = False
        for place in range(offsets[item], offsets[item + 1]):
            wanted |= over[participants[place]]
        if wanted and weights[item] > 0.0:
            chosen[count] = item
            count += 1
    return chosen[:count].copy()


@compiled
def _dominated(
    offsets: Array, participants: Array, chosen: Array, count: int
) -> tuple[Array, Array]:
    """Mark whose tuples are all those of someone else, and who has tuples at all.

    The candidates for p are the other members of its first tuple (the first 64 of them), as bits;
    each further tuple of p strikes out those it lacks.
    """
    first = np.full(count, -1, np.int64)
    bits = np.zeros(count, np.uint64)
    tuples = np.zeros(count, np.int64)
    one = np.uint64(1)
    for item in chosen:
        for place in range(offsets[item], offsets[item + 1]):
            participant = participants[place]
            tuples[participant] += 1
            if first[participant] < 0:
                first[participant] = item
                for index in range(min(64, offsets[item + 1] - offsets[item])):
                    if participants[offsets[item] + index] != participant:
                        bits[participant] |= one << np.uint64(index)
            elif bits[participant] != 0:
                base = offsets[first[participant]]
                for index in range(min(64, offsets[first[participant] + 1] - base)):
                    if (bits[participant] >> np.uint64(index)) & one:
                        found = False
                        for other in range(offsets[item], offsets[item + 1]):
                            found |= participants[other] == participants[base + index]
                        if not found:
                            bits[participant] &= ~(one << np.uint64(index))
    dominated = np.zeros(count, np.bool_)
    for participant in range(count):
        if bits[participant] != 0:
            base = offsets[first[participant]]
            for index in range(min(64, offsets[first[participant] + 1] - base)):
                if (bits[participant] >> np.uint64(index)) & one:
                    other = participants[base + index]
                    if tuples[other] > tuples[participant] or other < participant:
                        dominated[participant] = True
    return dominated, tuples > 0
