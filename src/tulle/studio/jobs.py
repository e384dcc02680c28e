"""Work that goes on while pages are shown: its state, its progress, its result."""

from __future__ import annotations

import threading
import time
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Literal

from tulle.studio.tokens import new_name

State = Literal["waiting", "running", "done", "failed", "cancelled"]


@dataclass
class Job:
    """One piece of work for a process, from the moment it is asked for."""

    verb: str
    arguments: dict[str, Any]
    title: str
    study: str | None = None
    """The study it belongs to, if any."""
    known: frozenset[str] = frozenset()
    """The debits that were in the ledger before it, so that cancelling can tell what it cost."""
    identifier: str = field(default_factory=new_name)
    state: State = "waiting"
    fraction: float | None = None
    """How much is done, if that is known."""
    label: str = ""
    result: Any = None
    problem: str | None = None
    """Why it failed or what cancelling left behind, in words for a page."""
    began: float = field(default_factory=time.monotonic)
    _finished: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self._finished.is_set()

    def finish(self, state: State, *, result: Any = None, problem: str | None = None) -> None:
        """Set its end, once: a job that was cancelled stays cancelled."""
        if not self.over:
            # The state last: a page that reads "done" must find the result.
            self.result, self.problem = result, problem
            self.state = state
            self._finished.set()

    def now(self) -> Job:
        """Return a copy that stays as it is while a page is written from it."""
        return copy(self)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is over; say whether it is."""
        return self._finished.wait(timeout)

    def to_json(self) -> dict[str, Any]:
        """Return what a page may know of it while it runs: never its result."""
        return {
            "id": self.identifier,
            "title": self.title,
            "state": self.state,
            "fraction": self.fraction,
            "label": self.label,
            "problem": self.problem,
            "seconds": round(time.monotonic() - self.began, 1),
        }
