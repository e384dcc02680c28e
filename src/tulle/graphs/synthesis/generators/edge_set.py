"""A set of edges for compiled code: open addressing, with deletion that leaves no gaps.

A *swap* of the edges (a, x) and (c, y) gives (a, c) and (x, y): every node keeps its degree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tulle.core.arrays import Wholes
from tulle.core.compiled import compiled, inner


def empty_set(capacity: int) -> Wholes:
    """Return an empty set that holds up to ``capacity`` edges quickly."""
    size = 16
    while size < 2 * capacity + 2:
        size *= 2
    return np.full(size, -1, dtype=np.int64)


def set_of(edges: Wholes, nodes: int) -> Wholes:
    """Return the set of these edges."""
    table = empty_set(len(edges))
    add_all(table, edges[:, 0].copy(), edges[:, 1].copy(), nodes)
    return table


@inner
def draw_below(count: Any, random: Any) -> Any:
    """Return a whole number below ``count``; the generator's own takes longer, to compile as well.

    The largest random number is 1 - 2^-53: its product with a count below 2^53 is rounded to less
    than the count.
    """
    return int(random.random() * count)


@inner
def key_of(u: Any, v: Any, nodes: Any) -> Any:
    """Return the number of an unordered pair."""
    return u * nodes + v if u < v else v * nodes + u


@inner
def _home(key: Any, mask: Any) -> Any:
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(mixed >> np.uint64(24)) & mask


@inner
def holds(table: Any, key: Any) -> Any:
    """Say whether the set holds the key."""
    mask = len(table) - 1
    place = _home(key, mask)
    while table[place] != -1:
        if table[place] == key:
            return True
        place = (place + 1) & mask
    return False


@inner
def add(table: Any, key: Any) -> Any:
    """Add a key; return whether it is new."""
    mask = len(table) - 1
    place = _home(key, mask)
    while table[place] != -1:
        if table[place] == key:
            return False
        place = (place + 1) & mask
    table[place] = key
    return True


@inner
def remove(table: Any, key: Any) -> Any:
    """Remove a key that is there; later keys of its run move up, so that none is cut off."""
    mask = len(table) - 1
    hole = _home(key, mask)
    while table[hole] != key:
        hole = (hole + 1) & mask
    place = hole
    while True:
        place = (place + 1) & mask
        if table[place] == -1:
            break
        home = _home(table[place], mask)
        # A key may move into the hole if its home is not after the hole on the way to its place.
        if ((place - home) & mask) >= ((place - hole) & mask):
            table[hole] = table[place]
            hole = place
    table[hole] = -1


@compiled
def add_all(table: Any, first: Any, second: Any, nodes: Any) -> None:
    """Add all edges."""
    for place in range(len(first)):
        add(table, key_of(first[place], second[place], nodes))


@inner
def stays_simple(table: Any, nodes: Any, a: Any, x: Any, c: Any, y: Any) -> Any:
    """Say whether (a, c) and (x, y) are two edges that are not there, a and x being joined."""
    return not (
        a == c or x == y or holds(table, key_of(a, c, nodes)) or holds(table, key_of(x, y, nodes))
    )


@inner
def swap_keys(table: Any, nodes: Any, a: Any, x: Any, c: Any, y: Any) -> None:
    """Let (a, x) and (c, y) become (a, c) and (x, y)."""
    remove(table, key_of(a, x, nodes))
    remove(table, key_of(c, y, nodes))
    add(table, key_of(a, c, nodes))
    add(table, key_of(x, y, nodes))
