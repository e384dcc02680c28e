"""Tuples that come about in several ways, given by and/or trees, as plain arrays.

A tuple t of weight q(t) has alternatives w. Each lists members that must all be there:
participants, or *groups*, which have alternatives of their own in turn. So every tuple is an and/or
tree, and it takes as many numbers as the tree has nodes, while its *ways* (who must be there
together; one alternative is chosen for each group met) may be exponentially many. With g the
deletions, the *deficit* of a participant is g_p, of an alternative the sum over its members, of a
group or tuple the least of its alternatives. So the deficit of a tuple is the least g(w) of its
ways w, g(w) being the sum of g over it, and

    phi_t(g) = max(0, 1 - deficit of t) = max over its ways w of max(0, 1 - g(w))

is the relaxation of Chen & Zhou: *and* is max(0, x + y - 1), *or* is the larger. (Cutting inner
sums at zero changes nothing, since no part is above one.)

*Truncated value.* X(tau) = min over g >= 0 of sum_t q(t) phi_t(g) + tau sum_p g_p. With a variable
z_t >= 0 for each tuple and e_o >= 0 for the deficit of each group, and the rows
z_t + (sum of members) >= 1 for alternatives of tuples and (sum of members) - e_o >= 0 for those of
groups, the dual is a packing of flows y >= 0 on alternatives:

    max sum of y over alternatives of tuples, which sum to at most q(t) for each tuple; what flows
    into a group is spread over its alternatives; at most tau flows to each participant.

When p leaves, the ways with p leave: what is left of a flow is feasible and has lost at most tau;
and a flow without them is feasible with them. So X moves by at most tau, as for conjunctions, which
are the tuples of one way. It is the same number as if all ways were written out: both are the
least cost over g of the same function.

*Deletion.* What a participant bears of a tuple is the relaxation of the ways that need them:

    b_{t,p}(g) = max over the ways w of t with p of max(0, 1 - g(w)),
    D(tau) = min sum_p g_p,  0 <= g_p <= 1,  sum_t q(t) b_{t,p}(g) <= tau for every p.

D rises by at most 1 when r joins and never falls: delete r wholly, and the ways with r bear
nothing, so all others bear what they did without r, and r bears nothing; conversely without r there
are fewer ways to take the largest of. *The paper's G does not have this property.* Its equation 19
lets everyone whom a tuple names bear all of phi_t. With the tuples {a_i} or {r, b}, i = 1 .. n,
b then bears n although r is deleted, and nothing without r: one participant moves D by more than
n - tau.
(Theorem 4's proof takes over that of theorem 3, where no phi-sensitivity changes when r leaves.)
G with b_{t,p} is a 2-bounding sequence of H all the same: for f = max(0, 1 - 2g), a way of positive
value at f has more than 1/2 at g, and lowering f_p lowers phi_t only through ways with p. For
conjunctions both are the same.

Written with the tree: the *context* k_o of a group that an alternative w of c lists is what a way
through it needs besides, k_o = k_c + (the other members of w), zero for tuples; ways through an
alternative w of o lack k_o + (members of w) at least, so b_{t,p} is 1 minus the least of that over
the alternatives that list p. Deficits and contexts only grow with deletions and D only wants them
large, so all are rows of a linear program. Nothing is relaxed further than by phi itself.

A participant whom a way meets twice counts twice, as the tree is written: this lowers the
relaxation, so accuracy may suffer, and changes none of the above.

Reference: Chen & Zhou, Recursive mechanism, SIGMOD 2013, section 5.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Array
from tulle.core.compiled import compiled
from tulle.core.errors import InputError, SealedError
from tulle.lp.problem import LARGEST_TUPLE, PackingProblem, check_weights, transpose
from tulle.lp.program import Program, ProgramRows

_UP = 1.0 + 2.0**-20
_LIGHTEST, _HEAVIEST = 1e-9, 1e6
"""Iterations see no weight above so many thresholds, and scale no row by less; certificates see the
whole."""
_LONG = 8
"""Alternatives with more members than this have a variable for their sum."""


class AlternativesProblem:
    """Tuples with weights q(t) >= 0, each there as long as all members of an alternative are.

    Tuples and groups are numbered together, tuples first; number ``o`` has the alternatives
    ``starts[o]`` to ``starts[o + 1]``, and alternative ``w`` lists
    ``members[offsets[w]:offsets[w + 1]]``. Members below ``count`` are participants; ``count + i``
    is group ``i``. Every group is listed exactly once, by a tuple or a group of a smaller number.
    Custodian side.

    *Burdens* are pairs of a tuple and a participant of it, in order of the participant:
    participant ``p`` has the burdens ``burdens[p]`` to ``burdens[p + 1]``, burden ``b`` weighs
    ``heights[b]`` and comes about in the alternatives ``places[spans[b]:spans[b + 1]]``.

    Raises:
        InputError: when the arrays do not describe such tuples.

    Example:
        >>> either = AlternativesProblem([0, 2], [0, 1, 3], [0, 1, 2], [5.0], 3)
        >>> either.loads.tolist()
        [5.0, 5.0, 5.0]
    """

    def __init__(
        self,
        starts: npt.ArrayLike,
        offsets: npt.ArrayLike,
        members: npt.ArrayLike,
        weights: npt.ArrayLike,
        count: int,
    ) -> None:
        self.starts = np.ascontiguousarray(starts, dtype=np.int64)
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.members = np.ascontiguousarray(members, dtype=np.int32)
        self.weights = check_weights(np.ascontiguousarray(weights, dtype=np.float64))
        self.count = int(count)
        self.tuples = len(self.weights)
        self.groups = len(self.starts) - 1 - self.tuples
        sizes = np.diff(self.starts)
        if self.groups < 0 or self.starts[0] != 0 or bool((sizes < 1).any()):
            raise InputError("starts must begin with 0 and give every tuple an alternative.")
        if (
            len(self.offsets) != self.starts[-1] + 1
            or self.offsets[0] != 0
            or self.offsets[-1] != len(self.members)
            or bool((np.diff(self.offsets) < 0).any())
            or int(np.diff(self.offsets).max(initial=0)) > LARGEST_TUPLE
        ):
            raise InputError(
                "offsets must begin with 0, not decrease, end with the number of members, and "
                f"give an alternative at most {LARGEST_TUPLE} of them."
            )
        self.owner = np.repeat(np.arange(len(sizes)), sizes)
        """Whose alternative each is."""
        listed = np.flatnonzero(self.members >= self.count)
        self.parent = np.repeat(np.arange(len(self.owner)), np.diff(self.offsets))[listed]
        """The alternative that lists each group."""
        inner = self.members[listed] - self.count
        order = np.argsort(inner, kind="stable")
        self.parent = self.parent[order]
        if (
            int(self.members.min(initial=0)) < 0
            or not np.array_equal(inner[order], np.arange(self.groups))
            or bool((self.owner[self.parent] >= self.tuples + np.arange(self.groups)).any())
        ):
            raise InputError("every group must be listed once, by what has a smaller number.")
        top = _tops(self.starts, self.owner, self.parent, self.tuples)
        self.root = self.owner[top]
        """The tuple that each alternative is in the tree of."""
        self.widest = int(np.bincount(top, np.diff(self.offsets)).max(initial=0))
        """The most members in all below one alternative of a tuple."""
        self.burdens, self.spans, self.places, self.heights = self._bear()
        owners = np.repeat(np.arange(self.count), np.diff(self.burdens))
        self.loads = np.bincount(owners, self.heights, self.count)
        """What each participant bears when nobody is deleted, within rounding."""

    def __repr__(self) -> str:
        return "AlternativesProblem(...)"

    def __reduce__(self) -> Any:
        raise SealedError(
            "An AlternativesProblem holds private records and is not pickled or copied."
        )

    def _bear(self) -> tuple[Array, Array, Array, Array]:
        row_offsets, listed = transpose(self.offsets, self.members, self.count + self.groups)
        row_offsets = row_offsets[: self.count + 1]
        listed = listed[: row_offsets[-1]]
        owners = np.repeat(np.arange(self.count), np.diff(row_offsets))
        tuples = self.root[listed]
        if self.groups:
            # Alternatives of one tuple need not be neighbours.
            order = np.lexsort((listed, tuples, owners))
            owners, tuples, listed = owners[order], tuples[order], listed[order]
        # Whom an alternative lists twice has it once.
        once = np.ones(len(listed), np.bool_)
        once[1:] = (np.diff(listed) != 0) | (np.diff(owners) != 0)
        owners, tuples, listed = owners[once], tuples[once], listed[once]
        fresh = np.ones(len(listed), np.bool_)
        fresh[1:] = (np.diff(tuples) != 0) | (np.diff(owners) != 0)
        heads = np.flatnonzero(fresh)
        burdens = np.searchsorted(owners[heads], np.arange(self.count + 1))
        spans = np.append(heads, len(listed))
        return burdens, spans, listed, self.weights[tuples[heads]]

    @cached_property
    def written_out(self) -> PackingProblem | None:
        """All ways with their tuple's weight, if alternatives are ways: sets of participants."""
        if self.groups:
            return None
        sizes = np.diff(self.starts)
        heights = np.repeat(self.weights, sizes)
        ways = PackingProblem(self.offsets, self.members, heights, self.count)
        return ways if len(ways.participants) == len(self.members) else None

    def packing(self, tau: float) -> PackingProblem | None:
        """Return the packing problem of all ways, with a limit on the ways of each tuple.

        No way of at least one participant is worth more than tau, nor k of them more than k tau:
        weights and limits beyond that are cut, which changes no value. None if the ways are not
        written out.
        """
        ways = self.written_out
        if ways is None:
            return None
        sizes = np.diff(self.starts)
        several = sizes > 1
        limit = np.where(several, self.count + np.cumsum(several) - 1, -1)
        offsets, participants = _append(ways.offsets, ways.participants, np.repeat(limit, sizes))
        owned = np.diff(ways.offsets) > 0
        weights = np.where(owned, np.minimum(ways.weights, tau), ways.weights)
        # Rounded up, lest the limit be below the sum of the weights.
        limits = np.minimum(self.weights, np.add.reduceat(weights, self.starts[:-1]) * _UP)
        return PackingProblem(offsets, participants, weights, self.count, limits[several])

    def cut(self, tau: float) -> Array:
        """Return the weights, cut where more would not raise X(tau).

        At most tau flows to a participant, so no more flows through an alternative than through any
        of its members, and through a tuple or group no more than through its alternatives in sum.
        """
        widths = self._widths[: self.tuples]
        limits = np.where(np.isinf(widths), np.inf, np.where(np.isinf(widths), 0.0, widths) * tau)
        return np.minimum(self.weights, limits * _UP)

    @cached_property
    def _widths(self) -> Array:
        return _widths(self.starts, self.offsets, self.members, self.count, self.tuples)

    def _entries(self, chosen: Array) -> tuple[Array, Array]:
        """Return the members of the chosen alternatives: (place among the chosen, member)."""
        sizes = np.diff(self.offsets)[chosen]
        rows = np.repeat(np.arange(len(chosen)), sizes)
        first = np.repeat(self.offsets[chosen] - np.cumsum(sizes) + sizes, sizes)
        return rows, self.members[np.arange(len(rows)) + first]

    def _deficit_rows(self, first: int, scale: Array) -> ProgramRows:
        """Return the rows (sum of members) - e_o >= 0 of all alternatives of groups."""
        chosen = np.arange(self.starts[self.tuples], len(self.owner))
        rows, members = self._entries(chosen)
        weights = scale[self.root[chosen]]
        return ProgramRows(
            first,
            np.concatenate([rows, np.arange(len(chosen))]),
            np.concatenate([members, self.count + self.owner[chosen] - self.tuples]),
            np.concatenate([weights[rows], -weights]),
            np.zeros(len(chosen)),
        )

    def value_scale(self, tau: float) -> Array:
        """Return by how much the rows of each tuple are scaled in the program of X(tau)."""
        return np.clip(self.weights / tau, _LIGHTEST, 1.0)

    def value_program(self, tau: float, *, exact: bool = False) -> Program:
        """Return the program of X(tau) / tau: deletions, deficits of groups, then remainders.

        Rows: alternatives of tuples, then those of groups. With ``exact`` it is that of X(tau),
        and nothing is scaled or rounded.
        """
        heights = self.weights if exact else self.cut(tau) / tau
        scale = np.ones(self.tuples) if exact else self.value_scale(tau)
        free = self.count + self.groups
        chosen = np.arange(self.starts[self.tuples])
        rows, members = self._entries(chosen)
        weights = scale[self.root[chosen]]
        whole = ProgramRows(
            0,
            np.concatenate([rows, chosen]),
            np.concatenate([members, free + self.root[chosen]]),
            np.concatenate([weights[rows], weights]),
            weights,
        )
        each = np.full(self.count, tau if exact else 1.0)
        cost = np.concatenate([each, np.zeros(self.groups), heights])
        upper = np.full(len(cost), np.inf if exact else 1.0)
        return Program.of(cost, upper, [whole, self._deficit_rows(len(chosen), scale)])

    def deletion_program(self, tau: float, chosen: Array, *, exact: bool = False) -> Deletions:
        """Return the program of D(tau), in which only loads of the ``chosen`` are bounded.

        With ``exact`` nothing is scaled or rounded.
        """
        heights = self.weights if exact else np.minimum(self.weights / tau, _HEAVIEST)
        scale = np.ones(self.tuples) if exact else np.clip(heights, _LIGHTEST, _HEAVIEST)
        tall = heights[self.root[self.places[self.spans[:-1]]]]
        mine = np.zeros(self.count, np.bool_)
        mine[chosen] = True
        owners = np.repeat(np.arange(self.count), np.diff(self.burdens))
        kept = np.flatnonzero(mine[owners] & (self.heights > 0.0))
        covers = np.flatnonzero(
            np.repeat(np.isin(np.arange(len(owners)), kept), np.diff(self.spans))
        )
        burden = np.searchsorted(self.spans, covers, side="right") - 1
        long = np.unique(self.places[covers][self._size[self.places[covers]] > _LONG])
        count, groups = self.count, self.groups
        # Variables: deletions, deficits, contexts, sums of long alternatives, remainders.
        contexts, sums = count + groups, count + 2 * groups
        remainders = sums + len(long)
        blocks = [self._deficit_rows(0, scale)]
        first = len(blocks[0].right)
        inner = np.arange(groups)
        weights = scale[self.root[self.parent]]
        rows, members = self._entries(self.parent)
        others = members != count + rows
        up = np.flatnonzero(self.owner[self.parent] >= self.tuples)
        blocks.append(
            ProgramRows(
                first,
                np.concatenate([rows[others], up, inner]),
                np.concatenate(
                    [
                        members[others],
                        contexts + self.owner[self.parent[up]] - self.tuples,
                        contexts + inner,
                    ]
                ),
                np.concatenate([weights[rows[others]], weights[up], -weights]),
                np.zeros(groups),
            )
        )
        first += groups
        blocks.append(self._sum_rows(first, long, scale, contexts, sums))
        first += len(long)
        place = self.places[covers]
        where = np.searchsorted(long, place)
        is_long = np.isin(place, long)
        weights = scale[self.root[place]]
        short = np.flatnonzero(~is_long)
        rows, members = self._entries(place[short])
        rows = short[rows]
        below = short[self.owner[place[short]] >= self.tuples]
        far = np.flatnonzero(is_long)
        every = np.arange(len(covers))
        entries = np.concatenate([rows, below, far, every])
        blocks.append(
            ProgramRows(
                first,
                entries,
                np.concatenate(
                    [
                        members,
                        contexts + self.owner[place[below]] - self.tuples,
                        sums + where[far],
                        remainders + np.searchsorted(kept, burden),
                    ]
                ),
                weights[entries],
                weights,
            )
        )
        cover_rows = first
        first += len(covers)
        blocks.append(
            ProgramRows(
                first,
                np.searchsorted(chosen, owners[kept]),
                remainders + np.arange(len(kept)),
                -tall[kept],
                np.full(len(chosen), -tau if exact else -1.0),
            )
        )
        columns = remainders + len(kept)
        # No upper end is needed, as nothing gains by a deletion above one; iterations gain by them.
        upper = np.full(columns, np.inf if exact else 1.0)
        program = Program.of(np.repeat([1.0, 0.0], [count, columns - count]), upper, blocks)
        return Deletions(self, program, chosen, covers, cover_rows, weights, scale, tau)

    @cached_property
    def _size(self) -> Array:
        return np.diff(self.offsets)

    def _sum_rows(
        self, first: int, long: Array, scale: Array, contexts: int, sums: int
    ) -> ProgramRows:
        """Return the rows (context) + (sum of members) - T >= 0 of long alternatives."""
        rows, members = self._entries(long)
        weights = scale[self.root[long]]
        below = np.flatnonzero(self.owner[long] >= self.tuples)
        return ProgramRows(
            first,
            np.concatenate([rows, below, np.arange(len(long))]),
            np.concatenate(
                [
                    members,
                    contexts + self.owner[long[below]] - self.tuples,
                    sums + np.arange(len(long)),
                ]
            ),
            np.concatenate([weights[rows], weights[below], -weights]),
            np.zeros(len(long)),
        )


class Deletions:
    """The program of D(tau), and how to read its vectors."""

    def __init__(
        self,
        problem: AlternativesProblem,
        program: Program,
        chosen: Array,
        covers: Array,
        cover_rows: int,
        cover_scale: Array,
        scale: Array,
        tau: float,
    ) -> None:
        self.problem, self.program, self.tau = problem, program, tau
        self.chosen, self.covers = chosen, covers
        self.cover_rows, self.cover_scale, self.scale = cover_rows, cover_scale, scale

    def read(self, x: Array, multipliers: Array) -> tuple[Array, Array, Array, Array]:
        """Return deletions, multipliers of loads, of covers, and how groups split what flows in."""
        problem = self.problem
        pressures = np.zeros(problem.count)
        covers = np.zeros(len(problem.places))
        splits = np.zeros(len(problem.owner))
        last = self.cover_rows + len(self.covers)
        pressures[self.chosen] = multipliers[last:] / self.tau
        covers[self.covers] = multipliers[self.cover_rows : last] * self.cover_scale
        inner = problem.starts[problem.tuples]
        splits[inner:] = multipliers[: len(splits) - inner]
        return x[: problem.count], pressures, covers, splits


@compiled
def _tops(starts: Array, owner: Array, parent: Array, tuples: int) -> Array:
    """Return the alternative of a tuple that each alternative is below of, or is."""
    tops = np.arange(len(owner))
    for group in range(tuples, len(starts) - 1):
        for place in range(starts[group], starts[group + 1]):
            tops[place] = tops[parent[group - tuples]]
    return tops


@compiled
def _widths(starts: Array, offsets: Array, members: Array, count: int, tuples: int) -> Array:
    """Return how many thresholds may flow through tuples and groups."""
    widths = np.zeros(len(starts) - 1)
    for group in range(len(starts) - 2, -1, -1):
        for place in range(starts[group], starts[group + 1]):
            least = np.inf
            for index in range(offsets[place], offsets[place + 1]):
                member = members[index]
                least = min(least, 1.0 if member < count else widths[tuples + member - count])
            widths[group] += least
    return widths


@compiled
def _append(offsets: Array, participants: Array, extra: Array) -> tuple[Array, Array]:
    """Add one more number to each list, but for -1."""
    starts = np.zeros(len(offsets), np.int64)
    members = np.empty(len(participants) + np.sum(extra >= 0), np.int32)
    fill = 0
    for item in range(len(extra)):
        for place in range(offsets[item], offsets[item + 1]):
            members[fill] = participants[place]
            fill += 1
        if extra[item] >= 0:
            members[fill] = extra[item]
            fill += 1
        starts[item + 1] = fill
    return starts, members
