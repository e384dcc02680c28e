"""Building, sealing and neighbours of binary matrices."""

import copy
import pickle

import numpy as np
import pandas
import pytest
import scipy.sparse
from PIL import Image

import tulle
from tulle.core.errors import InputError, SealedError, UnitError
from tulle.matrices.binary.data import all_matrices

CELLS = [[1, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize(
    "array",
    [
        CELLS,
        np.array(CELLS),
        np.array(CELLS, dtype=bool),
        np.array(CELLS, dtype=np.float32),
        np.array(CELLS, dtype=object),
        np.asfortranarray(CELLS),
        scipy.sparse.csr_array(np.array(CELLS)),
        scipy.sparse.coo_matrix(np.array(CELLS)),
        pandas.DataFrame(CELLS, columns=["a", "b", "c"]),
        pandas.DataFrame(np.array(CELLS, dtype=bool)),
        Image.fromarray(np.array(CELLS, dtype=np.uint8)),
    ],
    ids=lambda array: type(array).__name__,
)
def test_all_kinds_of_input(array):
    matrix = tulle.BinaryMatrix(array)
    assert matrix.to_numpy().tolist() == CELLS
    assert matrix.to_numpy().dtype == np.uint8
    assert matrix.shape == (2, 3)
    assert matrix == tulle.BinaryMatrix(CELLS)


def test_thresholds():
    image = Image.fromarray(np.array([[0, 127, 128], [255, 128, 3]], dtype=np.uint8))
    assert tulle.BinaryMatrix(image, threshold=128).to_numpy().tolist() == [[0, 0, 1], [1, 1, 0]]
    whole = tulle.BinaryMatrix([[0, 1, 2]], threshold=0.5)
    assert whole.to_numpy().tolist() == [[0, 1, 1]]
    real = tulle.BinaryMatrix([[0.4, 0.5, -3.0]], threshold="1/2")
    assert real.to_numpy().tolist() == [[0, 1, 0]]
    with pytest.raises(InputError, match="threshold"):
        tulle.BinaryMatrix([[1, 2]], threshold=float("nan"))


def test_packed_bits():
    cells = np.random.default_rng(1).integers(0, 2, (7, 21))
    packed = np.packbits(cells, axis=1)
    assert tulle.BinaryMatrix.from_packed(packed, columns=21) == tulle.BinaryMatrix(cells)
    dirty = packed.copy()
    dirty[:, -1] |= 7  # bits beyond the last column mean nothing
    assert tulle.BinaryMatrix.from_packed(dirty, columns=21) == tulle.BinaryMatrix(cells)
    for wrong, columns in ((packed, 30), (packed[0], 21), (packed[:0], 21), (packed + 0.5, 21)):
        with pytest.raises(InputError, match="packed"):
            tulle.BinaryMatrix.from_packed(wrong, columns=columns)
    with pytest.raises(InputError, match="bytes"):
        tulle.BinaryMatrix.from_packed([[300]], columns=3)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        ([[0, 2]], "row 0, column 1 is neither 0 nor 1"),
        ([[0, -1]], "neither"),
        ([[0.0, 0.5]], "neither"),
        ([[0.0, float("nan")]], "missing"),
        ([[0.0, float("inf")]], "neither"),
        ([0, 1], "two dimensions"),
        (np.zeros((2, 2, 3)), "grey"),
        (5, "two dimensions"),
        ([], "two dimensions"),
        (np.zeros((0, 3)), "empty"),
        (np.zeros((3, 0)), "empty"),
        ([[0, 1], [1]], "same length"),
        ([["a", "b"]], "numbers"),
        (np.array([[0, None]], dtype=object), "missing"),
        (np.array([[0, "x"]], dtype=object), "text"),
        (np.array([[0, 1j]]), "numbers"),
        ("0101", "array"),
        ({"a": [0]}, "array"),
        (pandas.DataFrame({"a": [0, None]}), "missing"),
    ],
)
def test_bad_input(array, words):
    with pytest.raises(InputError, match=words):
        tulle.BinaryMatrix(array)


def test_a_matrix_is_not_built_from_a_sealed_one():
    with pytest.raises(InputError, match="sealed"):
        tulle.BinaryMatrix(tulle.BinaryMatrix(CELLS))


def test_it_is_sealed():
    matrix = tulle.BinaryMatrix(CELLS)
    assert repr(matrix) == f"{matrix}" == str(matrix) == "<BinaryMatrix: sealed>"
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SealedError):
            leave(matrix)
    with pytest.raises(TypeError):
        hash(matrix)


def test_it_keeps_its_own_copy():
    cells = np.array(CELLS, dtype=np.uint8)
    matrix = tulle.BinaryMatrix(cells)
    cells[0, 0] = 0
    assert matrix.to_numpy().tolist() == CELLS
    taken = matrix.to_numpy()
    taken[:] = 0
    assert matrix.to_numpy().tolist() == CELLS


def test_units_and_facts():
    matrix = tulle.BinaryMatrix(CELLS)
    assert matrix.facts("row") == matrix.facts("cell") == {"rows": 2, "columns": 3}
    with pytest.raises(UnitError, match="row, cell"):
        matrix.facts("edge")


def test_neighbours_are_complete():
    matrix = tulle.BinaryMatrix(CELLS)
    cells = [n.to_numpy() for n in matrix.neighbours("cell")]
    assert len(cells) == 6
    assert all(np.sum(n != CELLS) == 1 for n in cells)
    rows = [n.to_numpy() for n in matrix.neighbours("row")]
    assert len({n.tobytes() for n in rows}) == 2 * 7
    assert all((n != CELLS).any(axis=1).sum() == 1 for n in rows)
    assert all(n.facts("row") == matrix.facts("row") for n in matrix.neighbours("row"))
    with pytest.raises(InputError, match="12"):
        tulle.BinaryMatrix(np.zeros((1, 13))).neighbours("row")


def test_all_matrices():
    assert len({m.to_numpy().tobytes() for m in all_matrices(2, 2)}) == 16
    with pytest.raises(InputError, match="16"):
        all_matrices(3, 6)
