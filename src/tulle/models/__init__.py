"""Regression models of a table of people, fitted under differential privacy.

:class:`Table` holds the records, :func:`linear` and :func:`logistic` ask for a model, and
:class:`Model` predicts from what was released. :class:`LinearRegression` and
:class:`LogisticRegression` are the same behind the face of scikit-learn, which is imported only
when one of them is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tulle.models.data import Table
    from tulle.models.estimators import LinearRegression, LogisticRegression
    from tulle.models.model import Model
    from tulle.models.queries import linear, logistic

_HOME = {
    "LinearRegression": "estimators",
    "LogisticRegression": "estimators",
    "Model": "model",
    "Table": "data",
    "linear": "queries",
    "logistic": "queries",
}

__all__ = ["LinearRegression", "LogisticRegression", "Model", "Table", "linear", "logistic"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"tulle.models.{_HOME[name]}"), name)
    raise AttributeError(f"module 'tulle.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
