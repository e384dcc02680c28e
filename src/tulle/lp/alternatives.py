"""Tuples that come about in several ways, as plain arrays.

A tuple t of weight q(t) has ways w, each a set of participants, and is there as long as everyone of
some way is. With g the deletions, its relaxation is

    phi_t(g) = max over its ways w of max(0, 1 - g(w)),   g(w) = sum of g_p over p in w.

*Truncated value.* X(tau) = min over g >= 0 of sum_t q(t) phi_t(g) + tau sum_p g_p. With a variable
z_t >= 0 and a row z_t + g(w) >= 1 for each way, the linear programming dual is

    max sum of y_{t,w},  y >= 0,  sum over the ways of t of y_{t,w} <= q(t) for every tuple,
                                  sum over ways with p of y_{t,w} <= tau for every participant:

the packing LP with one tuple for each way, and a limit of q(t) on the ways of t together. When p
leaves, the ways with p leave: what is left of y is feasible and has lost at most tau; and a y
without them is feasible with them. So X moves by at most tau, as for conjunctions, which are the
tuples of one way.

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

Reference: Chen & Zhou, Recursive mechanism, SIGMOD 2013, section 5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.errors import InputError, SealedError
from tulle.lp.compiled import compiled
from tulle.lp.problem import PackingProblem

Array = npt.NDArray[Any]

_UP = 1.0 + 2.0**-20


class WaysProblem:
    """Tuples with weights q(t) >= 0, each there as long as everyone of one of its ways is.

    Tuple ``t`` has the ways ``starts[t]`` to ``starts[t + 1]``; way ``w`` needs
    ``participants[offsets[w]:offsets[w + 1]]``. Custodian side.

    *Burdens* are pairs of a tuple and a participant of it, in order of the participant:
    participant ``p`` has the burdens ``burdens[p]`` to ``burdens[p + 1]``, burden ``b`` weighs
    ``heights[b]`` and comes about in the ways ``places[spans[b]:spans[b + 1]]``.

    Raises:
        InputError: when the arrays do not describe such tuples.

    Example:
        >>> either = WaysProblem([0, 2], [0, 1, 3], [0, 1, 2], [5.0], 3)
        >>> either.loads.tolist()
        [5.0, 5.0, 5.0]
    """

    def __init__(
        self,
        starts: npt.ArrayLike,
        offsets: npt.ArrayLike,
        participants: npt.ArrayLike,
        weights: npt.ArrayLike,
        count: int,
    ) -> None:
        self.starts = np.ascontiguousarray(starts, dtype=np.int64)
        sizes = np.diff(self.starts)
        heights = np.ascontiguousarray(weights, dtype=np.float64)
        if len(sizes) != len(heights) or self.starts[0] != 0 or bool((sizes < 1).any()):
            raise InputError("starts must begin with 0 and give every tuple at least one way.")
        self.ways = PackingProblem(offsets, participants, np.repeat(heights, sizes), count)
        self.count, self.weights = self.ways.count, heights
        self.burdens, self.spans, self.places, self.heights = self._bear()
        owners = np.repeat(np.arange(self.count), np.diff(self.burdens))
        self.loads = np.bincount(owners, self.heights, self.count)
        """What each participant bears when nobody is deleted, within rounding."""

    def __repr__(self) -> str:
        return "WaysProblem(...)"

    def __reduce__(self) -> Any:
        raise SealedError("A WaysProblem holds private records and is not pickled or copied.")

    def _bear(self) -> tuple[Array, Array, Array, Array]:
        row_offsets, row_ways = self.ways.by_participant
        tuple_of = np.repeat(np.arange(len(self.weights)), np.diff(self.starts))
        owners = np.repeat(np.arange(self.count), np.diff(row_offsets))
        # A participant's ways are in order, so those of one tuple are neighbours.
        tuples = tuple_of[row_ways]
        fresh = np.ones(len(row_ways), np.bool_)
        fresh[1:] = (np.diff(tuples) != 0) | (np.diff(owners) != 0)
        heads = np.flatnonzero(fresh)
        burdens = np.searchsorted(owners[heads], np.arange(self.count + 1))
        spans = np.append(heads, len(row_ways))
        return burdens, spans, row_ways, self.weights[tuples[heads]]

    def packing(self, tau: float) -> PackingProblem:
        """Return the packing problem of all ways, with a limit on the ways of each tuple.

        No way of at least one participant is worth more than tau, nor k of them more than k tau:
        weights and limits beyond that are cut, which changes no value.
        """
        sizes = np.diff(self.starts)
        several = sizes > 1
        limit = np.where(several, self.count + np.cumsum(several) - 1, -1)
        offsets, participants = _append(
            self.ways.offsets, self.ways.participants, np.repeat(limit, sizes)
        )
        owned = np.diff(self.ways.offsets) > 0
        weights = np.where(owned, np.minimum(self.ways.weights, tau), self.ways.weights)
        # Rounded up, lest the limit be below the sum of the weights.
        limits = np.minimum(self.weights, np.add.reduceat(weights, self.starts[:-1]) * _UP)
        return PackingProblem(offsets, participants, weights, self.count, limits[several])


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
