"""Eigenvectors of a released topology: every pair of nodes flipped by its own coin."""

import numpy as np
import pytest

import tulle
from tulle.graphs.data import Graph
from tulle.graphs.generators import social_network
from tulle.graphs.spectra.queries import (
    Spectrum,
    adjacency,
    spectrum,
)
from tulle.graphs.spectra.response import FlippedMatrix, core_of, entry_noise, noise_bulk
from tulle.graphs.topology.response import topology
from tulle.noise import SeededSource


def test_a_core_reads_only_pairs_within_it():
    """Two graphs that differ outside the core give the same release from the same coins."""
    dense = [(u, v) for u in range(12) for v in range(u)]
    one = Graph.from_edges(dense, nodes=40)
    other = Graph.from_edges([*dense, (38, 39)], nodes=40)
    drawn = [
        tulle.release(
            graph,
            spectrum(1),
            unit="edge",
            epsilon=200.0,
            mechanism="spectral_response",
            core=12,
            source=SeededSource(3),
        )
        for graph in (one, other)
    ]
    assert drawn[0].value == drawn[1].value
    assert np.all(drawn[0].value.vectors[12:] == 0)
    assert drawn[0].value.values[0] == pytest.approx(11, abs=0.01)
    assert core_of(np.array([1, 5, 5, 0]), 2).tolist() == [1, 2]


def test_flipped_matrix_is_unbiased_and_piecewise_the_same(monkeypatch):
    graph = social_network(70, seed=2)
    true = topology().truth(graph)
    dense = adjacency(graph).toarray().astype(float)
    columns = np.random.default_rng(1).normal(size=(70, 3))
    whole = FlippedMatrix(true, 0.2)
    off = 0.2 * (np.ones((70, 70)) - np.eye(70))
    expected = (dense - off) @ columns / 0.6
    assert np.allclose(whole @ columns, expected, atol=1e-4)
    monkeypatch.setattr("tulle.graphs.spectra.response.LARGEST_HELD", 10)
    monkeypatch.setattr("tulle.graphs.spectra.response._PIECE", 16)
    pieces = FlippedMatrix(true, 0.2)
    assert np.allclose(pieces @ columns, expected, atol=1e-4)
    places = np.array([40, 3, 69, 11, 2])
    for matrix in (whole, pieces):
        part = matrix.part(places) @ np.eye(5)
        assert np.allclose(part, ((dense - off) / 0.6)[np.ix_(places, places)], atol=1e-5)


def test_the_noise_bulk_is_where_noise_ends():
    empty = Graph.from_edges([], nodes=400)
    r = tulle.release(
        empty, topology(), unit="edge", epsilon=1.0, mechanism="response", source=SeededSource(1)
    )
    flip = 1 / (1 + np.e)
    noisy = (r.value.to_scipy().toarray() - flip * (1 - np.eye(400))) / (1 - 2 * flip)
    top = np.linalg.eigvalsh(noisy)[-1]
    assert top == pytest.approx(noise_bulk(flip, 400), rel=0.05)
    assert entry_noise(flip) == pytest.approx(0.96, abs=0.005)
    assert Spectrum(np.array([100.0, 1.0]), np.eye(2), noise_bulk(flip, 400) / 2).informative == 1
