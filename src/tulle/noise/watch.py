"""Watching a run: every draw that it makes must be under a charge, which prices it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tulle.core.dataset import Dataset
from tulle.core.events import (
    Composed,
    Disjoint,
    Event,
)
from tulle.core.source import Source
from tulle.noise.charge import Charge, CostError, Draw
from tulle.noise.source import NOTHING, WATCHER, Watcher
from tulle.noise.source import charge as charge


class _Watch(Watcher):
    """The events of one run, as they come."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.draws: list[Draw] | None = None
        """The draws under the open charge, or None when none is open."""
        self.zones: dict[str, list[Event]] | None = None
        self.free = False
        self.finished = False

    def report(self, kind: str, parameters: dict[str, Any]) -> None:
        if self.draws is None:
            raise CostError(f"A draw by {kind} is outside of every charge.")
        self.draws.append(Draw(kind, parameters))

    def guard(self, source: Source) -> Source:
        return source if isinstance(source, _Watched) else _Watched(source, self)

    def check_read(self) -> None:
        if self.draws is None and not self.free:
            raise CostError("Random bits were taken outside of every charge.")

    def record(self, event: Event) -> None:
        if self.finished:
            raise CostError("Data was looked at after post-processing had begun.")
        self.events.append(event)

    @contextmanager
    def charging(self, what: Charge) -> Iterator[None]:
        if self.draws is not None:
            raise CostError("A charge was opened inside another.")
        self.draws = []
        try:
            yield
            drawn = self.draws
        finally:
            self.draws = None
        for draw in drawn:
            if draw.kind not in what.kinds:
                raise CostError(f"{type(what).__name__} does not account for {draw.kind}.")
        if not drawn:
            raise CostError(f"{type(what).__name__} was opened, and nothing was drawn.")
        self.record(what.event(drawn))

    @contextmanager
    def apart(self) -> Iterator[None]:
        kept, zones, self.zones = self.events, self.zones, {}
        self.events = []
        try:
            yield
            if self.events:
                raise CostError("A draw is in none of the separate parts.")
            parts = tuple(Composed(tuple(events)) for events in self.zones.values())
        finally:
            self.events, self.zones = kept, zones
        if parts:
            self.record(Disjoint(parts))

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        if self.zones is None:
            raise CostError("A part of the data was named outside of disjoint().")
        kept, self.events = self.events, self.zones.setdefault(name, [])
        try:
            yield
        finally:
            self.events = kept


class _Watched(Source):
    """A source that gives no bits outside of a charge."""

    def __init__(self, source: Source, found: _Watch) -> None:
        self._source = source
        self._found = found

    def read(self, count: int) -> bytes:
        """Return bytes of the source, if a charge is open."""
        self._found.check_read()
        return self._source.read(count)


@contextmanager
def watch() -> Iterator[list[Event]]:
    """Record the events of all draws inside a ``with`` block; raise for a draw without a charge.

    Example:
        >>> from tulle.noise import discrete_laplace
        >>> from tulle.noise.charge import LaplaceCharge, charge
        >>> with watch() as events, charge(LaplaceCharge(2)):
        ...     _ = discrete_laplace(scale=4)
        >>> events
        [Laplace(epsilon=Fraction(1, 2))]
    """
    found = _Watch()
    token = WATCHER.set(found)
    try:
        yield found.events
    finally:
        WATCHER.reset(token)


def _watch() -> _Watch | None:
    found = WATCHER.get()
    assert found is None or isinstance(found, _Watch)
    return found


def spend(event: Event) -> None:
    """Say what was spent beside all draws, such as a probability of failure."""
    found = _watch()
    if found is not None:
        found.record(event)


def disjoint() -> AbstractContextManager[None]:
    """Say that what is charged inside concerns separate parts of the data; see :func:`part`."""
    found = _watch()
    return NOTHING if found is None else found.apart()


def part(name: str) -> AbstractContextManager[None]:
    """Say which of the separate parts of the data the charges inside are about."""
    found = _watch()
    return NOTHING if found is None else found.inside(name)


@contextmanager
def free_of_charge(source: Source | None) -> Iterator[None]:
    """Allow bits for post-processing; while somebody watches, check who asks for them."""
    found = _watch()
    if found is None:
        yield
        return
    if found.draws is not None:
        raise CostError("Ordinary random numbers were asked for inside a charge.")
    # The frames in between are those of this function, its context manager and post_processing().
    asking = sys._getframe(3)
    held = [name for name, value in asking.f_locals.items() if isinstance(value, Dataset)]
    if held:
        raise CostError(
            f"{asking.f_code.co_qualname} draws ordinary random numbers and holds a dataset."
        )
    # A generator with a public seed is no randomness: data may still be looked at after it.
    found.finished |= source is None or type(source).secure or isinstance(source, _Watched)
    found.free = True
    try:
        yield
    finally:
        found.free = False
