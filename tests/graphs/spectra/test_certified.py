"""Eigenvalues that are searched for: none is missed, whatever the graph."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom

import tulle
from tulle.core.errors import QueryError
from tulle.core.events import Composed, price
from tulle.graphs.generators import barabasi_albert, erdos_renyi
from tulle.graphs.spectra import certified, eigenvalues_laplace
from tulle.graphs.spectra.certified import (
    _check,
    _factorised,
    _proof_is_exact,
    largest_values,
    proved_values,
)
from tulle.graphs.spectra.eigenvalues_laplace import PROOF
from tulle.noise import discrete_gaussian
from tulle.noise.watch import watch

TOLERANCE = 1 / 64


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Let small matrices be searched as well."""
    monkeypatch.setattr(certified, "_SMALL", 6)


def clique(size):
    return np.ones((size, size)) - np.eye(size)


def star(leaves):
    made = np.zeros((leaves + 1, leaves + 1))
    made[0, 1:] = made[1:, 0] = 1
    return made


def matrices():
    """Yield graphs with separate, close, equal, negative and no eigenvalues."""
    generator = np.random.default_rng(8)
    yield "nothing", np.zeros((30, 30))
    yield "one edge", np.pad(clique(2), (0, 30))
    yield "complete", clique(40)
    yield "star", star(60)
    yield "equal cliques", np.kron(np.eye(7), clique(6))
    yield "equal stars", np.kron(np.eye(6), star(7))
    yield "path", np.diag(np.ones(79), 1) + np.diag(np.ones(79), -1)
    yield "two sides", np.kron(clique(2), np.ones((20, 20)))
    for chance in (0.03, 0.2, 0.9):
        half = np.triu(generator.random((60, 60)) < chance, 1).astype(float)
        yield f"random {chance}", half + half.T
        yield f"twice random {chance}", np.kron(np.eye(2), half + half.T)


@pytest.mark.parametrize(("name", "matrix"), list(matrices()), ids=lambda one: str(one)[:20])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_values_are_within_three_tolerances_below(name, matrix, k):
    generator = np.random.default_rng(k)
    true = np.linalg.eigvalsh(matrix)[::-1][:k]
    found = largest_values(
        csr_array(matrix), k, TOLERANCE, 1e-9, lambda: generator.normal(size=len(matrix))
    )
    assert np.all(found <= true + 1e-9)
    assert np.all(true <= found + 3 * TOLERANCE)


@pytest.mark.parametrize(("name", "matrix"), list(matrices())[1:], ids=lambda one: str(one)[:20])
def test_the_check_sees_a_value_that_was_missed(name, matrix):
    """The vectors but one: the check must say so, in every run."""
    values, vectors = np.linalg.eigh(matrix)
    order = np.argsort(-values)
    generator = np.random.default_rng(1)
    for missing in (0, 1):
        kept = [place for place in order[:4] if place != order[missing]][:2]
        gap = values[order[missing]] - values[kept[-1]]
        found = [
            _check(
                csr_array(matrix),
                vectors[:, kept],
                values[kept],
                TOLERANCE,
                1e-9,
                generator.normal(size=len(matrix)),
            )
            for _ in range(5)
        ]
        if gap > 2 * TOLERANCE:
            assert all(one is not None for one in found)
            # And it shows where: what it returns is made larger than the last one kept.
            assert all(np.linalg.norm(matrix @ one) > values[kept[-1]] + TOLERANCE for one in found)
    kept = order[:2]
    start = generator.normal(size=len(matrix))
    assert _check(csr_array(matrix), vectors[:, kept], values[kept], TOLERANCE, 1e-9, start) is None


def test_a_start_that_a_graph_can_avoid_would_miss():
    """Broken version: with a public start, a vector that is orthogonal to it is never seen."""
    matrix = np.kron(np.eye(2), clique(20))
    values, vectors = np.linalg.eigh(matrix)
    first = np.concatenate([np.ones(20), np.zeros(20)]) / np.sqrt(20)
    public = np.concatenate([np.ones(20), np.tile([1.0, -1.0], 10)])
    asked = csr_array(matrix), first[:, None], np.array([18.0]), TOLERANCE, 1e-9
    assert _check(*asked, public) is None
    secret = np.random.default_rng(2).normal(size=40)
    assert _check(*asked, secret) is not None
    assert values[-1] == pytest.approx(19)
    assert vectors.shape == (40, 40)


def test_the_check_fails_no_more_often_than_it_may():
    """At a large probability of failure misses occur, and no more often than stated."""
    matrix = csr_array(np.kron(np.eye(2), clique(20)))
    first = (np.concatenate([np.ones(20), np.zeros(20)]) / np.sqrt(20))[:, None]
    generator = np.random.default_rng(6)
    failure, runs = 0.3, 300
    # An eigenvalue just above what the check must see.
    last = np.array([19 - 2.001 * TOLERANCE])
    missed = sum(
        _check(matrix, first, last, TOLERANCE, failure, generator.normal(size=40)) is None
        for _ in range(runs)
    )
    assert binom.sf(missed, runs, failure) > 1e-6


@pytest.mark.parametrize(("name", "matrix"), list(matrices()), ids=lambda one: str(one)[:20])
def test_counted_steps_need_no_check(name, matrix, monkeypatch):
    """What is left where no round of the search succeeds."""
    monkeypatch.setattr(certified, "_ROUNDS", 0)
    generator = np.random.default_rng(3)
    asked = csr_array(matrix), 3, 0.25, 1e-9, lambda: generator.normal(size=len(matrix))
    true = np.linalg.eigvalsh(matrix)[::-1][:3]
    found = largest_values(*asked)
    assert np.all(found <= true + 1e-9)
    assert np.all(true <= found + 3 * 0.25)


def test_too_few_steps_or_a_public_start_would_miss(monkeypatch):
    monkeypatch.setattr(certified, "_ROUNDS", 0)
    matrix = csr_array(np.kron(np.diag([1.0, 0.9]), clique(20)))
    hidden = np.concatenate([np.zeros(20), np.ones(20)])
    generator = np.random.default_rng(3)
    assert largest_values(matrix, 1, 0.25, 1e-9, lambda: hidden)[0] < 19 - 0.75

    def nearly() -> np.ndarray:
        return hidden + 1e-9 * generator.normal(size=40)

    assert largest_values(matrix, 1, 0.25, 1e-9, nearly)[0] > 19 - 0.75
    monkeypatch.setattr(certified.math, "log", lambda spread: 1.0)
    assert largest_values(matrix, 1, 0.25, 1e-9, nearly)[0] < 19 - 0.75


def test_a_start_vector_has_a_product_with_every_vector():
    """An isolated edge's vector has two entries: sums of coarse steps often are nothing at all."""
    for entries in (1, 2, 3, 30):
        vector = np.ones(entries) / np.sqrt(entries)
        for failure, fine in ((2.0**-6, 2**8), (0.25, 4)):
            drawn = discrete_gaussian(variance=fine**2, size=40_000 * entries) / fine
            products = drawn.reshape(-1, entries) @ vector
            least = certified._least_product(failure, entries)
            missed = int((np.abs(products) <= least).sum())
            assert binom.sf(missed, 40_000, failure) > 1e-6
    # Broken version: start vectors in coarse steps.
    drawn = discrete_gaussian(variance=1, size=80_000).reshape(-1, 2)
    missed = int((np.abs(drawn.sum(axis=1)) <= certified._least_product(2.0**-6, 2)).sum())
    assert binom.sf(missed, 40_000, 2.0**-6) < 1e-6


def test_a_delta_that_no_search_can_keep_is_refused(monkeypatch):
    monkeypatch.setattr(eigenvalues_laplace, "LARGEST_DENSE", 100)
    graph = barabasi_albert(150, 4, seed=1)
    for edges in (graph, graph.from_edges([], nodes=150)):
        for delta in (Fraction(1, 10**300), Fraction(1, 10**13)):
            with pytest.raises(QueryError, match="Give a delta of at least"):
                tulle.release(edges, tulle.eigenvalues(2), unit="edge", epsilon=2, delta=delta)
        tulle.release(edges, tulle.eigenvalues(2), unit="edge", epsilon=2, delta=1e-12)


def test_large_graphs_are_answered_with_a_delta(monkeypatch):
    monkeypatch.setattr(eigenvalues_laplace, "LARGEST_DENSE", 100)
    graph = barabasi_albert(300, 4, seed=1)
    true = tulle.eigenvalues(2).truth(graph)
    asked = {"unit": "edge", "epsilon": 2.0}
    with pytest.raises(QueryError, match="Give a delta"):
        tulle.release(graph, tulle.eigenvalues(2), **asked)
    level, runs, hits = 0.9, 40, 0
    for _ in range(runs):
        release = tulle.release(
            graph, tulle.eigenvalues(2), **asked, delta=1e-6, mechanism="eigen_laplace"
        )
        low, high = release.interval(level)
        hits += bool(np.all((low <= true) & (true <= high)))
    assert release.guarantee.delta == Fraction(1, 10**6)
    assert binom.cdf(hits, runs, level) >= 1e-6


def test_what_is_drawn_is_paid_for(monkeypatch):
    monkeypatch.setattr(eigenvalues_laplace, "LARGEST_DENSE", 100)
    from tulle.core.mechanism import Terms

    graph = erdos_renyi(150, 0.1, seed=2)
    unit = graph.check_unit("edge")
    terms = Terms(tulle.eigenvalues(3), unit, Fraction(1), Fraction(1, 10**6), graph.facts(unit))
    mechanism = eigenvalues_laplace.EigenLaplace()
    settings = mechanism.settings(terms, {})
    with watch() as events:
        mechanism.run(terms, settings, graph, None)
    epsilon, delta = price(Composed(tuple(events)), terms.delta)
    assert epsilon <= 1
    assert delta <= terms.delta
    # One edge moves the computed values by no more than the noise is for.
    moved = Fraction(settings["sensitivity"]) * Fraction(settings["step"])
    assert moved >= 2 + 3 * 3 * Fraction(settings["tolerance"])


@pytest.mark.parametrize(("name", "matrix"), list(matrices()), ids=lambda one: str(one)[:20])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_proved_values_are_within_two_tolerances_below(name, matrix, k, monkeypatch):
    """Also where the search finds nothing to begin with: what it misses is named and taken in."""
    true = np.linalg.eigvalsh(matrix)[::-1][:k]
    for start in (certified._proposed, lambda matrix, k, _: np.eye(matrix.shape[0], k)):
        monkeypatch.setattr(certified, "_proposed", start)
        found = proved_values(csr_array(matrix), k, float(PROOF))
        assert np.all(found <= true + 1e-9)
        assert np.all(true <= found + 2 * float(PROOF))


@pytest.mark.parametrize(("name", "matrix"), list(matrices())[1:], ids=lambda one: str(one)[:20])
def test_no_proof_where_a_value_was_missed(name, matrix):
    """The vectors but one: the factorisation stops, and names a vector on which it is negative."""
    values, vectors = np.linalg.eigh(matrix)
    order = np.argsort(-values)
    for missing in (0, 1):
        kept = [place for place in order[:4] if place != order[missing]][:2]
        gap = values[order[missing]] - values[kept[-1]]
        asked = csr_array(matrix), vectors[:, kept], values[kept], float(PROOF)
        found = _factorised(*asked)
        assert (found is not None) == (gap > float(PROOF))
        if found is not None:
            deflated = (vectors[:, kept] * (values[kept] - values[kept[-1]])) @ vectors[:, kept].T
            kernel = (values[kept[-1]] + float(PROOF)) * np.eye(len(matrix)) + deflated - matrix
            assert found @ kernel @ found <= 1e-9
    kept = order[:2]
    assert _factorised(csr_array(matrix), vectors[:, kept], values[kept], float(PROOF)) is None


def test_a_search_without_proof_would_miss():
    """Broken version: iteration from a public start does not see what is orthogonal to it.

    Zeros stay zeros in any arithmetic; a start that is orthogonal otherwise may be rounded away.
    """
    matrix = csr_array(np.kron(np.eye(2), clique(20)))
    hidden = np.concatenate([np.ones(20), np.zeros(20)])[:, None]
    _, values, residual = certified._refined(matrix, hidden, 2, 1e-6, 20)
    assert residual < 1e-6
    assert values[1] < 10
    assert proved_values(matrix, 2, float(PROOF)).round(6).tolist() == [19, 19]


def test_rounding_stays_below_the_proof():
    """For the largest graph that is proved, and the largest eigenvalues that it can have."""
    nodes = eigenvalues_laplace.LARGEST_DENSE
    largest = csr_array((nodes, nodes))
    assert _proof_is_exact(largest, np.array([nodes - 1.0]), float(PROOF))
    # Squares of all eigenvalues add up to no more than n squared.
    many = np.full(eigenvalues_laplace.MOST_PROVED, nodes / 2)
    assert _proof_is_exact(largest, many, float(PROOF))
    assert not _proof_is_exact(csr_array((10 * nodes,) * 2), np.array([10.0 * nodes]), float(PROOF))


def test_networks_of_some_thousand_nodes_are_pure_and_quick():
    """Twice as quick as all eigenvalues, at least, in this process: it is eight times at 5,000."""
    import time

    graph = barabasi_albert(2000, 4, seed=1)
    matrix = graph.to_scipy().astype(float)
    clock = time.process_time()
    true = certified.all_values(matrix, 3)
    whole = time.process_time() - clock
    clock = time.process_time()
    found = proved_values(matrix, 3, float(PROOF))
    assert time.process_time() - clock < whole / 2
    assert np.all(np.abs(found - true) <= 2 * float(PROOF))
    release = tulle.release(graph, tulle.eigenvalues(3), unit="edge", epsilon=1.0)
    assert release.guarantee.delta == 0
    low, high = release.interval(1 - 1e-7)
    assert np.all((low <= true) & (true <= high))
