"""The deletion problem in exact arithmetic, for ties that no float can tell apart.

The dual (:mod:`tulle.lp.deletion`) starts feasible at zero, so the plain simplex
method needs no first phase; Bland's rule keeps it from cycling. Rows are sparse and rational. It is
slow, and is reached only when D(tau) is within about 1e-11 of the number it is compared with.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from tulle.lp.problem import PackingProblem

Row = dict[int, Fraction]


class Vertex(NamedTuple):
    """Where the simplex method ended: what is not named is zero."""

    value: Fraction
    levels: Row
    """The variables."""
    multipliers: Row
    """The rows' multipliers, which are optimal if the value is."""


def exceeds(problem: PackingProblem, tau: float, target: Fraction) -> bool:
    """Return whether the least deletion at ``tau`` is above ``target``, in exact arithmetic."""
    return climb(*_dual(problem, Fraction(tau)), target).value > target


def least_deletion(problem: PackingProblem, tau: float) -> Fraction:
    """Return the least deletion at ``tau`` exactly. For small problems."""
    return climb(*_dual(problem, Fraction(tau)), None).value


def _dual(problem: PackingProblem, tau: Fraction) -> tuple[list[Row], list[Fraction], Row]:
    """Return (rows, right-hand sides, objective) of the dual, in <= form."""
    merged: dict[tuple[int, ...], Fraction] = {}
    offsets, participants = problem.offsets.tolist(), problem.participants.tolist()
    for item, weight in enumerate(problem.weights.tolist()):
        members = tuple(participants[offsets[item] : offsets[item + 1]])
        if members and weight:
            merged[members] = merged.get(members, Fraction(0)) + Fraction(weight)
    loads: dict[int, Fraction] = {}
    for members, weight in merged.items():
        for member in members:
            loads[member] = loads.get(member, Fraction(0)) + weight
    over = {member for member, load in loads.items() if load > tau}
    merged = {members: weight for members, weight in merged.items() if over & set(members)}
    names = sorted({member for members in merged for member in members})
    # Variables: one multiplier per binding participant, then one per tuple.
    pressure = {member: index for index, member in enumerate(sorted(over))}
    rows: list[Row] = []
    sides: list[Fraction] = []
    covering: dict[int, Row] = {member: {} for member in names}
    objective: Row = dict.fromkeys(pressure.values(), -tau)
    for position, (members, weight) in enumerate(merged.items()):
        variable = len(pressure) + position
        row = {pressure[member]: -weight for member in members if member in over}
        row[variable] = Fraction(1)
        rows.append(row)
        sides.append(Fraction(0))
        for member in members:
            covering[member][variable] = Fraction(1)
        objective[variable] = Fraction(1)
    rows.extend(covering.values())
    sides.extend([Fraction(1)] * len(covering))
    return rows, sides, objective


def climb(
    rows: list[Row], sides: list[Fraction], objective: Row, target: Fraction | None
) -> Vertex:
    """Maximise from the origin; stop at the optimum, or above ``target``.

    All three are changed on the way.
    """
    count = 1 + max((max(row, default=-1) for row in [*rows, objective]), default=-1)
    basis = [count + index for index in range(len(rows))]
    value = Fraction(0)
    while target is None or value <= target:
        entering = min((name for name, gain in objective.items() if gain > 0), default=None)
        if entering is None:
            break
        # The dual is bounded, so some row limits the entering variable.
        _, _, pivot = min(
            (sides[index] / row[entering], basis[index], index)
            for index, row in enumerate(rows)
            if row.get(entering, 0) > 0
        )
        chosen = rows[pivot]
        scale = chosen.pop(entering)
        chosen[basis[pivot]] = Fraction(1)
        rows[pivot] = chosen = {name: entry / scale for name, entry in chosen.items()}
        sides[pivot] /= scale
        basis[pivot] = entering
        for index, row in enumerate(rows):
            if index != pivot and entering in row:
                factor = row.pop(entering)
                sides[index] -= factor * sides[pivot]
                _subtract(row, chosen, factor)
        gain = objective.pop(entering)
        value += gain * sides[pivot]
        _subtract(objective, chosen, gain)
    levels = {name: sides[row] for row, name in enumerate(basis) if name < count}
    gains = {name - count: -gain for name, gain in objective.items() if name >= count}
    return Vertex(value, levels, gains)


def _subtract(row: Row, other: Row, factor: Fraction) -> None:
    for name, entry in other.items():
        changed = row.get(name, 0) - factor * entry
        if changed:
            row[name] = Fraction(changed)
        else:
            row.pop(name, None)
