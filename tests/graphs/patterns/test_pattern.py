"""Small connected patterns to look for in a graph, with conditions on what the nodes are."""

from __future__ import annotations

import networkx as nx

import tulle
from tulle.graphs.data import Graph
from tulle.graphs.patterns import pattern as patterns
from tulle.graphs.patterns.pattern import Pattern


def test_equal_patterns_are_equal_however_they_are_written() -> None:
    kite = Pattern.read("a-b, b-c, c-a, c-d")
    others = ["x-y, z-x, y-z, w-x", [(4, 9), (9, 7), (7, 4), (1, 4)], nx.Graph([(0, 1), (1, 2)])]
    assert Pattern.read(others[0]) == Pattern.read(others[1]) == kite
    assert Pattern.read(others[2]) == patterns.path(2)
    assert Pattern.read(Graph.from_edges([(0, 1), (1, 2)])) == patterns.star(2)
    assert Pattern.read(str(kite)) == kite
    assert tulle.subgraphs("a-b,b-c,c-a,c-d") == tulle.subgraphs("p-q,q-r,r-p,r-s")
    # A condition makes nodes different that were alike before.
    first = tulle.subgraphs("a-b, b-c", where="a.x > 1")
    assert first == tulle.subgraphs("u-v, v-w", where="1 < w.x")
    assert first.canonical() == tulle.subgraphs("u-v, v-w", where="1 < w.x").canonical()
    assert first != tulle.subgraphs("a-b, b-c", where="b.x > 1")
    assert first != tulle.subgraphs("a-b, b-c", where="a.x > true")
