"""The models with the interface of scikit-learn."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core import cells
from tulle.core.arrays import Floats
from tulle.core.errors import InputError, MissingExtraError, forgetful, raise_alone
from tulle.core.public import public
from tulle.core.release import Release
from tulle.core.unit import Unit
from tulle.core.validate import Number, counted
from tulle.ledger.answer import release
from tulle.ledger.session import Session
from tulle.models.data import Table
from tulle.models.model import Model
from tulle.models.queries import Regression, linear, logistic
from tulle.noise import SeededSource

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
    from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
    from sklearn.pipeline import FeatureUnion, Pipeline
    from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError:
    raise_alone(MissingExtraError("scikit-learn", "models", "An estimator"))


_TARGET = "y"


_PUBLIC_WORDS = ("X has ", "The feature names ")
"""How messages begin that tell of features only."""

_TOLD = {
    "Reshape your data": "X must have one row a person, one column a feature. Reshape your data.",
    "Complex data": "Complex data not supported.",
    "contains NaN": "The input contains NaN: each value must be a number.",
    "contains infinity": "The input contains infinity: each value must be a finite number.",
    "0 sample(s)": "There are 0 sample(s) while a minimum of 1 is required.",
    "0 feature(s)": "There are 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.",
    "target y is None": "A model requires y to be passed, but the target y is None.",
    "Sparse data": "Sparse data was passed, but dense data is required.",
    "Unknown label type": "Unknown label type: y must hold the declared classes.",
    "inconsistent numbers": "X and y have inconsistent numbers of samples.",
    "string or a real number": "Each value's argument must be a string or a number.",
}
"""What is said where scikit-learn finds fault with X or y, by words of its own message."""


class _NoNumberError(InputError, TypeError):
    """A value is of a type that is no number."""


@contextmanager
def _kept_back() -> Iterator[None]:
    """Keep back what scikit-learn says of X and y: it quotes values, and how many there are."""
    try:
        with warnings.catch_warnings(), np.errstate(over="ignore"):
            # Said where labels are written in many ways; that X has other names is still said.
            warnings.filterwarnings("ignore", message="The number of unique classes")
            yield
    except (TypeError, ValueError) as error:
        kind = _NoNumberError if isinstance(error, TypeError) else InputError
        words = str(error)
        if not words.startswith(_PUBLIC_WORDS):
            otherwise = "X must be a table of numbers and y one value a row, none of them missing."
            words = next((told for name, told in _TOLD.items() if name in words), otherwise)
        raise_alone(kind(words))


def _held(values: Any) -> Any:
    """Return X or y for scikit-learn, which would read what a masked array hides."""
    if np.ma.is_masked(values):
        raise ValueError("contains NaN")
    return cells.plain(values)


class _PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: a table is made of X and y, and asked one question."""

    epsilon: Number | None
    delta: Number
    unit: str | Unit | None
    bounds: Any
    sensitive: Sequence[int] | Sequence[str]
    gamma: Number
    norm: float | None
    fit_intercept: bool
    mechanism: str | None
    random_state: int | None

    def _ask(self, question: Any, X: Any, target: npt.NDArray[Any], **declared: Any) -> None:  # noqa: N803
        """Answer the question about X and the target, and take over what was released."""
        _refuse_learned_steps()
        if self.unit is None or self.bounds is None:
            raise InputError(
                "unit= and bounds= cost privacy and have no default. Say who is protected ('row': "
                "one person's values; 'participant': whether a person is there), and give "
                "bounds=(low, high) of the features from knowledge, not from the data."
            )
        names = [f"x{place}" for place in range(X.shape[1])]
        lows, highs = _read_bounds(self.bounds, X.shape[1])
        bounds = dict(zip(names, zip(lows, highs, strict=True), strict=True))
        bounds.update(declared.pop("target_bounds", {}))
        columns = {name: X[:, place] for place, name in enumerate(names)}
        table = Table({**columns, _TARGET: target}, bounds=bounds, **declared)
        self._take(
            release(
                table,
                self._question(question, _TARGET, names, self._places(names)),
                unit=self.unit,
                epsilon=self._epsilon(),
                delta=self.delta,
                mechanism=self.mechanism,
                source=None if self.random_state is None else SeededSource(self.random_state),
            )
        )

    def _ask_session(self, question: Any, session: Session, target: Any) -> None:
        """Ask a session, whose table has its own bounds; the price is booked in its ledger."""
        if not isinstance(target, str):
            raise InputError("With a session, y is the name of the column to predict.")
        asked = self._question(question, target, None, tuple(map(str, self.sensitive)))
        self._take(
            session.ask(asked, epsilon=self._epsilon(), delta=self.delta, mechanism=self.mechanism)
        )

    def _question(
        self, question: Any, target: str, names: Any, sensitive: tuple[str, ...]
    ) -> Regression:
        asked: Regression = question(
            target,
            names,
            sensitive=sensitive,
            gamma=self.gamma,
            intercept=self.fit_intercept,
            norm=self.norm,
        )
        return asked

    def _epsilon(self) -> Number:
        if self.epsilon is None:
            raise InputError("epsilon= has no default: say how much may be spent.")
        return self.epsilon

    def _places(self, names: list[str]) -> tuple[str, ...]:
        """Return our names of the sensitive features, given by place or by column name."""
        known = {str(n): p for p, n in enumerate(getattr(self, "feature_names_in_", ()))}
        found = []
        for given in self.sensitive:
            place = known.get(given, given) if isinstance(given, str) else given
            if isinstance(place, str) or not 0 <= int(place) < len(names):
                raise InputError(f"sensitive names {given!r}, which is not a feature.")
            found.append(names[int(place)])
        return tuple(found)

    def _take(self, answer: Release) -> None:
        self.release_ = answer
        self.model_ = Model.of(answer)
        if not hasattr(self, "n_features_in_"):
            self.n_features_in_ = len(self.model_.features)

    def _rows(self, X: Any) -> Floats:  # noqa: N803
        check_is_fitted(self, "model_")
        with _kept_back():
            rows: Floats = validate_data(self, _held(X), reset=False, dtype=np.float64)
        return rows


@public()
class LinearRegression(RegressorMixin, _PrivateEstimator):  # type: ignore[misc]
    """Least squares under differential privacy, as a scikit-learn estimator.

    A thin skin over :func:`tulle.models.linear`: ``fit`` makes a sealed table of X and y and asks
    it one question. Instead of X it takes a :class:`tulle.Session` on a
    :class:`tulle.models.Table`, with y the name of the target's column; the price is then booked.

    Parameters are those of the question and of the release. ``bounds`` is (low, high) of all
    features, numbers or arrays; ``target_bounds`` that of y. Values beyond are clipped, in ``fit``
    and in ``predict``. ``sensitive`` lists features by place or name. ``random_state`` makes the
    noise replayable: the release then says *no guarantee*.

    After ``fit``: ``release_`` with guarantee and interval, ``coef_``, ``intercept_``.

    Raises:
        InputError: without epsilon, unit, bounds or target_bounds.

    Example:
        >>> people = LinearRegression(
        ...     epsilon=1.0, unit="row", bounds=(0, 10), target_bounds=(0, 100))
        >>> fitted = people.fit([[1.0], [4.0], [9.0]], [10.0, 40.0, 90.0])
        >>> print(fitted.release_.guarantee)
        epsilon = 1, pure, per row (replace)
    """

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0.0,
        unit: str | Unit | None = None,
        bounds: Any = None,
        target_bounds: Any = None,
        sensitive: Sequence[int] | Sequence[str] = (),
        gamma: Number = 1,
        norm: float | None = None,
        fit_intercept: bool = True,
        mechanism: str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.unit = unit
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.sensitive = sensitive
        self.gamma = gamma
        self.norm = norm
        self.fit_intercept = fit_intercept
        self.mechanism = mechanism
        self.random_state = random_state

    @forgetful
    def fit(self, X: Any, y: Any) -> LinearRegression:  # noqa: N803
        """Release a model of y by the columns of X, or of the session's column named y."""
        if isinstance(X, Session):
            self._ask_session(linear, X, y)
        else:
            with _kept_back():
                X, y = validate_data(  # noqa: N806
                    self, _held(X), _held(y), dtype=np.float64, y_numeric=True
                )
            if self.target_bounds is None:
                raise InputError("target_bounds= has no default: declare (low, high) of y.")
            self._ask(linear, X, y, target_bounds={_TARGET: self.target_bounds})
        self.intercept_, self.coef_ = self.model_.intercept, self.model_.coefficients
        return self

    @forgetful
    def predict(self, X: Any) -> Floats:  # noqa: N803
        """Return the predicted targets."""
        rows = self._rows(X)
        return self.model_.decision(rows)


@public()
class LogisticRegression(ClassifierMixin, _PrivateEstimator):  # type: ignore[misc]
    """Logistic regression under differential privacy, as a scikit-learn classifier.

    As :class:`LinearRegression`; ``classes`` declares the two labels, the second being the one
    whose probability is modelled. They are never read off the data: labels that nobody has would
    show. Data in which all labels are equal is fitted like any other.

    After ``fit``: ``release_``, ``classes_``, ``coef_`` and ``intercept_`` as in scikit-learn.

    Raises:
        InputError: without epsilon, unit, bounds or classes, or for a label not declared.

    Example:
        >>> people = LogisticRegression(
        ...     epsilon=1.0, unit="participant", bounds=(0, 10), classes=["ill", "well"])
        >>> fitted = people.fit([[1.0], [4.0], [9.0]], ["ill", "ill", "well"])
        >>> fitted.predict_proba([[5.0]]).shape
        (1, 2)
    """

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0.0,
        unit: str | Unit | None = None,
        bounds: Any = None,
        classes: Any = None,
        sensitive: Sequence[int] | Sequence[str] = (),
        gamma: Number = 1,
        norm: float | None = None,
        fit_intercept: bool = True,
        mechanism: str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.unit = unit
        self.bounds = bounds
        self.classes = classes
        self.sensitive = sensitive
        self.gamma = gamma
        self.norm = norm
        self.fit_intercept = fit_intercept
        self.mechanism = mechanism
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @forgetful
    def fit(self, X: Any, y: Any) -> LogisticRegression:  # noqa: N803
        """Release a model of the labels y by the columns of X, or of the session's column y."""
        if isinstance(X, Session):
            self._ask_session(logistic, X, y)
        else:
            with _kept_back():
                given = y
                X, y = validate_data(self, _held(X), _held(y), dtype=np.float64)  # noqa: N806
                check_classification_targets(y)
                labels = column_or_1d(y)
                if isinstance(given, list | tuple) and np.shape(given) == labels.shape:
                    labels = given  # numpy finds one type, which follows from all labels
            if self.classes is None:
                raise InputError("classes= has no default: declare the two labels of y.")
            listed = list(self.classes)
            if len(listed) != 2:
                raise InputError(
                    f"Only binary classification is supported: declare two classes, not "
                    f"{len(listed)}."
                )
            places = cells.places(labels, listed, "y")
            if (places < 0).any():
                raise InputError("A label is not among the declared classes.")
            self._ask(logistic, X, places, classes={_TARGET: [0, 1]})
        assert self.model_.classes is not None
        declared = self.model_.classes if isinstance(X, Session) else self.classes
        self.classes_ = np.asarray(declared)
        self.intercept_ = np.array([self.model_.intercept])
        self.coef_ = self.model_.coefficients[None, :]
        return self

    @forgetful
    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """Return the log-odds of the second class."""
        rows = self._rows(X)
        return self.model_.decision(rows)

    @forgetful
    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return the probabilities of both classes."""
        rows = self._rows(X)
        second = self.model_.probability(rows)
        return np.column_stack((1 - second, second))

    @forgetful
    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Return the likelier class of each row."""
        positive = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive.astype(np.int64)])


def _refuse_learned_steps() -> None:
    """Refuse to fit to anything but the records themselves.

    Whoever calls ``fit`` is looked for up the stack. A step of a pipeline before this one has been
    fitted to the records without noise, and the model gives away what it learned. Any other
    estimator that fits this one may have repeated, chosen or changed records in view of all of
    them; only a search that keeps none of its models is known not to.

    Raises:
        InputError: naming the kinds of the steps or the estimator, and nothing that they learned.
    """
    learned: dict[str, None] = {}
    for caller in _callers():
        if isinstance(caller, Pipeline):
            learned |= dict.fromkeys(_learning(step for _, step in caller.steps[:-1]))
        elif isinstance(caller, TransformedTargetRegressor):
            learned |= dict.fromkeys(_learning([caller.transformer_]))
        elif isinstance(caller, GridSearchCV | RandomizedSearchCV):
            if caller.refit:
                raise InputError(
                    f"{type(caller).__name__} would choose the settings of this model by its true "
                    "scores, which have no noise, and no epsilon covers that. Choose settings on "
                    "public data; with refit=False scores are shown to you alone, and none is "
                    "chosen."
                )
        elif not isinstance(caller, _PrivateEstimator):
            named = caller if isinstance(caller, str) else type(caller).__name__
            raise InputError(
                f"This model would be fitted by {named}, to what that makes of the records: some "
                "may be there several times, be chosen, or have come from another model, and no "
                "epsilon covers that. Fit it by itself, to the records as they are."
            )
    if learned:
        raise InputError(
            f"{', '.join(learned)} in front of this model learns from the same records, or may, "
            "and no epsilon covers what it learns. Leave it out: bounds= are in the columns' own "
            "units, and values are scaled by them. Or fit it to public data and freeze it with "
            "sklearn.frozen.FrozenEstimator."
        )


_HANDING_ON = re.compile(r"sklearn\.(base|pipeline|compose|utils|model_selection)\b")
"""The parts of scikit-learn whose functions may lead here: they hand on records as they are."""


def _callers() -> Iterator[BaseEstimator | str]:
    """Yield the estimators whose methods lead here, and functions that fit for one.

    Called from another process, those functions hold it by another name, or not at all.
    """
    frame = sys._getframe(1)
    while (frame := frame.f_back) is not None:  # type: ignore[assignment]
        held = frame.f_locals.get("self")
        module = str(frame.f_globals.get("__name__"))
        if isinstance(held, BaseEstimator):
            yield held
        elif module.startswith("sklearn.") and not _HANDING_ON.match(module):
            yield next(
                (
                    held
                    for held in frame.f_locals.values()
                    if isinstance(held, BaseEstimator) and not isinstance(held, _PrivateEstimator)
                ),
                module,
            )


def _learning(steps: Any) -> Iterator[str]:
    """Yield the kinds of those steps that are made from data, parts of steps included."""
    for step in steps:
        if step is None or isinstance(step, str):  # "passthrough" and "drop"
            continue
        if isinstance(step, Pipeline):
            yield from _learning(part for _, part in step.steps)
        elif isinstance(step, ColumnTransformer):
            yield from _learning([*(part[1] for part in step.transformers), step.remainder])
        elif isinstance(step, FeatureUnion):
            yield from _learning(part[1] for part in step.transformer_list)
        elif type(step) is not PolynomialFeatures and not _is_frozen(step):
            yield type(step).__name__


def _is_frozen(step: Any) -> bool:
    """Tell whether a step treats each row by itself: it has no state, or was fitted before.

    What a function makes of all rows nobody can tell, unless it is one that numpy applies to each
    value; nor what a class that is not scikit-learn's own makes of them.
    """
    try:
        from sklearn.frozen import FrozenEstimator
    except ImportError:  # scikit-learn before 1.6
        FrozenEstimator = ()  # noqa: N806
    if isinstance(step, FrozenEstimator):
        return not isinstance(step.estimator, FunctionTransformer) or _is_frozen(step.estimator)
    if type(step) is FunctionTransformer:
        return step.func is None or isinstance(step.func, np.ufunc)
    tags = getattr(step, "__sklearn_tags__", None)
    own = type(step).__module__.startswith("sklearn.")
    return own and tags is not None and not tags().requires_fit


def _read_bounds(bounds: Any, count: int) -> tuple[list[float], list[float]]:
    try:
        low, high = bounds
        return (
            np.broadcast_to(np.asarray(low, dtype=np.float64), count).tolist(),
            np.broadcast_to(np.asarray(high, dtype=np.float64), count).tolist(),
        )
    except (TypeError, ValueError, OverflowError):
        raise_alone(
            InputError(
                "bounds must be (low, high): two numbers, or two lists of "
                f"{counted(count, 'number')}."
            )
        )
