"""An interior-point method for the truncated value of bundles.

Only some participants, the *active* ones, may be deleted; for the others g = 0. Per bundle with
n inactive leaves the linear program is (all variables at least zero, rows with their multipliers)

    minimise  sum_p g_p + (1 / tau) [ C(n, k) m + C(n-1, k-1) sum_l a_l + sum_j C(j-1, k-2) t_j ]
    m + g(stem) >= 1                          (S)
    a_l - m + g(leaf l) >= 0                  (w)   for every active leaf l
    t_j - sum_l a_l + (j - n) m >= 0          (r)   for j from max(n, k-1) to d - 1

Newton's equations are diagonal but for the sums, so t, then a, then m are eliminated by formulas
and a dense system in g is left, to which each bundle adds two products of a vector with itself:
steps cost the sum of squared bundle sizes plus the cube of the number of active participants.

The steps are Mehrotra's ("On the implementation of a primal-dual interior point method", 1992).
Nothing is proven about them and nothing needs to be: whatever comes out is certified elsewhere.
"""

from __future__ import annotations

import numpy as np

from tulle.core.arrays import Array
from tulle.graphs.truncation.bundle_newton import Reduced, System

_FLOOR = 1e-300


class BundleInterior:
    """One run; ``advance`` makes a step, ``deletions`` and ``levels`` read off where it stands."""

    def __init__(self, problem: Reduced, reach: float) -> None:
        self.problem, self.reach = problem, reach
        bundles, leaves = len(problem.stems), len(problem.leaves)
        self.owner, self.term_owner = problem.owner, problem.term_owner
        lively = np.diff(problem.leaf_offsets)
        self.cost = problem.cost
        # A feasible start: everyone half deleted, everything else as large as its row asks.
        self.x = [
            np.full(problem.count, 0.5),
            np.full(bundles, 1.0),
            np.full(leaves, 1.0),
            np.maximum(lively[self.term_owner] - problem.steps, 0.0) + 1.0,
        ]
        self.s = self.problem.rows(self.x)
        self.s[0] -= 1.0
        self.s = [np.maximum(part, 0.1) for part in self.s]
        slopes = np.bincount(self.term_owner, problem.term_cost, bundles) + problem.leaf_cost
        self.y = [
            np.maximum(problem.stem_cost, 1e-3 / max(bundles, 1)),
            np.maximum(0.5 * slopes[self.owner], _FLOOR),
            0.5 * problem.term_cost,
        ]
        self.z = [
            np.full(problem.count, 1.0),
            np.maximum(problem.stem_cost, 1e-3 / max(bundles, 1)),
            np.maximum(0.5 * slopes[self.owner], _FLOOR),
            0.5 * problem.term_cost,
        ]

    @property
    def gap(self) -> float:
        """The complementarity gap, in units of tau."""
        return float(
            sum((x * z).sum() for x, z in zip(self.x, self.z, strict=True))
            + sum((s * y).sum() for s, y in zip(self.s, self.y, strict=True))
        )

    def advance(self) -> None:
        """Make one step; near the end rounding may spoil it, which the bounds then ignore."""
        with np.errstate(all="ignore"):
            self._advance()

    def _advance(self) -> None:
        rows, columns = self.problem.rows(self.x), self.problem.columns(self.y)
        right = (1.0, 0.0, 0.0)
        primal = [b - row + s for b, row, s in zip(right, rows, self.s, strict=True)]
        dual = [c - part - z for c, part, z in zip(self.cost, columns, self.z, strict=True)]
        count = sum(map(len, self.x)) + sum(map(len, self.s))
        mean = self.gap / count
        system = System(self.problem, self.x, self.z, self.s, self.y, self.owner, self.term_owner)
        corner = [-x * z for x, z in zip(self.x, self.z, strict=True)]
        other = [-s * y for s, y in zip(self.s, self.y, strict=True)]
        dx, ds, dy, dz = self._solve(system, primal, dual, corner, other)
        primal_step = min(_longest(self.x, dx), _longest(self.s, ds))
        dual_step = min(_longest(self.y, dy), _longest(self.z, dz))
        ahead = sum(
            float(((x + primal_step * a) * (z + dual_step * b)).sum())
            for x, a, z, b in zip(
                (*self.x, *self.s), (*dx, *ds), (*self.z, *self.y), (*dz, *dy), strict=True
            )
        )
        target = mean * (ahead / count / mean) ** 3
        corner = [target - x * z - a * b for x, z, a, b in zip(self.x, self.z, dx, dz, strict=True)]
        other = [target - s * y - a * b for s, y, a, b in zip(self.s, self.y, ds, dy, strict=True)]
        dx, ds, dy, dz = self._solve(system, primal, dual, corner, other)
        primal_step = min(_longest(self.x, dx), _longest(self.s, ds)) * self.reach
        dual_step = min(_longest(self.y, dy), _longest(self.z, dz)) * self.reach
        self.x = [x + primal_step * a for x, a in zip(self.x, dx, strict=True)]
        self.s = [s + primal_step * a for s, a in zip(self.s, ds, strict=True)]
        self.y = [y + dual_step * a for y, a in zip(self.y, dy, strict=True)]
        self.z = [z + dual_step * a for z, a in zip(self.z, dz, strict=True)]

    def _solve(
        self,
        system: System,
        primal: list[Array],
        dual: list[Array],
        corner: list[Array],
        other: list[Array],
    ) -> tuple[list[Array], list[Array], list[Array], list[Array]]:
        pushed = self.problem.columns(
            [(o + y * r) / s for o, y, r, s in zip(other, self.y, primal, self.s, strict=True)]
        )
        forces = [
            push + c / x - d for push, c, x, d in zip(pushed, corner, self.x, dual, strict=True)
        ]
        dx = system.solve(forces)
        moved = self.problem.rows(dx)
        ds = [row - r for row, r in zip(moved, primal, strict=True)]
        dy = [(o - y * d) / s for o, y, d, s in zip(other, self.y, ds, self.s, strict=True)]
        dz = [(c - z * d) / x for c, z, d, x in zip(corner, self.z, dx, self.x, strict=True)]
        return dx, ds, dy, dz

    def deletions(self) -> Array:
        """Return g of the active participants."""
        deletions: Array = self.x[0]
        return deletions

    def levels(self) -> tuple[Array, Array, Array]:
        """Return S and R of each bundle and w of each active leaf, all over tau."""
        rises = np.bincount(self.term_owner, self.y[2], len(self.problem.stems))
        return self.y[0], rises + self.problem.leaf_cost, self.y[1]


def _longest(values: list[Array], moves: list[Array]) -> float:
    """Return the longest step of at most 1 that keeps everything at least zero."""
    longest = 1.0
    for value, move in zip(values, moves, strict=True):
        falling = move < 0.0
        if falling.any():
            longest = min(longest, float((value[falling] / -move[falling]).min()))
    return longest
