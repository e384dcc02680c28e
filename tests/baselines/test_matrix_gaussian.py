"""Gaussian noise on the whole matrix: its price, its answers, and a version with less noise."""

from fractions import Fraction

import numpy as np
import pytest
from baselines.matrix_gaussian import Gauss
from tests.graphs.spectra.test_queries import clique, two_groups

import tulle
from tulle.audit.engine.cost import Case, cost_of
from tulle.audit.graphs.spectra import GaussianVector
from tulle.core.mechanism import Terms
from tulle.core.release import Release
from tulle.core.unit import Unit
from tulle.core.validate import rational, text
from tulle.graphs.data import Graph
from tulle.graphs.generators import all_graphs, social_network
from tulle.graphs.spectra.queries import eigenvalues, spectrum
from tulle.graphs.topology.response import topology

DELTA = Fraction(1, 10**6)


class Half(Gauss):
    """Draws half the variance."""

    def settings(self, terms, options):
        found = super().settings(terms, options)
        return {**found, "variance": text(rational(found["variance"]) / 2)}


def terms_of(graph, query, epsilon):
    return Terms(query, Unit.of("edge"), epsilon, DELTA, graph.facts("edge"))


def delta_of(mechanism, epsilon):
    """Return the largest delta at this epsilon, exactly, among all graphs of three nodes."""
    worst = 0.0
    for graph in all_graphs(3):
        terms = terms_of(graph, spectrum(1), epsilon)
        variance = rational(mechanism.settings(terms, {})["variance"])
        mine, *others = (
            GaussianVector(tuple(map(int, topology().truth(one).bits())), variance, Fraction(1))
            for one in (graph, *graph.neighbours("edge"))
        )
        for other in others:
            assert all(claim.observed <= 1 for claim in mine.claims(other))
            masses, losses = mine.losses(other)
            gone = masses * np.maximum(-np.expm1(float(epsilon) - losses), 0)
            worst = max(worst, float(gone.sum()))
    return worst


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
def test_delta_is_kept_and_half_the_noise_is_caught(epsilon):
    assert delta_of(Gauss(), epsilon) <= float(DELTA)
    assert delta_of(Half(), epsilon) > float(DELTA)


def test_draws_cost_what_is_charged():
    path = Graph.from_edges([(0, 1), (1, 2)], nodes=4)
    case = Case(terms_of(path, eigenvalues(2), Fraction(1)), {}, path)
    assert cost_of(Gauss(), case).kept
    assert not cost_of(Half(), case).kept


@pytest.mark.parametrize("k", [1, 3])
def test_a_release_is_orthonormal_and_travels(k):
    graph = social_network(60, seed=4)
    r = tulle.release(graph, spectrum(k), unit="edge", epsilon=1.0, delta=1e-6, mechanism="gauss")
    assert np.allclose(r.value.vectors.T @ r.value.vectors, np.eye(k), atol=1e-6)
    assert r.guarantee.delta == DELTA
    assert Release.from_json(r.to_json()).value == r.value


@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 1e4])
def test_any_graph_has_an_answer(epsilon):
    star = Graph.from_edges([(0, v) for v in range(1, 8)], nodes=8)
    for graph in (Graph.from_edges([], nodes=8), clique(8), star):
        for k in (1, 8):
            r = tulle.release(
                graph, spectrum(k), unit="edge", epsilon=epsilon, delta=1e-6, mechanism="gauss"
            )
            assert np.isfinite(r.value.vectors).all()
            assert np.abs(r.value.values).max() <= 7


def test_two_groups_show_at_a_large_epsilon():
    graph = two_groups()
    r = tulle.release(graph, spectrum(2), unit="edge", epsilon=60.0, delta=1e-6, mechanism="gauss")
    true = spectrum(2).truth(graph).vectors
    assert np.linalg.svd(true.T @ r.value.vectors, compute_uv=False).mean() > 0.85
