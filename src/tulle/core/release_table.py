"""A release of any form as a table."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tulle.core.errors import NoIntervalError
from tulle.core.table import LabelledTable

if TYPE_CHECKING:
    from tulle.core.labels import Labels
    from tulle.core.release import Release


def table_of(release: Release, level: float) -> LabelledTable:
    """Return the answer as named columns with the ends of its interval at this level.

    An object that is released says itself which columns it has: its method ``columns(labels)``
    returns them by name, and the names of the keys.
    """
    value, labels = release.value, release.labels
    if isinstance(value, LabelledTable):
        return _with_ends(value, _interval(release, level))
    if isinstance(value, Mapping):
        return _record(value)
    stated = getattr(value, "columns", None)
    if callable(stated):
        columns, keys = stated(labels)
        return LabelledTable(columns, keys=keys)
    array = possible(release)
    if array.dtype.kind not in "biuf" and np.ndim(value) == 0:
        return LabelledTable({"value": [value]})
    ends = _interval(release, level)
    keys = _places(array.shape, labels)
    columns = {**keys, "value": array.ravel()}
    for name, end in zip(("low", "high"), ends or (None, None), strict=True):
        columns[name] = _end(end, array.shape)
    return LabelledTable(columns, keys=tuple(keys))


def possible(release: Release) -> Any:
    """Return released numbers as they are shown: within the range that is known to be possible.

    The release itself keeps what was drawn, since its interval is narrower around that: a
    chi-square statistic may be drawn below zero, and is shown as zero.
    """
    array = np.asarray(release.value)
    low, high = release._limits()
    if array.dtype.kind not in "iuf" or not ((array < low) | (array > high)).any():
        return array
    return np.clip(array, low, high).astype(array.dtype)


def _interval(release: Release, level: float) -> Any:
    try:
        return release.interval(level)
    except NoIntervalError:
        return None


def _places(shape: tuple[int, ...], labels: Labels) -> dict[str, Any]:
    """Return a column of labels for each side of an array, its entries laid out row by row."""
    found: dict[str, Any] = {}
    sides = labels.sides(shape)
    sizes = [size for _, size in sides]
    for side, (axis, size) in enumerate(sides):
        inner, outer = math.prod(sizes[side + 1 :]), math.prod(sizes[:side])
        for title, held in axis.columns(size).items():
            name = _free(title, (*found, "value", "low", "high"))
            if isinstance(held, np.ndarray):
                found[name] = np.tile(np.repeat(held, inner), outer)
            else:
                places = np.tile(np.repeat(np.arange(size), inner), outer).tolist()
                found[name] = [held[place] for place in places]
    return found


def _free(name: str, used: Collection[str]) -> str:
    """Return the name, with a number behind it where it is used already."""
    names = (name, *(f"{name} {number}" for number in range(2, len(used) + 3)))
    return next(one for one in names if one not in used)


def _end(end: Any, shape: tuple[int, ...]) -> Any:
    """Return one end of all intervals as a column; None where it has no end."""
    count = math.prod(shape)
    if end is None:
        return [None] * count
    flat = np.broadcast_to(np.asarray(end, dtype=np.float64), shape).ravel()
    known = np.isfinite(flat)
    if known.all():
        return flat
    return [one if there else None for one, there in zip(flat.tolist(), known, strict=True)]


def _with_ends(table: LabelledTable, ends: Any) -> LabelledTable:
    """Return a released table with the ends of its numbers, given by column, beside them.

    The law of a table's error has ``interval(value, level)`` return two mappings from names of
    columns to their ends.
    """
    if ends is None:
        return table
    columns: dict[str, Any] = {}
    for name in table.names:
        columns[name] = table[name]
        for word, end in zip(("low", "high"), ends, strict=True):
            if name in end:
                columns[f"{name} {word}"] = _end(end[name], (len(table),))
    return LabelledTable(columns, keys=table.keys)


def _record(value: Mapping[str, Any]) -> LabelledTable:
    """Return a mapping as columns when it holds lists of one length, else as names and values."""
    held = dict(value)
    sized = [len(v) for v in held.values() if isinstance(v, list | tuple | np.ndarray)]
    if held and len(sized) == len(held) and len(set(sized)) == 1:
        return LabelledTable(held)
    return LabelledTable(
        {"name": list(held), "value": [_flat(v) for v in held.values()]}, keys=("name",)
    )


def _flat(value: Any) -> Any:
    return value if not isinstance(value, list | tuple | np.ndarray) else str(list(value))
