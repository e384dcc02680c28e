"""The sealed matrix of zeros and ones."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import cells, validate
from tulle.core.arrays import Bytes
from tulle.core.dataset import Dataset, Facts
from tulle.core.errors import InputError
from tulle.core.matrix_market import read_matrix_market
from tulle.core.public import public
from tulle.core.reading import reading
from tulle.core.unit import Unit
from tulle.core.validate import Number, counted

LARGEST_ROW_NEIGHBOURHOOD = 12
"""All values of a row are listed for rows of at most so many cells."""


@public("Hold data")
class BinaryMatrix(Dataset):
    """A sealed matrix of zeros and ones: one row per person or thing, one column per question.

    ``array`` is anything with two dimensions that holds only 0 and 1 (or False and True): a NumPy
    array, nested lists, a SciPy sparse matrix, a pandas DataFrame, a grey image. Other numbers
    are read with ``threshold``: a cell is 1 where the value is at least that.

    Under ``cell`` any one cell may change, under ``row`` all cells of any one row. The numbers of
    rows and columns are public under both. Inside, eight cells take one byte.

    Raises:
        InputError: when it is empty, has not two dimensions, or holds anything but 0 and 1.

    Example:
        >>> votes = BinaryMatrix([[1, 0, 1], [0, 0, 1]])
        >>> votes
        <BinaryMatrix: sealed>
        >>> votes.shape
        (2, 3)
    """

    kind: ClassVar[str] = "matrix"
    units: ClassVar[tuple[str, ...]] = ("row", "cell")

    def __init__(self, array: Any, *, threshold: Number | None = None) -> None:
        bits = _read(array, threshold)
        self._packed = np.packbits(bits, axis=1)
        self._packed.flags.writeable = False
        self._shape = int(bits.shape[0]), int(bits.shape[1])

    @classmethod
    def from_packed(cls, packed: Any, *, columns: int) -> BinaryMatrix:
        """Build from bytes that hold eight cells each, most significant bit first, row by row.

        This is what ``numpy.packbits(array, axis=1)`` gives.

        Example:
            >>> BinaryMatrix.from_packed([[160]], columns=3).to_numpy().tolist()
            [[1, 0, 1]]
        """
        columns = validate.whole(columns=columns, at_least=1)
        held = np.asarray(packed)
        if held.dtype != np.uint8 and not _are_bytes(held):
            raise InputError("packed must hold bytes: whole numbers from 0 to 255.")
        if held.ndim != 2 or held.shape[1] != -(-columns // 8) or not len(held):
            raise InputError(
                f"packed has shape {held.shape}; for columns={columns} it must have one row of "
                f"{counted(-(-columns // 8), 'byte')} for each row of the matrix."
            )
        matrix = cls.__new__(cls)
        spare = np.uint8(255 << (-columns % 8) & 255)
        matrix._packed = held.astype(np.uint8)  # a copy, so that the caller's stays theirs
        matrix._packed[:, -1] &= spare
        matrix._packed.flags.writeable = False
        matrix._shape = len(held), columns
        return matrix

    @classmethod
    def read(
        cls, path: str | Path, *, threshold: Number | None = None, header: bool = True
    ) -> BinaryMatrix:
        """Read a matrix from a CSV (also .gz), Parquet, NumPy, SciPy or Matrix Market file.

        A CSV file has commas between cells and, unless ``header`` is False, names in its first
        line. Whether it has is declared and never guessed: a first row with something odd in it
        would pass for names.

        Raises:
            InputError: when the file cannot be read, and as for a matrix.
        """
        return cls(read_array(path, header), threshold=threshold)

    # --- custodian side ---------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns. Public under every unit of a matrix."""
        return self._shape

    def to_numpy(self) -> Bytes:
        """Return the cells as an array of zeros and ones. Custodian side."""
        return np.unpackbits(self._packed, axis=1, count=self._shape[1])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BinaryMatrix):
            return NotImplemented
        return self._shape == other._shape and bool(np.array_equal(self._packed, other._packed))

    __hash__ = None  # type: ignore[assignment]

    # --- what privacy needs -----------------------------------------------------------------

    def facts(self, unit: str | Unit) -> Facts:
        """Return what is public: the numbers of rows and columns."""
        self.check_unit(unit)
        return {"rows": self._shape[0], "columns": self._shape[1]}

    def neighbours(self, unit: str | Unit) -> Iterator[BinaryMatrix]:
        """Yield all neighbours of a small matrix.

        ``cell``: one cell is changed. ``row``: one row has any other value.

        Raises:
            InputError: under ``row`` for more than 12 columns, where there are too many.
        """
        if self.check_unit(unit).name == "cell":
            return self._cell_neighbours()
        if self._shape[1] > LARGEST_ROW_NEIGHBOURHOOD:
            raise InputError(
                "All row neighbours are listed for matrices of at most "
                f"{LARGEST_ROW_NEIGHBOURHOOD} columns. Use a smaller matrix."
            )
        return self._row_neighbours()

    def _cell_neighbours(self) -> Iterator[BinaryMatrix]:
        bits = self.to_numpy()
        for place in np.ndindex(*self._shape):
            changed = bits.copy()
            changed[place] ^= 1
            yield BinaryMatrix(changed)

    def _row_neighbours(self) -> Iterator[BinaryMatrix]:
        bits = self.to_numpy()
        for row in range(self._shape[0]):
            for flips in product((0, 1), repeat=self._shape[1]):
                if any(flips):
                    changed = bits.copy()
                    changed[row] ^= np.array(flips, dtype=np.uint8)
                    yield BinaryMatrix(changed)


def all_matrices(rows: int, columns: int) -> Iterator[BinaryMatrix]:
    """Yield every matrix of zeros and ones of this shape. Holds no private data.

    Raises:
        InputError: for more than 16 cells, where there are too many.

    Example:
        >>> sum(1 for _ in all_matrices(2, 3))
        64
    """
    cells = validate.whole(rows=rows, at_least=1) * validate.whole(columns=columns, at_least=1)
    if cells > 16:
        raise InputError(f"All matrices are listed for at most 16 cells; got {cells}.")
    return (
        BinaryMatrix(np.array(bits, dtype=np.uint8).reshape(rows, columns))
        for bits in product((0, 1), repeat=cells)
    )


def _read(array: Any, threshold: Number | None) -> Bytes:
    """Return the cells as an array of zeros and ones, or say what is wrong with the input."""
    values = _as_array(array)
    if values.ndim != 2:
        advice = " Convert a colour image to grey first." if values.ndim == 3 else ""
        raise InputError(f"A matrix has two dimensions; got shape {values.shape}.{advice}")
    if 0 in values.shape:
        raise InputError(f"The matrix is empty: its shape is {values.shape}.")
    if values.dtype.kind not in "biuf":
        raise InputError("A matrix holds numbers; got an array of something else.")
    if values.dtype.kind == "f" and bool(np.isnan(values).any()):
        raise InputError(
            f"{_where(np.isnan(values))} is missing (NaN) or no number. A matrix holds numbers, a "
            "0 or a 1 in every cell: fill the missing ones first."
        )
    if threshold is not None:
        limit = float(validate.number(threshold=threshold))
        # As floats, whatever the type: with one broken number in it a whole array is floats, and
        # the others must be compared as they are without it.
        return (cells.doubles(values) >= limit).astype(np.uint8)
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    wrong = (values != 0) & (values != 1)
    if bool(wrong.any()):
        raise InputError(
            f"{_where(wrong)} is neither 0 nor 1. Give threshold= to say from which value on a "
            "cell counts as 1."
        )
    return values.astype(np.uint8)


def _as_array(array: Any) -> npt.NDArray[Any]:
    if isinstance(array, Dataset):
        raise InputError("A matrix is built from an array, not from a sealed dataset.")
    if isinstance(array, (str, bytes, dict)):
        raise InputError(f"A matrix is built from an array; got {type(array).__name__}.")
    if hasattr(array, "toarray"):  # a SciPy sparse matrix
        # Entries that stand there twice are added up: small integers would start anew at 256.
        wide = array.dtype.kind in "iu"
        return np.asarray((array.astype(np.int64) if wide else array).toarray())
    return cells.grid(array, "A matrix holds numbers; at least one cell is text or another thing.")


def _are_bytes(held: npt.NDArray[Any]) -> bool:
    if held.dtype.kind not in "iu" or not held.size:
        return False
    return bool(((held >= 0) & (held <= 255)).all())


def _where(wrong: npt.NDArray[Any]) -> str:
    row, column = np.argwhere(wrong)[0]
    return f"The cell in row {row}, column {column}"


def read_array(path: str | Path, header: bool) -> Any:
    """Return the numbers in a file, as an array or a sparse matrix.

    Raises:
        InputError: when it holds anything else.
    """
    name, file = str(path), Path(path).name
    with reading(file):
        if name.endswith(".npy"):
            return np.load(name, allow_pickle=False)
        if name.endswith(".npz"):
            from scipy.sparse import load_npz

            return load_npz(name)
        if name.endswith((".mtx", ".mtx.gz")):
            data = Path(path).read_bytes()
            return read_matrix_market(gzip.decompress(data) if name.endswith(".gz") else data, file)
    table = cells.read_table(path, header=header)
    return np.column_stack([cells.numbers(column, "of a matrix") for column in table.columns])
