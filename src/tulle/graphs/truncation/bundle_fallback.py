"""A first-order method for the truncated value of bundles: slow, and sure to arrive.

Where the interior-point method stops short (near the end its equations are at the mercy of
rounding), this one goes on from anywhere and needs no equations to be solved: a restarted Halpern
primal-dual hybrid gradient method with diagonal steps, which converges for every linear program
(Lu and Yang, "Restarted Halpern PDHG for linear programming", 2024; Pock and Chambolle, 2011). So
no dataset can make the solver give up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.graphs.truncation.bundle_newton import Reduced

Array = npt.NDArray[Any]
Parts = list[Array]

_RESTART = 0.3
_LONGEST = 0.4
"""A round ends when the residual has fallen to the first, or it has lasted the second part of all
steps so far."""


class Patient:
    """One run, for the linear program in ``subgraph_interior``."""

    def __init__(self, problem: Reduced, deletions: Array, levels: tuple[Array, Array]) -> None:
        self.problem = problem
        bundles, leaves = len(problem.stems), len(problem.leaves)
        terms = len(problem.term_owner)
        lively = np.diff(problem.leaf_offsets).astype(np.float64)
        rises = np.bincount(problem.term_owner, minlength=bundles).astype(np.float64)
        climbs = np.bincount(problem.term_owner, problem.steps, bundles)
        stems = (problem.stems >= 0).sum(axis=1)
        uses = (problem.leaves >= 0).sum(axis=1)
        named = problem.columns([np.ones(bundles), np.ones(leaves), np.zeros(terms)])[0]
        # The sums of absolute entries, by column and by row.
        self.primal = [
            1.0 / np.maximum(named, 1.0),
            1.0 / (1.0 + lively + climbs),
            1.0 / (1.0 + rises[problem.owner]),
            np.ones(terms),
        ]
        self.dual = [
            1.0 / (1.0 + stems),
            1.0 / (2.0 + uses),
            1.0 / (1.0 + lively[problem.term_owner] + problem.steps),
        ]
        self.x: Parts = [
            np.clip(np.nan_to_num(deletions), 0.0, 1.0),
            np.ones(bundles),
            np.ones(leaves),
            np.zeros(terms),
        ]
        kept, used = (np.maximum(np.nan_to_num(level), 0.0) for level in levels)
        self.y: Parts = [kept, used, np.zeros(terms)]
        self.cost = problem.cost
        self.balance = float(np.sqrt(1.0 + np.sum(self.cost[0])))
        self.age = self.steps = 0
        self.first = np.inf
        self._anchor()
        self.best = (self.x, self.y)

    def _anchor(self) -> None:
        self.start = ([part.copy() for part in self.x], [part.copy() for part in self.y])
        self.age = 0

    def advance(self, steps: int) -> None:
        """Make some steps."""
        for _ in range(steps):
            self._advance()

    def _advance(self) -> None:
        push = self.problem.columns(self.y)
        x = [
            np.maximum(old - step / self.balance * (c - p), 0.0)
            for old, step, c, p in zip(self.x, self.primal, self.cost, push, strict=True)
        ]
        ahead = self.problem.rows([2.0 * new - old for new, old in zip(x, self.x, strict=True)])
        y = [
            np.maximum(old + step * self.balance * (b - row), 0.0)
            for old, step, b, row in zip(self.y, self.dual, (1.0, 0.0, 0.0), ahead, strict=True)
        ]
        residual = self._far(x, self.x, y, self.y)
        self.best = (x, y)
        keep = (self.age + 1.0) / (self.age + 2.0)
        self.x, self.y = (
            [keep * (2.0 * n - o) + (1.0 - keep) * a for n, o, a in zip(new, old, at, strict=True)]
            for new, old, at in zip((x, y), (self.x, self.y), self.start, strict=True)
        )
        if self.age == 0:
            self.first = residual
        self.age += 1
        self.steps += 1
        if residual <= _RESTART * self.first or self.age > 20 + _LONGEST * self.steps:
            self.x, self.y = ([part.copy() for part in side] for side in self.best)
            primal, dual = self._sides(self.x, self.start[0], self.y, self.start[1])
            if primal > 0.0 and dual > 0.0:
                self.balance *= float(np.clip(np.sqrt(dual / primal) / self.balance, 0.5, 2.0))
            self._anchor()

    def _sides(self, x: Parts, other: Parts, y: Parts, another: Parts) -> tuple[float, float]:
        primal = sum(
            float(((a - b) ** 2 / s).sum()) for a, b, s in zip(x, other, self.primal, strict=True)
        )
        dual = sum(
            float(((a - b) ** 2 / s).sum()) for a, b, s in zip(y, another, self.dual, strict=True)
        )
        return primal, dual

    def _far(self, x: Parts, other: Parts, y: Parts, another: Parts) -> float:
        primal, dual = self._sides(x, other, y, another)
        return float(np.sqrt(self.balance * primal + dual / self.balance))

    def deletions(self) -> Array:
        """Return g of the active participants."""
        return self.best[0][0]

    def levels(self) -> tuple[Array, Array, Array]:
        """Return S and R of each bundle and w of each active leaf, all over tau."""
        kept, used, rises = self.best[1]
        heights = np.bincount(self.problem.term_owner, rises, len(self.problem.stems))
        return kept, heights + self.problem.leaf_cost, used
