"""Truncated totals for annotations of any form, by linear programs over their expressions.

Every part of an expression gets a variable v between 0 and 1 that lies above its relaxation: for
*and*, v >= sum of its parts - (their number - 1); for *or*, v >= each part. Minimising pushes v
down to the relaxation, since that is convex. What a participant bears of a tuple is written in the
same way (:meth:`tulle.relations.annotations.Annotation.bear`). Values are certified here and not
taken from the solver: any presence of participants gives one bound by evaluating the relaxation,
and any multipliers y >= 0 give the other, as all variables lie between 0 and 1. Where no solver's
vectors certify, a first-order method goes on, and where the answer is within rounding of a tie
exact arithmetic decides. So it depends on the data how long an answer takes, and not whether there
is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core import validate
from tulle.core.exact import Number
from tulle.core.progress import report
from tulle.lp.exact import Row, climb
from tulle.relations.annotations import Annotation, Constant, Either, Participant, Together
from tulle.relations.data import Relation
from tulle.relations.truncation.fallback import Patient

Array = npt.NDArray[Any]
Bounds = list[tuple[dict[int, float], float]]
"""Rows of a linear program: coefficients by variable, and what their sum is at most."""

_ROUNDING = 1e-9
"""Relative margin on every certificate: far above what summing in doubles can lose."""

_WAYS = (("highs", True), ("highs-ds", False), ("highs-ipm", False), ("highs-ipm", True))
"""Solvers, and whether they may presolve, tried in turn until a certificate holds."""

_CHECK = 200
_PATIENCE = 200
"""How many steps of the first-order method go from one certificate to the next, and how many
certificates there are before exact arithmetic begins."""

_MOST = 1e6
"""Weights are cut at this many thresholds."""


class Epigraph:
    """Both truncated numbers of a relation with annotations of any form. Custodian side."""

    def __init__(self, relation: Relation, *, eta: Number) -> None:
        self.eta = validate.probability(eta=eta)
        self.count = relation.count
        # Everything below is in units of the threshold, where solvers are at their best.
        self.tuples = [(note, height) for note, height in relation.annotations() if height > 0]
        self.rows: Bounds = []
        self.size = relation.count
        self.places = [self._add(note) for note, _ in self.tuples]
        self.borne: list[tuple[int, int, int | float]] | None = None

    def _add(self, note: Annotation) -> int | float:
        """Return the variable that lies above the relaxation of this expression."""
        if isinstance(note, Participant):
            return int(note.name)  # type: ignore[call-overload, no-any-return]
        if isinstance(note, Constant):
            return 1.0 if note.value else 0.0
        assert isinstance(note, Together | Either)
        parts = [self._add(part) for part in note.parts]
        place = self.size
        self.size += 1
        if isinstance(note, Together):
            self._below(parts, place, len(parts) - 1)
        else:
            for part in parts:
                self._below([part], place, 0)
        return place

    def _add_borne(self, note: Annotation, name: int) -> int | float:
        """Return the variable that lies above what one participant bears of this expression."""
        if name not in note.participants():
            return 0.0
        if isinstance(note, Participant):
            return name
        assert isinstance(note, Together | Either)
        place = self.size
        self.size += 1
        for index, part in enumerate(note.parts):
            if name not in part.participants():
                continue
            borne = self._add_borne(part, name)
            if isinstance(note, Either):
                self._below([borne], place, 0)
            else:
                rest = (*note.parts[:index], *note.parts[index + 1 :])
                others = [self._add(other) for other in rest]
                self._below([borne, *others], place, len(others))
        return place

    def _below(self, parts: list[int | float], place: int, room: float) -> None:
        """Add the row: sum of parts - v <= room."""
        row = {place: -1.0}
        for part in parts:
            if isinstance(part, float):
                room -= part
            else:
                row[part] = row.get(part, 0.0) + 1.0
        self.rows.append((row, float(room)))

    def _heights(self, tau: float) -> list[float]:
        """Return the weights in units of tau, cut at a million of it.

        A tuple that weighs so much has its participants deleted anyway. The cut is a public rule
        for each tuple by itself, so both numbers keep their sensitivities.
        """
        return [min(height / tau, _MOST) for _, height in self.tuples]

    def value(self, tau: float, gap: float) -> float:
        """Return a number within ``gap`` of X(tau), certified from both sides."""
        heights = self._heights(tau)
        cost = np.zeros(self.size)
        cost[: self.count] = -1.0
        fixed = float(self.count)
        for place, height in zip(self.places, heights, strict=True):
            if isinstance(place, float):
                fixed += place * height
            else:
                cost[place] += height
        notes = [note for note, _ in self.tuples]
        lower, upper = 0.0, math.inf
        for presence, bound in self._attempts(cost, []):
            lower = max(lower, bound + fixed)
            kept = [h * float(note.relax(presence)) for note, h in zip(notes, heights, strict=True)]
            total = math.fsum(kept) + math.fsum(1.0 - presence)
            upper = min(upper, total + _ROUNDING * abs(total))
            report("truncating", tau * lower, tau * upper, gap)
            if upper - lower <= gap / tau:
                return tau * (lower + (upper - lower) / 2)
        return tau * float(self._exact_value(heights))

    def estimate(self, tau: float) -> float | None:
        """Return None: every decision starts anew."""
        return None

    def ceiling(self, tau: float) -> float:
        """Return the total, which nobody's leaving raises."""
        return math.fsum(self._heights(tau)) * tau * (1.0 + _ROUNDING)

    def decide(self, tau: float, level: int) -> bool:
        """Say whether D(tau) is at most level + eta, from a certificate either way."""
        target = float(level + self.eta)
        heights = self._heights(tau)
        loads = self._load_rows(heights)
        cost = np.zeros(self.size)
        cost[: self.count] = -1.0
        for presence, lower in self._attempts(cost, loads):
            if lower + self.count > target * (1 + _ROUNDING):
                return False
            kept = self._fitting(presence, heights)
            if math.fsum(1.0 - kept) * (1 + _ROUNDING) <= target:
                return True
        goal = level + self.eta
        return self._least([*self.rows, *loads], {}, goal) <= goal

    def _exact_value(self, heights: list[float]) -> Fraction:
        """Return X in units of the threshold, in exact arithmetic."""
        rows, fixed = list(self.rows), Fraction(0)
        costs: dict[int, Fraction] = {}
        for index, (place, height) in enumerate(zip(self.places, heights, strict=True)):
            if isinstance(place, float):
                fixed += Fraction(place) * Fraction(height)
                continue
            if place < self.count:
                # A variable of its own, so that only these have a cost besides deletions.
                rows.append(({place: 1.0, self.size + index: -1.0}, 0.0))
                place = self.size + index
            costs[place] = costs.get(place, Fraction(0)) + Fraction(height)
        return fixed + self._least(rows, costs, None)

    def _least(self, rows: Bounds, costs: dict[int, Fraction], target: Fraction | None) -> Fraction:
        """Return the least sum of deletions and costs, or some number above ``target``; exactly.

        In deletions, 1 - presence, every cost is at least zero: the dual is feasible at zero, and
        the simplex method in fractions ends by Bland's rule. No variable but deletions needs its
        upper end of 1, as lowering it to the relaxation keeps every row.
        """
        duals: dict[int, Row] = {person: {} for person in range(self.count)}
        objective: Row = {}
        for index, (row, room) in enumerate(rows):
            side = -Fraction(room)
            for place, entry in row.items():
                exact = Fraction(entry)
                if place < self.count:
                    side += exact
                duals.setdefault(place, {})[index] = exact if place < self.count else -exact
            objective[index] = side
        for person in range(self.count):
            duals[person][len(rows) + person] = Fraction(-1)
            objective[len(rows) + person] = Fraction(-1)
        sides = [Fraction(1) if p < self.count else costs.get(p, Fraction(0)) for p in duals]
        return climb(list(duals.values()), sides, objective, target)

    def _load_rows(self, heights: list[float]) -> Bounds:
        if self.borne is None:
            self.borne = [
                (index, int(name), self._add_borne(note, int(name)))
                for index, (note, _) in enumerate(self.tuples)
                for name in sorted(note.participants())
            ]
        rows: dict[int, tuple[dict[int, float], float]] = {}
        for index, name, place in self.borne:
            row, room = rows.setdefault(name, ({}, 1.0))
            if isinstance(place, float):
                rows[name] = (row, room - heights[index] * place)
            else:
                row[place] = row.get(place, 0.0) + heights[index]
        return list(rows.values())

    def _fitting(self, presence: Array, heights: list[float]) -> Array:
        """Return presences at which nobody bears more than the threshold, near to those given.

        What p bears is convex in p's own presence, zero without p, and not raised by lowering
        anyone's: so those who bear too much are each lowered by their own excess.
        """
        loads = np.zeros(self.count)
        for (note, _), height in zip(self.tuples, heights, strict=True):
            for name in note.participants():
                loads[name] += float(note.bear(name, presence)) * height
        loads *= 1.0 + _ROUNDING
        # A load within the rounding of its bound may be left: the exact one is not above it.
        return np.where(
            loads > 1.0, presence / np.maximum(loads, 1.0) * (1.0 - _ROUNDING), presence
        )

    def _attempts(self, cost: Array, extra: Bounds) -> Iterator[tuple[Array, float]]:
        """Yield presences and certified lower bounds: of every solver, then of the patient one."""
        for way in _WAYS:
            yield self._solve(cost, extra, way)
        matrix, room = self._program(extra)
        run = Patient(cost, matrix, room)
        for _ in range(_PATIENCE):
            variables, prices = run.advance(_CHECK)
            yield variables[: self.count], _bound(cost, matrix, room, prices)

    def _program(self, extra: Bounds) -> tuple[Any, Array]:
        """Return all rows as a matrix and its right-hand side."""
        from scipy.sparse import csr_array

        rows = [*self.rows, *extra]
        places = [(r, c, v) for r, (row, _) in enumerate(rows) for c, v in row.items()]
        index, columns, values = zip(*places, strict=True) if places else ((), (), ())
        matrix = csr_array((values, (index, columns)), shape=(len(rows), self.size))
        return matrix, np.array([bound for _, bound in rows])

    def _solve(self, cost: Array, extra: Bounds, way: tuple[str, bool]) -> tuple[Array, float]:
        """Minimise cost over the rows; return the presences and a certified lower bound."""
        from scipy.optimize import linprog

        if self.size == 0:
            return np.zeros(0), 0.0
        matrix, room = self._program(extra)
        found = linprog(
            cost,
            A_ub=matrix if len(room) else None,
            b_ub=room if len(room) else None,
            bounds=(0.0, 1.0),
            method=way[0],
            options={"presolve": way[1]},
        )
        if found.x is None:
            # The bounds that hold without any solution: everyone stays, and no multipliers.
            return np.ones(self.count), _bound(cost, matrix, room, np.zeros(len(room)))
        presence = np.clip(np.nan_to_num(found.x[: self.count]), 0.0, 1.0)
        prices = -found.ineqlin.marginals if len(room) else np.zeros(0)
        return presence, _bound(cost, matrix, room, np.maximum(np.nan_to_num(prices), 0.0))


def _bound(cost: Array, matrix: Any, room: Array, prices: Array) -> float:
    """Return a number certainly not above the least cost, from multipliers of at least zero."""
    reduced = np.minimum(cost + matrix.T @ prices, 0.0)
    parts = np.concatenate([-room * prices, reduced])
    return math.fsum(parts) - _ROUNDING * math.fsum(np.abs(parts))
