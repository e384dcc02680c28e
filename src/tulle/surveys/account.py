"""What one client has told so far: a budget that is kept, and reports that are repeated."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from os import PathLike
from typing import Any, NamedTuple

from tulle.core import validate
from tulle.core.errors import (
    BudgetError,
    InputError,
    LedgerError,
    TulleError,
    UnitError,
    raise_alone,
)
from tulle.core.guarantee import display
from tulle.core.public import public
from tulle.core.unit import Unit
from tulle.core.validate import Number, rational, text
from tulle.ledger.store_place import ALONE, Place, real


class Question(NamedTuple):
    """One thing asked: what identifies it, its price, and how to draw a report."""

    key: str
    epsilon: Fraction
    draw: Callable[[], Any]


_REPORT = "SELECT report FROM reports WHERE question = ?"
_UNUSABLE = "The account file cannot be used: {}. Nothing was sent."


@contextmanager
def _explaining() -> Iterator[None]:
    """Turn whatever a damaged file makes SQLite or Python raise into a LedgerError."""
    try:
        yield
    except TulleError:
        raise
    except (sqlite3.Error, OSError, ValueError, TypeError, RecursionError) as error:
        why = f"it is damaged ({type(error).__name__})"
        if isinstance(error, sqlite3.Error):
            why = f"SQLite reports {str(error)!a}"
        elif isinstance(error, OSError):
            why = f"it cannot be opened ({error.strerror})"
        raise_alone(LedgerError(_UNUSABLE.format(why)))


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
        self._process = os.getpid()
        # A name such as ":memory:" is a name: what is in memory has its budget anew every time.
        self._path = None if path is None else real(path)
        with _explaining():
            if self._path is not None:
                with suppress(FileExistsError):
                    os.close(os.open(self._path, os.O_CREAT | os.O_EXCL, 0o600))
            with self._alone():
                self._database = self._connect()
            with self._transaction():
                self._open()

    @contextmanager
    def _alone(self) -> Iterator[Place | None]:
        """Keep the rest of the process out, and check the file before SQLite follows a journal."""
        self._check_process()
        with ALONE:
            if self._path is None:
                yield None
                return
            with Place(self._path, "account file") as place:
                place.check()
                yield place

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(
            ":memory:" if self._path is None else f"{self._path.as_uri()}?mode=rw",
            uri=True,
            isolation_level=None,
            timeout=30,
            # Whichever thread drops an account closes it; the lock keeps threads apart.
            check_same_thread=False,
        )
        # A commit happens when the journal is deleted; EXTRA makes that last. With FULL a power
        # loss could bring the journal back, and with it the price of a report that was sent.
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("PRAGMA synchronous = EXTRA")
        database.execute("PRAGMA fullfsync = ON")  # macOS: past the drive's cache
        return database

    def _open(self) -> None:
        tables = self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if {name for (name,) in tables} - {"terms", "reports"}:
            raise LedgerError(_UNUSABLE.format("it is a database of another kind"))
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
        with self._alone() as place:
            # Immediate: two processes that answer at once must not both find the budget unspent.
            self._database.execute("BEGIN IMMEDIATE")
            try:
                if place is not None:
                    place.check_names()
                    place.check_lock(writing=True)
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

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
        with _explaining(), self._alone():
            return self._sum()

    def _sum(self) -> Fraction:
        rows = self._database.execute("SELECT epsilon FROM reports").fetchall()
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
        with _explaining():
            with self._transaction():
                written = self._answer(questions)
                confirmed = self._is_confirmed()
            if not confirmed:
                # A second transaction, so that a journal of the first shows its age (Place).
                with self._booked(), self._transaction():
                    self._confirm(written)
            return [json.loads(written[question.key]) for question in questions]

    def _answer(self, questions: Sequence[Question]) -> dict[str, str]:
        """Return the report for each question as it is written, by its key."""
        stored = {}
        for question in questions:
            row = self._database.execute(_REPORT, (question.key,)).fetchone()
            if row is not None:
                stored[question.key] = row[0]
        fresh = [question for question in questions if question.key not in stored]
        price = sum((question.epsilon for question in fresh), Fraction(0))
        left = self.epsilon - self._sum()
        if price > left:
            raise BudgetError(
                f"These questions cost epsilon = {display(price)}; this client has "
                f"{display(left)} left of {display(self.epsilon)}. Nothing was sent."
            )
        for question in fresh:
            stored[question.key] = json.dumps(question.draw())
            self._database.execute(
                "INSERT INTO reports VALUES (?, ?, ?)",
                (question.key, text(question.epsilon), stored[question.key]),
            )
        return stored

    def _is_confirmed(self) -> bool:
        """Tell whether all reports that are there were found again after they were written."""
        (found,) = self._database.execute("SELECT count(*) FROM reports").fetchone()
        return bool(found == self._database.execute("PRAGMA user_version").fetchone()[0])

    @contextmanager
    def _booked(self) -> Iterator[None]:
        """Say of an error that the price was paid before it."""
        try:
            yield
        except LedgerError as error:
            paid = "The price is paid and nothing was sent: ask again."
            raise_alone(LedgerError(f"{error}".replace("Nothing was spent.", paid)))

    def _confirm(self, written: Mapping[str, str]) -> None:
        """Find the reports in the file again, and note how many there are."""
        for key, report in written.items():
            if self._database.execute(_REPORT, (key,)).fetchone() != (report,):
                raise LedgerError(_UNUSABLE.format("another program wrote over it just now"))
        if not self._is_confirmed():
            (found,) = self._database.execute("SELECT count(*) FROM reports").fetchone()
            self._database.execute(f"PRAGMA user_version = {int(found)}")

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
