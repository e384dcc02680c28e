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

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.graphs.compiled import compiled
from tulle.graphs.subgraph_bundles import Bundles, chosen

Array = npt.NDArray[Any]

_BACK = 0.99
_FLOOR = 1e-300


@dataclass(frozen=True, eq=False)
class Reduced:
    """The bundles that have active participants, with their other leaves merged into a number.

    ``stems`` and ``leaves`` number the active participants from 0, and hold -1 for others.
    """

    stems: Array
    leaf_offsets: Array
    leaves: Array
    term_offsets: Array
    steps: Array
    stem_cost: Array
    leaf_cost: Array
    term_cost: Array
    count: int
    bundles: Array
    """Where the bundles are in the whole problem."""
    places: Array
    """Where the leaves are."""


def reduce(bundles: Bundles, tau: float, active: Array) -> Reduced:
    """Return the problem in which only ``active`` participants (a mask) may be deleted."""
    number = np.where(active, np.cumsum(active) - 1, -1).astype(np.int32)
    stems, leaves = number[bundles.stems], number[bundles.leaves]
    owners = bundles.owners
    live = (leaves >= 0).any(axis=1)
    lively = np.bincount(owners, live, len(stems)).astype(np.int64)
    kept = (stems >= 0).any(axis=1) | (lively > 0)
    chosen_leaves = live & kept[owners]
    lively, sizes = lively[kept], bundles.sizes[kept]
    idle = sizes - lively
    first = np.maximum(idle, bundles.k - 1)
    terms = np.where(lively > 0, sizes - first, 0)
    step = np.arange(terms.sum()) - np.repeat(np.cumsum(terms) - terms, terms)
    place = step + np.repeat(first, terms)
    return Reduced(
        stems[kept],
        np.concatenate([[0], np.cumsum(lively)]),
        leaves[chosen_leaves],
        np.concatenate([[0], np.cumsum(terms)]),
        (place - np.repeat(idle, terms)).astype(np.float64),
        chosen(idle, bundles.k) / tau,
        chosen(idle - 1, bundles.k - 1) / tau,
        chosen(place - 1, bundles.k - 2) / tau,
        int(active.sum()),
        np.flatnonzero(kept),
        np.flatnonzero(chosen_leaves),
    )


class Interior:
    """One run; ``advance`` makes a step, ``deletions`` and ``levels`` read off where it stands."""

    def __init__(self, problem: Reduced) -> None:
        self.problem = problem
        bundles, leaves = len(problem.stems), len(problem.leaves)
        terms = len(problem.steps)
        self.owner = np.repeat(np.arange(bundles), np.diff(problem.leaf_offsets))
        self.term_owner = np.repeat(np.arange(bundles), np.diff(problem.term_offsets))
        lively = np.diff(problem.leaf_offsets)
        self.cost = (
            np.ones(problem.count),
            problem.stem_cost,
            problem.leaf_cost[self.owner],
            problem.term_cost,
        )
        # A feasible start: everyone half deleted, everything else as large as its row asks.
        self.x = [
            np.full(problem.count, 0.5),
            np.full(bundles, 1.0),
            np.full(leaves, 1.0),
            np.maximum(lively[self.term_owner] - problem.steps, 0.0) + 1.0,
        ]
        self.s = self._rows(self.x)
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

    def _rows(self, x: list[Array]) -> list[Array]:
        """Return A x, in three parts."""
        problem = self.problem
        g, m, a, t = x
        padded = np.append(g, 0.0)
        bundles = len(problem.stems)
        sums = np.bincount(self.owner, a, bundles)
        return [
            m + padded[problem.stems].sum(axis=1),
            a - m[self.owner] + padded[problem.leaves].sum(axis=1),
            t - sums[self.term_owner] + problem.steps * m[self.term_owner],
        ]

    def _columns(self, y: list[Array]) -> list[Array]:
        """Return A' y, in four parts."""
        problem = self.problem
        stem, use, rise = y
        bundles = len(problem.stems)
        loads = np.zeros(problem.count + 1)
        for column in problem.stems.T:
            loads += np.bincount(np.where(column < 0, problem.count, column), stem, len(loads))
        for column in problem.leaves.T:
            loads += np.bincount(np.where(column < 0, problem.count, column), use, len(loads))
        rises = np.bincount(self.term_owner, rise, bundles)
        weighed = np.bincount(self.term_owner, rise * problem.steps, bundles)
        return [
            loads[:-1],
            stem - np.bincount(self.owner, use, bundles) + weighed,
            use - rises[self.owner],
            rise.copy(),
        ]

    @property
    def gap(self) -> float:
        """The complementarity gap, in units of tau."""
        return float(
            sum((x * z).sum() for x, z in zip(self.x, self.z, strict=True))
            + sum((s * y).sum() for s, y in zip(self.s, self.y, strict=True))
        )

    def advance(self) -> None:
        """Make one step."""
        rows, columns = self._rows(self.x), self._columns(self.y)
        right = (1.0, 0.0, 0.0)
        primal = [b - row + s for b, row, s in zip(right, rows, self.s, strict=True)]
        dual = [c - part - z for c, part, z in zip(self.cost, columns, self.z, strict=True)]
        count = sum(map(len, self.x)) + sum(map(len, self.s))
        mean = self.gap / count
        system = _System(self.problem, self.x, self.z, self.s, self.y, self.owner, self.term_owner)
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
        corner = [
            target - x * z - a * b
            for x, z, a, b in zip(self.x, self.z, dx, dz, strict=True)
        ]
        other = [
            target - s * y - a * b
            for s, y, a, b in zip(self.s, self.y, ds, dy, strict=True)
        ]
        dx, ds, dy, dz = self._solve(system, primal, dual, corner, other)
        primal_step = min(_longest(self.x, dx), _longest(self.s, ds)) * _BACK
        dual_step = min(_longest(self.y, dy), _longest(self.z, dz)) * _BACK
        self.x = [x + primal_step * a for x, a in zip(self.x, dx, strict=True)]
        self.s = [s + primal_step * a for s, a in zip(self.s, ds, strict=True)]
        self.y = [y + dual_step * a for y, a in zip(self.y, dy, strict=True)]
        self.z = [z + dual_step * a for z, a in zip(self.z, dz, strict=True)]

    def _solve(
        self,
        system: _System,
        primal: list[Array],
        dual: list[Array],
        corner: list[Array],
        other: list[Array],
    ) -> tuple[list[Array], list[Array], list[Array], list[Array]]:
        pushed = self._columns(
            [(o + y * r) / s for o, y, r, s in zip(other, self.y, primal, self.s, strict=True)]
        )
        forces = [
            push + c / x - d for push, c, x, d in zip(pushed, corner, self.x, dual, strict=True)
        ]
        dx = system.solve(forces)
        moved = self._rows(dx)
        ds = [row - r for row, r in zip(moved, primal, strict=True)]
        dy = [(o - y * d) / s for o, y, d, s in zip(other, self.y, ds, self.s, strict=True)]
        dz = [(c - z * d) / x for c, z, d, x in zip(corner, self.z, dx, self.x, strict=True)]
        return dx, ds, dy, dz

    def deletions(self) -> Array:
        """Return g of the active participants."""
        return self.x[0]

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


class _System:
    """Newton's equations with t, a and m eliminated; see the derivation in the comments."""

    def __init__(
        self,
        problem: Reduced,
        x: list[Array],
        z: list[Array],
        s: list[Array],
        y: list[Array],
        owner: Array,
        term_owner: Array,
    ) -> None:
        self.problem, self.owner, self.term_owner = problem, owner, term_owner
        bundles = len(problem.stems)
        own_g, own_m, own_a, own_t = (b / a for a, b in zip(x, z, strict=True))
        self.stem, self.use, self.rise = (b / a for a, b in zip(s, y, strict=True))
        # Eliminating t_j leaves the row (r) with the smaller weight "soft".
        self.t_pivot = own_t + self.rise
        soft = self.rise * own_t / self.t_pivot
        first, second, third = (
            np.bincount(term_owner, soft * problem.steps**power, bundles) for power in range(3)
        )
        # The a of one bundle: a diagonal plus "first" everywhere, inverted by Sherman-Morrison.
        self.alpha = 1.0 / (own_a + self.use)
        self.beta = self.alpha * self.use
        total = np.bincount(owner, self.alpha, bundles)
        damp = 1.0 / (1.0 + first * total)
        self.kappa = first * damp
        self.second = second
        self.cross = second * damp
        leaf = self.use * own_a * self.alpha
        sums = np.bincount(owner, self.beta, bundles)
        # Then m, coupled with g by "pull" on the leaves and by the stem's weight on the stem.
        self.m_pivot = (
            np.bincount(owner, leaf, bundles)
            + self.kappa * sums**2
            - 2.0 * sums * self.cross
            + third
            - second**2 * total * damp
            + own_m
            + self.stem
        )
        self.pull = -leaf + (self.cross - self.kappa * sums)[owner] * self.beta
        matrix = np.zeros((problem.count, problem.count))
        _assemble(
            problem.stems,
            problem.leaf_offsets,
            problem.leaves,
            leaf,
            self.beta,
            self.kappa,
            self.stem,
            self.pull,
            self.m_pivot,
            matrix,
        )
        matrix[np.diag_indices(problem.count)] += own_g
        _factorise(matrix)
        self.factor = matrix

    def solve(self, forces: list[Array]) -> list[Array]:
        problem, owner, term_owner = self.problem, self.owner, self.term_owner
        bundles = len(problem.stems)
        on_g, on_m, on_a, on_t = forces
        through = self.rise * on_t / self.t_pivot
        lifted = on_a + np.bincount(term_owner, through, bundles)[owner]
        weighed = np.bincount(owner, self.alpha * lifted, bundles)
        on_leaf = -self.beta * (lifted - (self.kappa * weighed)[owner])
        on_m = (
            on_m
            - np.bincount(term_owner, problem.steps * through, bundles)
            + self.cross * weighed
            - np.bincount(owner, on_leaf, bundles)
        )
        share = on_m / self.m_pivot
        loads = np.zeros(problem.count + 1)
        for column in problem.leaves.T:
            loads += np.bincount(
                np.where(column < 0, problem.count, column),
                on_leaf - self.pull * share[owner],
                len(loads),
            )
        for column in problem.stems.T:
            loads += np.bincount(
                np.where(column < 0, problem.count, column), -self.stem * share, len(loads)
            )
        g = on_g + loads[:-1]
        _solve_factor(self.factor, g)
        padded = np.append(g, 0.0)
        on_leaves = padded[problem.leaves].sum(axis=1)
        on_stems = padded[problem.stems].sum(axis=1)
        m = share - (
            np.bincount(owner, self.pull * on_leaves, bundles) + self.stem * on_stems
        ) / self.m_pivot
        forced = lifted - self.use * (on_leaves - m[owner]) + (self.second * m)[owner]
        mean = self.kappa * np.bincount(owner, self.alpha * forced, bundles)
        a = self.alpha * (forced - mean[owner])
        row = -np.bincount(owner, a, bundles)[term_owner] + problem.steps * m[term_owner]
        t = (on_t - self.rise * row) / self.t_pivot
        return [g, m, a, t]


# A factorisation of our own: the matrices are small, and the threads of the usual library wait for
# each other whenever the machine has something else to do (seen to take a hundred times as long).


@compiled
def _factorise(matrix: Array) -> None:
    """Put the Cholesky factor into the lower half, eight columns at a time.

    A pivot that rounding has made too small is set to a huge number: that variable then stays
    where it is for one step.
    """
    count = len(matrix)
    panel = np.zeros((8, count))
    least = np.empty(count)
    for row in range(count):
        least[row] = 1e-15 * matrix[row, row]
    for first in range(0, count, 8):
        width = min(8, count - first)
        for step in range(width):
            column = first + step
            for row in range(column, count):
                value = matrix[row, column]
                for back in range(first, column):
                    value -= matrix[row, back] * matrix[column, back]
                matrix[row, column] = value
            pivot = matrix[column, column]
            root = np.sqrt(pivot) if pivot > least[column] else 1e100
            matrix[column, column] = root
            for row in range(column + 1, count):
                matrix[row, column] /= root
        for step in range(8):
            for row in range(first + width, count):
                panel[step, row] = matrix[row, first + step] if step < width else 0.0
        for row in range(first + width, count):
            a, b, c, d = panel[0, row], panel[1, row], panel[2, row], panel[3, row]
            e, f, g, h = panel[4, row], panel[5, row], panel[6, row], panel[7, row]
            for other in range(first + width, row + 1):
                matrix[row, other] -= (
                    (a * panel[0, other] + b * panel[1, other])
                    + (c * panel[2, other] + d * panel[3, other])
                    + (e * panel[4, other] + f * panel[5, other])
                    + (g * panel[6, other] + h * panel[7, other])
                )


@compiled
def _solve_factor(factor: Array, vector: Array) -> None:
    """Solve with the factor in place."""
    count = len(factor)
    for row in range(count):
        value = vector[row]
        for column in range(row):
            value -= factor[row, column] * vector[column]
        vector[row] = value / factor[row, row]
    for row in range(count - 1, -1, -1):
        vector[row] /= factor[row, row]
        for column in range(row):
            vector[column] -= factor[row, column] * vector[row]


@compiled
def _assemble(
    stems: Array,
    offsets: Array,
    leaves: Array,
    leaf: Array,
    beta: Array,
    kappa: Array,
    stem: Array,
    pull: Array,
    pivot: Array,
    matrix: Array,
) -> None:
    """Add every bundle's part to the lower half of the matrix."""
    most = 0
    for bundle in range(len(stems)):
        most = max(most, offsets[bundle + 1] - offsets[bundle])
    room = most * leaves.shape[1] + stems.shape[1] + 1
    who = np.empty(room, np.int64)
    by_use = np.empty(room)
    by_pull = np.empty(room)
    for bundle in range(len(stems)):
        found = 0
        for column in range(stems.shape[1]):
            if stems[bundle, column] >= 0:
                who[found] = stems[bundle, column]
                by_use[found] = 0.0
                by_pull[found] = stem[bundle]
                found += 1
        for first in range(found):
            for second in range(found):
                if who[first] >= who[second]:
                    matrix[who[first], who[second]] += stem[bundle]
        for place in range(offsets[bundle], offsets[bundle + 1]):
            for column in range(leaves.shape[1]):
                if leaves[place, column] < 0:
                    continue
                for other in range(leaves.shape[1]):
                    if 0 <= leaves[place, other] <= leaves[place, column]:
                        matrix[leaves[place, column], leaves[place, other]] += leaf[place]
                who[found] = leaves[place, column]
                by_use[found] = beta[place]
                by_pull[found] = pull[place]
                found += 1
        inverse = 1.0 / pivot[bundle]
        for first in range(found):
            row = who[first]
            one, two = kappa[bundle] * by_use[first], -by_pull[first] * inverse
            for second in range(found):
                if row >= who[second]:
                    matrix[row, who[second]] += one * by_use[second] + two * by_pull[second]
