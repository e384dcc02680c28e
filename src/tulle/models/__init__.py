"""Regression models of a table of people, fitted under differential privacy.

:class:`Table` holds the records, :func:`linear` and :func:`logistic` ask for a model, and
:class:`Model` predicts from what was released. :class:`LinearRegression` and
:class:`LogisticRegression` are the same behind the face of scikit-learn, which is imported only
when one of them is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tulle.core.lazy import lazy

if TYPE_CHECKING:
    from tulle.models.data import Table
    from tulle.models.estimators import LinearRegression, LogisticRegression
    from tulle.models.intervals import noise_interval
    from tulle.models.model import Model
    from tulle.models.queries import linear, logistic

_HOMES = {
    "data": ("Table",),
    "estimators": ("LinearRegression", "LogisticRegression"),
    "intervals": ("noise_interval",),
    "model": ("Model",),
    "queries": ("linear", "logistic"),
}

__all__ = [
    "LinearRegression",
    "LogisticRegression",
    "Model",
    "Table",
    "linear",
    "logistic",
    "noise_interval",
]

__getattr__, __dir__ = lazy(__name__, _HOMES)
