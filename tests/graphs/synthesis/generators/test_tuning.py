"""Swaps that bring a graph to several counts at once."""

from __future__ import annotations

from fractions import Fraction

import numba
import numpy as np
import pytest

import tulle
from tulle.graphs.generators import barabasi_albert, erdos_renyi, social_network
from tulle.graphs.kernels.counts import count_triangles, degrees, triangles_per_node
from tulle.graphs.synthesis.edge_counts import pair_counts
from tulle.graphs.synthesis.generators.mixing import MixingCounts
from tulle.graphs.synthesis.generators.swapping import (
    build_swap_graph,
    is_loose,
    may_swap,
    swap_edges,
    weigh_triangles,
)
from tulle.graphs.synthesis.generators.tuning import Aim, Aims, tune
from tulle.graphs.synthesis.joint_degrees.classes import soft_classes
from tulle.noise import SeededSource
from tulle.noise.post_processing import post_processing

WORK = 10**8


@numba.njit
def weigh(network, ax, cy, moved):
    """Weigh a swap as kernels do, if it may be made; 0 if not."""
    x, y = network.neighbours[ax], network.neighbours[cy]
    a, c = network.neighbours[network.mates[ax]], network.neighbours[network.mates[cy]]
    return weigh_triangles(network, ax, cy, moved) if may_swap(network, a, x, c, y) else 0


def clustering(graph):
    """Return the sum of clustering coefficients."""
    degree = degrees(graph)
    return float((triangles_per_node(graph) / np.maximum(degree * (degree - 1) / 2, 1)).sum())


def products(graph):
    """Return the sum, over edges, of the product of degrees."""
    return int(degrees(graph)[graph.edges()].prod(axis=1).sum())


def apart(graph, made):
    """Return how many edges of a graph are no longer there."""
    one, other = ({tuple(pair) for pair in g.edges().tolist()} for g in (graph, made))
    return len(one - other)


def held(network):
    """Return both ends of all edges, and what these share."""
    source = np.repeat(np.arange(len(network.degrees)), network.degrees)
    rows = np.column_stack([source, network.neighbours, network.shared, network.weighed])
    return rows[np.lexsort((network.neighbours, source))].tolist()


def tuned(graph, aims, *, blocks=None, work=WORK, seed=1):
    nodes = graph.node_count
    blocks = np.zeros(nodes, dtype=np.int64) if blocks is None else blocks
    edges = tune(graph.edges(), blocks, aims, work, post_processing(SeededSource(seed)))
    made = tulle.Graph.from_edges(edges, nodes=nodes)
    assert made.edge_count == graph.edge_count == len(edges)
    assert np.array_equal(degrees(made), degrees(graph))
    return made


@pytest.mark.parametrize("seed", range(3))
def test_what_a_swap_moves_is_counted_before_it_is_made(seed):
    """Against counting anew; hubs and leaves, so that both ways of looking are taken."""
    random = post_processing(SeededSource(seed))
    star = [(0, other) for other in range(1, 40)]
    drawn = [erdos_renyi(40, 0.2, seed=seed).edges(), np.array(star)][: 1 + seed % 2]
    edges = np.unique(np.sort(np.concatenate(drawn), axis=1), axis=0)
    blocks = random.integers(0, 2, 40)
    network = build_swap_graph(edges, blocks)
    start = before = tulle.Graph.from_edges(edges, nodes=40)
    moved, made = np.zeros(2), 0
    for _ in range(600):
        ax, cy = random.integers(0, len(network.neighbours), 2)
        if weigh(network, ax, cy, moved) == 0:
            continue
        swap_edges(network, ax, cy)
        after = tulle.Graph.from_edges(network.edges, nodes=40)
        assert after.edge_count == len(edges)
        assert moved[0] == count_triangles(after) - count_triangles(before)
        assert moved[1] == pytest.approx(clustering(after) - clustering(before), abs=1e-9)
        before = after
        made += 1
    assert made > 50
    anew = build_swap_graph(network.edges, blocks)
    assert network.triangles == anew.triangles == count_triangles(before)
    assert network.clustering == pytest.approx(anew.clustering, abs=1e-9)
    for found, true in zip(held(network), held(anew), strict=True):
        assert found == pytest.approx(true, abs=1e-9)
    assert np.array_equal(degrees(before), degrees(start))
    assert np.array_equal(pair_counts(before, blocks, 2), pair_counts(start, blocks, 2))


def test_edges_of_circles_are_not_loose():
    clique = np.array([(u, v) for u in range(8) for v in range(u)] + [(8, 9)])
    network = build_swap_graph(clique, np.zeros(10, dtype=np.int64))
    place = int(network.offsets[0])
    assert not is_loose(network, place, 0.3)
    assert is_loose(network, place, 1.0)
    moved = np.zeros(2)
    weigh_triangles(network, place, int(network.offsets[8]), moved)
    assert moved[0] == -6


def test_all_counts_are_met_at_once():
    """From one graph to the counts of another of these degrees, and back."""
    graph = social_network(400, communities=4, seed=1)
    blocks = np.arange(400) % 2
    other = tuned(graph, Aims(Aim(0.6 * count_triangles(graph))), blocks=blocks)
    for start, end in ((graph, other), (other, graph)):
        triangles, closed, joined = count_triangles(end), clustering(end), products(end)
        aims = Aims(Aim(triangles), Aim(closed, 0.003 * closed), Aim(joined, 0.003 * joined))
        made = tuned(start, aims, blocks=blocks, seed=2)
        assert count_triangles(made) == triangles
        assert clustering(made) == pytest.approx(closed, rel=0.0031)
        assert products(made) == pytest.approx(joined, rel=0.0031)
        assert np.array_equal(pair_counts(made, blocks, 2), pair_counts(graph, blocks, 2))


@pytest.mark.parametrize("change", [300, -100])
def test_triangles_alone(change):
    graph = erdos_renyi(200, 0.08, seed=1)
    made = tuned(graph, Aims(triangles=Aim(count_triangles(graph) + change)))
    assert count_triangles(made) - count_triangles(graph) == change


def test_correlation_alone_in_both_directions():
    graph = barabasi_albert(500, 4, seed=1)
    for change in (0.97, 1.03):
        wanted = change * products(graph)
        made = tuned(graph, Aims(products=Aim(wanted, 0.001 * wanted)))
        assert products(made) == pytest.approx(wanted, rel=0.0011)


def test_nothing_moves_when_all_is_there():
    graph = social_network(300, seed=2)
    aims = Aims(
        Aim(count_triangles(graph)), Aim(clustering(graph) + 1, 2.0), Aim(products(graph), 1.0)
    )
    assert apart(graph, tuned(graph, aims)) == 0
    assert apart(graph, tuned(graph, Aims())) == 0


def test_little_moves_when_little_is_off():
    """Correlation changes by swaps that leave triangles and circles alone."""
    graph = social_network(600, seed=2)
    wanted = 0.985 * products(graph)
    aims = Aims(
        Aim(count_triangles(graph)), Aim(clustering(graph), 0.5), Aim(wanted, 0.001 * wanted)
    )
    made = tuned(graph, aims)
    assert count_triangles(made) == count_triangles(graph)
    assert clustering(made) == pytest.approx(clustering(graph), abs=0.51)
    assert products(made) == pytest.approx(wanted, rel=0.0011)
    assert apart(graph, made) < 0.1 * graph.edge_count


def test_what_cannot_be_had_comes_after_the_triangles():
    """A tree of these degrees may have triangles, but hardly a clustering of one everywhere."""
    graph = barabasi_albert(300, 2, seed=3)
    made = tuned(graph, Aims(Aim(150), Aim(300.0), Aim(1e12)))
    assert count_triangles(made) == 150


def test_mixing_is_mended_and_circles_are_spared():
    """Cliques that a few loose edges join: the loose ones move, the cliques stay."""
    random = post_processing(SeededSource(5))
    sizes = [4, 6, 8, 12, 16] * 6
    starts = np.cumsum([0, *sizes])
    inside = [
        (start + u, start + v)
        for start, size in zip(starts, sizes, strict=False)
        for u in range(size)
        for v in range(u)
    ]
    loose = random.integers(0, starts[-1], (400, 2))
    edges = np.unique(np.sort(np.array([*inside, *loose.tolist()]), axis=1), axis=0)
    nodes = int(starts[-1])
    graph = tulle.Graph.from_edges(edges[edges[:, 0] != edges[:, 1]], nodes=nodes)
    degree = degrees(graph)
    classes = soft_classes(nodes, Fraction(2))
    table = MixingCounts(classes, np.zeros((1, 1)), 1.0).table(graph.edges(), degree)
    # More edges between the two largest classes than there are.
    one, two = sorted(np.argsort(-table.sum(axis=1))[:2])
    wanted = table.copy()
    wanted[[one, two], [two, one]] += 60
    wanted[[one, two], [one, two]] -= 60
    mixing = MixingCounts(classes, wanted, 1.0)
    made = tuned(graph, Aims(triangles=Aim(count_triangles(graph)), mixing=mixing))
    assert count_triangles(made) == count_triangles(graph)
    assert mixing.misfit(mixing.table(made.edges(), degree)) < 0.7 * mixing.misfit(table)
    kept = {tuple(sorted(pair)) for pair in made.edges().tolist()}
    circles = {tuple(sorted(pair)) for pair in inside}
    assert len(kept & circles) >= 0.9 * len(circles)


def test_mixing_stays_while_triangles_close():
    graph = social_network(400, seed=4)
    degree = degrees(graph)
    classes = soft_classes(400, Fraction(2))
    table = MixingCounts(classes, np.zeros((1, 1)), 5.0).table(graph.edges(), degree)
    mixing = MixingCounts(classes, table, 5.0)
    aim = Aim(round(1.1 * count_triangles(graph)))
    free, held = (tuned(graph, Aims(aim, mixing=m)) for m in (None, mixing))
    assert count_triangles(free) == count_triangles(held) == aim.value
    misfit, freely = (mixing.misfit(mixing.table(g.edges(), degree)) for g in (held, free))
    assert misfit < 0.201
    assert misfit < 0.5 * freely


@pytest.mark.parametrize(
    "pairs",
    [[], [(0, 1)], [(0, 1), (2, 3)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (0, 2)]],
    ids=["none", "one", "matching", "path", "triangle"],
)
def test_tiny_graphs_stay_simple(pairs):
    graph = tulle.Graph.from_edges(np.array(pairs, dtype=np.int64).reshape(-1, 2), nodes=5)
    for aims in (Aims(), Aims(Aim(7), Aim(2.0), Aim(50.0)), Aims(Aim(-3.0), Aim(-1.0), Aim(-1e9))):
        made = tuned(graph, aims, work=10**6)
        assert count_triangles(made) == count_triangles(graph)


def test_the_same_random_numbers_give_the_same_graph():
    graph = erdos_renyi(100, 0.1, seed=1)
    aims = Aims(Aim(400), Aim(60.0, 1.0))
    one, same, other = (tuned(graph, aims, work=10**6, seed=seed) for seed in (1, 1, 2))
    assert apart(one, same) == 0
    assert apart(one, other) > 0


def test_work_is_bounded():
    """A hopeless aim ends by itself, and with no work nothing moves."""
    graph = erdos_renyi(100, 0.1, seed=1)
    assert apart(graph, tuned(graph, Aims(Aim(10**9)), work=0)) == 0
    made = tuned(graph, Aims(Aim(10**9)), work=10**9)
    assert count_triangles(made) > 2 * count_triangles(graph)


def test_no_two_nodes_are_cut_off_from_the_rest():
    """A swap never joins two nodes that have no other neighbour."""

    def pairs(graph):
        return int((degrees(graph)[graph.edges()] == 1).all(axis=1).sum())

    graph = erdos_renyi(400, 0.006, seed=3)
    for seed in range(5):
        edges = tune(
            graph.edges(),
            np.zeros(400, dtype=np.int64),
            Aims(triangles=Aim(150)),
            WORK,
            post_processing(SeededSource(seed)),
        )
        made = tulle.Graph.from_edges(edges, nodes=400)
        assert count_triangles(made) > 100
        assert pairs(made) <= pairs(graph)
