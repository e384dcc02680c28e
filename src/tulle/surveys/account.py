"""What one client has told so far: a budget that is kept, and reports that are repeated."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from os import PathLike
from threading import Lock
from typing import Any, NamedTuple

from tulle.core import validate
from tulle.core.errors import BudgetError, InputError, LedgerError, UnitError, raise_alone
from tulle.core.guarantee import display
from tulle.core.public import public
from tulle.core.unit import Unit
from tulle.core.validate import Number, rational, text


class Question(NamedTuple):
    """One thing asked: what identifies it, its price, and how to draw a report."""

    key: str
    epsilon: Fraction
    draw: Callable[[], Any]


@public()
class ClientAccount:
    """The client's own book: every report is priced, kept and repeated from then on.

    It lives with the client, in a file or (without ``path``) in memory. It holds reports, which
    were sent anyway, and never an answer. ``unit`` says what the budget protects: "client" for
    questionnaires, "edge" for link reports.

    Guarantee:
        The sum of the epsilons of all questions answered is at most ``epsilon``, so everything
        the client ever sends through this account is epsilon-private, by composition. Price and
        report are on disk before the report is returned; what is lost in a crash was never sent.

    Raises:
        InputError: when epsilon is not above zero, or the file was opened with another budget.
        LedgerError: when the file cannot be used.

    Example:
        >>> mine = ClientAccount(epsilon=1, unit="client")
        >>> mine.remaining
        Fraction(1, 1)
    """

    def __init__(
        self, *, epsilon: Number, unit: str, path: str | PathLike[str] | None = None
    ) -> None:
        self.epsilon = validate.positive(epsilon=epsilon)
        self.unit = Unit.of(unit)
        if self.unit.name not in ("client", "edge"):
            raise UnitError(
                f"A client's account protects per client or per edge, not per {self.unit.name}."
            )
        self._lock, self._process = Lock(), os.getpid()
        try:
            self._database = sqlite3.connect(
                ":memory:" if path is None else path,
                isolation_level=None,
                timeout=30,
                # Whichever thread drops an account closes it; the lock keeps threads apart.
                check_same_thread=False,
            )
            # The file is small and written rarely: let every commit reach the disk.
            self._database.execute("PRAGMA synchronous = FULL")
            with self._transaction():
                self._open()
        except sqlite3.Error as error:
            raise_alone(LedgerError(f"The account file cannot be used ({error})."))

    def _open(self) -> None:
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS terms (unit TEXT NOT NULL, epsilon TEXT NOT NULL)"
        )
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS reports "
            "(question TEXT PRIMARY KEY, epsilon TEXT NOT NULL, report TEXT NOT NULL)"
        )
        row = self._database.execute("SELECT unit, epsilon FROM terms").fetchone()
        if row is None:
            terms = self.unit.name, text(self.epsilon)
            self._database.execute("INSERT INTO terms VALUES (?, ?)", terms)
        elif row != (self.unit.name, text(self.epsilon)):
            raise InputError(
                f"This account was opened for epsilon = {row[1]} per {row[0]}; a budget does not "
                "change. Open it with those terms."
            )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._check_process()
        # Immediate: two processes that answer at once must not both find the budget unspent.
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    def _check_process(self) -> None:
        # A fork copies what is in memory: both would have the whole budget, and tell one answer
        # twice with noise of its own. SQLite forbids to use a connection on both sides as well.
        if os.getpid() != self._process:
            raise LedgerError(
                "This account was opened before the process was forked. Open it in the process "
                "that answers, from its file; an account in memory stays where it was made. "
                "Nothing was sent."
            )

    @property
    def spent(self) -> Fraction:
        """The sum of what all stored reports cost."""
        self._check_process()
        rows = self._database.execute("SELECT epsilon FROM reports")
        return sum((rational(row[0]) for row in rows), Fraction(0))

    @property
    def remaining(self) -> Fraction:
        """What is left to spend."""
        return self.epsilon - self.spent

    def answer(self, unit: str, questions: Sequence[Question]) -> list[Any]:
        """Return a report for each question: the stored one, or a fresh one that is paid for.

        Raises:
            UnitError: when the account protects another unit.
            BudgetError: when the new questions cost more than is left; nothing is drawn.
            LedgerError: when the file cannot be used; nothing is returned.
        """
        if unit != self.unit.name:
            raise UnitError(
                f"These questions are priced per {unit}; this account is kept per "
                f"{self.unit.name}. Use an account of that unit."
            )
        try:
            with self._transaction():
                return self._answer(questions)
        except sqlite3.Error as error:
            raise_alone(LedgerError(f"The account file cannot be used ({error})."))

    def _answer(self, questions: Sequence[Question]) -> list[Any]:
        stored = {}
        for question in questions:
            row = self._database.execute(
                "SELECT report FROM reports WHERE question = ?", (question.key,)
            ).fetchone()
            if row is not None:
                stored[question.key] = json.loads(row[0])
        fresh = [question for question in questions if question.key not in stored]
        price = sum((question.epsilon for question in fresh), Fraction(0))
        if price > self.remaining:
            raise BudgetError(
                f"These questions cost epsilon = {display(price)}; this client has "
                f"{display(self.remaining)} left of {display(self.epsilon)}. Nothing was sent."
            )
        for question in fresh:
            written = json.dumps(question.draw())
            self._database.execute(
                "INSERT INTO reports VALUES (?, ?, ?)",
                (question.key, text(question.epsilon), written),
            )
            stored[question.key] = json.loads(written)
        return [stored[question.key] for question in questions]

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __del__(self) -> None:
        # Accounts in memory are dropped rather than closed; that is no reason for a warning.
        # A forked process leaves its copy alone: closing it would drop locks of the other.
        if hasattr(self, "_database") and os.getpid() == self._process:
            self._database.close()

    def __enter__(self) -> ClientAccount:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ClientAccount: {text(self.epsilon)} per {self.unit.name}>"
