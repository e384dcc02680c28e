"""Copies of patterns by definition, through networkx."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import networkx as nx
from networkx.algorithms.isomorphism import GraphMatcher

from tulle.graphs.data import Graph
from tulle.graphs.generators import all_graphs
from tulle.graphs.patterns.pattern import Pattern


def connected_patterns(nodes: int) -> list[Pattern]:
    """All connected patterns of so many nodes, each once."""
    found = {}
    pairs = list(combinations(range(nodes), 2))
    for subset in range(2 ** len(pairs)):
        chosen = [pair for bit, pair in enumerate(pairs) if subset >> bit & 1]
        graph = nx.Graph(chosen)
        if len(graph) == nodes and nx.is_connected(graph):
            found[Pattern.read(chosen)] = None
    return list(found)


def layings(graph: Graph, pattern: Pattern) -> list[dict[int, int]]:
    """All ways to lay the pattern over the graph, as maps from its nodes to the graph's."""
    host = nx.Graph([(int(u), int(v)) for u, v in graph.edges()])
    matcher = GraphMatcher(host, nx.Graph(list(pattern.edges)))
    return [
        {small: large for large, small in found.items()}
        for found in matcher.subgraph_monomorphisms_iter()
    ]


def copies(graph: Graph, pattern: Pattern) -> set[frozenset[tuple[int, int]]]:
    """The different sets of edges that look like the pattern."""
    return {
        frozenset(tuple(sorted((laid[u], laid[v]))) for u, v in pattern.edges)
        for laid in layings(graph, pattern)
    }


@cache
def one_of_each(nodes: int) -> tuple[Graph, ...]:
    """Every graph of so many nodes up to renaming: counts and totals cannot tell more."""
    kept: list[tuple[Graph, nx.Graph]] = []
    for graph in all_graphs(nodes):
        peer = nx.Graph([tuple(map(int, pair)) for pair in graph.edges()])
        if not any(
            nx.faster_could_be_isomorphic(peer, other) and nx.is_isomorphic(peer, other)
            for _, other in kept
        ):
            kept.append((graph, peer))
    return tuple(graph for graph, _ in kept)
