"""From joint degrees to a simple graph that has exactly these, with or without locality."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.graphs.compiled import compiled
from tulle.graphs.synthesis.edge_set import add, empty_set, holds, key_of, remove
from tulle.graphs.synthesis.joint_fit import JointDegrees
from tulle.noise.afterwards import Random

Wholes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_TRIES = 24
_WINDOW = 256


def realise_joint(joint: JointDegrees, random: Random, locality: float = 0.0) -> Wholes:
    """Return the edges of a random simple graph with exactly these joint degrees.

    Edges are placed in random order between nodes that have an end free. When none fit, a node
    without a free end hands one of its edges to another of the same degree, which always works
    (Gjoka et al.). Nodes are numbered by degree, the smallest first.

    With ``locality`` above zero, that share of edges looks for the nearest free node on a ring on
    which the nodes of each degree are spread evenly: near nodes share neighbours, so triangles
    arise.

    Raises:
        ValueError: when no simple graph has these joint degrees.

    Reference:
        Gjoka, Tillman & Markopoulou, Construction of simple graphs with a target joint degree
        matrix and beyond, INFOCOM 2015.

    Example:
        >>> from tulle.noise import SeededSource, afterwards
        >>> star = JointDegrees(np.array([1, 3]), np.array([3, 1]), np.array([[0, 3], [3, 0]]))
        >>> sorted(realise_joint(star, afterwards(SeededSource(1))).tolist())
        [[0, 3], [1, 3], [2, 3]]
    """
    made = place_edges(
        joint.edges, np.repeat(joint.degrees, joint.nodes), joint.nodes, random, locality
    )
    if len(made) < int(np.triu(joint.edges).sum()):
        raise ValueError("no simple graph has these joint degrees")
    return made


def place_edges(
    between: Wholes, room: Wholes, sizes: Wholes, random: Random, locality: float | Floats
) -> Wholes:
    """Return edges between kinds of nodes, as many as wanted between each two kinds.

    Nodes are numbered kind by kind; ``room`` says how many edges each may have. Kinds of nodes
    with different room may be left with an edge that cannot be placed: it is left out. The
    locality may differ by kind; an edge has the mean of those at its ends.
    """
    kinds = len(sizes)
    first, second = np.triu_indices(kinds)
    chosen = random.permutation(np.repeat(np.arange(len(first)), between[first, second]))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    edges = np.empty((len(chosen), 2), dtype=np.int64)
    made = int(
        _place(
            first[chosen],
            second[chosen],
            np.array(room, dtype=np.int64),
            starts,
            random.random(kinds),
            np.broadcast_to(np.asarray(locality, dtype=np.float64), (kinds,)).copy(),
            empty_set(len(chosen)),
            edges,
            random,
        )
    )
    return edges[:made]


@compiled
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


@compiled
def _hand_over(
    node: Any, keep: Any, kind: Any, nodes: Any, state: Any, table: Any, random: Any
) -> Any:
    """Give one of a node's edges to another of its kind with room; say whether that worked."""
    room, starts, free, place, count, offsets, filled, lists = state
    begin = random.integers(0, count[kind])
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


@compiled
def _find_apart(one: Any, other: Any, starts: Any, nodes: Any, table: Any, random: Any) -> Any:
    """Return two nodes of these kinds that are not joined, or (-1, -1) when all are."""
    size_one, size_other = starts[one + 1] - starts[one], starts[other + 1] - starts[other]
    for _ in range(_TRIES):
        x = starts[one] + random.integers(0, size_one)
        y = starts[other] + random.integers(0, size_other)
        if x != y and not holds(table, key_of(x, y, nodes)):
            return x, y
    begin_one, begin_other = random.integers(0, size_one), random.integers(0, size_other)
    for i in range(size_one):
        x = starts[one] + (begin_one + i) % size_one
        for j in range(size_other):
            y = starts[other] + (begin_other + j) % size_other
            if x != y and not holds(table, key_of(x, y, nodes)):
                return x, y
    return -1, -1


@compiled
def _find_near(
    node: Any, one: Any, other: Any, nodes: Any, state: Any, turn: Any, table: Any
) -> Any:
    """Return the nearest free node of the other kind on the ring, or -1."""
    room, starts = state[0], state[1]
    size = starts[other + 1] - starts[other]
    where = (node - starts[one]) / (starts[one + 1] - starts[one]) + turn[one] - turn[other]
    middle = np.int64((where - np.floor(where)) * size)
    for step in range(min(2 * _WINDOW, size)):
        # Alternately to the right and to the left: 0, 1, -1, 2, -2, ...
        away = (step + 1) // 2 if step % 2 else -(step // 2)
        y = starts[other] + (middle + away) % size
        if y != node and room[y] > 0 and not holds(table, key_of(node, y, nodes)):
            return y
    return -1


@compiled
def _pick(kind: Any, most: Any, state: Any, random: Any) -> Any:
    """Return a free node of a kind, those with more room more often; -1 when there is none."""
    room, starts, free, count = state[0], state[1], state[2], state[4]
    if count[kind] == 0:
        return -1
    node = -1
    for _ in range(_TRIES):
        node = free[starts[kind] + random.integers(0, count[kind])]
        if random.random() * most[kind] < room[node]:
            break
    return node


@compiled
def _place(
    first: Any,
    second: Any,
    room: Any,
    starts: Any,
    turn: Any,
    locality: Any,
    table: Any,
    edges: Any,
    random: Any,
) -> Any:
    kinds = len(starts) - 1
    nodes = starts[kinds]
    free = np.arange(nodes)
    place = np.empty(nodes, dtype=np.int64)
    count = np.empty(kinds, dtype=np.int64)
    most = np.zeros(kinds, dtype=np.int64)
    offsets = np.zeros(nodes + 1, dtype=np.int64)
    for kind in range(kinds):
        count[kind] = starts[kind + 1] - starts[kind]
        for node in range(starts[kind], starts[kind + 1]):
            place[node] = node - starts[kind]
            offsets[node + 1] = offsets[node] + room[node]
            most[kind] = max(most[kind], room[node])
    filled = np.zeros(nodes, dtype=np.int64)
    lists = np.empty(offsets[nodes], dtype=np.int64)
    state = (room, starts, free, place, count, offsets, filled, lists)
    for which in range(len(first)):
        one, other = first[which], second[which]
        if random.random() < 0.5:
            one, other = other, one
        x, y = -1, -1
        if random.random() < (locality[one] + locality[other]) / 2:
            x = _pick(one, most, state, random)
            if x >= 0:
                y = _find_near(x, one, other, nodes, state, turn, table)
        if y < 0:
            for _ in range(_TRIES):
                x, y = _pick(one, most, state, random), _pick(other, most, state, random)
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
        add(table, key_of(x, y, nodes))
        lists[offsets[x] + filled[x]] = y
        lists[offsets[y] + filled[y]] = x
        filled[x] += 1
        filled[y] += 1
        room[x] -= 1
        room[y] -= 1
        _settle(x, one, room, starts, free, place, count)
        _settle(y, other, room, starts, free, place, count)
    made = 0
    for node in range(nodes):
        for spot in range(offsets[node], offsets[node] + filled[node]):
            if lists[spot] > node:
                edges[made, 0], edges[made, 1] = node, lists[spot]
                made += 1
    return made
