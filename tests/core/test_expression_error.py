"""Expressions of noisy numbers: bias, floors, ranges and predicted errors."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tulle
from tulle.core.error_law import ExactLaw, LaplaceLaw
from tulle.core.expression_error import estimate, image, predict_error, quotients, slopes
from tulle.core.query import enclose, evaluate
from tulle.noise import SeededSource, discrete_laplace

E, T = tulle.edges(), tulle.triangles()
NAMES = ("edges()", "triangles()")


def tree(query):
    return query.tree()


def test_without_noise_an_estimate_is_the_value():
    values = {"edges()": 7.0, "triangles()": -3.0}
    for query in (E + T, E - T, E * T, E / T, (E * E - T) / (T + 2), E / (T - T)):
        assert estimate(tree(query), values, {}) == pytest.approx(evaluate(tree(query), values))


def test_a_square_is_corrected_by_twice_the_squared_scale():
    scale = Fraction(50)
    law = LaplaceLaw(scale)
    assert law.variance() == pytest.approx(2 * 50**2, rel=1e-3)
    noise = discrete_laplace(scale=scale, size=40_000, source=SeededSource(1))
    noisy = {"edges()": 300.0 + noise}
    plain = estimate(tree((2 * E + 5) * (3 * E - 1)), noisy, {}).mean()
    corrected = estimate(tree((2 * E + 5) * (3 * E - 1)), noisy, {"edges()": law.variance()}).mean()
    truth = 605 * 899
    # The printed correction is half of this one: the bias would stay.
    assert plain - truth == pytest.approx(2 * 3 * 2 * 50**2, rel=0.25)
    assert abs(corrected - truth) < 0.25 * (plain - truth)


def test_a_quotient_has_a_floor_and_no_second_order_bias():
    scale = Fraction(20)
    law = LaplaceLaw(scale)
    variances = dict.fromkeys(NAMES, law.variance())
    size = 200_000
    noise = [discrete_laplace(scale=scale, size=size, source=SeededSource(s)) for s in (1, 2)]
    noisy = {"edges()": 500.0 + noise[0], "triangles()": 150.0 + noise[1]}
    truth = 500 / 150
    kept = estimate(tree(E / T), noisy, variances)
    with np.errstate(divide="ignore"):
        plain = noisy["edges()"] / noisy["triangles()"]
    largest = np.abs(noisy["edges()"]) / (2 * math.sqrt(law.variance()))
    assert (np.abs(kept) <= largest + 1e-9).all()
    # The plain quotient is too large by about v / r² = 3.5 % where it does not explode.
    typical = np.abs(noise[1]) < 100
    assert plain[typical].mean() / truth > 1.02
    assert kept.mean() / truth == pytest.approx(1, abs=0.01)


def test_a_release_states_floor_and_bias_of_its_quotient():
    graph = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)], nodes=4)
    answer = tulle.release(graph, E / (T + 1), unit="edge", epsilon=1.0)
    (kept,) = answer.quotients()
    assert kept.denominator == answer.parts["triangles()"].value + 1
    assert kept.floor > 0
    assert 0 < kept.relative_bias <= 1
    assert quotients(tree(E / 2), {"edges()": 3.0}, {}) == []


def test_a_repeated_question_is_asked_and_paid_once():
    graph = tulle.Graph.from_edges([(0, 1), (1, 2)], nodes=3)
    answer = tulle.release(graph, E * E - E, unit="edge", epsilon=1.0)
    assert list(answer.parts) == ["edges()"]
    assert answer.guarantee.epsilon == 1
    value = answer.parts["edges()"].value
    law = answer.parts["edges()"].error
    assert answer.value == pytest.approx(value * value - law.variance() - value)


def test_an_answer_with_one_known_end_makes_no_quotient_vanish():
    """The largest degree per node has no variance: noise of any size is not taken out of it."""
    full = tulle.Graph.from_edges([(i, j) for i in range(20) for j in range(i)])
    asked = tulle.edges() / tulle.max_degree()
    release = tulle.release(full, asked, unit="node", epsilon=100)
    parts = [part.value for part in release.parts.values()]
    assert release.value == pytest.approx(parts[0] / parts[1], rel=0.1)
    square = tulle.release(full, tulle.max_degree() * tulle.max_degree(), unit="node", epsilon=100)
    assert 100 < square.value < 1000


def test_numbers_that_run_over_are_no_warning(recwarn):
    big = E * Fraction(10) ** 300
    for asked in (big * big, big / (E - E), (big * big) / (big * big), T / (big * big)):
        values = dict.fromkeys(NAMES, 1e30)
        estimate(tree(asked), values, dict.fromkeys(NAMES, 1e10))
        quotients(tree(asked), values, dict.fromkeys(NAMES, 1e10))
        slopes(tree(asked), values)
    assert not recwarn.list


def test_slopes():
    found = slopes(tree(3 * T / (E * E)), {"edges()": 2.0, "triangles()": 5.0})
    assert found["triangles()"] == pytest.approx(3 / 4)
    assert found["edges()"] == pytest.approx(-2 * 15 / 8)


ends = st.tuples(st.floats(-50, 50), st.floats(-50, 50)).map(lambda pair: tuple(sorted(pair)))
QUERIES = [E + T, E * T, E / T, 3 * T / (E + 2), (E - T) * (E + T), E * E - E, (E - T) / (E + T)]


@given(ends, ends, st.floats(0, 1), st.floats(0, 1))
def test_an_image_contains_every_value_and_is_inside_the_plain_range(first, second, x, y):
    ranges = dict(zip(NAMES, (first, second), strict=True))
    inside = {
        name: min(max(low + part * (high - low), low), high)
        for (name, (low, high)), part in zip(ranges.items(), (x, y), strict=True)
    }
    for query in QUERIES:
        low, high = image(tree(query), ranges)
        value = evaluate(tree(query), inside)
        slack = 1e-9 * (1 + abs(value))
        assert low - slack <= value <= high + slack
        wide = enclose(tree(query), ranges)
        assert wide[0] <= low + slack
        assert high <= wide[1] + slack


def test_an_image_knows_that_a_leaf_has_one_value():
    ranges = {"edges()": (90.0, 110.0), "triangles()": (40.0, 60.0)}
    query = (E - T) / (E + T)
    low, high = image(tree(query), ranges)
    assert low == pytest.approx(30 / 150)
    assert high == pytest.approx(70 / 150)
    plain = enclose(tree(query), ranges)
    assert plain[1] - plain[0] > 1.2 * (high - low)
    square = image(tree(E * E - 200 * E), {"edges()": (90.0, 130.0)})
    assert square[0] == pytest.approx(-10_000, rel=0.05)
    assert square[1] == pytest.approx(130 * 130 - 200 * 130)


def test_predicted_errors_are_those_of_the_laws():
    laws = {"edges()": LaplaceLaw(Fraction(10)), "triangles()": ExactLaw()}
    values = {"edges()": 1000.0, "triangles()": 4.0}
    found = predict_error(tree(E * T), values, laws)
    assert found.half_width(0.5) == pytest.approx(4 * 10 * math.log(2), rel=0.15)
    assert found.half_width(0.95) == pytest.approx(4 * 10 * math.log(20), rel=0.15)
    cut = predict_error(tree(E * T), values, laws, (3990.0, 4010.0))
    assert cut.half_width(0.99) <= 10
