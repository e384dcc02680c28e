"""Where the planner finds mechanisms, and where stored names are turned back into things.

Rooms are imported when first needed: :func:`announce` says which module provides a name, and the
lookup imports it. Nothing read from a file can name a module.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tulle.core.errors import InputError

if TYPE_CHECKING:
    from tulle.core.mechanism import Mechanism

Role = Literal["mechanism", "law", "value", "query", "stand-in"]
Item = TypeVar("Item")

_announced: dict[tuple[Role, str], list[str]] = {}
_items: dict[tuple[Role, str], dict[str, Any]] = {}


def announce(role: Role, name: str, module: str) -> None:
    """Say that importing ``module`` registers things of this role under ``name``."""
    modules = _announced.setdefault((role, name), [])
    if module not in modules:
        modules.append(module)


def register(role: Role, group: str, name: str) -> Callable[[Item], Item]:
    """Return a decorator that files an item under its role, group and name.

    Raises:
        InputError: when another item already has that name.
    """

    def keep(item: Item) -> Item:
        shelf = _items.setdefault((role, group), {})
        if name in shelf and getattr(shelf[name], "__qualname__", None) != getattr(
            item, "__qualname__", None
        ):
            raise InputError(f"Two items register as {role} {name!r} of {group!r}.")
        shelf[name] = item
        return item

    return keep


def find(role: Role, group: str) -> dict[str, Any]:
    """Return all items of a role and group by name, importing the room that provides them."""
    for module in _announced.get((role, group), ()):
        importlib.import_module(module)
    return dict(_items.get((role, group), {}))


def groups(role: Role) -> tuple[str, ...]:
    """Return the names of all groups of a role, announced or registered."""
    names = [group for known, group in (*_announced, *_items) if known == role]
    return tuple(dict.fromkeys(names))


def mechanisms(kind: str) -> dict[str, Mechanism]:
    """Return the mechanisms for one kind of data by name, in order of registration."""
    return {name: mechanism() for name, mechanism in find("mechanism", kind).items()}


def every_mechanism() -> Iterator[Mechanism]:
    """Yield each registered mechanism of every kind of data."""
    for kind in groups("mechanism"):
        yield from mechanisms(kind).values()
