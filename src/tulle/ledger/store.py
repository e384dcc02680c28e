"""The durable log below the ledger: one SQLite file, append-only, hash-chained.

Every entry carries a digest over itself and over the digest of the entry before it. A changed,
missing, reordered or inserted entry breaks the chain, and :meth:`Store.verify` says where. The
chain has no secret key: who rewrites the whole file can forge it, and who puts an old copy back
has a sound one. Both are found by comparing with what is outside the file: the :class:`Head`
that the custodian noted, and the digests that published releases carry.

Every entry states the running totals of its account (:mod:`tulle.ledger.totals`). What is left of a
budget is read off the account's last entry, after checking that it matches its digest and that
index and note agree that it is the last: the work of a debit does not grow with the history.

A debit takes two transactions: one appends it, a second finds it in the file again and notes it on
a page of its own as confirmed. So a journal that is put to the wrong file shows: either in the
file's count of transactions, or because the confirmed entry is gone (:mod:`store_place`).
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from tulle.core.errors import InputError, LedgerError, TulleError
from tulle.core.validate import counted, today
from tulle.ledger import store_file
from tulle.ledger.chain import (
    GENESIS,
    VERSION,
    Entry,
    Head,
    Problem,
    altered,
    answer_name,
    canonical,
    compute_digest,
    entry_of,
    printable,
    stream_name,
    version_name,
)
from tulle.ledger.store_file import View
from tulle.ledger.store_place import ALONE, Place, cannot, obstacle, real
from tulle.ledger.totals import Totals


class Store:
    """An append-only log in one SQLite file; safe with many threads and processes.

    A connection lives for one operation, so nothing crosses a fork or a thread.

    Raises:
        LedgerError: from every method, when the file cannot be used or fails its checks.
        The constructor creates the file if ``create`` is true and it does not exist.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, create: bool = True, timeout: float = 60.0
    ) -> None:
        self.path = real(path)
        if not timeout >= 0:
            raise InputError(f"timeout must be a number of seconds; got {timeout!r}.")
        self.timeout = min(float(timeout), 1e6)  # SQLite counts milliseconds in 32 bits
        self._seen: Head | None = None
        if create and not os.path.exists(self.path):
            with self._alone():
                store_file.create(self.path)
        if not os.path.isfile(self.path):
            raise cannot(self.path, obstacle(self.path), "Check the path.")
        with self._transaction("BEGIN") as connection:
            self.identity = str(json.loads(store_file.read_row(connection, 0)[4])["id"])

    def append(
        self,
        kind: str,
        account: str,
        body: Mapping[str, Any],
        *,
        guard: Callable[[View], None] | None = None,
        reuse: Callable[[View], Entry | None] | None = None,
        day: str | None = None,
    ) -> Entry:
        """Append one entry and return it when it is on the disk; a debit or step when confirmed.

        Both callables see the account, and no other writer can come in between. First ``reuse``
        may return an existing entry, which is returned and nothing is written: an answer that is
        already there costs nothing, even when the budget is used up. Then ``guard`` may raise,
        and nothing is written. Neither may write to the store.

        An entry has the ``day`` on which it is written, in UTC, or the one that is given: of an
        answer it is the day on which it was begun. A finer time would tell how long answers
        took, which follows from records, and be found from the digests if it were left out.

        Raises:
            InputError: when the body is not plain JSON or a name is not printable text.
            LedgerError: when the entry could not be written; then it was not.
        """
        for name in (kind, account):
            if not isinstance(name, str) or not name or not name.isprintable() or kind == GENESIS:
                raise InputError(f"{name!r} cannot name an account or a kind of entry.")
        if "totals" in body:
            raise InputError("The totals of an entry are computed; leave them out of its body.")
        process = os.getpid()
        with self._transaction("BEGIN IMMEDIATE") as connection:
            view = View(self.path, connection, account)
            found = reuse(view) if reuse is not None else None
            if found is not None:
                return found
            if guard is not None:
                guard(view)
            if os.getpid() != process:
                raise cannot(
                    self.path, "the process was forked within an operation", "Do not fork there."
                )
            if store_file.pragma(connection, "user_version") != VERSION:
                self._upgrade(connection)
                view = View(self.path, connection, account)
            row = _write(connection, kind, account, body, view.totals, day)
            self._commit(connection, Head(row[0], row[6]))
        if kind in ("debit", "step"):
            self._confirm(Head(row[0], row[6]))
        return entry_of(row)

    def _commit(self, connection: sqlite3.Connection, grown: Head) -> None:
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            connection.close()
            raise self._uncommitted(error, grown) from error
        self._seen = grown

    def _confirm(self, booked: Head) -> None:
        """Find the entry in the file again, and note it as confirmed; only then may noise follow.

        Raises:
            LedgerError: when that fails; the entry stays booked if it is there.
        """
        try:
            with self._transaction("BEGIN IMMEDIATE") as connection:
                row = store_file.read_row(connection, booked.count)
                if row is None or row[6] != booked.digest:
                    raise store_file.unsound(
                        self.path,
                        Problem(booked.count, "was written over by another program just now"),
                    )
                connection.execute(
                    "UPDATE witness SET (count, digest) = (SELECT count, digest FROM head)"
                )
                connection.execute("COMMIT")
        except LedgerError as error:
            reason = str(error).replace(" Nothing was spent.", "")
            raise LedgerError(
                f"Entry {booked.count} was booked and could not be confirmed. Nothing was drawn "
                f"or released for it; the entry stays booked. {reason}"
            ) from error

    def _upgrade(self, connection: sqlite3.Connection) -> None:
        """Turn an older file into one of this version, if all of it is sound.

        Version 2 has the same tables; from version 1 all balances are carried forward.
        """
        if problems := list(_walk(connection, None, set())):
            raise store_file.unsound(self.path, problems[0])
        if store_file.pragma(connection, "user_version") > 1:
            connection.execute(f"PRAGMA user_version = {VERSION}")
            return
        names = [name for (name,) in connection.execute("SELECT account FROM accounts").fetchall()]
        balances = {name: View(self.path, connection, name).totals for name in sorted(names)}
        for statement in store_file.ADDED:
            connection.execute(statement)
        connection.execute("INSERT INTO witness SELECT 1, count, digest FROM head")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        for entry in map(entry_of, connection.execute(_ALL).fetchall()):
            name = _answer(entry.kind, entry.account, entry.body)
            _note_answer(connection, entry.number, name)
        for name, totals in balances.items():
            _write(connection, "balance", name, {}, totals)

    def read(self, account: str, look: Callable[[View], Any]) -> Any:
        """Return what ``look`` finds in an account, in one transaction.

        Raises:
            LedgerError: when what it reads was changed or is missing.
        """
        with self._transaction("BEGIN") as connection:
            return look(View(self.path, connection, account))

    def read_all(self, look: Callable[[View], Any]) -> list[Any]:
        """Return what ``look`` finds in each account, in one transaction, by their names."""
        with self._transaction("BEGIN") as connection:
            rows = connection.execute("SELECT account FROM accounts").fetchall()
            return [look(View(self.path, connection, name)) for name in sorted(r[0] for r in rows)]

    def since(self, head: Head) -> list[Entry]:
        """Return the entries that came after a head of this ledger, in order."""
        with self._transaction("BEGIN") as connection:
            later = connection.execute(
                f"SELECT {store_file.COLUMNS} FROM entries WHERE number > ? ORDER BY number",
                (head.count,),
            ).fetchall()
            for row in later:
                if fault := altered(row):
                    raise store_file.unsound(self.path, Problem(row[0], fault))
            return [entry_of(row) for row in later]

    def entries(
        self, account: str | None = None, kinds: Iterable[str] | None = None
    ) -> list[Entry]:
        """Return the entries in order: of one account or of all, of some kinds or of all.

        Raises:
            LedgerError: when one of them was changed or is missing.
        """
        with self._transaction("BEGIN") as connection:
            if account is not None:
                found = store_file.read_account(self.path, connection, account)
            else:
                if problems := list(_walk(connection, None, set())):
                    raise store_file.unsound(self.path, problems[0])
                found = [entry_of(row) for row in connection.execute(_ALL)]
        wanted = None if kinds is None else frozenset(kinds)
        return [entry for entry in found if wanted is None or entry.kind in wanted]

    def accounts(self) -> list[str]:
        """Return the names of all accounts that have entries, sorted."""
        with self._transaction("BEGIN") as connection:
            rows = connection.execute("SELECT account FROM accounts").fetchall()
            return sorted(row[0] for row in rows)

    def head(self) -> Head:
        """Return the head: noted outside the file, it reveals an old copy put back."""
        with self._transaction("BEGIN") as connection:
            return store_file.read_head(connection)

    def verify(
        self, *, expected_head: Head | None = None, expected_digests: Iterable[str] = ()
    ) -> list[Problem]:
        """Check the whole ledger and return what is wrong with it; nothing when it is sound.

        Args:
            expected_head: A head noted earlier; the ledger must still contain it.
            expected_digests: Digests that releases carry; the ledger must contain each.
        """
        return verify(
            self.path,
            expected_head=expected_head,
            expected_digests=expected_digests,
            timeout=self.timeout,
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not ALONE.acquire(timeout=self.timeout):
            raise cannot(self.path, "another thread holds it", "Wait and ask again.")
        try:
            yield
        finally:
            ALONE.release()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        """Open, begin, do the cheap checks; leave without a commit and nothing has happened.

        Whatever a damaged file makes SQLite or Python raise becomes a LedgerError here.
        """
        with self._alone():
            try:
                with Place(self.path) as place:
                    place.check()
                    with closing(store_file.connect(self.path, self.timeout)) as connection:
                        connection.execute(begin)
                        # The first read takes the lock under which the size holds.
                        store_file.check_mark(self.path, connection)
                        head = store_file.check(self.path, connection, place.size())
                        writing = begin != "BEGIN"
                        if writing:
                            # Of a file that may only be read, SQLite says so at the first change;
                            # until then it has no lock to be asked for.
                            connection.execute("UPDATE head SET count = count WHERE 0")
                        place.check_names()
                        place.check_lock(writing=writing)
                        self._check_seen(connection, head)
                        yield connection
            except TulleError:
                raise
            except sqlite3.Error as error:
                raise store_file.explained(self.path, error, self.timeout) from error
            except Exception as error:
                raise store_file.unreadable(self.path, error) from error

    def _check_seen(self, connection: sqlite3.Connection, head: Head) -> None:
        """Refuse a file that no longer contains what this object has seen in it."""
        if self._seen is not None:
            row = store_file.read_row(connection, self._seen.count)
            if row is None or row[6] != self._seen.digest:
                raise cannot(
                    self.path,
                    "it was replaced by an older copy or another ledger while it was in use",
                    "Put the newest copy back.",
                )
        self._seen = head

    def _uncommitted(self, error: sqlite3.Error, grown: Head) -> LedgerError:
        """Explain a failed commit, after looking whether it took effect all the same.

        The last step of a commit syncs the folder. If only that fails, the entry is there.
        """
        explained = store_file.explained(self.path, error, self.timeout)
        try:
            with self._transaction("BEGIN") as connection:
                row = store_file.read_row(connection, grown.count)
        except LedgerError:
            return explained
        if row is None or row[6] != grown.digest:
            return explained
        return LedgerError(
            printable(
                f"The ledger {self.path} booked entry {grown.count} but the disk did not confirm "
                f"it ({error}). Nothing was drawn or released for it; the entry stays booked. "
                "Check the disk before asking again."
            )
        )


_ALL = f"SELECT {store_file.COLUMNS} FROM entries WHERE number > 0 ORDER BY number"


def _write(
    connection: sqlite3.Connection,
    kind: str,
    account: str,
    body: Mapping[str, Any],
    before: Totals,
    day: str | None = None,
) -> tuple[Any, ...]:
    """Write one entry with its totals, and what notes it; return its row."""
    head = store_file.read_head(connection)
    totals = before.after(kind, body)
    text = canonical({**body, "totals": totals.to_json()})
    content = (head.count + 1, kind, account, day or today(), text, head.digest)
    row = (*content, compute_digest(*content))
    connection.execute(store_file.INSERT, row)
    connection.execute("UPDATE head SET count = ?, digest = ?", (row[0], row[6]))
    connection.execute(
        "INSERT INTO accounts VALUES (?, 1, ?) ON CONFLICT (account)"
        " DO UPDATE SET count = count + 1, digest = excluded.digest",
        (account, row[6]),
    )
    _note_answer(connection, row[0], _answer(kind, account, body))
    return row


def _note_answer(connection: sqlite3.Connection, number: int, name: str | None) -> None:
    if name is not None:
        connection.execute("INSERT INTO answers VALUES (?, ?)", (name, number))


def _answer(kind: str, account: str, body: Mapping[str, Any]) -> str | None:
    """Return the name by which an entry is looked up: a kept answer, a version of the data."""
    if kind in ("open", "version") and "version" in body:
        return version_name(account, body["version"]["name"])
    if kind == "step":
        return stream_name(account, body["stream"], body["step"])
    if kind == "debit" and "stream" in body:
        return stream_name(account, body["key"])
    return answer_name(account, body["key"]) if kind == "release" and "key" in body else None


def verify(
    path: str | os.PathLike[str],
    *,
    expected_head: Head | None = None,
    expected_digests: Iterable[str] = (),
    timeout: float = 60.0,
) -> list[Problem]:
    """Check a whole ledger file, also one too damaged for a :class:`Store` to open.

    It reads the entries one by one, in one transaction: others can append when it is done.
    """
    path = real(path)
    problems: list[Problem] = []
    with ALONE, Place(path) as place:
        try:
            place.check()
            with closing(store_file.connect(path, timeout)) as connection:
                connection.execute("BEGIN")
                store_file.check_mark(path, connection)
                if fault := store_file.wrong_size(connection, place.size()):
                    problems.append(Problem(None, fault))
                if store_file.has_strange_tables(connection):
                    what = "its tables or triggers are not those of a ledger"
                    problems.append(Problem(None, what))
                problems.extend(_walk(connection, expected_head, set(expected_digests)))
                place.check_lock(writing=False)
                for (line,) in connection.execute("PRAGMA integrity_check(20)"):
                    if line != "ok":
                        problems.append(Problem(None, f"the file is damaged: {line}"))
        except sqlite3.Error as error:
            if store_file.primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN):
                raise store_file.explained(path, error, timeout) from error
            problems.append(Problem(None, f"the file is damaged: {error}"))
        except LedgerError as error:
            problems.append(Problem(None, str(error)))
        except Exception as error:  # noqa: BLE001 - whatever it is, the file is damaged
            problems.append(Problem(None, f"the file is damaged ({type(error).__name__})"))
    return problems


class _Audit:
    """Adds up the accounts and answers of a chain, entry by entry, for comparison."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._version = store_file.pragma(connection, "user_version")
        self._totals: dict[Any, Totals] = {}
        self._last: dict[Any, Any] = {}
        self._answers = 0
        self._stated = False
        self.whole = True
        """Whether all entries could be added up; after a break in the chain nothing adds up."""

    def problem(self, row: tuple[Any, ...]) -> str | None:
        """Add an entry that matches its digest; say what is wrong with what it states."""
        number, kind, account, _, _, _, digest = row
        try:
            body = entry_of(row).body
            totals = self._totals.get(account, Totals()).after(kind, body)
            name = _answer(kind, account, body)
        except Exception as error:  # noqa: BLE001 - content of any kind that is no entry's
            return f"cannot be read ({type(error).__name__})"
        self._totals[account], self._last[account] = totals, digest
        # Entries of version 1 state no totals; no such entry follows one that does.
        self._stated |= "totals" in body
        if self._stated and body.get("totals") != totals.to_json():
            return "states other totals than the entries up to it add up to"
        if name is not None and self._version > 1:
            self._answers += 1
            found = self._connection.execute(
                "SELECT 1 FROM answers WHERE key = ? AND number = ?", (name, number)
            )
            if found.fetchone() is None:
                return "is a kept answer that is not noted as one"
            if kind != "release":
                # An answer may be paid for again; a version, stream or step is there once.
                (times,) = self._connection.execute(
                    "SELECT count(*) FROM answers WHERE key = ?", (name,)
                ).fetchone()
                if times > 1:
                    return f"is a {kind} that was entered more than once"
        return None

    def problems(self) -> Iterator[Problem]:
        """Compare with what the file notes about the accounts and answers."""
        noted = {
            account: (count, digest)
            for account, count, digest in self._connection.execute("SELECT * FROM accounts")
        }
        for account in sorted(self._totals.keys() | noted.keys(), key=repr):
            counted = self._totals.get(account)
            expected = None if counted is None else (counted.entries, self._last[account])
            if expected != noted.get(account):
                what = f"account {account!r} has other entries than are noted for it"
                yield Problem(None, what)
        if self._version > 1:
            (count,) = self._connection.execute("SELECT count(*) FROM answers").fetchone()
            if count != self._answers:
                yield Problem(None, "answers are noted that are none")
            if fault := store_file.taken_back(self._connection):
                yield Problem(None, fault)


def _walk(
    connection: sqlite3.Connection, expected_head: Head | None, expected: set[str]
) -> Iterator[Problem]:
    """Follow the whole chain and yield every break in it."""
    previous, number = "", 0
    audit = _Audit(connection)
    with closing(
        connection.execute(f"SELECT {store_file.COLUMNS} FROM entries ORDER BY number")
    ) as rows:
        for row in rows:
            if row[0] != number:
                yield Problem(number, f"missing; the next one present is {row[0]}")
                number, previous = row[0], row[5]
                audit.whole = False
            if fault := altered(row):
                yield Problem(number, fault)
                audit.whole = False
            elif row[5] != previous:
                yield Problem(number, "does not follow from the entry before it")
                audit.whole = False
            elif number and audit.whole and (fault := audit.problem(row)):
                yield Problem(number, fault)
            if expected_head is not None and number == expected_head.count:
                if row[6] != expected_head.digest:
                    yield Problem(number, "is not the entry whose digest was noted outside")
                expected_head = None
            if not number and row[1] != GENESIS:
                yield Problem(0, "is not the beginning of a ledger")
            expected.discard(row[6])
            previous = row[6]
            number += 1
    heads = connection.execute("SELECT count, digest FROM head").fetchall()
    if heads != [(number - 1, previous)]:
        named = ", ".join(str(count) for count, _ in heads) or "none"
        what = f"the head names entry {named} as the last, and the last is {number - 1}"
        if heads and heads[0][0] == number - 1:
            what = f"the head names another entry {number - 1} as the last"
        yield Problem(number, what)
    if audit.whole:
        yield from audit.problems()
    if expected_head is not None:
        yield Problem(
            expected_head.count,
            f"missing: a head with {counted(expected_head.count, 'entry', 'entries')} was noted "
            f"outside, and this ledger has {number - 1}. An older copy was put back",
        )
    for digest in sorted(expected):
        yield Problem(
            None, f"no entry has the digest {digest} of a release. An older copy was put back"
        )
