"""How kernels are compiled and spread over threads. Imported by kernels alone: numba is slow."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

import numba
from numba.core import event, types
from numba.extending import intrinsic, typeof_impl

from tulle.core.progress import report
from tulle.core.validate import whole_number

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Result = TypeVar("_Result")

_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

COMPILING = "compiling kernels, once after an install"
"""What a watcher is told meanwhile. Kernels depend on the question alone, never on records."""


def compiled(function: _Function) -> _Function:
    """Compile a kernel on first use, without the interpreter lock, and keep it on disk.

    No ``fastmath``: certificates rest on IEEE rounding of each single operation.
    """
    return cast(_Function, numba.njit(cache=True, **_OPTIONS)(function))


def inner(function: _Function) -> _Function:
    """Mark a function that kernels call: it is compiled with them, into their code.

    It needs no entry of its own for the interpreter, which takes longer to compile than a short
    function; called from Python it is the plain function.
    """
    return cast(_Function, _Inner(function))


class _Inner:
    """A function that is compiled once, for all kernels that call it.

    ``register_jitable`` would compile it once for each set of options of its callers. The
    dispatcher itself has no entry for the interpreter: nobody else may hold it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.dispatcher = numba.njit(no_cpython_wrapper=True, **_OPTIONS)(function)

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


@typeof_impl.register(_Inner)  # type: ignore[untyped-decorator]
def _type_of_inner(value: _Inner, context: Any) -> Any:
    return types.Dispatcher(value.dispatcher)


class _Teller(event.Listener):  # type: ignore[misc]
    """Tells whoever watches that something is being compiled, which takes seconds in all.

    Meanwhile no garbage is collected: the compiler makes a great many objects that last, and going
    through them over and over would take a twentieth of the time. One thread compiles at a time.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.collects = False

    def on_start(self, event: Any) -> None:
        report(COMPILING, float("-inf"), float("inf"), 0.0)
        if self.depth == 0:
            self.collects = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0 and self.collects:
            gc.enable()


event.register("numba:compile", _Teller())


# Kernels release the lock and run in ordinary threads. numba's own parallel loops are not used:
# their portable threading layer aborts the process when two threads start a kernel at once.
_CHUNKS_PER_THREAD = 4
_SMALL_WORK = 200_000


def thread_count() -> int:
    """Return how many threads a kernel may use; the variable TULLE_THREADS overrides it."""
    if asked := whole_number(os.environ.get("TULLE_THREADS", "")):
        return asked
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def in_chunks(
    work: int, kernel: Callable[[int, int], _Result], *, chunks: int | None = None
) -> list[_Result]:
    """Call ``kernel(chunk, chunks)`` for every chunk, in threads if the work is worth it.

    A chunk takes every ``chunks``-th node, which balances the load because nodes come in order of
    degree. ``work`` is a rough count of elementary steps. ``chunks`` repeats an earlier split.
    """
    threads = thread_count()
    if chunks is None:
        chunks = 1 if threads == 1 or work < _SMALL_WORK else threads * _CHUNKS_PER_THREAD
    if chunks == 1:
        return [kernel(0, 1)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda chunk: kernel(chunk, chunks), range(chunks)))


@intrinsic  # type: ignore[untyped-decorator]
def population_count(typing_context: Any, word: Any) -> Any:
    """Return the number of bits set in a uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """Return the position of the lowest bit set in a uint64 that is not zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        never_zero = context.get_constant(types.boolean, True)
        return builder.cttz(arguments[0], never_zero)

    return types.uint64(types.uint64), generate
