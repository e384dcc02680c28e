"""How many nodes stick out of a bound on degrees, counted so that one node moves it by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tulle.graphs.data import Graph


def sticking_out(graph: Graph, bounds: Sequence[int]) -> list[int]:
    """Return for each bound the least k such that at most k nodes have degree above bound + k.

    A node that joins raises the degrees of its neighbours by one, however many they are, so the
    number of nodes above a bound may jump. This one does not. Let k do for G: in G with one more
    node, the nodes of degree above bound + k + 1 are that node and such as had more than bound + k
    before, so k + 1 does. And what does for the larger graph does for G, where no degree is larger
    and no node is added: joining never lowers the number, and raises it by at most one, at all
    bounds alike. It is zero exactly where no degree is above the bound. Custodian side.

    With degrees d_0 >= d_1 >= ..., k does where d_k <= bound + k, and d_k - k falls: so k is how
    many of these differences are above the bound.

    Example:
        >>> star = Graph.from_edges([(0, 1), (0, 2), (0, 3), (0, 4)])
        >>> sticking_out(star, [0, 1, 3, 4])
        [1, 1, 1, 0]
    """
    from tulle.graphs.kernels.counts import degrees

    falling = -np.sort(-degrees(graph)) - np.arange(graph.node_count)
    found: list[int] = np.searchsorted(-falling, -np.array(bounds), side="left").tolist()
    return found
