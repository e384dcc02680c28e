"""The models that count, flip or group edges: bounds by brute force, and what comes out."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.core.mechanism import Terms
from tulle.core.registry import mechanisms
from tulle.core.unit import Unit
from tulle.graphs.data import all_graphs
from tulle.graphs.generators import erdos_renyi, social_network
from tulle.graphs.kernels import count_triangles, degrees
from tulle.graphs.synthesis.affinity import Frame, Knobs, draw_affinity
from tulle.graphs.synthesis.auto import (
    STEP,
    closure_limit,
    mixing_classes,
    mixing_moves,
)
from tulle.graphs.synthesis.auto_budget import FIRST, SCHEDULES, later_shares
from tulle.graphs.synthesis.auto_degrees import estimate_degrees
from tulle.graphs.synthesis.auto_parts import (
    closed_picks,
    member_counts,
    order_counts,
    pair_counts,
)
from tulle.graphs.synthesis.auto_schedule import PARTS, schedule_of, spending
from tulle.graphs.synthesis.blocks import chance_modularity, find_blocks, square_of
from tulle.graphs.synthesis.closing import close_triangles
from tulle.graphs.synthesis.communities import inner_degrees
from tulle.graphs.synthesis.joint_classes import soft_classes, unpack
from tulle.graphs.synthesis.kronecker import drop_edges, expected_counts, fit_parameters
from tulle.graphs.synthesis.staircase import weigh_staircases
from tulle.graphs.synthesis.steering import Mixing, steer
from tulle.graphs.synthesis.topm import coins_for
from tulle.noise import SeededSource
from tulle.noise.afterwards import afterwards

MODELS = ("auto", "topm", "response", "kronecker", "communities")
EDGE = Unit.of("edge")


def moved(nodes, count):
    """Return the most that one edge moves a count in L1, over all graphs and neighbours."""
    known = {}

    def at(graph):
        key = graph.edges().tobytes()
        if key not in known:
            known[key] = np.atleast_1d(count(graph))
        return known[key]

    return max(
        int(np.abs(at(graph) - at(other)).sum())
        for graph in all_graphs(nodes)
        for other in graph.neighbours("edge")
    )


def terms_for(graph, query, epsilon):
    return Terms(query, EDGE, Fraction(epsilon), Fraction(0), graph.facts(EDGE))


def release(graph, model, epsilon, **options):
    return tulle.release(graph, tulle.synthetic(model, **options), unit="edge", epsilon=epsilon)


# What one edge can move, over all small graphs, additions and removals.


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_bounds_of_all_parts(nodes):
    labels = np.arange(nodes) % 3

    def count(graph):
        return np.concatenate(
            [
                order_counts(graph, 2),
                pair_counts(graph, labels, 3),
                member_counts(graph, labels, 3),
                inner_degrees(graph, labels),
            ]
        )

    # Order and pairs one each, members two, inner degrees two.
    assert moved(nodes, count) <= 1 + 1 + 2 + 2
    assert moved(nodes, lambda g: order_counts(g, 2)) == 1
    assert moved(nodes, lambda g: member_counts(g, labels, 3)) == 2


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_bounds_of_closure(nodes, limit):
    assert moved(nodes, lambda g: closed_picks(g, limit)) <= limit + 2


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
@pytest.mark.parametrize("ratio", [2, 3, 4])
def test_bounds_of_mixing(nodes, ratio):
    classes = soft_classes(nodes, Fraction(ratio))
    most = moved(nodes, lambda g: classes.measure(g, STEP))
    assert most <= mixing_moves(classes)
    # Not far from it: a bound that is much too large would be noise for nothing.
    assert most >= mixing_moves(classes) / 3


def test_picks_without_a_limit_move_without_bound():
    """Two hubs that everybody else knows: joining them closes all picks at once."""
    leaves = range(2, 40)
    apart = [(hub, leaf) for hub in (0, 1) for leaf in leaves]
    far, near = (
        closed_picks(tulle.Graph.from_edges(edges, nodes=40), 10**9)
        for edges in (apart, [*apart, (0, 1)])
    )
    assert near - far >= 38
    limited = [
        closed_picks(tulle.Graph.from_edges(edges, nodes=40), 2)
        for edges in (apart, [*apart, (0, 1)])
    ]
    assert abs(limited[1] - limited[0]) <= 4


def test_picks_estimate_clustering():
    graph = social_network(2000, seed=3)
    mean = closed_picks(graph) / 2000
    neighbours_of = graph.to_networkx()
    import networkx

    assert mean == pytest.approx(networkx.average_clustering(neighbours_of), abs=0.05)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "5", "30"])
@pytest.mark.parametrize(("nodes", "edges"), [(4, 1), (4, 5), (100, 60), (100, 4900), (4000, 9)])
def test_coins_keep_both_inequalities(nodes, edges, epsilon):
    from tulle.noise.exponent import exp_bounds

    spent = Fraction(epsilon)
    rates = coins_for(nodes, edges, spent)
    # In exact numbers, with exp(-x) known to 200 bits: p1 <= e^eps·p0, 1 - p0 <= e^eps·(1 - p1).
    digits = 200
    shrink = Fraction(exp_bounds(spent, digits)[1], 2**digits)
    absent = Fraction(exp_bounds(1 / rates.skip, digits)[1], 2**digits)
    assert rates.keep * shrink <= 1 - absent
    assert absent * shrink <= 1 - rates.keep
    assert 0 <= rates.keep <= 1


def test_coins_give_the_right_number():
    nodes, edges = 400, 3000
    pairs = nodes * (nodes - 1) // 2
    for epsilon in (Fraction(1, 2), Fraction(2), Fraction(9)):
        rates = coins_for(nodes, edges, epsilon)
        expected = edges * float(rates.keep) + (pairs - edges) * rates.invent
        assert expected == pytest.approx(edges, rel=0.01)


# The budget.


@pytest.mark.parametrize("epsilon", ["0.3", "1", "7", "1000"])
@pytest.mark.parametrize("parts", ["all", "edges", "edges,triangles", "order,closure"])
@pytest.mark.parametrize("edges", [-50, 0, 7, 100, 10**7])
def test_all_schedules_spend_all_and_no_more(epsilon, parts, edges):
    graph = social_network(30, seed=1)
    auto = mechanisms("graph")["synthetic_auto"]
    query = tulle.synthetic("auto", parts=parts)
    settings = auto.settings(terms_for(graph, query, epsilon), {})
    budgets = {name: spending(settings, name, edges) for name in SCHEDULES}
    for shares in budgets.values():
        assert sum(shares.values()) == Fraction(epsilon)
        assert all(share > 0 for share in shares.values())
    if parts == "all":
        # What comes before the schedule is known spends the same in all.
        first = [{n: b[n] for n in FIRST if n in b} for b in budgets.values()]
        assert all(shares == first[0] for shares in first)


def test_shares_follow_the_gain():
    names = SCHEDULES["blocks"]
    small, large = (later_shares(names, Fraction(e), 4000, 90_000) for e in (Fraction(1, 4), 5))
    # What is down to its floor leaves the rest to degrees, and little by little.
    assert large["reached"] > 1.5 * small["reached"]
    assert all(large[n] < small[n] for n in ("triangles", "closure", "mixing", "sequence"))
    path = [later_shares(names, Fraction(e, 50), 4000, 90_000)["triangles"] for e in range(5, 300)]
    steps = np.abs(np.diff([float(share) for share in path]))
    assert steps.max() <= 0.01


def test_every_part_gets_the_noise_that_its_budget_buys(monkeypatch):
    graph = social_network(400, communities=4, seed=2)
    auto = mechanisms("graph")["synthetic_auto"]
    terms = terms_for(graph, tulle.synthetic("auto", blocks="yes"), "1")
    settings = auto.settings(terms, {})
    used = []

    def record(*, scale, size=None, source=None):
        used.append(scale)
        return 0 if size is None else np.zeros(size, dtype=np.int64)

    monkeypatch.setattr("tulle.graphs.synthesis.auto.discrete_laplace", record)
    seen = auto.measure(terms, settings, graph, SeededSource(1))
    budgets = spending(settings, "blocks", seen["edges"])
    limit = closure_limit(seen, settings)
    sensitivity = {
        "edges": 1,
        "order": 1,
        "reached": 2,
        "sequence": 2,
        "closure": limit + 2,
        "mixing": mixing_moves(mixing_classes(seen, settings)),
        "members": 2,
        "pairs": 1,
    }
    assert list(seen) == list(budgets)
    assert used == [sensitivity[n] / budgets[n] for n in seen if n != "triangles"]


# What comes out.


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("epsilon", [0.1, 50.0])
@pytest.mark.parametrize(
    ("nodes", "edges"),
    [(0, []), (1, []), (2, []), (2, [(0, 1)]), (3, []), (3, [(0, 1), (1, 2)]), (6, [(0, 5)])],
)
def test_tiny_graphs_work(model, epsilon, nodes, edges):
    graph = tulle.Graph.from_edges(edges, nodes=nodes)
    made = release(graph, model, epsilon).value
    assert made.node_count == nodes
    assert made.edge_count <= nodes * (nodes - 1) // 2


@pytest.mark.parametrize("model", MODELS)
def test_complete_and_empty_graphs_work(model):
    for probability in (0.0, 1.0):
        made = release(erdos_renyi(24, probability, seed=1), model, 2.0).value
        assert made.node_count == 24


def test_too_small_a_budget_gives_advice():
    graph = social_network(50, seed=1)
    with pytest.raises(QueryError, match=r"too small.*Spend more"):
        release(graph, "auto", 1e-9)
    for model in ("topm", "communities", "kronecker", "response"):
        assert release(graph, model, 1e-9).value.node_count == 50


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("auto", {"blocks": "perhaps"}),
        ("auto", {"parts": "edges,secrets"}),
        ("auto", {"colour": "red"}),
        ("topm", {"edges": -1}),
        ("communities", {"size": 0}),
        ("kronecker", {"triangles": "many"}),
    ],
)
def test_wrong_options_are_refused(model, options):
    with pytest.raises(InputError):
        release(social_network(30, seed=1), model, 1.0, **options)


@pytest.mark.parametrize("parts", ["edges", "edges,reached,sequence", *PARTS])
def test_auto_copes_with_any_parts(parts):
    made = release(social_network(40, seed=1), "auto", 3.0, parts=parts).value
    assert made.node_count == 40


def test_a_release_is_replayed_and_redrawn():
    from tulle.core.release import Release
    from tulle.graphs.synthesis.model import regenerate

    first = release(social_network(60, seed=1), "auto", 2.0)
    again = Release.from_json(first.to_json())
    assert np.array_equal(again.value.edges(), first.value.edges())
    more = regenerate(again, SeededSource(3))
    assert np.array_equal(more.edges(), regenerate(first, SeededSource(3)).edges())
    assert abs(more.edge_count - first.value.edge_count) <= 2


def test_auto_is_close_on_a_social_network():
    graph = social_network(1500, communities=6, seed=4)
    made = release(graph, "auto", 4.0).value
    assert made.edge_count == pytest.approx(graph.edge_count, rel=0.01)
    assert count_triangles(made) == pytest.approx(count_triangles(graph), rel=0.1)
    assert degrees(made).var() == pytest.approx(degrees(graph).var(), rel=0.25)
    # The generator numbers communities in order: auto may find that, and must profit.
    scores = tulle.compare(graph, made)
    assert scores["communities"] > 0.3
    assert scores["average clustering"] < 0.2


def test_the_order_is_used_only_where_it_tells_something():
    auto = mechanisms("graph")["synthetic_auto"]
    graph = social_network(1500, communities=6, seed=4)
    mixed = afterwards(SeededSource(5)).permutation(1500)[graph.edges()]
    for edges, expected in ((graph.edges(), True), (mixed, False)):
        one = tulle.Graph.from_edges(edges, nodes=1500)
        terms = terms_for(one, tulle.synthetic(), "1")
        settings = auto.settings(terms, {})
        seen = auto.measure(terms, settings, one, SeededSource(1))
        assert (schedule_of(seen, settings) == "blocks") == expected
        assert ("members" in seen) == expected


def test_topm_keeps_the_number_of_edges():
    graph = social_network(800, seed=2)
    made = release(graph, "topm", 1.0).value
    assert made.edge_count == pytest.approx(graph.edge_count, abs=6 * math.sqrt(graph.edge_count))


def test_response_thins_to_the_number_of_edges():
    graph = social_network(400, seed=2)
    made = release(graph, "response", 4.0).value
    assert made.edge_count == pytest.approx(graph.edge_count, rel=0.15)


def test_communities_place_all_edges_between():
    """Three cliques, a few edges between: at a large budget nothing is lost or misplaced."""
    clique = [(u, v) for u in range(40) for v in range(u)]
    edges = [(40 * c + u, 40 * c + v) for c in range(3) for u, v in clique]
    edges += [(u, 40 + u) for u in range(10)] + [(40 + u, 80 + u) for u in range(20)]
    graph = tulle.Graph.from_edges(edges, nodes=120)
    made = release(graph, "communities", 400.0).value
    assert made.edge_count == pytest.approx(graph.edge_count, rel=0.03)


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
    random = afterwards(SeededSource(1))
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


# The generator's parts.


def test_degrees_are_exact_without_noise():
    graph = social_network(300, seed=7)
    sequence = np.sort(degrees(graph))[::-1]
    reached = np.array([(sequence >= k).sum() for k in range(1, 300)])
    made = estimate_degrees(reached, sequence, graph.edge_count, 1e-3, 300, 1e-3)
    assert np.abs(made - sequence).max() <= 2
    assert made.sum() == 2 * graph.edge_count


@pytest.mark.parametrize("scale", [2.0, 50.0, 5000.0])
def test_noisy_degrees_are_those_of_some_graph(scale):
    random = afterwards(SeededSource(1))
    for nodes in (2, 3, 10, 200):
        reached = np.rint(random.laplace(0, scale, nodes - 1)).astype(np.int64)
        sequence = np.rint(random.laplace(0, scale, nodes)).astype(np.int64)
        edges = int(random.integers(-9, 999))
        for other in (sequence, None):
            made = estimate_degrees(reached, other, edges, scale, nodes, scale)
            assert len(made) == nodes
            assert 0 <= made.min() <= made.max() < nodes
            assert made.sum() % 2 == 0


def test_staircases_are_weighed_as_if_one_by_one():
    """Against the sum over every degree sequence of five nodes."""
    from itertools import combinations_with_replacement

    random = afterwards(SeededSource(3))
    nodes, scales = 5, (1.5, 0.8)
    guess = np.array([0.4, 1.3, 0.7, 2.0, 0.2])
    for _ in range(5):
        reached = random.integers(-2, 8, nodes - 1)
        sequence = random.integers(-2, 7, nodes)
        total, expected, present = 0.0, np.zeros(nodes), np.zeros(nodes)
        for rising in combinations_with_replacement(range(nodes), nodes):
            degree = np.array(rising[::-1])
            counts = np.bincount(degree, minlength=nodes)
            at_least = np.array([(degree >= k).sum() for k in range(1, nodes)])
            weight = math.exp(
                -np.abs(at_least - reached).sum() / scales[0]
                - np.abs(degree - sequence).sum() / scales[1]
            ) * np.prod((guess / (1 + guess)) ** counts)
            total += weight
            expected += weight * counts
            present += weight * (counts > 0)
        middle = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
        curve = weigh_staircases(reached, sequence, scales, guess, middle)
        assert curve.expected == pytest.approx(expected / total)
        assert curve.present == pytest.approx(present / total)


def test_the_tail_of_the_degrees_is_not_lost_in_noise():
    random = afterwards(SeededSource(4))
    truth = np.sort(np.append(random.integers(1, 20, 950), random.integers(20, 300, 50)))[::-1]
    reached = np.array([(truth >= k).sum() for k in range(1, 1000)])
    noise = [np.rint(random.laplace(0, 5.0, size)).astype(np.int64) for size in (999, 1000)]
    edges = int(truth.sum()) // 2
    made = estimate_degrees(reached + noise[0], truth + noise[1], edges, 5.0, 1000, 5.0)
    assert made.sum() == 2 * edges
    assert made.var() == pytest.approx(truth.var(), rel=0.1)
    assert np.abs(made - truth)[:20].mean() < 15


def test_swaps_bring_about_the_mixing_and_keep_the_rest():
    random = afterwards(SeededSource(2))
    graph = erdos_renyi(300, 0.05, seed=1)
    blocks = np.arange(300) % 2
    classes = soft_classes(300, Fraction(2))
    degree = degrees(graph)
    # The true table agrees with the one that is measured.
    true = unpack(classes.measure(graph, STEP) * float(STEP), classes.count)
    mixing = Mixing(classes, true, 0.5)
    assert mixing.table(graph.edges(), degree) == pytest.approx(true, abs=0.01)
    assert mixing.strain(true) == 0
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
    assert asked.strain(asked.table(edges, degree)) < 0.3 * asked.strain(true)


def test_closing_mends_the_mixing_and_spares_circles():
    """Cliques that a few loose edges join: the loose ones move, the cliques stay."""
    random = afterwards(SeededSource(5))
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
    edges = edges[edges[:, 0] != edges[:, 1]]
    nodes = int(starts[-1])
    graph = tulle.Graph.from_edges(edges, nodes=nodes)
    degree, blocks = degrees(graph), np.zeros(nodes, dtype=np.int64)
    classes = soft_classes(nodes, Fraction(2))
    table = Mixing(classes, np.zeros((1, 1)), 1.0).table(edges, degree)
    # More edges between the two largest classes than there are.
    one, two = sorted(np.argsort(-table.sum(axis=1))[:2])
    wanted = table.copy()
    wanted[[one, two], [two, one]] += 60
    wanted[[one, two], [one, two]] -= 60
    mixing = Mixing(classes, wanted, 1.0)
    made = close_triangles(edges, blocks, 0, 10**8, random, mixing)
    other = tulle.Graph.from_edges(made, nodes=nodes)
    assert np.array_equal(degrees(other), degree)
    assert count_triangles(other) == count_triangles(graph)
    assert mixing.strain(mixing.table(made, degree)) < 0.7 * mixing.strain(table)
    kept = {tuple(sorted(pair)) for pair in made.tolist()}
    circles = {tuple(sorted(pair)) for pair in inside}
    assert len(kept & circles) >= 0.9 * len(circles)


def test_edges_are_averaged_with_those_of_the_curve():
    truth = np.sort(np.arange(400) % 23 + 1)[::-1]
    reached = np.array([(truth >= k).sum() for k in range(1, 400)])
    edges = int(truth.sum()) // 2
    for scale, near in ((1e-3, edges), (1e6, edges + 300)):
        # With little noise the curve knows better, with much the number of edges does.
        made = estimate_degrees(reached, None, edges + 300, scale, 400, edges_scale=20.0)
        assert int(made.sum()) // 2 == pytest.approx(near, abs=5)


def test_cells_that_chance_leaves_empty_are_not_believed():
    classes = soft_classes(300, Fraction(2))
    chance = np.full((classes.count, classes.count), 1000.0)
    chance[0, 0] = 0.5
    noisy = chance + 40.0
    believed = Mixing(classes, noisy, 30.0).believed(chance).wanted
    assert believed[0, 0] < 1.0
    assert believed.sum(axis=1) == pytest.approx(chance.sum(axis=1), rel=1e-6)


def test_generated_graphs_have_the_degrees_and_the_edges_between_blocks():
    random = afterwards(SeededSource(2))
    graph = social_network(600, communities=3, seed=1)
    labels = np.arange(600) * 3 // 600
    counts = square_of(pair_counts(graph, labels, 3), 3)
    frame = Frame(degrees(graph), labels, counts)
    for knobs in (Knobs(0.0), Knobs(0.7, 0.5, 1.0), Knobs(2.5, -0.5, 0.1, 0.5)):
        made = tulle.Graph.from_edges(draw_affinity(frame, knobs, random), nodes=600)
        assert np.abs(degrees(made) - degrees(graph)).sum() <= 4
        found = square_of(pair_counts(made, labels, 3), 3)
        assert np.abs(found - counts).sum() <= 0.1 * counts.sum()


def test_closing_reaches_its_number_and_keeps_degrees():
    random = afterwards(SeededSource(2))
    graph = erdos_renyi(200, 0.08, seed=1)
    blocks = np.zeros(200, dtype=np.int64)
    for change in (300, -100):
        edges = close_triangles(graph.edges(), blocks, change, 10**8, random)
        made = tulle.Graph.from_edges(edges, nodes=200)
        assert np.array_equal(degrees(made), degrees(graph))
        assert count_triangles(made) - count_triangles(graph) == change


def test_blocks_are_found_refined_and_told_from_chance():
    random = afterwards(SeededSource(3))
    labels = np.repeat(np.arange(3), 8)
    counts = np.where(labels[:, None] == labels[None, :], 30.0, 4.0)
    noise = np.triu(random.laplace(0, 4, counts.shape))
    found, modularity = find_blocks(counts + noise + np.triu(noise, 1).T)
    assert len(np.unique(found)) == 3
    assert len(set(zip(found.tolist(), labels.tolist(), strict=True))) == 3
    flat = np.full((24, 24), 12.0) + noise + np.triu(noise, 1).T
    assert modularity - chance_modularity(counts, 4.0) > 0.2
    assert find_blocks(flat)[1] - chance_modularity(flat, 4.0) < 0.05
