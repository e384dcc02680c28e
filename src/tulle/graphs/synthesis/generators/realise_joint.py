"""From joint degrees to a simple graph that has exactly these, with or without locality."""

from __future__ import annotations

from typing import Any

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.core.compiled import compiled, inner
from tulle.graphs.synthesis.generators.edge_set import (
    add,
    draw_below,
    empty_set,
    holds,
    key_of,
    remove,
)
from tulle.noise.post_processing import Random

_TRIES = 24
_WINDOW = 1024


def place_edges(
    between: Wholes, room: Wholes, sizes: Wholes, random: Random, locality: float | Floats
) -> Wholes:
    """Return edges between kinds of nodes, as many as wanted between each two kinds.

    Nodes are numbered kind by kind; ``room`` says how many edges each may have. Edges are placed in
    random order between nodes that have an end free. When none fit, a node without a free end hands
    one of its edges to another of its kind, which always works where a kind is a degree (Gjoka et
    al.). Kinds of nodes with different room may be left with an edge that cannot be placed: it is
    left out.

    All nodes are put on a ring at random. With the probability ``locality``, which may differ by
    kind, a node looks for the nearest one there to which an edge is left, as often as it has room:
    near nodes share neighbours, so triangles arise.

    Reference:
        Gjoka, Tillman & Markopoulou, Construction of simple graphs with a target joint degree
        matrix and beyond, INFOCOM 2015.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    local = np.broadcast_to(np.asarray(locality, dtype=np.float64), (len(sizes),)).copy()
    left, table = np.array(between, dtype=np.int64), empty_set(int(np.triu(between).sum()))
    kinds, state = lay_out(np.array(room, dtype=np.int64), starts)
    if local.any():
        # Each edge has two ends, and either may look for the other as often as it has room.
        order = random.permutation(np.repeat(np.arange(len(room)), room))
        ring = random.permutation(len(room))
        _place_near(order, ring, local, left, kinds, state, table, random)
    return place_rest(left, state, table, random)


@inner
def _settle(
    node: Any, kind: Any, room: Any, starts: Any, free: Any, place: Any, count: Any
) -> None:
    """Put a node on its kind's list of free nodes, or take it off, as its room says."""
    start = starts[kind]
    listed = place[node] >= 0
    if room[node] > 0 and not listed:
        free[start + count[kind]] = node
        place[node] = count[kind]
        count[kind] += 1
    elif room[node] == 0 and listed:
        count[kind] -= 1
        last = free[start + count[kind]]
        free[start + place[node]] = last
        place[last] = place[node]
        place[node] = -1


@inner
def _hand_over(
    node: Any, keep: Any, kind: Any, nodes: Any, state: Any, table: Any, random: Any
) -> Any:
    """Give one of a node's edges to another of its kind with room; say whether that worked."""
    room, starts, free, place, count, offsets, filled, lists, _ = state
    begin = draw_below(count[kind], random)
    for step in range(count[kind]):
        other = free[starts[kind] + (begin + step) % count[kind]]
        if other == node or (other == keep and room[other] < 2):
            continue
        for spot in range(offsets[node], offsets[node] + filled[node]):
            friend = lists[spot]
            if friend == other or holds(table, key_of(other, friend, nodes)):
                continue
            remove(table, key_of(node, friend, nodes))
            add(table, key_of(other, friend, nodes))
            filled[node] -= 1
            lists[spot] = lists[offsets[node] + filled[node]]
            lists[offsets[other] + filled[other]] = friend
            filled[other] += 1
            back = offsets[friend]
            while lists[back] != node:
                back += 1
            lists[back] = other
            room[node] += 1
            room[other] -= 1
            _settle(other, kind, room, starts, free, place, count)
            _settle(node, kind, room, starts, free, place, count)
            return True
    return False


@inner
def _find_apart(one: Any, other: Any, starts: Any, nodes: Any, table: Any, random: Any) -> Any:
    """Return two nodes of these kinds that are not joined, or (-1, -1) when all are."""
    size_one, size_other = starts[one + 1] - starts[one], starts[other + 1] - starts[other]
    for _ in range(_TRIES):
        x = starts[one] + draw_below(size_one, random)
        y = starts[other] + draw_below(size_other, random)
        if x != y and not holds(table, key_of(x, y, nodes)):
            return x, y
    begin_one, begin_other = draw_below(size_one, random), draw_below(size_other, random)
    for i in range(size_one):
        x = starts[one] + (begin_one + i) % size_one
        for j in range(size_other):
            y = starts[other] + (begin_other + j) % size_other
            if x != y and not holds(table, key_of(x, y, nodes)):
                return x, y
    return -1, -1


@inner
def _take_off(node: Any, before: Any, after: Any) -> None:
    """Take a node without room off the ring."""
    after[before[node]] = after[node]
    before[after[node]] = before[node]


@inner
def _find_near(
    node: Any, kind: Any, kinds: Any, left: Any, nodes: Any, before: Any, after: Any, table: Any
) -> Any:
    """Return the nearest node on the ring that may still be joined to this one, or -1."""
    back, ahead = before[node], after[node]
    for step in range(_WINDOW):
        if step % 2:
            other, back = back, before[back]
        else:
            other, ahead = ahead, after[ahead]
        if other == node:
            return -1
        if left[kind, kinds[other]] > 0 and not holds(table, key_of(node, other, nodes)):
            return other
    return -1


@inner
def _pick(kind: Any, state: Any, random: Any) -> Any:
    """Return a free node of a kind, those with more room more often; -1 when there is none."""
    room, starts, free, count, most = state[0], state[1], state[2], state[4], state[8]
    if count[kind] == 0:
        return -1
    node = -1
    for _ in range(_TRIES):
        node = free[starts[kind] + draw_below(count[kind], random)]
        if random.random() * most[kind] < room[node]:
            break
    return node


@inner
def join(
    x: Any, y: Any, one: Any, other: Any, nodes: Any, left: Any, state: Any, table: Any
) -> None:
    """Join two nodes with room and count the edge off what is left between their kinds."""
    room, starts, free, place, count, offsets, filled, lists, _ = state
    add(table, key_of(x, y, nodes))
    lists[offsets[x] + filled[x]] = y
    lists[offsets[y] + filled[y]] = x
    filled[x] += 1
    filled[y] += 1
    room[x] -= 1
    room[y] -= 1
    left[one, other] -= 1
    if one != other:
        left[other, one] -= 1
    _settle(x, one, room, starts, free, place, count)
    _settle(y, other, room, starts, free, place, count)


@compiled
def _place_near(
    order: Any,
    ring: Any,
    locality: Any,
    left: Any,
    kinds: Any,
    state: Any,
    table: Any,
    random: Any,
) -> None:
    """Let the nodes of the order, one edge each time they come, join the nearest on the ring."""
    room, nodes = state[0], len(ring)
    before, after = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    for spot in range(nodes):
        after[ring[spot]] = ring[(spot + 1) % nodes]
        before[ring[(spot + 1) % nodes]] = ring[spot]
    for which in range(len(order)):
        x = order[which]
        one = kinds[x]
        if room[x] == 0 or random.random() >= locality[one]:
            continue
        y = _find_near(x, one, kinds, left, nodes, before, after, table)
        if y < 0:
            continue
        join(x, y, one, kinds[y], nodes, left, state, table)
        if room[x] == 0:
            _take_off(x, before, after)
        if room[y] == 0:
            _take_off(y, before, after)


def lay_out(room: Wholes, starts: Wholes) -> tuple[Wholes, tuple[Wholes, ...]]:
    """Return the kind of each node, and the state in which no edge is placed yet."""
    nodes, sizes = int(starts[-1]), np.diff(starts)
    kinds = np.repeat(np.arange(len(sizes)), sizes)
    offsets = np.append(0, np.cumsum(room))
    has_room = room > 0
    # Free nodes are listed kind by kind, from the start of their kind on.
    before = np.append(0, np.cumsum(has_room))
    place = np.where(has_room, before[:-1] - before[starts[kinds]], -1)
    free = np.arange(nodes)
    free[starts[kinds[has_room]] + place[has_room]] = np.flatnonzero(has_room)
    count = before[starts[1:]] - before[starts[:-1]]
    most = np.zeros(len(sizes), dtype=np.int64)
    np.maximum.at(most, kinds, room)
    filled, lists = np.zeros(nodes, dtype=np.int64), np.empty(int(offsets[-1]), dtype=np.int64)
    return kinds, (room, starts, free, place, count, offsets, filled, lists, most)


def place_rest(left: Wholes, state: tuple[Wholes, ...], table: Wholes, random: Random) -> Wholes:
    """Place all edges that are left between kinds, in random order; return all edges."""
    kinds = np.argwhere(np.triu(left))
    pairs = random.permutation(np.repeat(kinds, left[kinds[:, 0], kinds[:, 1]], axis=0))
    _place_pairs(pairs, left, state, table, random)
    offsets, filled, lists = state[5:8]
    node = np.repeat(np.arange(len(filled)), filled)
    # Each node's list is filled from its start on, and has room for more.
    spot = np.arange(len(node)) + np.repeat(offsets[:-1] - (np.cumsum(filled) - filled), filled)
    once = lists[spot] > node
    return np.column_stack([node[once], lists[spot[once]]])


@compiled
def _place_pairs(pairs: Any, left: Any, state: Any, table: Any, random: Any) -> None:
    """Place an edge between each two kinds in turn, where one can be placed."""
    room, starts, count = state[0], state[1], state[4]
    nodes = len(room)
    for which in range(len(pairs)):
        one, other = pairs[which, 0], pairs[which, 1]
        x, y = -1, -1
        for _ in range(_TRIES):
            x, y = _pick(one, state, random), _pick(other, state, random)
            if x >= 0 and y >= 0 and x != y and not holds(table, key_of(x, y, nodes)):
                break
            y = -1
        if y < 0:
            if count[one] == 0 or count[other] == 0:
                continue
            x, y = _find_apart(one, other, starts, nodes, table, random)
            if x < 0:
                continue
            if room[x] == 0 and not _hand_over(x, y, one, nodes, state, table, random):
                continue
            if room[y] == 0 and not _hand_over(y, x, other, nodes, state, table, random):
                continue
            if room[x] == 0 or holds(table, key_of(x, y, nodes)):
                continue
        join(x, y, one, other, nodes, left, state, table)
