"""From a degree sequence to a simple graph with exactly these degrees, nearly uniform."""

from __future__ import annotations

from typing import Any

import numpy as np

from tulle.core.arrays import Wholes
from tulle.core.compiled import compiled
from tulle.graphs.synthesis.generators.swapping import shuffle_edges
from tulle.noise.post_processing import Random

SWAPS_PER_EDGE = 10
"""Tried swaps per edge: practice has found mixing after some m to 10 m of them."""


def realise_degrees(degrees: Wholes, random: Random, swaps: int = SWAPS_PER_EDGE) -> Wholes:
    """Return the edges of a random simple graph with these degrees, node by node.

    Built by Havel & Hakimi's rule, then mixed by swapping the ends of two edges, which keeps
    every degree. A sequence that no simple graph has is realised as far as it goes.

    Example:
        >>> from tulle.noise import SeededSource
        >>> from tulle.noise.post_processing import post_processing
        >>> edges = realise_degrees(np.array([2, 2, 2, 1, 1]), post_processing(SeededSource(1)))
        >>> np.bincount(edges.ravel()).tolist()
        [2, 2, 2, 1, 1]
    """
    degrees = np.ascontiguousarray(degrees, dtype=np.int64)
    order = np.argsort(-degrees, kind="stable")
    edges = np.empty((int(degrees.sum()) // 2, 2), dtype=np.int64)
    made = _havel_hakimi(degrees[order], order, edges)
    edges = edges[:made]
    shuffle_edges(edges, len(degrees), swaps * made, random)
    return edges


@compiled
def _havel_hakimi(left: Any, order: Any, edges: Any) -> Any:
    """Join the node with most left to those with most left; ``left`` stays sorted, descending."""
    count = len(left)
    made = 0
    for place in range(count):
        wanted = left[place]
        last = place + wanted
        if wanted <= 0 or last >= count:
            if wanted <= 0:
                break
            last = count - 1
            wanted = last - place
        if wanted <= 0:
            break
        value = left[last]
        # The block of equal values that the last one taken is in: [low, high).
        low, up = place + 1, last
        while low < up:
            middle = (low + up) // 2
            if left[middle] > value:
                low = middle + 1
            else:
                up = middle
        high, up = last + 1, count
        while high < up:
            middle = (high + up) // 2
            if left[middle] >= value:
                high = middle + 1
            else:
                up = middle
        from_block = wanted - (low - place - 1)
        for other in range(place + 1, low):
            left[other] -= 1
            edges[made, 0], edges[made, 1] = order[place], order[other]
            made += 1
        # Taken from the end of its block, so that the order stays.
        for other in range(high - from_block, high):
            if left[other] <= 0:
                continue
            left[other] -= 1
            edges[made, 0], edges[made, 1] = order[place], order[other]
            made += 1
        left[place] = 0
    return made
