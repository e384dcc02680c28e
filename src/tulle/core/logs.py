"""Keeping other libraries' loggers quiet while they handle what they may not repeat."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

_LOCK = Lock()
_AT_WORK: Counter[str] = Counter()
"""How many calls are at work for each family of loggers; they may run side by side."""


def _is_allowed(record: logging.LogRecord) -> bool:
    """Say whether a record may be logged: not while its driver handles rows."""
    return not any(_within(record.name, family) for family, calls in _AT_WORK.items() if calls)


def _within(name: str, family: str) -> bool:
    return name == family or name.startswith(family + ".")


@contextmanager
def quiet(families: Sequence[str]) -> Iterator[None]:
    """Drop whatever loggers of these names, and those below them, are told meanwhile.

    A filter of a logger does not see what loggers below it are told, so each that there is gets
    it; a driver that makes some only when it needs them has to make them before.
    """
    with _LOCK:
        _AT_WORK.update(families)
        for name, logger in list(logging.root.manager.loggerDict.items()):
            if isinstance(logger, logging.Logger) and any(_within(name, f) for f in families):
                # Adding the same filter twice adds it once.
                logger.addFilter(_is_allowed)
    try:
        yield
    finally:
        with _LOCK:
            _AT_WORK.subtract(families)
