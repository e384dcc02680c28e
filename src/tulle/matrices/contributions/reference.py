"""Bounds that are looked up in public data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tulle.core import validate
from tulle.core.arrays import Floats
from tulle.core.errors import InputError
from tulle.matrices.contributions.data import Contributions
from tulle.matrices.contributions.labels import PublicArray

MOST_LEVELS = 64
"""So many different bounds of cells are kept; others are raised to the next one."""


QUANTILES = (0.2, 0.5, 0.7, 0.85, 0.95, 0.99, 1.0)
"""Quantiles of what one person has, of which the best is taken where none is asked for."""


class Reference(NamedTuple):
    """What a public reference says about one person."""

    bound: PublicArray
    """The most in each cell."""
    totals: PublicArray
    """totals[i, j]: the sum over the cells whose bound is level i to j - 1."""
    squares: PublicArray
    """The same for sums of squares."""
    people: Contributions | None = None
    """The reference itself, where the quantile is to be chosen on it."""
    choices: tuple[Reference, ...] = ()
    """What it says at each of :data:`QUANTILES`; else empty."""
    read_from: Contributions | None = None
    """Whose records these are: never those that the question is asked of."""

    @property
    def digest(self) -> str:
        """Tells references apart."""
        parts = [array.digest for array in self[:3]] + [one.digest for one in self.choices]
        return PublicArray([int(part[:13], 16) for part in parts]).digest

    def __str__(self) -> str:
        return f"reference:{self.digest[:12]}"


def look_up(public: Contributions, quantile: float | None = 1.0) -> Reference:
    """Read bounds off contributions that are public; without a quantile, for all of a list.

    Every second person gives the bounds of cells, the largest weight seen there; the others give
    the sums in blocks, so that cells which nobody of the first half visited count as they will.
    A cell that nobody visited gets the smallest bound seen anywhere.

    Raises:
        InputError: when it is not a table of contributions or has fewer than two people.
    """
    if not isinstance(public, Contributions):
        raise InputError("reference must be public Contributions on the same grid.")
    if quantile is None:
        found = tuple(look_up(public, share) for share in QUANTILES)
        return found[-1]._replace(people=public, choices=found)
    share = float(validate.positive(quantile=quantile))
    if share > 1:
        raise InputError(f"quantile must be above 0 and at most 1; got {quantile!r}.")
    individual, cell, weight = public.entries()
    people, number = np.unique(individual, return_inverse=True)
    sizes = np.abs(weight)
    used = (sizes > 0) & (sizes < 2.0**200)
    first = used & (number % 2 == 0)
    second = used & (number % 2 == 1)
    if not first.any() or not second.any():
        raise InputError("A reference needs at least two people with a weight other than zero.")
    bound = np.zeros(public.shape[0] * public.shape[1])
    np.maximum.at(bound, cell[first], sizes[first])
    bound[bound == 0] = sizes[first].min()
    levels = np.unique(bound)
    if len(levels) > MOST_LEVELS:
        grid = np.geomspace(levels[0], levels[-1], MOST_LEVELS)
        grid[-1] = levels[-1]
        levels = np.unique(levels[np.searchsorted(levels, grid, side="left")])
        bound = levels[np.searchsorted(levels, bound)]
    level = np.searchsorted(levels, bound)[cell[second]]
    held = np.minimum(sizes[second], bound[cell[second]])
    person = number[second] // 2
    count = (len(people) + 1) // 2
    where = person * len(levels) + level
    shape = count, len(levels)
    tables = []
    for power in (1, 2):
        table = np.bincount(where, weights=held**power, minlength=shape[0] * shape[1])
        tables.append(_runs(table.astype(np.float64).reshape(shape), share))
    cells, totals, squares = map(PublicArray, (bound.reshape(public.shape), *tables))
    return Reference(cells, totals, squares, read_from=public)


def _runs(table: Floats, quantile: float) -> Floats:
    """Return, for each run of levels, the quantile over people of their sums in it."""
    ends = np.concatenate((np.zeros((len(table), 1)), np.cumsum(table, axis=1)), axis=1)
    count = ends.shape[1]
    found = np.zeros((count, count))
    for i in range(count - 1):
        sums = ends[:, i + 1 :] - ends[:, i : i + 1]
        found[i, i + 1 :] = np.quantile(sums, quantile, axis=0, method="higher")
    # Where the second half has nothing one smallest weight is allowed, not none.
    least = table[table > 0].min()
    return np.where(np.triu(np.ones((count, count)), 1) > 0, np.maximum(found, least), 0.0)
