"""The durable log below the ledger: one SQLite file, append-only, hash-chained.

Every entry carries a digest over itself and over the digest of the entry before it. A changed,
missing, reordered or inserted entry breaks the chain, and :meth:`Store.verify` says where. The
chain has no secret key: who rewrites the whole file can forge it, and who puts an old copy back
has a sound one. Both are found by comparing with what is outside the file: the :class:`Head`
that the custodian noted, and the digests that published releases carry.

Every read is checked as far as it goes: a budget is never computed from an entry that does not
match its digest, nor from fewer entries than were booked.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tulle.core import store_file
from tulle.core.chain import (
    GENESIS,
    Entry,
    Head,
    Problem,
    altered,
    canonical,
    compute_digest,
    entry_of,
)
from tulle.core.errors import InputError, LedgerError

# One lock for all stores of the process, held during every operation and across every fork.
# SQLite keeps a table of the locks that this process holds; a child forked in the middle of
# another thread's operation would inherit that table and believe that it holds them too.
# For the same reason no code here opens the ledger file by itself once it is in use: closing any
# descriptor of a file drops all POSIX locks that the process has on it, SQLite's included.
_LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )


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
        named = os.fsdecode(path)
        if not named or "\0" in named:
            raise InputError(f"path must name a file; got {named!r}.")
        if not timeout >= 0:
            raise InputError(f"timeout must be a number of seconds; got {timeout!r}.")
        # SQLite puts its journal beside the real file; a link must not give it a second place.
        self.path = Path(os.path.realpath(named))
        self.timeout = min(float(timeout), 1e6)  # SQLite counts milliseconds in 32 bits
        self._seen: Head | None = None
        if create and not os.path.exists(self.path):
            with self._alone():
                store_file.create(self.path)
        if not os.path.isfile(self.path):
            raise store_file.cannot(self.path, store_file.obstacle(self.path), "Check the path.")
        with self._transaction("BEGIN") as connection:
            self.identity: str = json.loads(store_file.read_row(connection, 0)[4])["id"]

    def append(
        self,
        kind: str,
        account: str,
        body: Mapping[str, Any],
        *,
        guard: Callable[[Sequence[Entry]], None] | None = None,
        reuse: Callable[[Sequence[Entry]], Entry | None] | None = None,
    ) -> Entry:
        """Append one entry and return it when it is on the disk.

        Both callables see all entries of the account, and no other writer can come in between.
        First ``reuse`` may return an existing entry, which is returned and nothing is written:
        an answer that is already there costs nothing, even when the budget is used up. Then
        ``guard`` may raise, and nothing is written. Neither may write to the store.

        Raises:
            InputError: when the body is not plain JSON or a name is not printable text.
            LedgerError: when the entry could not be written; then it was not.
        """
        for name in (kind, account):
            if not isinstance(name, str) or not name or not name.isprintable() or kind == GENESIS:
                raise InputError(f"{name!r} cannot name an account or a kind of entry.")
        text = canonical(body)
        process = os.getpid()
        with self._transaction("BEGIN IMMEDIATE") as connection:
            if guard is not None or reuse is not None:
                entries = store_file.read_account(self.path, connection, account)
                found = reuse(entries) if reuse is not None else None
                if found is not None:
                    return found
                if guard is not None:
                    guard(entries)
                if os.getpid() != process:
                    raise store_file.cannot(
                        self.path,
                        "the process was forked within an operation",
                        "Do not fork there.",
                    )
            head = store_file.read_head(connection)
            now = datetime.now(UTC).isoformat(timespec="microseconds")
            content = (head.count + 1, kind, account, now, text, head.digest)
            grown = Head(head.count + 1, compute_digest(*content))
            connection.execute(store_file.INSERT, (*content, grown.digest))
            connection.execute("UPDATE head SET count = ?, digest = ?", (grown.count, grown.digest))
            connection.execute(
                "INSERT INTO accounts VALUES (?, 1, ?) ON CONFLICT (account)"
                " DO UPDATE SET count = count + 1, digest = excluded.digest",
                (account, grown.digest),
            )
            try:
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                connection.close()
                raise self._uncommitted(error, grown) from error
            self._seen = grown
            return entry_of((*content, grown.digest))

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
                rows = connection.execute(
                    f"SELECT {store_file.COLUMNS} FROM entries WHERE number > 0 ORDER BY number"
                )
                found = [entry_of(row) for row in rows]
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
        if not _LOCK.acquire(timeout=self.timeout):
            raise store_file.cannot(self.path, "another thread holds it", "Wait and ask again.")
        try:
            yield
        finally:
            _LOCK.release()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        """Open, begin, do the cheap checks; leave without a commit and nothing has happened."""
        with self._alone():
            try:
                with closing(store_file.connect(self.path, self.timeout)) as connection:
                    connection.execute(begin)
                    head = store_file.check(self.path, connection)
                    self._check_seen(connection, head)
                    yield connection
            except sqlite3.Error as error:
                raise store_file.explained(self.path, error, self.timeout) from error

    def _check_seen(self, connection: sqlite3.Connection, head: Head) -> None:
        """Refuse a file that no longer contains what this object has seen in it."""
        if self._seen is not None:
            row = store_file.read_row(connection, self._seen.count)
            if row is None or row[6] != self._seen.digest:
                raise store_file.cannot(
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
            f"The ledger {self.path} booked entry {grown.count} but the disk did not confirm it "
            f"({error}). Nothing was drawn or released for it; the entry stays booked. Check the "
            "disk before asking again."
        )


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
    path = Path(os.path.realpath(path))
    problems: list[Problem] = []
    try:
        with _LOCK, closing(store_file.connect(path, timeout)) as connection:
            connection.execute("BEGIN")
            store_file.check_mark(path, connection)
            if store_file.has_strange_tables(connection):
                problems.append(Problem(None, "its tables or triggers are not those of a ledger"))
            problems.extend(_walk(connection, expected_head, set(expected_digests)))
            for (line,) in connection.execute("PRAGMA integrity_check(20)"):
                if line != "ok":
                    problems.append(Problem(None, f"the file is damaged: {line}"))
    except sqlite3.Error as error:
        if store_file.primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN):
            raise store_file.explained(path, error, timeout) from error
        problems.append(Problem(None, f"the file is damaged: {error}"))
    except LedgerError as error:
        problems.append(Problem(None, str(error)))
    return problems


def _walk(
    connection: sqlite3.Connection, expected_head: Head | None, expected: set[str]
) -> Iterator[Problem]:
    """Follow the whole chain and yield every break in it."""
    previous, number = "", 0
    tallies: dict[Any, tuple[int, Any]] = {}
    with closing(
        connection.execute(f"SELECT {store_file.COLUMNS} FROM entries ORDER BY number")
    ) as rows:
        for row in rows:
            if row[0] != number:
                yield Problem(number, f"missing; the next one present is {row[0]}")
                number, previous = row[0], row[5]
            if fault := altered(row):
                yield Problem(number, fault)
            elif row[5] != previous:
                yield Problem(number, "does not follow from the entry before it")
            if expected_head is not None and number == expected_head.count:
                if row[6] != expected_head.digest:
                    yield Problem(number, "is not the entry whose digest was noted outside")
                expected_head = None
            if number:
                tallies[row[2]] = (tallies.get(row[2], (0, ""))[0] + 1, row[6])
            elif row[1] != GENESIS:
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
    noted_tallies = {
        account: (count, digest)
        for account, count, digest in connection.execute("SELECT * FROM accounts").fetchall()
    }
    for account in sorted(tallies.keys() | noted_tallies.keys(), key=repr):
        if tallies.get(account) != noted_tallies.get(account):
            yield Problem(None, f"account {account!r} has other entries than are noted for it")
    if expected_head is not None:
        yield Problem(
            expected_head.count,
            f"missing: a head with {expected_head.count} entries was noted outside, and this "
            f"ledger has {number - 1}. An older copy was put back",
        )
    for digest in sorted(expected):
        yield Problem(
            None, f"no entry has the digest {digest} of a release. An older copy was put back"
        )
