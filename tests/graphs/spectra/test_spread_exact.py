"""The spread value in whole numbers: it ends within what is asked, wherever it begins."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.graphs.spectra.test_spread import crossed, shapes

from tulle.graphs.spectra import spread_exact
from tulle.graphs.spectra.spread import CAP, SOFT, TOLERANCE, capped, proved_bounds, scaled, slope
from tulle.graphs.spectra.spread_exact import ExactProblem

ONE = spread_exact._ONE


def problem(nodes: int, edges: Any, cap: Fraction = CAP) -> ExactProblem:
    return ExactProblem(nodes, edges, cap, Fraction(str(SOFT)))


def test_it_agrees_with_floats_from_any_start() -> None:
    generator = np.random.default_rng()
    for _ in range(12):
        edges, nodes = shapes(generator)
        if not len(edges) or nodes > 50:
            continue
        cap = Fraction(int(generator.choice([10, 27, 59])), 8)
        shares = generator.choice([0.0, 1.0], size=nodes)
        shares[edges[0]] = 1.0
        wanted = float(TOLERANCE) / 8
        low, high = problem(nodes, edges, cap).bounds(shares, lambda value, w=wanted: w)
        assert high - low <= wanted * (1 + 1e-9)
        below, above = proved_bounds(nodes, edges, cap)
        assert max(low, below) <= min(high, above) + 1e-9, edges.tolist()


def test_caps_and_slopes_are_those_of_floats() -> None:
    held = problem(2, np.array([[0, 1]]))
    ratios = np.linspace(0, 2, 301)
    level = ONE // 7
    products = spread_exact._objects([int(Fraction(ratio) * level) for ratio in ratios])
    found = [float(Fraction(one, level)) for one in held.capped(products, level).tolist()]
    assert np.allclose(found, capped(ratios), atol=1e-15)
    felt, length = held.beyond(products, level)
    slopes = [1 - float(Fraction(one, length)) for one in felt.tolist()]
    assert np.allclose(slopes, slope(ratios), atol=1e-15)


def test_counted_steps_find_the_largest_eigenvalue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it belongs to a part that begins with little, and with no proof on the way."""
    generator = np.random.default_rng(4)
    for edges, nodes in [(np.array([[0, 1], [0, 2], [3, 4]]), 9), *map(shapes, [generator] * 6)]:
        if not len(edges) or nodes > 40:
            continue
        weights = spread_exact._objects([int(w * ONE) for w in generator.random(len(edges))])
        matrix = np.zeros((nodes, nodes))
        matrix[edges[:, 0], edges[:, 1]] = [float(Fraction(w, ONE)) for w in weights]
        true = float(np.linalg.eigvalsh(matrix + matrix.T)[-1])
        for margin in (0.5, 0.02):
            value, _ = problem(nodes, edges).largest(weights, int(margin * ONE))
            assert true - margin - 1e-12 <= float(Fraction(value, ONE)) <= true + 1e-12
    # Broken version: no steps.
    edges, weights = np.array([[0, 1], [2, 3], [3, 4], [2, 4]]), spread_exact._objects([ONE] * 4)
    assert float(Fraction(problem(9, edges).largest(weights, ONE // 9)[0], ONE)) > 1.8
    monkeypatch.setattr(spread_exact.math, "log", lambda parts: 0.0)
    assert float(Fraction(problem(9, edges).largest(weights, ONE // 9)[0], ONE)) < 1.8


def test_an_exact_search_ends_where_the_cap_is_felt() -> None:
    graph = crossed(3, 20)
    shares = np.zeros(graph.node_count)
    shares[:2] = 0.5
    held = problem(graph.node_count, graph.edges())
    low, high = held.bounds(shares, lambda value: float(TOLERANCE) / 4)
    assert scaled(high) - scaled(low) <= TOLERANCE
