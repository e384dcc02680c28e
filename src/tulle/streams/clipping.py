"""What one unit adds to a stream at most: in which steps, and how much in each.

A *unit* is whom the account protects: a person, or a person's records of one week. It counts in the
first ``periods`` steps in which it has records, and in each of them the sum of the absolute values
of what it adds to all groups is at most the bound: who has more is scaled down, over all groups
together. So a unit moves the totals in at most ``periods`` rows, each by a vector over the groups
whose L1 norm, and so its L2 norm, is at most the bound, however many groups there are. That is what
:func:`tulle.streams.factor.squared_sensitivity` prices.

Everything that happens to a unit follows from its own records of the steps so far: nobody else's
records, and no later ones, change what it counts for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Wholes

LARGEST_BOUND = 2**20
LARGEST_SUM = 2**40
"""Of one unit in one step and group; what is beyond is cut to it, so that nothing overflows."""


def clipped_totals(
    units: Wholes,
    steps: Wholes,
    groups: Wholes,
    values: npt.NDArray[np.float64] | Wholes,
    *,
    shape: tuple[int, int],
    bound: int,
    periods: int,
) -> Wholes:
    """Return the sum of every step and group, of units cut to the bound. Custodian side.

    ``shape`` is the number of steps and of groups. Records outside of it are left out.

    Example:
        >>> one = [np.array(part) for part in ([7, 7, 7], [0, 1, 1], [0, 0, 1], [9, 3, 1])]
        >>> clipped_totals(*one, shape=(2, 2), bound=2, periods=2).tolist()
        [[2, 0], [1, 0]]
        >>> clipped_totals(*one, shape=(2, 2), bound=2, periods=1).tolist()
        [[2, 0], [0, 0]]
    """
    count, size = shape
    kept = (steps >= 0) & (steps < count) & (groups >= 0) & (groups < size)
    units, steps, groups, values = units[kept], steps[kept], groups[kept], values[kept]
    # One row for each unit and step: what the bound is for.
    pairs, row = np.unique(units * count + steps, return_inverse=True)
    cells, cell = np.unique(row * size + groups, return_inverse=True)
    sums = np.zeros(len(cells))
    np.add.at(sums, cell, values)
    parts = np.clip(sums, -LARGEST_SUM, LARGEST_SUM).astype(np.int64)
    row = cells // size
    weight = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(weight, row, np.abs(parts))
    whole = np.maximum(weight[row], bound)
    cut = np.sign(parts) * (np.abs(parts) * bound // whole)
    # Pairs are in the order of units, then of steps: the first few of each unit count.
    starts = np.searchsorted(pairs, pairs // count * count)
    early = np.arange(len(pairs)) - starts < periods
    totals = np.zeros(shape, dtype=np.int64)
    np.add.at(totals, (pairs[row] % count, cells % size), np.where(early[row], cut, 0))
    return totals
