"""The sealed table: what it takes, what it refuses, what is public."""

import numpy as np
import pytest

import tulle
from tulle.core.errors import InputError, QueryError, SealedError, UnitError
from tulle.models import Table, linear, logistic

COLUMNS = {"age": [20.0, 200.0], "town": ["A", "C"], "ill": ["no", "yes"]}
DECLARED = {
    "bounds": {"age": (18, 90)},
    "classes": {"town": ["A", "B", "C"], "ill": ["no", "yes"]},
}


def test_classes_are_spread_out():
    people = Table(COLUMNS, **DECLARED)
    assert people.names == ("age", "town=B", "town=C", "ill")
    assert people.column("town=C").tolist() == [0.0, 1.0]
    asked = logistic("ill", ["town"])
    r = tulle.release(people, asked, unit="row", epsilon=1.0)
    assert r.parameters["model"]["features"] == ["town=B", "town=C"]


def test_the_number_of_rows_is_public_per_row_only():
    people = Table(COLUMNS, **DECLARED, about=100)
    assert people.facts("row")["rows"] == 2
    assert people.facts("participant")["rows"] == 100
    assert Table(COLUMNS, **DECLARED).facts("participant")["rows"] is None


def test_it_is_sealed():
    people = Table(COLUMNS, **DECLARED)
    assert repr(people) == "<Table: sealed>"
    with pytest.raises(SealedError):
        people.__reduce_ex__(4)
    with pytest.raises(UnitError):
        people.facts("edge")


def test_neighbours():
    people = Table({"a": [0.0, 1.0, 0.5]}, bounds={"a": (0, 1)})
    assert len(list(people.neighbours("participant"))) == 3
    assert len(list(people.neighbours("row"))) == 9


@pytest.mark.parametrize(
    ("columns", "declared", "words"),
    [
        ({"age": [1, float("nan")]}, {"bounds": {"age": (0, 9)}}, "missing or infinite"),
        ({"age": [1, float("inf")]}, {"bounds": {"age": (0, 9)}}, "missing or infinite"),
        ({"age": ["old"]}, {"bounds": {"age": (0, 9)}}, "must hold numbers"),
        ({"age": np.array([[1], [2]])}, {"bounds": {"age": (0, 9)}}, "one value for each row"),
        ({"age": [[1], [2]]}, {"bounds": {"age": (0, 9)}}, "must hold numbers"),
        ({"age": [1]}, {"bounds": {"age": (9, 0)}}, "low below high"),
        ({"age": [1]}, {"bounds": {"age": 9}}, "two numbers"),
        ({"age": [1]}, {"bounds": {"pay": (0, 9)}}, "no column 'pay'"),
        ({"a": [1], "b": [1, 2]}, {"bounds": {"a": (0, 1), "b": (0, 1)}}, "same number of rows"),
        ({"c": ["x"]}, {"bounds": {}, "classes": {"c": ["y", "z"]}}, "not among its declared"),
        ({"c": ["x"]}, {"bounds": {}, "classes": {"c": ["x"]}}, "two different values"),
        ({"c": ["x"]}, {"bounds": {}, "classes": {"c": "xy"}}, "list of at least two"),
        ({"c": [1]}, {"bounds": {"c": (0, 1)}, "classes": {"c": [0, 1]}}, "both in bounds"),
        ({}, {"bounds": {}}, "same number of rows"),
    ],
)
def test_bad_tables_are_refused(columns, declared, words):
    with pytest.raises(InputError, match=words):
        Table(columns, **declared)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: linear("y", []), "at least one feature"),
        (lambda: linear("y", ["y"]), "both the target"),
        (lambda: linear("y", ["a", "a"]), "twice"),
        (lambda: linear("y", "a"), "list of names"),
        (lambda: linear("y", ["a"], sensitive=["b"]), "not among the features"),
        (lambda: linear("y", sensitive=["y"]), "cannot be a sensitive"),
        (lambda: linear("y", gamma=0), "above zero"),
        (lambda: linear("y", gamma=2), "between"),
        (lambda: linear("y", norm=1e-9), "between"),
        (lambda: linear("y", bits=17), "at most 16"),
    ],
)
def test_bad_questions_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (linear("pay"), "no column 'pay'"),
        (linear("age", ["pay"]), "no feature 'pay'"),
        (logistic("age"), "two declared classes"),
        (logistic("ill", ["age"], sensitive=[]), None),
        (linear("age", sensitive=["town"], gamma=0.5), None),
        (linear("age", ["ill"], sensitive=["ill"]), None),
    ],
)
def test_questions_are_checked_against_public_facts(asked, words):
    people = Table(COLUMNS, **DECLARED)
    if words is None:
        assert len(tulle.release(people, asked, unit="row", epsilon=1.0).value) >= 2
        return
    with pytest.raises(QueryError, match=words):
        tulle.release(people, asked, unit="row", epsilon=1.0)


@pytest.mark.parametrize("unit", ["row", "participant"])
@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize(
    ("mechanism", "asked"),
    [
        ("functional", linear("b")),
        ("functional", logistic("y")),
        ("adassp", linear("b")),
        ("adassp", logistic("y")),
        ("objective_knorm", logistic("y")),
        ("objective_laplace", logistic("y")),
        ("objective_gaussian", logistic("y")),
    ],
)
def test_nobody_constant_labels_and_far_values_are_fitted(mechanism, asked, rows, unit):
    """What the data holds decides no failure: all of these give a model."""
    for far in (1e300, -1e300, 0.0):
        people = Table(
            {"a": [far] * rows, "b": [far] * rows, "y": [1] * rows},
            bounds={"a": (-1, 1), "b": (0, 1e9)},
            classes={"y": [0, 1]},
        )
        r = tulle.release(people, asked, unit=unit, epsilon=1.0, delta=1e-6, mechanism=mechanism)
        assert np.isfinite(r.value).all()


def test_files_and_frames_are_read(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(COLUMNS)
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame.to_parquet(tmp_path / "people.parquet")
    wanted = Table(COLUMNS, **DECLARED)
    for found in (
        Table(frame, **DECLARED),
        Table.read(tmp_path / "people.csv", **DECLARED),
        Table.read(tmp_path / "people.parquet", **DECLARED),
    ):
        assert found.names == wanted.names
        for name in wanted.names:
            assert found.column(name).tolist() == wanted.column(name).tolist()
    with pytest.raises(InputError, match="cannot be read"):
        Table.read(tmp_path / "nothing.csv", **DECLARED)


def release_at(size, mechanism):
    """Release a model of columns as wide as this and as narrow as its inverse."""
    columns = {"x": [size, -size, 0.0, size] * 5, "y": [1 / size, 0.0, 0.0, 1 / size] * 5}
    table = Table(columns, bounds={"x": (-size, size), "y": (0.0, 1 / size)})
    for target, feature in (("x", "y"), ("y", "x")):
        for unit in table.units:
            tulle.release(
                table, linear(target, [feature]), unit=unit, epsilon=1e-9, mechanism=mechanism,
                delta=1e-6,
            )  # fmt: skip


@pytest.mark.parametrize("mechanism", ["adassp", "functional"])
def test_no_bounds_let_a_number_overflow(mechanism, monkeypatch):
    """Warnings are errors here: one that depends on the records would show."""
    release_at(1e50, mechanism)
    for size in (1.1e50, 1e300):
        with pytest.raises(InputError, match="another unit"):
            release_at(size, mechanism)
    monkeypatch.setattr("tulle.models.data.WIDEST", 1e308)
    with pytest.raises(RuntimeWarning, match="overflow"):
        release_at(1e300, mechanism)
