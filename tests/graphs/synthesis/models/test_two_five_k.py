"""The model 2.5k: joint degrees, and how much nodes of each degree cluster."""

from fractions import Fraction

import numpy as np
import pytest

from tulle.graphs.generators import all_graphs, social_network
from tulle.graphs.queries.counts import Triangles
from tulle.graphs.synthesis.models.two_five_k import (
    ClusteredSettings,
    class_triangles,
    class_widths,
)


def clustered(nodes: int, class_ratio: Fraction) -> ClusteredSettings:
    one = Fraction(1)
    joint = {"ratio": one, "step": one, "scale": one, "joint_sensitivity": one, "joint_scale": one}
    return ClusteredSettings(
        nodes=nodes,
        class_ratio=class_ratio,
        decay=one,
        smoothing=one,
        class_decay=Fraction(1, 4),
        class_smoothing=Fraction(0),
        **joint,
    )


@pytest.mark.parametrize("ratio", ["3/2", "8"])
@pytest.mark.parametrize("nodes", [3, 4, 5])
def test_class_triangles_have_a_ladder(nodes, ratio):
    chosen = clustered(nodes, Fraction(ratio))
    found = {}
    for graph in all_graphs(nodes):
        key = graph.edges().tobytes()
        found[key] = class_triangles(chosen, graph), *class_widths(chosen, graph)
    for graph in all_graphs(nodes):
        counts, widths, most = found[graph.edges().tobytes()]
        assert abs(int(counts.sum()) - 3 * Triangles().truth(graph)) <= len(counts)
        for other in graph.neighbours("edge"):
            theirs, bounds, _ = found[other.edges().tobytes()]
            assert np.abs(theirs - counts).max() <= widths[0]
            ours = [*widths[1:], most]
            assert all(b <= a for a, b in zip(ours, bounds, strict=True))


def test_class_triangles_move_with_the_common_neighbours_on_larger_graphs():
    graph = social_network(120, seed=5)
    chosen = clustered(120, Fraction(8))
    counts, widths = class_triangles(chosen, graph), class_widths(chosen, graph)[0]
    assert widths[0] < 4.5 * Triangles().measure(graph, 1).spread + 2
    for place, other in enumerate(graph.neighbours("edge")):
        if place % 61 == 0:
            assert np.abs(class_triangles(chosen, other) - counts).max() <= widths[0]
