"""The bar on real people: Adult, 32,561 rows, when the data is there."""

import os
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

import tulle
from tulle.models import Model, Table, logistic

PATH = Path(os.environ.get("TULLE_DATA", "nowhere"), "adult", "adult.csv.gz")
pytestmark = pytest.mark.skipif(not PATH.exists(), reason="set TULLE_DATA for Adult")

STATUS = [
    "Never-married", "Married-civ-spouse", "Divorced", "Married-spouse-absent", "Separated",
    "Married-AF-spouse", "Widowed",
]  # fmt: skip
BOUNDS = {
    "age": (17, 90),
    "education_num": (1, 16),
    "capital_gain": (0, 20_000),
    "capital_loss": (0, 5_000),
    "hours_per_week": (0, 100),
}
RUNS = 6
CLASSES = {
    "marital_status": STATUS,
    "sex": ["Female", "Male"],
    "income": ["<=50K", ">50K"],
}


@pytest.fixture(scope="module")
def people():
    return Table.read(PATH, bounds=BOUNDS, classes=CLASSES)


@pytest.fixture(scope="module")
def columns():
    return {name: c.to_pylist() for name, c in zip(*_columns(), strict=True)}


def _columns():
    table = pyarrow.csv.read_csv(PATH)
    return table.column_names, table.columns


@pytest.mark.parametrize(
    ("mechanism", "delta"),
    [
        ("functional", 0.0),
        ("objective_knorm", 0.0),
        ("objective_laplace", 0.0),
        ("adassp", 1e-6),
        ("objective_gaussian", 1e-6),
    ],
)
def test_within_two_points_of_the_fit_that_is_not_private(people, columns, mechanism, delta):
    """At epsilon = 1 per row, and no run is below the majority class."""
    asked = logistic("income")
    income = np.array(columns["income"])
    rows, scores = None, []
    for _ in range(RUNS):
        model = Model.of(
            tulle.release(people, asked, unit="row", epsilon=1.0, delta=delta, mechanism=mechanism)
        )
        rows = model.design(columns) if rows is None else rows
        scores.append(np.mean(model.predict(rows) == income))
    truth = asked.truth(people)
    plain = np.mean(np.where(rows @ truth[1:] + truth[0] > 0, ">50K", "<=50K") == income)
    assert plain > 0.84
    assert np.mean(scores) > plain - 0.02
    assert min(scores) > np.mean(income == "<=50K")
