"""Blocks of the model auto: who is placed where, what a core costs, and when there is none."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.graphs.synthesis_reference import terms_for

import tulle
from tulle.core.registry import mechanisms
from tulle.graphs.generators import all_graphs, erdos_renyi
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.synthesis.auto import core as auto_core
from tulle.graphs.synthesis.auto.blocks import divide
from tulle.graphs.synthesis.auto.budget import guess_known
from tulle.graphs.synthesis.auto.core import (
    AGAIN,
    INWARDS,
    OUTWARDS,
    Ranks,
    core_size,
    largest_core,
    measure_core,
    smallest_core,
)
from tulle.graphs.synthesis.auto.schedule import (
    CORE_SEARCH_PARTS,
    budgets_of,
    schedule_of,
    spending,
)
from tulle.graphs.synthesis.edge_counts import large_degrees, side_counts
from tulle.graphs.topology.response import Response
from tulle.metrics.communities import mutual_information
from tulle.noise import SeededSource, discrete_laplace
from tulle.noise.post_processing import post_processing

SCHEDULES = ("plain", "blocks", "placeable", "tried", "core")


def planted(sizes, inside, across, seed):
    """Return a graph with blocks in random order of nodes and uneven degrees, and the blocks."""
    random = post_processing(SeededSource(seed))
    blocks = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
    weight = np.minimum(random.pareto(2.5, len(blocks)) + 0.5, 4.0)
    chance = np.where(blocks[:, None] == blocks, inside, across) * weight[:, None] * weight
    edges = np.argwhere(np.triu(random.random(chance.shape) < chance, 1))
    return tulle.Graph.from_edges(edges, nodes=len(blocks)), blocks


# Who is placed where.


@pytest.mark.parametrize("epsilon", ["300", "2000", "100000"])
def test_a_core_of_hardly_any_noise_is_found(epsilon):
    graph, truth = planted([40, 30, 30], 0.6, 0.02, seed=6)
    ranks = Ranks(degrees(graph), 1e-3)
    terms = terms_for(graph, tulle.synthetic(blocks="core"), epsilon)
    for size in (50, 100):
        placed = measure_core(terms, graph, ranks, size, Fraction(epsilon), SeededSource(1))
        assert np.isfinite(placed.weights).all()
        # Communities may be found in parts, but no part is of two of them.
        together = np.zeros((int(placed.blocks.max()) + 1, 3))
        np.add.at(together, (placed.blocks, truth), 1)
        assert together.max(axis=1).sum() >= 95


# What a core costs.


def test_an_edge_makes_two_degrees_large_at_most():
    graphs = list(all_graphs(4))
    for least in (1, 2, 3):
        moves = {
            large_degrees(graph, least) - large_degrees(other, least)
            for graph in graphs
            for other in graph.neighbours("edge")
        }
        assert moves <= {-2, -1, 0, 1, 2}
        assert moves >= {-2, 2}


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_an_edge_lies_within_across_or_outside(size):
    """By brute force over all graphs of five nodes: each is moved by one edge as it is charged."""
    inside = np.arange(5) < size
    labels = np.array([0, 1, 0, 1, 0])
    sides = [(~inside, inside), (inside, ~inside), (~inside, ~inside)]

    def look(graph):
        edges = graph.edges()
        within = inside[edges].all(axis=1).sum() if len(edges) else 0
        return (int(within), *(side_counts(graph, labels, 2, *side) for side in sides))

    most = np.zeros(4, dtype=np.int64)
    for graph in all_graphs(5):
        here = look(graph)
        for other in graph.neighbours("edge"):
            there = look(other)
            moves = np.array([np.abs(a - b).sum() for a, b in zip(here, there, strict=True)])
            # Within; across, from one end each; outside, from both.
            assert moves.tolist() in ([1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 2])
            most = np.maximum(most, moves)
    assert most.tolist() == [int(size > 1), 1, 1, 2 * int(size < 4)]


def test_the_shares_across_add_up():
    assert OUTWARDS + INWARDS + AGAIN == 1


def test_each_release_of_a_core_gets_the_noise_that_its_budget_buys(monkeypatch):
    graph, _ = planted((150, 150), 0.3, 0.01, 1)
    epsilon = Fraction(2)
    used, flipped = [], []

    def record(*, scale, size=None, source=None):
        used.append(scale)
        return discrete_laplace(scale=scale, size=size, source=source)

    class Recorded(Response):
        def run(self, terms, settings, dataset, source):
            flipped.append((terms.epsilon, dataset.node_count))
            return super().run(terms, settings, dataset, source)

    monkeypatch.setattr(auto_core, "discrete_laplace", record)
    monkeypatch.setattr(auto_core, "Response", Recorded)
    ranks = Ranks(degrees(graph), 1.0)
    terms = terms_for(graph, tulle.synthetic(), "9")
    measure_core(terms, graph, ranks, 120, epsilon, SeededSource(1))
    assert flipped == [(epsilon, 120)]
    assert used == [
        1 / (OUTWARDS * epsilon),
        1 / (INWARDS * epsilon),
        1 / (AGAIN * epsilon),
        2 / epsilon,
    ]


# The budget.


@pytest.mark.parametrize("blocks", ["auto", "core"])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "2.9", "3", "40"])
def test_every_schedule_spends_epsilon_and_none_takes_anything_back(epsilon, blocks):
    graph = erdos_renyi(100, 0.1, seed=1)
    auto = mechanisms("graph")["synthetic_auto"]
    settings = auto.settings(terms_for(graph, tulle.synthetic(blocks=blocks), epsilon), {})
    for edges in (-9, 0, 500, 4000):
        spent = {name: spending(settings, name, guess_known(100, edges)) for name in SCHEDULES}
        for shares in spent.values():
            assert sum(shares.values()) == Fraction(epsilon)
            assert min(shares.values()) > 0
        assert len({shares["edges"] for shares in spent.values()}) == 1
        assert len({shares.get("order") for shares in spent.values()}) == 1
        # Released before it is known which of these is followed.
        for schedule, names in CORE_SEARCH_PARTS.items():
            for name in names:
                assert spent[schedule][name] == spent["core"][name]


def test_the_order_alone_leaves_room_for_what_may_follow_it():
    graph = erdos_renyi(100, 0.1, seed=1)
    auto = mechanisms("graph")["synthetic_auto"]
    query = tulle.synthetic(parts="edges,order")
    settings = auto.settings(terms_for(graph, query, "1"), {})
    spent = [spending(settings, name, guess_known(100, 500)) for name in ("plain", "blocks")]
    assert all(sum(budgets.values()) <= 1 for budgets in spent)
    assert len({budgets["order"] for budgets in spent}) == 1


def measured(graph, epsilon, seed=1, **options):
    auto = mechanisms("graph")["synthetic_auto"]
    terms = terms_for(graph, tulle.synthetic(**options), epsilon)
    settings = auto.settings(terms, {})
    return auto.measure(terms, settings, graph, SeededSource(seed)), settings


def test_what_was_spent_is_what_the_last_schedule_says():
    graph, _ = planted((200, 200, 200), 0.25, 0.01, 2)
    for options in ({}, {"blocks": "core"}):
        seen, settings = measured(graph, "4", **options)
        assert schedule_of(seen, settings) == "core"
        parts = {"core" if name == "home" else name for name in seen if name != "weights"}
        assert parts == set(budgets_of(seen, settings))


# When there is a core, and when there is none.


def test_communities_are_found_when_the_order_tells_nothing():
    graph, truth = planted((200, 200, 200), 0.25, 0.01, 2)
    seen, settings = measured(graph, "4")
    assert schedule_of(seen, settings) == "core"
    assert mutual_information(seen["home"], truth) > 0.5
    assert np.corrcoef(seen["weights"], degrees(graph))[0, 1] > 0.7
    made = tulle.release(
        graph, tulle.synthetic(), unit="edge", epsilon=4.0, source=SeededSource(1)
    ).value
    assert tulle.compare(graph, made)["communities"] > 0.4


def test_no_core_is_tried_where_degrees_drown():
    graph, _ = planted((200, 200, 200), 0.25, 0.01, 2)
    seen, settings = measured(graph, "0.1")
    assert schedule_of(seen, settings) == "plain"
    assert "ranks" not in seen
    seen, settings = measured(graph, "0.1", blocks="core")
    assert schedule_of(seen, settings) == "tried"
    assert "home" not in seen


def test_no_core_is_tried_where_most_nodes_could_not_be_placed():
    dense, _ = planted((80, 80, 80), 0.9, 0.02, 2)
    loose = tulle.Graph.from_edges(dense.edges(), nodes=900)
    seen, settings = measured(dense, "2.9")
    assert schedule_of(seen, settings) == "core"
    seen, settings = measured(loose, "2.9")
    assert schedule_of(seen, settings) == "placeable"
    assert "ranks" not in seen


def test_blocks_that_are_none_are_not_kept_apart():
    graph = erdos_renyi(600, 0.1, seed=3)
    seen, settings = measured(graph, "2", blocks="core")
    assert "home" in seen
    division = divide(seen, settings, graph.edge_count)
    assert division.blocks.max() == 0
    assert division.counts.tolist() == [[graph.edge_count]]


def test_parts_of_one_community_are_joined_again():
    random = post_processing(SeededSource(5))
    home = random.integers(0, 4, 400)
    counts = np.array([[300, 250, 10, 10], [0, 300, 10, 10], [0, 0, 500, 5], [0, 0, 0, 400]])
    auto = mechanisms("graph")["synthetic_auto"]
    graph = erdos_renyi(400, 0.02, seed=1)
    settings = auto.settings(terms_for(graph, tulle.synthetic(blocks="core"), "1"), {})
    seen = {"edges": 1795, "home": home, "weights": home, "pairs": counts[np.triu_indices(4)]}
    division = divide(seen, settings, 1795)
    assert np.array_equal(division.blocks, np.maximum(home - 1, 0))
    assert division.counts.tolist() == [[850, 20, 20], [20, 500, 5], [20, 5, 400]]


def test_a_core_may_be_larger_where_there_is_less_noise():
    nodes, triangles = 5000, 500_000
    found = [largest_core(nodes, triangles, noise) for noise in (2.0, 1.0, 0.5)]
    assert found == pytest.approx([found[0], 4 * found[0], 16 * found[0]], rel=0.02)
    # Twenty communities of 250 nodes with 25,000 triangles each: eigenvalues of about 53.
    assert found[1] == pytest.approx((6 * 25_000) ** (2 / 3) / 2.5**2, rel=0.01)
    # A graph beside a copy of itself shows as much in each half.
    assert largest_core(2 * nodes, 2 * triangles, 1.0) == found[1]
    assert largest_core(nodes, -7, 1.0) == 0
    assert largest_core(nodes, 1, 0.0) == nodes


def test_a_core_is_no_larger_than_its_noise_allows():
    random = post_processing(SeededSource(4))
    noise = Ranks(np.rint(random.laplace(5, 40.0, 3000)).astype(np.int64), 40.0)
    assert core_size(noise, Fraction(1), 3000) == 0
    skewed = np.rint(200 * (1 + np.arange(3000)) ** -0.3).astype(np.int64)
    sizes = [core_size(Ranks(skewed, 0.5), Fraction(e), 3000) for e in (1, 2, 4)]
    assert smallest_core(3000) <= sizes[0] < sizes[1] < sizes[2] <= 3000
    assert core_size(Ranks(skewed, 0.5), Fraction(2), 250) == 250
    assert core_size(Ranks(skewed, 0.5), Fraction(2), 150) == 0
