"""How alike the degrees of joined nodes are: the bound on all small graphs, and what it says."""

import math

import numpy as np
import pytest
from tests.graphs.synthesis_reference import most_moved

import tulle
from tulle.graphs.generators import barabasi_albert, social_network
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.synthesis.auto.model import STEP, correlation_moves
from tulle.graphs.synthesis.generators.joint_fit import fit_joint
from tulle.graphs.synthesis.joint_degrees.classes import soft_classes
from tulle.graphs.synthesis.joint_degrees.scores import ScoredEdges, degree_scores
from tulle.noise import SeededSource, post_processing

SCALES = [(middle, width) for middle in (-1.0, 0.0, 0.7, 1.1, 3.0) for width in (0.7, 1.2, 3.0)]


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
@pytest.mark.parametrize(("middle", "width"), SCALES)
def test_no_edge_moves_the_products_by_more_than_the_bound(nodes, middle, width):
    scores = degree_scores(nodes, middle, width)
    assert most_moved(nodes, lambda g: scores.measure(g, STEP)) <= correlation_moves(scores)


def test_the_bound_is_reached():
    nearest = [
        most_moved(5, lambda g, scores=scores: scores.measure(g, STEP)) / correlation_moves(scores)
        for scores in (degree_scores(5, middle, width) for middle, width in SCALES)
    ]
    assert max(nearest) > 0.8


@pytest.mark.parametrize("nodes", [10**3, 10**5])
def test_the_bound_is_small_however_many_nodes_there_are(nodes):
    assert degree_scores(nodes, math.log(10), 0.7).sensitivity() < 4


def test_products_are_those_of_each_edge():
    graph = social_network(300, seed=1)
    scores = degree_scores(300, 2.0, 1.5)
    ends = scores.of(degrees(graph)[graph.edges()])
    assert scores.measure(graph, STEP) * float(STEP) == pytest.approx(
        float(ends.prod(axis=1).sum()), abs=float(STEP)
    )
    assert scores.measure(tulle.Graph.from_edges([], nodes=300), STEP) == 0


def along(joint, scores):
    score = scores.of(joint.degrees)
    return float(score @ np.triu(joint.edges) @ score)


@pytest.mark.parametrize("towards", [-0.3, 0.3])
def test_joint_degrees_follow_the_products_as_far_as_noise_lets_them(towards):
    degree = degrees(barabasi_albert(2000, 3, seed=1))
    scores = degree_scores(2000, math.log(6), 1.2)
    classes = soft_classes(2000, 4)
    nothing = np.zeros((classes.count, classes.count))

    def fitted(correlation):
        random = post_processing(SeededSource(2))
        return along(fit_joint(degree, nothing, math.inf, classes, random, correlation), scores)

    chance = fitted(None)
    ends = scores.of(degree)
    variance = float(degree @ ends**2 - (degree @ ends) ** 2 / degree.sum()) / 2
    wanted = chance + towards * variance
    near, far = (fitted(ScoredEdges(scores, wanted, noise)) for noise in (1.0, 1e9))
    assert near == pytest.approx(wanted, abs=0.03 * variance)
    assert far == pytest.approx(chance, abs=0.03 * variance)
