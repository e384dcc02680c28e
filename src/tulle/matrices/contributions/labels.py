"""Which block each cell is in, as an array and as a short text for plans and releases."""

from __future__ import annotations

import base64
import hashlib
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Wholes
from tulle.core.errors import InputError, raise_alone


def pack_labels(labels: Wholes) -> str:
    """Write labels as text; :func:`unpack_labels` reads them back."""
    small = np.ascontiguousarray(labels, dtype="<i2")
    return base64.b64encode(zlib.compress(small.tobytes(), 6)).decode("ascii")


def unpack_labels(packed: str, shape: tuple[int, int]) -> Wholes:
    """Read labels that :func:`pack_labels` wrote.

    Example:
        >>> unpack_labels(pack_labels(np.array([[0, -1]])), (1, 2)).tolist()
        [[0, -1]]
    """
    flat = np.frombuffer(zlib.decompress(base64.b64decode(packed)), "<i2")
    return flat.reshape(shape).astype(np.int64)


class PublicArray:
    """A public array that is part of a question: it never changes, and equal ones are equal.

    Example:
        >>> PublicArray([[1.0, 2.0]]) == PublicArray(np.array([[1, 2]]))
        True
    """

    def __init__(self, values: Any) -> None:
        self.values: npt.NDArray[np.float64] = np.array(values, dtype=np.float64)
        self.values.flags.writeable = False
        written = repr(self.values.shape).encode() + self.values.tobytes()
        self.digest = hashlib.sha256(written).hexdigest()

    @classmethod
    def read(cls, values: Any, refusal: str) -> PublicArray:
        """Return what the user gave as an array.

        Raises:
            InputError: with this text, when it is no array of numbers.
        """
        try:
            return cls(values)
        except (TypeError, ValueError, OverflowError):
            raise_alone(InputError(refusal))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicArray) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __str__(self) -> str:
        if self.values.size <= 8:
            return str(self.values.tolist())
        return f"{'x'.join(map(str, self.values.shape))}:{self.digest[:12]}"

    __repr__ = __str__


def read_labels(labels: Any) -> Wholes:
    """Check a matrix of block numbers: whole, from -1 (outside) on, no number left out.

    Raises:
        InputError: when they are not.
    """
    given = PublicArray.read(labels, "labels must be a matrix of whole numbers.").values
    if given.ndim != 2 or not given.size:
        raise InputError("labels must be a matrix: one block number for each cell of the grid.")
    if not np.isfinite(given).all() or bool((given != np.rint(given)).any()):
        raise InputError("labels must be whole numbers.")
    found = given.astype(np.int64)
    used = np.unique(found[found >= 0])
    if found.min() < -1 or not len(used) or used[-1] != len(used) - 1 or len(used) > 2**15:
        raise InputError(
            "labels must number the blocks 0, 1, 2, ... without a gap; -1 marks cells that nobody "
            "can contribute to."
        )
    return found
