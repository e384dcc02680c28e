"""Newton's equations of the interior-point method for bundles, and the problem they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tulle.core.arrays import Array
from tulle.core.compiled import compiled
from tulle.graphs.truncation.bundles import Bundles, chosen
from tulle.lp.interior import factorise, solve_factor
from tulle.lp.program import Program, ProgramRows


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

    @cached_property
    def owner(self) -> Array:
        """The bundle of each leaf."""
        return np.repeat(np.arange(len(self.stems)), np.diff(self.leaf_offsets))

    @cached_property
    def term_owner(self) -> Array:
        """The bundle of each term."""
        return np.repeat(np.arange(len(self.stems)), np.diff(self.term_offsets))

    @property
    def cost(self) -> tuple[Array, Array, Array, Array]:
        """What g, m, a and t cost."""
        leaf_cost = self.leaf_cost[self.owner]
        return np.ones(self.count), self.stem_cost, leaf_cost, self.term_cost

    def rows(self, x: list[Array]) -> list[Array]:
        """Return A x, in three parts."""
        g, m, a, t = x
        padded = np.append(g, 0.0)
        bundles = len(self.stems)
        sums = np.bincount(self.owner, a, bundles)
        return [
            m + padded[self.stems].sum(axis=1),
            a - m[self.owner] + padded[self.leaves].sum(axis=1),
            t - sums[self.term_owner] + self.steps * m[self.term_owner],
        ]

    def columns(self, y: list[Array]) -> list[Array]:
        """Return A' y, in four parts."""
        stem, use, rise = y
        bundles = len(self.stems)
        loads = np.zeros(self.count + 1)
        for column in self.stems.T:
            loads += np.bincount(np.where(column < 0, self.count, column), stem, len(loads))
        for column in self.leaves.T:
            loads += np.bincount(np.where(column < 0, self.count, column), use, len(loads))
        rises = np.bincount(self.term_owner, rise, bundles)
        weighed = np.bincount(self.term_owner, rise * self.steps, bundles)
        return [
            loads[:-1],
            stem - np.bincount(self.owner, use, bundles) + weighed,
            use - rises[self.owner],
            rise.copy(),
        ]

    def program(self) -> Program:
        """Return the linear program of g, m, a, t, and the sum of a of each bundle.

        Its rows are those of (S), (w) and (r), then one for each sum: sum - a >= 0, so that a sum
        is written once however many terms it has.
        """
        bundles, leaves, terms = len(self.stems), len(self.leaves), len(self.term_owner)
        m = self.count
        a, t = m + bundles, m + bundles + leaves
        sums = t + terms
        stem, column = np.nonzero(self.stems >= 0)
        leaf, other = np.nonzero(self.leaves >= 0)
        every, each, all_terms = np.arange(bundles), np.arange(leaves), np.arange(terms)
        blocks = [
            _rows(0, 1.0, bundles, (every, m + every, 1.0), (stem, self.stems[stem, column], 1.0)),
            _rows(
                bundles,
                0.0,
                leaves,
                (each, a + each, 1.0),
                (each, m + self.owner, -1.0),
                (leaf, self.leaves[leaf, other], 1.0),
            ),
            _rows(
                bundles + leaves,
                0.0,
                terms,
                (all_terms, t + all_terms, 1.0),
                (all_terms, sums + self.term_owner, -1.0),
                (all_terms, m + self.term_owner, self.steps),
            ),
            _rows(
                bundles + leaves + terms,
                0.0,
                bundles,
                (every, sums + every, 1.0),
                (self.owner, a + each, -1.0),
            ),
        ]
        cost = np.concatenate([*self.cost, np.zeros(bundles)])
        return Program.of(cost, np.full(len(cost), np.inf), blocks)


def _rows(first: int, right: float, count: int, *entries: tuple[Array, Array, Any]) -> ProgramRows:
    """Return a block of rows from (row, column, value), where a value may be one for all."""
    row, column, value = (
        np.concatenate([np.broadcast_to(entry[part], len(entry[0])) for entry in entries])
        for part in range(3)
    )
    return ProgramRows(first, row, column, value.astype(np.float64), np.full(count, right))


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


class System:
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
        factorise(matrix, np.ones(problem.count))
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
        solve_factor(self.factor, np.ones(problem.count), g)
        padded = np.append(g, 0.0)
        on_leaves = padded[problem.leaves].sum(axis=1)
        on_stems = padded[problem.stems].sum(axis=1)
        m = (
            share
            - (np.bincount(owner, self.pull * on_leaves, bundles) + self.stem * on_stems)
            / self.m_pivot
        )
        forced = lifted - self.use * (on_leaves - m[owner]) + (self.second * m)[owner]
        mean = self.kappa * np.bincount(owner, self.alpha * forced, bundles)
        a = self.alpha * (forced - mean[owner])
        row = -np.bincount(owner, a, bundles)[term_owner] + problem.steps * m[term_owner]
        t = (on_t - self.rise * row) / self.t_pivot
        return [g, m, a, t]


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
