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
from tulle.models.interval import (
    MinimumLaw,
    least_curvature,
    noise_reach,
    radius,
    reach_moved,
    tilt_entry,
    tilt_length,
)
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
    from tulle.core.events import Composed, price

    for named in ((), ("x1",)):
        with watch() as events:
            found = released(table, curvature="0.25", coefficients=named, epsilon=2.0)
        epsilon, _ = price(Composed(tuple(events)), Fraction(0))
        assert Fraction(19, 10) < epsilon <= 2
        assert "curvature" in found.parameters


@pytest.mark.parametrize("penalty", [0.3, 2.0, 20.0])
@pytest.mark.parametrize("at", [(0.0, 0.0), (2.0, -0.7)])
def test_one_person_moves_the_reach_of_noise_by_a_factor_at_most(penalty, at):
    """All crowds of up to two people on a grid of rows, one more, less or changed."""
    grid = [np.array(row) for row in product((-1.0, -0.4, 0.0, 1.0), repeat=2)]
    ratio = Fraction(2) / 4 / Fraction(penalty)
    joined = float(reach_moved(ratio, changed=False))
    changed = float(reach_moved(ratio, changed=True))
    assert joined < changed <= 2 * joined
    worst = {"joined": 0.0, "changed": 0.0}
    for crowd in [(), *product(grid, repeat=1), *product(grid, repeat=2)]:
        rows = np.array(crowd).reshape(-1, 2)
        for places in ([0], [1], [0, 1]):
            before = np.log(noise_reach(rows, np.array(at), penalty, places))
            after = [
                np.log(noise_reach(np.vstack([rows, one]), np.array(at), penalty, places))
                for one in grid
            ]
            worst["joined"] = max(worst["joined"], np.abs(np.array(after) - before).max())
            worst["changed"] = max(worst["changed"], max(after) - min(after))
    assert worst["joined"] <= joined + 1e-12
    assert worst["changed"] <= changed + 1e-12
    if not any(at):
        # Half of it, or a third for a change, would be caught.
        assert worst["joined"] > joined / 2
        assert worst["changed"] > changed / 3


def test_one_direction_may_grow_while_curvature_grows():
    """Inverse matrices fall, the lengths of their rows need not: random losses far from a grid."""
    generator = np.random.default_rng(4)
    grown, fallen = -1.0, -1.0
    for _ in range(4000):
        penalty = generator.uniform(0.05, 3)
        basis = np.linalg.qr(generator.normal(size=(3, 3)))[0]
        others = basis @ np.diag(penalty + generator.exponential(5, 3) ** 2) @ basis.T
        person = generator.normal(size=3)
        person *= 0.5 / np.linalg.norm(person) * generator.random() ** 0.3
        z = generator.normal(size=3)
        one = np.linalg.norm(np.linalg.solve(others, z))
        two = np.linalg.norm(np.linalg.solve(others + np.outer(person, person), z))
        ratio = Fraction(1, 4) / Fraction(penalty)
        joined = float(reach_moved(ratio, changed=False))
        grows = float(reach_moved(ratio, changed=True)) - joined
        grown = max(grown, np.log(two / one) / grows)
        fallen = max(fallen, np.log(one / two) / joined)
    assert 0.05 < grown <= 1
    assert 0.3 < fallen <= 1


@pytest.mark.parametrize("mechanism", ["objective_knorm", "objective_gaussian"])
def test_a_named_coefficient_is_covered_and_its_interval_narrow(mechanism):
    table, columns, ill = people(3000, features=6)
    delta = 1e-6 if mechanism.endswith("gaussian") else 0.0
    terms = {"mechanism": mechanism, "delta": delta, "unit": "row"}
    level, runs, hits, widths = 0.5, 40, 0, []
    for _ in range(runs):
        found = released(table, curvature=0.5, coefficients=["x1"], **terms)
        true = minimum(columns, ill, float(Fraction(found.parameters["penalty"])))
        low, high = noise_interval(found, level)
        hits += bool(low[2] <= true[2] <= high[2])
        widths.append(high - low)
    assert binom.cdf(hits, runs, level) >= 1e-6
    mean = np.mean(widths, axis=0)
    assert mean[2] < mean[3] / 4
    again = type(found).from_json(found.to_json())
    assert noise_interval(again, level)[0].tolist() == low.tolist()
    # What was bought is not taken for a least curvature.
    assert found.interval(0.5)[0][2] < low[2]


def test_the_same_check_catches_a_reach_without_its_noise(monkeypatch):
    """A twin that forgets most of the way the tilt reaches a coefficient covers too seldom."""
    table, columns, ill = people(3000, features=6)
    monkeypatch.setattr("tulle.models.objective.noise_reach", lambda *_: 1e-9)
    hits = 0
    for _ in range(12):
        found = released(table, curvature=0.5, coefficients="x1", unit="row")
        true = minimum(columns, ill, float(Fraction(found.parameters["penalty"])))
        low, high = noise_interval(found, 0.95)
        hits += bool(low[2] <= true[2] <= high[2])
    assert binom.cdf(hits, 12, 0.95) < 1e-6


def test_names_of_coefficients_are_checked():
    table, _, _ = people(20)
    with pytest.raises(InputError, match="needs curvature="):
        released(table, coefficients=["x0"])
    with pytest.raises(InputError, match="'x9' is not: x0, x1"):
        released(table, curvature=0.5, coefficients=["x9"])
    flat = tulle.models.logistic("ill", intercept=False)
    asked = {"unit": "row", "epsilon": 1.0, "mechanism": "objective_knorm"}
    found = tulle.release(table, flat, curvature=0.5, coefficients=["x0", "x1"], **asked)
    assert found.error.named == (1, 2)
    low, high = noise_interval(found)
    assert (high - low)[1] == (high - low)[2]


@pytest.mark.parametrize("share", [("0.5", ["x1"]), ("0.2", ())])
def test_what_is_bought_never_fails_and_shows_the_same_on_neighbours(share):
    """Nobody, one person, everybody alike or at the ends: only the noisy numbers differ."""
    curvature, named = share
    tables = [[], [(1, 1, "yes")], [(0, 0, "no")] * 30, [(1e9, -1e9, "yes")] * 30]
    shown = []
    for rows in tables:
        columns = {"x0": [r[0] for r in rows], "x1": [r[1] for r in rows]}
        table = tulle.models.Table(
            {**columns, "ill": [r[2] for r in rows]},
            bounds={"x0": (-1, 1), "x1": (-1, 1)},
            classes={"ill": ["no", "yes"]},
        )
        found = released(table, curvature=curvature, coefficients=named, epsilon=0.5)
        assert np.isfinite(found.value).all()
        assert np.isfinite(noise_interval(found)).all()
        public = {name: v for name, v in found.parameters.items() if name != "curvature"}
        shown.append((public, found.guarantee, str(found.query)))
    assert all(one == shown[0] for one in shown)


def test_coefficients_alone_cannot_tell_more():
    """Everybody in the middle: what noise shows then, no interval for every data set leaves out.

    The interval to first order is as wide as that asks for, and a narrower one covers too seldom.
    """
    count, level = 6, 0.8
    columns = {f"x{place}": [0.0] * 50 for place in range(count)}
    table = tulle.models.Table(
        {**columns, "ill": [0, 1] * 25},
        bounds=dict.fromkeys(columns, (-1, 1)),
        classes={"ill": [0, 1]},
    )
    hits, narrower = 0, 0
    for _ in range(150):
        found = released(table, unit="row")
        low, high = noise_interval(found, level)
        half = (high - low)[1:] / 2
        # There the minimum without noise has zeros only.
        hits += bool((np.abs(found.value[1:]) <= half).all())
        narrower += bool((np.abs(found.value[1:]) <= 0.6 * half).all())
    assert binom.cdf(hits, 150, level) >= 1e-6
    assert binom.cdf(narrower, 150, level) < 1e-6


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
