"""Linear programs with any sparse matrix, where nothing of their structure is left to use.

    minimise cost·x  over  0 <= x <= upper,  matrix·x >= right,  with cost >= 0.

Three methods give vectors: a restarted, reflected Halpern primal-dual hybrid gradient method
(:mod:`tulle.lp.first_order` says more), the simplex method of HiGHS, and the simplex method in
exact arithmetic. What they give is certified by whoever set up the program, so nothing is taken on
trust.

*It ends.* The first method is used for a number of steps that is fixed, then the last one, which
Bland's rule ends on every program. So whether there is an answer never depends on how numbers of 53
bits round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tulle.core.arrays import Array
from tulle.core.compiled import compiled
from tulle.lp import highs
from tulle.lp.exact import Row, Vertex, climb
from tulle.lp.first_order import EXACT_ENTRIES, is_due, most_steps, rebalance, reset

_CHECK = 40
_PATIENCE = 4_000
_ASKED = 2
_HIGHS_ENTRIES = 100_000


@dataclass(frozen=True, eq=False)
class Program:
    """One program; ``starts``, ``columns`` and ``values`` are the matrix by rows.

    ``upper`` may be infinite. Custodian side.
    """

    cost: Array
    upper: Array
    starts: Array
    columns: Array
    values: Array
    right: Array

    @classmethod
    def of(cls, cost: Array, upper: Array, blocks: list[ProgramRows]) -> Program:
        """Put the program together from blocks of rows."""
        rows = np.concatenate([np.zeros(0, np.int64), *(b.rows + b.first for b in blocks)])
        columns = np.concatenate([np.zeros(0, np.int64), *(block.columns for block in blocks)])
        values = np.concatenate([np.zeros(0), *(block.values for block in blocks)])
        right = np.concatenate([np.zeros(0), *(block.right for block in blocks)])
        order = np.argsort(rows, kind="stable")
        starts = np.searchsorted(rows[order], np.arange(len(right) + 1))
        return cls(cost, upper, starts, columns[order].astype(np.int32), values[order], right)

    def vertex(self) -> tuple[Array, Array]:
        """Return x and the rows' multipliers by the simplex method of HiGHS."""
        from scipy.sparse import csr_array

        shape = (len(self.right), len(self.cost))
        matrix = csr_array((self.values, self.columns, self.starts), shape=shape).tocsc()
        x, multipliers = highs.minimise(
            self.cost,
            self.upper,
            self.right,
            np.full(len(self.right), np.inf),
            matrix.indptr,
            matrix.indices,
            matrix.data,
        )
        if len(x) != len(self.cost) or len(multipliers) != len(self.right):
            return np.zeros(len(self.cost)), np.zeros(len(self.right))
        return x, np.maximum(multipliers, 0.0)

    def least(self, target: Fraction | None = None) -> Fraction:
        """Return the least cost exactly, or some number above ``target``.

        Costs are at least zero, so the dual is feasible at zero, and Bland's rule ends the simplex
        method in fractions. It is slow.
        """
        return self._climbed(target).value

    def exact(self) -> tuple[Array, Array]:
        """Return the best x and multipliers of the rows, found exactly and rounded once."""
        found = self._climbed(None)
        x, multipliers = np.zeros(len(self.cost)), np.zeros(len(self.right))
        for made, given in ((x, found.multipliers), (multipliers, found.levels)):
            for place, value in given.items():
                if place < len(made):
                    made[place] = float(value)
        return x, multipliers

    def _climbed(self, target: Fraction | None) -> Vertex:
        duals: list[Row] = [{} for _ in self.cost]
        objective: Row = {}
        for row, right in enumerate(self.right.tolist()):
            objective[row] = Fraction(right)
            for place in range(self.starts[row], self.starts[row + 1]):
                column, value = int(self.columns[place]), Fraction(float(self.values[place]))
                duals[column][row] = duals[column].get(row, Fraction(0)) + value
        for column, upper in enumerate(self.upper.tolist()):
            if np.isfinite(upper):
                duals[column][len(self.right) + column] = Fraction(-1)
                objective[len(self.right) + column] = -Fraction(upper)
        return climb(duals, [Fraction(cost) for cost in self.cost.tolist()], objective, target)

    def attempts(self, *, balance: float = 1.0) -> Iterator[tuple[Array, Array]]:
        """Yield x and the rows' multipliers, better and better ones, for the caller to certify.

        They come from the first-order method and, where that takes long and the program is not
        large, from HiGHS in between. Where both are of no avail, the last are those of exact
        arithmetic; a caller that has the exact value otherwise does not ask for them.
        """
        run = FirstOrderProgram(self, balance=balance)
        asked = 0
        while run.made <= most_steps(len(self.columns)):
            yield run.advance(_CHECK)
            if run.made > _PATIENCE * 4**asked and len(self.columns) <= _HIGHS_ENTRIES:
                if asked == _ASKED and len(self.columns) <= EXACT_ENTRIES:
                    break
                asked += 1
                yield self.vertex()
        yield self.exact()


@dataclass(frozen=True, eq=False)
class ProgramRows:
    """A block of rows: entries by (row within the block, column, value), and right-hand sides."""

    first: int
    rows: Array
    columns: Array
    values: Array
    right: Array


def packing_program(offsets: Array, rows: Array, weights: Array, capacities: Array) -> Program:
    """Return a packing's dual: prices, and what each tuple is worth beyond its prices."""
    tuples, price = np.arange(len(weights)), len(capacities)
    block = ProgramRows(
        0,
        np.concatenate([np.repeat(tuples, np.diff(offsets)), tuples]),
        np.concatenate([rows, price + tuples]),
        np.ones(len(rows) + len(weights)),
        np.ones(len(weights)),
    )
    cost = np.concatenate([capacities, weights])
    return Program.of(cost, np.full(len(cost), np.inf), [block])


class FirstOrderProgram:
    """One run of the first-order method: slow, and sure to arrive.

    How rows and columns are scaled makes no difference to where it leads, but to how soon.
    """

    def __init__(self, program: Program, *, balance: float = 1.0) -> None:
        self.program = program
        self.shape = (program.starts, program.columns, program.values)
        self.steps = _steps(*self.shape, len(program.cost))
        columns, rows = len(program.cost), len(program.right)
        self.current, self.anchor, self.last = ((np.zeros(columns), np.zeros(rows)) for _ in "123")
        self.memory = np.array([balance, 0.0, 0.0, np.inf, np.inf])

    @property
    def made(self) -> float:
        """How many steps were made."""
        return float(self.memory[2])

    def start(self, x: Array, multipliers: Array) -> None:
        """Start from here."""
        for mine in (self.current, self.anchor):
            mine[0][:], mine[1][:] = x, multipliers

    def advance(self, iterations: int) -> tuple[Array, Array]:
        """Make some steps; return x and the rows' multipliers."""
        fixed = (self.program.right, self.program.cost, self.program.upper)
        _advance(
            *self.shape,
            *fixed,
            *self.steps,
            *self.current,
            *self.anchor,
            *self.last,
            self.memory,
            iterations,
        )
        return self.last


@compiled
def _steps(starts: Array, columns: Array, values: Array, count: int) -> tuple[Array, Array]:
    """Return the diagonal steps of columns and rows (Pock and Chambolle, 2011)."""
    sums = np.zeros(count)
    row_step = np.zeros(len(starts) - 1)
    for row in range(len(starts) - 1):
        total = 0.0
        for place in range(starts[row], starts[row + 1]):
            total += abs(values[place])
            sums[columns[place]] += abs(values[place])
        row_step[row] = 1.0 / total if total > 0.0 else 0.0
    column_step = np.zeros(count)
    for column in range(count):
        column_step[column] = 1.0 / sums[column] if sums[column] > 0.0 else 1.0
    return column_step, row_step


@compiled
def _advance(
    starts: Array,
    columns: Array,
    values: Array,
    right: Array,
    cost: Array,
    upper: Array,
    column_step: Array,
    row_step: Array,
    x: Array,
    y: Array,
    anchor_x: Array,
    anchor_y: Array,
    last_x: Array,
    last_y: Array,
    memory: Array,
    iterations: int,
) -> None:
    """Run some iterations in place; ``last_*`` get T of the last iterate."""
    count = len(cost)
    covered = np.zeros(count)
    reflected = np.empty(count)
    for row in range(len(y)):
        for place in range(starts[row], starts[row + 1]):
            covered[columns[place]] += values[place] * y[row]
    for turn in range(iterations):
        balance = memory[0]
        age = memory[1]
        keep = (age + 1.0) / (age + 2.0)
        pull = 1.0 / (age + 2.0)
        final = turn == iterations - 1
        moved = 0.0
        for column in range(count):
            old = x[column]
            step = column_step[column] / balance
            new = old + step * (covered[column] - cost[column])
            new = min(max(new, 0.0), upper[column])
            change = new - old
            moved += change * change / step
            reflected[column] = new + change
            x[column] = keep * (new + change) + pull * anchor_x[column]
            covered[column] = 0.0
            if final:
                last_x[column] = new
        for row in range(len(y)):
            step = row_step[row] * balance
            if step == 0.0:
                continue
            lack = right[row]
            for place in range(starts[row], starts[row + 1]):
                lack -= values[place] * reflected[columns[place]]
            old = y[row]
            new = max(old + step * lack, 0.0)
            change = new - old
            moved += change * change / step
            following = keep * (new + change) + pull * anchor_y[row]
            y[row] = following
            for place in range(starts[row], starts[row + 1]):
                covered[columns[place]] += values[place] * following
            if final:
                last_y[row] = new
        if is_due(np.sqrt(moved), memory):
            far_x = reset(x, anchor_x, column_step)
            far_y = reset(y, anchor_y, row_step)
            rebalance(far_x, far_y, age, memory)
