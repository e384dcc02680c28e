"""Bounds on what one person moves, against all rows of a fine grid and all pairs of them."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tulle.models.adassp import squared_moves
from tulle.models.data import Table
from tulle.models.design import Frame, whole_rows
from tulle.models.moments import Places
from tulle.models.sensitivity import (
    attribute_sensitivity,
    functional_sensitivity,
    monomials,
    pair_weights,
    target_weights,
)


def frame(count, hidden=0, gamma="1", intercept=True, norm=None, logistic=False, unit="row"):
    return Frame(
        tuple(f"x{i}" for i in range(count)),
        (-1.0,) * count,
        (1.0,) * count,
        "y",
        -1.0,
        1.0,
        tuple(i < hidden for i in range(count)),
        Fraction(gamma),
        intercept,
        norm,
        logistic,
        unit,
        4,
    )


def coefficients(shape, steps, squares=False):
    """Return the weighted coefficients of every row on a grid, and the rows."""
    bits = {2: 0, 4: 1, 8: 2}[steps]
    grid = np.linspace(-1, 1, steps + 1)
    targets = np.array([-1.0, 1.0]) if shape.logistic else grid
    rows = np.array(list(product(*[grid] * shape.count, targets)))
    table = Table(
        {**{name: rows[:, i] for i, name in enumerate(shape.features)}, "y": rows[:, -1]},
        bounds=dict.fromkeys((*shape.features, "y"), (-1, 1)),
    )
    features, target = whole_rows(shape, table, bits)
    features, target = features / 2**bits, target / 2**bits
    if squares:
        pairs = [[1 if i == j else 2 for j in range(shape.size)] for i in range(shape.size)]
        weights = np.sqrt(np.array(Places.of(shape).pack(pairs, [1] * shape.size), dtype=float))
    else:
        packed = Places.of(shape).pack(pair_weights(shape), target_weights(shape))
        weights = np.array([float(w) for w in packed])
    columns = [features[:, i] * features[:, j] for i, j in Places.of(shape).pairs]
    columns += [features[:, i] * target for i in range(shape.size)]
    return np.column_stack(columns) * weights, rows


def worst(vectors, unit, power=1):
    if unit == "participant":
        return float((np.abs(vectors) ** power).sum(axis=1).max())
    return max(float((np.abs(vectors - one) ** power).sum(axis=1).max()) for one in vectors)


BOX = [
    (count, hidden, gamma, intercept, logistic, unit)
    for count in (1, 2, 3)
    for hidden in range(count + 1)
    for gamma in ("1", "0.3")
    for intercept in (True, False)
    for logistic in (True, False)
    for unit in ("row", "participant")
]


@pytest.mark.parametrize("case", BOX, ids=str)
def test_the_bound_in_the_box_is_reached(case):
    count, hidden, gamma, intercept, logistic, unit = case
    shape = frame(count, hidden, gamma, intercept, None, logistic, unit)
    found = worst(coefficients(shape, 2)[0], unit)
    assert found == pytest.approx(float(functional_sensitivity(shape)), rel=1e-12)


@pytest.mark.parametrize("unit", ["row", "participant"])
@pytest.mark.parametrize("gamma", ["1", "0.3"])
@pytest.mark.parametrize("norm", [None, 0.5, 1.0, 1.2])
def test_no_row_of_a_finer_grid_moves_more(norm, gamma, unit):
    shape = frame(2, 1, gamma, True, norm, False, unit)
    found = worst(coefficients(shape, 8)[0], unit)
    assert found <= float(functional_sensitivity(shape)) * (1 + 1e-12)


@pytest.mark.parametrize("unit", ["row", "participant"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("norm", [None, 0.5, 1.0])
def test_squared_lengths(norm, intercept, unit):
    shape = frame(2, 0, "1", intercept, norm, False, unit)
    vectors, _ = coefficients(shape, 8, squares=True)
    pairs = len(Places.of(shape).pairs)
    matrix, vector = (float(moved) for moved in squared_moves(shape))
    assert worst(vectors[:, :pairs], unit, 2) <= matrix * (1 + 1e-12)
    assert worst(vectors[:, pairs:], unit, 2) <= vector * (1 + 1e-12)
    if norm is None and not intercept:
        assert worst(vectors[:, :pairs], unit, 2) == pytest.approx(matrix)


@pytest.mark.parametrize("hidden", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("logistic", [True, False])
def test_a_change_of_sensitive_features_alone(hidden, intercept, logistic):
    """Neighbours of this relation differ in one person's sensitive features and nothing else."""
    shape = frame(3, hidden, "0.3", intercept, None, logistic)
    vectors, rows = coefficients(shape, 2)
    groups = {}
    for place, row in enumerate(rows):
        groups.setdefault(tuple(row[hidden:]), []).append(place)
    found = max(worst(vectors[places], "row") for places in groups.values())
    assert found == pytest.approx(float(attribute_sensitivity(shape)), rel=1e-12)
    assert found <= float(functional_sensitivity(shape))


def test_monomials_are_counted_in_full():
    assert monomials(frame(13, 1)) == (195, 27)  # printed: 15
    shape = frame(13, 1, "1", False, None, False, "participant")
    assert functional_sensitivity(shape) == 195
    assert functional_sensitivity(frame(13, 0, "1", False)) == 14**2  # printed: 390


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), min_size=1, max_size=6),
    st.sampled_from([None, 0.3, 1.0]),
    st.integers(0, 16),
)
def test_rows_are_within_their_bounds_whatever_the_values(rows, norm, bits):
    values = np.array(rows)
    table = Table(
        {"x0": values[:, 0], "x1": values[:, 1], "y": values[:, 2]},
        bounds={"x0": (-3, 7), "x1": (1e-3, 2e-3), "y": (0, 1)},
    )
    shape = Frame(
        ("x0", "x1"),
        (-3, 1e-3),
        (7, 2e-3),
        "y",
        0.0,
        1.0,
        (False, False),
        Fraction(1),
        True,
        norm,
        False,
        "row",
        len(rows),
    )
    features, target = whole_rows(shape, table, bits)
    grid = 2**bits
    assert (features == np.rint(features)).all()
    assert (np.abs(features) <= grid).all()
    assert (np.abs(target) <= grid).all()
    if norm is not None:
        for row in features[:, 1:].astype(int).tolist():
            assert sum(entry**2 for entry in row) <= Fraction(norm) ** 2 * grid**2
