"""The estimators keep scikit-learn's conventions as far as privacy permits."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import tulle
from tulle.core.errors import InputError
from tulle.models import LinearRegression, LogisticRegression, Model, Table


class DeclaringLogistic(LogisticRegression):
    """Declares as classes whatever labels the data has: the checks' own data is public.

    Without it every check that brings other labels than 0 and 1 would end at the declaration,
    and the rest of the conventions would go unchecked.
    """

    def fit(self, X, y):
        given = self.classes
        if np.ndim(y) == 1 and len(np.unique(y)) != 1:
            self.classes = np.unique(y)
        try:
            return super().fit(X, y)
        finally:
            self.classes = given


PUBLIC = {"epsilon": 1000, "unit": "row", "bounds": (-5, 5)}

EXEMPT = {
    "check_readonly_memmap_input": "",
}


@parametrize_with_checks(
    [
        LinearRegression(**PUBLIC, target_bounds=(-5, 5), random_state=1),
        DeclaringLogistic(**PUBLIC, classes=[0, 1], random_state=1),
    ],
)
def test_conventions(estimator, check):
    check(estimator)
