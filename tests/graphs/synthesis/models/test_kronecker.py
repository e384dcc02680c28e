"""The model kronecker: a stochastic Kronecker graph with private moments, for any n."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tulle.graphs.generators import all_graphs
from tulle.graphs.kernels.counts import count_triangles, degrees
from tulle.graphs.synthesis.models.kronecker import drop_edges, expected_counts, fit_parameters
from tulle.noise import SeededSource
from tulle.noise.post_processing import post_processing


def test_kronecker_moments_by_counting_all_graphs():
    """The formulas against expectations over every graph on four nodes."""
    a, b, c = 0.9, 0.5, 0.2
    base = np.array([[a, b], [b, c]])
    chance = np.kron(base, base)
    expected = np.zeros(4)
    for graph in all_graphs(4):
        joined = np.zeros((4, 4), dtype=bool)
        for u, v in graph.edges():
            joined[u, v] = True
        upper = np.triu_indices(4, 1)
        weight = np.prod(np.where(joined[upper], chance[upper], 1 - chance[upper]))
        degree = degrees(graph)
        counts = [
            graph.edge_count,
            (degree * (degree - 1) // 2).sum(),
            (degree * (degree - 1) * (degree - 2) // 6).sum(),
            count_triangles(graph),
        ]
        expected += weight * np.array(counts)
    assert expected_counts(np.array([a, b, c]), 2) == pytest.approx(expected)


@pytest.mark.parametrize("nodes", [100, 128, 300])
def test_kronecker_recovers_its_parameters_for_any_n(nodes):
    random = post_processing(SeededSource(1))
    true = np.array([0.95, 0.55, 0.3])
    power = (nodes - 1).bit_length()
    survive = [math.prod((nodes - i) / (2**power - i) for i in range(j)) for j in (2, 3, 4, 3)]
    wanted = expected_counts(true, power) * np.array(survive)
    found = fit_parameters(wanted, nodes, True)
    assert found == pytest.approx(true, abs=0.02)
    edges = drop_edges(found, nodes, round(wanted[0]), random)
    assert len(edges) == round(wanted[0])
    assert edges.max() < nodes


def test_kronecker_keeps_degrees_where_triangles_are_out_of_reach():
    """As on any clustered graph: the counts that can be had are had, within a few per cent."""
    nodes, power = 5241, 13
    wanted = np.array([14_484.0, 229_867.0, 2_482_738.0, 48_260.0])
    survive = [math.comb(nodes, j) / math.comb(2**power, j) for j in (2, 3, 4, 3)]
    found = expected_counts(fit_parameters(wanted, nodes, True), power) * np.array(survive)
    assert found[:3] == pytest.approx(wanted[:3], rel=0.05)
    assert found[3] < wanted[3] / 10
