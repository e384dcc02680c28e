"""The tables of an engine, and names as its catalogue spells them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tulle.core.errors import InputError
from tulle.sql.schema.declarations import split_owners
from tulle.sql.schema.owners import Columns, Owner, Step, parse_owner

Catalogue = Mapping[str, Mapping[str, str]]
"""Tables, each with its columns and their types."""

VIEW = (
    "is a view, and whose rows it shows follows from the tables that it reads. Declare those, and "
    "leave it out; or make it a table: CREATE TABLE ... AS SELECT * FROM it."
)
"""What is wrong with declaring owners of a view, or that it is public."""

RESERVED = "__tulle"
"""How the columns start that are added to a query; no table may use it."""


@dataclass(frozen=True)
class Definition:
    """A name whose rows are worked out when it is read, and which may fail then.

    That is a view, or a table with columns that are computed (the table's own name in ``text``
    means what is stored). Its text goes through the same compilation as a question's own
    sub-select; what has no text, or one that is not supported, is refused.
    """

    text: str = ""
    """The SELECT that gives the rows, in the engine's dialect."""
    columns: tuple[str, ...] = ()
    """What the engine calls the columns, in order."""
    reason: str = ""
    """Why it cannot be asked about, where there is no text: the end of a sentence about it."""


@dataclass(frozen=True)
class Keys:
    """Declared keys: each table's primary key, and where (table, columns) refer to."""

    primary: Mapping[str, Columns]
    foreign: Mapping[tuple[str, Columns], tuple[str, Columns]]

    def with_primary(self, declared: Mapping[str, Columns]) -> Keys:
        """Return the keys with these primary ones, where the catalogue has others or none."""
        return replace(self, primary={**self.primary, **declared})


class Names:
    """Finds tables and columns as the catalogue spells them."""

    def __init__(
        self, catalogue: Catalogue, keys: Keys, definitions: Mapping[str, Definition]
    ) -> None:
        self.catalogue = catalogue
        self.keys = keys
        self.definitions = definitions
        for table, columns in catalogue.items():
            for column in columns:
                if column.lower().startswith(RESERVED):
                    raise InputError(
                        f"Column {table}.{column}: names that start with {RESERVED} are reserved."
                    )

    def table(self, name: str, argument: str) -> str:
        found = spelled(name, self.catalogue)
        if found is None:
            view = spelled(name, self.definitions)
            if view is not None:
                raise InputError(f"{argument}: {view} {self.definitions[view].reason or VIEW}")
            there = ", ".join(sorted(self.catalogue)) or "none"
            raise InputError(f"{argument}: there is no table {name!r}. Tables: {there}.")
        return found

    def columns(self, table: str, names: Columns, owner: object) -> Columns:
        found = []
        for name in names:
            column = spelled(name, self.catalogue[table])
            if column is None:
                defined = self.definitions.get(table)
                if defined is not None and spelled(name, defined.columns) is not None:
                    raise InputError(
                        f"Owner '{owner}': {table}.{name} is computed when it is read. Name a "
                        "column that is stored."
                    )
                raise InputError(
                    f"Owner '{owner}': table {table} has no column {name!r}. Columns: "
                    f"{', '.join(self.catalogue[table])}."
                )
            found.append(column)
        return tuple(found)

    def plain(self, owners: Mapping[str, Any]) -> dict[str, Any]:
        """Return the owners' texts with tables and columns spelled as in the catalogue."""
        read: dict[str, Any] = {}
        for table, given in owners.items():
            if isinstance(given, str) or not isinstance(given, Iterable):
                given = [given]
            read[table] = [
                self._spell(table, text)
                for listed in given
                for text in (split_owners(listed) if isinstance(listed, str) else [listed])
            ]
        return read

    def _spell(self, table: str, text: Any) -> Any:
        if not isinstance(text, str):
            return text
        owner = parse_owner(text)
        here, steps = table, []
        for step in owner.steps:
            columns = self.columns(here, step.columns, text)
            here = self.table(step.table, f"owners[{table!r}] = {text!r}")
            key = None if step.key is None else self.columns(here, step.key, text)
            steps.append(Step(columns, here, key))
        return str(
            replace(owner, steps=tuple(steps), columns=self.columns(here, owner.columns, text))
        )

    def fill(self, table: str, owner: Owner, declared: set[str]) -> Owner:
        """Return the owner with the key of every step written out."""
        here, steps = table, []
        for step in owner.steps:
            if step.table not in declared:
                raise InputError(
                    f"owners[{table!r}] = '{owner}' leads through {step.table}, which is neither "
                    "owned nor public. Declare it too."
                )
            steps.append(replace(step, key=step.key or self._key(here, step, owner)))
            here = step.table
        return replace(owner, steps=tuple(steps))

    def _key(self, table: str, step: Step, owner: Owner) -> Columns:
        target, key = self.keys.foreign.get((table, step.columns), ("", ()))
        if target == step.table:
            return key
        primary = self.keys.primary.get(step.table, ())
        if len(primary) == len(step.columns):
            return primary
        if all(column in self.catalogue[step.table] for column in step.columns):
            return step.columns
        names = ", ".join(step.columns)
        raise InputError(
            f"owners[{table!r}] = '{owner}': the catalogue does not say which key of {step.table} "
            f"{names} refers to. Write it in brackets: "
            f"'{names} -> {step.table}[key column].{', '.join(owner.columns) or '...'}'. Columns "
            f"of {step.table}: {', '.join(self.catalogue[step.table])}."
        )


def spelled(name: str, known: Iterable[str]) -> str | None:
    """Return the name as it is spelled, whatever its case if that is not ambiguous."""
    names = list(known)
    if name in names:
        return name
    alike = [other for other in names if other.lower() == str(name).lower()]
    return alike[0] if len(alike) == 1 else None
