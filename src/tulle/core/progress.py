"""How far a long computation is, told to whoever holds the data.

What is told here was computed from records and is not private: it is for the custodian's eyes, on
their own terminal. Nothing of it goes into a release, a log or a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from tulle.core.public import public


@dataclass(frozen=True)
class Progress:
    """A step of a computation and the bounds it has certified so far. Custodian side."""

    step: str
    """What is being worked out; a fixed text."""
    lower: float = field(repr=False)
    upper: float = field(repr=False)
    wanted: float = field(repr=False)
    """How close together the bounds shall come."""

    @property
    def gap(self) -> float:
        """How far apart the bounds are."""
        return self.upper - self.lower

    def __str__(self) -> str:
        if not self.gap < float("inf"):
            return self.step
        return f"{self.step}: certified to {self.gap:.3g}, wanted {self.wanted:.3g}"


Watcher = Callable[[Progress], None]

WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
"""Who is told; nobody, as a rule."""


@public("Plan, pay, release")
@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Let ``watcher`` be told how far computations in this block are.

    It is called often, so it must be quick, and it must not raise. What it is told depends on the
    records without any noise: show it to nobody who may not see the records.

    Example:
        >>> import tulle
        >>> told = []
        >>> square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> with tulle.watching(told.append):
        ...     r = tulle.release(square, tulle.triangles(), unit="node", epsilon=1.0)
        >>> "truncating" in {progress.step for progress in told}
        True
    """
    token = WATCHER.set(watcher)
    try:
        yield
    finally:
        WATCHER.reset(token)


def report(step: str, lower: float, upper: float, wanted: float) -> None:
    """Tell the watcher, if there is one."""
    watcher = WATCHER.get()
    if watcher is not None:
        watcher(Progress(step, lower, upper, wanted))
