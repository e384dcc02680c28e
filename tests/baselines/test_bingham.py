"""Vectors by the exponential mechanism: what one edge can move, the draw's law, and its limits."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from baselines.bingham import (
    ASSUMPTION,
    Bingham,
    Deflation,
    largest_epsilon,
    largest_spread,
    most_moved,
    snapped,
    whole_basis,
)
from baselines.bingham_draws import ASSUMED_ERROR, bingham, gaussians, is_verified
from tests.baselines.bingham_law import (
    BinghamLaw,
    GibbsLaw,
    TrueDeflation,
    finish_bingham,
    law_of,
    log_constant,
)

import tulle
from baselines import bingham_draws as noise_bingham
from tulle.core.errors import InputError, QueryError
from tulle.core.mechanism import Terms
from tulle.core.release import Release
from tulle.core.unit import Unit
from tulle.core.validate import rational, text
from tulle.graphs.data import Graph
from tulle.graphs.generators import all_graphs, social_network
from tulle.graphs.spectra.queries import adjacency, spectrum
from tulle.noise import SeededSource


def clique(nodes):
    return Graph.from_edges([(u, v) for u in range(nodes) for v in range(u)], nodes=nodes)


@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_one_edge_moves_the_exponent_by_at_most_one(left_out):
    """Every graph of five nodes, every neighbour, and the spheres orthogonal to some vectors."""
    draw = np.random.default_rng(left_out)
    directions = draw.normal(size=(left_out, 5))
    if left_out:
        directions[-1] = [1, -1, 0, 0, 0]
    reached = 0.0
    seen = set()
    for graph in all_graphs(5):
        for other in graph.neighbours("edge"):
            moved = (adjacency(graph) - adjacency(other)).toarray().astype(float)
            if moved.tobytes() in seen:
                continue
            seen.add(moved.tobytes())
            sphere = Deflation(moved)
            for direction in directions:
                sphere.leave_out(direction)
            reached = max(reached, np.abs(np.linalg.eigvalsh(sphere.form)).max())
    assert len(seen) == 20
    assert reached <= 1 + 1e-12
    assert reached > (0.99 if not left_out else 0.3)


def test_on_unit_vectors_the_bound_is_reached_and_no_more():
    across = np.linspace(0, np.pi, 2001)
    assert np.abs(2 * np.cos(across) * np.sin(across)).max() == pytest.approx(1, abs=1e-6)
    vectors = np.random.default_rng(1).normal(size=(4000, 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.abs(2 * vectors[:, 0] * vectors[:, 1]).max() <= 1


def test_deflation_is_the_form_on_the_rest_of_the_space():
    draw = np.random.default_rng(4)
    form = draw.normal(size=(7, 7))
    form += form.T
    vectors = draw.normal(size=(7, 3))
    sphere = Deflation(form)
    for vector in vectors.T:
        sphere.leave_out(vector)
    basis = np.column_stack([sphere.lift(unit, np.zeros(3)) for unit in np.eye(4)])
    assert np.allclose(basis.T @ basis, np.eye(4))
    assert np.allclose(basis.T @ vectors, 0)
    assert np.allclose(basis.T @ form @ basis, sphere.form)
    whole = sphere.lift(draw.normal(size=4), np.array([1.0, 2.0, 3.0]))
    outside = whole - basis @ (basis.T @ whole)
    assert np.linalg.norm(outside) == pytest.approx(np.sqrt(14))


@pytest.mark.parametrize("levels", [1, 64])
@pytest.mark.parametrize("k", [1, 2])
def test_one_edge_moves_the_values_by_what_the_vectors_allow(levels, k):
    draw = np.random.default_rng(levels + k)
    settings = {"levels": levels}
    for _ in range(4):
        rows = whole_basis((draw.standard_cauchy((4, k)) * 100).astype(np.int64))
        allowed = most_moved(rows, settings)
        known = {
            graph.edges().tobytes(): (snapped(graph, rows, settings), graph)
            for graph in all_graphs(4)
        }
        for values, graph in known.values():
            for other in graph.neighbours("edge"):
                there = known[other.edges().tobytes()][0]
                assert int(np.abs(values - there).sum()) <= allowed


@pytest.mark.parametrize("strength", [0.0, 1.5, 12.0])
def test_the_draw_has_the_moments_of_the_law(strength):
    """E[u_i u_j] is the slope of ln C; both sides of the test have power."""
    form = np.array([[1.0, 2, 0], [2, 0, 1], [0, 1, -1]]) * strength
    source = SeededSource(5)
    drawn = np.array([bingham(form, source) for _ in range(3000)])
    units = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    seen = units.T @ units / len(units)
    step = 1e-4
    for i in range(3):
        nudge = np.zeros((3, 3))
        nudge[i, i] = step
        up, down = (log_constant(np.linalg.eigvalsh(form + s * nudge)) for s in (1, -1))
        assert seen[i, i] == pytest.approx((up - down) / (2 * step), abs=0.03)
    # Lengths are those of normal vectors, whatever the direction.
    assert (drawn**2).sum(axis=1).mean() == pytest.approx(3, abs=0.25)


def test_large_forms_are_drawn_with_a_good_envelope():
    """At 700 dimensions only some eigenvalues are known; draws are still accepted."""
    form = np.zeros((700, 700))
    form[0, 0] = 2000.0
    found = bingham(form, SeededSource(2))
    assert abs(found[0]) / np.linalg.norm(found) > 0.8
    assert bingham(np.zeros((450, 450)), SeededSource(2)).shape == (450,)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 1e4])
def test_any_graph_has_an_answer(epsilon):
    """Also where all that is left of a sphere has large negative eigenvalues."""
    star = Graph.from_edges([(0, v) for v in range(1, 8)], nodes=8)
    for graph in (Graph.from_edges([], nodes=8), clique(8), star):
        for k in (1, 8):
            r = tulle.release(graph, spectrum(k), unit="edge", epsilon=epsilon, mechanism="bingham")
            assert np.allclose(r.value.vectors.T @ r.value.vectors, np.eye(k), atol=1e-6)
            assert np.abs(r.value.values).max() <= 7
    assert abs(bingham(np.array([[-1500.0]]))).item() >= 0


def test_gaussians_are_normal():
    drawn = gaussians(20_000, SeededSource(3))
    assert drawn.mean() == pytest.approx(0, abs=0.04)
    assert drawn.var() == pytest.approx(1, abs=0.05)
    assert (drawn**4).mean() == pytest.approx(3, abs=0.3)


@pytest.mark.parametrize("k", [1, 3])
def test_a_release_is_orthonormal_says_what_it_assumes_and_travels(k):
    graph = social_network(60, seed=4)
    r = tulle.release(graph, spectrum(k), unit="edge", epsilon=1.0, mechanism="bingham")
    assert r.guarantee.assumptions[:1] == (ASSUMPTION,)
    assert r.guarantee.delta == 0
    assert np.allclose(r.value.vectors.T @ r.value.vectors, np.eye(k), atol=1e-6)
    assert Release.from_json(r.to_json()).value == r.value
    # Less than epsilon is spent on draws: the rest is for rounding and for values.
    strength = Fraction(r.parameters["strength"])
    assert 2 * strength * k + Fraction(r.parameters["epsilon_values"]) < 1


def test_at_a_large_epsilon_vectors_are_found():
    r = tulle.release(clique(12), spectrum(1), unit="edge", epsilon=3000.0, mechanism="bingham")
    assert abs(r.value.vectors.sum()) / np.sqrt(12) > 0.99
    assert r.value.values[0] == pytest.approx(11, abs=0.2)
    two = Graph.from_edges(
        [(u, v) for u in range(9) for v in range(u)]
        + [(u + 9, v + 9) for u in range(6) for v in range(u)],
        nodes=15,
    )
    r = tulle.release(two, spectrum(2), unit="edge", epsilon=6000.0, mechanism="bingham")
    assert r.value.values == pytest.approx([8, 5], abs=0.4)


def test_at_a_small_epsilon_they_drown():
    """The honest price: epsilon times the eigenvalue must exceed about the number of nodes."""
    graph = social_network(200, seed=4)
    true = spectrum(1).truth(graph)
    r = tulle.release(graph, spectrum(1), unit="edge", epsilon=1.0, mechanism="bingham")
    assert r.value.noise > 200 > true.values[0]
    assert r.value.informative == 0


def test_refusals():
    with pytest.raises(QueryError, match="at most 6,000"):
        tulle.planning.planner.make_plan(
            spectrum(1),
            kind="graph",
            facts={"nodes": 6001},
            unit=tulle.Unit.of("edge"),
            epsilon=1,
            mechanism="bingham",
        )
    with pytest.raises(QueryError, match="needs an epsilon above"):
        tulle.release(clique(5), spectrum(1), unit="edge", epsilon=1e-9, mechanism="bingham")
    with pytest.raises(InputError, match="levels"):
        tulle.release(
            clique(5), spectrum(1), unit="edge", epsilon=1, mechanism="bingham", levels=65
        )
    with pytest.raises(QueryError, match="low_rank"):
        tulle.release(clique(5), tulle.low_rank(1), unit="edge", epsilon=1, mechanism="bingham")
    for form in (np.ones((2, 3)), np.array([[0.0, 1], [2, 0]]), np.array([[np.nan]])):
        with pytest.raises(InputError, match="form must be"):
            bingham(form)


# --- where floating point is verified -------------------------------------------------------------


def shapes(nodes):
    """Yield adjacency matrices whose eigenvalues lie far apart, or together at the top."""
    half, most = nodes // 2, 2 * nodes // 3
    blocks = {
        "clique": [(slice(0, nodes), slice(0, nodes))],
        "two cliques": [(slice(0, half), slice(0, half)), (slice(half, nodes), slice(half, nodes))],
        "bipartite": [(slice(0, half), slice(half, nodes)), (slice(half, nodes), slice(0, half))],
        "star": [(slice(0, 1), slice(0, nodes)), (slice(0, nodes), slice(0, 1))],
        "widest": [(slice(0, most), slice(0, nodes)), (slice(0, nodes), slice(0, most))],
    }
    for name, places in blocks.items():
        matrix = np.zeros((nodes, nodes))
        for place in places:
            matrix[place] = 1
        np.fill_diagonal(matrix, 0)
        yield name, matrix


def precise_draw(matrix, width, noise):
    """Return what the accepted noise becomes in 60 digits: candidate, direction, length."""
    size = len(matrix)
    with mpmath.workdps(60):
        precision = mpmath.matrix(size, size)
        for i in range(size):
            for j in range(size):
                precision[i, j] = (i == j) - 2 * matrix[i, j] / mpmath.mpf(width)
        factor = mpmath.cholesky(precision)
        y = [mpmath.mpf(0)] * size
        for i in reversed(range(size)):
            rest = mpmath.fsum(factor[j, i] * y[j] for j in range(i + 1, size))
            y[i] = (mpmath.mpf(float(noise[i])) - rest) / factor[i, i]
        stretch = mpmath.sqrt(
            mpmath.fsum(mpmath.mpf(float(z)) ** 2 for z in noise[size:])
        ) / mpmath.sqrt(mpmath.fsum(entry**2 for entry in y))
        return [entry * stretch for entry in y]


def reflected(form, vector):
    """Return an exact form on the space orthogonal to a vector, as Deflation makes it."""
    with mpmath.workdps(60):
        size = len(vector)
        length = mpmath.sqrt(mpmath.fsum(mpmath.mpf(v) ** 2 for v in vector))
        mirror = mpmath.matrix([mpmath.mpf(v) for v in vector])
        mirror[0] += length * (1 if math.copysign(1, vector[0]) > 0 else -1)
        mirror = mirror / mpmath.sqrt(mpmath.fsum(v**2 for v in mirror))
        turn = mpmath.eye(size) - 2 * mirror * mirror.T
        return (turn * form * turn)[1:, 1:]


def float_error(monkeypatch, matrix, strength, draws=1, seed=0):
    """Return how far the entries of drawn vectors are from 60 digits, at most."""
    kept = {}
    envelope, normal = noise_bingham._envelope, noise_bingham.gaussians

    def record_envelope(form, width):
        kept["factor"] = envelope(form, width)
        # The multiple of the identity that was taken off: any is as good, so it is no error.
        kept["shift"] = kept["given"][0, 0] - form[0, 0]
        return kept["factor"]

    def record_noise(count, source=None):
        kept["noise"] = normal(count, source)
        return kept["noise"]

    monkeypatch.setattr(noise_bingham, "_envelope", record_envelope)
    monkeypatch.setattr(noise_bingham, "gaussians", record_noise)
    source = SeededSource(seed)
    sphere = Deflation(matrix * strength)
    precise = mpmath.matrix((matrix * strength).tolist())
    worst = 0.0
    for left in reversed(range(draws)):
        kept["given"] = sphere.form
        drawn = bingham(sphere.form, source)
        size = len(drawn)
        with mpmath.workdps(60):
            shifted = precise - mpmath.mpf(float(kept["shift"])) * mpmath.eye(size)
        exact = precise_draw(shifted, kept["factor"][1], kept["noise"])
        worst = max(worst, *(abs(float(a - b)) for a, b in zip(drawn, exact, strict=True)))
        if left:
            rounded = np.rint(drawn * 64)
            # Inside coordinates: a first direction is dropped from all, later ones from the rest.
            precise = reflected(precise, rounded.tolist())
            sphere = Deflation(sphere.form)
            sphere.leave_out(rounded)
    return worst


def last_verified(nodes, k):
    """Return the largest strength that the check lets through, to within a thousandth."""
    low, high = Fraction(0), Fraction(10**6)
    while high - low > high / 1000:
        middle = (low + high) / 2
        if is_verified(nodes, middle * largest_spread(nodes), k):
            low = middle
        else:
            high = middle
    return float(low)


@pytest.mark.parametrize(("nodes", "k"), [(4, 1), (9, 1), (9, 3), (20, 1), (20, 2), (36, 1)])
def test_inside_the_region_floating_point_keeps_to_the_assumption(monkeypatch, nodes, k):
    strength = last_verified(nodes, k)
    for seed, (name, matrix) in enumerate(shapes(nodes)):
        for part in (1.0, 0.01):
            error = float_error(monkeypatch, matrix, strength * part, k, seed)
            assert error <= ASSUMED_ERROR, (name, part)


def test_far_outside_floating_point_breaks_the_assumption(monkeypatch):
    """The comparison can fail: an assumption that is false is found to be."""
    errors = [
        float_error(monkeypatch, matrix, 3e9, 1, seed)
        for seed in range(3)
        for _, matrix in shapes(20)
    ]
    assert max(errors) > ASSUMED_ERROR


@pytest.mark.parametrize("nodes", [4, 9, 60, 220])
def test_eigenvalues_are_no_further_apart_than_the_region_reckons_with(nodes):
    for _, matrix in shapes(nodes):
        found = np.linalg.eigvalsh(matrix)
        assert found[-1] - found[0] <= largest_spread(nodes)


@pytest.mark.parametrize(
    ("nodes", "k", "epsilon"), [(220, 1, 10**4), (220, 220, 10**4), (100, 1, 2000), (4000, 1, 100)]
)
def test_outside_the_region_nothing_is_spent(tmp_path, nodes, k, epsilon):
    graph = clique(nodes) if nodes <= 220 else Graph.from_edges([], nodes=nodes)
    ledger = tulle.Ledger(tmp_path / "study.ledger")
    session = ledger.open("friends", graph, unit="edge", epsilon=10**4)
    with pytest.raises(QueryError, match=r"verified up to epsilon = "):
        session.ask(spectrum(k), epsilon=epsilon, mechanism="bingham")
    assert session.remaining.epsilon == 10**4


@pytest.mark.parametrize(("nodes", "k"), [(12, 1), (40, 3), (220, 1)])
def test_the_refusal_names_an_epsilon_that_is_allowed(nodes, k):
    def planned(epsilon):
        return tulle.planning.planner.make_plan(
            spectrum(k),
            kind="graph",
            facts={"nodes": nodes},
            unit=tulle.Unit.of("edge"),
            epsilon=epsilon,
            mechanism="bingham",
        )

    largest = largest_epsilon(nodes, k)
    assert planned(largest * Fraction(99, 100)).chosen.mechanism == "bingham"
    with pytest.raises(QueryError, match="verified"):
        planned(min(largest * Fraction(102, 100) + Fraction(1, 10), Fraction(10**4)))


def worst(kind=BinghamLaw, stronger=1, k=1, epsilon=Fraction(1)):
    """Return the largest privacy loss among all graphs of three nodes, and the largest claim."""
    mechanism, loss, claim = Bingham(), 0.0, 0.0
    for graph in all_graphs(3):
        terms = Terms(spectrum(k), Unit.of("edge"), epsilon, Fraction(0), graph.facts("edge"))
        settings = dict(mechanism.settings(terms, {"levels": 1}))
        settings["strength"] = text(stronger * rational(settings["strength"]))
        law = law_of(settings, graph, kind)
        for other in graph.neighbours("edge"):
            there = law_of(settings, other, kind)
            loss = max(loss, law.loss(there))
            claim = max(claim, *(found.observed for found in law.claims(there)))
    return loss, claim


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(3)])
def test_the_loss_is_at_most_epsilon(k, epsilon):
    loss, claim = worst(k=k, epsilon=epsilon)
    assert loss <= float(epsilon) * (1 + 1e-9)
    assert claim <= 1 + 1e-9


def test_broken_versions_are_caught():
    # What the weights add up to is data too, and costs as much again.
    assert worst(stronger=2)[0] > 1.05
    assert worst(GibbsLaw)[0] == math.inf
    assert worst(TrueDeflation, k=2)[0] == math.inf


def test_draws_follow_the_law_and_are_fresh():
    graph = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
    mechanism = Bingham()
    terms = Terms(spectrum(1), Unit.of("edge"), Fraction(2), Fraction(0), graph.facts("edge"))
    settings = mechanism.settings(terms, {"levels": 1})
    points, masses = law_of(settings, graph).points(1e-4)
    likely = {}
    for point, mass in zip(points, masses, strict=True):
        seen = finish_bingham(point, settings)
        key = tuple(np.concatenate([seen.values, seen.vectors.ravel()]).round(6))
        likely[key] = likely.get(key, 0.0) + mass
    assert sum(likely.values()) == pytest.approx(1, abs=2e-3)
    runs, found = 4000, {}
    for _ in range(runs):
        value = mechanism.run(terms, settings, graph, None).value
        key = tuple(np.concatenate([value.values, value.vectors.ravel()]).round(6))
        found[key] = found.get(key, 0) + 1
    assert len(found) > 10
    for key in sorted(likely, key=likely.get)[-8:]:
        expected = runs * likely[key]
        assert abs(found.get(key, 0) - expected) < 6 * math.sqrt(expected + 1)
