"""Joint degrees: bounds on all small graphs, whole numbers, and graphs that have them."""

import math
from fractions import Fraction

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.graphs.data import Graph
from tulle.graphs.generators import all_graphs, barabasi_albert, social_network
from tulle.graphs.mechanisms.isotonic import graphical
from tulle.graphs.queries.counts import Triangles
from tulle.graphs.synthesis.generators.edge_set import add, empty_set, holds, remove
from tulle.graphs.synthesis.generators.joint_fit import JointDegrees, fit_joint
from tulle.graphs.synthesis.generators.realise import realise_degrees
from tulle.graphs.synthesis.generators.realise_joint import place_edges
from tulle.graphs.synthesis.joint_degrees.classes import soft_classes, unpack
from tulle.graphs.synthesis.joint_degrees.mechanisms import joint_profile
from tulle.graphs.synthesis.joint_degrees.queries import JointDegreeQuery, joint_degrees, matrix_of
from tulle.graphs.synthesis.models.one_k import degrees_from_counts
from tulle.noise import SeededSource, post_processing

FINE = Fraction(1, 2**30)


def realise_joint(joint, random, locality=0.0):
    """Return the edges of a random simple graph with exactly these joint degrees."""
    room = np.repeat(joint.degrees, joint.nodes)
    made = place_edges(joint.edges, room, joint.nodes, random, locality)
    if len(made) < int(np.triu(joint.edges).sum()):
        raise ValueError("no simple graph has these joint degrees")
    return made


def degrees_of(graph):
    return np.diff(graph.csr()[0])


def true_joint(graph):
    degree = degrees_of(graph)
    values, counts = np.unique(degree[degree > 0], return_counts=True)
    cells = matrix_of(JointDegreeQuery().truth(graph))
    return JointDegrees(values, counts, cells[np.ix_(values - 1, values - 1)])


@pytest.mark.parametrize("most", [None, 1, 2, 3])
@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_no_edge_moves_joint_degrees_by_more_than_the_bound_at_any_distance(nodes, most):
    query = JointDegreeQuery(most)
    limit = query.edge_sensitivity(nodes)
    reached = 0
    for graph in all_graphs(nodes):
        truth = query.truth(graph)
        bounds = [*joint_profile(query, graph), limit]
        for other in graph.neighbours("edge"):
            moved = int(np.abs(query.truth(other) - truth).sum())
            reached = max(reached, moved)
            assert moved <= bounds[0]
            for distance, bound in enumerate([*joint_profile(query, other), limit]):
                assert bound <= bounds[min(distance + 1, len(bounds) - 1)]
    assert reached == limit


def test_the_printed_bound_is_broken_on_as_many_graphs_as_is_known():
    query = JointDegreeQuery()
    broken = 0
    for nodes in (4, 5):
        for graph in all_graphs(nodes):
            truth = query.truth(graph)
            printed = 2 * int(np.sort(degrees_of(graph))[-2:].sum()) - 3
            moved = max(
                int(np.abs(query.truth(other) - truth).sum()) for other in graph.neighbours("edge")
            )
            broken += moved > printed
    assert broken == 388


@pytest.mark.parametrize("ratio", ["3/2", 4])
@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_no_edge_moves_soft_classes_by_more_than_their_sensitivity(nodes, ratio):
    classes = soft_classes(nodes, Fraction(ratio))
    allowed = classes.sensitivity() / FINE + classes.cells
    worst = 0
    for graph in all_graphs(nodes):
        truth = classes.measure(graph, FINE)
        for other in graph.neighbours("edge"):
            worst = max(worst, int(np.abs(classes.measure(other, FINE) - truth).sum()))
    assert worst <= allowed
    assert worst >= allowed / 2


@pytest.mark.parametrize("ratio", [2, 4])
def test_soft_classes_move_little_on_graphs_with_hubs(ratio):
    graph = barabasi_albert(3000, 5, seed=1)
    classes = soft_classes(3000, Fraction(ratio))
    truth = classes.measure(graph, FINE)
    assert truth.sum() * float(FINE) == pytest.approx(graph.edge_count)
    hubs = np.argsort(-degrees_of(graph))[:12]
    present = {tuple(edge) for edge in graph.edges().tolist()}
    allowed = classes.sensitivity() / FINE + classes.cells
    worst = 0
    for u in hubs.tolist():
        for v in hubs.tolist():
            if u < v:
                other = Graph.from_edges(sorted(present ^ {(u, v)}), nodes=3000)
                worst = max(worst, int(np.abs(classes.measure(other, FINE) - truth).sum()))
    assert allowed / 2 < worst <= allowed
    assert classes.sensitivity() < 2 * 2 / math.log(ratio) + 1.1


@pytest.mark.parametrize("nodes", [2, 5, 100])
def test_memberships_add_up_to_one(nodes):
    classes = soft_classes(nodes, Fraction(4))
    table = classes.memberships(np.arange(1, nodes))
    assert table.sum(axis=1) == pytest.approx(np.ones(nodes - 1))
    assert table.min() >= 0
    assert table[0, 0] == 1
    assert table[-1, -1] == 1


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.integers(0, 1000))
@settings(max_examples=80, deadline=None)
def test_every_graphical_sequence_is_realised(numbers, seed):
    wanted = graphical(np.sort(np.minimum(numbers, len(numbers) - 1))[::-1].astype(np.int64))
    edges = realise_degrees(wanted, post_processing(SeededSource(seed)))
    graph = Graph.from_edges(edges, nodes=len(wanted))
    assert graph.dropped.loops == graph.dropped.duplicates == 0
    assert np.array_equal(degrees_of(graph), wanted)


def test_swaps_reach_all_graphs_with_the_degrees():
    seen = set()
    random = post_processing(SeededSource(1))
    for _ in range(300):
        edges = realise_degrees(np.array([2, 2, 2, 2, 2, 2]), random)
        seen.add(Graph.from_edges(edges, nodes=6).edges().tobytes())
    # Seventy graphs: sixty hexagons and ten pairs of triangles.
    assert len(seen) > 60


@numba.njit
def _act(table, key, act):
    """Call the functions of the set as kernels do: they have no entry of their own for Python."""
    if act == "add":
        return add(table, key)
    if act == "remove":
        remove(table, key)
    return holds(table, key)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 60)), max_size=300))
@settings(max_examples=50, deadline=None)
def test_the_edge_set_is_a_set(acts):
    table, known = empty_set(61), set()
    for adding, key in acts:
        if adding:
            assert _act(table, key * 7919, "add") == (key not in known)
            known.add(key)
        elif key in known:
            assert not _act(table, key * 7919, "remove")
            known.discard(key)
    assert all(_act(table, key * 7919, "") == (key in known) for key in range(61))


@pytest.mark.parametrize("locality", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_true_joint_degrees_are_realised_exactly(seed, locality):
    graph = social_network(150, seed=seed)
    joint = true_joint(graph)
    made = Graph.from_edges(
        realise_joint(joint, post_processing(SeededSource(seed)), locality), nodes=150
    )
    assert made.dropped.loops == made.dropped.duplicates == 0
    assert np.array_equal(JointDegreeQuery().truth(made), JointDegreeQuery().truth(graph))


def test_all_small_graphs_are_realised_from_their_joint_degrees():
    for seed, graph in enumerate(all_graphs(5)):
        joint = true_joint(graph)
        if not len(joint.degrees):
            continue
        edges = realise_joint(joint, post_processing(SeededSource(seed)))
        made = Graph.from_edges(edges, nodes=5)
        assert np.array_equal(JointDegreeQuery().truth(made), JointDegreeQuery().truth(graph))


def test_impossible_joint_degrees_are_refused():
    impossible = JointDegrees(np.array([3]), np.array([2]), np.array([[3]]))
    with pytest.raises(ValueError, match="no simple graph"):
        realise_joint(impossible, post_processing(SeededSource(1)))


@pytest.mark.parametrize("noise", [0.0, 5.0, 500.0])
@pytest.mark.parametrize("seed", range(3))
def test_fitted_joint_degrees_are_those_of_a_graph(seed, noise):
    graph = social_network(200, seed=seed)
    classes = soft_classes(200, Fraction(4))
    random = post_processing(SeededSource(seed))
    cells = classes.measure(graph, Fraction(1)) + random.normal(0, noise, classes.cells)
    sequence = np.sort(degrees_of(graph))[::-1]
    joint = fit_joint(sequence, unpack(cells, classes.count), noise, classes, random)
    ends = joint.edges.sum(axis=1) + np.diag(joint.edges)
    assert np.array_equal(ends, joint.degrees * joint.nodes)
    assert np.array_equal(joint.edges, joint.edges.T)
    pairs = np.outer(joint.nodes, joint.nodes)
    np.fill_diagonal(pairs, joint.nodes * (joint.nodes - 1) // 2)
    assert (joint.edges >= 0).all()
    assert (joint.edges <= pairs).all()
    made = realise_joint(joint, random)
    assert np.array_equal(np.sort(np.bincount(made.ravel(), minlength=200))[::-1], sequence)


def test_locality_brings_triangles():
    graph = social_network(400, seed=2)
    room = np.sort(degrees_of(graph))
    between, sizes = np.array([[graph.edge_count]]), np.array([400])
    counts = [
        Triangles().truth(
            Graph.from_edges(
                place_edges(between, room, sizes, post_processing(SeededSource(1)), local),
                nodes=400,
            )
        )
        for local in (0.0, 0.5, 1.0)
    ]
    assert counts[0] < counts[1] < counts[2]
    assert counts[2] > 5 * counts[0]


def test_counts_by_degree_become_a_degree_sequence():
    graph = social_network(500, seed=1)
    exact = np.bincount(degrees_of(graph), minlength=500)[::-1].cumsum()[::-1][1:]
    made = degrees_from_counts(exact, Fraction(1, 100))
    assert np.array_equal(made, np.sort(degrees_of(graph))[::-1])
    smoothed = degrees_from_counts(exact, Fraction(2))
    assert np.abs(smoothed - made).mean() < 0.3
    assert degrees_from_counts(np.zeros(3, dtype=np.int64), Fraction(2)).tolist() == [0, 0, 0, 0]


def test_questions_about_joint_degrees_validate_themselves():
    assert str(joint_degrees()) == "joint_degrees()"
    assert str(joint_degrees(7)) == "joint_degrees(most=7)"
    assert str(joint_degrees(ratio=3)) == "joint_degrees(ratio=3)"
    with pytest.raises(InputError, match="not both"):
        joint_degrees(3, ratio=2)
    with pytest.raises(InputError, match="at least"):
        joint_degrees(ratio=1)
    large = Graph.from_edges([], nodes=100_000)
    with pytest.raises(QueryError, match="coarse grid"):
        tulle.release(large, joint_degrees(), unit="edge", epsilon=1.0)
    assert len(tulle.release(large, joint_degrees(9), unit="edge", epsilon=1.0).value) == 55


@pytest.mark.parametrize(
    "query", [joint_degrees(), joint_degrees(3), joint_degrees(ratio=4)], ids=str
)
def test_intervals_cover(query):
    graph = social_network(25, seed=3)
    truth, hits, runs = query.truth(graph), 0, 60
    for _ in range(runs):
        low, high = tulle.release(graph, query, unit="edge", epsilon=2.0).interval(0.9)
        hits += bool(np.all((low <= truth) & (truth <= high)))
    assert binom.cdf(hits, runs, 0.9) >= 1e-6


def test_the_planner_prefers_the_pure_mechanism_to_the_smooth_one():
    graph = social_network(40, seed=3)
    plan = tulle.ledger.session.plan_for(
        graph, joint_degrees(), unit="edge", epsilon=1.0, delta=1e-6
    )
    assert [offer.mechanism for offer in plan.offers] == ["joint_laplace", "joint_smooth"]
    r = tulle.release(
        graph, joint_degrees(), unit="edge", epsilon=1.0, delta=1e-6, mechanism="joint_smooth"
    )
    assert float(r.guarantee.delta) == 1e-6
