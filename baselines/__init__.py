"""Published mechanisms that others of tulle always beat, kept to be compared with.

Nothing in tulle imports this package. Once :func:`register` was called, ``mechanism=`` finds them;
benchmarks call it. The audit has no row for them: ``tests/baselines`` checks them instead.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from tulle.core import registry
from tulle.core.mechanism import Mechanism
from tulle.core.query import Query

_known: dict[type[Mechanism], Callable[[type[Mechanism]], Any]] = {}


def baseline(
    kind: str, name: str, *, answers: tuple[type[Query], ...], units: tuple[str, ...] = ()
) -> Callable[[type[Mechanism]], type[Mechanism]]:
    """Return a decorator like ``registry.mechanism``, which waits for :func:`register`."""

    def keep(item: type[Mechanism]) -> type[Mechanism]:
        _known[item] = registry.mechanism(kind, name, answers=answers, units=units)
        return item

    return keep


def register() -> None:
    """Make all baselines known to tulle, in this process."""
    from tulle.surveys import planner

    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    for item, mechanism in _known.items():
        mechanism(item)
    from baselines.laplace_and_round import laplace_and_round

    planner.MAKERS["laplace and round"] = laplace_and_round
