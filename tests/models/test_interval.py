"""Intervals of coefficients: they cover the minimum without noise, and narrow as people come in."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import binom

import tulle
from tulle.core.errors import InputError
from tulle.models import linear, noise_interval
from tulle.models.interval import MinimumLaw, least_curvature, radius, tilt_entry, tilt_length
from tulle.noise import discrete_knorm
from tulle.noise.watch import watch


def people(count, features=2, seed=0):
    generator = np.random.default_rng(seed)
    columns = generator.uniform(-1, 1, (count, features))
    ill = generator.random(count) < expit(columns @ np.linspace(2, -1, features) + 0.3)
    named = {f"x{place}": columns[:, place].tolist() for place in range(features)}
    return (
        tulle.models.Table(
            {**named, "ill": np.where(ill, "yes", "no").tolist()},
            bounds=dict.fromkeys(named, (-1, 1)),
            classes={"ill": ["no", "yes"]},
        ),
        columns,
        ill,
    )


def minimum(columns, ill, penalty):
    """Return intercept and coefficients without noise, for rows in [-1, 1] as they are."""
    rows = np.column_stack([np.ones(len(columns)), columns])

    def loss(w):
        odds = rows @ w
        return np.logaddexp(0, odds).sum() - odds[ill].sum() + penalty / 2 * w @ w

    def slope(w):
        return rows.T @ (expit(rows @ w) - ill) + penalty * w

    return minimize(loss, np.zeros(rows.shape[1]), jac=slope, options={"gtol": 1e-8}).x


def released(table, **terms):
    asked = {"unit": "participant", "epsilon": 1.0, "mechanism": "objective_knorm"} | terms
    return tulle.release(table, tulle.models.logistic("ill"), **asked)


@pytest.mark.parametrize(
    "mechanism", ["objective_knorm", "objective_laplace", "objective_gaussian"]
)
@pytest.mark.parametrize("curvature", [0, "0.2"])
def test_intervals_cover_the_minimum_without_noise(mechanism, curvature):
    table, columns, ill = people(3000)
    delta = 1e-6 if mechanism.endswith("gaussian") else 0.0
    level, runs, hits = 0.5, 30, 0
    for _ in range(runs):
        found = released(table, mechanism=mechanism, delta=delta, curvature=curvature)
        true = minimum(columns, ill, float(Fraction(found.parameters["penalty"])))
        low, high = found.interval(level)
        hits += bool(np.all((low <= true) & (true <= high)))
    assert binom.cdf(hits, runs, level) >= 1e-6


def test_the_same_check_catches_a_width_that_forgets_the_tilt(monkeypatch):
    table, columns, ill = people(300)
    monkeypatch.setattr("tulle.models.interval.radius", lambda *_: 1e-9)
    hits = 0
    for _ in range(12):
        found = released(table)
        true = minimum(columns, ill, float(Fraction(found.parameters["penalty"])))
        low, high = found.interval(0.95)
        hits += bool(np.all((low <= true) & (true <= high)))
    assert binom.cdf(hits, 12, 0.95) < 1e-6


def cover_to_first_order(like, runs=60, level=0.5, count=2000, mechanism="objective_knorm"):
    table, columns, ill = people(count, features=6)
    delta = 1e-6 if mechanism.endswith("gaussian") else 0.0
    hits, widths = 0, []
    for _ in range(runs):
        found = released(table, mechanism=mechanism, delta=delta, unit="row")
        true = minimum(columns, ill, float(Fraction(found.parameters["penalty"])))
        low, high = noise_interval(found, level, like=like)
        hits += bool(np.all((low <= true) & (true <= high)))
        widths.append(float((high - low)[1:].mean()))
    return float(binom.cdf(hits, runs, level)), np.mean(widths)


@pytest.mark.parametrize(
    "mechanism", ["objective_knorm", "objective_laplace", "objective_gaussian"]
)
def test_a_stand_in_narrows_the_interval_which_still_covers(mechanism):
    """Of fewer people than the table has, which the table's public number makes up for."""
    stand_in, _, _ = people(500, features=6, seed=8)
    likely, width = cover_to_first_order(stand_in, mechanism=mechanism)
    _, without = cover_to_first_order(None, runs=1, mechanism=mechanism)
    assert likely >= 1e-6
    assert width < without / 2


def test_the_same_check_catches_a_stand_in_that_is_counted_too_often(monkeypatch):
    stand_in, _, _ = people(500, features=6, seed=8)
    monkeypatch.setattr(
        "tulle.models.interval.logistic_curvature",
        lambda rows, chances: 9 * (rows * (chances * (1 - chances))[:, None]).T @ rows,
    )
    assert cover_to_first_order(stand_in)[0] < 1e-6


def test_a_stand_in_must_have_the_columns_and_be_of_use():
    table, _, _ = people(50)
    other = tulle.models.Table(
        {"age": [1, 2], "pay": [3, 4]}, bounds={"age": (0, 9), "pay": (0, 9)}
    )
    with pytest.raises(InputError, match="columns of the model"):
        noise_interval(released(table), like=other)
    own = tulle.release(other, linear("pay"), unit="row", epsilon=1.0)
    with pytest.raises(InputError, match="leave like= out"):
        noise_interval(own, like=other)


def test_no_point_lies_outside_of_the_ball():
    """For any loss and tilt, w - t lies within (|z·b| + |z|·|b|) / 2K along any z."""
    generator = np.random.default_rng(9)
    worst = 0.0
    for _ in range(60):
        rows, ill = generator.normal(0, 1, (6, 3)), generator.random(6) < 0.5
        penalty, tilt = generator.uniform(0.05, 2), generator.normal(0, 3, 3)

        def slope(w, tilt, rows=rows, ill=ill, penalty=penalty):
            return rows.T @ (expit(rows @ w) - ill) + penalty * w + tilt

        def found(tilt, slope=slope, rows=rows, ill=ill, penalty=penalty):
            def loss(w):
                odds = rows @ w
                lost = np.logaddexp(0, odds).sum() - odds[ill].sum()
                return lost + penalty / 2 * w @ w + tilt @ w

            return minimize(loss, np.zeros(3), jac=lambda w: slope(w, tilt)).x

        moved = found(tilt) - found(np.zeros(3))
        for z in generator.normal(0, 1, (50, 3)):
            bound = abs(z @ tilt) + np.linalg.norm(z) * np.linalg.norm(tilt)
            worst = max(worst, abs(z @ moved) * 2 * penalty / bound)
    assert 0.8 < worst <= 1 + 1e-4


def test_bought_curvature_narrows_as_people_come_in():
    free, bought = [], []
    for count in (1000, 30_000):
        table, _, _ = people(count)
        for widths, share in ((free, 0), (bought, "0.2")):
            found = released(table, curvature=share)
            low, high = found.interval(0.95)
            widths.append(float((high - low).max()))
    assert free[1] == pytest.approx(free[0])
    assert bought[1] < bought[0] / 10
    assert bought[1] < 0.1 < free[1]


@pytest.mark.parametrize("at", [(0.0, 0.0), (3.0, -2.0), (0.4, 9.0)])
def test_one_person_moves_the_least_curvature_by_at_most_a_quarter_of_a_row(at):
    """All crowds of up to three people on a grid of rows, one more, less or changed."""
    grid = [np.array(row) for row in product((-1.0, 0.0, 1.0), repeat=2)]
    longest, moved, changed = 2.0, 0.0, 0.0
    for crowd in product(grid, repeat=2):
        before = least_curvature(np.array(crowd), np.array(at))
        after = [least_curvature(np.array([*crowd, one]), np.array(at)) for one in grid]
        moved = max(moved, *(abs(one - before) for one in after))
        changed = max(changed, max(after) - min(after))
    assert changed <= longest / 4
    assert moved <= longest / 4
    if not any(at):
        # Tight, so that half of it would be caught.
        assert max(moved, changed) > longest / 8


def test_all_of_it_is_paid_for():
    table, _, _ = people(50)
    with watch() as events:
        found = released(table, curvature="0.25", epsilon=2.0)
    from tulle.core.events import Composed, price

    epsilon, _ = price(Composed(tuple(events)), Fraction(0))
    assert Fraction(19, 10) < epsilon <= 2
    assert "curvature" in found.parameters


def test_the_bound_on_the_tilt_and_the_inequality_behind_it():
    drawn = np.array([discrete_knorm(scale=Fraction(2**20), count=5) for _ in range(2000)])
    lengths = np.linalg.norm(drawn, axis=1) / 2**20
    for alpha in (0.5, 0.1, 0.01):
        beyond = int((lengths > tilt_length("knorm", 1.0, 5, alpha)).sum())
        assert binom.sf(beyond - 1, len(lengths), alpha) > 1e-6
        beyond = int((np.abs(drawn).max(axis=1) / 2**20 > tilt_entry("knorm", 1.0, 5, alpha)).sum())
        assert binom.sf(beyond - 1, len(lengths), alpha) > 1e-6
        # And not by being wide.
        assert (lengths > 0.97 * tilt_length("knorm", 1.0, 5, alpha)).mean() > alpha
    # Any two points: the gradient of the loss changes by what self-concordance says, at least.
    generator = np.random.default_rng(5)
    for _ in range(200):
        rows = generator.uniform(-1, 1, (12, 3))
        one, other = generator.normal(0, 2, (2, 3))
        penalty, row = 0.05, float(np.linalg.norm(rows, axis=1).max())
        change = rows.T @ (expit(rows @ one) - expit(rows @ other)) + penalty * (one - other)
        least = least_curvature(rows, one)
        far = radius(float(np.linalg.norm(change)), penalty, least, row)
        assert np.linalg.norm(one - other) <= far * (1 + 1e-9)


def test_a_share_that_is_too_large_is_refused_and_laws_are_written():
    table, _, _ = people(20)
    with pytest.raises(InputError, match="at most 1/2"):
        released(table, curvature=0.6)
    found = released(table)
    assert isinstance(found.error, MinimumLaw)
    again = type(found).from_json(found.to_json())
    assert again.interval(0.9)[0].tolist() == found.interval(0.9)[0].tolist()
