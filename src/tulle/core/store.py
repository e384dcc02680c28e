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

import hashlib
import json
import os
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tulle.core.errors import InputError, LedgerError

APPLICATION = 0x74756C6C
"""The mark ("tull") in the file's header that tells a ledger from other SQLite files."""

VERSION = 1
"""The version of the file format; it also enters every digest."""

GENESIS = "genesis"
"""The kind of entry number 0, which begins the chain and belongs to no account."""

_COLUMNS = "number, kind, account, time, body, previous, digest"
_INSERT = f"INSERT INTO entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
_SCHEMA = (
    # Types are checked here because SQLite would store text in an integer column and back.
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, account TEXT NOT NULL,"
    " time TEXT NOT NULL, body TEXT NOT NULL, previous TEXT NOT NULL, digest TEXT NOT NULL,"
    " CHECK (typeof(kind) = 'text' AND typeof(account) = 'text' AND typeof(time) = 'text'"
    " AND typeof(body) = 'text' AND typeof(previous) = 'text' AND typeof(digest) = 'text'))",
    "CREATE INDEX entries_account ON entries (account)",
    # The last entry overall and of each account, so that missing last entries are noticed.
    "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL,"
    " digest TEXT NOT NULL)",
    "CREATE TABLE accounts (account TEXT PRIMARY KEY NOT NULL, count INTEGER NOT NULL,"
    " digest TEXT NOT NULL)",
    "CREATE TRIGGER entries_stay BEFORE UPDATE ON entries"
    " BEGIN SELECT RAISE(ABORT, 'ledger entries cannot be changed'); END",
    "CREATE TRIGGER entries_remain BEFORE DELETE ON entries"
    " BEGIN SELECT RAISE(ABORT, 'ledger entries cannot be deleted'); END",
    # INSERT OR REPLACE deletes without firing the trigger above; this one fires before it.
    "CREATE TRIGGER entries_follow BEFORE INSERT ON entries"
    " WHEN NEW.number IS NOT (SELECT coalesce(max(number) + 1, 0) FROM entries)"
    " BEGIN SELECT RAISE(ABORT, 'ledger entries can only be appended'); END",
)

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

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True)
class Entry:
    """One line of the log."""

    number: int
    kind: str
    account: str
    time: str
    body: Mapping[str, Any]
    previous: str
    digest: str


@dataclass(frozen=True)
class Head:
    """How many entries a ledger has and the digest of the last: note it outside the file.

    Example:
        >>> Head.parse("2:" + "ab" * 32).count
        2
    """

    count: int
    digest: str

    def __str__(self) -> str:
        return f"{self.count}:{self.digest}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Read back what ``str`` wrote.

        Raises:
            InputError: when the text is not a head.
        """
        count, _, digest = text.strip().partition(":")
        hexadecimal = len(digest) == 64 and not set(digest) - set("0123456789abcdef")
        if not (count.isascii() and count.isdigit() and hexadecimal):
            raise InputError(
                f"A head is written count:digest, as the ledger shows it; got {text!r}."
            )
        return cls(int(count), digest)


@dataclass(frozen=True)
class Problem:
    """Something that is wrong with a ledger; ``number`` is the entry's, if it is about one."""

    number: int | None
    what: str

    def __str__(self) -> str:
        return self.what if self.number is None else f"entry {self.number}: {self.what}"


def canonical(body: Mapping[str, Any]) -> str:
    """Return the one JSON text for ``body``: sorted keys, no spaces, ASCII, finite numbers.

    Raises:
        InputError: when it holds anything that JSON cannot write and read back unchanged.
    """
    try:
        _check_keys(body)
        return _JSON.encode(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"A ledger entry must be plain JSON with text keys and finite numbers ({error})."
        ) from None


def _check_keys(value: Any) -> None:
    # json writes the keys 1 and "1" alike; two bodies must never have one text.
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not text")
            _check_keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_keys(item)


def compute_digest(
    number: int, kind: str, account: str, time: str, body: str, previous: str
) -> str:
    """Return the SHA-256 over an entry, as hexadecimal; ``body`` is the canonical text.

    JSON quotes every part, so no two different entries have one encoding.
    """
    parts = ["tulle ledger", VERSION, number, kind, account, time, body, previous]
    return hashlib.sha256(_JSON.encode(parts).encode("ascii")).hexdigest()


def _altered(row: tuple[Any, ...]) -> str | None:
    try:
        sound = compute_digest(*row[:6]) == row[6]
    except (TypeError, ValueError):  # a column of another type than text
        sound = False
    return None if sound else "does not match its digest: it was changed after it was written"


def _entry(row: tuple[Any, ...]) -> Entry:
    number, kind, account, time, body, previous, digest = row
    return Entry(number, kind, account, time, json.loads(body), previous, digest)


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
                _create(self.path)
        if not os.path.isfile(self.path):
            raise _cannot(self.path, _obstacle(self.path), "Check the path.")
        with self._transaction("BEGIN") as connection:
            self.identity: str = json.loads(_row(connection, 0)[4])["id"]

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
                entries = _read_account(self.path, connection, account)
                found = reuse(entries) if reuse is not None else None
                if found is not None:
                    return found
                if guard is not None:
                    guard(entries)
                if os.getpid() != process:
                    raise _cannot(
                        self.path,
                        "the process was forked within an operation",
                        "Do not fork there.",
                    )
            head = _read_head(connection)
            now = datetime.now(UTC).isoformat(timespec="microseconds")
            content = (head.count + 1, kind, account, now, text, head.digest)
            grown = Head(head.count + 1, compute_digest(*content))
            connection.execute(_INSERT, (*content, grown.digest))
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
            return _entry((*content, grown.digest))

    def entries(
        self, account: str | None = None, kinds: Iterable[str] | None = None
    ) -> list[Entry]:
        """Return the entries in order: of one account or of all, of some kinds or of all.

        Raises:
            LedgerError: when one of them was changed or is missing.
        """
        with self._transaction("BEGIN") as connection:
            if account is not None:
                found = _read_account(self.path, connection, account)
            else:
                if problems := list(_walk(connection, None, set())):
                    raise _unsound(self.path, problems[0])
                rows = connection.execute(
                    f"SELECT {_COLUMNS} FROM entries WHERE number > 0 ORDER BY number"
                )
                found = [_entry(row) for row in rows]
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
            return _read_head(connection)

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
            raise _cannot(self.path, "another thread holds it", "Wait and ask again.")
        try:
            yield
        finally:
            _LOCK.release()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        """Open, begin, do the cheap checks; leave without a commit and nothing has happened."""
        with self._alone():
            try:
                with closing(_connect(self.path, self.timeout)) as connection:
                    connection.execute(begin)
                    head = _check(self.path, connection)
                    self._check_seen(connection, head)
                    yield connection
            except sqlite3.Error as error:
                raise _explained(self.path, error, self.timeout) from error

    def _check_seen(self, connection: sqlite3.Connection, head: Head) -> None:
        """Refuse a file that no longer contains what this object has seen in it."""
        if self._seen is not None:
            row = _row(connection, self._seen.count)
            if row is None or row[6] != self._seen.digest:
                raise _cannot(
                    self.path,
                    "it was replaced by an older copy or another ledger while it was in use",
                    "Put the newest copy back.",
                )
        self._seen = head

    def _uncommitted(self, error: sqlite3.Error, grown: Head) -> LedgerError:
        """Explain a failed commit, after looking whether it took effect all the same.

        The last step of a commit syncs the folder. If only that fails, the entry is there.
        """
        explained = _explained(self.path, error, self.timeout)
        try:
            with self._transaction("BEGIN") as connection:
                row = _row(connection, grown.count)
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
        with _LOCK, closing(_connect(path, timeout)) as connection:
            connection.execute("BEGIN")
            _check_mark(path, connection)
            if _strange_tables(connection):
                problems.append(Problem(None, "its tables or triggers are not those of a ledger"))
            problems.extend(_walk(connection, expected_head, set(expected_digests)))
            for (line,) in connection.execute("PRAGMA integrity_check(20)"):
                if line != "ok":
                    problems.append(Problem(None, f"the file is damaged: {line}"))
    except sqlite3.Error as error:
        if _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN):
            raise _explained(path, error, timeout) from error
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
    with closing(connection.execute(f"SELECT {_COLUMNS} FROM entries ORDER BY number")) as rows:
        for row in rows:
            if row[0] != number:
                yield Problem(number, f"missing; the next one present is {row[0]}")
                number, previous = row[0], row[5]
            if fault := _altered(row):
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


def _connect(path: Path, timeout: float) -> sqlite3.Connection:
    """Open an existing file, set for durable commits."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, timeout=timeout, isolation_level=None
    )
    try:
        # Damaged text must reach the digest check, which can say which entry it is in.
        connection.text_factory = _decode
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        # A rollback journal keeps the ledger one file that can be copied when no one writes. A
        # commit happens when the journal is deleted; EXTRA also syncs the folder after that. With
        # FULL a power loss could bring the journal back and take back a debit whose noise is out.
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: past the drive's cache
    except BaseException:
        connection.close()
        raise
    return connection


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _create(path: Path) -> None:
    """Create the ledger under another name and link it into place when it is complete.

    A crash before the link leaves no ledger, only a hidden draft that nobody reads and that may
    be deleted. Of two processes that create at once, one's link fails and it uses the other's; a
    rename would replace the other's.
    """
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.draft")
    journal = path.with_name(f"{path.name}-journal")
    if os.path.exists(journal) and not os.path.exists(path):
        raise _cannot(
            path,
            f"its journal {journal.name} is there but the ledger is not: it was moved or deleted "
            "after a crash",
            "Put it back beside its journal, or delete the journal to begin a new ledger.",
        )
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            with closing(_connect(draft, 0.0)) as connection:
                _fill(connection)
            try:
                os.link(draft, path)
            except FileExistsError:
                return
        finally:
            draft.unlink()
        _sync_folder(path.parent)
    except OSError as error:
        reason = f"it cannot be created ({error.strerror})"
        raise _cannot(
            path, reason, "Choose a folder that exists, has space and allows writing and links."
        ) from error
    except sqlite3.Error as error:
        raise _explained(path, error, 0.0) from error


def _fill(connection: sqlite3.Connection) -> None:
    """Write the tables and the genesis entry, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA:
        connection.execute(statement)
    # A ledger's identity tells it from others; it is no noise and protects nothing, so it does
    # not come from a noise source.
    body = canonical({"id": uuid.uuid4().hex, "version": VERSION})
    row = (0, GENESIS, "", datetime.now(UTC).isoformat(timespec="microseconds"), body, "")
    digest = compute_digest(*row)
    connection.execute(_INSERT, (*row, digest))
    connection.execute("INSERT INTO head VALUES (1, 0, ?)", (digest,))
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _row(connection: sqlite3.Connection, number: int) -> Any:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM entries WHERE number = ?", (number,))
    found = rows.fetchall()
    return found[0] if found else None


def _read_head(connection: sqlite3.Connection) -> Head:
    return Head(*connection.execute("SELECT count, digest FROM head").fetchall()[0])


def _check_mark(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a file of another program or of another version."""
    if _pragma(connection, "application_id") != APPLICATION:
        raise _cannot(
            path, "it is not a ledger of tulle", "Give the path of a ledger, or of a new file."
        )
    version = _pragma(connection, "user_version")
    if version != VERSION:
        raise _cannot(
            path,
            f"its format has version {version}, and this tulle reads version {VERSION}",
            "Use the tulle that wrote it, or a newer one.",
        )


def _strange_tables(connection: sqlite3.Connection) -> bool:
    """Tell whether the tables, triggers and settings differ from those of a new ledger."""
    statements = connection.execute(
        "SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite^_%' ESCAPE '^'"
    ).fetchall()
    # The log never frees a page. A free list, or room for one, can only come from damage, and
    # SQLite would write the next entry over live pages.
    return bool(
        sorted(str(sql) for (sql,) in statements) != sorted(_SCHEMA)
        or _pragma(connection, "freelist_count")
        or _pragma(connection, "auto_vacuum")
    )


def _check(path: Path, connection: sqlite3.Connection) -> Head:
    """Do the cheap checks: format, first and last entry against the head, number of entries."""
    _check_mark(path, connection)
    if _strange_tables(connection):
        what = "its tables or triggers are not those of a ledger"
        raise _unsound(path, Problem(None, what))
    heads = connection.execute("SELECT count, digest FROM head").fetchall()
    last = connection.execute(f"SELECT {_COLUMNS} FROM entries ORDER BY number DESC LIMIT 1")
    ends = last.fetchall()
    (tally,) = connection.execute("SELECT coalesce(sum(count), 0) FROM accounts").fetchone()
    genesis = _row(connection, 0)
    if len(heads) != 1 or not ends or heads[0] != (ends[0][0], ends[0][6]):
        raise _unsound(path, Problem(None, "its last entry is not the one that its head names"))
    if fault := _altered(ends[0]):
        raise _unsound(path, Problem(ends[0][0], fault))
    if genesis is None or genesis[1] != GENESIS or _altered(genesis):
        raise _unsound(path, Problem(0, "is missing or was changed"))
    if tally != heads[0][0]:
        raise _unsound(path, Problem(None, "its accounts do not add up to its entries"))
    return Head(*heads[0])


def _read_account(path: Path, connection: sqlite3.Connection, account: str) -> list[Entry]:
    """Return the account's entries, after checking each and that none is missing."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM entries WHERE account = ? AND number > 0 ORDER BY number",
        (account,),
    ).fetchall()
    noted = connection.execute(
        "SELECT count, digest FROM accounts WHERE account = ?", (account,)
    ).fetchall()
    for row in rows:
        if fault := _altered(row):
            raise _unsound(path, Problem(row[0], fault))
    if noted != ([(len({row[0] for row in rows}), rows[-1][6])] if rows else []):
        what = f"account {account!r} has other entries than are noted for it"
        raise _unsound(path, Problem(None, what))
    return [_entry(row) for row in rows]


def _cannot(path: Path, reason: str, remedy: str) -> LedgerError:
    return LedgerError(f"The ledger {path} cannot be used: {reason}. Nothing was spent. {remedy}")


def _unsound(path: Path, problem: Problem) -> LedgerError:
    return LedgerError(
        f"The ledger {path} fails its checks: {problem}. Nothing was spent. Do not go on with it: "
        "put back the newest sound copy, and compare it with the releases that are out."
    )


def _obstacle(path: Path) -> str:
    # Functions of os.path: methods of Path raise when a folder may not be entered.
    if os.path.isdir(path):
        return "it is a folder"
    if os.path.exists(path):
        return "it is not a regular file"
    return "it does not exist" if os.path.isdir(path.parent) else "its folder does not exist"


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code; errors of the Python module itself have none."""
    return int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def _explained(path: Path, error: sqlite3.Error, timeout: float) -> LedgerError:
    """Turn an error of SQLite into one paragraph: what happened, and what to do."""
    explanations = {
        sqlite3.SQLITE_BUSY: (
            f"another program has kept it locked for {timeout:g} seconds",
            "Wait for the other program or end it, then ask again.",
        ),
        sqlite3.SQLITE_READONLY: (
            "it cannot be written",
            "Make the file and its folder writable, then ask again.",
        ),
        sqlite3.SQLITE_FULL: ("the disk is full", "Make space, then ask again."),
        sqlite3.SQLITE_IOERR: (
            f"the disk refused to read or write ({error})",
            "Check its space, quota and health, then ask again.",
        ),
        sqlite3.SQLITE_NOTADB: (
            "it is not a ledger of tulle, or its beginning is damaged",
            "Give the path of a ledger, or put back the newest sound copy.",
        ),
        sqlite3.SQLITE_CORRUPT: (
            f"the file is damaged ({error})",
            "Put back the newest sound copy, and compare it with the releases that are out.",
        ),
        sqlite3.SQLITE_CANTOPEN: (
            "it, or the journal beside it, cannot be opened"
            if os.path.isfile(path)
            else f"it cannot be opened ({_obstacle(path)})",
            "Check the path and the permissions of the file and its folder.",
        ),
    }
    reason, remedy = explanations.get(
        _code(error),
        (f"SQLite reports: {error}", "Verify the ledger, or put back the newest sound copy."),
    )
    return _cannot(path, reason, remedy)
