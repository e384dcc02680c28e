"""Communities from a released spectrum."""

import numpy as np
import pytest

import tulle
from tulle.core.errors import InputError
from tulle.graphs.spectra.communities import UNPLACED, find_communities
from tulle.graphs.spectra.queries import Spectrum
from tulle.metrics.communities import mutual_information
from tulle.noise import SeededSource


def groups(sizes, inside, across, seed=3):
    """A graph of groups and the group of each node."""
    draw = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    chance = np.where(group[:, None] == group, inside, across)
    nodes = len(group)
    pairs = np.argwhere(np.triu(draw.random((nodes, nodes)) < chance, 1))
    return tulle.Graph.from_edges(pairs, nodes=nodes), group


def test_true_vectors_show_the_groups():
    graph, group = groups([70, 50, 40], 0.5, 0.02)
    found = tulle.spectrum(3).truth(graph).communities()
    assert mutual_information(found, group) > 0.95
    # Numbered by size, and the same each time.
    assert np.all(np.diff(np.bincount(found)) <= 0)
    assert np.array_equal(found, tulle.spectrum(3).truth(graph).communities())


def test_released_vectors_show_the_groups():
    graph, group = groups([60, 60], 0.5, 0.02)
    r = tulle.release(graph, tulle.spectrum(2), unit="edge", epsilon=8.0, source=SeededSource(2))
    assert r.value.informative == 2
    assert mutual_information(r.value.communities(), group) > 0.8
    stored = tulle.Release.from_json(r.to_json())
    assert np.array_equal(stored.value.communities(), r.value.communities())


def test_vectors_below_the_noise_are_left_out():
    draw = np.random.default_rng(1)
    clean = np.repeat(np.eye(2), 20, axis=0) / np.sqrt(20)
    noise = draw.normal(size=(40, 1))
    vectors = np.concatenate([clean, noise / np.linalg.norm(noise)], axis=1)
    found = Spectrum(np.array([9.0, 8.0, 3.0]), vectors, 4.0)
    assert found.informative == 2
    labels = find_communities(found)
    assert mutual_information(labels, np.repeat([0, 1], 20)) == 1
    assert find_communities(found, 5).max() <= 4


def test_nodes_without_a_trace_are_unplaced():
    vectors = np.zeros((6, 1))
    vectors[:3] = 1 / np.sqrt(3)
    labels = find_communities(Spectrum(np.array([2.0]), vectors))
    assert labels.tolist() == [0, 0, 0, UNPLACED, UNPLACED, UNPLACED]
    drowned = Spectrum(np.array([2.0]), vectors, 5.0)
    assert drowned.informative == 0
    assert set(drowned.communities().tolist()) == {UNPLACED}


@pytest.mark.parametrize("count", [0, -1, 1.5, "2", 7])
def test_refusals(count):
    with pytest.raises(InputError, match="count must be"):
        find_communities(Spectrum(np.ones(1), np.ones((6, 1))), count)


def test_more_communities_than_points():
    vectors = np.eye(4)[:, :2]
    assert find_communities(Spectrum(np.ones(2), vectors), 4).tolist() == [0, 1, -1, -1]
