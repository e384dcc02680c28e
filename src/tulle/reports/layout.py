"""Where the nodes of a public network are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Floats

MOST_NODES = 400
"""Larger networks are drawn in part: every pair of nodes pushes each other."""

_STEPS = 120


def part_to_draw(nodes: int, edges: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the nodes to draw and the edges among them, as places in that list.

    Of a large network that is the neighbourhood of its best-connected node, ring by ring.

    Example:
        >>> kept, links = part_to_draw(3, [(0, 1)])
        >>> kept.tolist(), links.tolist()
        ([0, 1, 2], [[0, 1]])
    """
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    kept = np.arange(nodes)
    if nodes > MOST_NODES:
        kept = np.sort(_around_the_centre(nodes, pairs))
    place = np.full(nodes, -1)
    place[kept] = np.arange(len(kept))
    inside = place[pairs]
    return kept, inside[(inside >= 0).all(axis=1)]


def _around_the_centre(nodes: int, pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    degrees = np.bincount(pairs.ravel(), minlength=nodes)
    reached = np.zeros(nodes, dtype=bool)
    reached[int(degrees.argmax())] = True
    ring = reached
    while reached.sum() < MOST_NODES:
        touched = np.zeros(nodes, dtype=bool)
        touched[pairs[ring[pairs[:, 0]], 1]] = True
        touched[pairs[ring[pairs[:, 1]], 0]] = True
        ring = touched & ~reached
        if not ring.any():
            break
        if reached.sum() + ring.sum() > MOST_NODES:
            best = np.flatnonzero(ring)[np.argsort(-degrees[ring], kind="stable")]
            ring = np.zeros(nodes, dtype=bool)
            ring[best[: MOST_NODES - int(reached.sum())]] = True
        reached |= ring
    return np.flatnonzero(reached)


def lay_out(nodes: int, edges: npt.NDArray[np.int64]) -> Floats:
    """Return a place in the unit square for each node: links pull, all nodes push.

    Reference: Fruchterman and Reingold, Graph drawing by force-directed placement, 1991.

    Example:
        >>> lay_out(2, np.array([[0, 1]])).shape
        (2, 2)
    """
    turn = np.arange(nodes) * 2.399963  # the golden angle: a sunflower to start from
    places = (
        np.column_stack([np.cos(turn), np.sin(turn)]) * np.sqrt(np.arange(nodes) + 0.5)[:, None]
    )
    places = places / max(np.sqrt(nodes), 1.0)
    ideal = 1.4 / np.sqrt(max(nodes, 1))
    for step in range(_STEPS):
        apart = places[:, None, :] - places[None, :, :]
        distance = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-4)
        push = (apart * (ideal**2 / distance**2)[:, :, None]).sum(axis=1)
        along = places[edges[:, 0]] - places[edges[:, 1]]
        pull = along * (np.sqrt((along**2).sum(axis=1)) / ideal)[:, None]
        np.add.at(push, edges[:, 0], -pull)
        np.add.at(push, edges[:, 1], pull)
        push -= places * 0.6  # towards the middle, or parts without links drift away
        length = np.maximum(np.sqrt((push**2).sum(axis=1)), 1e-9)
        most = 0.12 * (1 - step / _STEPS) + 0.002
        places = places + push * (np.minimum(length, most) / length)[:, None]
    # Whoever hangs on by little is drawn nearer, or all others would be a dot.
    out = places - np.median(places, axis=0)
    far = np.maximum(np.sqrt((out**2).sum(axis=1, keepdims=True)), 1e-9)
    places = out * np.minimum(far, 2.5 * np.median(far)) / far
    low, high = places.min(axis=0, initial=0.0), places.max(axis=0, initial=0.0)
    scaled: Floats = (places - low) / np.maximum((high - low).max(), 1e-9)
    return scaled
