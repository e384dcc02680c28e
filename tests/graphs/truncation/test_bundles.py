"""The compact form of stars and groups of triangles, against the plain one and by brute force."""

from __future__ import annotations

from functools import cache
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import linprog
from tests.graphs.subgraph_reference import one_of_each

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.core.query import Query
from tulle.graphs.data import Graph
from tulle.graphs.generators import barabasi_albert, erdos_renyi
from tulle.graphs.truncation import bundle_packing as subgraph_packing
from tulle.graphs.truncation.bundle_bounds import Tables, lower_bound, upper_bound
from tulle.graphs.truncation.bundle_interior import BundleInterior
from tulle.graphs.truncation.bundle_packing import (
    SPREAD,
    BundleTruncation,
    base_threshold,
    solve_bundles,
)
from tulle.graphs.truncation.bundles import Bundles, bundles_of, chosen
from tulle.graphs.truncation.relation import relation_of
from tulle.lp import PackingProblem, solve
from tulle.relations.truncation.totals import Thresholds, least_level

QUESTIONS = [tulle.stars(2), tulle.stars(3), tulle.k_triangles(2)]
UNITS = ["node", "edge"]
THRESHOLDS = (0.5, 2.0, 5.5)


def linear_program(held: Bundles, tau: float) -> tuple[Any, ...]:
    """Return (cost, matrix, right-hand side, upper bounds) whose least cost is X(tau).

    Minimise cost·x with matrix·x >= right-hand side and 0 <= x <= upper bounds: the form for
    ``scipy.optimize.linprog`` (with both signs turned), used where a second opinion is wanted.
    x holds g, then m of each bundle, a of each leaf, and the terms of Phi.
    """
    bundles, leaves = len(held.stems), len(held.leaves)
    terms = np.maximum(held.sizes - held.k + 1, 0)
    owner = np.repeat(np.arange(bundles), terms)
    step = np.arange(len(owner)) - np.repeat(np.cumsum(terms) - terms, terms) + held.k - 1
    first = held.count + bundles
    entries = [
        (np.arange(bundles), held.count + np.arange(bundles), 1.0),
        *((np.arange(bundles), column, 1.0) for column in held.stems.T),
        (bundles + np.arange(leaves), first + np.arange(leaves), 1.0),
        (bundles + np.arange(leaves), held.count + held.owners, -1.0),
        *((bundles + np.arange(leaves), column, 1.0) for column in held.leaves.T),
    ]
    rows = bundles + leaves + np.arange(len(owner))
    entries += [
        (rows, first + leaves + np.arange(len(owner)), 1.0),
        (rows, held.count + owner, step.astype(float)),
    ]
    pairs = np.repeat(np.arange(len(owner)), held.sizes[owner])
    places = np.arange(len(pairs)) - np.searchsorted(pairs, pairs) + held.offsets[owner[pairs]]
    entries.append((rows[pairs], first + places, -1.0))
    row, column, value = (
        np.concatenate([np.broadcast_to(entry[part], np.shape(entry[0])) for entry in entries])
        for part in range(3)
    )
    width = first + leaves + len(owner)
    matrix = scipy.sparse.csr_array(
        (value, (row, column)), shape=(bundles + leaves + len(owner), width)
    )
    right = np.concatenate([np.ones(bundles), np.zeros(leaves + len(owner))])
    cost = np.concatenate(
        [np.full(held.count, tau), np.zeros(bundles + leaves), chosen(step - 1, held.k - 2)]
    )
    upper = np.concatenate([np.ones(held.count), np.full(width - held.count, np.inf)])
    return cost, matrix, right, upper


def exact(bundles: Bundles, tau: float) -> float:
    if not len(bundles.stems):
        return 0.0
    cost, matrix, right, upper = linear_program(bundles, tau)
    bounds = np.column_stack([np.zeros(len(upper)), upper])
    return float(linprog(cost, A_ub=-matrix, b_ub=-right, bounds=bounds).fun)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("query", QUESTIONS, ids=str)
def test_one_participant_moves_the_value_by_at_most_tau(query: Query, unit: str) -> None:
    @cache
    def value(nodes: int, pairs: tuple[tuple[int, int], ...], tau: float) -> float:
        graph = Graph.from_edges(np.array(pairs).reshape(-1, 2), nodes=nodes)
        return exact(bundles_of(query, graph, unit), tau)

    for graph in one_of_each(5):
        nodes, truth = graph.node_count, query.truth(graph)
        pairs = tuple(tuple(map(int, pair)) for pair in graph.edges())
        loads = bundles_of(query, graph, unit).loads()
        for tau in (*THRESHOLDS, float(loads.max(initial=0.0)) + 0.001):
            here = value(nodes, pairs, tau)
            assert here <= truth + 1e-7
            if tau >= loads.max(initial=0.0):
                assert here == pytest.approx(truth, abs=1e-7)
            if unit == "node":
                smaller = [
                    (
                        nodes - 1,
                        tuple((u - (u > v), w - (w > v)) for u, w in pairs if v not in (u, w)),
                    )
                    for v in range(nodes)
                ]
            else:
                smaller = [(nodes, tuple(p for p in pairs if p != gone)) for gone in pairs]
            for other in smaller:
                assert -1e-7 <= here - value(*other, tau) <= tau + 1e-7


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("query", QUESTIONS, ids=str)
def test_value_is_at_least_the_plain_one(query: Query, unit: str) -> None:
    above = 0
    for seed in range(4):
        graph = erdos_renyi(7, 0.7, seed=seed)
        plain = relation_of(query, graph, unit)
        problem = PackingProblem(plain.offsets, plain.participants, plain.weights, plain.count)
        bundles = bundles_of(query, graph, unit)
        assert bundles.total == plain.total
        assert bundles.loads() == pytest.approx(problem.loads)
        for tau in THRESHOLDS:
            compact, listed = exact(bundles, tau), solve(problem, tau, gap=tau / 1000)
            assert compact >= listed.lower - 1e-6
            above += compact > listed.upper + 1e-6
    if query == tulle.stars(2):
        assert above, "the compact form should be better somewhere"


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("query", QUESTIONS, ids=str)
def test_leaving_is_leaving_the_graph(query: Query, unit: str) -> None:
    graph = erdos_renyi(7, 0.7, seed=4)
    bundles = bundles_of(query, graph, unit)
    pairs = graph.edges()
    for gone in range(bundles.count):
        if unit == "node":
            kept = pairs[(pairs != gone).all(axis=1)]
        else:
            kept = np.delete(pairs, gone, axis=0)
        smaller = bundles_of(query, Graph.from_edges(kept, nodes=graph.node_count), unit)
        struck = bundles.without(gone)
        assert struck.total == smaller.total
        assert exact(struck, 3.0) == pytest.approx(exact(smaller, 3.0))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("query", [*QUESTIONS, tulle.stars(5), tulle.k_triangles(3)], ids=str)
def test_brackets_hold_the_exact_value(query: Query, unit: str) -> None:
    for graph in (barabasi_albert(40, 4, seed=1), erdos_renyi(14, 0.6, seed=2)):
        bundles = bundles_of(query, graph, unit)
        largest = bundles.loads().max(initial=0.0)
        for part in (0.01, 0.1, 0.4, 0.9, 1.0, 3.0):
            tau = max(part * largest, 0.5)
            bracket = solve_bundles(bundles, tau, gap=tau / 200)
            value = exact(bundles, tau)
            assert bracket.upper - bracket.lower <= tau / 200
            assert bracket.lower - 1e-9 * tau <= value <= bracket.upper + 1e-9 * tau


@pytest.mark.parametrize("query", QUESTIONS, ids=str)
def test_the_slow_method_arrives_by_itself(query: Query, monkeypatch) -> None:
    monkeypatch.setattr(subgraph_packing, "_REACHES", ())
    monkeypatch.setattr("tulle.lp.program._HIGHS_ENTRIES", -1)
    for graph in (barabasi_albert(40, 4, seed=1), erdos_renyi(14, 0.6, seed=2)):
        bundles = bundles_of(query, graph, "node")
        for part in (0.02, 0.2, 0.6):
            tau = part * bundles.loads().max(initial=1.0)
            bracket = solve_bundles(bundles, tau, gap=tau / 100)
            assert bracket.upper - bracket.lower <= tau / 100
            assert bracket.lower - 1e-9 * tau <= exact(bundles, tau) <= bracket.upper + 1e-9 * tau


def test_nothing_that_goes_wrong_in_the_fast_methods_ends_in_an_error(monkeypatch) -> None:
    monkeypatch.setattr(BundleInterior, "advance", lambda self: self.x[0].fill(np.nan))
    monkeypatch.setattr("tulle.lp.program._HIGHS_ENTRIES", -1)
    bundles = bundles_of(tulle.stars(2), barabasi_albert(40, 4, seed=1), "node")
    tau = 0.2 * bundles.loads().max()
    bracket = solve_bundles(bundles, tau, gap=tau / 100)
    assert bracket.lower <= exact(bundles, tau) <= bracket.upper
    assert bracket.upper - bracket.lower <= tau / 100


def test_any_vectors_give_true_bounds() -> None:
    random = np.random.default_rng(7)
    for query in QUESTIONS:
        bundles = bundles_of(query, erdos_renyi(9, 0.7, seed=1), "node")
        tables = Tables(bundles)
        for tau in (1.0, 10.0):
            value = exact(bundles, tau)
            for _ in range(200):
                scale = 10.0 ** random.uniform(-2, 2)
                deletions = random.random(bundles.count) * random.choice([0.1, 1.0, 3.0])
                heights = random.random(len(bundles.stems)) * scale
                uses = random.random(len(bundles.leaves)) * scale
                limits = random.choice([np.inf, scale]) * (1 + random.random(len(bundles.stems)))
                assert upper_bound(bundles, tables, tau, deletions) >= value - 1e-7
                assert lower_bound(bundles, tables, tau, limits, heights, uses) <= value + 1e-7
            broken = np.full(len(bundles.stems), np.nan)
            nothing = np.full(len(bundles.leaves), np.nan)
            assert lower_bound(bundles, tables, tau, broken, broken, nothing) == 0.0


def test_empty_and_small_graphs() -> None:
    for graph in (Graph.from_edges([], nodes=3), Graph.from_edges([(0, 1)])):
        for query in QUESTIONS:
            for unit in UNITS:
                bundles = bundles_of(query, graph, unit)
                assert bundles.total == 0.0
                assert solve_bundles(bundles, 1.0, gap=0.01).upper == 0.0


def test_levels_move_by_at_most_one() -> None:
    thresholds = Thresholds(0.6, 0.5)
    for query in QUESTIONS:
        for graph in (erdos_renyi(8, 0.6, seed=s) for s in range(3)):
            here = least_level(BundleTruncation(query, graph), thresholds)
            pairs = graph.edges()
            for node in range(graph.node_count):
                kept = pairs[(pairs != node).all(axis=1)]
                smaller = Graph.from_edges(kept - (kept > node), nodes=graph.node_count - 1)
                there = least_level(BundleTruncation(query, smaller), thresholds)
                assert 0 <= here - there <= 1


def test_thresholds_of_edges_and_triangles() -> None:
    assert SPREAD * base_threshold(tulle.stars(3), 120.0 / SPREAD) == pytest.approx(10.0)
    # Each node of a complete graph on 8 nodes is in 21 triangles.
    whole = Graph.from_edges(list(nx.complete_graph(8).edges))
    load = float(bundles_of(tulle.k_triangles(2), whole, "node").loads()[0])
    assert SPREAD * base_threshold(tulle.k_triangles(2), load / SPREAD) == pytest.approx(21.0)
    for query in QUESTIONS:
        values = [base_threshold(query, tau) for tau in (0.001, 0.5, 1.0, 1.5, 20.0, 1e9, 1e100)]
        assert values == sorted(values)


def test_what_is_refused() -> None:
    graph = erdos_renyi(6, 0.6, seed=1)
    with pytest.raises(QueryError, match="no compact form"):
        bundles_of(tulle.triangles(), graph, "node")
    with pytest.raises(QueryError, match="no compact form"):
        BundleTruncation(tulle.cliques(4), graph)
    bundles = bundles_of(tulle.stars(2), graph, "node")
    for tau, gap in ((0.0, 1.0), (-1.0, 1.0), (np.nan, 1.0), (1.0, 0.0), (1.0, 1e-9)):
        with pytest.raises(InputError):
            solve_bundles(bundles, tau, gap=gap)
    assert repr(bundles) == "Bundles(...)"


@pytest.mark.slow
def test_facebook(data_folder) -> None:
    graph = Graph.read(data_folder / "facebook_combined" / "facebook_combined.edges.txt")
    for query in (tulle.stars(2), tulle.stars(3)):
        bundles = bundles_of(query, graph, "node")
        tau = bundles.loads().max() / 20
        bracket = solve_bundles(bundles, tau, gap=tau / 100)
        assert 0 < bracket.lower < bracket.upper < query.truth(graph)
