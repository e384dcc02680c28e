"""What ``size`` means, and how scalar samplers and tables share the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.errors import InputError
from tulle.core.source import Source
from tulle.noise.bits import Bits

Size = int | tuple[int, ...]

FEW = 128
"""Up to so many draws are made one by one: less work than a table, and no compiled code."""


def shape_of(size: Size) -> tuple[int, ...]:
    """Return ``size`` as a shape.

    Raises:
        InputError: when it is not a whole number or a tuple of them.
    """
    parts = size if isinstance(size, tuple) else (size,)
    return tuple(validate.whole(size=part, at_least=0) for part in parts)


def fill(
    size: Size, source: Source, one: Callable[[Bits], int], many: Callable[[int], Array]
) -> Array:
    """Return an array of draws: few from the scalar sampler, many from the bulk one."""
    shape = shape_of(size)
    count = prod(shape)
    if count > FEW:
        return many(count).reshape(shape)
    bits = Bits(source)
    return np.array([one(bits) for _ in range(count)], dtype=np.int64).reshape(shape)


def ranks(limits: Array, values: Array) -> Array:
    """Return for each value how many sorted limits are at most it.

    As ``np.searchsorted(limits, values, side="right")``, in as many steps whatever the values.

    Example:
        >>> ranks(np.array([2, 5]), np.array([1, 2, 7])).tolist()
        [0, 1, 2]
    """
    found = np.zeros(len(values), dtype=np.int64)
    last = len(limits) - 1
    half = 1 << len(limits).bit_length()
    while half := half >> 1:
        place = found + (half - 1)
        found += half * ((place <= last) & (limits[np.minimum(place, last)] <= values))
    return found


def by_value(values: Any, name: str, size: Size | None, draw: Callable[[Any, int], Array]) -> Array:
    """Return one draw per entry of an array of parameters, grouped by equal parameters."""
    entries = np.asarray(values)
    if size is not None and shape_of(size) != entries.shape:
        raise InputError(
            f"size must equal the shape of the array {name}, or be left out: each entry of {name} "
            "gives one draw."
        )
    out = np.empty(entries.shape, dtype=np.int64)
    flat = out.reshape(-1)
    for kind, places in _groups(entries.reshape(-1)):
        flat[places] = draw(kind, len(places))
    return out


def _groups(entries: Array) -> Iterator[tuple[Any, Any]]:
    """Yield each different entry with the places where it stands."""
    if entries.dtype == object:  # fractions and texts: comparable, but not by numpy
        groups: dict[Any, list[int]] = {}
        for place, entry in enumerate(entries.tolist()):
            groups.setdefault(entry, []).append(place)
        yield from groups.items()
    elif entries.size:
        kinds, inverse = np.unique(entries, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        cuts = np.cumsum(np.bincount(inverse))[:-1]
        yield from zip(kinds.tolist(), np.split(order, cuts), strict=True)


def is_array(value: Any) -> bool:
    """Tell whether a parameter is an array or a list, one entry per draw."""
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)
