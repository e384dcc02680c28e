"""Individuals cut down to their bounds, in whole numbers of lattice steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.matrices.contributions.data import Contributions

LARGEST = 2**36
"""No single bound has more steps: sums then stay far within what a float counts exactly."""

_MARGIN = 1 - 2.0**-26
"""Covers the rounding of a sum over up to 2**26 cells and of a few operations."""

_COUNTED = 2.0**52
"""Floats below this count whole numbers exactly."""


@dataclass(frozen=True, eq=False)
class Limits:
    """What one individual may contribute, in steps; None where nothing more is bounded."""

    exponent: int
    """The step is two to this power."""
    labels: Wholes
    cells: Floats
    """The most in each cell: whole numbers, 0 outside the support."""
    totals: tuple[int, ...]
    """The largest sum of absolute values in each block."""
    total: int
    squares: tuple[int, ...] | None = None
    """The largest sum of squares in each block."""
    square: int | None = None


def clip(data: Contributions, limits: Limits) -> Wholes:
    """Return the totals of all individuals, each cut down to the limits; in steps.

    An individual's entries are rounded to whole steps and cut to the cell's bound. If a block's
    sum is then too large, all entries in the block shrink by one factor, rounded down; so for
    the sum over all blocks, and for squares. Signs are kept. Only the individual's own records
    matter, and what is left is within every limit exactly, so that one individual more or less
    moves the totals by at most the limits, as whole numbers. Nothing here can fail: sums that
    leave 64 bits wrap around, as does the noisy sum, which is a function of the noisy sum.
    """
    elsewhere = data.clipped(limits)
    if elsewhere is not None:
        return elsewhere
    individual, cell, weight = data.entries()
    with np.errstate(over="ignore", under="ignore"):
        steps = np.ldexp(weight, -limits.exponent)
    sizes = np.rint(np.minimum(np.abs(steps), limits.cells.reshape(-1)[cell]))
    # A sum of huge weights of both signs may be no number; it counts as nothing.
    sizes[np.isnan(sizes)] = 0.0
    labels = limits.labels.reshape(-1)[cell]
    count = len(limits.totals)
    blocks = np.where(labels >= 0, individual * count + labels, 0)
    largest = float(limits.cells.max())
    sizes = _shrink(sizes, blocks, limits.totals, largest, 1)
    sizes = _shrink(sizes, individual, (limits.total,), largest, 1)
    if limits.squares is not None:
        sizes = _shrink(sizes, blocks, limits.squares, largest, 2)
    if limits.square is not None:
        sizes = _shrink(sizes, individual, (limits.square,), largest, 2)
    signed = np.where(steps < 0, -sizes, sizes).astype(np.int64)
    totals: Wholes = np.zeros(limits.cells.size, dtype=np.int64)
    if len(cell) and float(np.abs(signed).sum(dtype=np.float64)) < _COUNTED:
        # Below 2**52 in all, a float sum is exact, and much faster.
        counted = np.bincount(cell, weights=signed, minlength=totals.size)
        totals = counted.astype(np.int64)
    else:
        np.add.at(totals, cell, signed)
    return totals.reshape(limits.cells.shape)


def _shrink(
    sizes: Floats, groups: Wholes, limits: tuple[int, ...], largest: float, power: int
) -> Floats:
    """Scale the groups whose sum of powers is too large; group g may have limits[g % len].

    A sum of whole numbers below 2**52 is exact as a float, and one that is truly larger never
    looks smaller, so the comparison is exact; larger limits are lowered by the margin first.
    """
    if not len(sizes):
        return sizes
    most = np.array(limits, dtype=np.float64)
    sums = np.bincount(groups, weights=sizes**power)
    allowed = np.resize(np.where(most < _COUNTED, most, most * _MARGIN), len(sums))
    over = sums > allowed
    if not over.any():
        return sizes
    changed = over[groups]
    found, held = sizes.copy(), sizes[changed]
    lowered, summed = allowed[groups[changed]], sums[groups[changed]]
    if power == 1 and largest * most.max() < _COUNTED:
        # Product and sum are exact, and a quotient of whole numbers below 2**52 that is not
        # whole cannot round to a whole one: this floor is exact. The choice is a public one.
        found[changed] = np.floor(held * lowered / summed)
    else:
        ratio = lowered / summed
        factor = (ratio if power == 1 else np.sqrt(ratio)) * _MARGIN
        found[changed] = np.floor(held * factor)
    return found


def step_exponent(scales: Floats, bounds: Floats) -> int:
    """Return a power of two far below the noise and the bounds, as far as samplers reach."""
    low = min(_exponent(scales.min()) - 16, _exponent(bounds.min()) - 10)
    return max(low, _exponent(bounds.max()) - 35, _exponent(scales.max()) - 45)


def _exponent(value: float) -> int:
    return math.frexp(value)[1] - 1
