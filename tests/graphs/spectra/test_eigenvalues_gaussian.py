"""Eigenvalues with Gaussian noise: one edge moves all of them together by at most sqrt(2)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import tulle
from tulle.graphs.spectra import eigenvalues_laplace


def test_computed_values_move_by_no_more_than_the_noise_is_for(monkeypatch):
    """All graphs of four nodes and their neighbours, and random ones, through the search."""
    from itertools import combinations

    from tulle.core.mechanism import Terms
    from tulle.graphs.spectra.eigenvalues_gaussian import EigenGauss

    monkeypatch.setattr(eigenvalues_laplace, "LARGEST_SOLVED", 3)
    pairs = list(combinations(range(4), 2))
    graphs = [
        [pair for place, pair in enumerate(pairs) if number >> place & 1] for number in range(64)
    ]
    cases = [(4, edges, pair) for edges in graphs for pair in pairs if pair not in edges]
    generator = np.random.default_rng(4)
    every = list(combinations(range(12), 2))
    for _ in range(30):
        drawn = [pair for pair in every if generator.random() < 0.4]
        cases.append((12, drawn[1:], drawn[0]))
    for mechanism, order in ((eigenvalues_laplace.EigenLaplace(), 1), (EigenGauss(), 2)):
        farthest = 0.0
        for nodes, edges, pair in cases:
            one = tulle.Graph.from_edges(edges, nodes=nodes)
            other = tulle.Graph.from_edges([*edges, pair], nodes=nodes)
            unit = one.check_unit("edge")
            asked = tulle.eigenvalues(3), unit, Fraction(1), Fraction(1, 100), one.facts(unit)
            settings = mechanism.settings(Terms(*asked), {})
            assert "missing" in settings
            moved = np.abs(
                eigenvalues_laplace.snapped(one, settings)
                - eigenvalues_laplace.snapped(other, settings)
            )
            share = np.linalg.norm(moved, ord=order) / float(Fraction(settings["sensitivity"]))
            farthest = max(farthest, float(share))
        assert 0.9 < farthest <= 1
