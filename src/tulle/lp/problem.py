"""A conjunctive relation as plain arrays: which participants each tuple needs, and its weight.

Participants and tuples that look alike are solved as one.

Colour refinement: every row starts with the colour of its capacity, every column with that of its
weight, and both are refined by the multiset of the colours they touch until nothing splits. The
resulting partition is equitable, and averaging any solution over its classes keeps it feasible and
its value the same, for the primal and for the dual (Grohe, Kersting, Mladenov and Selman,
"Dimension reduction via colour refinement", 2014). So one row per class with the capacity of all
its members, and one column per class with the weight of all its members, have the same optimum.
A column keeps one entry per member row, so a class may be named several times.

Colours are 64-bit hashes. A collision would merge what differs; the bounds would still be true,
being worked out on the unreduced problem, and the solver then starts again without this step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Array
from tulle.core.compiled import compiled
from tulle.core.errors import InputError, SealedError

_SMALLEST, _LARGEST = 2.0**-900, 2.0**900
LARGEST_TUPLE = 2048


class PackingProblem:
    """Tuples with weights q(t) >= 0, each present as long as all its participants are.

    Tuple ``t`` needs ``participants[offsets[t]:offsets[t + 1]]``; a participant named twice in one
    tuple counts once. ``count`` is the number of participants; they are numbered from zero.
    Numbers from ``count`` on stand for ``limits``: what the tuples that name such a number are
    worth together, whatever the threshold. Custodian side: the arrays are private data, and neither
    ``repr`` nor an error shows them.

    Raises:
        InputError: when the arrays do not describe such a relation.

    Example:
        >>> PackingProblem([0, 2, 3], [0, 1, 1], [1.0, 2.5], 2).loads.tolist()
        [1.0, 3.5]
    """

    __slots__ = (
        "_by_participant",
        "count",
        "limits",
        "loads",
        "offsets",
        "participants",
        "weights",
    )

    def __init__(
        self,
        offsets: npt.ArrayLike,
        participants: npt.ArrayLike,
        weights: npt.ArrayLike,
        count: int,
        limits: npt.ArrayLike = (),
    ) -> None:
        starts = np.ascontiguousarray(offsets, dtype=np.int64)
        members = np.ascontiguousarray(participants)
        if members.size and not np.issubdtype(members.dtype, np.integer):
            raise InputError("participants must be whole numbers.")
        heights = np.ascontiguousarray(weights, dtype=np.float64)
        own = np.ascontiguousarray(limits, dtype=np.float64)
        if starts.ndim != 1 or members.ndim != 1 or heights.ndim != 1:
            raise InputError("offsets, participants and weights must be one-dimensional arrays.")
        if len(starts) != len(heights) + 1 or starts[0] != 0 or starts[-1] != len(members):
            raise InputError(
                "offsets must have one entry more than weights, begin with 0 and end with the "
                "number of participants listed."
            )
        if np.any(np.diff(starts) < 0):
            raise InputError("offsets must not decrease.")
        if not 0 <= count < 2**31 - own.size:
            raise InputError("count must be at least 0 and below 2^31.")
        if members.size and (members.min() < 0 or members.max() >= count + own.size):
            raise InputError("every participant must be at least 0 and below count.")
        check_weights(heights)
        check_weights(own)
        if starts.size > 1 and np.diff(starts).max() > LARGEST_TUPLE + (own.size > 0):
            raise InputError(f"a tuple may name at most {LARGEST_TUPLE} participants.")
        self.count = int(count)
        self.offsets, self.participants = _normalise(starts, members.astype(np.int32))
        self.weights = heights
        self.limits = own
        self.loads = _loads(self.offsets, self.participants, heights, self.count + own.size)
        """The weight of all tuples of each participant (and limit), within rounding."""
        self._by_participant: tuple[Array, Array] | None = None

    def __repr__(self) -> str:
        return "PackingProblem(...)"

    def __reduce__(self) -> Any:
        raise SealedError("A PackingProblem holds private records and is not pickled or copied.")

    @property
    def tuple_count(self) -> int:
        """The number of tuples."""
        return len(self.weights)

    def capacities(self, tau: float) -> Array:
        """Return what each participant may hold at a threshold, then what each limit does."""
        return np.concatenate([np.full(self.count, tau), self.limits])

    @property
    def by_participant(self) -> tuple[Array, Array]:
        """The tuples of each participant: (offsets, tuples). Worked out when first asked for."""
        if self._by_participant is None:
            self._by_participant = transpose(self.offsets, self.participants, self.count)
        return self._by_participant

    def without(self, participant: int) -> PackingProblem:
        """Return the problem after ``participant`` has left, with every tuple that needs them.

        The others keep their numbers.
        """
        kept = ~_names(self.offsets, self.participants, participant)
        sizes = np.diff(self.offsets)
        return PackingProblem(
            np.concatenate([[0], np.cumsum(sizes[kept])]),
            self.participants[np.repeat(kept, sizes)],
            self.weights[kept],
            self.count,
            self.limits,
        )


@compiled
def _normalise(offsets: Array, participants: Array) -> tuple[Array, Array]:
    """Sort the participants of each tuple and drop repetitions."""
    starts = np.zeros_like(offsets)
    members = participants.copy()
    fill = 0
    for item in range(len(offsets) - 1):
        first = fill
        for place in range(offsets[item], offsets[item + 1]):
            value = participants[place]
            # Insertion into a short sorted list; tuples are small.
            position = fill
            while position > first and members[position - 1] > value:
                position -= 1
            if position > first and members[position - 1] == value:
                continue
            for shifted in range(fill, position, -1):
                members[shifted] = members[shifted - 1]
            members[position] = value
            fill += 1
        starts[item + 1] = fill
    return starts, members[:fill].copy()


@compiled
def _loads(offsets: Array, participants: Array, weights: Array, count: int) -> Array:
    loads = np.zeros(count)
    for item in range(len(weights)):
        for place in range(offsets[item], offsets[item + 1]):
            loads[participants[place]] += weights[item]
    return loads


@compiled
def transpose(offsets: Array, rows: Array, count: int) -> tuple[Array, Array]:
    """Return (offsets, columns) by row; a column is listed as often as it names the row."""
    starts = np.zeros(count + 1, np.int64)
    for row in rows:
        starts[row + 1] += 1
    for row in range(count):
        starts[row + 1] += starts[row]
    fill = starts[:count].copy()
    columns = np.empty(len(rows), np.int32)
    for column in range(len(offsets) - 1):
        for place in range(offsets[column], offsets[column + 1]):
            row = rows[place]
            columns[fill[row]] = column
            fill[row] += 1
    return starts, columns


@compiled
def _names(offsets: Array, participants: Array, participant: int) -> Array:
    found = np.zeros(len(offsets) - 1, np.bool_)
    for item in range(len(found)):
        for place in range(offsets[item], offsets[item + 1]):
            if participants[place] == participant:
                found[item] = True
    return found


def check_weights(weights: Array) -> Array:
    """Return weights that the certificates can work with, as they are."""
    if not np.all((weights == 0) | ((weights >= _SMALLEST) & (weights <= _LARGEST))):
        raise InputError("weights must be zero or between 2^-900 and 2^900.")
    return weights


def check_threshold(tau: float) -> float:
    """Return ``tau`` as a float that the certificates can work with."""
    value = float(tau)
    if not (value == 0.0 or _SMALLEST <= value <= _LARGEST):
        raise InputError(f"tau must be zero or between 2^-900 and 2^900; got {tau!r}.")
    return value


_REFINEMENTS = 60


@compiled
def _mix(word: np.uint64) -> np.uint64:
    """Scramble 64 bits (the finaliser of splitmix64)."""
    word ^= word >> np.uint64(30)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    word ^= word >> np.uint64(27)
    word *= np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    return word


@compiled
def _refine(
    offsets: Array, rows: Array, weight_bits: Array, row_colours: Array, column_colours: Array
) -> None:
    """Refine both colourings once, in place."""
    touched = np.zeros(len(row_colours), np.uint64)
    for column in range(len(weight_bits)):
        colour = np.uint64(0)
        for place in range(offsets[column], offsets[column + 1]):
            colour += _mix(row_colours[rows[place]])
        colour = _mix(colour ^ _mix(weight_bits[column] + np.uint64(1)))
        column_colours[column] = colour
        seen = _mix(colour + np.uint64(2))
        for place in range(offsets[column], offsets[column + 1]):
            touched[rows[place]] += seen
    for row in range(len(row_colours)):
        row_colours[row] = _mix(touched[row] ^ _mix(row_colours[row] + np.uint64(3)))


def refine(offsets: Array, rows: Array, weights: Array, marks: Array) -> tuple[Array, Array] | None:
    """Return the class of every row and column, numbered from zero; None if nothing merges.

    ``marks`` tells rows apart from the start: their capacities, for one.
    """
    # Adding zero turns -0.0 into 0.0, which has other bits and the same meaning.
    row_colours = (marks + 0.0).view(np.uint64).copy()
    weight_bits = (weights + 0.0).view(np.uint64)
    column_colours = np.zeros(len(weights), np.uint64)
    classes = len(np.unique(row_colours))
    for _ in range(_REFINEMENTS):
        _refine(offsets, rows, weight_bits, row_colours, column_colours)
        refined = len(np.unique(row_colours))
        if refined == classes:
            break
        classes = refined
    else:
        # Not yet stable: an unfinished partition is not equitable, so nothing may merge.
        return None
    if classes == len(marks):
        return None
    # The columns were coloured by the rows before the last round, which split nothing.
    row_class = np.unique(row_colours, return_inverse=True)[1]
    column_class = np.unique(column_colours, return_inverse=True)[1]
    return row_class.astype(np.int32), column_class.astype(np.int32)


@compiled
def collapse(
    offsets: Array, rows: Array, weights: Array, row_class: Array, column_class: Array, columns: int
) -> tuple[Array, Array, Array]:
    """Return one column per class, with the weight of all: (offsets, rows, weights)."""
    first = np.full(columns, -1, np.int64)
    totals = np.zeros(columns)
    for column in range(len(weights)):
        group = column_class[column]
        totals[group] += weights[column]
        if first[group] < 0:
            first[group] = column
    starts = np.zeros(columns + 1, np.int64)
    for group in range(columns):
        starts[group + 1] = starts[group] + offsets[first[group] + 1] - offsets[first[group]]
    entries = np.empty(starts[columns], np.int32)
    for group in range(columns):
        shift = offsets[first[group]] - starts[group]
        for place in range(starts[group], starts[group + 1]):
            entries[place] = row_class[rows[place + shift]]
    return starts, entries, totals
