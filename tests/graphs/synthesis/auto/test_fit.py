"""A graph that shows the private counts: what holds it together."""

from __future__ import annotations

import numpy as np
import pytest

import tulle
from tulle.graphs.kernels.counts import count_triangles, degrees
from tulle.graphs.synthesis.auto import fit
from tulle.graphs.synthesis.auto.fit import largest_part
from tulle.graphs.synthesis.auto.model import STEP, mixing_classes
from tulle.graphs.synthesis.edge_counts import closed_picks
from tulle.graphs.synthesis.generators.affinity import FixedParts
from tulle.graphs.synthesis.generators.mixing import MixingCounts
from tulle.graphs.synthesis.generators.tuning import Aim, Aims, Target, TriangleTargets, off_by
from tulle.graphs.synthesis.joint_degrees.classes import unpack
from tulle.metrics import measure_distances
from tulle.noise import SeededSource
from tulle.noise.post_processing import post_processing

LIMIT = 8


def papers(authors, count, seed):
    """Return who wrote a paper with whom; who wrote more before writes more."""
    draw = np.random.default_rng(seed)
    wrote, edges = list(range(authors)), []
    for _ in range(count):
        team = {int(one) for one in draw.choice(wrote, size=int(draw.integers(2, 6)))}
        edges += [(one, two) for one in team for two in team if one < two]
        wrote += 2 * list(team)
    return tulle.Graph.from_edges(sorted(set(edges)), nodes=authors)


def counts(graph):
    """Return the exact degrees and counts of a graph, as the model has noisy ones."""
    classes = mixing_classes(graph.node_count)
    mixing = unpack(classes.measure(graph, STEP) * float(STEP), classes.count)
    frame = FixedParts(
        degrees(graph),
        np.zeros(graph.node_count, dtype=np.int64),
        np.array([[float(graph.edge_count)]]),
    )
    targets = TriangleTargets(
        Target(count_triangles(graph), 1.0),
        Target(closed_picks(graph, LIMIT), 1.0),
        LIMIT,
        MixingCounts(classes, mixing, 1.0),
    )
    return frame, targets


def made(graph, seed):
    """Return a graph with the counts of another."""
    edges = fit.fit_graph(*counts(graph), post_processing(SeededSource(seed)))
    return tulle.Graph.from_edges(edges, nodes=graph.node_count)


def held_together(graph):
    """Return the size of the largest connected part of a graph."""
    return largest_part(graph.edges(), graph.node_count)


def test_people_who_write_together_stay_connected(monkeypatch):
    truth = papers(3000, 1800, 1)
    graph = made(truth, 2)
    monkeypatch.setattr(fit, "largest_part", lambda edges, nodes: 0)
    grouped = made(truth, 2)
    assert count_triangles(graph) == pytest.approx(count_triangles(truth), rel=0.02)
    whole, held, groups = (held_together(one) for one in (truth, graph, grouped))
    assert held == pytest.approx(whole, rel=0.03)
    assert groups < 0.9 * whole
    assert measure_distances(graph).mean == pytest.approx(measure_distances(truth).mean, rel=0.05)


def test_largest_part():
    assert largest_part(np.array([(0, 1), (1, 2), (3, 4)]), 6) == 3
    assert largest_part(np.empty((0, 2), dtype=np.int64), 2) == 1


@pytest.mark.parametrize("edges", [[], [(0, 1)]])
def test_a_graph_with_hardly_an_edge_has_a_score(edges):
    edges = np.array(edges, dtype=np.int64).reshape(-1, 2)
    aims = Aims(triangles=Aim(1), products=Aim(4.0))
    assert np.isfinite(off_by(edges, np.zeros(3, dtype=np.int64), aims))
