"""An interior-point method for the deletion LP where few participants bind.

A threshold worth asking about is one that some tens to hundreds of participants stick out of, and
these may have millions of tuples between them. Each step costs a few passes over the tuples and the
factorisation of a dense matrix with about two rows per participant, and ten to twenty steps are
enough; first-order methods need many hundreds of passes.

Nothing is proven about the steps and nothing needs to be: whatever comes out is certified
elsewhere. They follow the central path as interior-point methods do (Wright, "Primal-dual
interior-point methods", 1997), with the tuples eliminated by their closed form.

*Newton's equations.* Loads are in units of tau, so a row of ``sizes`` m holds m. With the incidence
A of rows and columns, and C the incidence of *binding* rows times the weights Q, the LP with
barriers is

    min over g; max over mu of  m g - m mu + sum_t F_t(A'g, C'mu) + barriers of g and of mu,
    F_t(a, l) = min over z of  l z - theta_t log z - theta_t log(z - d),   d = 1 - a.

The column's own problem has a solution in closed form: with r = sqrt((l d)^2 + 4 theta^2), the
remainder is z = (2 theta + r + l d) / (2 l), its slack z - d = (2 theta + r - l d) / (2 l) and the
cover w = theta / slack. So columns have no state, and only rows limit how long a step may be: that
is why few steps are enough, however many columns there are. Newton's equations for the rows are,
with W = theta / slack^2, Z = theta / z^2 and E = W + Z by column,

    [ G + A (WZ/E) A'     A (W/E) C'       ] [  dg  ]   [ f ]
    [ C (W/E) A'         -(V + C (1/E) C') ] [ -dmu ] = [ h ],   G = zeta/g,  V = v/mu,

where zeta and v are the multipliers of g >= 0 and of mu >= 0. The matrix is quasidefinite. It has
one row per deletable and one per binding row, and a column of k entries adds k^2 numbers to each of
its blocks.

*Factorisation.* A factorisation of dense symmetric matrices of our own.

The matrices are small, and the threads of the usual library wait for each other whenever the
machine has something else to do (seen to take a hundred times as long).
"""

from __future__ import annotations

import numpy as np

from tulle.core.arrays import Array
from tulle.core.compiled import compiled
from tulle.lp.reduce import ReducedDeletion


@compiled
def factorise(matrix: Array, signs: Array) -> None:
    """Put L of the factors L·diag(signs)·L' into the lower half, eight columns at a time.

    ``signs`` holds 1 and -1: where they are all 1 this is Cholesky's factorisation. A matrix whose
    part with sign 1 is positive and whose part with sign -1 is negative definite has such factors
    in any order (Vanderbei, "Symmetric quasidefinite matrices", 1995). A pivot that rounding has
    made too small is set to a huge number: that variable then stays where it is.
    """
    count = len(matrix)
    panel = np.zeros((8, count))
    least = np.empty(count)
    for row in range(count):
        least[row] = 1e-15 * abs(matrix[row, row])
    for first in range(0, count, 8):
        width = min(8, count - first)
        for step in range(width):
            column = first + step
            for row in range(column, count):
                value = matrix[row, column]
                for back in range(first, column):
                    value -= signs[back] * matrix[row, back] * matrix[column, back]
                matrix[row, column] = value
            pivot = signs[column] * matrix[column, column]
            root = np.sqrt(pivot) if pivot > least[column] else 1e100
            matrix[column, column] = root
            for row in range(column + 1, count):
                matrix[row, column] *= signs[column] / root
        for step in range(8):
            for row in range(first + width, count):
                panel[step, row] = matrix[row, first + step] if step < width else 0.0
        sign = np.ones(8)
        sign[:width] = signs[first : first + width]
        for row in range(first + width, count):
            a, b = sign[0] * panel[0, row], sign[1] * panel[1, row]
            c, d = sign[2] * panel[2, row], sign[3] * panel[3, row]
            e, f = sign[4] * panel[4, row], sign[5] * panel[5, row]
            g, h = sign[6] * panel[6, row], sign[7] * panel[7, row]
            for other in range(first + width, row + 1):
                matrix[row, other] -= (
                    (a * panel[0, other] + b * panel[1, other])
                    + (c * panel[2, other] + d * panel[3, other])
                    + (e * panel[4, other] + f * panel[5, other])
                    + (g * panel[6, other] + h * panel[7, other])
                )


@compiled
def solve_factor(factor: Array, signs: Array, vector: Array) -> None:
    """Solve with the factors in place."""
    count = len(factor)
    for row in range(count):
        value = vector[row]
        for column in range(row):
            value -= factor[row, column] * vector[column]
        vector[row] = value / factor[row, row]
    for row in range(count):
        vector[row] *= signs[row]
    for row in range(count - 1, -1, -1):
        vector[row] /= factor[row, row]
        for column in range(row):
            vector[column] -= factor[row, column] * vector[row]


Rows = tuple[Array, Array, Array, Array]
"""By row: deletions g, their multipliers zeta, spare loads v, pressures mu."""

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


@compiled
def start(
    offsets: Array, entries: Array, weights: Array, sizes: Array, place: Array
) -> tuple[Rows, Array]:
    """Return a point well inside, and the size of every column's barrier."""
    count = len(sizes)
    loads = np.zeros(count)
    for column in range(len(weights)):
        for entry in range(offsets[column], offsets[column + 1]):
            loads[entries[entry]] += weights[column]
    rows = (np.full(count, 0.3), 0.5 * sizes, 0.5 * sizes, np.zeros(count))
    for row in range(count):
        if place[row] >= 0:
            rows[3][row] = sizes[row] / loads[row]
    scale = np.empty(len(weights))
    for column in range(len(weights)):
        most = 0.0
        for entry in range(offsets[column], offsets[column + 1]):
            most = max(most, loads[entries[entry]] / sizes[entries[entry]])
        scale[column] = weights[column] / most
    return rows, scale


@compiled
def covers_at(
    offsets: Array,
    entries: Array,
    weights: Array,
    place: Array,
    scale: Array,
    theta: float,
    rows: Rows,
    covers: Array,
    remainders: Array,
) -> None:
    """Solve every column's own problem."""
    for column in range(len(weights)):
        spare = 1.0
        pressure = 0.0
        for entry in range(offsets[column], offsets[column + 1]):
            row = entries[entry]
            spare -= rows[0][row]
            if place[row] >= 0:
                pressure += rows[3][row]
        pressure *= weights[column]
        height = theta * scale[column]
        turn = pressure * spare
        root = np.sqrt(turn * turn + 4.0 * height * height)
        # Of the two, the one without cancellation; the other from their product.
        large = root + abs(turn)
        small = 4.0 * height * height / large
        if turn >= 0.0:
            remainder, slack = 2.0 * height + large, 2.0 * height + small
        else:
            remainder, slack = 2.0 * height + small, 2.0 * height + large
        covers[column] = 2.0 * pressure * height / slack
        remainders[column] = remainder / (2.0 * pressure)


@compiled
def assemble(
    offsets: Array,
    entries: Array,
    weights: Array,
    sizes: Array,
    place: Array,
    scale: Array,
    theta: float,
    rows: Rows,
    covers: Array,
    remainders: Array,
    matrix: Array,
    vector: Array,
) -> None:
    """Fill the lower half of the matrix, and the right-hand side.

    ``place`` numbers the binding rows, -1 for others.
    """
    count = len(place)
    matrix[:] = 0.0
    vector[:] = 0.0
    for column in range(len(weights)):
        height = theta * scale[column]
        steep = covers[column] * covers[column] / height
        flat = height / (remainders[column] * remainders[column])
        both = steep + flat
        mixed = weights[column] * (steep / both)
        kept = weights[column] * (weights[column] / both)
        shared = steep * (flat / both)
        first, last = offsets[column], offsets[column + 1]
        for one in range(first, last):
            row = entries[one]
            bound = place[row]
            vector[row] += covers[column]
            if bound >= 0:
                vector[count + bound] += weights[column] * remainders[column]
            for two in range(first, last):
                other = entries[two]
                if other <= row:
                    matrix[row, other] += shared
                if bound >= 0:
                    matrix[count + bound, other] += mixed
                    if 0 <= place[other] <= bound:
                        matrix[count + bound, count + place[other]] -= kept
    for row in range(count):
        g, zeta, v, mu = rows[0][row], rows[1][row], rows[2][row], rows[3][row]
        matrix[row, row] += zeta / g
        vector[row] += theta * sizes[row] / g - sizes[row]
        bound = place[row]
        if bound >= 0:
            matrix[count + bound, count + bound] -= v / mu
            vector[count + bound] += theta * sizes[row] / mu - sizes[row]


@compiled
def directions(
    sizes: Array, place: Array, theta: float, rows: Rows, vector: Array, moves: Rows
) -> float:
    """Turn the solution into the moves of all rows; return the longest step that stays inside."""
    count = len(sizes)
    longest = 1.0
    for row in range(count):
        g, zeta, v, mu = rows[0][row], rows[1][row], rows[2][row], rows[3][row]
        change = vector[row]
        moves[0][row] = change
        moves[1][row] = (theta * sizes[row] - g * zeta - zeta * change) / g
        longest = min(longest, _longest(g, change), _longest(zeta, moves[1][row]))
        if place[row] >= 0:
            change = -vector[count + place[row]]
            moves[3][row] = change
            moves[2][row] = (theta * sizes[row] - v * mu - v * change) / mu
            longest = min(longest, _longest(mu, change), _longest(v, moves[2][row]))
    return longest


@compiled
def _longest(value: float, change: float) -> float:
    return -value / change if change < 0.0 else 1.0


@compiled
def misfit(
    offsets: Array,
    entries: Array,
    weights: Array,
    sizes: Array,
    place: Array,
    rows: Rows,
    covers: Array,
    remainders: Array,
) -> float:
    """Return by how much the equations of all rows are off, in sum."""
    covered = np.zeros(len(sizes))
    carried = np.zeros(len(sizes))
    for column in range(len(weights)):
        amount = weights[column] * remainders[column]
        for entry in range(offsets[column], offsets[column + 1]):
            covered[entries[entry]] += covers[column]
            carried[entries[entry]] += amount
    total = 0.0
    for row in range(len(sizes)):
        total += rows[0][row] * abs(sizes[row] - covered[row] - rows[1][row])
        if place[row] >= 0:
            total += rows[3][row] * abs(sizes[row] - carried[row] - rows[2][row])
    return total
