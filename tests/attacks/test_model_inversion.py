"""Model inversion: the weights are Bayes' rule, and it runs on releases only."""

import numpy as np
import pytest

import tulle
from tulle.attacks import confusion_matrix, feature_inference
from tulle.core.errors import InputError
from tulle.models import Model, Table, linear, logistic


def town(count=4000, seed=0):
    generator = np.random.default_rng(seed)
    married = generator.random(count) < 0.4
    age = generator.random(count) * 60 + 20
    odds = 3 * married + (age - 50) / 20 - 1
    rich = generator.random(count) < 1 / (1 + np.exp(-odds))
    return {"married": married.tolist(), "age": age, "rich": rich.tolist()}


def sealed(columns):
    return Table(
        columns,
        bounds={"age": (20, 80)},
        classes={"married": [False, True], "rich": [False, True]},
    )


COLUMNS = town()
PRIOR = {False: 0.6, True: 0.4}


def asked(epsilon, **more):
    return tulle.release(sealed(COLUMNS), logistic("rich", **more), unit="row", epsilon=epsilon)


def attack(r, **more):
    given = {
        "sensitive": "married",
        "marginal": PRIOR,
        "known": {"age": COLUMNS["age"]},
        "outcome": COLUMNS["rich"],
        "truth": COLUMNS["married"],
    }
    return feature_inference(r, **{**given, **more})


def test_a_good_model_gives_the_feature_away_and_a_bad_one_does_not():
    good, bad = attack(asked(50.0)), attack(asked(1e-4))
    assert good.before == pytest.approx(1 - np.mean(COLUMNS["married"]))
    assert good.after > good.before + 0.05
    assert good.interval[0] < good.after < good.interval[1]
    assert abs(bad.gain) < 0.2
    assert not good.bounded
    assert good.guarantee.epsilon == 50


def test_weights_are_bayes_rule():
    r = asked(50.0)
    model = Model.of(r)
    found = attack(r, known={"age": [40.0]}, outcome=[True], truth=None)
    chances = [
        float(model.probability({"age": [40.0], "married": [value]})[0]) * PRIOR[value]
        for value in (False, True)
    ]
    assert found.after == pytest.approx(max(chances) / sum(chances))
    table = [[30, 5], [10, 20]]
    found = attack(r, known={"age": [40.0]}, outcome=[True], truth=None, confusion=table)
    shares = {False: 10 / 40, True: 20 / 25}
    weights = [
        shares[bool(model.predict({"age": [40.0], "married": [value]})[0])] * PRIOR[value]
        for value in (False, True)
    ]
    assert found.after == pytest.approx(max(weights) / sum(weights))


def test_unknown_features_are_summed_out():
    r = asked(50.0)
    ages = {30.0: 0.5, 70.0: 0.5}
    found = attack(r, known={}, unknown={"age": ages}, outcome=[True], truth=None)
    model = Model.of(r)
    weights = [
        PRIOR[value]
        * sum(0.5 * model.probability({"age": [age], "married": [value]})[0] for age in ages)
        for value in (False, True)
    ]
    assert found.after == pytest.approx(max(weights) / sum(weights))
    assert "marginals of age" in found.knows


def test_linear_models_are_inverted_too():
    r = tulle.release(sealed(COLUMNS), linear("age", ["married", "rich"]), unit="row", epsilon=20.0)
    given = {"known": {"rich": COLUMNS["rich"]}, "outcome": COLUMNS["age"]}
    assert attack(r, **given, deviation=15.0).after >= 0.5
    with pytest.raises(InputError, match="deviation="):
        attack(r, **given)


def test_the_confusion_matrix_counts_actual_by_predicted():
    model = Model.of(asked(50.0))
    table = confusion_matrix(model, COLUMNS, COLUMNS["rich"])
    assert np.sum(table) == 4000
    right = np.mean(model.predict(COLUMNS) == np.array(COLUMNS["rich"]))
    assert (table[0][0] + table[1][1]) / 4000 == pytest.approx(right)


def test_the_attribute_epsilon_is_reported():
    r = asked(1.0, sensitive=["married"], gamma=0.1)
    assert "attribute_epsilon" in attack(r).details


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"known": {"age": [1.0]}}, "1 entry of 'age'"),
        ({"known": {}}, "no column 'age'"),
        ({"truth": [True]}, "targets but"),
        ({"outcome": [2] * 4000}, "not among those"),
        ({"marginal": {True: -1.0}}, "probability for each"),
        ({"confusion": [[1, 2]]}, "2 x 2"),
    ],
)
def test_bad_knowledge_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        attack(asked(1.0), **change)


def test_it_runs_on_releases_of_models_only():
    with pytest.raises(InputError, match="not on sealed data"):
        attack(sealed(COLUMNS))
    graph = tulle.Graph.from_edges([(0, 1)], nodes=3)
    with pytest.raises(InputError, match="not a regression"):
        attack(tulle.release(graph, tulle.edges(), unit="edge", epsilon=1.0))
