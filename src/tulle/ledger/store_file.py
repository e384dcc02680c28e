"""The SQLite file of the ledger: how it is created, opened, read and checked."""

from __future__ import annotations

import os
import sqlite3
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

from tulle.core.errors import LedgerError
from tulle.core.validate import today
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
from tulle.ledger.store_place import DRAFT_SUFFIX, cannot, draft_prefix, obstacle
from tulle.ledger.totals import Totals

APPLICATION = 0x74756C6C
"""The mark ("tull") in the file's header that tells a ledger from other SQLite files."""

COLUMNS = "number, kind, account, time, body, previous, digest"
INSERT = f"INSERT INTO entries ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
FIRST_SCHEMA = (
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
"""The tables of version 1."""

ADDED = (
    # Where the kept answer to a question is, by the digest of account and question.
    "CREATE TABLE answers (key TEXT NOT NULL, number INTEGER NOT NULL,"
    " PRIMARY KEY (key, number)) WITHOUT ROWID",
    # The last entry that was confirmed in a transaction of its own. The table has a page of its
    # own: a journal that takes back entries cannot take back the confirmation as well.
    "CREATE TABLE witness (one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL,"
    " digest TEXT NOT NULL)",
)
"""What version 2 has in addition."""

SCHEMA = FIRST_SCHEMA + ADDED


def connect(path: Path, timeout: float) -> sqlite3.Connection:
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
        if pragma(connection, "journal_mode = DELETE") != "delete":
            raise cannot(
                path,
                "another program keeps it in another journal mode",
                "End the other program, then ask again.",
            )
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: past the drive's cache
    except BaseException:
        connection.close()
        raise
    return connection


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def create(path: Path) -> None:
    """Create the ledger under another name and link it into place when it is complete.

    A crash before the link leaves no ledger, only a hidden draft that nobody reads and that may
    be deleted. Of two processes that create at once, one's link fails and it uses the other's; a
    rename would replace the other's.
    """
    draft = path.with_name(f"{draft_prefix(path)}{uuid.uuid4().hex}{DRAFT_SUFFIX}")
    journal = path.with_name(f"{path.name}-journal")
    if os.path.exists(journal) and not os.path.exists(path):
        raise cannot(
            path,
            f"its journal {journal.name} is there but the ledger is not: it was moved or deleted "
            "after a crash",
            "Put it back beside its journal, or delete the journal to begin a new ledger.",
        )
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            with closing(connect(draft, 0.0)) as connection:
                _fill(connection)
            try:
                os.link(draft, path)
            except FileExistsError:
                return
        finally:
            draft.unlink(missing_ok=True)  # who opens the ledger meanwhile removes it too
        _sync_folder(path.parent)
    except OSError as error:
        reason = f"it cannot be created ({error.strerror})"
        raise cannot(
            path, reason, "Choose a folder that exists, has space and allows writing and links."
        ) from error
    except sqlite3.Error as error:
        raise explained(path, error, 0.0) from error


def _fill(connection: sqlite3.Connection) -> None:
    """Write the tables and the genesis entry, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in SCHEMA:
        connection.execute(statement)
    # A ledger's identity tells it from others; it is no noise and protects nothing, so it does
    # not come from a noise source.
    body = canonical({"id": uuid.uuid4().hex, "version": VERSION})
    row = (0, GENESIS, "", today(), body, "")
    digest = compute_digest(*row)
    connection.execute(INSERT, (*row, digest))
    connection.execute("INSERT INTO head VALUES (1, 0, ?)", (digest,))
    connection.execute("INSERT INTO witness VALUES (1, 0, ?)", (digest,))
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


def pragma(connection: sqlite3.Connection, name: str) -> Any:
    """Return the value of a setting of the file."""
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def read_row(connection: sqlite3.Connection, number: int) -> Any:
    """Return one row by its number, or None."""
    rows = connection.execute(f"SELECT {COLUMNS} FROM entries WHERE number = ?", (number,))
    found = rows.fetchall()
    return found[0] if found else None


def read_head(connection: sqlite3.Connection) -> Head:
    """Return the head as the file states it."""
    return Head(*connection.execute("SELECT count, digest FROM head").fetchall()[0])


def check_mark(path: Path, connection: sqlite3.Connection) -> int:
    """Return the version of the format; refuse a file of another program or a newer version."""
    if pragma(connection, "application_id") != APPLICATION:
        raise cannot(
            path, "it is not a ledger of tulle", "Give the path of a ledger, or of a new file."
        )
    version = pragma(connection, "user_version")
    if version not in range(1, VERSION + 1):
        raise cannot(
            path,
            f"its format has version {version}, and this tulle reads version {VERSION}",
            "Use the tulle that wrote it, or a newer one.",
        )
    return int(version)


def has_strange_tables(connection: sqlite3.Connection) -> bool:
    """Tell whether the tables, triggers and settings differ from those of a new ledger."""
    statements = connection.execute(
        "SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite^_%' ESCAPE '^'"
    ).fetchall()
    known = FIRST_SCHEMA if pragma(connection, "user_version") == 1 else SCHEMA
    # Pages are never moved, so a map of them can only come from damage.
    return bool(
        sorted(str(sql) for (sql,) in statements) != sorted(known)
        or pragma(connection, "auto_vacuum")
    )


def wrong_free_pages(connection: sqlite3.Connection) -> str | None:
    """Say that a page is listed as free and is in use, or None; SQLite would write over it.

    Rows that move to make room for another, of the index of accounts, may leave a page free. The
    next entries take it, so that there is hardly ever one, and the whole file can be gone through.
    """
    if not pragma(connection, "freelist_count") or pragma(connection, "quick_check(1)") == "ok":
        return None
    return "its list of free pages is not one"


def wrong_size(connection: sqlite3.Connection, size: int) -> str | None:
    """Say that a file has another size than its pages make, or None."""
    # Else a lost page would be noticed by whoever reads it, or never when it is written anew.
    if size == pragma(connection, "page_count") * pragma(connection, "page_size"):
        return None
    return "the file is shorter or longer than its pages"


def check(path: Path, connection: sqlite3.Connection, size: int) -> Head:
    """Do the checks that do not grow with the history: size, format, ends, witness.

    Where a page is free they do (:func:`wrong_free_pages`).
    """
    version = check_mark(path, connection)
    if fault := wrong_size(connection, size):
        raise unsound(path, Problem(None, fault))
    if has_strange_tables(connection):
        what = "its tables or triggers are not those of a ledger"
        raise unsound(path, Problem(None, what))
    if fault := wrong_free_pages(connection):
        raise unsound(path, Problem(None, fault))
    heads = connection.execute("SELECT count, digest FROM head").fetchall()
    last = connection.execute(f"SELECT {COLUMNS} FROM entries ORDER BY number DESC LIMIT 1")
    ends = last.fetchall()
    # As many steps as there are accounts. One that lost its note would look like a new one.
    (tally,) = connection.execute("SELECT coalesce(sum(count), 0) FROM accounts").fetchone()
    genesis = read_row(connection, 0)
    if len(heads) != 1 or not ends or heads[0] != (ends[0][0], ends[0][6]):
        raise unsound(path, Problem(None, "its last entry is not the one that its head names"))
    if fault := altered(ends[0]):
        raise unsound(path, Problem(ends[0][0], fault))
    if genesis is None or genesis[1] != GENESIS or altered(genesis):
        raise unsound(path, Problem(0, "is missing or was changed"))
    if tally != heads[0][0]:
        raise unsound(path, Problem(None, "its accounts do not add up to its entries"))
    if version > 1 and (fault := taken_back(connection)):
        raise unsound(path, Problem(None, fault))
    return Head(*heads[0])


def taken_back(connection: sqlite3.Connection) -> str | None:
    """Say that the last confirmed entry is not there any more, or None."""
    noted = connection.execute("SELECT count, digest FROM witness").fetchall()
    if len(noted) == 1:
        ((count, digest),) = noted
        found = connection.execute("SELECT digest FROM entries WHERE number = ?", (count,))
        if found.fetchall() == [(digest,)]:
            return None
    return (
        "the last entry that was confirmed is missing: a journal that does not belong to the "
        "file as it was took it back"
    )


def read_account(path: Path, connection: sqlite3.Connection, account: str) -> list[Entry]:
    """Return the account's entries, after checking each and that none is missing."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM entries WHERE account = ? AND number > 0 ORDER BY number",
        (account,),
    ).fetchall()
    noted = connection.execute(
        "SELECT count, digest FROM accounts WHERE account = ?", (account,)
    ).fetchall()
    for row in rows:
        if fault := altered(row):
            raise unsound(path, Problem(row[0], fault))
    if noted != ([(len({row[0] for row in rows}), rows[-1][6])] if rows else []):
        raise unsound(path, _other_entries(account))
    return [entry_of(row) for row in rows]


def _other_entries(account: Any) -> Problem:
    return Problem(None, f"account {account!r} has other entries than are noted for it")


class View:
    """One account within a transaction; what it reads does not grow with the history.

    In a file of version 1, which has no totals, it reads the whole account.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, account: str) -> None:
        self._path, self._connection, self._account = path, connection, account
        self._whole: list[Entry] | None = None
        if pragma(connection, "user_version") == 1:
            self._whole = read_account(path, connection, account)
            self.totals = Totals()
            for entry in self._whole:
                self.totals = self.totals.after(entry.kind, entry.body)
        else:
            self.totals = self._last_totals()

    def _last_totals(self) -> Totals:
        """Return the totals that the last entry states, if index, note and entry agree on it."""
        last = self._one("ORDER BY number DESC")
        noted = self._connection.execute(
            "SELECT count, digest FROM accounts WHERE account = ?", (self._account,)
        ).fetchall()
        if last is None and not noted:
            return Totals()
        if last is not None:
            totals = Totals.from_json(last.body["totals"])
            if noted == [(totals.entries, last.digest)]:
                return totals
        raise unsound(self._path, _other_entries(self._account))

    def _one(self, order: str) -> Entry | None:
        rows = self._connection.execute(
            f"SELECT {COLUMNS} FROM entries INDEXED BY entries_account"
            f" WHERE account = ? AND number > 0 {order} LIMIT 1",
            (self._account,),
        ).fetchall()
        return self._checked(rows[0]) if rows else None

    def _checked(self, row: tuple[Any, ...]) -> Entry:
        if fault := altered(row):
            raise unsound(self._path, Problem(row[0], fault))
        return entry_of(row)

    def accounts(self) -> list[str]:
        """Return the names of all accounts of the ledger, sorted."""
        rows = self._connection.execute("SELECT account FROM accounts").fetchall()
        return sorted(row[0] for row in rows)

    def first(self) -> Entry | None:
        """Return the account's first entry, which opened it."""
        return self._one("ORDER BY number")

    def kept(self, key: str) -> Entry | None:
        """Return the newest kept answer to the question of this key, if there is one."""
        if self._whole is not None:
            answers = (e for e in reversed(self._whole) if e.kind == "release")
            return next((e for e in answers if e.body["key"] == key), None)
        entry = self._noted(answer_name(self._account, key), ("release",))
        if entry is not None and entry.body["key"] != key:
            raise unsound(self._path, Problem(entry.number, "is the answer to another question"))
        return entry

    def version(self, name: str | None = None) -> Entry | None:
        """Return the entry that declared a version of the data; without a name, the present one."""
        if self._whole is not None or (name is None and self.totals.version is None):
            return None
        wanted = self.totals.version.name if name is None and self.totals.version else name
        entry = self._noted(version_name(self._account, str(wanted)), ("open", "version"))
        if entry is None and name is None:
            raise unsound(self._path, Problem(None, "its present version is not noted"))
        if entry is not None and entry.body["version"]["name"] != wanted:
            raise unsound(self._path, Problem(entry.number, "declares another version"))
        return entry

    def stream(self, key: str) -> Entry | None:
        """Return the debit of the stream of this key, if there is one."""
        if self._whole is not None:
            return None
        entry = self._noted(stream_name(self._account, key), ("debit",))
        if entry is not None and entry.body["key"] != key:
            raise unsound(self._path, Problem(entry.number, "is the debit of another stream"))
        return entry

    def step(self, stream: str, number: int) -> Entry | None:
        """Return the entry of a stream's step, if it was released; the stream by its debit."""
        if self._whole is not None:
            return None
        entry = self._noted(stream_name(self._account, stream, number), ("step",))
        if entry is not None and (entry.body["stream"], entry.body["step"]) != (stream, number):
            raise unsound(self._path, Problem(entry.number, "is another step"))
        return entry

    def _noted(self, name: str, kinds: tuple[str, ...]) -> Entry | None:
        """Return the newest entry that is noted under a name, after checking that it is one."""
        numbers = self._connection.execute(
            "SELECT number FROM answers WHERE key = ? ORDER BY number DESC LIMIT 1", (name,)
        ).fetchall()
        if not numbers:
            return None
        row = read_row(self._connection, numbers[0][0])
        entry = None if row is None else self._checked(row)
        if entry is None or entry.account != self._account or entry.kind not in kinds:
            raise unsound(self._path, Problem(numbers[0][0], "is not the answer it is noted as"))
        return entry


def unsound(path: Path, problem: Problem) -> LedgerError:
    """Return the error for a file that fails its checks."""
    return LedgerError(
        printable(
            f"The ledger {path} fails its checks: {problem}. Nothing was spent. Do not go on with "
            "it: put back the newest sound copy, and compare it with the releases that are out."
        )
    )


def unreadable(path: Path, error: Exception) -> LedgerError:
    """Return the error for content that cannot be read as that of a ledger."""
    what = f"its content cannot be read ({type(error).__name__})"
    return unsound(path, Problem(None, what))


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code; errors of the Python module itself have none."""
    return int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def explained(path: Path, error: sqlite3.Error, timeout: float) -> LedgerError:
    """Turn an error of SQLite into one paragraph: what happened, and what to do."""
    explanations = {
        sqlite3.SQLITE_BUSY: (
            f"another program has kept it locked for {timeout:g} s",
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
            else f"it cannot be opened ({obstacle(path)})",
            "Check the path and the permissions of the file and its folder.",
        ),
    }
    reason, remedy = explanations.get(
        primary_code(error),
        (f"SQLite reports: {error}", "Verify the ledger, or put back the newest sound copy."),
    )
    return cannot(path, reason, remedy)
