"""One file by two names, journals of another moment, locks that exclude nobody: refused.

The attacks are played through: a kill inside a commit by one name, going on by another, and back.
With the checks taken out (the broken twins) more is drawn than the account holds.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tulle.core.errors import BudgetError, LedgerError
from tulle.ledger import store_file, store_place
from tulle.ledger.store import Store
from tulle.ledger.store import verify as verify_file
from tulle.ledger.store_file import View
from tulle.ledger.store_place import Place

# Newer Pythons warn of every fork in a process with threads; the children here use none.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

LIMIT = 10


def allow(account: View) -> None:
    if account.totals.debits >= LIMIT:
        raise BudgetError("used up")


def spend(path: Path, most: int = 2 * LIMIT) -> tuple[int, str]:
    """Book until the budget or the place says no; a debit that returns is one that is drawn for."""
    drawn = 0
    try:
        store = Store(path)
        for _ in range(most):
            store.append("debit", "shop", {}, guard=allow)
            drawn += 1
    except BudgetError:
        return drawn, ""
    except LedgerError as error:
        return drawn, str(error)
    return drawn, ""


def in_child(work: Callable[[], Any]) -> int:
    """Run ``work`` in a forked child; return its exit code, 0 if it came to an end."""
    child = os.fork()
    if not child:
        code = 99
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def journal_of(before: bytes, after: bytes) -> bytes:
    """Return the journal that SQLite leaves when it is killed inside a commit: the old pages."""
    size, nonce = 4096, 12345
    pages = {
        1 + start // size: before[start : start + size]
        for start in range(0, len(before), size)
        if before[start : start + size] != after[start : start + size]
    }
    count = len(before) // size
    header = store_place.MAGIC + struct.pack(">5I", len(pages), nonce, count, 512, size)
    records = [
        struct.pack(">I", number)
        + page
        + struct.pack(">I", nonce + sum(page[place] for place in range(size - 200, 0, -200)))
        for number, page in pages.items()
    ]
    return header.ljust(512, b"\0") + b"".join(records)


def crash(path: Path, moment: str) -> None:
    """Leave the file and its journal as a kill inside the commit of one more debit leaves them."""
    before = path.read_bytes()
    if moment == "real":
        # The disk refuses to let the file grow, by a signal that kills, after the other pages.
        def work() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(before), most))
            Store(path).append("debit", "shop", {"long": "x" * 20000})

        assert in_child(work) == -signal.SIGXFSZ
        assert path.with_name(f"{path.name}-journal").exists()
        return
    store = Store(path)
    store._confirm = lambda booked: None  # type: ignore[method-assign]
    store.append("debit", "shop", {})
    path.with_name(f"{path.name}-journal").write_bytes(journal_of(before, path.read_bytes()))
    if moment == "before the pages are written":
        path.write_bytes(before)


MOMENTS = ("before the pages are written", "after the pages are written", "real")


def test_the_journal_is_one_that_sqlite_follows(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    spend(path, 3)
    for moment in MOMENTS:
        crash(path, moment)
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT count FROM head").fetchone() == (3,)
        assert os.listdir(tmp_path) == ["study.ledger"]
        crash(path, moment)
        assert Store(path).head().count == 3  # and so does the store, by the same name
        assert verify_file(path) == []


@pytest.fixture
def names(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Path, Any, Any]]:
    """Two names for a ledger, how to get from the first to the second, and how back."""
    one, other = tmp_path / "a" / "study.ledger", tmp_path / "b" / "study.ledger"
    one.parent.mkdir()
    other.parent.mkdir()
    if request.param == "link":
        yield one, lambda: (os.link(one, other), other)[1], lambda: one
    elif request.param == "link, then one name removed":

        def back() -> Path:
            os.link(other, one)
            other.unlink()
            return one

        yield one, lambda: (os.link(one, other), one.unlink(), other)[2], back
    elif request.param == "moved":
        yield one, lambda: os.rename(one, other) or other, lambda: os.rename(other, one) or one
    else:
        other.touch()

        def mount() -> Path:
            command = ["mount", "--bind", str(one), str(other)]
            done = subprocess.run(command, capture_output=True) if shutil.which("mount") else None
            if done is None or done.returncode:
                pytest.skip("a file cannot be mounted here")
            return other

        yield one, mount, lambda: one
        subprocess.run(["umount", str(other)], capture_output=True)


WAYS = ("link", "link, then one name removed", "moved", "mount")
LAYERS = {
    "names": [(Place, "check_names"), (Place, "_check_mount")],
    "journal": [(Place, "_check_journal")],
    "witness": [(store_file, "taken_back")],
}


def without(monkeypatch: pytest.MonkeyPatch, *layers: str) -> None:
    for layer in layers:
        for owner, name in LAYERS[layer]:
            monkeypatch.setattr(owner, name, lambda *_: None)


def attack(names: tuple[Path, Any, Any], moment: str) -> tuple[int, list[str]]:
    """Play the attack; return how many were drawn, and what was refused."""
    one, there, back = names
    drawn, _ = spend(one, 5)
    crash(one, moment)
    refusals = []
    for path in (there, back):
        more, refused = spend(path())
        drawn += more
        refusals.append(refused)
    return drawn, refusals


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("names", WAYS, indirect=True)
def test_two_names_do_not_draw_twice(names: tuple[Path, Any, Any], moment: str) -> None:
    drawn, refusals = attack(names, moment)
    assert drawn <= LIMIT
    assert any(refusals)
    assert all("Nothing was spent" in text or not text for text in refusals)


@pytest.mark.parametrize(
    ("names", "kept"),
    [(way, kept) for way in WAYS for kept in ("journal", "witness")]
    + [("link", "names"), ("mount", "names")],
    indirect=["names"],
)
@pytest.mark.parametrize("moment", MOMENTS)
def test_each_check_alone_is_enough(
    names: tuple[Path, Any, Any], kept: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, *(layer for layer in LAYERS if layer != kept))
    assert attack(names, moment)[0] <= LIMIT


@pytest.mark.parametrize("names", WAYS, indirect=True)
def test_without_the_checks_more_is_drawn_than_there_is(
    names: tuple[Path, Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin, as tulle 0.1 was: 15 of 10, and verification finds nothing."""
    without(monkeypatch, *LAYERS)
    drawn, refusals = attack(names, "before the pages are written")
    assert drawn == 15
    assert refusals == ["", ""]
    assert verify_file(names[0]) == []


def test_the_advice_is_enough_to_go_on(tmp_path: Path) -> None:
    one, other = tmp_path / "study.ledger", tmp_path / "other.ledger"
    spend(one, 5)
    crash(one, "before the pages are written")
    os.rename(one, other)
    spend(other, 2)
    os.rename(other, one)
    with pytest.raises(LedgerError, match=r"study\.ledger-journal .*delete that journal"):
        Store(one)
    assert "journal" in verify_file(one)[0].what
    one.with_name("study.ledger-journal").unlink()
    assert verify_file(one) == []
    assert spend(one) == (3, "")


def test_a_copy_put_over_a_crashed_ledger_is_not_rolled_back_by_its_journal(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    spend(path, 2)
    old = path.read_bytes()
    spend(path, 3)
    crash(path, "after the pages are written")
    path.write_bytes(old)
    with pytest.raises(LedgerError, match="another copy"):
        Store(path)
    assert path.read_bytes() == old


@pytest.mark.parametrize("act", ["open", "append", "head", "verify"])
def test_a_second_name_is_noticed_at_every_step(tmp_path: Path, act: str) -> None:
    path = tmp_path / "study.ledger"
    store = Store(path)
    os.link(path, tmp_path / "backup")
    if act == "verify":
        assert "2 names" in store.verify()[0].what
        return
    with pytest.raises(LedgerError, match=r"2 names .*Remove the other names"):
        {"open": lambda: Store(path), "append": lambda: store.append("debit", "a", {}),
         "head": store.head}[act]()  # fmt: skip
    (tmp_path / "backup").unlink()
    assert store.append("debit", "a", {}).number == 1


def test_a_second_name_made_while_the_lock_is_waited_for_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    store = Store(path)
    honest = store_file.connect

    def connect(*arguments: Any) -> sqlite3.Connection:
        os.link(path, tmp_path / "other")
        return honest(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_file, "connect", connect)
        with pytest.raises(LedgerError, match="2 names"):
            store.append("debit", "a", {})
    (tmp_path / "other").unlink()
    assert store.head().count == 0


def test_a_name_that_an_interrupted_creation_left_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    Store(path)
    os.link(path, tmp_path / ".study.ledger.0123.draft")
    assert Store(path).append("debit", "a", {}).number == 1
    assert os.listdir(tmp_path) == ["study.ledger"]


def test_a_file_mounted_by_itself_is_refused(tmp_path: Path) -> None:
    path, target = tmp_path / "study.ledger", tmp_path / "mounted.ledger"
    Store(path)
    target.touch()
    command = ["mount", "--bind", str(path), str(target)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a file cannot be mounted here")
    try:
        with pytest.raises(LedgerError, match=r"mounted by itself.*Mount the folder"):
            Store(target)
        assert "mounted by itself" in verify_file(target)[0].what
        assert Store(path).append("debit", "a", {}).number == 1
    finally:
        subprocess.run(["umount", str(target)], check=True)


def test_a_mounted_folder_is_used(tmp_path: Path) -> None:
    """There the journal is beside the ledger by either name."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    command = ["mount", "--bind", str(one), str(other)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a folder cannot be mounted here")
    try:
        spend(one / "study.ledger", 5)
        crash(one / "study.ledger", "after the pages are written")
        assert spend(other / "study.ledger") == (5, "")
        assert spend(one / "study.ledger") == (0, "")
    finally:
        subprocess.run(["umount", str(other)], check=True)


@pytest.mark.parametrize("option", sorted(store_place.LOCAL_LOCKS))
def test_a_mount_whose_locks_stay_local_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    path = tmp_path / "study.ledger"
    Store(path)
    honest = store_place._read
    line = f"77 1 0:5 / {tmp_path} rw - nfs server:/x rw,vers=3,{option},addr=1\n".encode()
    tables = {"mountinfo": line, "fdinfo": b"pos:\t0\nmnt_id:\t77\nino:\t3\n"}
    monkeypatch.setattr(
        store_place,
        "_read",
        lambda name: next((table for part, table in tables.items() if part in name), honest(name)),
    )
    with pytest.raises(LedgerError, match=f"{option}: locks do not reach"):
        Store(path)


@pytest.fixture
def unlocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let SQLite take no locks: as on a mount where every lock is granted."""
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda name, **more: connect(f"{name}&vfs=unix-none", **more)
    )


def race(path: Path, spender: Callable[[Path], int] = lambda path: spend(path)[0]) -> int:
    """Let eight processes spend at once; return how many debits were drawn for."""
    ready, start = os.pipe()
    children = []
    for _ in range(8):
        child = os.fork()
        if not child:
            drawn = 0
            try:
                os.close(start)
                os.read(ready, 1)
                drawn = spender(path)
            finally:
                os._exit(drawn)
        children.append(child)
    os.close(start)
    os.close(ready)
    return sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


def test_locks_that_exclude_nobody_are_refused(tmp_path: Path, request: Any) -> None:
    path = tmp_path / "study.ledger"
    store = Store(path)
    request.getfixturevalue("unlocked")
    for act in (lambda: Store(path), lambda: store.append("debit", "shop", {}), store.head):
        with pytest.raises(LedgerError, match=r"grants a lock .*Nothing was spent"):
            act()
    assert "grants a lock" in verify_file(path)[0].what
    assert race(path) == 0


def test_without_the_question_for_a_lock_more_is_drawn_than_booked(
    tmp_path: Path, unlocked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: it believes in its lock, and does not look again at what it booked."""
    monkeypatch.setattr(Place, "check_lock", lambda self, writing: None)
    monkeypatch.setattr(Place, "_check_journal", lambda self: None)
    monkeypatch.setattr(Store, "_confirm", lambda self, booked: None)
    for attempt in range(30):  # chance decides how often; once is enough
        path = tmp_path / f"{attempt}.ledger"
        Store(path)
        drawn = race(path)
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            try:
                (booked,) = connection.execute(
                    "SELECT count(*) FROM entries WHERE kind = 'debit'"
                ).fetchone()
            except sqlite3.Error:
                continue
        if drawn > booked:
            return
    pytest.fail("the race did not catch the broken twin")


def test_a_system_that_grants_every_lock_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "study.ledger"
    store = Store(path)
    monkeypatch.setattr(store_place.fcntl, "fcntl", lambda *arguments: 0)
    with pytest.raises(LedgerError, match="grants a lock"):
        store.append("debit", "a", {})


def not_known(*arguments: object) -> None:
    raise OSError(22, "Invalid argument")


@pytest.mark.parametrize("way", ["not in Python", "not in the system"])
def test_where_locks_of_open_files_are_missing_another_process_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any, way: str
) -> None:
    if way == "not in Python":
        monkeypatch.delattr(store_place.fcntl, "F_OFD_SETLK")
    else:
        monkeypatch.setattr(store_place.fcntl, "fcntl", not_known)
    path = tmp_path / "study.ledger"
    assert Store(path).append("debit", "a", {}).number == 1
    request.getfixturevalue("unlocked")
    with pytest.raises(LedgerError, match="grants a lock"):
        Store(path).append("debit", "a", {})


def test_asking_for_the_lock_does_not_lose_it(tmp_path: Path) -> None:
    """Closing a descriptor drops the locks of the process: ours is closed last."""
    store = Store(tmp_path / "study.ledger")
    program = (
        "import sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
        "try: connection.execute('BEGIN IMMEDIATE')\n"
        "except sqlite3.OperationalError: print('locked')\n"
    )
    told = []

    def look(account: View) -> None:
        done = subprocess.run(
            [sys.executable, "-c", program, str(store.path)], capture_output=True, text=True
        )
        told.append(done.stdout.strip())

    store.append("debit", "a", {}, guard=look)
    assert told == ["locked"]


def test_another_program_that_keeps_the_journal_elsewhere_is_noticed(tmp_path: Path) -> None:
    """In write-ahead mode the newest debits are in a second file, which a copy would leave out."""
    store = Store(tmp_path / "study.ledger", timeout=0.05)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN")
        other.execute("SELECT * FROM head").fetchall()
        time.sleep(0.01)
        with pytest.raises(LedgerError, match="Nothing was spent"):
            store.append("debit", "a", {})
    assert store.append("debit", "a", {}).number == 1


@pytest.mark.parametrize("step", ["booking", "confirming", "carrying forward"])
def test_a_kill_at_every_write_of_a_page(tmp_path: Path, step: str) -> None:
    """With its journal the file is as before; without it (moved away) no debit is lost.

    A commit writes its pages one by one, after the journal: every number of them is tried.
    """
    path = tmp_path / "study.ledger"
    if step == "carrying forward":
        shutil.copy(Path(__file__).parent / "data" / "format-0.1.ledger", path)
    else:
        spend(path, 4)
    store = Store(path)
    before = path.read_bytes()
    store._confirm = lambda booked: None  # type: ignore[method-assign]
    store.append("debit", "shop", {"long": "x" * 9000})
    if step == "confirming":
        before = path.read_bytes()
        Store._confirm(store, store.head())
    after, count = path.read_bytes(), Store(path).head().count
    was = journal_of(before, after)
    path.write_bytes(before)
    sound_before = Store(path).head()
    pages = [
        start
        for start in range(0, len(after), 4096)
        if before[start : start + 4096] != after[start : start + 4096]
    ]
    for written in range(len(pages) + 1):
        torn = bytearray(before)
        for start in pages[:written]:
            torn[start : start + 4096] = after[start : start + 4096]
        for journal in (True, False):
            path.write_bytes(torn)
            beside = path.with_name(f"{path.name}-journal")
            beside.unlink(missing_ok=True)
            if journal:
                beside.write_bytes(was)
                assert Store(path).head() == sound_before
                assert verify_file(path) == []
                assert path.read_bytes() == before
            else:
                try:
                    found = Store(path)
                    totals = found.read("shop", lambda view: view.totals)
                except LedgerError:
                    assert written not in (0, len(pages))
                else:
                    assert found.head().count in (sound_before.count, count)
                    assert totals.debits >= (0 if step == "carrying forward" else 4)
