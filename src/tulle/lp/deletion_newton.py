"""Newton's equations of the interior-point method for the deletion LP, compiled.

Loads are in units of tau, so a row of ``sizes`` m holds m. With the incidence A of rows and
columns, and C the incidence of *binding* rows times the weights Q, the LP with barriers is

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
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.lp.compiled import compiled

Array = npt.NDArray[Any]
Rows = tuple[Array, Array, Array, Array]
"""By row: deletions g, their multipliers zeta, spare loads v, pressures mu."""


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
