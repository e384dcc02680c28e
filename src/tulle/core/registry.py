"""One registration for whatever has a name: mechanisms, questions, error laws, released values.

A thing registers itself by a decorator where it is defined. ``tools/index.py`` reads the decorators
off the source and writes ``tulle/_index.py``, so that a name is found, and its module imported,
when it is first used. Nothing read from a file of a user's can name a module.

Mechanisms of other distributions come in by entry points of the group ``tulle.mechanisms``, each a
module that registers with the same decorators. They are loaded when mechanisms are first looked
for, and are unaudited: their guarantees say so (:func:`caveat`) until the audit has passed on them.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tulle import _index
from tulle.core.errors import InputError

if TYPE_CHECKING:
    from tulle.core.mechanism import Mechanism
    from tulle.core.query import Query

Role = Literal[
    "mechanism",
    "law",
    "value",
    "query",
    "part",
    "stand-in",
    "preview",
    "audit",
    "page",
    "data",
    "releases",
    "engine",
    "dialect",
]
Item = TypeVar("Item")
Named = TypeVar("Named", bound="type[Mechanism]")

ENTRY_POINTS = "tulle.mechanisms"
"""The group of entry points by which other distributions add mechanisms."""

_items: dict[tuple[Role, str], dict[str, Any]] = {}
_passed: set[type] = set()
"""Mechanisms of other distributions on which the audit has passed, in this process."""


def register(role: Role, group: str, name: str) -> Callable[[Item], Item]:
    """Return a decorator that files an item under its role, group and name.

    Raises:
        InputError: when another item already has that name.
    """

    def keep(item: Item) -> Item:
        known = _items.setdefault((role, group), {})
        home = _index.REGISTERED.get((role, group), {}).get(name)
        if home is not None and getattr(item, "__module__", home) != home:
            # What this distribution registers is found by name, and nobody else can take its place.
            raise InputError(f"The name {name!r} is taken: it is a {role} of {group!r} in tulle.")
        if name in known and getattr(known[name], "__qualname__", None) != getattr(
            item, "__qualname__", None
        ):
            raise InputError(f"Two items register as {role} {name!r} of {group!r}.")
        known[name] = item
        return item

    return keep


def offered(page: str, asked: str, title: str, meaning: str) -> Callable[[Item], Item]:
    """Return a decorator that makes a card of the studio's page: a question asked with one click.

    ``tools/index.py`` reads it off the source; at run time it does nothing.
    """

    def same(item: Item) -> Item:
        return item

    return same


def mechanism(
    kind: str,
    name: str,
    *,
    answers: tuple[type[Query], ...],
    units: tuple[str, ...] = (),
    named_only: Mapping[str, tuple[type[Query], ...]] = MappingProxyType({}),
) -> Callable[[Named], Named]:
    """Return a decorator that registers a mechanism for one kind of data under its name.

    ``answers`` are the classes of questions that it may answer, or bases of them; plans import only
    mechanisms that state the question at hand. ``units`` names whom it protects. ``named_only``
    holds, by unit, questions that it answers only when a user names it, since others do better;
    plans do not import it for those.
    """

    def keep(item: Named) -> Named:
        item.kind, item.name = kind, name
        item.answers, item.units, item.named_only = answers, units, named_only
        return register("mechanism", kind, name)(item)

    return keep


class Registered(Mapping[str, Any]):
    """Items of a role and group by name; looking one up imports the module that defines it."""

    def __init__(self, role: Role, group: str) -> None:
        if role == "mechanism":
            load_entry_points()
        self._key = role, group
        self._modules: Mapping[str, str] = _index.REGISTERED.get(self._key, {})

    def __getitem__(self, name: str) -> Any:
        if name in self._modules:
            importlib.import_module(self._modules[name])
        return _items.get(self._key, {})[name]

    def __contains__(self, name: object) -> bool:
        return name in self._modules or name in _items.get(self._key, {})

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._modules, *_items.get(self._key, {}))))

    def __len__(self) -> int:
        return len(list(iter(self)))


def find(role: Role, group: str) -> Registered:
    """Return all items of a role and group by name, each imported when it is looked up."""
    return Registered(role, group)


def groups(role: Role) -> tuple[str, ...]:
    """Return the names of all groups of a role."""
    if role == "mechanism":
        load_entry_points()
    return tuple(dict.fromkeys(g for known, g in (*_index.REGISTERED, *_items) if known == role))


def make_mechanism(kind: str, name: str) -> Mechanism:
    """Return the mechanism of this name for one kind of data."""
    made: Mechanism = find("mechanism", kind)[name]()
    return made


def mechanisms(
    kind: str, query: Query | None = None, unit: str | None = None
) -> dict[str, Mechanism]:
    """Return the mechanisms for one kind of data by name; for a question, those that may answer.

    Only modules of mechanisms that state the question's class, or a base of it, are imported; with
    a unit, only those that protect it, and not those that answer under it only when named.
    """
    names = None if query is None else {base.__name__ for base in type(query).__mro__}
    answers, units = _index.ANSWERS.get(kind, {}), _index.UNITS.get(kind, {})
    named_only = _index.NAMED_ONLY.get(kind, {})

    def may_answer(name: str) -> bool:
        if names is None or name not in answers:
            return True
        if unit is None:
            return bool(names & set(answers[name]))
        return (
            bool(names & set(answers[name]))
            and unit in units.get(name, (unit,))
            and not names & set(named_only.get(name, {}).get(unit, ()))
        )

    return {
        name: make_mechanism(kind, name) for name in find("mechanism", kind) if may_answer(name)
    }


def every_mechanism() -> Iterator[Mechanism]:
    """Yield each registered mechanism of every kind of data."""
    for kind in groups("mechanism"):
        yield from mechanisms(kind).values()


@cache
def load_entry_points() -> None:
    """Import what other distributions register, once; one that fails is left out with a warning."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except Exception as error:  # noqa: BLE001 - another distribution must not stop this one
            warnings.warn(
                f"The mechanisms of entry point {entry.name!r} are left out: loading them raised "
                f"{type(error).__name__}.",
                stacklevel=2,
            )


def caveat(mechanism: Mechanism) -> tuple[str, ...]:
    """Return what a guarantee of this mechanism rests on, in words, if nobody has audited it.

    The audit covers what is defined in this package; whatever else is registered, by entry point or
    by hand, is unaudited until the audit has passed on it.
    """
    package = type(mechanism).__module__.partition(".")[0]
    if package == "tulle" or type(mechanism) in _passed:
        return ()
    return (f"mechanism {mechanism.name!r} of {package} keeps its promise, which is unaudited",)


def mark_audited(mechanism: Mechanism) -> None:
    """Take note, for this process, that the audit has passed on a mechanism."""
    _passed.add(type(mechanism))
