"""Whether the place of a ledger keeps what SQLite takes for granted: one name, locks that exclude.

The same holds for the account of a survey's client, which is a file of this kind too.

SQLite looks for the journal of an unfinished transaction beside the name by which a file was
opened. By another name the journal is not found, others go on, and the first name's journal later
takes back what they booked. So a file with two names is refused, and so is a journal that is older
than the file. SQLite believes a file system that grants every lock. So the lock that was just
taken is asked for once more, by another descriptor, which must be refused.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import struct
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from tulle.core.errors import InputError, LedgerError, raise_alone
from tulle.ledger.chain import printable

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows, where locks are enforced by the system
    fcntl = None

MAGIC = bytes.fromhex("d9d505f920a163d7")
"""The beginning of a journal that is in force (SQLite's file format, section 3)."""

RESERVED, SHARED, SHARED_LENGTH = 0x40000001, 0x40000002, 510
"""The bytes that SQLite locks: one for who writes, some for who reads."""

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would change line ends

# One lock for all files of the process, held during every operation and across every fork.
# SQLite keeps a table of the locks that this process holds; a child forked in the middle of
# another thread's operation would inherit that table and believe that it holds them too.
# Also, closing any descriptor of a file drops all POSIX locks that the process has on it, SQLite's
# included: the one descriptor of our own (Place) outlives the transaction it is used with.
ALONE = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=ALONE.acquire, after_in_parent=ALONE.release, after_in_child=ALONE.release
    )

LOCAL_LOCKS = frozenset({"nolock", "local_lock=all", "local_lock=posix", "nobrl"})
"""Options by which a network mount is told to keep its locks from the other machines."""


def cannot(path: Path, reason: str, remedy: str, what: str = "ledger") -> LedgerError:
    """Return the error for a file that cannot be used, with what to do."""
    return LedgerError(
        printable(f"The {what} {path} cannot be used: {reason}. Nothing was spent. {remedy}")
    )


def real(path: str | os.PathLike[str]) -> Path:
    """Return where a file really lies: a link must not give its journal a second place.

    Raises:
        InputError: when it names no file.
    """
    try:
        name = os.fsdecode(path)
        whole = name and "\0" not in name and os.fsencode(name)
    except (TypeError, UnicodeError):
        whole = b""
    if not whole:
        raise InputError(f"path must name a file; got {path!r}.")
    return Path(os.path.realpath(name))


def obstacle(path: Path) -> str:
    """Say in words why a path is no ledger file."""
    # Functions of os.path: methods of Path raise when a folder may not be entered.
    if os.path.isdir(path):
        return "it is a folder"
    if os.path.exists(path):
        return "it is not a regular file"
    return "it does not exist" if os.path.isdir(path.parent) else "its folder does not exist"


def draft_prefix(path: Path) -> str:
    """Return how the names of drafts begin, from which a ledger is created."""
    return f".{path.name}."


DRAFT_SUFFIX = ".draft"


class Place:
    """A descriptor of the ledger's file, held open around one operation.

    It is opened before SQLite's and closed after it: closing any descriptor of a file drops all
    POSIX locks that the process has on it.

    Raises:
        LedgerError: from the constructor and the checks, when the place cannot be relied on.
    """

    def __init__(self, path: Path, what: str = "ledger") -> None:
        self.path, self.what = path, what
        if not os.path.isfile(path):
            raise self._cannot(f"it cannot be opened ({obstacle(path)})", "Check the path.")
        try:
            try:
                self._descriptor, self._writable = os.open(path, os.O_RDWR | _BINARY), True
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                    raise
                self._descriptor, self._writable = os.open(path, os.O_RDONLY | _BINARY), False
        except OSError as error:
            raise_alone(
                self._cannot(
                    f"it cannot be opened ({error.strerror})",
                    "Check the path and the permissions of the file and its folder.",
                )
            )

    def _cannot(self, reason: str, remedy: str) -> LedgerError:
        return cannot(self.path, reason, remedy, self.what)

    def __enter__(self) -> Place:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    def size(self) -> int:
        """Return how many bytes the file has; it does not change under a lock."""
        return os.fstat(self._descriptor).st_size

    def check(self) -> None:
        """Check the names and the journal, before SQLite may follow that journal."""
        self.check_names()
        self._check_mount()
        self._check_journal()

    def check_names(self) -> None:
        """Refuse a file that has a second name (a hard link), or another than it was opened by."""
        found = os.fstat(self._descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise self._cannot("it is not a regular file", "Check the path.")
        if found.st_nlink > 1:
            self._remove_drafts(found)
            found = os.fstat(self._descriptor)
        if found.st_nlink > 1:
            raise self._cannot(
                f"the file has {found.st_nlink} names (hard links). After a crash, what is booked "
                "by one name can be undone by the other",
                "Remove the other names; to keep a copy, copy the file.",
            )

    def _remove_drafts(self, found: os.stat_result) -> None:
        """Remove names that an interrupted creation left behind; those are only drafts."""
        folder, prefix = self.path.parent, draft_prefix(self.path)
        try:
            names = os.listdir(folder)
        except OSError:
            return
        for name in names:
            if name.startswith(prefix) and name.endswith(DRAFT_SUFFIX):
                draft = folder / name
                try:
                    if os.path.samestat(os.lstat(draft), found):
                        os.unlink(draft)
                except OSError:
                    continue  # its own creator was faster, or the folder may not be written

    def _check_mount(self) -> None:
        """Refuse a file that is mounted by itself, or on a mount whose locks stay local."""
        mine = _mount_number(self._descriptor)
        if mine is None:
            return
        try:
            folder = os.open(self.path.parent, os.O_RDONLY)
        except OSError:
            return  # a folder that may be entered but not read
        try:
            around = _mount_number(folder)
        finally:
            os.close(folder)
        if around is not None and mine != around:
            raise self._cannot(
                "the file is mounted by itself, without its folder, so it has another name "
                "elsewhere. After a crash, what is booked by one name can be undone by the other",
                "Mount the folder that it lies in, and open it there.",
            )
        if found := LOCAL_LOCKS & _mount_options(mine):
            raise self._cannot(
                f"its file system is mounted with {', '.join(sorted(found))}: locks do not reach "
                "the other machines",
                "Mount it with locks, or put the ledger on a disk of this machine.",
            )

    def _check_journal(self) -> None:
        """Refuse a journal that is not of this file's last transaction.

        A journal holds the first page as it was before its transaction, and that page counts
        transactions. While the journal is in force the file's count is the same or one more. A
        debit takes two transactions (see ``Store.append``), so whoever booked one since, by
        another name, has brought the count further than that. An empty file counts none.
        """
        beside = self.path.with_name(f"{self.path.name}-journal")
        now = _Journal.read(beside)
        while now is not None:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            header = os.read(self._descriptor, 100)
            later = _Journal.read(beside)
            if later is not None and later.nonce == now.nonce:
                break
            now = later  # its writer is at work; what it left by now is what counts
        if now is None:
            return
        count, pages = struct.unpack(">II", header[24:32].ljust(8, b"\0"))
        # A journal without the first page is of a transaction that has not written it yet.
        before = now.count if now.pages else 0
        expected = (count,) if before is None else (before, before + 1)
        if count not in expected or (before is None and now.pages != pages):
            raise self._cannot(
                f"the journal {beside.name} beside it is not of its last transaction: after a "
                "crash it was used by another name, or another copy was put in its place",
                f"To go on with the {self.what} as it is, check a copy of it, then delete that "
                f"journal. Never copy or move a {self.what} without its journal.",
            )

    def check_lock(self, *, writing: bool) -> None:
        """Ask by another descriptor for the lock that SQLite holds now: it must be refused."""
        if fcntl is None or not (writing or self._writable):
            return
        # Who writes holds a lock for writing, with which even one for reading collides.
        kind = fcntl.F_RDLCK if writing else fcntl.F_WRLCK
        start, length = (RESERVED, 1) if writing else (SHARED, SHARED_LENGTH)
        granted = _granted(self._descriptor, kind, start, length)
        if granted is None:
            granted = _granted_elsewhere(self.path, kind, start, length)
        if granted:
            raise self._cannot(
                "its file system grants a lock that is taken already, so two programs could spend "
                "the same budget",
                "Put the ledger on a disk of this machine, or on a mount with working locks.",
            )


def _granted(descriptor: int, kind: int, start: int, length: int) -> bool | None:
    """Ask for a lock that belongs to the open file, not to the process as SQLite's does.

    Returns:
        Whether it was granted; None where the system does not have such locks.
    """
    if not hasattr(fcntl, "F_OFD_SETLK"):
        return None
    lock = struct.pack("hhqqi", kind, os.SEEK_SET, start, length, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)
    except OSError as error:
        return False if error.errno in (errno.EAGAIN, errno.EACCES) else None
    return True


_ASK = (
    "import fcntl, sys\n"
    "kind, start, length = map(int, sys.argv[2:])\n"
    "with open(sys.argv[1], 'r+b' if kind == fcntl.LOCK_EX else 'rb') as file:\n"
    "    try: fcntl.lockf(file, kind | fcntl.LOCK_NB, length, start)\n"
    "    except OSError: print('refused')\n"
    "    else: print('granted')\n"
)


def _granted_elsewhere(path: Path, kind: int, start: int, length: int) -> bool:
    """Ask for a lock from another process, where the system has no locks of open files."""
    wanted = fcntl.LOCK_SH if kind == fcntl.F_RDLCK else fcntl.LOCK_EX
    arguments = [str(path), str(wanted), str(start), str(length)]
    answer = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _ASK, *arguments], capture_output=True, text=True
    )
    return answer.stdout.strip() != "refused"


def _mount_number(descriptor: int) -> str | None:
    """Return the number of the mount by which a descriptor was opened, or None if unknown."""
    found = re.search(rb"^mnt_id:\s*(\d+)$", _read(f"/proc/self/fdinfo/{descriptor}"), re.MULTILINE)
    return found[1].decode() if found else None


def _mount_options(number: str) -> set[str]:
    """Return the options of a mount, those of its file system included."""
    line = rf"^{number} \d+ \S+ \S+ \S+ (\S+) .* (\S+)$".encode()
    found = re.search(line, _read("/proc/self/mountinfo"), re.MULTILINE)
    return set(b",".join(found.groups()).decode("utf-8", "replace").split(",")) if found else set()


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:  # not Linux, or without /proc
        return b""


class _Journal:
    """A rollback journal that is in force."""

    def __init__(self, nonce: bytes, pages: int, count: int | None) -> None:
        self.nonce = nonce
        self.pages = pages
        """How many pages the file had before the transaction."""
        self.count = count
        """The file's count of transactions before this one, if the journal has its first page."""

    @classmethod
    def read(cls, path: Path) -> _Journal | None:
        """Read a journal; None when there is none, or none that SQLite would follow."""
        try:
            with open(path, "rb") as file:
                header = file.read(28)
                if len(header) < 28 or header[:8] != MAGIC:
                    return None
                pages = struct.unpack(">I", header[16:20])[0]
                return cls(header[12:16], pages, cls._first_page(file))
        except FileNotFoundError:
            return None
        except OSError as error:
            what = f"the journal {path.name} beside it cannot be read ({error.strerror})"
            owner = path.with_name(path.name.removesuffix("-journal"))
            raise_alone(cannot(owner, what, "Check its permissions."))

    @staticmethod
    def _first_page(file: BinaryIO) -> int | None:
        """Return the count of transactions in the copy of page 1, which may be in any segment."""
        start, size = 0, os.fstat(file.fileno()).st_size
        while True:
            file.seek(start)
            header = file.read(28)
            if len(header) < 28 or header[:8] != MAGIC:
                return None
            records, _, _, sector, page = struct.unpack(">IIIII", header[8:28])
            if not (sector and 512 <= page <= 65536):
                return None
            place, length = start + sector, page + 8
            records = min(records, max(size - place, 0) // length)
            for number in range(records):
                file.seek(place + number * length)
                if struct.unpack(">I", file.read(4))[0] == 1:
                    return int(struct.unpack(">I", file.read(28)[24:28])[0])
            end = place + records * length
            start = -(-end // sector) * sector
            if not records:
                return None
