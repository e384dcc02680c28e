"""The spread value: what one edge moves it by on its scale, and that nothing is missed."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import tulle
from tulle.graphs.generators import all_graphs, barabasi_albert, watts_strogatz
from tulle.graphs.spectra import spread
from tulle.graphs.spectra.queries import adjacency
from tulle.graphs.spectra.spread import (
    CAP,
    SOFT,
    STEPS,
    TOLERANCE,
    capped,
    measured_square,
    proved_bounds,
    rounded_place,
    scale_sensitivity,
    scaled,
    slope,
    spread_value,
    unscaled,
)


def largest(graph: tulle.Graph) -> float:
    return float(np.linalg.eigvalsh(adjacency(graph).toarray().astype(float))[-1])


def crossed(cores: int, leaves: int) -> tulle.Graph:
    """Return a clique whose nodes have leaves of their own: its edges are above the cap."""
    edges = list(combinations(range(cores), 2))
    edges += [
        (node, cores + node * leaves + leaf) for node in range(cores) for leaf in range(leaves)
    ]
    return tulle.Graph.from_edges(edges, nodes=cores * (leaves + 1))


def test_no_edge_moves_the_place_by_more_than_the_sensitivity() -> None:
    places = {
        frozenset(map(tuple, graph.edges().tolist())): rounded_place(graph)
        for graph in all_graphs(5)
    }
    grown = [after - places[edges - {edge}] for edges, after in places.items() for edge in edges]
    assert min(grown) >= -2 * STEPS * TOLERANCE - 1
    assert max(grown) <= scale_sensitivity()
    # Broken versions: half of it, and the square in place of the scale.
    assert max(grown) > scale_sensitivity() / 2
    clique, less = (
        spread_value(5, np.array(list(combinations(range(5), 2)))[first:]) for first in (0, 1)
    )
    assert clique**2 - less**2 > 2


def test_the_scale_and_its_inverse() -> None:
    for cap in (CAP, Fraction(7, 2)):
        values = np.linspace(0, 30, 400)
        places = [scaled(value, cap) for value in values]
        assert np.allclose([unscaled(place, cap) for place in places], values)
        # As steep as max(1, g/2c).
        slopes = np.diff(places) / np.diff(values)
        middle = (values[1:] + values[:-1]) / 2
        assert np.allclose(slopes, np.maximum(1, middle / (2 * float(cap))), atol=0.02)


def test_nor_on_random_graphs_with_hubs_and_dense_parts() -> None:
    generator = np.random.default_rng()
    for _ in range(150):
        nodes = int(generator.integers(4, 36))
        joined = generator.random((nodes, nodes)) < generator.choice([0.05, 0.2, 0.5, 0.9])
        joined[: generator.integers(4)] = True
        dense = generator.integers(nodes)
        joined[:dense, :dense] |= generator.random() < 0.3
        edges = np.argwhere(np.triu(joined, 1))
        if not len(edges):
            continue
        cap = Fraction(int(generator.choice([10, 27, 59])), 8)
        fewer = np.delete(edges, generator.integers(len(edges)), 0)
        before, after = (
            rounded_place(tulle.Graph.from_edges(one, nodes=nodes), STEPS, cap)
            for one in (fewer, edges)
        )
        assert -2 * STEPS * TOLERANCE - 1 <= after - before <= scale_sensitivity(), edges.tolist()


@pytest.mark.parametrize("graph", [crossed(3, 40), crossed(6, 9), barabasi_albert(60, 3, seed=2)])
def test_nor_where_the_cap_is_felt(graph: tulle.Graph) -> None:
    generator = np.random.default_rng(1)
    before = rounded_place(graph)
    for row in generator.choice(len(graph.edges()), size=12, replace=False):
        other = tulle.Graph.from_edges(np.delete(graph.edges(), row, 0), nodes=graph.node_count)
        assert abs(before - rounded_place(other)) <= scale_sensitivity()


def test_it_is_the_largest_eigenvalue_where_no_edge_holds_much() -> None:
    for graph in all_graphs(4):
        assert scaled(spread_value(4, graph.edges())) <= scaled(largest(graph)) + float(TOLERANCE)
    clique = tulle.Graph.from_edges(list(combinations(range(12), 2)), nodes=14)
    star = tulle.Graph.from_edges([(0, leaf) for leaf in range(1, 50)], nodes=60)
    for graph in (clique, star, watts_strogatz(300, 8, 0.1, seed=1)):
        found = spread_value(graph.node_count, graph.edges())
        assert abs(scaled(found) - scaled(largest(graph))) <= float(TOLERANCE)
    hubs = barabasi_albert(300, 4, seed=1)
    assert 0.99 < spread_value(300, hubs.edges()) / largest(hubs) < 1


def test_the_cap_is_felt_as_a_search_along_one_line_finds() -> None:
    """Nodes of the clique are alike, and so are leaves: one number says who holds what."""
    from scipy.optimize import minimize_scalar

    cores, leaves = 3, 100
    graph = crossed(cores, leaves)
    found = spread_value(graph.node_count, graph.edges())
    level = float(CAP) / found

    def lost(held: float) -> float:
        inner, outer = held / cores, (1 - held) / (cores * leaves)
        products = np.array([inner, np.sqrt(inner * outer)])
        return -2 * level * float(np.array([3, cores * leaves]) @ capped(products / level))

    best = minimize_scalar(lost, bounds=(0.01, 0.99), method="bounded")
    assert found < largest(graph) - 0.05
    assert -best.fun == pytest.approx(found, abs=2 * float(TOLERANCE))


def test_a_larger_eigenvalue_is_never_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    # A search that stays where it begins: in the smaller of two cliques.
    pairs = [*combinations(range(6), 2), *combinations(range(6, 20), 2)]
    graph = tulle.Graph.from_edges(pairs, nodes=25)

    def stays(self: Any, residual: float, start: Any = None) -> tuple[float, Any]:
        vector = np.zeros(25)
        vector[:6] = 6**-0.5
        return float(vector @ (self.matrix @ vector)), vector

    monkeypatch.setattr(spread._Problem, "leading", stays)
    assert spread_value(25, graph.edges()) == pytest.approx(13, abs=0.01)


def test_the_cap_is_concave_and_its_slope_is_right() -> None:
    ratios = np.linspace(0, 2, 2001)
    assert np.all(np.diff(capped(ratios), 2) <= 1e-12)
    assert capped(ratios).max() == 1
    middle = (ratios[1:] + ratios[:-1]) / 2
    assert np.allclose(np.diff(capped(ratios)) / np.diff(ratios), slope(middle), atol=1e-3)
    assert float(CAP) * (1 - SOFT) == 1


def test_noise_is_of_the_stated_size(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = barabasi_albert(40, 3, seed=1)
    exact = rounded_place(graph)
    monkeypatch.setattr(spread, "rounded_place", lambda graph: exact)
    drawn = [measured_square(graph, Fraction(2), None) for _ in range(600)]
    square = spread_value(40, graph.edges()) ** 2
    assert np.mean([value for value, _ in drawn]) == pytest.approx(square, abs=0.3 * drawn[0][1])
    errors = np.array([value - square for value, _ in drawn])
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(drawn[0][1], rel=0.25)
    assert drawn[0][1] == pytest.approx(2**0.5 * 4 * float(CAP) * scale_sensitivity() / STEPS / 2)
    measured_square(graph, Fraction(1, 10**12), None)


def test_graphs_without_edges_and_with_one() -> None:
    assert spread_value(3, np.empty((0, 2), dtype=np.int64)) == 0
    assert spread_value(2, np.array([[0, 1]])) == pytest.approx(1, abs=0.05)


def star(leaves: int) -> Any:
    return np.column_stack([np.zeros(leaves, dtype=np.int64), np.arange(1, leaves + 1)])


def shapes(generator: np.random.Generator) -> Any:
    """Return the edges of a random graph of one of several shapes, and how many nodes it has."""
    nodes = int(generator.integers(3, 90))
    kind = generator.integers(5)
    joined = generator.random((nodes, nodes)) < generator.choice([0.02, 0.1, 0.4, 0.95])
    if kind == 1:  # hubs
        joined[: generator.integers(1, 4)] |= generator.random((1, nodes)) < 0.9
    elif kind == 2:  # cliques of several sizes, side by side
        block = np.sort(generator.integers(0, 6, size=nodes))
        joined = block[:, None] == block
    elif kind == 3:  # a clique at the end of a path
        core = generator.integers(nodes)
        joined = np.abs(np.subtract.outer(np.arange(nodes), np.arange(nodes))) == 1
        joined[:core, :core] = True
    elif kind == 4:  # a star of stars
        parent = generator.integers(0, np.maximum(np.arange(nodes) // 5, 1))
        joined = np.zeros((nodes, nodes), dtype=bool)
        joined[parent[1:], np.arange(1, nodes)] = True
    return np.argwhere(np.triu(joined, 1)), nodes


def test_it_ends_within_its_tolerance_and_far_from_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spread, "ROUNDS", 200)
    generator = np.random.default_rng()
    for _ in range(150):
        edges, nodes = shapes(generator)
        cap = Fraction(int(generator.choice([10, 27, 59])), 8)
        if len(edges):
            low, high = proved_bounds(nodes, edges, cap)
            assert scaled(high, cap) - scaled(low, cap) <= TOLERANCE, edges.tolist()


@pytest.mark.parametrize("stalled", ["rounds", "steps", "proofs"])
def test_where_floats_show_no_progress_exact_numbers_go_on(
    stalled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = crossed(3, 40)
    exact = spread_value(graph.node_count, graph.edges())
    monkeypatch.setattr(spread, "_POWERS", 0)
    if stalled == "rounds":
        monkeypatch.setattr(spread, "ROUNDS", 1)
    elif stalled == "steps":  # none gains anything: the same place for ever
        monkeypatch.setattr(spread._Problem, "step", lambda self, shares, direction: shares)
    else:
        unproved = spread._Found(False, np.full(graph.node_count, 1.0))
        monkeypatch.setattr(spread._Problem, "refuted", lambda *given: unproved)
    low, high = proved_bounds(graph.node_count, graph.edges())
    assert low - 0.01 <= exact <= high + 0.01
    assert scaled(high) - scaled(low) <= TOLERANCE
    # Broken version: the bounds that floats have.
    monkeypatch.setattr(spread, "_exact_bounds", lambda *given: (0.0, 0.0))
    assert proved_bounds(graph.node_count, graph.edges()) == (0.0, 0.0)


def test_rounding_hides_no_proof_where_a_node_has_many_neighbours() -> None:
    """A star of 300,000 leaves was searched for ever: its hub's sum has as many terms."""
    leaves = 300_000
    problem = spread._Problem(leaves + 1, star(leaves), float(CAP))
    value = leaves**0.5
    margin = float(TOLERANCE) / (8 * value / (2 * float(CAP)))
    vector = np.full(leaves + 1, (2 * leaves) ** -0.5)
    vector[0] = 2**-0.5
    assert problem.refuted(value + margin, value, vector).proved
    assert not problem.refuted(value - margin, value - 2 * margin, vector).proved
    # A bound that grows with the number of neighbours, as it would be for 10^8 of them.
    problem.rounding = (10**8 + 4) * 2.0**-51
    assert not problem.refuted(value + margin, value, vector).proved


def test_products_are_added_up_in_blocks() -> None:
    generator = np.random.default_rng()
    for edges, nodes in [*(shapes(generator) for _ in range(20)), (star(5000), 5001)]:
        if not len(edges):
            continue
        problem = spread._Problem(nodes, edges, float(CAP))
        problem.weigh(generator.random(len(edges)))
        column = generator.random(nodes)
        exact = [
            sum(
                (Fraction(w) * Fraction(column[place]) for w, place in zip(data, row, strict=True)),
                Fraction(0),
            )
            for row, data in (
                (problem.matrix.indices[a:b], problem.matrix.data[a:b])
                for a, b in zip(problem.matrix.indptr, problem.matrix.indptr[1:], strict=False)
            )
        ]
        for found, true in zip(problem.times(column).tolist(), exact, strict=True):
            assert abs(Fraction(found) - true) <= Fraction(problem.rounding) * true
