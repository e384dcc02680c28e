"""The models that count, flip or group edges: what they keep, and what they refuse."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graphs.synthesis_reference import release

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.graphs.data import Graph, all_graphs
from tulle.graphs.generators import erdos_renyi, social_network
from tulle.graphs.kernels.counts import count_triangles, degrees
from tulle.graphs.synthesis.models.kronecker import drop_edges, expected_counts, fit_parameters
from tulle.graphs.synthesis.models.topm import coins_for, is_private, keep_limits, safe_rates
from tulle.ledger.answer import plan_for
from tulle.noise import SeededSource
from tulle.noise.post_processing import post_processing

MODELS = ("auto", "topm", "response", "kronecker", "communities")


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


EVERY_EPSILON = [
    "9e-10",
    "1e-9",
    "1e-8",
    "3e-7",
    "1e-4",
    "0.01",
    "1",
    "30",
    "95",
    "97",
    "200",
    "9e3",
    "1e4",
]


def sizes():
    """Yield numbers of nodes and of edges, noisy ones too: none, few, half, all, absurd ones."""
    for nodes in (2, 3, 4, 10, 100, 4000, 10**6):
        pairs = nodes * (nodes - 1) // 2
        for edges in {-(10**12), 0, 1, 2, nodes, pairs // 3, pairs // 2, pairs // 2 + 1, pairs - 1}:
            yield nodes, edges
        yield nodes, pairs
        yield nodes, 10**15


def overspent(rates, epsilon):
    """Return the largest of a coin's four log-ratios relative to epsilon, less one."""
    # mpmath's rounding at 400 digits is far below the last of the 192 binary digits of a chance.
    with mpmath.workdps(400):
        absent = mpmath.exp(-mpmath.mpf(rates.skip.denominator) / rates.skip.numerator)
        keep = mpmath.mpf(rates.keep.numerator) / rates.keep.denominator
        pairs = (1 - absent, keep), (absent, 1 - keep)
        worst = max(abs(mpmath.log(p) - mpmath.log(q)) for p, q in pairs)
        return worst * epsilon.denominator / epsilon.numerator - 1


@pytest.mark.parametrize("epsilon", EVERY_EPSILON)
def test_coins_keep_all_four_inequalities(epsilon):
    spent = Fraction(epsilon)
    for nodes, edges in sizes():
        rates = coins_for(nodes, edges, spent)
        assert 0 < rates.keep < 1
        assert overspent(rates, spent) <= 0
        assert is_private(rates, spent)


@given(
    st.fractions(Fraction(1, 10**9), Fraction(1, 10**5)) | st.fractions(Fraction(1, 10**9), 10**4),
    st.floats(0, 1),
    st.floats(0, 1),
)
@settings(max_examples=60, deadline=None)
def test_coins_are_private_whatever_they_aim_at(epsilon, invent, keep):
    assert overspent(safe_rates(invent, keep, epsilon), epsilon) <= 0


def float_coins(nodes, edges, epsilon):
    """A broken version: chances as floats, of which only two ratios are held to the price."""
    rates = coins_for(nodes, edges, epsilon)
    pairs = nodes * (nodes - 1) // 2
    invent = edges / (pairs + edges * math.expm1(float(epsilon)))
    high = keep_limits(rates.skip, epsilon)[1]
    keep = min(Fraction(invent * math.exp(float(epsilon))), high)
    return rates._replace(keep=Fraction(math.floor(keep * 2**60), 2**60))


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-8", "1e-7"])
def test_the_checks_of_coins_catch_chances_as_floats(epsilon):
    spent = Fraction(epsilon)
    caught = 0
    for nodes, edges in ((100, 60), (4000, 9), (10**6, 1), (10**6, 10**7)):
        broken = float_coins(nodes, edges, spent)
        assert is_private(broken, spent) == (overspent(broken, spent) <= 0)
        caught += not is_private(broken, spent)
    assert caught


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-7", "1e-3", "0.1"])
def test_the_checks_of_coins_catch_chances_that_are_off(epsilon):
    spent = Fraction(epsilon)
    rates = coins_for(1000, 3000, spent)
    for factor in (1 + 3 * spent, 1 / (1 + 3 * spent)):
        for broken in (
            rates._replace(keep=rates.keep * factor),
            rates._replace(skip=rates.skip * factor),
        ):
            assert is_private(broken, spent) == (overspent(broken, spent) <= 0)
        assert not is_private(rates._replace(keep=rates.keep * factor**2), spent)


def test_topm_refuses_more_edges_than_can_be_made_by_public_facts():
    empty = Graph.from_edges([], nodes=200_000)
    with pytest.raises(QueryError, match=r"edges="):
        plan_for(empty, tulle.synthetic("topm"), unit="edge", epsilon=1e-9)
    with pytest.raises(QueryError, match=r"edges="):
        plan_for(empty, tulle.synthetic("topm", edges=10**10), unit="edge", epsilon=1e-9)
    plan_for(empty, tulle.synthetic("topm", edges=10**5), unit="edge", epsilon=1e-9)
    small = Graph.from_edges([(0, 1)], nodes=50)
    assert release(small, "topm", 1e-9).value.node_count == 50


def test_coins_give_the_right_number():
    nodes, edges = 400, 3000
    pairs = nodes * (nodes - 1) // 2
    for epsilon in (Fraction(1, 2), Fraction(2), Fraction(9)):
        rates = coins_for(nodes, edges, epsilon)
        expected = edges * float(rates.keep) + (pairs - edges) * rates.invent
        assert expected == pytest.approx(edges, rel=0.01)


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


# --- a public partition ---------------------------------------------------------------------------

SCHOOLS = [0, 0, 1, 1]


def exact(graph, partition):
    """Return what the model counts when its communities are public, without noise."""
    from tulle.graphs.synthesis.edge_counts import pair_counts
    from tulle.graphs.synthesis.models.communities import inner_degrees

    labels = np.array(partition)
    kinds = int(labels.max()) + 1
    row, column = np.triu_indices(kinds)
    return inner_degrees(graph, labels), pair_counts(graph, labels, kinds)[row != column]


def test_an_edge_moves_two_inner_degrees_or_one_count_between_parts():
    pairs = list(combinations(range(4), 2))
    for mask in range(2 ** len(pairs)):
        held = [pair for place, pair in enumerate(pairs) if mask >> place & 1]
        for pair in held:
            fewer = [other for other in held if other != pair]
            for partition in (SCHOOLS, [0, 0, 0, 0], [0, 1, 2, 0]):
                found = [
                    exact(
                        tulle.Graph.from_edges(np.array(edges).reshape(-1, 2), nodes=4), partition
                    )
                    for edges in (held, fewer)
                ]
                moved = [int(np.abs(one - two).sum()) for one, two in zip(*found, strict=True)]
                assert moved in ([2, 0], [0, 1])


def test_a_public_partition_is_kept():
    schools = np.repeat([0, 1, 2], 40)
    random = np.random.default_rng(1)
    pairs = np.array(list(combinations(range(120), 2)))
    same = schools[pairs[:, 0]] == schools[pairs[:, 1]]
    graph = tulle.Graph.from_edges(pairs[random.random(len(pairs)) < np.where(same, 0.3, 0.01)])
    names = np.array(["north", "south", "west"])[schools]
    query = tulle.synthetic(partition=names)
    assert query.model == "communities"
    assert "3 parts" in str(query)
    assert "north" not in str(query)
    r = tulle.release(graph, query, unit="edge", epsilon=2.0, source=SeededSource(1))

    def within(one):
        first, second = schools[one.edges()].T
        return np.mean(first == second)

    assert abs(within(r.value) - within(graph)) < 0.1
    # Communities that were found again would not be the schools of those very nodes.
    found = tulle.release(
        graph, tulle.synthetic("communities"), unit="edge", epsilon=2.0, source=SeededSource(1)
    )
    assert abs(within(found.value) - within(graph)) > 0.1


@pytest.mark.parametrize(
    ("model", "partition", "said"),
    [
        ("communities", [0, 1], "has 2 labels and the graph 9 nodes"),
        ("1k", [0] * 9, "does not keep a public partition"),
        ("communities", "0,x", "one label for each node"),
        ("communities", "0,0,0,0,0,0,0,0,7", "without a gap"),
    ],
)
def test_a_partition_that_does_not_fit_is_refused(model, partition, said):
    ring = tulle.Graph.from_edges([(i, (i + 1) % 9) for i in range(9)], nodes=9)
    with pytest.raises(tulle.TulleError, match=said):
        tulle.release(ring, tulle.synthetic(model, partition=partition), unit="edge", epsilon=9.0)


def test_a_plan_says_that_attributes_are_not_kept():
    ring = tulle.Graph.from_edges([(i, (i + 1) % 9) for i in range(9)], nodes=9)
    schools = ring.with_attributes(nodes={"school": ["a"] * 9})
    plan = plan_for(schools, tulle.synthetic("1k"), unit="edge", epsilon=60.0)
    assert any("school" in note and "not kept" in note for note in plan.notes())
