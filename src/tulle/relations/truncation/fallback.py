"""A first-order method for any linear program over the unit cube: slow, and sure to arrive.

For what solvers leave undecided: a restarted Halpern primal-dual hybrid gradient method with
diagonal steps, which needs no equations to be solved and converges for every linear program (Lu and
Yang, "Restarted Halpern PDHG for linear programming", 2024; Pock and Chambolle, 2011). Whoever
calls it certifies its vectors and goes on until they do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_RESTART = 0.3
_LONGEST = 0.4
"""A round ends when the residual has fallen to the first part, or the round has lasted the second
part of all steps so far."""


class Patient:
    """One run: minimise cost·x over 0 <= x <= 1 and matrix·x <= room."""

    def __init__(self, cost: Array, matrix: Any, room: Array) -> None:
        self.cost, self.matrix, self.room = cost, matrix, room
        sizes = abs(matrix)
        self.primal = 1.0 / np.maximum(np.asarray(sizes.sum(axis=0)).ravel(), 1e-9)
        self.dual = 1.0 / np.maximum(np.asarray(sizes.sum(axis=1)).ravel(), 1e-9)
        self.x, self.y = np.ones(len(cost)), np.zeros(len(room))
        self.balance = 1.0
        self.steps = self.age = 0
        self.first = np.inf
        self.anchor = self.last = (self.x, self.y)

    def advance(self, steps: int) -> tuple[Array, Array]:
        """Make some steps; return where they led: the variables and the rows' multipliers."""
        for _ in range(steps):
            self._advance()
        return self.last

    def _advance(self) -> None:
        push = self.cost + self.matrix.T @ self.y
        x = np.clip(self.x - self.primal / self.balance * push, 0.0, 1.0)
        ahead = self.matrix @ (2.0 * x - self.x) - self.room
        y = np.maximum(self.y + self.dual * self.balance * ahead, 0.0)
        primal, dual = self._apart(x, self.x, y, self.y)
        residual = float(np.sqrt(self.balance * primal + dual / self.balance))
        self.last = (x, y)
        keep = (self.age + 1.0) / (self.age + 2.0)
        self.x = keep * (2.0 * x - self.x) + (1.0 - keep) * self.anchor[0]
        self.y = keep * (2.0 * y - self.y) + (1.0 - keep) * self.anchor[1]
        if self.age == 0:
            self.first = residual
        self.age += 1
        self.steps += 1
        if residual <= _RESTART * self.first or self.age > 20 + _LONGEST * self.steps:
            primal, dual = self._apart(x, self.anchor[0], y, self.anchor[1])
            if primal > 0.0 and dual > 0.0:
                wanted = float(np.sqrt(dual / primal)) / self.balance
                self.balance *= float(np.clip(wanted, 0.5, 2.0))
            self.x, self.y = x, y
            self.anchor, self.age = (x, y), 0

    def _apart(self, x: Array, other: Array, y: Array, another: Array) -> tuple[float, float]:
        return (
            float(((x - other) ** 2 / self.primal).sum()),
            float(((y - another) ** 2 / self.dual).sum()),
        )
