"""Quotients of public vectors: what one edge moves them by, and values that rest on them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tulle
from tulle.graphs.generators import all_graphs
from tulle.graphs.spectra import quotients, response
from tulle.graphs.spectra.queries import adjacency
from tulle.graphs.spectra.quotients import (
    exact_quotients,
    measured_quotients,
    quotient_sensitivity,
    whole_columns,
)
from tulle.noise import SeededSource


def drawn_columns(seed: int, nodes: int, k: int) -> Any:
    generator = np.random.default_rng(seed)
    columns = generator.normal(size=(nodes, k)) * generator.exponential(size=(nodes, 1))
    return whole_columns(columns / np.linalg.norm(columns, axis=0), Fraction(1))


def largest_move(columns: Any) -> int:
    """Return the most that any edge moves the quotients, over all graphs and edges."""
    nodes, worst = len(columns), 0
    for graph in all_graphs(nodes):
        before = exact_quotients(graph, columns)
        edges = {tuple(edge) for edge in graph.edges().tolist()}
        for pair in zip(*np.triu_indices(nodes, 1), strict=True):
            listed = sorted(edges ^ {(int(pair[0]), int(pair[1]))})
            other = tulle.Graph.from_edges(np.array(listed).reshape(-1, 2), nodes=nodes)
            worst = max(worst, int(np.abs(before - exact_quotients(other, columns)).sum()))
    return worst


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_sensitivity_bounds_every_move_and_is_attained_by_one_column(k: int) -> None:
    for seed in range(2):
        columns = drawn_columns(seed, 4, k)
        bound = quotient_sensitivity(columns)
        moved = largest_move(columns)
        assert moved <= bound
        if k == 1:
            assert moved == bound
        # Broken version: the entries of a typical node.
        typical = int(np.median((columns**2).sum(axis=1)))
        assert moved > 2 * typical or k > 1


def test_quotients_are_those_of_the_matrix() -> None:
    graph = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)], nodes=5)
    columns = drawn_columns(5, 5, 3) / 4096
    found, deviations = measured_quotients(graph, columns, Fraction(10**9), SeededSource(1))
    matrix = adjacency(graph).toarray()
    exact = np.diag(columns.T @ matrix @ columns) / (columns**2).sum(axis=0)
    assert np.allclose(found, exact, atol=1e-3)
    assert (deviations < 1e-6).all()


def test_noise_has_the_deviation_that_is_said() -> None:
    graph = tulle.Graph.from_edges([(0, 1)], nodes=4)
    column = np.array([[0.5], [0.5], [0.5], [0.5]])
    drawn = [measured_quotients(graph, column, Fraction(2), None) for _ in range(400)]
    spread = float(np.std([value[0] for value, _ in drawn]))
    assert 0.8 < spread / float(drawn[0][1][0]) < 1.2
    # An edge moves it by 2·(1/2)² of 1, so the scale is a quarter at epsilon 2.
    assert 0.8 < spread / (np.sqrt(2) / 4) < 1.2


@pytest.mark.parametrize("broken", [False, True])
def test_values_are_near_the_truth_where_vectors_show(
    broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dense part in a thin network. Broken: nothing that was measured is true."""
    generator = np.random.default_rng(4)
    chance = np.full((500, 500), 0.01)
    chance[:60, :60] = 0.7
    pairs = np.argwhere(np.triu(generator.random((500, 500)) < chance, 1))
    graph = tulle.Graph.from_edges(pairs, nodes=500)
    true = tulle.spectrum(1).truth(graph).values[0]
    if broken:
        monkeypatch.setattr(
            response,
            "measured_quotients",
            lambda graph, columns, *_: (np.zeros(columns.shape[1]),) * 2,
        )
    asked: dict[str, Any] = {"unit": "edge", "epsilon": 2.0, "mechanism": "spectral_response"}
    asked |= {"quotient_share": "1/40", "spread_share": 0}
    off = [
        abs(tulle.release(graph, tulle.spectrum(1), **asked).value.values[0] - true)
        for _ in range(6)
    ]
    assert (np.mean(off) < 0.1 * true) != broken, off


def test_rounding_follows_a_tiny_epsilon() -> None:
    columns = np.array([[0.6], [0.8]])
    for exponent in (0, 5, 9, 11):
        epsilon = Fraction(1, 10**exponent)
        whole = whole_columns(columns, epsilon)
        assert whole.any()
        assert quotient_sensitivity(whole) / epsilon <= 2 * quotients._LARGEST_SCALE
