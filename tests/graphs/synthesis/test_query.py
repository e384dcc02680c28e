"""Synthetic graphs at the edge: hardly any node or edge, all edges, tiny and huge budgets.

Each asks for advice to be given or a graph to be made, and the same for all graphs on the same
nodes: whether a model refuses may depend on public facts alone.
"""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.graphs.synthesis.query import MODELS
from tulle.ledger.answer import plan_for

EPSILONS = ("1e-9", "1e-6", "1", "1e4")
ADVICE = re.compile(r"[Ss]pend more|Use an epsilon of at least|Ask for counts")


def graphs_on(nodes):
    """Return graphs on so many nodes: none, one edge, a star, all edges."""
    pairs = list(combinations(range(nodes), 2))
    star = [pair for pair in pairs if pair[0] == 0]
    kinds = {tuple(edges) for edges in ([], pairs[-1:], star, pairs)}
    return [tulle.Graph.from_edges(list(edges), nodes=nodes) for edges in sorted(kinds)]


def asked(graph, model, epsilon):
    """Return the synthetic graph, or the words with which the model refuses."""
    try:
        return tulle.release(graph, tulle.synthetic(model), unit="edge", epsilon=epsilon).value
    except QueryError as refusal:
        return str(refusal)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("nodes", [0, 1, 2, 3, 12, 40])
@pytest.mark.parametrize("model", MODELS)
def test_small_graphs_work_or_are_refused_alike(model, nodes, epsilon):
    answers = [asked(graph, model, epsilon) for graph in graphs_on(nodes)]
    refusals = {answer for answer in answers if isinstance(answer, str)}
    if refusals:
        assert len(refusals) == 1
        assert all(isinstance(answer, str) for answer in answers)
        assert ADVICE.search(refusals.pop())
        return
    for made in answers:
        assert made.node_count == nodes
        assert made.edge_count <= nodes * (nodes - 1) // 2


@pytest.mark.parametrize("nodes", [2, 3, 12, 40])
@pytest.mark.parametrize("model", ["auto", "1k", "2k", "2.5k", "kronecker", "topm", "response"])
def test_without_noise_the_number_of_edges_is_kept(model, nodes):
    """At the largest budget there is as good as none. (Communities give up on last dense pairs.)"""
    for graph in graphs_on(nodes):
        made = asked(graph, model, "1e4")
        assert made.edge_count == pytest.approx(graph.edge_count, rel=0.05, abs=1)


@pytest.mark.parametrize("model", MODELS)
def test_a_large_graph_with_hardly_an_edge(model):
    """A hundred thousand nodes: nothing may be laid out per pair of nodes."""
    nodes = 100_000
    edges = np.column_stack([np.arange(10), nodes - 1 - np.arange(10)])
    few, none = (tulle.Graph.from_edges(e, nodes=nodes) for e in (edges, edges[:0]))
    for epsilon in ("1e-6", "1"):
        texts = [refused(graph, model, epsilon) for graph in (few, none)]
        assert texts[0] == texts[1]
        assert texts[0] is None or ADVICE.search(texts[0])
    if refused(few, model, "1") is None:
        made = asked(few, model, "1")
        assert made.node_count == nodes
        assert made.edge_count < 20_000


@pytest.mark.parametrize("model", ["1k", "2k", "2.5k", "kronecker", "topm"])
def test_noise_invents_no_more_edges_than_it_must(model):
    """Ten edges on twenty thousand nodes at a small budget: noise on n counts adds its deviation,
    about sqrt(2n)/epsilon edges, not a share of all pairs."""
    nodes, epsilon = 20_000, 0.2
    graph = tulle.Graph.from_edges([(i, nodes - 1 - i) for i in range(10)], nodes=nodes)
    made = asked(graph, model, str(epsilon))
    assert made.edge_count < 6 * np.sqrt(2 * nodes) / epsilon


def refused(graph, model, epsilon):
    """Return the words with which a model refuses before it sees the graph, or None."""
    try:
        plan_for(graph, tulle.synthetic(model), unit="edge", epsilon=epsilon)
    except QueryError as refusal:
        return str(refusal)
    return None


@pytest.mark.parametrize("epsilon", ["1e6", "1e-12"])
def test_budgets_out_of_range_are_refused_with_the_range(epsilon):
    graph = graphs_on(3)[1]
    with pytest.raises(InputError, match="at least 1e-09 and at most 10,000"):
        tulle.release(graph, tulle.synthetic(), unit="edge", epsilon=epsilon)
