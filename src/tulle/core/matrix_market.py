"""MatrixMarket files, checked line by line before a library parses them.

The parser of SciPy ends the whole process on some malformed lines, such as a last one without a
line end that has something behind its numbers: one record would show in how a program ends.
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

from tulle.core.errors import InputError, raise_alone

_NUMBER = rb"[+-]?(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
_BODY = re.compile(
    rb"(?:(?:%[^\n]*+|[ \t]*+(?:" + _NUMBER + rb"(?:[ \t]++" + _NUMBER + rb"){0,3}+)?+[ \t]*+)\n)*+"
)


def read_matrix_market(data: bytes, name: str) -> Any:
    """Return the matrix that a MatrixMarket file holds: sparse, or an array.

    Raises:
        InputError: when it holds none. The parser's own words may quote a cell.

    Example:
        >>> text = b"%%MatrixMarket matrix coordinate pattern symmetric\\n2 2 1\\n2 1"
        >>> read_matrix_market(text, "a.mtx").toarray().tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """
    import scipy.io

    whole = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") + b"\n"
    first, _, rest = whole.partition(b"\n")
    header = first.decode("ascii", "replace").lower().split()
    if len(header) != 5 or header[:2] != ["%%matrixmarket", "matrix"]:
        raise InputError(
            f"{name}, line 1: not a MatrixMarket header; it must read like "
            "'%%MatrixMarket matrix coordinate pattern symmetric'."
        )
    if header[3] == "complex" or header[4] == "hermitian":
        raise InputError(f"{name}, line 1: complex values are no adjacency matrix.")
    stopped = _BODY.match(rest)
    assert stopped is not None
    if stopped.end() < len(rest):
        line = rest.count(b"\n", 0, stopped.end()) + 2
        raise InputError(f"{name}, line {line}: not valid MatrixMarket.")
    try:
        return scipy.io.mmread(BytesIO(whole))
    except (ValueError, OverflowError, TypeError, MemoryError) as error:
        where = re.search(r"[Ll]ine (\d+)", str(error))
        place = f", line {where.group(1)}" if where else ""
        raise_alone(InputError(f"{name}{place}: not valid MatrixMarket."))
