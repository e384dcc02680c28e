"""Plain slow versions of the kernels, straight from the definitions."""

from itertools import combinations
from math import comb

import numpy as np
from hypothesis import strategies as st

from tulle.graphs.data import Graph


class SlowGraph:
    def __init__(self, graph: Graph) -> None:
        self.nodes = range(graph.node_count)
        self.edges = {(int(u), int(v)) for u, v in graph.edges()}
        self.near = {node: set() for node in self.nodes}
        for u, v in self.edges:
            self.near[u].add(v)
            self.near[v].add(u)

    @property
    def pairs(self):
        return combinations(self.nodes, 2)

    def toggled(self, pair):
        other = SlowGraph.__new__(SlowGraph)
        other.nodes, other.edges = self.nodes, self.edges ^ {pair}
        other.near = {node: set(near) for node, near in self.near.items()}
        u, v = pair
        other.near[u] ^= {v}
        other.near[v] ^= {u}
        return other

    def is_clique(self, nodes):
        return all(v in self.near[u] for u, v in combinations(nodes, 2))

    def cliques(self, k):
        return sum(self.is_clique(nodes) for nodes in combinations(self.nodes, k))

    def triangles_at(self, node):
        return sum(v in self.near[u] for u, v in combinations(sorted(self.near[node]), 2))

    def stars(self, k):
        return sum(comb(len(self.near[node]), k) for node in self.nodes)

    def k_triangles(self, k):
        return sum(comb(len(self.near[u] & self.near[v]), k) for u, v in self.edges)

    def pair_front(self):
        best = {}
        for u, v in self.pairs:
            shared = len(self.near[u] & self.near[v])
            apart = len((self.near[u] ^ self.near[v]) - {u, v})
            best[shared] = max(best.get(shared, -1), apart)
        return [best.get(shared, -1) for shared in range(max(best, default=0) + 1)]

    def star_front(self):
        points = set()
        for u, v in self.pairs:
            one, two = len(self.near[u] - {v}), len(self.near[v] - {u})
            points.add((max(one, two), min(one, two)))
        return sorted(
            (
                point
                for point in points
                if not any(
                    other != point and other[0] >= point[0] and other[1] >= point[1]
                    for other in points
                )
            ),
            reverse=True,
        )

    def largest_change(self, statistic):
        here = statistic(self)
        return max((abs(statistic(self.toggled(pair)) - here) for pair in self.pairs), default=0)


@st.composite
def graphs(draw, largest=14):
    nodes = draw(st.integers(0, largest))
    dense = draw(st.floats(0, 1))
    seed = draw(st.integers(0, 2**32 - 1))
    picked = np.random.default_rng(seed).random((nodes, nodes)) < dense
    return Graph.from_edges(np.argwhere(np.triu(picked, 1)), nodes=nodes)
