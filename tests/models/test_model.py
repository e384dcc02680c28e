"""Released models: exact sums, intervals that cover, plans, accuracy, JSON."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import tulle
from tulle.core.errors import InputError
from tulle.core.release import Release
from tulle.ledger.answer import plan_for
from tulle.models import Model, Table, design, linear, logistic, noise_interval
from tulle.models.design import frame_of, moments, whole_rows
from tulle.models.fitting import in_own_units
from tulle.models.moments import typical_moments

LEVEL = 0.9
SIGNIFICANCE = 1e-6
MOMENTS = [("functional", 0.0), ("adassp", 1e-6)]


def people(count, features=3, seed=0, **more):
    generator = np.random.default_rng(seed)
    x = generator.random((count, features)) * 2 - 1
    x[:, 0] = 0.7 * x[:, -1] + 0.3 * x[:, 0]
    slopes = generator.normal(size=features)
    y = x @ slopes * 0.3 + 0.1 * generator.normal(size=count)
    columns = {f"x{j}": x[:, j] * 5 + 10 for j in range(features)}
    ill = generator.random(count) < 1 / (1 + np.exp(-6 * y))
    return Table(
        {**columns, "y": y * 100, "ill": ill.tolist()},
        bounds={**dict.fromkeys(columns, (5, 15)), "y": (-100, 100)},
        classes={"ill": [False, True]},
        **more,
    )


NAMES = ["x0", "x1", "x2"]
PAY, ILL = linear("y", NAMES), logistic("ill", NAMES)


def test_sums_are_exact_also_across_parts(monkeypatch):
    table = people(1000)
    frame = frame_of(PAY, table.facts("row"), "row")
    whole = moments(frame, table, 16)
    monkeypatch.setattr(design, "_CHUNK", 7)
    parts = moments(frame, table, 16)
    features, target = whole_rows(frame, table, 16)
    rows, targets = features.astype(int).tolist(), target.astype(int).tolist()
    for i in range(frame.size):
        assert (
            whole[1][i] == parts[1][i] == sum(r[i] * t for r, t in zip(rows, targets, strict=True))
        )
        for j in range(frame.size):
            assert whole[0][i, j] == parts[0][i, j] == sum(r[i] * r[j] for r in rows)


def covered(table, query, runs, **terms):
    truth = query.truth(table)
    hits = 0
    for _ in range(runs):
        low, high = tulle.release(table, query, **terms).interval(LEVEL)
        hits += bool(((low <= truth) & (truth <= high)).all())
    return hits


@pytest.mark.parametrize("unit", ["row", "participant"])
@pytest.mark.parametrize(("mechanism", "delta"), MOMENTS)
def test_intervals_cover(mechanism, delta, unit):
    """At 100 runs a true coverage of 0.65 would be noticed with probability 0.8."""
    runs = 100
    hits = covered(
        people(3000), PAY, runs, unit=unit, epsilon=1.0, delta=delta, mechanism=mechanism
    )
    assert binom.cdf(hits, runs, LEVEL) >= SIGNIFICANCE, f"{hits} of {runs}"


@pytest.mark.parametrize("unit", ["row", "participant"])
@pytest.mark.parametrize(("mechanism", "delta"), MOMENTS)
def test_intervals_of_the_noise_cover_the_second_order_loss(mechanism, delta, unit):
    """The same power as above; the logistic fit itself is elsewhere, and they do not say so."""
    table, runs = people(3000), 100
    frame = frame_of(ILL, table.facts(unit), unit)
    _, least = typical_moments(frame, table)
    without_noise = in_own_units(frame, 2 * least)
    terms = {"unit": unit, "epsilon": 1.0, "delta": delta, "mechanism": mechanism}
    hits = 0
    for _ in range(runs):
        low, high = noise_interval(tulle.release(table, ILL, **terms), LEVEL)
        hits += bool(((low <= without_noise) & (without_noise <= high)).all())
    assert binom.cdf(hits, runs, LEVEL) >= SIGNIFICANCE, f"{hits} of {runs}"


def test_intervals_of_the_noise_are_those_of_linear_models_and_not_of_others():
    r = tulle.release(people(3000), PAY, unit="row", epsilon=1.0)
    assert np.array_equal(noise_interval(r, 0.9), r.interval(0.9))
    tilted = tulle.release(people(300), ILL, unit="row", epsilon=1.0, mechanism="objective_laplace")
    # To first order it is within that of the release, which holds for every data set.
    (low, high), (lowest, highest) = noise_interval(tilted, 0.9), tilted.interval(0.9)
    assert (lowest < low).all()
    assert (high < highest).all()
    graph = tulle.Graph.from_edges([(0, 1)], nodes=3)
    with pytest.raises(InputError, match="not a regression"):
        noise_interval(tulle.release(graph, tulle.edges(), unit="edge", epsilon=1.0))


@pytest.mark.parametrize(
    ("mechanism", "delta"),
    [*MOMENTS, ("objective_knorm", 0.0), ("objective_laplace", 0.0), ("objective_gaussian", 1e-6)],
)
def test_predictions_on_a_stand_in_cover_logistic_fits(mechanism, delta):
    """The law in the plan covers the table's own fit: noise, penalty and second order together."""
    table, runs = people(3000), 60
    terms = {"unit": "row", "epsilon": 2.0, "delta": delta, "mechanism": mechanism}
    prediction = plan_for(table, ILL, like=people(3000), **terms).chosen.prediction
    widths, truth = prediction.typical.widths(LEVEL), ILL.truth(table)
    found = np.array([tulle.release(table, ILL, **terms).value for _ in range(runs)])
    hits = int((np.abs(found - truth) <= widths).all(axis=1).sum())
    assert binom.cdf(hits, runs, LEVEL) >= SIGNIFICANCE, f"{hits} of {runs}"
    # Not by being wide: what is seen is of the predicted size. A feature spans five to a side.
    seen = np.abs(found - truth).mean(axis=0)[1:].mean() * 5
    assert 0.5 < seen / prediction.mean_error < 2


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
@pytest.mark.parametrize("count", [300, 20_000])
@pytest.mark.parametrize("features", [1, 8])
@pytest.mark.parametrize(("mechanism", "delta"), MOMENTS)
def test_intervals_cover_elsewhere(mechanism, delta, features, count, epsilon):
    runs = 400
    query = linear("y", [f"x{j}" for j in range(features)])
    table = people(count, features, seed=features)
    terms = {"unit": "row", "epsilon": epsilon, "delta": delta, "mechanism": mechanism}
    hits = covered(table, query, runs, **terms)
    assert binom.cdf(hits, runs, LEVEL) >= SIGNIFICANCE, f"{hits} of {runs}"


@pytest.mark.parametrize(("mechanism", "delta"), MOMENTS)
def test_coefficients_come_near_the_truth(mechanism, delta):
    table = people(100_000)
    r = tulle.release(table, PAY, unit="row", epsilon=20.0, delta=delta, mechanism=mechanism)
    truth = PAY.truth(table)
    assert np.allclose(r.value, truth, rtol=0.05, atol=0.05 * np.abs(truth).max())


@pytest.mark.parametrize(
    "mechanism", ["objective_knorm", "objective_laplace", "objective_gaussian"]
)
def test_logistic_coefficients_come_near_the_truth(mechanism):
    table = people(100_000)
    r = tulle.release(table, ILL, unit="row", epsilon=8.0, delta=1e-6, mechanism=mechanism)
    truth = ILL.truth(table)
    assert np.allclose(r.value[1:], truth[1:], atol=0.15 * np.abs(truth[1:]).max())


def test_the_planner_chooses_by_rows_and_budget():
    """Sums of products while noise decides; tilting the true loss once its shape does."""
    few, many = people(300), people(100_000)
    chosen = [
        plan_for(table, ILL, unit="row", epsilon=1.0, delta=delta).mechanism
        for table in (few, many)
        for delta in (0.0, 1e-6)
    ]
    assert all(name.startswith("objective_") for name in chosen[2:]), chosen
    pure = plan_for(many, ILL, unit="row", epsilon=1.0)
    assert "adassp" in dict(pure.refused)
    assert plan_for(many, PAY, unit="row", epsilon=1.0, delta=1e-6).mechanism == "functional"
    wide = linear("y", [f"x{j}" for j in range(13)])
    table = people(1000, 13)
    assert plan_for(table, wide, unit="row", epsilon=1.0, delta=1e-6).mechanism == "adassp"


def test_predicted_errors_are_of_the_right_size():
    """On a public stand-in the predicted mean error is within a factor of two of what is seen."""
    table, other = people(20_000), people(20_000, seed=0)
    frame = frame_of(PAY, table.facts("row"), "row")
    for mechanism, delta in MOMENTS:
        terms = {"unit": "row", "epsilon": 1.0, "delta": delta, "mechanism": mechanism}
        plan = plan_for(table, PAY, like=other, **terms)
        truth = PAY.truth(table)
        errors = [np.abs(tulle.release(table, PAY, **terms).value - truth) for _ in range(40)]
        scaled = np.mean(errors, axis=0)[1:] * 5 / 100
        assert frame.count == len(scaled)
        assert 0.5 < scaled.mean() / plan.chosen.prediction.mean_error < 2


def test_without_public_rows_the_plan_says_nothing_and_about_helps():
    plan = plan_for(people(100), PAY, unit="participant", epsilon=1.0)
    assert plan.chosen.prediction.typical is None
    guessed = plan_for(people(100, about=5000), PAY, unit="participant", epsilon=1.0)
    assert guessed.chosen.prediction.typical is not None
    assert guessed.chosen.settings == plan.chosen.settings


def test_sensitive_features_get_more_noise():
    hidden = linear("y", NAMES, sensitive=["x1"], gamma="0.1")
    plan = plan_for(people(1000), hidden, unit="row", epsilon=1.0, delta=1e-6)
    assert plan.mechanism == "functional"
    chosen = plan.chosen
    assert Fraction(chosen.settings["attribute_epsilon"]) < Fraction(1, 5)
    mechanism = tulle.core.registry.mechanisms("table")["functional"]
    scales = sorted(set(mechanism.scales(chosen.terms, chosen.settings).each()))
    assert scales[-1] == 20 * scales[0]


def test_releases_survive_json():
    for query in (PAY, ILL):
        r = tulle.release(people(500), query, unit="row", epsilon=1.0)
        back = Release.from_json(r.to_json())
        assert back.value.tolist() == r.value.tolist()
        rows = {name: [6.0, 9.0] for name in NAMES}
        assert Model.of(back).predict(rows).tolist() == Model.of(r).predict(rows).tolist()
        assert np.allclose(back.interval(0.9), r.interval(0.9))


def test_models_predict_from_columns_arrays_and_clip():
    r = tulle.release(people(500), ILL, unit="row", epsilon=1.0)
    model = Model.of(r)
    columns = {"x0": [6.0, 99.0], "x1": [7.0, 99.0], "x2": [8.0, 99.0]}
    array = np.array([[6.0, 7.0, 8.0], [15.0, 15.0, 15.0]])
    assert model.probability(columns).tolist() == model.probability(array).tolist()
    assert model.predict(array).dtype == bool
    with pytest.raises(InputError, match="no column"):
        model.predict({"x0": [1.0]})
    with pytest.raises(InputError, match="3 features"):
        model.predict(np.zeros((2, 2)))
    pay = Model.of(tulle.release(people(500), PAY, unit="row", epsilon=1.0))
    with pytest.raises(InputError, match="logistic"):
        pay.probability(array)


def test_budgets_beyond_the_samplers_are_refused_by_public_numbers():
    table = people(10)
    tiny = linear("y", NAMES, sensitive=["x0"], gamma=1e-6)
    with pytest.raises(InputError, match="too many steps"):
        tulle.release(table, tiny, unit="row", epsilon=1e-9, mechanism="functional")
    with pytest.raises(InputError, match="delta is too small"):
        tulle.release(
            table, ILL, unit="row", epsilon=1.0, delta=1e-300, mechanism="objective_gaussian"
        )
    with pytest.raises(InputError, match="gap"):
        tulle.release(table, ILL, unit="row", epsilon=1.0, mechanism="objective_laplace", gap=2)


def test_noise_drowns_everything_but_the_intercept():
    """A model of pure noise falls back to one prediction for all, near the mean."""
    table = people(400)
    found = [
        tulle.release(table, PAY, unit="row", epsilon=0.02, mechanism="functional").value
        for _ in range(30)
    ]
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    "mechanism", ["objective_knorm", "objective_laplace", "objective_gaussian"]
)
def test_noise_that_no_float_holds_is_refused_before_it_is_paid_for(mechanism):
    names = [f"x{i}" for i in range(14)]
    columns = {name: [0.0, 1.0, 0.5] for name in names} | {"y": [0, 1, 0]}
    table = Table(columns, bounds=dict.fromkeys(names, (0, 1)), classes={"y": [0, 1]})
    # With a delta of 1e-6 Gaussian noise has an end, however small epsilon is: delta pays for all.
    asked = {"unit": "participant", "delta": 1e-15, "mechanism": mechanism}
    tulle.release(table, tulle.models.logistic("y"), epsilon=1e-4, **asked)
    with pytest.raises(tulle.QueryError, match="is too small for 15 coefficients"):
        tulle.release(table, tulle.models.logistic("y"), epsilon=1e-9, **asked)
