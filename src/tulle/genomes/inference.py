"""Exact sums over unknown traits, for many people at once, by eliminating one after another.

Variables have few states; a factor is a table over some of them, with a row for each person (or
one row for all). The product of all factors is summed over all variables without ever forming it:
a variable is summed out of the product of the factors that know it. What this costs is set by the
largest table that arises, which is small when SNPs share few traits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tulle.core.arrays import Floats
from tulle.core.errors import InputError
from tulle.core.validate import counted

LARGEST_TABLE = 2**20
"""Cells of the largest table that a sum may need, for each person."""

_CELLS_AT_ONCE = 2**23


@dataclass(frozen=True)
class Factor:
    """A table (person, states of each variable); one row stands for all people alike."""

    names: tuple[int, ...]
    table: Floats


def log_total(factors: Sequence[Factor], people: int) -> Floats:
    """Return the logarithm, per person, of the sum over all variables of the product of factors.

    Raises:
        InputError: when the traits hang together so closely that a table would be too large.
    """
    order, cells = _plan(factors)
    check_cells(cells)
    rows = max(1, _CELLS_AT_ONCE // max(cells, 1))
    pieces = [
        _eliminate([_part(factor, start, start + rows) for factor in factors], order)
        for start in range(0, people, rows)
    ]
    totals = [
        np.broadcast_to(piece, (min(rows, people - place * rows),))
        for place, piece in enumerate(pieces)
    ]
    return np.concatenate(totals) if totals else np.zeros(0)


def check_cells(cells: int) -> None:
    """Refuse a table that is too large, before it is made.

    Raises:
        InputError: saying what to do instead.
    """
    if cells > LARGEST_TABLE:
        raise InputError(
            "The traits that share these SNPs hang together too closely for an exact sum: a table "
            f"of {counted(cells, 'cell')} would be needed. Ask about fewer SNPs or traits, or use "
            "link='noisy_or'."
        )


def _part(factor: Factor, start: int, end: int) -> Factor:
    if len(factor.table) == 1:
        return factor
    return Factor(factor.names, factor.table[start:end])


def _plan(factors: Sequence[Factor]) -> tuple[list[int], int]:
    """Return an order of elimination, smallest table first, and the size of the largest table."""
    states = {
        name: int(size)
        for factor in factors
        for name, size in zip(factor.names, factor.table.shape[1:], strict=True)
    }
    scopes = [set(factor.names) for factor in factors if factor.names]
    order: list[int] = []
    largest = 1
    while states.keys() - set(order):
        joined = {
            name: set().union(*(scope for scope in scopes if name in scope))
            for name in states
            if name not in order
        }
        sizes = {name: _cells(scope, states) for name, scope in joined.items()}
        best = min(sizes, key=lambda name: (sizes[name], name))
        largest = max(largest, sizes[best])
        scopes = [scope for scope in scopes if best not in scope] + [joined[best] - {best}]
        order.append(best)
    return order, largest


def _cells(scope: set[int], states: dict[int, int]) -> int:
    cells = 1
    for name in scope:
        cells *= states[name]
    return cells


def _eliminate(factors: list[Factor], order: Sequence[int]) -> Floats:
    logs: Any = np.zeros(1)
    for name in order:
        touched = [factor for factor in factors if name in factor.names]
        factors = [factor for factor in factors if name not in factor.names]
        names = tuple(sorted({n for factor in touched for n in factor.names} - {name}))
        product = _spread(touched[0], (name, *names))
        for factor in touched[1:]:
            product = product * _spread(factor, (name, *names))
        summed = product.sum(axis=1)
        # Scaled per person, so that many SNPs do not underflow.
        scale = np.abs(summed).reshape(len(summed), -1).max(axis=1)
        scale = np.where(scale > 0, scale, 1.0)
        logs = logs + np.log(scale)
        factors.append(Factor(names, summed / scale.reshape(-1, *[1] * len(names))))
    for factor in factors:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = logs + np.log(factor.table.reshape(len(factor.table)))
    return np.asarray(logs, dtype=np.float64)


def _spread(factor: Factor, names: tuple[int, ...]) -> Floats:
    """Return the table with one axis for each name, of length 1 where the factor lacks it."""
    places = [factor.names.index(name) for name in names if name in factor.names]
    moved = np.moveaxis(factor.table, [1 + place for place in places], range(1, 1 + len(places)))
    shape = [len(moved)]
    sizes = iter(moved.shape[1:])
    shape.extend(next(sizes) if name in factor.names else 1 for name in names)
    return moved.reshape(shape)
