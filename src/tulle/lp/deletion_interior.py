"""An interior-point method for the deletion LP where few participants bind.

A threshold worth asking about is one that some tens to hundreds of participants stick out of, and
these may have millions of tuples between them. Each step costs a few passes over the tuples and the
factorisation of a dense matrix with about two rows per participant, and ten to twenty steps are
enough; first-order methods need many hundreds of passes.

Nothing is proven about the steps and nothing needs to be: whatever comes out is certified
elsewhere. They follow the central path as interior-point methods do (Wright, "Primal-dual
interior-point methods", 1997), with the tuples eliminated by their closed form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.lp.deletion_newton import (
    Rows,
    assemble,
    covers_at,
    directions,
    misfit,
    start,
)
from tulle.lp.deletion_reduce import ReducedDeletion
from tulle.lp.dense import factorise, solve_factor

Array = npt.NDArray[Any]

_REACH = 0.95
"""How far towards the boundary steps go."""
_START = 0.1
_SHRINK = 0.15
_TOLERANCE = 0.5
"""The barrier is lowered once the equations hold to this part of the gap it stands for."""
_FINEST = 1e-7
_STEPS = 40
_STALLED = 6


class Interior:
    """One run on a reduced problem in which every row is deletable."""

    def __init__(self, reduced: ReducedDeletion, tau: float) -> None:
        self.sizes, self.tau = reduced.sizes, tau
        self.place = np.where(reduced.binding, np.cumsum(reduced.binding) - 1, -1)
        self.shape = (reduced.offsets, reduced.rows, reduced.weights / tau)
        self.rows: Rows
        self.rows, self.scale = start(*self.shape, self.sizes, self.place)
        zeros = np.zeros((4, len(self.sizes)))
        self.moves: Rows = (zeros[0], zeros[1], zeros[2], zeros[3])
        self.covers, self.remainders = np.empty((2, len(reduced.weights)))
        bound = int(reduced.binding.sum())
        size = len(self.sizes) + bound
        self.matrix = np.zeros((size, size))
        self.vector = np.empty(size)
        self.signs = np.repeat([1.0, -1.0], [len(self.sizes), bound])
        self.terms = 2.0 * self.scale.sum() + self.sizes.sum() + self.sizes[reduced.binding].sum()
        self.theta = _START
        self.steps = self.stalled = 0
        self._columns()

    @property
    def gap(self) -> float:
        """How far apart the bounds are about to be."""
        return float(self.theta * self.terms)

    @property
    def finished(self) -> bool:
        """Whether further steps would bring nothing."""
        return self.steps >= _STEPS or self.stalled >= _STALLED or self.theta < _FINEST

    def advance(self) -> None:
        """Make one step; near the end rounding may spoil it, which the bounds then ignore."""
        with np.errstate(all="ignore"):
            self._advance()
        self.steps += 1

    def _advance(self) -> None:
        fixed = (self.sizes, self.place)
        assemble(
            *self.shape,
            *fixed,
            self.scale,
            self.theta,
            self.rows,
            self.covers,
            self.remainders,
            self.matrix,
            self.vector,
        )
        factorise(self.matrix, self.signs)
        solve_factor(self.matrix, self.signs, self.vector)
        longest = directions(*fixed, self.theta, self.rows, self.vector, self.moves)
        step = 1.0 if longest >= 1.0 else _REACH * longest
        for value, move in zip(self.rows, self.moves, strict=True):
            value += step * move
        self._columns()
        off = misfit(*self.shape, *fixed, self.rows, self.covers, self.remainders)
        self.stalled = self.stalled + 1 if step < 0.1 else 0
        if off <= _TOLERANCE * self.gap:
            self.theta *= _SHRINK
            self._columns()

    def _columns(self) -> None:
        fixed = (*self.shape, self.place, self.scale)
        covers_at(*fixed, self.theta, self.rows, self.covers, self.remainders)

    def vectors(self) -> tuple[Array, Array, Array]:
        """Return deletions, multipliers of loads (per unit of load) and covers."""
        return self.rows[0], self.rows[3] / self.tau, self.covers
