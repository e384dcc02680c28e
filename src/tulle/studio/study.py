"""A dataset in the studio: its data worker and its account in the ledger."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tulle.core.errors import InputError
from tulle.core.validate import whole_number
from tulle.ledger.ledger import Ledger
from tulle.sql.engines.connector import place_of
from tulle.studio.data_worker import DataWorker
from tulle.studio.jobs import Job
from tulle.studio.process import Worker
from tulle.studio.questions import Asked
from tulle.studio.tokens import new_name


@dataclass
class Study:
    """One dataset. It is a draft until the custodian says who is protected and for how much."""

    place: str
    """The file, or the URL of a database."""
    ledger: Ledger
    identifier: str = field(default_factory=new_name)
    worker: Worker = field(default_factory=lambda: Worker(DataWorker))
    account: str | None = None
    kind: str = "graph"
    unit: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    summary: str = ""
    """What was read, in words: for the custodian's side alone."""
    assumptions: list[str] = field(default_factory=list)
    """What every guarantee about the data rests on, in words."""
    names: list[list[str]] | None = None
    """The public names of the rows and columns of a grid."""
    columns: list[str] = field(default_factory=list)
    """The columns of node attributes that may be declared public, to be kept as a partition."""
    cards: list[bool] = field(default_factory=list)
    """Which of the kind's questions can be asked under the unit."""
    last: str | None = None
    """The job that its page shows."""
    lost: set[str] = field(default_factory=set)
    """Debits of answers that were cancelled after they were paid for."""
    opening: threading.Lock = field(default_factory=threading.Lock, repr=False)
    """Held while it is opened: two tabs may show the form."""

    @property
    def title(self) -> str:
        """Its name on pages: never a password."""
        return self.account or place_name(self.place)

    def read(self, spec: Mapping[str, Any]) -> None:
        """Have the data worker read the data.

        Raises:
            TulleError: when it cannot be read so.
        """
        found = self.worker.call("read", spec=dict(spec))
        self.kind, self.summary = found["kind"], self.worker.call("summary")
        self.worker.first = [("read", {"spec": dict(spec)})]

    def open(self, account: str, unit: str, epsilon: str, delta: str) -> None:
        """Open the account, as a new one or with the terms that it has."""
        terms = {
            "ledger": str(self.ledger.path),
            "account": account,
            "unit": unit,
            "epsilon": epsilon,
            "delta": delta,
        }
        public = self.worker.call("open", **terms)
        self.facts, self.names = public["facts"], public["names"]
        self.columns = public["columns"]
        self.assumptions = public["assumptions"]
        self.account, self.unit = account, unit
        self.worker.first.append(("open", terms))

    def spell_out(self, asked: Asked) -> dict[str, Any]:
        """Return a question with the parts of the column in it that it declares public.

        From here on the partition is public, as the question is.
        """
        said = dict(asked)
        column = said.pop("partition", None)
        if column is not None:
            said["arguments"] = {"partition": self.worker.call("partition", column=column)}
        return said

    def ask(
        self,
        asked: Asked,
        epsilon: str,
        delta: str,
        *,
        title: str,
        mechanism: str | None = None,
        again: bool = False,
    ) -> Job:
        """Start drawing an answer."""
        arguments = {
            "asked": dict(asked),
            "epsilon": epsilon,
            "delta": delta,
            "mechanism": mechanism,
            "again": again,
        }
        known = frozenset(debit["digest"] for debit in self.debits())
        job = Job("ask", arguments, title, study=self.identifier, known=known)
        self.last = job.identifier
        return self.worker.submit(job)

    def debits(self) -> list[dict[str, Any]]:
        """Return the account's debits, the newest first."""
        if self.account is None:
            return []
        return [
            {"digest": e.digest, "question": e.body["question"], **e.body["guarantee"]}
            for e in reversed(self.ledger.debits(self.account))
        ]

    def releases(self) -> list[Mapping[str, Any]]:
        """Return the kept answers as JSON, the newest first."""
        if self.account is None:
            return []
        kept = self.ledger.entries()
        return [
            entry.body["release"]
            for entry in reversed(kept)
            if entry.kind == "release" and entry.account == self.account
        ]

    def release(self, debit: str) -> Mapping[str, Any]:
        """Return one kept answer.

        Raises:
            InputError: when there is none.
        """
        for found in self.releases():
            if found["debit"] == debit:
                return found
        raise InputError("There is no such release in this study.")


def place_name(place: str) -> str:
    """Return the last part of a path, or a database URL without its user and password."""
    return place_of(place) if "://" in place else Path(place).name


def parse_groups(text: str) -> dict[str, list[Any]] | None:
    """Read the public groups of a GROUP BY, such as ``region = north, south``; or JSON.

    Raises:
        InputError: when it cannot be read.
    """
    from tulle.sql.schema.declarations import read_groups

    return read_groups(text, "groups as COLUMN = A, B, one column on each line")


def parse_count(text: str, of_what: str) -> int | None:
    """Read a whole number that may be left out.

    Raises:
        InputError: when it is none.
    """
    if not text.strip():
        return None
    number = whole_number(text)
    if not number:
        raise InputError(
            f"The number of {of_what} must be a whole number from 1 on; got {text[:40]!r}."
        )
    return number
