"""How kernels are compiled. Imported by kernels alone: numba is slow to import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event

from tulle.core.progress import report

_Function = TypeVar("_Function", bound=Callable[..., Any])

COMPILING = "compiling kernels, once after an install"
"""What a watcher is told meanwhile. Kernels depend on the question alone, never on records."""


def compiled(function: _Function) -> _Function:
    """Compile a kernel on first use, without the interpreter lock, and keep it on disk.

    No ``fastmath``: certificates rest on IEEE rounding of each single operation.
    """
    return cast(_Function, numba.njit(nogil=True, cache=True, error_model="numpy")(function))


class _Teller(event.Listener):  # type: ignore[misc]
    """Tells whoever watches that something is being compiled, which takes seconds in all."""

    def on_start(self, event: Any) -> None:
        report(COMPILING, float("-inf"), float("inf"), 0.0)

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Teller())
