"""Edge inference: right beliefs, inside the limits, and outside when the guarantee is a lie."""

import math
from dataclasses import replace

import numpy as np
import pytest

import tulle
from tulle.attacks import count_inference, edge_inference
from tulle.core.errors import InputError
from tulle.graphs.generators import social_network

GRAPH = tulle.Graph.from_edges([(0, 1), (0, 2), (1, 2), (2, 3)], nodes=12)


def topology(graph=GRAPH, epsilon=1.0):
    return tulle.release(graph, tulle.topology(), unit="edge", epsilon=epsilon)


@pytest.mark.parametrize("prior", [0.001, 0.3, 0.5])
def test_beliefs_are_those_of_bayes(prior):
    release = topology()
    flip = 1 / (1 + math.e)
    bits = {tuple(edge) for edge in release.value.edges().tolist()}
    for pair in [(0, 1), (3, 11), (10, 11), (4, 7)]:
        one = pair in bits
        yes = prior * (1 - flip if one else flip)
        no = (1 - prior) * (flip if one else 1 - flip)
        found = edge_inference(release, pair=pair[::-1], prior=prior)
        assert found.after == pytest.approx(yes / (yes + no))
        assert found.details["released"] is one
        assert found.within


def test_the_limit_on_a_belief_is_attained():
    release = topology()
    pair = release.value.edges()[0].tolist()
    found = edge_inference(release, pair=pair, prior=0.5)
    assert found.after == pytest.approx(found.limits[1])


def test_a_release_that_claims_too_little_is_found_out():
    loud = topology(social_network(60, seed=1), epsilon=4.0)
    lying = replace(loud, guarantee=tulle.Guarantee.of("edge", epsilon=1))
    pair = loud.value.edges()[0].tolist()
    assert edge_inference(loud, pair=pair, prior=0.5).within
    assert not edge_inference(lying, pair=pair, prior=0.5).within


def test_success_is_counted_against_the_truth():
    graph = social_network(100, seed=2)
    release = topology(graph, epsilon=6.0)
    found = edge_inference(release, truth=graph)
    guess = np.zeros((100, 100), bool)
    if found.details["believes_released_edges"]:
        guess[tuple(release.value.edges().T)] = True
    real = np.zeros((100, 100), bool)
    real[tuple(graph.edges().T)] = True
    upper = np.triu_indices(100, 1)
    assert found.after == pytest.approx((guess == real)[upper].mean())
    assert found.before == pytest.approx(1 - graph.edge_count / math.comb(100, 2))
    assert found.gain > 0
    assert found.within


def test_at_a_small_epsilon_sparse_edges_are_not_believed():
    found = edge_inference(topology(social_network(200, seed=3), epsilon=0.5), prior=0.02)
    assert not found.details["believes_released_edges"]
    assert found.gain == 0
    assert found.details["chance_that_a_released_edge_is_real"] < 0.04


@pytest.mark.parametrize(
    "query",
    [tulle.edges(), tulle.triangles(), tulle.degrees(), tulle.degree_distribution()],
    ids=str,
)
def test_count_inference_weighs_both_worlds(query):
    release = tulle.release(GRAPH, query, unit="edge", epsilon=1.0, mechanism="laplace")
    found = count_inference(release, pair=(0, 1), known=GRAPH, prior=0.3)
    rest = tulle.Graph.from_edges([(0, 2), (1, 2), (2, 3)], nodes=12)
    scale = float(release.error.scale)
    value = np.atleast_1d(release.value)
    logs = [-np.abs(value - query.truth(g)).sum() / scale for g in (GRAPH, rest)]
    odds = 0.3 / 0.7 * math.exp(logs[0] - logs[1])
    assert found.after == pytest.approx(odds / (1 + odds))
    assert found.within
    assert found.details["average_success"] <= found.details["most_success"]
    # What is known about the pair itself does not matter.
    assert count_inference(release, pair=(0, 1), known=rest, prior=0.3).after == found.after


def test_average_success_is_the_sum_over_all_answers():
    release = tulle.release(GRAPH, tulle.triangles(), unit="edge", epsilon=8.0, mechanism="laplace")
    found = count_inference(release, pair=(0, 2), known=GRAPH, prior=0.4)
    scale = float(release.error.scale)
    values = np.arange(-400, 401)
    weights = [np.exp(-np.abs(values - centre) / scale) for centre in (1, 0)]
    joined, without = (w / w.sum() for w in weights)
    expected = np.maximum(0.4 * joined, 0.6 * without).sum()
    assert found.details["average_success"] == pytest.approx(expected, rel=1e-9)


def test_average_success_is_what_happens():
    hits = 0
    runs = 400
    rest = tulle.Graph.from_edges([(0, 2), (1, 2), (2, 3)], nodes=12)
    for run in range(runs):
        graph = GRAPH if run % 2 else rest
        release = tulle.release(graph, tulle.edges(), unit="edge", epsilon=1.0)
        hits += (count_inference(release, pair=(0, 1), known=GRAPH).after > 0.5) == bool(run % 2)
    assert abs(hits / runs - 1 / (1 + math.exp(-1))) < 5 * math.sqrt(0.25 / runs)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: edge_inference(GRAPH, pair=(0, 1)), "not on sealed data"),
        (lambda: edge_inference(3, pair=(0, 1)), "runs on a Release; got int"),
        (lambda: edge_inference(topology(), pair=(0, 0)), "two different nodes"),
        (lambda: edge_inference(topology(), pair=(0, 12)), "below 12"),
        (lambda: edge_inference(topology(), pair=(0, 1, 2)), "two node numbers"),
        (lambda: edge_inference(topology(), pair=(0, 1), prior=0), "strictly between"),
        (lambda: edge_inference(topology(), truth=social_network(40, seed=1)), "Graph of 12"),
        (lambda: count_inference(topology(), pair=(0, 1), known=GRAPH), "needs a count"),
    ],
)
def test_bad_input_is_refused(call, text):
    with pytest.raises(InputError, match=text):
        call()


def test_edge_inference_needs_a_topology():
    release = tulle.release(GRAPH, tulle.edges(), unit="edge", epsilon=1.0)
    with pytest.raises(InputError, match=r"tulle\.topology"):
        edge_inference(release)
    with pytest.raises(InputError, match="as many nodes as the release: 12"):
        count_inference(release, pair=(0, 1), known=social_network(40, seed=1))


def test_a_replayable_release_is_not_limited():
    release = tulle.release(
        GRAPH, tulle.topology(), unit="edge", epsilon=1.0, source=tulle.noise.SeededSource(1)
    )
    assert not edge_inference(release, pair=(0, 1), prior=0.5).bounded
