"""The sealed table of contributions: reading, refusing, keeping quiet."""

import copy
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import tulle
from tulle.core.errors import InputError, SealedError, UnitError

RECORDS = {
    "who": ["ann", "ann", "bob", "ann"],
    "from": ["home", "work", "home", "home"],
    "to": ["work", "home", "work", "work"],
    "times": [1.0, 2.0, 4.0, 0.5],
}
NAMES = {"individual": "who", "row": "from", "column": "to", "weight": "times"}
GRID = {"rows": ["home", "work"], "columns": ["home", "work", "sea"]}
TOTALS = [[0.0, 5.5, 0.0], [2.0, 0.0, 0.0]]


def test_every_table_is_read_alike(tmp_path):
    frame = pd.DataFrame(RECORDS)
    table = pa.table(RECORDS)
    frame.to_csv(tmp_path / "trips.csv", index=False)
    frame.to_csv(tmp_path / "trips.csv.gz", index=False)
    parquet.write_table(table, tmp_path / "trips.parquet")
    made = [tulle.Contributions.from_table(t, **NAMES, **GRID) for t in (frame, table, RECORDS)]
    made += [
        tulle.Contributions.read(tmp_path / name, **NAMES, **GRID)
        for name in ("trips.csv", "trips.csv.gz", "trips.parquet")
    ]
    made.append(tulle.Contributions(*RECORDS.values(), **GRID))
    for trips in made:
        assert trips.totals().tolist() == TOTALS
        assert trips.individuals() == 2
        assert [len(part) for part in trips.entries()] == [3, 3, 3]
        assert trips.row_names == GRID["rows"]


def test_records_outside_the_grid_are_refused_or_dropped():
    grid = {"rows": ["home"], "columns": ["work"]}
    with pytest.raises(InputError, match="row of record 1"):
        tulle.Contributions(*RECORDS.values(), **grid)
    dropped = tulle.Contributions(*RECORDS.values(), **grid, outside="drop")
    assert dropped.totals().tolist() == [[5.5]]
    numbered = tulle.Contributions([1, 1], [0, 7], [0, -1], rows=2, columns=2, outside="drop")
    assert numbered.totals().sum() == 1


def test_it_says_nothing():
    trips = tulle.Contributions(*RECORDS.values(), **GRID)
    assert repr(trips) == str(trips) == "<Contributions: sealed>"
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SealedError):
            leave(trips)
    assert trips.facts("participant") == {"rows": 2, "columns": 3, "support": None}
    with pytest.raises(UnitError):
        trips.facts("edge")


def test_facts_are_equal_on_neighbours_which_lack_one_individual():
    support = [[0, 1, 1], [1, 0, 0]]
    trips = tulle.Contributions(*RECORDS.values(), **GRID, support=support)
    found = list(trips.neighbours("participant"))
    assert [n.totals().sum() for n in found] == [4.0, 3.5]
    assert all(n.facts("participant") == trips.facts("participant") for n in found)
    empty = next(found[0].neighbours("participant"))
    assert empty.individuals() == 0
    assert not empty.totals().any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": [1, np.nan, 1]}, "weight of record 1"),
        ({"weight": [1, np.inf, 1]}, "not finite"),
        ({"weight": [1, 2]}, "equally long"),
        ({"weight": ["a", "b", "c"]}, "not a number"),
        ({"individual": [1, None, 2]}, "individual of record 1 is missing"),
        ({"row": ["a", "b", "c"]}, "not in"),
        ({"rows": 0}, "at least 1"),
        ({"rows": []}, "at least one"),
        ({"rows": ["a", "a"]}, "twice"),
        ({"rows": "home"}, "list of names"),
        ({"support": [[1, 1]]}, "shape"),
        ({"support": [[1, 2], [0, 0]]}, "0 and 1"),
        ({"support": [[0, 0], [0, 0]]}, "at least one"),
        ({"outside": "ignore"}, "'refuse' or 'drop'"),
    ],
)
def test_bad_input_is_refused_in_words(change, message):
    good = {"individual": [1, 2, 2], "row": [0, 1, 1], "column": [0, 0, 1], "rows": 2, "columns": 2}
    tulle.Contributions(**good)
    with pytest.raises(InputError, match=message):
        tulle.Contributions(**(good | change))


def test_files_and_columns_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        tulle.Contributions.read(tmp_path / "none.csv", **NAMES, **GRID)
    with pytest.raises(InputError, match="no column 'when'"):
        tulle.Contributions.from_table(RECORDS, **(NAMES | {"weight": "when"}), **GRID)


MATRIX = np.array([[0.0, 3.0, 1.0], [2.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("protect", "lost"),
    [
        ("edge", [[(0, 1)], [(0, 2)], [(1, 0)]]),
        ("row", [[(0, 1), (0, 2)], [(1, 0)]]),
        ("column", [[(0, 1)], [(0, 2)], [(1, 0)]]),
    ],
)
def test_edges_rows_and_columns_are_individuals_too(protect, lost):
    """Section II-B of the paper: the neighbours of a matrix lack one edge, row or column."""
    from scipy.sparse import csr_array

    for given in (MATRIX, MATRIX.tolist(), csr_array(MATRIX)):
        made = tulle.Contributions.from_matrix(given, protect=protect)
        assert made.totals().tolist() == MATRIX.tolist()
        found = sorted(n.totals().tolist() for n in made.neighbours("participant"))
        expected = []
        for cells in lost:
            left = MATRIX.copy()
            left[tuple(zip(*cells, strict=True))] = 0
            expected.append(left.tolist())
        assert found == sorted(expected)


def test_one_edge_pays_for_its_own_bound_and_a_row_for_its_total():
    edge = tulle.Contributions.from_matrix(MATRIX, protect="edge")
    r = tulle.release(edge, tulle.weights(bound=2, total=2), unit="participant", epsilon=1.0)
    assert r.parameters["total"] * 2.0 ** r.parameters["exponent"] == 2
    row = tulle.Contributions.from_matrix(MATRIX, protect="row")
    wide = tulle.release(row, tulle.weights(bound=2), unit="participant", epsilon=1.0)
    assert wide.parameters["total"] * 2.0 ** wide.parameters["exponent"] == 2 * MATRIX.size


@pytest.mark.parametrize(
    ("matrix", "protect", "message"),
    [
        ([[1, np.nan]], "row", "finite"),
        ([1, 2], "row", "matrix of numbers"),
        ([], "row", "matrix of numbers"),
        ([["a"]], "row", "matrix of numbers"),
        ([[1]], "node", "unit='node'"),
    ],
)
def test_bad_matrices_are_refused_in_words(matrix, protect, message):
    with pytest.raises(InputError, match=message):
        tulle.Contributions.from_matrix(matrix, protect=protect)
