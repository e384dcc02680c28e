"""Uniform integers, permutations and shuffles."""

from __future__ import annotations

from math import prod
from typing import Any, TypeVar, overload

import numpy as np

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.core.source import Source
from tulle.noise.bits import Bits
from tulle.noise.charge import report
from tulle.noise.shape import Size, shape_of
from tulle.noise.source import resolve

Items = TypeVar("Items", list[Any], np.ndarray[Any, Any])


@overload
def uniform_below(bound: int, size: None = None, source: Source | None = None) -> int: ...
@overload
def uniform_below(bound: int, size: Size, source: Source | None = None) -> Array: ...
@public()
def uniform_below(
    bound: int, size: Size | None = None, source: Source | None = None
) -> int | Array:
    """Draw an integer in [0, bound), each with the same probability, exactly.

    Without ``size`` the bound may have any length; else the result is an int64 array.

    Raises:
        InputError: when the bound is not a whole number above zero, or above 2**63 with ``size``.

    Example:
        >>> uniform_below(1), 0 <= uniform_below(10**40) < 10**40
        (0, True)
    """
    bound = validate.whole(bound=bound, at_least=1)
    report("uniform", bound=bound)
    source = resolve(source)
    if size is None:
        return Bits(source).below(bound)
    if bound > 2**63:
        raise InputError("bound must be at most 2**63 for an array of draws; use size=None.")
    shape = shape_of(size)
    out = np.empty(prod(shape), dtype=np.int64)
    # A word is used when it falls into a whole number of cycles of the bound, else thrown away.
    width = 32 if bound <= 2**24 else 64
    limit = (1 << width) // bound * bound
    done = 0
    while done < len(out):
        batch = min(len(out) - done, 1 << 16)
        words = np.frombuffer(source.read(batch * width // 8), dtype=f"<u{width // 8}")
        if limit < 1 << width:
            words = words[words < limit]
        out[done : done + len(words)] = words % words.dtype.type(bound)
        done += len(words)
    return out.reshape(shape)


@public()
def permutation(count: int, source: Source | None = None) -> Array:
    """Draw one of the orders of 0, ..., count - 1, each with the same probability, exactly.

    *Method.* Random keys are sorted. Keys that are all different are in each order equally
    often; if two are equal, all are drawn again.

    Raises:
        InputError: when the count is not a whole number of at least zero.

    Example:
        >>> sorted(permutation(4).tolist())
        [0, 1, 2, 3]
    """
    count = validate.whole(count=count, at_least=0)
    report("permutation", count=count)
    source = resolve(source)
    while True:
        keys = np.frombuffer(source.read(8 * count), dtype="<u8")
        order = _sorting(keys)
        ranked = keys[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order.astype(np.int64, copy=False)


def _sorting(keys: Array) -> Array:
    """Return the order that sorts 64-bit keys, by digits: in as many steps whatever they are."""
    order = np.arange(len(keys))
    for digit in np.ascontiguousarray(keys).view("<u2").reshape(len(keys), 4).T:
        # Sixteen bits at a time are sorted by counting and not by comparing.
        order = order[np.argsort(digit[order], kind="stable")]
    return order


@public()
def shuffle(items: Items, source: Source | None = None) -> Items:
    """Return a copy of a list, or of an array's rows, in a uniformly random order.

    Example:
        >>> sorted(shuffle(["a", "b"]))
        ['a', 'b']
    """
    order = permutation(len(items), source)
    if isinstance(items, np.ndarray):
        return items[order]
    return [items[place] for place in order.tolist()]
