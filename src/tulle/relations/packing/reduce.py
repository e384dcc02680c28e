"""Exact reductions of the packing problem at one threshold.

Each step below leaves the optimal value unchanged. They are carried out in floating point and
decide only which smaller problem is iterated on: the certificate is always worked out on the
unreduced problem, so rounding here can cost a little of the gap and never the truth of a bound.

1. A row (participant) whose remaining load fits its capacity never binds: its price is 0.
2. A tuple without a remaining row is taken whole.
3. A tuple with one remaining row p is taken before every other tuple of p: moving mass to it from
   a tuple that needs p and more frees the other rows. So all tuples that need p alone are taken
   whole and the capacity of p shrinks by their weight. If they fill p, the price of p is 1, and
   every other tuple of p is left out.
4. Tuples with the same remaining rows merge, with the sum of their weights: the optimum can be
   spread over them in proportion to weight.

Step 3 lowers the loads of other rows, so 1 to 3 repeat until nothing changes. If every tuple needs
one participant, the problem is gone after the first round: the value is the sum of
min(tau, load).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.relations.packing.compiled import compiled
from tulle.relations.packing.problem import PackingProblem

Array = npt.NDArray[Any]

_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class ReducedProblem:
    """What is left to solve at one threshold, and how to go back.

    Column ``c`` needs ``rows[offsets[c]:offsets[c + 1]]`` and is worth ``weights[c]``; row ``r``
    holds ``capacities[r]``. ``column_of`` gives each tuple's column, or -1 when it is settled at
    the fraction ``settled`` of its weight; ``participant_of`` gives each row's participant, and
    ``prices`` those of the participants without a row.
    """

    offsets: Array
    rows: Array
    weights: Array
    capacities: Array
    column_of: Array
    settled: Array
    participant_of: Array
    prices: Array

    @property
    def column_count(self) -> int:
        """The number of merged tuples."""
        return len(self.weights)

    @property
    def row_count(self) -> int:
        """The number of participants that can bind."""
        return len(self.capacities)

    def fractions(self, levels: Array) -> Array:
        """Return what fraction of each tuple the column levels stand for."""
        taken = self.settled.copy()
        inside = self.column_of >= 0
        columns = self.column_of[inside]
        taken[inside] = levels[columns] / self.weights[columns]
        return taken

    def full_prices(self, prices: Array) -> Array:
        """Return the price of every participant, given the prices of the rows."""
        everyone = self.prices.copy()
        everyone[self.participant_of] = prices
        return everyone


def reduce(problem: PackingProblem, tau: float) -> ReducedProblem:
    """Return the packing problem at threshold ``tau`` after all reductions."""
    offsets, participants = problem.offsets, problem.participants
    alive, capacities, open_tuples, settled, prices = _settle(
        offsets, participants, problem.weights, problem.loads, float(tau), _ROUNDS
    )
    row_of, participant_of = _number(alive)
    columns, rows, weights, column_of = _merge(
        offsets, participants, problem.weights, open_tuples, row_of
    )
    return ReducedProblem(
        columns,
        rows,
        weights,
        capacities[participant_of],
        column_of,
        settled,
        participant_of,
        prices,
    )


@compiled
def _number(alive: Array) -> tuple[Array, Array]:
    numbers = np.full(len(alive), -1, np.int32)
    members = np.empty(len(alive), np.int32)
    count = 0
    for participant in range(len(alive)):
        if alive[participant]:
            numbers[participant] = count
            members[count] = participant
            count += 1
    return numbers, members[:count].copy()


@compiled
def _settle(
    offsets: Array, participants: Array, weights: Array, loads: Array, tau: float, rounds: int
) -> tuple[Array, Array, Array, Array, Array]:
    count = len(loads)
    tuples = len(weights)
    alive = np.empty(count, np.bool_)
    filled = np.zeros(count, np.bool_)
    capacities = np.full(count, tau)
    prices = np.zeros(count)
    remaining = loads.copy()
    alone = np.zeros(count)
    undecided = np.empty(tuples, np.int64)
    settled = np.zeros(tuples)
    for participant in range(count):
        alive[participant] = remaining[participant] > tau
    left = 0
    for item in range(tuples):
        # A tuple of weight zero is worth nothing wherever it goes.
        if weights[item] > 0.0:
            undecided[left] = item
            left += 1
    for _ in range(rounds):
        alone[:] = 0.0
        kept = 0
        for position in range(left):
            item = undecided[position]
            binding = 0
            only = -1
            blocked = False
            for place in range(offsets[item], offsets[item + 1]):
                participant = participants[place]
                if filled[participant]:
                    blocked = True
                elif alive[participant]:
                    binding += 1
                    only = participant
            if blocked:
                continue
            if binding == 0:
                settled[item] = 1.0
                continue
            if binding == 1:
                alone[only] += weights[item]
            undecided[kept] = item
            kept += 1
        left = kept
        changed = False
        for participant in range(count):
            if alive[participant] and alone[participant] > 0.0:
                changed = True
                if alone[participant] >= capacities[participant]:
                    filled[participant] = True
                    alive[participant] = False
                    prices[participant] = 1.0
        kept = 0
        remaining[:] = 0.0
        for position in range(left):
            item = undecided[position]
            binding = 0
            only = -1
            last_filled = -1
            for place in range(offsets[item], offsets[item + 1]):
                participant = participants[place]
                if alive[participant]:
                    binding += 1
                    only = participant
                elif filled[participant]:
                    last_filled = participant
            if last_filled >= 0:
                # Only a tuple that was alone on the filled row gets a share of it.
                if binding == 0 and _needs_one(
                    offsets, participants, filled, prices, loads, item, alone, last_filled
                ):
                    settled[item] = capacities[last_filled] / alone[last_filled]
                continue
            if binding == 1 and alone[only] > 0.0:
                settled[item] = 1.0
                continue
            for place in range(offsets[item], offsets[item + 1]):
                if alive[participants[place]]:
                    remaining[participants[place]] += weights[item]
            undecided[kept] = item
            kept += 1
        left = kept
        for participant in range(count):
            if alive[participant]:
                capacities[participant] -= alone[participant]
                if remaining[participant] <= capacities[participant]:
                    alive[participant] = False
                    changed = True
        if not changed:
            break
    return alive, capacities, undecided[:left].copy(), settled, prices
