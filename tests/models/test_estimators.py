"""The estimators keep scikit-learn's conventions as far as privacy permits.

All of scikit-learn's checks run, on data that is public. What privacy does not permit is given to
the estimators from outside, and named here:

* the classes must be declared: :class:`DeclaringLogistic` declares what the checks' labels are;
* bounds must be declared: (-5, 5) is, and the checks' values beyond are clipped;
* two fits on the same data differ: ``random_state`` makes them equal, and voids the guarantee;
* scores on a few dozen rows mean nothing at a useful epsilon: epsilon is 1000;
* ``unit``, ``epsilon``, ``bounds`` have no defaults: without them ``fit`` refuses.
"""

import inspect
import subprocess
import sys
import warnings
from contextlib import nullcontext, suppress
from functools import partial

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin, TransformerMixin, clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import BaggingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.utils import all_estimators
from sklearn.utils.estimator_checks import parametrize_with_checks

import tulle
from tulle.core.errors import InputError
from tulle.models import LinearRegression, LogisticRegression, Table


class DeclaringLogistic(LogisticRegression):
    """Declares as classes whatever labels the data has; only public data permits that."""

    def fit(self, X, y):  # noqa: N803
        given, labels = self.classes, np.asarray(y)
        if labels.ndim == 1 and len(np.unique(labels)) != 1:
            self.classes = np.unique(labels)
        try:
            return super().fit(X, y)
        finally:
            self.classes = given


PUBLIC = {"epsilon": 1000, "unit": "row", "bounds": (-5, 5)}
PRIVATE = {"epsilon": 1.0, "unit": "participant", "bounds": (0, 1)}


@parametrize_with_checks(
    [
        LinearRegression(**PUBLIC, target_bounds=(-5, 5), random_state=1),
        DeclaringLogistic(**PUBLIC, classes=[0, 1], random_state=1),
    ],
)
def test_conventions(estimator, check):
    check(estimator)


def data(count=400, seed=0):
    generator = np.random.default_rng(seed)
    features = generator.random((count, 2))
    return features, features @ [0.5, 0.3] + 0.1


@pytest.mark.parametrize("missing", ["epsilon", "unit", "bounds", "target_bounds"])
def test_nothing_that_costs_privacy_has_a_default(missing):
    features, target = data()
    given = {**PRIVATE, "target_bounds": (0, 1), missing: None}
    with pytest.raises(InputError, match=missing):
        LinearRegression(**given).fit(features, target)


def test_classes_are_declared_and_constant_labels_fit():
    features, _ = data()
    with pytest.raises(InputError, match="classes="):
        LogisticRegression(**PRIVATE).fit(features, np.zeros(400))
    with pytest.raises(InputError, match="not among the declared"):
        LogisticRegression(**PRIVATE, classes=["no", "yes"]).fit(features, ["perhaps"] * 400)
    fitted = LogisticRegression(**PRIVATE, classes=["no", "yes"]).fit(features, ["yes"] * 400)
    assert fitted.predict(features).shape == (400,)
    assert set(fitted.predict(features)) <= {"no", "yes"}
    assert np.allclose(fitted.predict_proba(features).sum(axis=1), 1)


def test_a_fit_is_a_release():
    features, target = data()
    fitted = LinearRegression(**PRIVATE, target_bounds=(0, 1)).fit(features, target)
    assert str(fitted.release_.guarantee) == "epsilon = 1, pure, per participant (add-remove)"
    assert fitted.coef_.tolist() == fitted.release_.value[1:].tolist()
    low, high = fitted.release_.interval(0.9)
    assert (low <= fitted.release_.value).all()
    assert (fitted.release_.value <= high).all()
    again = clone(fitted).fit(features, target)
    assert again.coef_.tolist() != fitted.coef_.tolist()
    seeded = LinearRegression(**PRIVATE, target_bounds=(0, 1), random_state=3).fit(features, target)
    assert not seeded.release_.guarantee.holds


def test_a_session_books_the_price(tmp_path):
    features, target = data()
    people = Table(
        {"a": features[:, 0], "b": features[:, 1], "rich": (target > 0.5).tolist()},
        bounds={"a": (0, 1), "b": (0, 1)},
        classes={"rich": [False, True]},
    )
    ledger = tulle.Ledger(tmp_path / "study.ledger")
    study = ledger.open("people", people, unit="participant", epsilon=1.0, delta=1e-6)
    fitted = LogisticRegression(epsilon=0.75).fit(study, "rich")
    assert fitted.release_.debit is not None
    assert float(study.remaining.epsilon) == 0.25
    assert fitted.predict(features).dtype == bool
    with pytest.raises(tulle.BudgetError):
        LinearRegression(epsilon=0.5).fit(study, "a")
    with pytest.raises(InputError, match="name of the column"):
        LinearRegression(epsilon=0.1).fit(study, target)


def test_sensitive_features_go_by_place_or_name():
    pandas = pytest.importorskip("pandas")
    features, target = data()
    frame = pandas.DataFrame(features, columns=["open", "secret"])
    given = {**PRIVATE, "target_bounds": (0, 1), "gamma": 0.1}
    by_name = LinearRegression(**given, sensitive=["secret"]).fit(frame, target)
    by_place = LinearRegression(**given, sensitive=[1]).fit(features, target)
    settings = [fitted.release_.parameters["scale"] for fitted in (by_name, by_place)]
    assert settings[0] == settings[1]
    assert "attribute_epsilon" in by_name.release_.parameters
    for wrong in (["neither"], [2]):
        with pytest.raises(InputError, match="not a feature"):
            LinearRegression(**given, sensitive=wrong).fit(frame, target)


def test_it_learns_and_goes_into_cross_validation():
    features, target = data(20_000)
    labels = np.where(target > 0.5, "rich", "poor")
    model = LogisticRegression(
        epsilon=1.0, unit="row", bounds=(0, 1), classes=["poor", "rich"], random_state=1
    )
    assert cross_val_score(model, features, labels, cv=3).min() > 0.9


class Centring(TransformerMixin, BaseEstimator):
    """A transformer that nobody has heard of: it is taken to learn, since it may."""

    def fit(self, X, y=None):  # noqa: N803
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):  # noqa: N803
        return X - self.mean_


class CentringAtOnce(Centring):
    """A transformer that says of itself that nothing is fitted."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def transform(self, X):  # noqa: N803
        return centred(X)


def centred(values):
    return values - values.mean(axis=0)


FROZEN = FrozenEstimator(StandardScaler().fit(np.random.default_rng(5).random((20, 2))))


@pytest.mark.parametrize(
    ("step", "named"),
    [
        (StandardScaler(), "StandardScaler"),
        (MinMaxScaler(), "MinMaxScaler"),
        (PCA(1), "PCA"),
        (SimpleImputer(), "SimpleImputer"),
        (Centring(), "Centring"),
        (make_pipeline(Normalizer(), MinMaxScaler()), "MinMaxScaler"),
        (make_column_transformer((StandardScaler(), [0])), "StandardScaler"),
        (make_column_transformer(("drop", [0]), remainder=PCA(1)), "PCA"),
        (make_union(Normalizer(), StandardScaler()), "StandardScaler"),
        (Normalizer(), None),
        (PolynomialFeatures(2), None),
        (FunctionTransformer(np.sqrt), None),
        (FunctionTransformer(), None),
        (FunctionTransformer(centred), "FunctionTransformer"),
        (FrozenEstimator(FunctionTransformer(centred)), "FrozenEstimator"),
        (CentringAtOnce(), "CentringAtOnce"),
        (FROZEN, None),
        (make_column_transformer((Normalizer(), [0]), remainder="passthrough"), None),
        ("passthrough", None),
    ],
)
def test_a_step_that_learns_from_the_records_is_refused(step, named):
    features, target = data()
    model = LinearRegression(**PRIVATE, target_bounds=(0, 1))
    shapes = [make_pipeline(step, model), make_pipeline(step, make_pipeline(Normalizer(), model))]
    for pipeline in shapes:
        if named is None:
            pipeline.fit(features, target)
            continue
        with pytest.raises(InputError, match=f"{named} in front of this model learns"):
            pipeline.fit(features, target)
        search = GridSearchCV(pipeline, {"memory": [None]}, cv=2, refit=False, error_score="raise")
        with pytest.raises(InputError, match=f"{named} in front"):
            search.fit(features, target)


def test_a_learned_scale_of_the_target_is_refused():
    features, target = data()
    model = LinearRegression(**PRIVATE, target_bounds=(0, 1))
    with pytest.raises(InputError, match="MinMaxScaler in front"):
        TransformedTargetRegressor(model, transformer=MinMaxScaler()).fit(features, target)
    TransformedTargetRegressor(model, func=np.sqrt, inverse_func=np.square).fit(features, target)
    centring = TransformedTargetRegressor(
        model, func=centred, inverse_func=np.square, check_inverse=False
    )
    with pytest.raises(InputError, match="FunctionTransformer in front"):
        centring.fit(features, target)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_search_chooses_no_settings_by_scores_without_noise(jobs):
    features, target = data()
    model = LinearRegression(**PRIVATE, target_bounds=(0, 1))
    search = GridSearchCV(model, {"gamma": [0.5, 1]}, cv=2, n_jobs=jobs, error_score="raise")
    with pytest.raises(InputError, match="choose the settings of this model by its true scores"):
        search.fit(features, target)
    assert not hasattr(getattr(search, "best_estimator_", None), "model_")
    search.set_params(refit=False).fit(features, target)
    assert len(search.cv_results_["params"]) == 2


HANDS_ON = {"Pipeline", "TransformedTargetRegressor"}
"""Estimators that fit another one to the records as they are, or whose steps are looked at."""


def wrapped(kind, jobs):
    """Return an estimator of scikit-learn around a private one, or None if it takes none."""
    takes = set(inspect.signature(kind).parameters)
    private = (
        LogisticRegression(**PRIVATE, classes=[0, 1])
        if issubclass(kind, ClassifierMixin)
        else LinearRegression(**PRIVATE, target_bounds=(0, 1))
    )
    plain = DummyClassifier() if issubclass(kind, ClassifierMixin) else DummyRegressor()
    given = {
        "estimators": [("a", plain)] if "final_estimator" in takes else [("a", private)],
        "final_estimator": private,
        "estimator": private,
        "regressor": private,
        "steps": [("a", private)],
        "param_grid": {"gamma": [1]},
        "param_distributions": {"gamma": [1]},
        "n_iter": 1,
        "cv": 2,
        "error_score": "raise",
        "min_samples": 10,
        "random_state": 1,  # a codebook of constants alone would fit no model at all
        "transformer_list": [("a", private)],
        "n_jobs": jobs,
    }
    if not takes & {"estimators", "final_estimator", "estimator", "regressor", "steps"}:
        return None
    return kind(**{name: value for name, value in given.items() if name in takes})


@pytest.mark.parametrize("jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_whatever_scikit_learn_has_around_a_model_is_refused_or_hands_on_the_records(jobs):
    features, target = data()
    labels = (target > 0.5).astype(int)
    seen, fitted = 0, set()
    for name, kind in all_estimators():
        made = wrapped(kind, jobs)
        if made is None or issubclass(kind, ClusterMixin) or "Halving" in name:
            continue
        many = name.startswith(("MultiOutput", "RegressorChain", "ClassifierChain"))
        given = np.column_stack((labels, labels)) if many else labels
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made.fit(features, given)
        except (ValueError, AttributeError, TypeError) as error:
            seen += "no epsilon covers" in str(error)
        else:
            fitted.add(name)
    assert fitted <= HANDS_ON | ({"SequentialFeatureSelector"} if jobs else set())  # keeps no model
    assert seen >= 12


@pytest.mark.parametrize("jobs", [1, 2])
def test_records_that_are_there_several_times_are_refused(jobs, monkeypatch):
    """A person's row drawn twice moves a model twice."""
    features, target = data()
    model = LinearRegression(**PRIVATE, target_bounds=(0, 1))
    bags = BaggingRegressor(model, n_estimators=2, n_jobs=jobs, random_state=1)
    with pytest.raises(InputError, match="by BaggingRegressor"):
        bags.fit(features, target)
    if jobs == 1:
        monkeypatch.setattr("tulle.models.estimators._callers", lambda: ())
        counts = []
        monkeypatch.setattr(
            LinearRegression,
            "_ask",
            lambda self, question, X, y, **more: counts.append(  # noqa: N803
                np.unique(X, axis=0, return_counts=True)[1].max()
            ),
        )
        with pytest.raises(AttributeError):
            bags.fit(features, target)
        assert counts[0] > 1


def labels_read(labels, classes, monkeypatch):
    """Return the places of labels among the classes, as an estimator reads them."""
    found = []
    monkeypatch.setattr(
        LogisticRegression,
        "_ask",
        lambda self, question, X, y, **more: found.extend(y.tolist()),  # noqa: N803
    )
    with suppress(InputError, AttributeError):
        LogisticRegression(**PRIVATE, classes=classes).fit([[0.5]] * len(labels), labels)
    return found


LABELS = [[0, 1], ["0", "1"], [2**53, 2**53 + 1], [False, True], ["b", "b "], [1.5, 2]]


def changed_by_another(monkeypatch):
    """Return the labels that read otherwise because there is one more of another kind."""
    return [
        (classes, odd)
        for classes in LABELS
        for odd in (0, 1.0, "1", "0", float(2**53), True, 1.5, "b")
        if (more := labels_read([*classes, odd], classes, monkeypatch))
        and more[:2] != labels_read(classes, classes, monkeypatch)
    ]


def test_a_label_is_read_by_itself(monkeypatch):
    assert changed_by_another(monkeypatch) == []


def test_labels_whose_type_follows_from_all_of_them_would_be_caught(monkeypatch):
    def places(values, names, what):
        found = np.asarray(values)[:, None] == np.asarray(names)
        return np.where(found.any(1), found.argmax(1), -1)

    monkeypatch.setattr("tulle.models.estimators.cells.places", places)
    assert changed_by_another(monkeypatch)


def test_a_pipeline_elsewhere_on_the_way_is_no_reason():
    """Twin of the check: without it nothing would be said; and a model by itself is fitted."""
    features, target = data()
    model = LinearRegression(**PRIVATE, target_bounds=(0, 1))
    unchecked = type("Unchecked", (LinearRegression,), {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tulle.models.estimators._refuse_learned_steps", lambda: None)
        make_pipeline(StandardScaler(), unchecked(**PRIVATE, target_bounds=(0, 1))).fit(
            features, target
        )
    model.fit(StandardScaler().fit_transform(features), target)


def test_scikit_learn_is_imported_only_when_used():
    script = (
        "import sys, tulle\n"
        "people = tulle.models.Table({'a': [1], 'b': [2]}, bounds={'a': (0, 3), 'b': (0, 3)})\n"
        "tulle.release(people, tulle.models.linear('b'), unit='row', epsilon=1.0)\n"
        "assert 'sklearn' not in sys.modules\n"
        "sys.modules['sklearn'] = None\n"
        "try:\n"
        "    tulle.models.LinearRegression\n"
        "except ImportError as error:\n"
        "    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600
    )
    assert "tulle[models]" in done.stdout


SECRET = "hidden_7431"


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.1], [SECRET]], [0, 1]),
        (np.array([[0.1], [SECRET]], dtype=object), [0, 1]),
        ([[0.1], [0.2]], np.array([0, SECRET], dtype=object)),
        ([[0.1], [0.2]], [0, SECRET]),
        ([0.7431, 0.2], [0, 1]),  # one dimension: scikit-learn prints the array
        ([[0.1], [0.2, SECRET]], [0, 1]),
        ([[7431j], [0.2]], [0, 1]),
        ([[0.1]] * 7431, [0]),
        ([[]] * 7431, [0] * 7431),
        ([["X has features as input, feature names " + SECRET]], [0]),
        ([[float("nan")]], [0]),
    ],
)
def test_errors_quote_no_value_and_no_number_of_rows(X, y):  # noqa: N803
    made = [
        LinearRegression(**PRIVATE, target_bounds=(0, 1)),
        LogisticRegression(**PRIVATE, classes=[0, 1]),
    ]
    fitted = LinearRegression(**PRIVATE, target_bounds=(0, 1)).fit([[0.1], [0.2]], [0, 1])
    acts = [partial(estimator.fit, X, y) for estimator in made]
    if SECRET in str(X):
        acts.append(partial(fitted.predict, X))
    for act in acts:
        with pytest.raises(InputError) as caught:
            act()
        assert "7431" not in str(caught.value)
        assert caught.value.__context__ is None


def test_what_scikit_learn_says_itself_would_be_caught(monkeypatch):
    monkeypatch.setattr("tulle.models.estimators._kept_back", nullcontext)
    with pytest.raises(ValueError, match=SECRET):
        LinearRegression(**PRIVATE, target_bounds=(0, 1)).fit([[SECRET]], [0])
