"""What the model auto draws a graph with: degrees, blocks, mixing and triangles."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import tulle
from tulle.graphs.generators import erdos_renyi, social_network
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.synthesis.auto.model import (
    STEP,
)
from tulle.graphs.synthesis.edge_counts import (
    pair_counts,
)
from tulle.graphs.synthesis.estimates.blocks import chance_modularity, find_blocks, square_of
from tulle.graphs.synthesis.generators.affinity import FixedParts, Knobs, draw_affinity
from tulle.graphs.synthesis.generators.mixing import MixingCounts
from tulle.graphs.synthesis.generators.swapping import steer
from tulle.graphs.synthesis.joint_degrees.classes import soft_classes, unpack
from tulle.noise import SeededSource
from tulle.noise.post_processing import post_processing


def test_swaps_bring_about_the_mixing_and_keep_the_rest():
    random = post_processing(SeededSource(2))
    graph = erdos_renyi(300, 0.05, seed=1)
    blocks = np.arange(300) % 2
    classes = soft_classes(300, Fraction(2))
    degree = degrees(graph)
    # The true table agrees with the one that is measured.
    true = unpack(classes.measure(graph, STEP) * float(STEP), classes.count)
    mixing = MixingCounts(classes, true, 0.5)
    assert mixing.table(graph.edges(), degree) == pytest.approx(true, abs=0.01)
    assert mixing.misfit(true) == 0
    # More edges between likes: the largest cells of the diagonal grow, and their row stays.
    wanted = true.copy()
    one, two = np.argsort(-true.sum(axis=1))[:2]
    more = 0.2 * true[one, two]
    wanted[[one, two], [one, two]] += more
    wanted[[one, two], [two, one]] -= more
    asked = mixing._replace(wanted=wanted)
    edges = steer(graph.edges().copy(), 0, degree, blocks, asked, 400_000, random)
    made = tulle.Graph.from_edges(edges, nodes=300)
    assert made.edge_count == graph.edge_count
    assert np.array_equal(degrees(made), degree)
    assert np.array_equal(pair_counts(made, blocks, 2), pair_counts(graph, blocks, 2))
    assert asked.misfit(asked.table(edges, degree)) < 0.3 * asked.misfit(true)


def test_cells_that_chance_leaves_empty_are_not_believed():
    classes = soft_classes(300, Fraction(2))
    chance = np.full((classes.count, classes.count), 1000.0)
    chance[0, 0] = 0.5
    noisy = chance + 40.0
    shrunk = MixingCounts(classes, noisy, 30.0).shrunk(chance).wanted
    assert shrunk[0, 0] < 1.0
    assert shrunk.sum(axis=1) == pytest.approx(chance.sum(axis=1), rel=1e-6)


def test_generated_graphs_have_the_degrees_and_the_edges_between_blocks():
    random = post_processing(SeededSource(2))
    graph = social_network(600, communities=3, seed=1)
    labels = np.arange(600) * 3 // 600
    counts = square_of(pair_counts(graph, labels, 3), 3)
    frame = FixedParts(degrees(graph), labels, counts)
    for knobs in (Knobs(0.0), Knobs(0.7, 0.5, 1.0), Knobs(2.5, -0.5, 0.1, 0.5)):
        made = tulle.Graph.from_edges(draw_affinity(frame, knobs, random), nodes=600)
        assert np.abs(degrees(made) - degrees(graph)).sum() <= 4
        found = square_of(pair_counts(made, labels, 3), 3)
        assert np.abs(found - counts).sum() <= 0.1 * counts.sum()


def test_blocks_are_found_refined_and_told_from_chance():
    random = post_processing(SeededSource(3))
    labels = np.repeat(np.arange(3), 8)
    counts = np.where(labels[:, None] == labels[None, :], 30.0, 4.0)
    noise = np.triu(random.laplace(0, 4, counts.shape))
    found, modularity = find_blocks(counts + noise + np.triu(noise, 1).T)
    assert len(np.unique(found)) == 3
    assert len(set(zip(found.tolist(), labels.tolist(), strict=True))) == 3
    flat = np.full((24, 24), 12.0) + noise + np.triu(noise, 1).T
    assert modularity - chance_modularity(counts, 4.0).mean > 0.2
    assert find_blocks(flat)[1] - chance_modularity(flat, 4.0).mean < 0.05
