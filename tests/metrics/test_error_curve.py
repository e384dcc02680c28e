"""Error curves: measured on equal terms, beside what plans predict."""

from __future__ import annotations

import pytest

import tulle
from tulle.graphs.data import Graph

RING = Graph.from_edges([(i, (i + 1) % 400) for i in range(400)], nodes=400)


def test_errors_fall_with_epsilon_and_are_as_predicted() -> None:
    curve = tulle.error_curve(
        tulle.edges(), RING, [0.02, 0.2], ["laplace", "gaussian"], unit="edge", delta=1e-6, runs=60
    ).to_dict()
    assert curve["mechanism"] == ["laplace", "gaussian", "laplace", "gaussian"]
    for place in (0, 1):
        assert curve["median_error"][place] > 3 * curve["median_error"][place + 2]
    for measured, predicted in zip(curve["median_error"], curve["predicted_median"], strict=True):
        assert 0.6 < measured / predicted < 1.6
    assert all(a <= b for a, b in zip(curve["median_error"], curve["error_95"], strict=True))


def test_a_mechanism_that_cannot_is_left_out() -> None:
    curve = tulle.error_curve(
        tulle.edges(), RING, [1], ["laplace", "gaussian"], unit="edge", runs=2
    )
    assert curve.to_dict()["mechanism"] == ["laplace"]
    vector = tulle.error_curve(tulle.degrees(), RING, [1], unit="edge", runs=2)
    assert set(vector.to_dict()["mechanism"]) == {"isotonic", "laplace"}
    with pytest.raises(tulle.InputError, match="No mechanism named"):
        tulle.error_curve(tulle.edges(), RING, [1], ["gaussian"], unit="edge", runs=2)
    with pytest.raises(tulle.InputError, match="at least one"):
        tulle.error_curve(tulle.edges(), RING, [], unit="edge")
