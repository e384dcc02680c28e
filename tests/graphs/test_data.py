import copy
import pickle
import subprocess
import sys
from math import comb

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sparse
from tests.graphs.slow_reference import SlowGraph

from tulle.core.errors import InputError, MissingExtraError, SealedError, UnitError
from tulle.graphs.data import Dropped, Graph
from tulle.graphs.generators import all_graphs, erdos_renyi

PATH = Graph.from_edges([(0, 1), (1, 2)], nodes=3)


def test_nothing_shows():
    graph = Graph.from_edges([("secret", "other")])
    assert repr(graph) == str(graph) == f"{graph}" == "<Graph: sealed>"
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SealedError):
            attempt(graph)
    for asked in ("__reduce__", "__getstate__"):
        with pytest.raises(SealedError):
            getattr(graph, asked)()
    with pytest.raises(TypeError):
        hash(graph)
    with pytest.raises(InputError, match="from_edges"):
        Graph()


def test_importing_the_data_type_does_not_load_the_compiler():
    code = "import sys, tulle.graphs.data; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "edges",
    [
        [(0, 1), (1, 2)],
        [[0, 1], [1, 2]],
        np.array([[0, 1], [1, 2]]),
        np.array([[0, 1], [1, 2]], dtype=np.uint8),
        np.array([[0.0, 1.0], [1.0, 2.0]]),
        np.array([[2, 1], [1, 0]]),
        pd.DataFrame({"a": [0, 1], "b": [1, 2]}),
        pl.DataFrame({"a": [0, 1], "b": [1, 2]}),
        {(0, 1), (1, 2)},
        ((u, u + 1) for u in range(2)),
        [(0, 1), (1, 0), (1, 1), (1, 2)],
        [("x", "y"), ("y", "z")],
        np.array([["x", "y"], ["y", "z"]]),
        pd.DataFrame({"a": ["x", "y"], "b": ["y", "z"]}),
        [(7, 3000), (3000, 10**12)],
        [(b"a", b"b"), (b"b", b"c")],
        [((0, "a"), (0, "b")), ((0, "b"), (0, "c"))],
        [(2**70, 2**71), (2**71, 2**72)],
    ],
    ids=lambda edges: type(edges).__name__,
)
def test_from_edges(edges):
    graph = Graph.from_edges(edges)
    assert graph == PATH
    assert graph.edges().tolist() == [[0, 1], [1, 2]]
    assert (graph.node_count, graph.edge_count) == (3, 2)


def test_labels_come_back_and_cannot_be_changed_from_outside():
    graph = Graph.from_edges([("bob", "ann"), ("cas", "bob")])
    assert graph.labels.tolist() == ["ann", "bob", "cas"]
    graph.labels[0] = "eve"
    assert graph.labels[0] == "ann"
    assert Graph.from_edges([(1, "1"), ("1", 2)]).labels.tolist() == [1, 2, "1"]
    named = Graph.from_edges([(0, 2)], labels=["ann", "bob", "cas"])
    assert named.node_count == 3
    assert named.labels.tolist() == ["ann", "bob", "cas"]
    for array in graph.csr():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_dropped_is_counted():
    assert Graph.from_edges([(0, 0), (0, 1), (1, 0), (0, 1)]).dropped == Dropped(1, 2)
    assert PATH.dropped == Dropped()


@pytest.mark.parametrize("edges", [[], np.empty((0, 2)), np.empty((0, 2), dtype=int), ()])
def test_no_edges(edges):
    for nodes in (0, 1, 5):
        graph = Graph.from_edges(edges, nodes=nodes)
        assert (graph.node_count, graph.edge_count) == (nodes, 0)
        assert graph.edges().shape == (0, 2)
    assert Graph.from_edges(edges).node_count == 0


@pytest.mark.parametrize(
    ("edges", "options", "reason"),
    [
        (np.zeros((4, 3)), {}, "two columns.*edges"),
        (np.zeros((3, 3)), {}, "from_scipy"),
        (np.zeros((2, 9)), {}, "Transpose"),
        (np.zeros(4), {}, "two columns"),
        ([(0, 1), (1, 2, 0.5)], {}, "Row 1 .* 3 entries.*Weights"),
        ([(0, 1), 5], {}, "Row 1 .* not a pair"),
        (["ab", "cd"], {}, "Row 0 .* not a pair"),
        ([(0, 1.5)], {}, "fractional"),
        (np.array([[0, np.nan]]), {}, "NaN"),
        (np.array([[0, np.inf]]), {}, "infinite"),
        (np.array([[0, 2.0**60]]), {}, "exact"),
        ([(0, 1), (-1, 2)], {}, "Row 1 .* negative"),
        ([(-1, 2)], {"nodes": 5}, "negative"),
        ([(0, 5)], {"nodes": 5}, "outside 0 to nodes - 1"),
        ([("a", "b")], {"nodes": 5}, "whole numbers"),
        ([("a", None)], {}, "missing"),
        ([("a", float("nan"))], {}, "missing"),
        ([("a", 0.5)], {}, "fractional"),
        ([("a", float("inf"))], {}, "fractional"),
        (np.empty((0, 3)), {}, "two columns"),
        ([([1], [2])], {}, "two columns|hashable"),
        ([({}, {})], {}, "hashable"),
        (np.array([[True, False]]), {}, "true/false"),
        (np.array([["2020-01-01", "2020-01-02"]], dtype="M8[D]"), {}, "integers or strings"),
        ("friends.csv", {}, "Graph.read"),
        (5, {}, "list of pairs"),
        ([(0, 1)], {"nodes": -1}, "at least 0"),
        ([(0, 1)], {"nodes": 2.5}, "whole number"),
        ([(0, 1)], {"nodes": 2**31}, "at most"),
        ([(0, 1)], {"nodes": 3, "labels": "ab"}, "2 names for nodes=3"),
        ([(0, 1)], {"labels": ["a", "a"]}, "distinct"),
        ([(0, 1)], {"labels": ["a", "b"], "nodes": ["a", "b"]}, "not both"),
        ([(0, 1)], {"labels": [[], []]}, "hashable"),
    ],
)
def test_from_edges_refuses(edges, options, reason):
    with pytest.raises(InputError, match=reason):
        Graph.from_edges(edges, **options)


# --- other libraries -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_conversions_go_there_and_back(seed):
    graph = erdos_renyi(30, 0.15, seed=seed)
    assert Graph.from_networkx(graph.to_networkx()) == graph
    assert Graph.from_igraph(graph.to_igraph()) == graph
    assert Graph.from_scipy(graph.to_scipy()) == graph
    assert Graph.from_scipy(graph.to_scipy().toarray()) == graph
    assert Graph.from_scipy(graph.to_scipy()).dropped == Dropped()


def test_conversions_keep_labels():
    graph = Graph.from_edges([("ann", "bob"), ("bob", "cas")])
    for again in (
        Graph.from_networkx(graph.to_networkx()),
        Graph.from_igraph(graph.to_igraph()),
    ):
        assert again == graph
        assert again.labels.tolist() == ["ann", "bob", "cas"]


def test_conversions_of_empty_graphs():
    empty = Graph.from_edges([], nodes=0)
    assert Graph.from_networkx(nx.Graph()) == empty
    assert Graph.from_igraph(igraph.Graph()) == empty
    assert Graph.from_scipy(np.zeros((0, 0))) == empty
    assert Graph.from_networkx(nx.empty_graph(4)).node_count == 4


def test_networkx_graphs_that_say_more_are_refused():
    directed = nx.DiGraph([(0, 1), (1, 0), (1, 2)])
    with pytest.raises(InputError, match=r'ignore=\("direction",\)'):
        Graph.from_networkx(directed)
    assert Graph.from_networkx(directed, ignore=("direction",)) == PATH
    parallel = nx.MultiGraph([(0, 1), (0, 1), (1, 2)])
    with pytest.raises(InputError, match=r'ignore=\("weights",\)'):
        Graph.from_networkx(parallel)
    assert Graph.from_networkx(parallel, ignore="weights") == PATH
    weighted = nx.Graph()
    weighted.add_weighted_edges_from([(0, 1, 0.5), (1, 2, 1)])
    with pytest.raises(InputError, match="has weights"):
        Graph.from_networkx(weighted)
    assert Graph.from_networkx(weighted, ignore=("direction", "weights")) == PATH
    with pytest.raises(InputError, match="networkx graph"):
        Graph.from_networkx([(0, 1)])
    with pytest.raises(InputError, match="not known"):
        Graph.from_networkx(weighted, ignore=("colour",))


def test_igraph_graphs_that_say_more_are_refused():
    with pytest.raises(InputError, match="directed"):
        Graph.from_igraph(igraph.Graph([(0, 1), (1, 2)], directed=True))
    weighted = igraph.Graph([(0, 1), (1, 2)], edge_attrs={"weight": [1, 2]})
    with pytest.raises(InputError, match="weights"):
        Graph.from_igraph(weighted)
    assert Graph.from_igraph(weighted, ignore=("weights",)) == PATH
    # As in a file, whether an edge is repeated changes nothing but what the custodian is told.
    assert Graph.from_igraph(igraph.Graph([(0, 1), (0, 1)])).dropped == Dropped(0, 1)
    with pytest.raises(InputError, match="igraph graph"):
        Graph.from_igraph(nx.Graph())


def test_matrices_that_say_more_are_refused():
    one_way = sparse.coo_array(([1, 1], ([0, 1], [1, 2])), shape=(3, 3))
    with pytest.raises(InputError, match="not symmetric"):
        Graph.from_scipy(one_way)
    assert Graph.from_scipy(one_way, ignore=("direction",)) == PATH
    weighted = 2 * PATH.to_scipy()
    with pytest.raises(InputError, match="other than 0 and 1"):
        Graph.from_scipy(weighted)
    assert Graph.from_scipy(weighted, ignore=("weights",)) == PATH
    with pytest.raises(InputError, match="square"):
        Graph.from_scipy(np.zeros((2, 3)))
    with pytest.raises(InputError, match="NaN"):
        Graph.from_scipy(np.array([[0, np.nan], [np.nan, 0]]))
    with pytest.raises(InputError, match="matrix of numbers"):
        Graph.from_scipy([["a"]])


def test_missing_libraries_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    monkeypatch.setitem(sys.modules, "igraph", None)
    with pytest.raises(MissingExtraError, match=r"tulle\[interop\]"):
        PATH.to_networkx()
    with pytest.raises(MissingExtraError, match="igraph"):
        PATH.to_igraph()


# --- what privacy needs ----------------------------------------------------------------------


def test_facts_are_equal_on_all_neighbours():
    for graph in all_graphs(4):
        for unit in ("edge", "node"):
            for neighbour in graph.neighbours(unit):
                assert neighbour.facts(unit) == graph.facts(unit)
    assert PATH.facts("edge") == {"nodes": 3}
    assert PATH.facts("node") == {}


def test_units_are_checked():
    with pytest.raises(UnitError, match="edge, node"):
        PATH.facts("row")
    with pytest.raises(UnitError):
        PATH.neighbours("row")


@pytest.mark.parametrize("nodes", range(5))
def test_edge_neighbours_are_all_single_toggles(nodes):
    for graph in all_graphs(nodes):
        found = list(graph.neighbours("edge"))
        assert len(found) == comb(nodes, 2)
        mine = SlowGraph(graph).edges
        toggles = {frozenset(SlowGraph(other).edges ^ mine) for other in found}
        assert all(len(toggle) == 1 for toggle in toggles)
        assert len(toggles) == comb(nodes, 2)


@pytest.mark.parametrize("nodes", range(5))
def test_node_neighbours_are_complete_and_mutual(nodes):
    for graph in all_graphs(nodes):
        found = list(graph.neighbours("node"))
        assert len(found) == nodes + 2**nodes
        for other in found:
            # A removed node can come back in another place: compare up to renaming.
            assert abs(other.node_count - nodes) == 1
            peer = graph.to_networkx()
            assert any(
                nx.is_isomorphic(peer, back.to_networkx()) for back in other.neighbours("node")
            )
            if nodes == 4:
                break


def test_too_many_neighbours_are_refused():
    with pytest.raises(InputError, match="at most 8"):
        Graph.from_edges([], nodes=9).neighbours("node")
    assert sum(1 for _ in Graph.from_edges([], nodes=8).neighbours("node")) == 8 + 256


def test_all_graphs_lists_each_once():
    for nodes, expected in enumerate([1, 1, 2, 8, 64, 1024]):
        distinct = {frozenset(SlowGraph(graph).edges) for graph in all_graphs(nodes)}
        assert len(distinct) == expected
    for wrong in (-1, 8, 2.0):
        with pytest.raises(InputError):
            all_graphs(wrong)


@pytest.mark.parametrize("seed", range(20))
def test_nodes_stand_by_falling_degree(seed):
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 40))
    graph = Graph.from_edges(random.integers(0, count, (count, 2)), nodes=count)
    degrees = np.diff(graph.csr()[0])
    order, rank = graph.by_degree()
    assert order.tolist() == sorted(range(count), key=lambda node: (-degrees[node], node))
    assert rank[order].tolist() == list(range(count))
