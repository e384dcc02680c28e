"""Which names are public, and for which task they are."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

from tulle import _index

Item = TypeVar("Item")


def public(task: str = "") -> Callable[[Item], Item]:
    """Mark a class or function as public: in its package, and with a task also in ``tulle`` itself.

    ``tools/index.py`` reads the mark off the source; at run time it does nothing.
    """

    def same(item: Item) -> Item:
        return item

    return same


def exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package that imports its public names when used.

    Example:
        >>> find, listed = exports("tulle.models")
        >>> find("Table").__name__, "Table" in listed()
        ('Table', True)
    """
    homes = _index.PUBLIC[package]

    def find(name: str) -> Any:
        if name in homes:
            return getattr(importlib.import_module(homes[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def listed() -> list[str]:
        return sorted(homes)

    return find, listed
