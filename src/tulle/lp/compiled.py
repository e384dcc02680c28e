"""How the solver's kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """Compile a kernel on first use, without the interpreter lock, and keep it on disk.

    No ``fastmath``: the certificates rest on IEEE rounding of each single operation.
    """
    return cast(_Function, numba.njit(nogil=True, cache=True, error_model="numpy")(function))
