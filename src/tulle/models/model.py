"""A released model that predicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Floats
from tulle.core.dataset import Facts
from tulle.core.errors import InputError, raise_alone
from tulle.core.public import public
from tulle.core.release import Release
from tulle.core.validate import counted
from tulle.models.design import Frame


def describe(frame: Frame, facts: Facts) -> dict[str, Any]:
    """Return the public facts that a released model needs for predicting; JSON-able."""
    return {
        "kind": "logistic" if frame.logistic else "linear",
        "target": frame.target,
        "features": list(frame.features),
        "lows": list(frame.lows),
        "highs": list(frame.highs),
        "classes": facts["classes"].get(frame.target),
        "feature_classes": {n: c for n, c in facts["classes"].items() if n != frame.target},
        "intercept": frame.intercept,
        "norm": frame.norm,
        "rows": frame.rows,
    }


def frame_again(known: Mapping[str, Any]) -> Frame:
    """Return the public shape that :func:`describe` told of."""
    count = len(known["features"])
    return Frame(
        tuple(known["features"]),
        tuple(known["lows"]),
        tuple(known["highs"]),
        known["target"],
        0.0,
        1.0,
        (False,) * count,
        Fraction(1),
        known.get("intercept", True),
        known.get("norm"),
        known["kind"] == "logistic",
        "row",
        known.get("rows"),
    )


@public()
@dataclass(frozen=True, eq=False)
class Model:
    """A regression model as it was released: post-processing only, it holds no records.

    Example:
        >>> import tulle
        >>> people = tulle.models.Table(
        ...     {"age": [30, 40, 50], "pay": [2, 3, 4]}, bounds={"age": (18, 70), "pay": (0, 9)})
        >>> r = tulle.release(people, tulle.models.linear("pay"), unit="row", epsilon=1.0)
        >>> Model.of(r).predict({"age": [35, 60]}).shape
        (2,)
    """

    kind: str
    target: str
    features: tuple[str, ...]
    lows: Floats
    highs: Floats
    intercept: float
    coefficients: Floats
    classes: tuple[Any, ...] | None
    feature_classes: Mapping[str, Any]

    @classmethod
    def of(cls, release: Release) -> Model:
        """Return the model of a release.

        Raises:
            InputError: when the release is not one of a regression.
        """
        known = release.parameters.get("model")
        if known is None:
            raise InputError(f"This release of {release.query} is not a regression model.")
        values = np.asarray(release.value, dtype=np.float64)
        return cls(
            known["kind"],
            known["target"],
            tuple(known["features"]),
            np.array(known["lows"]),
            np.array(known["highs"]),
            float(values[0]),
            values[1:],
            None if known["classes"] is None else tuple(known["classes"]),
            known["feature_classes"],
        )

    def design(self, features: Any) -> Floats:
        """Return one row per person: from an array in the order of ``features``, or columns.

        Values are clipped to the bounds that the model was fitted with.

        Raises:
            InputError: when a column is missing or shapes do not match.
        """
        if isinstance(features, np.ndarray | list | tuple):
            given = np.asarray(features, dtype=np.float64)
        else:
            given = np.column_stack([self._column(features, name) for name in self.features])
        if given.ndim != 2 or given.shape[1] != len(self.features):
            raise InputError(f"A row must have {counted(len(self.features), 'feature')}.")
        return np.clip(given, self.lows, self.highs)

    def _column(self, columns: Any, name: str) -> Floats:
        for original, listed in self.feature_classes.items():
            for value in listed[1:]:
                if name == (original if len(listed) == 2 else f"{original}={value}"):
                    given = _look_up(columns, original)
                    return np.array([v == value for v in given], dtype=np.float64)
        return np.asarray(_look_up(columns, name), dtype=np.float64)

    def decision(self, features: Any) -> Floats:
        """Return the linear predictor: the predicted target, or the log-odds."""
        return np.asarray(self.design(features) @ self.coefficients + self.intercept)

    def probability(self, features: Any) -> Floats:
        """Return the probability of the second class.

        Raises:
            InputError: for a linear model.
        """
        from scipy.special import expit

        if self.kind != "logistic":
            raise InputError("Only a logistic model gives probabilities.")
        return np.asarray(expit(self.decision(features)))

    def predict(self, features: Any) -> npt.NDArray[Any]:
        """Return the predicted target: a number, or the likelier class."""
        if self.kind != "logistic":
            return self.decision(features)
        assert self.classes is not None
        return np.array(self.classes)[(self.decision(features) > 0).astype(np.int64)]


def _look_up(columns: Any, name: str) -> Any:
    try:
        return columns[name]
    except (KeyError, IndexError):
        raise_alone(InputError(f"There is no column {name!r} to predict from."))
