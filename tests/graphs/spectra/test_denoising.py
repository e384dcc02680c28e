"""Released eigenvalues: not moved by the noise that their vectors fit, and no worse than zeros."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tulle
from tulle.graphs.generators import barabasi_albert
from tulle.graphs.spectra import denoising, power
from tulle.graphs.spectra.denoising import (
    Found,
    HeldMatrix,
    _held,
    decompose_noisy,
    risky,
    search_noisy,
)
from tulle.graphs.spectra.queries import Spectrum, adjacency

NODES = 120


def blocks(seed: int = 3) -> tulle.Graph:
    """Two dense groups of thirty among 120 nodes: two eigenvalues near 25 and 24."""
    generator = np.random.default_rng(seed)
    group = np.repeat([0, 1, 2, 2], NODES // 4)
    chance = np.where((group[:, None] == group) & (group < 2)[:, None], 0.85, 0.04)
    first, second = np.nonzero(np.triu(generator.random((NODES, NODES)) < chance, 1))
    return tulle.Graph.from_edges(np.column_stack([first, second]), nodes=NODES)


def gain(found: Spectrum, graph: tulle.Graph) -> float:
    """Return by how much a matrix is nearer than zeros, in parts of their squared distance."""
    true = adjacency(graph).astype(np.float64)
    quotients = np.einsum("ik,ik->k", found.vectors, true @ found.vectors)
    better = 2 * (found.values * quotients).sum() - (found.values**2).sum()
    return float(better / (2 * graph.edge_count))


def gains(mechanism: str, epsilon: float, runs: int) -> list[float]:
    graph = blocks()
    delta = 1e-6 if mechanism == "power" else 0.0
    terms: dict[str, Any] = {"unit": "edge", "epsilon": epsilon, "delta": delta}
    return [
        gain(tulle.release(graph, tulle.low_rank(2), **terms, mechanism=mechanism).value, graph)
        for _ in range(runs)
    ]


@pytest.mark.parametrize("mechanism", ["spectral_response", "power_pure", "power"])
def test_low_rank_is_no_worse_than_zeros(mechanism: str) -> None:
    for epsilon in (0.05, 0.3, 1.0, 5.0):
        assert np.mean(gains(mechanism, epsilon, 8)) > -0.01, epsilon
    assert np.mean(gains(mechanism, 60.0, 2)) > 0.3


def small_gains(mechanism: str, runs: int) -> float:
    """Return the mean gain on a small network of hubs at small epsilon, of four values."""
    graph = barabasi_albert(60, 3, seed=2)
    delta = 1e-6 if mechanism == "power" else 0.0
    found = []
    for epsilon in (0.01, 0.05, 0.3):
        terms: dict[str, Any] = {"unit": "edge", "epsilon": epsilon, "delta": delta}
        query = tulle.low_rank(4)
        for _ in range(runs):
            drawn = tulle.release(graph, query, **terms, mechanism=mechanism)
            found.append(gain(drawn.value, graph))
    return float(np.mean(found))


@pytest.mark.parametrize("mechanism", ["spectral_response", "power_pure", "power"])
def test_low_rank_is_no_worse_than_zeros_where_noise_is_larger_than_the_graph(
    mechanism: str,
) -> None:
    assert small_gains(mechanism, 40) > -denoising._TUNING.loss


@pytest.mark.parametrize("mechanism", ["power_pure", "power"])
def test_the_same_check_catches_deviations_alone(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise exceeds three or four deviations now and then: that is enough to be far away."""
    for module in (denoising, power):
        monkeypatch.setattr(module, "risky", lambda deviation, squares: 0.0 * deviation)
    assert small_gains(mechanism, 160) < -denoising._TUNING.loss


@pytest.mark.parametrize("mechanism", ["spectral_response", "power_pure", "power"])
def test_the_same_check_catches_values_as_they_are_found(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(denoising, "_estimated", lambda values, *_: values)
    monkeypatch.setattr(power, "_TUNING", replace(power._TUNING, certain=0.0))
    monkeypatch.setattr(power, "risky", lambda deviation, squares: 0.0 * deviation)
    assert np.mean(gains(mechanism, 0.05, 8)) < -0.01


@pytest.mark.parametrize("members", [60, 500])
@pytest.mark.parametrize("noise", [0.4, 0.8, 1.2])
def test_estimates_are_near_the_true_values_where_these_show(noise: float, members: int) -> None:
    """One true vector, on some or all nodes, with independent noise on each pair."""
    nodes, value = 500, 60.0
    generator = np.random.default_rng(7)
    vector = np.where(np.arange(nodes) < members, 1.0, 0.0) / np.sqrt(members)
    found, raw, quotients, shown = [], [], [], []
    for _ in range(6):
        upper = np.triu(generator.normal(0, noise, (nodes, nodes)), 1)
        seen = value * np.outer(vector, vector) + upper + upper.T
        matrix = HeldMatrix(seen.astype(np.float32), noise)
        largest = decompose_noisy(matrix, 1, None, by_size=False)
        nearest = decompose_noisy(matrix, 1, None, by_size=True)
        found.append(largest.values[0])
        raw.append(float(largest.vectors[:, 0] @ seen @ largest.vectors[:, 0]))
        quotients.append(value * float(nearest.vectors[:, 0] @ vector) ** 2)
        shown.append(nearest.values[0])
    assert abs(np.mean(found) - value) < 0.05 * value
    assert abs(np.mean(shown) - np.mean(quotients)) < 0.08 * value
    if noise > 1 and members == nodes:
        # As they are found they are too large, by the share of the noise that the vector fits.
        assert np.mean(raw) - value > 0.15 * value


def most_lost(squares: float, scale: float, least: float) -> float:
    """Return the mean growth of the squared distance at the worst true value, in parts of zeros'.

    A value is the true one and Laplace noise of that scale, and is shown where it exceeds both
    ``least`` and three deviations.
    """
    shown_from = max(least, 3 * np.sqrt(2) * scale)
    noise = np.linspace(-60, 60, 120_001) * scale
    mass = np.exp(-np.abs(noise) / scale)
    worst = 0.0
    for true in np.linspace(0, shown_from, 80):
        shown = np.where(true + noise > shown_from, true + noise, 0.0)
        worst = max(worst, float((mass * (shown**2 - 2 * shown * true)).sum() / mass.sum()))
    return worst / squares


@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 3.0, 10.0, 40.0, 1000.0])
def test_a_value_that_noise_may_have_made_is_worth_its_risk(scale: float) -> None:
    """At small epsilon noise rarely exceeds three deviations, and is then many times the graph."""
    squares = 900.0
    least = float(risky(scale * np.sqrt(2), squares))
    assert most_lost(squares, scale, least) <= 1.01 * denoising._TUNING.loss
    alone = most_lost(squares, scale, 0.0)
    # Deviations alone are not enough, and where they are nothing else is asked for.
    assert (alone > denoising._TUNING.loss) == (scale > 5)
    assert scale > 3 or least < 3 * np.sqrt(2) * scale


def test_noise_alone_shows_no_value_of_low_rank() -> None:
    generator = np.random.default_rng(9)
    for _ in range(10):
        upper = np.triu(generator.normal(0, 1.0, (200, 200)), 1)
        matrix = HeldMatrix((upper + upper.T).astype(np.float32), 1.0)
        found = decompose_noisy(matrix, 3, generator.integers(0, 20, 200), by_size=True)
        assert not found.values.any()
        assert decompose_noisy(matrix, 3, None, by_size=False).informative == 0


def test_values_that_drown_are_guessed_from_the_degrees() -> None:
    """Within a factor of a few of the truth, where what noise shows has nothing to do with it."""
    graph = blocks()
    true = tulle.spectrum(3).truth(graph).values
    guessed, shown = [], []
    for _ in range(12):
        found = tulle.release(
            graph, tulle.spectrum(3), unit="edge", epsilon=0.15, mechanism="spectral_response"
        ).value
        assert list(found.values) == sorted(found.values, reverse=True)
        guessed.append(np.abs(found.values - true).mean())
        shown.append(found.noise)
    assert np.median(shown) > 2 * true[0]
    assert np.median(guessed) < 0.6 * true.mean()


@pytest.mark.parametrize("cleaned", [False, True])
def test_a_vector_that_is_spread_over_all_nodes_is_not_cleaned_away(
    cleaned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken version cleans in any case, round after round, until little is left."""
    generator = np.random.default_rng(2)
    pairs = np.argwhere(np.triu(generator.random((600, 600)) < 0.08, 1))
    graph = tulle.Graph.from_edges(pairs, nodes=600)
    true = tulle.spectrum(1).truth(graph).vectors[:, 0]
    if cleaned:
        monkeypatch.setattr(
            power._Iteration,
            "clean",
            lambda self, columns, noise, settings: power.shrink(columns, 2 * noise),
        )
    asked: dict[str, Any] = {"unit": "edge", "epsilon": 1.0, "mechanism": "power_pure"}
    found = [
        abs(float(true @ tulle.release(graph, tulle.spectrum(1), **asked).value.vectors[:, 0]))
        for _ in range(4)
    ]
    assert (np.mean(found) > 0.9) != cleaned, found


@pytest.mark.parametrize("used", [True, False])
def test_a_vector_that_is_spread_over_all_nodes_is_found_from_the_degrees(
    used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No node stands out, and the eigenvalue hardly does: what the coins show alone is far off."""
    generator = np.random.default_rng(2)
    pairs = np.argwhere(np.triu(generator.random((500, 500)) < 0.07, 1))
    graph = tulle.Graph.from_edges(pairs, nodes=500)
    true = tulle.spectrum(1).truth(graph)
    if not used:
        monkeypatch.setattr(denoising, "_first", lambda matrix, candidates, found: found)
    for epsilon in (0.3, 1.0):
        asked: dict[str, Any] = {
            "unit": "edge",
            "epsilon": epsilon,
            "mechanism": "spectral_response",
        }
        found = [tulle.release(graph, tulle.spectrum(1), **asked).value for _ in range(3)]
        cosines = [abs(float(true.vectors[:, 0] @ one.vectors[:, 0])) for one in found]
        assert (np.mean(cosines) > 0.97) == used, cosines
        low = [
            gain(tulle.release(graph, tulle.low_rank(1), **asked).value, graph) for _ in range(3)
        ]
        assert np.mean(low) >= 0
        if used and epsilon == 1:
            assert np.mean([abs(one.values[0] - true.values[0]) for one in found]) < 4
            assert np.mean(low) > 0.06


def test_a_candidate_outside_of_the_core_is_taken_whole() -> None:
    """Coins for pairs of a part of the nodes only: the first vector still covers all of them."""
    generator = np.random.default_rng(3)
    pairs = np.argwhere(np.triu(generator.random((300, 300)) < 0.2, 1))
    graph = tulle.Graph.from_edges(pairs, nodes=300)
    true = tulle.spectrum(2).truth(graph)
    found = tulle.release(
        graph, tulle.spectrum(2), unit="edge", epsilon=2.0, mechanism="spectral_response", core=200
    ).value
    assert abs(float(true.vectors[:, 0] @ found.vectors[:, 0])) > 0.97
    assert np.allclose(found.vectors.T @ found.vectors, np.eye(2), atol=1e-9)


def test_candidates_never_hurt_a_vector_that_stands_out() -> None:
    graph = blocks()
    true = tulle.spectrum(1).truth(graph).vectors[:, 0]
    found = [
        tulle.release(
            graph, tulle.spectrum(1), unit="edge", epsilon=8.0, mechanism="spectral_response"
        ).value.vectors[:, 0]
        for _ in range(3)
    ]
    assert min(abs(float(true @ one)) for one in found) > 0.95


def noisy(true: Any, noise: float, generator: Any) -> HeldMatrix:
    upper = np.triu(generator.normal(0, noise, true.shape), 1)
    return HeldMatrix((true + upper + upper.T).astype(np.float32), noise)


def cliques(*sizes: int) -> Any:
    """Return the matrix of cliques, one after the other."""
    member = np.repeat(np.arange(len(sizes)), sizes)
    return (member[:, None] == member) * 1.0 - np.eye(len(member))


def test_how_much_of_all_edges_a_core_has_is_found_without_bias() -> None:
    generator, true = np.random.default_rng(4), cliques(50, *[16] * 50)
    places, mean = np.arange(80), float(true.sum(axis=1).mean())
    seen = [_held(noisy(true, 1.0, generator), places, mean) for _ in range(8)]
    assert np.mean(seen) == pytest.approx(true[:80, :80].sum() / true.sum(), abs=0.01)


def test_values_outside_of_a_core_are_not_guessed_from_its_noise() -> None:
    """A clique of fifty is found among so many nodes; others have cliques of twenty."""
    found = Found(
        shown=np.array([51.0, 10.0, 10.0, 10.0, 10.0]),
        vectors=np.eye(850)[:, :5],
        modelled=np.array([48.0, 0.0, 0.0, 0.0, 0.0]),
        certain=np.arange(5) < 1,
        level=5.0,
        noise=0.7,
        nodes=850,
        by_size=False,
        mean_degree=17.0,
        held=0.2,
    )
    square = 49.0**2, 20.0
    off = {
        held: np.abs(replace(found, held=held).spectrum(square=square).values[1:] - 19).mean()
        for held in (0.2, 1.0)
    }
    assert off[0.2] < 5 < 12 < off[1.0], off


@pytest.mark.parametrize("by_size", [False, True])
def test_asking_for_more_does_not_blur_what_shows(
    by_size: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One clique in a matrix of noise: five vectors hold as much of it as one does."""
    generator = np.random.default_rng(6)
    true = np.zeros((900, 900))
    true[:30, :30] = cliques(30)
    degrees = true.sum(axis=1) + generator.laplace(0, 12, 900)
    held: dict[int, list[float]] = {1: [], 5: []}
    for _ in range(4):
        seen = noisy(true, 1.0, generator)
        for k, reached in held.items():
            vectors = search_noisy(seen, k, degrees, by_size=by_size).vectors
            reached.append(float((vectors[:30].sum(axis=0) ** 2).sum() / 30))
    assert np.mean(held[5]) > np.mean(held[1]) - 0.02, held


@pytest.mark.parametrize(("measured", "taken"), [(14.0, True), (60.0, False)])
def test_what_is_measured_says_which_vector_is_nearer_after_cleaning(
    measured: float, taken: bool
) -> None:
    """The model expects 58 of a vector that was chosen by the noise; its quotient says more."""
    first, other = np.eye(40)[:, :1], np.eye(40)[:, 1]
    found = Found(
        shown=np.array([75.0]),
        vectors=first,
        modelled=np.array([58.0]),
        certain=np.array([True]),
        level=30.0,
        noise=2.5,
        nodes=40,
        by_size=False,
        mean_degree=8.0,
        cleaned=True,
        candidate=other,
        reached=50.0,
    )
    drawn = found.spectrum(np.array([49.0, measured]), np.array([5.0, 5.0]))
    assert (abs(drawn.vectors[1, 0]) == 1) == taken
    # Without a measurement the model decides.
    assert abs(found.spectrum().vectors[0, 0]) == 1
