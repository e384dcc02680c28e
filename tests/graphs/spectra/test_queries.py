"""Private spectra: what is asked, what is released, and the bounds their proofs rest on."""

from fractions import Fraction

import numpy as np
import pytest

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.core.guarantee import epsilon_of_rho, largest_rho
from tulle.core.release import Release
from tulle.graphs.data import Graph
from tulle.graphs.generators import all_graphs, social_network
from tulle.graphs.spectra.queries import (
    Spectrum,
    adjacency,
    eigenvalues,
    low_rank,
    shrink,
    spectrum,
)
from tulle.ledger.answer import plan_for

ITERATIVE = ["power", "power_pure"]
OFFERED = [*ITERATIVE, "spectral_response"]


def clique(nodes):
    return Graph.from_edges([(u, v) for u in range(nodes) for v in range(u)], nodes=nodes)


def two_groups(seed=3):
    """Two groups of 60 people, dense inside and sparse between."""
    draw = np.random.default_rng(seed)
    group = np.repeat([0, 1], 60)
    chance = np.where(group[:, None] == group, 0.5, 0.02)
    pairs = np.argwhere(np.triu(draw.random((120, 120)) < chance, 1))
    return Graph.from_edges(pairs, nodes=120)


def test_truth_is_the_decomposition():
    graph = social_network(200, seed=1)
    matrix = adjacency(graph).toarray().astype(float)
    true = spectrum(4).truth(graph)
    assert np.allclose(matrix @ true.vectors, true.vectors * true.values)
    assert np.allclose(true.vectors.T @ true.vectors, np.eye(4))
    assert np.allclose(eigenvalues(4).truth(graph), np.linalg.eigvalsh(matrix)[::-1][:4])
    large = social_network(1200, seed=1)
    found = spectrum(3).truth(large)
    assert np.allclose(adjacency(large) @ found.vectors, found.vectors * found.values)
    assert np.allclose(found.values, spectrum(5).truth(large).values[:3])


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_one_edge_moves_all_eigenvalues_by_at_most_two(nodes):
    """Every graph and every neighbour: L1 at most min(k, 2), which is reached."""
    reached = np.zeros(nodes)
    known = {}

    def values(graph):
        key = graph.edges().tobytes()
        if key not in known:
            matrix = adjacency(graph).toarray().astype(float)
            known[key] = np.linalg.eigvalsh(matrix)[::-1]
        return known[key]

    for graph in all_graphs(nodes):
        for other in graph.neighbours("edge"):
            moved = np.cumsum(np.abs(values(graph) - values(other)))
            reached = np.maximum(reached, moved)
    allowed = np.minimum(np.arange(1, nodes + 1), 2)
    assert np.all(reached <= allowed + 1e-9)
    assert reached[0] == pytest.approx(1)
    assert reached[-1] == pytest.approx(2)


def test_without_clipping_the_bound_is_false():
    rows = np.array([[9], [1], [1]])
    path = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
    cut = Graph.from_edges([(1, 2)], nodes=3)
    assert np.abs((adjacency(path) - adjacency(cut)) @ rows).sum() == 10


@pytest.mark.parametrize("epsilon", ["0.001", "0.5", "1", "8", "200"])
@pytest.mark.parametrize("delta", ["1e-300", "1e-6", "0.1"])
def test_rho_is_rounded_down_and_not_far(epsilon, delta):
    rho = largest_rho(Fraction(epsilon), Fraction(delta))
    assert epsilon_of_rho(rho, Fraction(delta)) <= Fraction(epsilon)
    assert epsilon_of_rho(rho * Fraction(101, 100), Fraction(delta)) > Fraction(epsilon)


@pytest.mark.parametrize("name", OFFERED)
@pytest.mark.parametrize("k", [1, 3])
def test_a_release_is_orthonormal_and_travels(name, k):
    graph = social_network(60, seed=4)
    r = tulle.release(graph, spectrum(k), unit="edge", epsilon=1.0, delta=1e-6, mechanism=name)
    assert r.value.values.shape == (k,)
    assert r.value.vectors.shape == (60, k)
    assert np.allclose(r.value.vectors.T @ r.value.vectors, np.eye(k), atol=1e-6)
    assert np.all(np.diff(r.value.values) <= 0)
    assert r.guarantee.delta == (Fraction(1, 10**6) if name == "power" else 0)
    assert 0 <= r.value.informative <= k
    assert Release.from_json(r.to_json()).value == r.value
    assert "eigenvalues" in repr(r)


@pytest.mark.parametrize("name", OFFERED)
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 1e4])
def test_any_graph_has_an_answer(name, epsilon):
    """An empty graph, a full one and a bipartite one, at budgets that drown or show everything."""
    star = Graph.from_edges([(0, v) for v in range(1, 8)], nodes=8)
    for graph in (Graph.from_edges([], nodes=8), clique(8), star):
        for k in (1, 8):
            r = tulle.release(
                graph, spectrum(k), unit="edge", epsilon=epsilon, delta=1e-6, mechanism=name
            )
            assert np.isfinite(r.value.vectors).all()
            assert np.abs(r.value.values).max() <= 7


@pytest.mark.parametrize("name", OFFERED)
def test_at_a_large_epsilon_the_first_vector_is_found(name):
    graph = clique(12)
    r = tulle.release(graph, spectrum(1), unit="edge", epsilon=2000.0, delta=1e-6, mechanism=name)
    assert abs(r.value.vectors.sum()) / np.sqrt(12) > 0.999
    assert abs(r.value.values[0] - 11) < 0.1


@pytest.mark.parametrize("name", OFFERED)
def test_two_groups_show(name):
    graph = two_groups()
    epsilon = {"power_pure": 20.0}.get(name, 8.0)
    r = tulle.release(graph, spectrum(2), unit="edge", epsilon=epsilon, delta=1e-6, mechanism=name)
    true = spectrum(2).truth(graph).vectors
    cosines = np.linalg.svd(true.T @ r.value.vectors, compute_uv=False)
    assert cosines.mean() > 0.85


def test_eigenvalues_are_sorted_covered_and_close():
    graph = social_network(60, seed=4)
    true = eigenvalues(5).truth(graph)
    hits = 0
    for _ in range(60):
        r = tulle.release(graph, eigenvalues(5), unit="edge", epsilon=1.0)
        low, high = r.interval(0.9)
        hits += bool(np.all((low <= true) & (true <= high)))
        assert np.all(np.diff(r.value) <= 0)
    assert r.mechanism == "eigen_laplace"
    assert hits >= 40
    sharp = tulle.release(graph, eigenvalues(5), unit="edge", epsilon=5000.0).value
    assert np.abs(sharp - true).max() < 0.05


def test_eigenvalues_by_hoffman_and_wielandt_would_need_more_noise():
    plan = plan_for(clique(30), eigenvalues(8), unit="edge", epsilon=1.0)
    settings = plan.chosen.settings
    moved = float(Fraction(settings["scale"])) * float(Fraction(settings["step"]))
    assert 2 <= moved < 2.01 < np.sqrt(16)


def test_one_edge_moves_eigenvalues_by_at_most_root_two():
    """Every graph of five nodes and every neighbour: squared L2 at most min(k, 2), reached."""
    reached = np.zeros(5)
    known = {}
    for graph in all_graphs(5):
        matrix = adjacency(graph).toarray().astype(float)
        known[graph.edges().tobytes()] = np.linalg.eigvalsh(matrix)[::-1], graph
    for values, graph in known.values():
        for other in graph.neighbours("edge"):
            there = known[other.edges().tobytes()][0]
            reached = np.maximum(reached, np.cumsum((values - there) ** 2))
    assert np.all(reached <= np.minimum(np.arange(1, 6), 2) + 1e-9)
    assert reached[0] == pytest.approx(1)
    assert reached[-1] == pytest.approx(2)


def test_gaussian_eigenvalues_cover():
    graph = social_network(60, seed=4)
    true = eigenvalues(5).truth(graph)
    hits = 0
    for _ in range(60):
        r = tulle.release(
            graph, eigenvalues(5), unit="edge", epsilon=1.0, delta=1e-6, mechanism="eigen_gauss"
        )
        low, high = r.interval(0.9)
        hits += bool(np.all((low <= true) & (true <= high)))
    assert hits >= 40
    assert r.guarantee.delta == Fraction(1, 10**6)
    # In L1 all eigenvalues move by 2 whatever k, so Laplace noise is the smaller one here.
    plan = plan_for(graph, eigenvalues(5), unit="edge", epsilon=1.0, delta=1e-6)
    assert [offer.mechanism for offer in plan.offers] == ["eigen_laplace", "eigen_gauss"]
    loose = plan_for(graph, eigenvalues(5), unit="edge", epsilon=0.5, delta=0.2)
    assert loose.mechanism == "eigen_gauss"


def test_low_rank_is_the_nearest_matrix_of_its_rank():
    """A star has the eigenvalues r and -r: the largest two in size, not the largest two."""
    star = Graph.from_edges([(0, v) for v in range(1, 10)], nodes=10)
    true = low_rank(2).truth(star)
    assert sorted(true.values) == pytest.approx([-3.0, 3.0])
    assert np.allclose(true.matrix(), adjacency(star).toarray())
    assert spectrum(2).truth(star).values == pytest.approx([3.0, 0.0], abs=1e-9)
    for name in OFFERED:
        r = tulle.release(
            star, low_rank(2), unit="edge", epsilon=4000.0, delta=1e-6, mechanism=name
        )
        off = np.linalg.norm(r.value.matrix() - adjacency(star).toarray())
        assert off < (1.5 if name in ITERATIVE else 0.1), name
        assert Release.from_json(r.to_json()).value == r.value
    with pytest.raises(QueryError, match="at most 10"):
        tulle.release(star, low_rank(11), unit="edge", epsilon=1.0)


def test_plans_choose_by_public_size_alone():
    small = plan_for(clique(30), spectrum(2), unit="edge", epsilon=1.0, delta=1e-6)
    assert {offer.mechanism for offer in small.offers} == set(OFFERED)
    facts = {"nodes": 81_306}
    large = tulle.planning.planner.make_plan(
        spectrum(1), kind="graph", facts=facts, unit=tulle.Unit.of("edge"), epsilon=1, delta=1e-6
    )
    assert large.mechanism == "spectral_response"
    assert large.chosen.settings["core"] == 6000
    asked = {"kind": "graph", "facts": facts, "unit": tulle.Unit.of("edge"), "epsilon": 1}
    with pytest.raises(QueryError, match=r"Give a delta.*ask for spectrum\(2\)"):
        tulle.planning.planner.make_plan(eigenvalues(2), **asked)
    searched = tulle.planning.planner.make_plan(eigenvalues(2), **asked, delta=1e-6)
    assert searched.mechanism == "eigen_laplace"
    assert searched.chosen.guarantee.delta > 0
    with pytest.raises(QueryError, match="Ask for at most 20,326"):
        tulle.planning.planner.make_plan(eigenvalues(30_000), **asked, delta=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "k", "epsilon", "least"),
    [
        ("facebook_combined", 1, 1.0, 0.95),
        ("facebook_combined", 5, 1.0, 0.70),
        ("facebook_combined", 5, 2.0, 0.88),
        ("ca-GrQc", 1, 5.0, 0.98),
        ("ca-GrQc", 1, 1.0, 0.80),
    ],
)
def test_the_default_finds_the_vectors_of_real_networks(data_folder, name, k, epsilon, least):
    graph = Graph.read(data_folder / name / f"{name}.edges.txt", ignore=["direction"])
    true = spectrum(k).truth(graph).vectors
    r = tulle.release(graph, spectrum(k), unit="edge", epsilon=epsilon, delta=1e-6)
    assert np.linalg.svd(true.T @ r.value.vectors, compute_uv=False).mean() >= least


def test_refusals():
    for bad in (0, -1, 1.5, "2", True):
        with pytest.raises(InputError, match="k must be"):
            spectrum(bad)
    for query in (spectrum(6), eigenvalues(6)):
        with pytest.raises(QueryError, match="at most 5"):
            tulle.release(clique(5), query, unit="edge", epsilon=1.0)
        with pytest.raises(QueryError, match="cannot be answered per node"):
            tulle.release(clique(5), query, unit="node", epsilon=1.0)
    for option in (
        {"iterations": 0},
        {"reach": 2},
        {"reach": 0},
        {"threshold": -1},
        {"levels": 0},
        {"levels": 2**21},
    ):
        with pytest.raises(InputError, match=next(iter(option))):
            tulle.release(
                clique(5), spectrum(1), unit="edge", epsilon=1.0, mechanism="power_pure", **option
            )
    with pytest.raises(InputError, match="step"):
        tulle.release(
            clique(5), eigenvalues(1), unit="edge", epsilon=1.0, mechanism="eigen_laplace", step=0.3
        )
    with pytest.raises(QueryError, match="delta"):
        tulle.release(clique(5), spectrum(1), unit="edge", epsilon=1.0, mechanism="power")
    with pytest.raises(InputError, match="one vector for each value"):
        tulle.core.codec.decode(
            {
                "type": "spectrum",
                "value": tulle.core.codec.encode(
                    {"values": np.ones(2), "vectors": np.ones((3, 1))}
                )["value"],
            }
        )


def test_values_compare_and_multiply():
    one = Spectrum(np.array([3.0]), np.array([[1.0], [0.0]]))
    same = Spectrum(np.array([3.0]), np.array([[1.0], [0.0]]))
    assert one == same
    assert hash(one) == hash(same)
    assert one != Spectrum(np.array([2.0]), np.array([[1.0], [0.0]]))
    assert one != 3
    assert one.matrix()[0, 0] == 3
    assert shrink(np.array([-3.0, 0.5, 2.0]), 1.0).tolist() == [-2.0, 0.0, 1.0]
