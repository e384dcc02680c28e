"""Rooms whose names are imported when they are first used, so that starting up is quick."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def lazy(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package: ``homes`` says which module has what.

    Example:
        >>> find, listed = lazy("tulle.core", {"unit": ("Unit",)})
        >>> find("Unit").__name__, listed()
        ('Unit', ['Unit'])
    """
    home = {name: module for module, names in homes.items() for name in names}

    def find(name: str) -> Any:
        if name in home:
            return getattr(importlib.import_module(f"{package}.{home[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def listed() -> list[str]:
        return sorted(home)

    return find, listed
