"""Whose a row is: the small language in which owners of tables are declared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from tulle.core.errors import InputError
from tulle.sql.schema.declarations import split_owners

ANYONE = "participant"
"""The kind of participant that all owners belong to when no kind is declared."""

_TOKEN = re.compile(r'\s*(->|[.\[\](),:]|"(?:[^"]|"")+"|\w+)')
_WORD = re.compile(r"\w+")

Columns = tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """One foreign key followed: these columns here equal that table's key."""

    columns: Columns
    table: str
    key: Columns | None

    def __str__(self) -> str:
        key = "" if self.key is None else f"[{_list(self.key)}]"
        return f"{_list(self.columns)} -> {_name(self.table)}{key}"


@dataclass(frozen=True)
class Owner:
    """One owner of each row of a table.

    ``steps`` are foreign keys to follow, ``columns`` the owner's identifier at the end (several
    for a composite one; none when the last table's own owners are meant). ``entity`` is the kind
    of participant: identifiers are compared within a kind only.

    Example:
        >>> str(parse_owner("customer: l_orderkey -> orders[o_orderkey].o_custkey"))
        'customer: l_orderkey -> orders[o_orderkey].o_custkey'
    """

    steps: tuple[Step, ...]
    columns: Columns
    entity: str | None

    def __str__(self) -> str:
        parts = [str(step) for step in self.steps]
        text = ""
        for place, part in enumerate(parts):
            text += part if place == 0 else "." + part
        if self.columns:
            text += ("." if parts else "") + _list(self.columns)
        return text if self.entity is None else f"{_name(self.entity)}: {text}"

    def of(self, entity: str) -> Owner:
        """Return the same owner as a participant of this kind."""
        return replace(self, entity=entity)


def parse_owner(text: str) -> Owner:
    """Read one owner.

    ``column``, ``(column, column)`` for a composite identifier, ``column -> table.column`` over a
    foreign key, ``column -> table[key].column`` when the key cannot be read off the catalogue,
    ``column -> table`` to take over that table's owners; each may start with ``kind:``.

    Raises:
        InputError: showing the text and the forms that are understood.
    """
    reader = _Reader(text)
    entity = None
    if len(reader.tokens) > 1 and reader.tokens[1] == ":":
        entity = reader.name()
        reader.take(":")
    columns = reader.columns()
    steps: list[Step] = []
    while reader.next == "->":
        reader.take("->")
        table = reader.name()
        key = None
        if reader.next == "[":
            reader.take("[")
            key = reader.columns(bare=True)
            reader.take("]")
            if len(key) != len(columns):
                reader.fail()
        steps.append(Step(columns, table, key))
        columns = ()
        if reader.next == ".":
            reader.take(".")
            columns = reader.columns()
        elif reader.next is not None:
            reader.fail()
    if reader.next is not None:
        reader.fail()
    return Owner(tuple(steps), columns, entity)


class _Reader:
    """Takes the tokens of one owner's text in turn."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        self.place = 0
        position = 0
        while position < len(text.rstrip()):
            found = _TOKEN.match(text, position)
            if found is None:
                self.fail()
            self.tokens.append(found.group(1))
            position = found.end()

    @property
    def next(self) -> str | None:
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def take(self, token: str) -> None:
        if self.next != token:
            self.fail()
        self.place += 1

    def name(self) -> str:
        token = self.next
        if token is None or not (token.startswith('"') or _WORD.fullmatch(token)):
            self.fail()
        self.place += 1
        return token[1:-1].replace('""', '"') if token.startswith('"') else token

    def columns(self, *, bare: bool = False) -> Columns:
        """Read one column or several in brackets; ``bare`` also takes several without."""
        closed = self.next == "("
        if closed:
            self.take("(")
        names = [self.name()]
        while self.next == "," and (closed or bare):
            self.take(",")
            names.append(self.name())
        if closed:
            self.take(")")
        return tuple(names)

    def fail(self) -> NoReturn:
        raise InputError(
            f"The owner {self.text!r} cannot be read. Write a column ('o_custkey'), a composite "
            "('(tenant, user)'), a path ('l_orderkey -> orders.o_custkey', or with the key "
            "'l_orderkey -> orders[o_orderkey].o_custkey'), a table whose owners to take over "
            "('l_orderkey -> orders'); 'customer: ...' in front names the kind of participant. "
            "Several owners of one row are a list, or joined by 'and'."
        )


def parse_owners(owners: Mapping[str, Any]) -> dict[str, tuple[Owner, ...]]:
    """Read the owners of every table: a text, or a list of texts when a row has several owners.

    ``"a and b"`` is the same as ``["a", "b"]``.

    Raises:
        InputError: when a text cannot be read, or only some owners say their kind.
    """
    read: dict[str, tuple[Owner, ...]] = {}
    for table, given in owners.items():
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, Sequence) or not texts:
            raise InputError(
                f"owners[{table!r}] must be a text or a list of texts; got {given!r}. A table "
                "that belongs to nobody is declared with public=."
            )
        if not all(isinstance(text, str) for text in texts):
            raise InputError(f"owners[{table!r}] must hold texts only; got {given!r}.")
        read[table] = tuple(parse_owner(one) for text in texts for one in split_owners(text))
    return _with_entities(read)


def _with_entities(owners: dict[str, tuple[Owner, ...]]) -> dict[str, tuple[Owner, ...]]:
    """Give every owner that names columns a kind: its own, the one it refers to, or the common one.

    One person under two kinds would be protected as two; so either all kinds are declared or all
    owners share one.
    """
    declared = {o.entity for listed in owners.values() for o in listed if o.entity is not None}
    named: dict[str, tuple[Owner, ...]] = {}
    for table, listed in owners.items():
        found = []
        for owner in listed:
            entity = owner.entity
            if owner.columns and entity is None:
                entity = _referred(owner, owners) or (None if declared else ANYONE)
                if entity is None:
                    raise InputError(
                        f"owners[{table!r}] = '{owner}' does not say its kind of participant, "
                        f"while others do ({', '.join(sorted(declared))}). Write for example "
                        f"'{sorted(declared)[0]}: {owner}', or leave out every kind."
                    )
            found.append(replace(owner, entity=entity))
        named[table] = tuple(found)
    return named


def _referred(owner: Owner, owners: Mapping[str, tuple[Owner, ...]]) -> str | None:
    """Return the kind that the table at the end of the path declares for the same columns."""
    if not owner.steps:
        return None
    for other in owners.get(owner.steps[-1].table, ()):
        if not other.steps and other.columns == owner.columns:
            return other.entity
    return None


def _name(name: str) -> str:
    return name if _WORD.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def _list(columns: Columns) -> str:
    names = ", ".join(_name(column) for column in columns)
    return names if len(columns) == 1 else f"({names})"
