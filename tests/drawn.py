"""Random cases of the slow suites: new in every run, replayed by a seed, for a share of the time.

``TULLE_SLOW_SEED`` is drawn when a run begins and told at its end: set it to see the same cases
again. ``TULLE_SLOW_MINUTES`` is how long a suite is busy with tests that are marked ``timed``, and
``TULLE_SLOW_LIMIT`` after how many minutes no slow test is begun: what is left is skipped, and said
to be.
"""

from __future__ import annotations

import math
import os
import random
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

SEED, MINUTES, LIMIT = "TULLE_SLOW_SEED", "TULLE_SLOW_MINUTES", "TULLE_SLOW_LIMIT"
DEFAULTS = {MINUTES: 20.0, LIMIT: 50.0}

_Item = TypeVar("_Item")


def choose_seed() -> None:
    """Draw the seed of a run, unless there is one; workers inherit it."""
    os.environ.setdefault(SEED, str(secrets.randbits(32)))


def seconds_of(name: str) -> float:
    """Return a number of minutes that the environment may set, in seconds."""
    return 60 * float(os.environ.get(name, DEFAULTS[name]))


def are_enough(answered: int, tried: int, least: float) -> bool:
    """Say whether at least so many were answered or, of a number below one, this part of them."""
    return answered >= (least if least >= 1 else math.floor(least * tried))


class Drawn:
    """The random cases of one test: as many as its share of the time allows, at least one."""

    def __init__(self, name: str, seconds: float) -> None:
        self.random = random.Random(f"{os.environ[SEED]} {name}")
        self._end = time.monotonic() + seconds

    def seeds(self) -> Iterator[int]:
        """Yield numbers to make cases of."""
        while True:
            yield self.random.randrange(2**31)
            if self.is_over:
                return

    def shuffled(self, listed: Sequence[_Item]) -> Iterator[_Item]:
        """Yield members of a list in random order: all of them where there is time."""
        for one in self.random.sample(listed, len(listed)):
            yield one
            if self.is_over:
                return

    @property
    def is_over(self) -> bool:
        """Whether the test's time has passed."""
        return time.monotonic() >= self._end
