"""Circles within circles: degrees, blocks and counts that the start of a graph must have."""

from fractions import Fraction

import numpy as np
import pytest

from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import count_triangles
from tulle.graphs.synthesis.auto.fit import aim_of, joint_of
from tulle.graphs.synthesis.edge_counts import closed_picks
from tulle.graphs.synthesis.generators.affinity import FixedParts, balance
from tulle.graphs.synthesis.generators.joint_fit import fit_joint
from tulle.graphs.synthesis.generators.kinds import Parts, sort_by_kind
from tulle.graphs.synthesis.generators.mixing import MixingCounts
from tulle.graphs.synthesis.generators.nested import Pull, draw_nested, fit_nested
from tulle.graphs.synthesis.generators.tuning import Target, TriangleTargets
from tulle.graphs.synthesis.joint_degrees.classes import soft_classes, unpack
from tulle.noise import SeededSource, post_processing

NODES = 600


def sequence(seed: int) -> np.ndarray:
    """Return degrees with a heavy tail, in no order, with some nodes alone."""
    drawn = np.floor(3 / np.sqrt(post_processing(SeededSource(seed)).random(NODES) + 0.003))
    drawn[:5] = 0
    drawn[-1] += drawn.sum() % 2
    return drawn.astype(np.int64)


def neutral_joint(degrees: np.ndarray, seed: int):
    grid = soft_classes(NODES, Fraction(4))
    nothing = np.zeros((grid.count, grid.count))
    return fit_joint(degrees, nothing, np.inf, grid, post_processing(SeededSource(seed)))


def test_names_have_the_degrees_of_their_kinds() -> None:
    degrees = sequence(1)
    kinds, names = sort_by_kind(
        neutral_joint(degrees, 1), degrees, post_processing(SeededSource(2))
    )
    assert (degrees[names] == kinds.room).all()
    assert sorted(names) == list(np.flatnonzero(degrees))
    ends = kinds.between.sum(axis=1) + np.diag(kinds.between)
    starts = np.append(0, np.cumsum(kinds.sizes)[:-1])
    assert (ends == np.add.reduceat(kinds.room, starts)).all()
    assert (np.diff(kinds.middle) > 0).all()


def test_kinds_of_blocks_have_the_edges_of_blocks_and_of_degrees() -> None:
    degrees = sequence(3)
    joint = neutral_joint(degrees, 3)
    blocks = np.arange(NODES) % 3
    half = degrees.sum() / 2
    counts = np.array([[0.3, 0.02, 0.05], [0.02, 0.28, 0.01], [0.05, 0.01, 0.26]]) * half
    kinds, names = sort_by_kind(
        joint, degrees, post_processing(SeededSource(4)), Parts(blocks, counts)
    )
    of_kind = np.repeat(np.arange(len(kinds.sizes)), kinds.sizes)
    assert (blocks[names] == kinds.blocks[of_kind]).all()
    assert (np.diff(kinds.blocks) >= 0).all()
    ends = kinds.between.sum(axis=1) + np.diag(kinds.between)
    assert (ends == np.bincount(of_kind, weights=kinds.room)).all()
    chosen = np.eye(3, dtype=np.int64)[kinds.blocks]
    upper = chosen.T @ np.triu(kinds.between) @ chosen
    # Blocks have no more or fewer ends than their nodes: the counts are balanced to that.
    wanted = balance(counts, np.bincount(blocks, weights=degrees))
    assert np.abs(upper + upper.T - wanted).max() < 0.01 * degrees.sum()


@pytest.mark.parametrize("level", [-9.0, 0.0, 9.0])
def test_a_nested_graph_is_simple_and_has_the_degrees(level: float) -> None:
    degrees = sequence(5)
    kinds, names = sort_by_kind(
        neutral_joint(degrees, 5), degrees, post_processing(SeededSource(6))
    )
    edges = names[draw_nested(kinds, Pull(level), post_processing(SeededSource(7)))]
    graph = Graph.from_edges(edges, nodes=NODES)
    assert graph.edge_count == len(edges)
    made = np.bincount(edges.ravel(), minlength=NODES)
    assert (made <= degrees).all()
    assert made.sum() >= degrees.sum() - 4


def test_a_stronger_pull_closes_more_triangles() -> None:
    degrees = sequence(8)
    kinds, _ = sort_by_kind(neutral_joint(degrees, 8), degrees, post_processing(SeededSource(9)))
    made = [
        count_triangles(
            Graph.from_edges(draw_nested(kinds, Pull(level), post_processing(SeededSource(10))))
        )
        for level in (-6.0, -1.0, 4.0)
    ]
    assert made[0] * 1.5 < made[1]
    assert made[1] * 1.5 < made[2]


def test_circles_stay_inside_blocks() -> None:
    degrees = np.full(400, 6)
    joint = neutral_joint(degrees, 11)
    blocks = np.arange(400) % 2
    counts = np.array([[500.0, 200.0], [200.0, 500.0]])
    kinds, names = sort_by_kind(
        joint, degrees, post_processing(SeededSource(12)), Parts(blocks, counts)
    )
    edges = names[draw_nested(kinds, Pull(9.0), post_processing(SeededSource(13)))]
    graph = Graph.from_edges(edges, nodes=400)
    across = blocks[edges[:, 0]] != blocks[edges[:, 1]]
    assert abs(int(across.sum()) - 200) <= 4
    inside = Graph.from_edges(edges[~across], nodes=400)
    # Edges across blocks close hardly any triangle, those inside nearly all.
    assert count_triangles(inside) > 0.9 * count_triangles(graph) > 100


def test_the_fit_reaches_what_a_nested_graph_has() -> None:
    degrees = sequence(14)
    kinds, names = sort_by_kind(
        neutral_joint(degrees, 14), degrees, post_processing(SeededSource(15))
    )
    edges = names[draw_nested(kinds, Pull(1.0, 0.5), post_processing(SeededSource(16)))]
    graph = Graph.from_edges(edges, nodes=NODES)
    grid, step = soft_classes(NODES, Fraction(4)), Fraction(1, 1024)
    table = unpack(grid.measure(graph, step) * float(step), grid.count)
    targets = TriangleTargets(
        Target(float(count_triangles(graph)), 1.0),
        Target(float(closed_picks(graph, 8)), 1.0),
        8,
        MixingCounts(grid, table, 1.0),
    )
    frame = FixedParts(degrees, np.zeros(NODES, dtype=np.int64), np.array([[degrees.sum() / 2]]))
    joint = joint_of(degrees, targets.mixing, post_processing(SeededSource(17)))
    fitted = fit_nested(frame, joint, targets, 0.8, post_processing(SeededSource(18)))
    assert fitted is not None
    assert abs(fitted.triangles) < 0.1
    assert abs(fitted.closure) < 0.1
    ends = degrees[graph.edges()].astype(float)
    true = float((ends[:, 0] * ends[:, 1]).sum())
    assert abs(aim_of(joint).value / true - 1) < 0.05


def test_the_fit_says_when_cliques_are_beyond_it() -> None:
    # Sixty cliques of ten: every node's clustering is one.
    degrees = np.full(NODES, 9)
    targets = TriangleTargets(Target(60 * 120.0, 1.0), Target(600.0, 1.0), 64, None)
    frame = FixedParts(degrees, np.zeros(NODES, dtype=np.int64), np.array([[2700.0]]))
    joint = neutral_joint(degrees, 19)
    assert fit_nested(frame, joint, targets, 0.95, post_processing(SeededSource(20))) is None
